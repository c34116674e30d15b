"""Kernels of plans: schedule the start of each change of a partition."""
