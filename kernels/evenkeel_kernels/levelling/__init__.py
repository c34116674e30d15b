"""Kernels of ``balance``: repair, descent to the goals, and escapes from local minima."""
