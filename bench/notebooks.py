"""Run notebooks as after a clean checkout, with no kernel compiled: ``python -m bench.notebooks``.

Wall time is what a person waits; CPU time, of the notebook's own process and those that it starts,
is what it would be on one idle core. Names of notebooks choose some.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
PROMISED = 120.0  # seconds of two idle cores
PATIENCE = 1200


def cold(name: str) -> tuple[float, float]:
    """Execute a notebook with an empty kernel cache; return seconds of wall and of CPU time."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        NotebookClient(
            nbformat.read(FOLDER / f"{name}.ipynb", as_version=4),
            timeout=PATIENCE,
            kernel_name="python3",
            resources={"metadata": {"path": str(FOLDER)}},
        ).execute()
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each, and return 1 if one took longer than promised on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args(arguments).names or sorted(f.stem for f in FOLDER.glob("*.ipynb"))
    late = False
    print(f"{'':26} {'wall s':>8} {'CPU s':>8} {'load':>6}")
    for name in names:
        load = os.getloadavg()[0]
        wall, cpu = cold(name)
        late |= min(wall, cpu) > PROMISED
        print(f"{name:26} {wall:8.1f} {cpu:8.1f} {load:6.1f}", flush=True)
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
