"""Gates on fresh processes: importing, and the first solve with kernels on disk.

Both are held against importing NumPy, which reads files and runs Python as they do.
"""

import json
from pathlib import Path

import pytest

from bench.speed.test_speed_start import IMPORT, SOLVE
from bench.support.processes import children_seconds, run_python

pytestmark = pytest.mark.gate

BASELINES = json.loads((Path(__file__).parents[1] / "baselines.json").read_text())
ROUNDS = 3


def spent(code):
    """CPU seconds of a process that runs some Python."""
    began = children_seconds()
    run_python(code)
    return children_seconds() - began


@pytest.mark.parametrize(("name", "code"), [("import", IMPORT), ("first_solve", SOLVE)])
def test_start(name, code, tell, request):
    """Against ``import numpy``, in turns; what Python itself takes is taken off both."""
    slowed = request.config.getoption("--slowed")
    run_python(code)  # compiles what is not on disk
    turns = [(spent("pass"), spent("import numpy"), spent(code)) for _ in range(ROUNDS)]
    bare, numpy, ours = (min(column) for column in zip(*turns, strict=True))
    ratio = (numpy - bare) / (ours - bare) / (2 if slowed else 1)
    least = BASELINES["ratios"][name] * BASELINES["margin"]
    tell(
        f"{name:18} {(ours - bare) * 1e3:9.1f} ms, `import numpy` {(numpy - bare) * 1e3:9.1f} ms: "
        f"{ratio:8.3f} times as fast, {least:.3f} needed"
    )
    assert (ratio < least) == slowed
