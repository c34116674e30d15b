"""Write a file so that a crash leaves either the old content or the new one."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from threading import get_ident

from evenkeel.model.errors import Fault, InvalidInput


def as_path(given: object, argument: str = "path") -> Path:
    """Return what a caller names a file by as a path; ``InvalidInput`` for anything else."""
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        if isinstance(path, str) and path and "\0" not in path:
            return Path(path)
    raise InvalidInput([Fault(argument, given, "must be the path of a file or folder")])


def write_atomically(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file by way of a temporary one in the same folder."""
    target = Path(os.path.realpath(as_path(path)))
    part = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
        _sync_folder(target.parent)
    except BaseException as error:
        _remove(part)
        if isinstance(error, OSError) and error.errno is not None:
            # the caller asked for the file and knows nothing of the temporary one
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    return Path(path)


def _remove(part: Path) -> None:
    with suppress(OSError):
        part.unlink()


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder outlast a power cut, where the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
