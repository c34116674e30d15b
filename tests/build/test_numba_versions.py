"""A numba whose inner parts differ costs compile time only: kernels do without them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import places
from tests.support.processes import fresh

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="there is nothing to compile"
)

KERNELS = """
import numpy as np
from evenkeel_kernels.build.jit import backend, inlined, no_alloc, inline_only, device_function
@inlined
def double(x):
    return 2.0 * x
@inline_only
def plus(x, y):
    return x + y
@device_function
def minus(x, y):
    return x - y
@no_alloc
def answer(load):
    return double(plus(load[0], minus(load[1], load[2])))
"""
CALL = """
from toys.kernels import answer, backend
import numpy as np
print(answer(np.array([0.1, 0.7, 0.3])).hex(), backend.__name__.rpartition(".")[2])
print(sum(answer.stats.cache_hits.values()))
"""

NEWER = "import numba; numba.__version__ = '99.1.0rc1'"

DIFFERS = """
import llvmlite.binding as b
given = b.parse_assembly
b.parse_assembly = lambda text, *rest: 1 / 0 if text[:2] == '@"' else given(text, *rest)
"""
"""What numba gives to LLVM is as before; what its inner parts are given otherwise is an error."""

UNKNOWN = {
    "newer": NEWER + DIFFERS,
    "older": "import numba; numba.__version__ = '0.61.2'",
    "a class is gone": "import numba.core.codegen as c; del c.JITCodeLibrary",
}


def call(folder: Path, first: str = "") -> list[str]:
    """What the toy kernels answer, how they were made, and loads from disk."""
    return run(folder, first + "\n" + CALL).stdout.split()


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh process that sees the toy kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    return fresh.run(code, folder, [places.ROOT / "kernels"], environment)


@pytest.fixture
def toys(tmp_path):
    """A folder with a package of kernels, none of them compiled."""
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys/__init__.py").touch()
    (tmp_path / "toys/kernels.py").write_text(KERNELS)
    return tmp_path


ANSWER = (2.0 * (0.1 + (0.7 - 0.3))).hex()


def test_the_version_that_is_installed_is_known(toys):
    assert call(toys)[:2] == [ANSWER, "numba_internals"]


def test_a_newer_version_that_works_is_used_like_a_known_one(toys):
    assert call(toys, NEWER) == [ANSWER, "numba_internals", "0"]
    assert call(toys, NEWER) == [ANSWER, "numba_internals", "1"]


@pytest.mark.parametrize("change", UNKNOWN)
def test_an_unknown_numba_gives_the_same_bits_and_keeps_its_kernels(toys, change):
    first = call(toys, UNKNOWN[change])
    assert first == [ANSWER, "numba_public", "0"]
    again = call(toys, UNKNOWN[change])
    assert again == [ANSWER, "numba_public", "1"]


def test_an_unknown_numba_tells_how_many_kernels_it_keeps(toys):
    counted = (
        "from evenkeel_kernels.build.inventory import inventory\n"
        "found = inventory(); print(found.kernels > 100, found.kept)"
    )
    assert run(toys, f"{UNKNOWN['newer']}\n{counted}").stdout.split() == ["True", "0"]


TAKEN_AWAY = """
import shutil, warnings; warnings.simplefilter("always")
from toys.kernels import answer, backend
import numpy as np
from numba.core.caching import IndexDataCacheFile
save = IndexDataCacheFile.save
def taken_away_meanwhile(self, key, data):
    shutil.rmtree({cache!r}, ignore_errors=True)
    {then}
    save(self, key, data)
IndexDataCacheFile.save = taken_away_meanwhile
print(answer(np.array([0.1, 0.7, 0.3])).hex(), backend.__name__.rpartition(".")[2])
"""


@pytest.mark.parametrize("change", ["", UNKNOWN["newer"]], ids=["known", "newer"])
@pytest.mark.parametrize("then", ["pass", "open({cache!r}, 'w').close()"], ids=["gone", "a file"])
def test_a_folder_that_is_gone_as_a_kernel_is_saved_does_not_stop_the_caller(toys, change, then):
    cache = str(toys / "cache")
    code = TAKEN_AWAY.format(cache=cache, then=then.format(cache=cache))
    done = run(toys, f"{change}\n{code}")
    assert float.fromhex(done.stdout.split()[0]) == 1.0
    assert done.stderr.count("KernelCacheWarning") == 1


def test_an_unknown_numba_compiles_anew_what_a_changed_module_goes_into(toys):
    (toys / "toys/inner.py").write_text("STEP = 1.0\n")
    with (toys / "toys/kernels.py").open("a") as file:
        file.write("from toys.inner import STEP\n@no_alloc\ndef answer(load):\n    return STEP\n")
    assert call(toys, UNKNOWN["newer"]) == [(1.0).hex(), "numba_public", "0"]
    # of another length: bytecode is kept by size and second
    (toys / "toys/inner.py").write_text("STEP = 2.00\n")
    assert call(toys, UNKNOWN["newer"]) == [(2.0).hex(), "numba_public", "0"]


def test_the_answer_that_all_versions_are_asked_for_is_the_one_of_these():
    """What `make versions` compares with goes stale unseen where nothing else runs it."""
    smoke = places.ROOT / ".ci" / "smoke.py"
    done = subprocess.run(
        [sys.executable, str(smoke)], check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
