"""Run code in fresh Python processes, and measure the CPU time of child processes."""

import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def children_seconds() -> float:
    """CPU seconds, user and system, of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bytecode_kept(folder: Path) -> dict[str, str]:
    """Return what has a process keep its modules compiled, as an installed package has them."""
    # else a process compiles a hundred thousand lines where the environment says to write none
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}


def run_python(code: str, **environment: str) -> str:
    """Run code in a process of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout
