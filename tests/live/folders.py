"""An operator's way: a folder that ``evenkeel plan`` wrote, carried out by its own ``run.sh``."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.live.daemons import call, until
from tests.live.parts import say
from tests.support import places


def program(folder: Path) -> Path:
    """Write the command ``evenkeel`` as an install puts it on the path; its file."""
    file = folder / "evenkeel"
    roots = f"{places.ROOT}/solver:{places.ROOT}/kernels"
    file.write_text(f'#!/bin/sh\nPYTHONPATH={roots} exec "{sys.executable}" -m evenkeel "$@"\n')
    file.chmod(0o755)
    return file


def plan(files: Sequence[Path], folder: Path, *words: object) -> Path:
    """Have the command line plan from dumps; the folder."""
    call([program(folder.parent), "plan", *files, "-o", folder, *words])
    return folder


def run(folder: Path, env: Mapping[str, str], timeout: float = 500.0) -> str:
    """Carry a folder out by its script; what it told."""
    return call(["sh", folder / "run.sh"], env=_completed(folder, env), timeout=timeout)


def killed(folder: Path, env: Mapping[str, str], begun: Callable[[], object]) -> None:
    """Begin to carry a folder out, and kill the run with all that it started once it has begun."""
    running = subprocess.Popen(
        ["sh", folder / "run.sh"], env=_completed(folder, env), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until("a move", begun, timeout=120, pause=0.1)
    assert running.poll() is None, "the run had ended before it was killed"
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    say("killed in the middle")


def _completed(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    return {**env, "EVENKEEL": str(program(folder.parent)), "PAUSE": "2", "TRIES": "40"}
