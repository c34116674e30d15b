"""Benchmarks that fail when a ratio within one run is worse than promised."""
