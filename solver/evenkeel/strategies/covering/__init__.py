"""Covering: the cheapest numbers of nodes that meet every need."""
