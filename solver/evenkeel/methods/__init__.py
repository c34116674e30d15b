"""Strategies: algorithms that make a placement, each behind its method name."""
