"""Numba kernels: arrays and scalars in, arrays and scalars out.

Nothing here knows a name, an object or a file, and nothing here imports ``evenkeel``.
"""
