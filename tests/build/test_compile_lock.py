"""Processes that start together share the work of compiling; nobody waits for one that is gone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenkeel_kernels.build import compile_lock
from evenkeel_kernels.build.compile_lock import NAME, CompileLock
from tests.support import places

pytestmark = pytest.mark.skipif(
    compile_lock.fcntl is None or os.environ.get("NUMBA_DISABLE_JIT") == "1",
    reason="there are no such locks, or nothing to compile",
)

KERNELS = """
import numpy as np
from evenkeel_kernels.build.jit import jit
@jit
def inner(load):
    return np.sort(load)[-1]
@jit
def answer(load):
    return 2.0 * inner(load)
"""
CALL = """
import logging, sys, time
from pathlib import Path
logging.basicConfig(level=logging.INFO)
import numpy as np
from toys.kernels import answer, inner
Path(sys.argv[1]).touch()
while not Path("go").exists():
    time.sleep(0.001)
assert answer(np.array([0.1, 0.7])) == 1.4
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in (answer, inner)))
"""
HOLDER = """
import sys, time
from evenkeel_kernels.build.compile_lock import CompileLock
CompileLock(sys.argv[1], "kernel").acquire()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def toys(tmp_path):
    """A folder with a package of kernels, none of them compiled."""
    (tmp_path / "toys").mkdir()
    (tmp_path / "toys/__init__.py").touch()
    (tmp_path / "toys/kernels.py").write_text(KERNELS)
    return tmp_path


def started(folder: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start ``code`` in a process of its own that sees the toy kernels."""
    path = os.pathsep.join([str(folder), str(places.ROOT / "kernels")])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def compiled_together(folder: Path, count: int = 2) -> list[int]:
    """Let processes call the same kernel at the same moment; how many each compiled."""
    running = [started(folder, CALL, f"ready-{i}") for i in range(count)]
    while not all((folder / f"ready-{i}").exists() for i in range(count)):
        assert all(one.poll() is None for one in running), running[0].communicate()
        time.sleep(0.01)
    (folder / "go").touch()
    ended = [one.communicate() for one in running]
    assert all(one.returncode == 0 for one in running), ended
    return sorted(int(said) for said, _ in ended)


def test_processes_that_start_together_compile_each_kernel_once(toys):
    assert sum(compiled_together(toys)) == 2


@pytest.mark.long
def test_without_a_lock_file_each_compiles_for_itself(toys, tmp_path):
    assert sum(compiled_together(toys, 1)) == 2
    for folder in {file.parent for file in (toys / "cache").rglob("*.nbi")}:
        for file in folder.iterdir():
            file.unlink()
        (folder / NAME).mkdir()  # a folder in its place: read-only ones do not stop the superuser
    for file in toys.glob("ready-*"):
        file.unlink()
    (toys / "go").unlink()
    assert compiled_together(toys) == [2, 2]


def test_nobody_waits_for_a_process_that_was_killed(tmp_path):
    holder = started(tmp_path, HOLDER, str(tmp_path))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    lock = CompileLock(str(tmp_path), "kernel")
    assert not lock.claim()
    holder.kill()
    holder.communicate()
    lock.acquire()
    assert lock.claim()
    lock.release()


def test_a_process_that_is_stopped_is_waited_for_not_for_ever(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(compile_lock, "PATIENCE", 0.1)
    monkeypatch.setattr(compile_lock, "SILENCE", 0.0)
    holder = started(tmp_path, HOLDER, str(tmp_path))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        with caplog.at_level("INFO", logger="evenkeel.kernels"):
            CompileLock(str(tmp_path), "kernel").acquire()
            CompileLock(str(tmp_path), "another").acquire()
    finally:
        holder.kill()
        holder.communicate()
    assert [one.evenkeel["event"] for one in caplog.records] == ["waiting", "impatient"]


def test_a_lock_is_free_once_everybody_here_has_given_it_back(tmp_path):
    lock = CompileLock(str(tmp_path), "kernel")
    lock.acquire()
    lock.acquire()
    lock.release()
    assert taken_elsewhere(tmp_path)
    lock.release()
    lock.release()
    assert not taken_elsewhere(tmp_path)


def taken_elsewhere(folder: Path) -> bool:
    """Whether another process finds the lock taken."""
    code = (
        "import sys\nfrom evenkeel_kernels.build.compile_lock import CompileLock\n"
        "print(CompileLock(sys.argv[1], 'kernel').claim())"
    )
    return started(folder, code, str(folder)).communicate()[0].strip() == "False"
