"""Record which settings of its system a run has changed, until it has restored them."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.systems.folders.form import FILE, Hold, literal
from evenkeel.systems.folders.guarding import PLAN, STATE

# what is kept, once for both ways, from the first wave to the last: a file for each hold
HELD = "held"

FILES = "files"  # where in it the files stand that the commands read which give something back
UNDO = "undo"

DEEPEST = 3  # folders above a file that are looked at: ``move/undo/dump/shards.json``


def holds_folder(folder: Path) -> bool:
    """Whether a folder is that of a plan."""
    return all((folder / name).is_file() for name in (PLAN, FILE, STATE, "run.sh"))


def holding(paths: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return the folder of a plan that files lie in and whose run still holds something."""
    # who plans on from there inherits that: no other file keeps the setting that was there before
    for path in paths:
        for folder in [*Path(os.path.realpath(path)).parents][:DEEPEST]:
            if files(folder) and holds_folder(folder):
                return folder
    return None


def take_along(source: Path, target: Path) -> None:
    """Copy what the run of one folder holds into another."""
    shutil.copytree(source / HELD, target / HELD)


def file_of(whole: Path, name: str) -> Path:
    """Return the file of a hold."""
    return whole / HELD / f"{name}.json"


def files(whole: Path) -> list[Path]:
    """Return the files of all that is held."""
    return sorted((whole / HELD).glob("*.json"))


def read(file: Path) -> Hold:
    """Return what is held, and how it is given back."""
    return msgspec.json.decode(file.read_bytes(), type=Hold)


def keep(whole: Path, folder: Path, hold: Hold, was: str) -> None:
    """Record how something is given back, with the files that this takes; ``was`` is its value."""
    (whole / HELD / FILES).mkdir(parents=True, exist_ok=True)
    back = []
    for command in hold.back:
        kept = ""
        if command.file:
            kept = f"{FILES}/{Path(command.file).name}"
            shutil.copy2(folder / command.file, whole / HELD / kept)
        run = [_with_value(one, was) for one in command.run]
        back.append(msgspec.structs.replace(command, run=run, file=kept))
    record = Hold(hold.name, back, first=hold.first)
    write_atomically(file_of(whole, hold.name), msgspec.json.encode(record))


def _with_value(texts: str | Sequence[str], was: str) -> str | Sequence[str]:
    if isinstance(texts, str):
        return texts.replace("${WAS}", literal(was))
    return [text.replace("${WAS}", literal(was)) for text in texts]


def drop(file: Path) -> None:
    """Forget what has been given back, and the folder of all that is held once it is empty."""
    file.unlink()
    if not files(file.parent.parent):
        shutil.rmtree(file.parent)
