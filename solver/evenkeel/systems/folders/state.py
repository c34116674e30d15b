"""How far a plan has been carried out, as a file that every wave is recorded in."""

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import Int32, decode_json

FILE = "state.json"


class State(msgspec.Struct, forbid_unknown_fields=True):
    """Waves that were seen to be done, and when the last of them was; ``""`` for never."""

    waves: Int32
    done: Int32 = 0
    seen: str = ""
    begun: bool = False
    """Whether what is run once, before anything else, has been run."""


def encoded(state: State) -> bytes:
    """Return the file."""
    return msgspec.json.encode(state) + b"\n"


def read_state(faults: FaultList, folder: Path, waves: int) -> State:
    """Return what was recorded; nothing, where the file is gone."""
    file = folder / FILE
    if not file.exists():
        return State(waves)
    document = Document.load(os.fspath(file))
    found = decode_json(faults, document, State)
    if found is None:
        return State(waves)
    if found.waves != waves or not 0 <= found.done <= waves:
        faults.add(f"{file}: done", found.done, f"does not fit a plan of {waves} waves")
    return found


def record(folder: Path, state: State) -> None:
    """Write down how far a plan has been carried out, with the time."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomically(folder / FILE, encoded(msgspec.structs.replace(state, seen=now)))
