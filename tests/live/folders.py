"""An operator's way: a folder that ``evenkeel plan`` wrote, carried out by its own ``run.sh``."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.daemons import call
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
    command = str(program(folder.parent))
    own = {"EVENKEEL": command, "PAUSE": "2", "TRIES": "40"}
    return call(["sh", folder / "run.sh"], env={**env, **own}, timeout=timeout)
