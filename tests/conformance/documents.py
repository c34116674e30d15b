"""Loading golden files, and writing them again under the same name and compression."""

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.protocol import Document, plain

SUFFIXES = (".json", ".json.gz", ".npz", ".txt")


class Unreadable(Exception):
    """A file or folder that holds no document."""


def is_document(path: Path) -> bool:
    """Whether the name promises a document that `load` can read."""
    return path.name.endswith(SUFFIXES)


def load(path: Path) -> Document:
    """Read a file by its suffix, or all texts of a folder; raise Unreadable with the reason."""
    try:
        return _load(path)
    except Unreadable:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise Unreadable(f"cannot be read: {error}") from error


def _load(path: Path) -> Document:
    if path.is_dir():
        return {file.name: file.read_text() for file in sorted(path.glob("*.txt"))}
    if path.name.endswith(".json.gz"):
        return json.loads(gzip.decompress(path.read_bytes()))
    if path.suffix == ".json":
        return json.loads(path.read_bytes())
    if path.suffix == ".npz":
        import numpy as np

        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    if path.suffix == ".txt":
        return path.read_text()
    if not path.exists():
        raise Unreadable("no such file or folder")
    raise Unreadable(f"is none of {', '.join(SUFFIXES)}")


def write(answers: Document, source: Path, target: Path) -> None:
    """Write ``answers`` to ``target`` in the form that ``source`` has."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
        for name, text in _mapping(answers, source).items():
            (target / str(name)).write_text(str(text))
    elif source.name.endswith(".json.gz"):
        target.write_bytes(gzip.compress(_json(answers), mtime=0))
    elif source.suffix == ".json":
        target.write_bytes(_json(answers))
    elif source.suffix == ".npz":
        target.write_bytes(_npz(_mapping(answers, source), source))
    else:
        target.write_text(str(answers))


def _json(answers: Document) -> bytes:
    return json.dumps(plain(answers), ensure_ascii=False).encode() + b"\n"


def _npz(answers: Mapping[str, object], source: Path) -> bytes:
    import numpy as np

    with zipfile.ZipFile(source) as archive:
        packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
    buffer = io.BytesIO()
    save = np.savez_compressed if packed else np.savez
    save(buffer, **answers)
    return buffer.getvalue()


def _mapping(answers: Document, source: Path) -> Mapping[str, object]:
    if not isinstance(answers, Mapping):
        raise TypeError(f"answers of {source.name} must be a mapping, not {type(answers).__name__}")
    return answers
