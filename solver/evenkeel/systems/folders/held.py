"""What runs of a folder hold of a system's settings, and have not given back yet."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from evenkeel.systems.folders import state
from evenkeel.systems.folders.expectation import FILE
from evenkeel.systems.folders.guarding import PLAN

HELD = "held"
"""What ``run.sh`` keeps, once for both ways, from the first wave to the last."""

UNDO = "undo"

DEEPEST = 3
"""Folders above a file that are looked at: ``move/undo/dump/shards.json``."""


def holds_folder(folder: Path) -> bool:
    """Whether a folder is that of a plan."""
    return all((folder / name).is_file() for name in (PLAN, FILE, state.FILE, "run.sh"))


def holding(paths: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return the folder of a plan that files lie in and whose run still holds something.

    Who plans on from such a folder inherits that: the setting that is there now is not what was
    there before, and nobody else knows what was.
    """
    for path in paths:
        for folder in [*Path(os.path.realpath(path)).parents][:DEEPEST]:
            if (folder / HELD).exists() and holds_folder(folder):
                return folder
    return None


def take_along(source: Path, target: Path) -> None:
    """Copy what the run of one folder holds into another."""
    if (source / HELD).is_dir():
        shutil.copytree(source / HELD, target / HELD)
    else:
        shutil.copy2(source / HELD, target / HELD)
