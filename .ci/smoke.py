"""Import, solve once and compare the answer, with whatever numba, numpy and Python this is."""

import hashlib
import platform
import sys
import warnings

import numba
import numpy as np

import evenkeel as ek
from evenkeel.simulate.generators import expansion
from evenkeel_kernels.build.jit import backend

EXPECTED = "bb3ebd7def27e0bb"

warnings.simplefilter("error", RuntimeWarning)
cluster = expansion(partitions=200, nodes=25, zones=5)
placement = ek.solve(cluster, seed=7, work_limit=20_000).placement
digest = hashlib.sha256(np.ascontiguousarray(placement.node, np.int32).tobytes())
digest.update(np.ascontiguousarray(placement.leader, np.int32).tobytes())
print(
    f"Python {platform.python_version()}, numba {numba.__version__}, numpy {np.__version__}, "
    f"kernels by {backend.__name__.rpartition('.')[2]}: {digest.hexdigest()[:16]}"
)
sys.exit(digest.hexdigest()[:16] != EXPECTED)
