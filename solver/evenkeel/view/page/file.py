"""A page as a file."""

import os
from pathlib import Path

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.runtime.atomic import write_atomically

SUFFIXES = (".html", ".htm")


def check_page(path: str | os.PathLike[str], argument: str = "path") -> None:
    """Raise what is wrong with the name of a page, before any work is done for it."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InvalidInput([Fault(argument, os.fspath(path), f"must end in one of {[*SUFFIXES]}")])


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """Write a page, such that a crash leaves what stood there or all of it."""
    return write_atomically(path, page.encode())
