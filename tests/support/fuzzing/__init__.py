"""Damaged files for every reader of a format."""
