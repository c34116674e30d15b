"""Import numba without SciPy's linear algebra, which kernels do not use.

numba imports ``scipy.linalg``, and half of numpy's rarer modules with it, before the first kernel
is compiled or loaded: a tenth of a second, to know whether ``numpy.dot`` can be compiled. SciPy is
a dependency of this package, so that this is known; code that compiles ``numpy.dot`` loads it then.
"""

import contextlib
import sys
from typing import Any


def start_without_blas() -> None:
    """Load the part of numba that asks, and tell it yes; another version may ask as it likes."""
    with contextlib.suppress(ImportError, AttributeError):
        from numba.np import linalg

        asked = linalg.ensure_blas
        if "numba.np.arraymath" in sys.modules:
            return
        linalg.ensure_blas = lambda: None
        try:
            from numba.np import arraymath
        finally:
            linalg.ensure_blas = asked
        loaded: Any = arraymath
        loaded.ensure_blas = asked
