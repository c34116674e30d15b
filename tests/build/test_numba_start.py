"""SciPy's linear algebra is loaded by who needs it, and not to learn whether it is there."""

import subprocess
import sys

CODE = """
import sys
import evenkeel_kernels
import numba
import numpy as np

@numba.njit
def doubled(x):
    return x + x

@numba.njit
def product(a, b):
    return np.dot(a, b)

assert doubled(2) == 4
assert "scipy.linalg" not in sys.modules
assert product(np.eye(2), np.ones((2, 2))).sum() == 4.0
assert "scipy.linalg" in sys.modules
"""


def test_linear_algebra_is_loaded_by_who_needs_it():
    subprocess.run([sys.executable, "-c", CODE], check=True)
