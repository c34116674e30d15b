"""Compilation, caching and counting of kernels, and the decorators that declare them."""
