"""Kernels that come with a wheel are loaded, unless sources, types or the processor differ."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support import places

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="there is nothing to compile"
    ),
]

KERNELS = """
from evenkeel_kernels.build.jit import inline_only, no_alloc
@inline_only
def double(x):
    return 2.0 * x
@no_alloc
def twice(load):
    return double(load[0])
@no_alloc
def four_times(load):
    return 2.0 * twice(load)
"""
SETUP = """
import logging, sys
from pathlib import Path
from evenkeel_kernels.build import shipped
from evenkeel_kernels.build.jit import backend
shipped.FOLDER = Path("shipped")
logging.basicConfig(format="%(levelname)s %(message)s", stream=sys.stdout, level="INFO")
import numpy as np
from toys.kernels import twice, four_times
load = np.array([0.1])
"""
PACK = (
    SETUP
    + """
twice(load)
shipped.FOLDER.mkdir(exist_ok=True)
shipped.write(shipped.FOLDER / shipped.NAME, twice._cache.packed())
"""
)
V3 = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2"}


def run(folder, code, cache, **environment):
    """Run code with a cache of its own."""
    path = os.pathsep.join([str(folder), str(places.ROOT / "kernels")])
    known = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={**known, **environment}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """A folder with a package of kernels and the file that a wheel would have."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "toys").mkdir()
    (folder / "toys/__init__.py").touch()
    (folder / "toys/kernels.py").write_text(KERNELS)
    assert "Error" not in run(folder, PACK, "built", **V3)
    (file,) = (folder / "shipped").glob("*.kernels")
    if "not" in run(folder, SETUP + "print(shipped.reason() and 'does not serve')", "asked"):
        pytest.skip("this processor is of another kind")
    first = file.read_bytes()
    assert str(folder).encode() not in first
    file.unlink()
    run(folder, PACK, "built again", **V3)
    assert file.read_bytes() == first  # two builds give the same bytes
    return folder


NEVER = {"EVENKEEL_COMPILING": "never"}


def test_what_came_with_the_wheel_is_loaded_where_compiling_is_forbidden(toys):
    code = SETUP + "print(twice(load), twice.stats.cache_hits, backend.is_kept(twice))"
    assert run(toys, code, "none", **NEVER).startswith("0.2 ")


def test_other_types_sources_and_processors_are_errors_where_compiling_is_forbidden(toys):
    assert "KernelNotCompiled" in run(toys, SETUP + "twice(load.astype('f4'))", "none", **NEVER)
    generic = run(toys, SETUP + "twice(load)", "none", **NEVER, NUMBA_CPU_NAME="generic")
    assert "KernelNotCompiled" in generic and "x86-64-v3" in generic
    source = toys / "toys/kernels.py"
    source.write_text(KERNELS.replace("2.0 * x", "3.0 * x"))
    try:
        assert "KernelNotCompiled" in run(toys, SETUP + "twice(load)", "none", **NEVER)
        assert "0.30000000000000004" in run(toys, SETUP + "print(twice(load))", "edited")
    finally:
        source.write_text(KERNELS)


def test_where_no_folder_can_be_written_kernels_are_loaded_and_compiling_is_forbidden_too(toys):
    # A file in the place of each folder: read-only folders do not stop the superuser.
    shutil.rmtree(toys / "toys/__pycache__", ignore_errors=True)
    (toys / "toys/__pycache__").touch()
    nowhere = dict.fromkeys(("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME"), str(toys / "toys/a.py"))
    (toys / "toys/a.py").touch()
    loaded = run(toys, SETUP + "print(twice(load), backend.folder(twice) == '')", "", **nowhere)
    assert loaded == "0.2 True\n"
    code = SETUP + "four_times(load)"
    assert "KernelNotCompiled" in run(toys, code, "", **nowhere, **NEVER)
    assert run(toys, code, "", **nowhere).count("KernelCacheWarning") == 1


def test_a_caller_that_must_be_compiled_takes_what_it_copies_from_the_sources(toys):
    code = SETUP + "print(twice(load), four_times(load), twice(load))"
    first = run(toys, code, "called")
    assert "0.2 0.4 0.2" in first and first.count("compiling") == 1
    assert "0.2 0.4 0.2" in run(toys, code, "called", **NEVER)


def test_a_file_that_does_not_serve_is_logged_once_with_the_reason(toys):
    logged = run(toys, SETUP + "twice(load); four_times(load)", "x", NUMBA_CPU_NAME="generic")
    assert logged.count("WARNING compiling: the compiled kernels here are for x86-64-v3") == 1
