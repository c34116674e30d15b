"""Stores of a pipeline's state between two runs, in memory or on disk."""
