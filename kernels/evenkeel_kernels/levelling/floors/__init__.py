"""Kernels that fill nodes up to their floors."""
