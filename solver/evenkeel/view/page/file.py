"""The page of a result as a file."""

import os
from pathlib import Path
from typing import Any

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.view.page.result import result_page

SUFFIXES = (".html", ".htm")


def check_page(path: str | os.PathLike[str], argument: str = "path") -> None:
    """Raise what is wrong with the name of a page, before any work is done for it."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InvalidInput([Fault(argument, os.fspath(path), f"must end in one of {[*SUFFIXES]}")])


def write_page(result: Any, path: str | os.PathLike[str]) -> Path:
    """Write the page of a result, such that a crash leaves what stood there or all of it."""
    return write_atomically(path, result_page(result).encode())
