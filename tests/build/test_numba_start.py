"""SciPy's linear algebra is loaded by who needs it, and not to learn whether it is there."""

import os
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


LOADING = """
import sys
import numpy as np
from evenkeel_kernels.build.jit import backend
from evenkeel_kernels.core.by_node import by_node

first, member = by_node(np.array([1, 0, -1, 1], np.int32), 2)
assert (first.tolist(), member.tolist()) == ([0, 1, 3], [1, 0, 3])
hits = sum(by_node.stats.cache_hits.values())
print(hits, backend.__name__.endswith("internals"), "numba.typed.typeddict" in sys.modules)
"""


def test_who_only_loads_kernels_does_not_load_what_compiles_them(tmp_path):
    """All that numba can compile takes a tenth of a second to list, in every process."""
    told = [
        subprocess.run(
            [sys.executable, "-c", LOADING], check=True, capture_output=True, text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    internals = told[0][1]
    assert told == [["0", internals, "True"], ["1", internals, str(internals != "True")]]
