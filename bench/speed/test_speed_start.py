"""Fresh processes: importing, and the first solve with and without compiled kernels on disk."""

import pytest

from bench.support.processes import bytecode_kept, children_seconds, run_python

IMPORT = "import evenkeel"
SOLVE = """
import evenkeel as ek
cluster = ek.Cluster.from_arrays(
    capacity=[[10.0]] * 6, load=[[1.0]] * 12, placement=[[0, 2], [1, 3]] * 6,
    domains={"zone": [0, 0, 1, 1, 2, 2]}, spread={"zone": 1},
)
assert ek.solve(cluster, goals=ek.Goals(level=0.1)).success
"""

pytestmark = pytest.mark.benchmark(timer=children_seconds, group="start")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder of compiled kernels."""
    folder = str(tmp_path_factory.mktemp("kernels"))
    run_python(SOLVE, NUMBA_CACHE_DIR=folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def bytecode(tmp_path_factory):
    """Have processes keep the modules that they compile."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in bytecode_kept(tmp_path_factory.mktemp("compiled")).items():
            patch.setenv(name, value)
        yield


def test_bare_python(benchmark):
    """What the others include."""
    benchmark.pedantic(run_python, ("pass",), rounds=7, warmup_rounds=1)
    benchmark.extra_info["title"] = "`python -c pass`, which the next three include"


def test_import(benchmark):
    benchmark.pedantic(run_python, (IMPORT,), rounds=7, warmup_rounds=1)
    benchmark.extra_info["title"] = "`import evenkeel` in a fresh process"


def test_first_solve_with_kernels_on_disk(benchmark, kept):
    benchmark.pedantic(run_python, (SOLVE,), {"NUMBA_CACHE_DIR": kept}, rounds=5, warmup_rounds=1)
    benchmark.extra_info["title"] = "first solve in a fresh process, kernels on disk"


def test_first_solve_ever(benchmark, tmp_path):
    benchmark.pedantic(run_python, (SOLVE,), {"NUMBA_CACHE_DIR": str(tmp_path)}, rounds=1)
    benchmark.extra_info["title"] = "first solve ever, compiling every kernel it needs"
    assert any(tmp_path.rglob("*.nbc"))
