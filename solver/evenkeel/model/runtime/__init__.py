"""Logging, memoizing, atomic files, and how notebooks show things."""
