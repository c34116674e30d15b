"""Kernels that minimise a weighted sum: annealing and its large moves."""
