"""Experiments of other systems' texts, and instances made from a seed."""
