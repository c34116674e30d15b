"""Numba kernels: arrays and scalars in, arrays and scalars out.

Nothing here knows a name, an object or a file, and nothing here imports ``evenkeel``.
"""

from evenkeel_kernels.build.numba_start import start_without_blas

start_without_blas()
