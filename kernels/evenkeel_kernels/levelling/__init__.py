"""Kernels of ``balance``: repair, descent to the goals, and what follows where it stalls."""
