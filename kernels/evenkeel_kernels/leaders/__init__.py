"""Kernels that choose leaders among replicas that stay."""
