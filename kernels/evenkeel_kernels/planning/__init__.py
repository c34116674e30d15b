"""Kernels of plans: when each change of a partition may start."""
