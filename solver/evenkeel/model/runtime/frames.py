"""Who makes a cluster of frames: a floor above says it, and registers here."""

from collections.abc import Callable
from typing import Any

_readers: list[Callable[..., Any]] = []


def read_frames_by(reader: Callable[..., Any]) -> None:
    """Say who reads frames."""
    _readers[:] = [reader]


def frame_reader() -> Callable[..., Any]:
    """Return who reads frames."""
    return _readers[0]
