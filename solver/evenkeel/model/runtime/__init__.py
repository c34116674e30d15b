"""Logging, memoizing, atomic files, and display in notebooks."""
