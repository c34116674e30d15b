"""The formats: how one is found by name, content or suffix, and how others add theirs."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement

if TYPE_CHECKING:
    from evenkeel.formats.documents import Document, Source

ENTRY_POINTS = "evenkeel.formats"
"""Group of entry points under which an installed package offers a ``Format``."""

ROOMS = {
    "native-npz": "evenkeel.formats.native_npz",
    "native-json": "evenkeel.formats.native_json",
    "native-rows": "evenkeel.formats.native_rows",
    "rebalancer-npz": "evenkeel.formats.rebalancer_npz",
    "kafka": "evenkeel.formats.kafka",
    "longhorn": "evenkeel.formats.longhorn",
    "roadef": "evenkeel.formats.roadef_format",
}
"""Our own formats, in the order in which they are asked; each room is imported when it is used."""


@dataclass(frozen=True)
class Format:
    """One way to write a cluster down.

    Parameters
    ----------
    name : str
        What ``format=`` calls it.
    summary : str
        One line for people who choose a format.
    suffixes : tuple of str
        Endings of its file names, with the dot. The first format that claims a suffix is the one
        that ``write`` takes by itself.
    recognises : callable
        ``recognises(document) -> bool``; looks at little more than the beginning, never raises.
    read : callable or None
        ``read(documents, **options) -> Cluster``; None if it is only written.
    write : callable or None
        ``write(cluster, placement, path, **options) -> paths written``; ``placement`` is None where
        nothing was solved. None if it is only read.

    Examples
    --------
    >>> find("native-npz").suffixes
    ('.npz',)
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    recognises: "Callable[[Document], bool]"
    read: Callable[..., Cluster] | None
    write: Callable[..., Sequence[Path]] | None


_registered: dict[str, Format] = {}


def register(format: Format) -> None:
    """Add a format for this process; a package that is installed offers an entry point instead.

    Parameters
    ----------
    format : Format
        The new one.

    Raises
    ------
    ValueError
        If its name is taken.
    """
    if format.name in known():
        raise ValueError(f"there is a format {format.name!r} already")
    _registered[format.name] = format


def known() -> dict[str, Callable[[], Format]]:
    """Return all formats by name, none of them imported yet.

    Returns
    -------
    dict of str to callable
        Ours, then those registered, then those of installed packages; call one to load it.
    """
    from importlib.metadata import entry_points

    ours = {name: partial(_room, room) for name, room in ROOMS.items()}
    theirs = {point.name: point.load for point in entry_points(group=ENTRY_POINTS)}
    return ours | {name: partial(_registered.__getitem__, name) for name in _registered} | theirs


def _room(module: str) -> Format:
    found: Format = import_module(module).FORMAT
    return found


def find(name: str) -> Format:
    """Return the format of a name.

    Parameters
    ----------
    name : str
        As ``format=`` takes it.

    Returns
    -------
    Format
        Loaded.

    Raises
    ------
    InvalidInput
        Naming the formats there are.
    """
    if name in ROOMS:
        return _room(ROOMS[name])
    found = known()
    if name not in found:
        raise InvalidInput([Fault("format", name, f"is no format; known: {[*found]}")])
    return found[name]()


def read(source: "Source | Sequence[Source]", format: str | None = None, **options: Any) -> Cluster:
    """Read a cluster from one file, or from several that belong together.

    Parameters
    ----------
    source : str, path or bytes, or a sequence of them
        Files, or their content.
    format : str, optional
        Name of the format; told from the content by default.
    **options : Any
        What the format takes.

    Returns
    -------
    Cluster
        Validated.

    Raises
    ------
    InvalidInput
        Naming every problem, with file, place in it, and value.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import numpy as np, io
    >>> file = io.BytesIO()
    >>> np.savez(file, capacity=np.ones((2, 1)), load=np.ones((1, 1)))
    >>> read(file.getvalue())
    <Cluster: 2 nodes, 1 partitions, 0 replicas wanted, 1 dimension>
    """
    from evenkeel.formats.documents import Document

    single = isinstance(source, str | bytes | os.PathLike)
    sources: Sequence[Any] = [source] if single else list(source)  # type: ignore[arg-type]
    documents = [Document.load(one) for one in sources]
    chosen = find(format) if format is not None else _recognise(documents)
    if chosen.read is None:
        raise InvalidInput([Fault("format", chosen.name, "is written only")])
    return chosen.read(documents, **options)


def write(
    cluster: Cluster,
    path: str | os.PathLike[str],
    format: str | None = None,
    placement: Any = None,
    **options: Any,
) -> tuple[Path, ...]:
    """Write a cluster, or what solving it came to, to a file.

    Parameters
    ----------
    cluster : Cluster
        What was read or built.
    path : str or path
        Where it goes. Written aside and put in place when complete.
    format : str, optional
        Name of the format; found from the suffix by default.
    placement : Placement or Result, optional
        Where replicas should be; where they are now by default.
    **options : Any
        What the format takes.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    InvalidInput
        If the format is unknown or cannot hold this cluster; nothing is written then.
    OSError
        If the file cannot be written.
    """
    chosen = find(format) if format is not None else _by_suffix(os.fspath(path))
    if chosen.write is None:
        raise InvalidInput([Fault("format", chosen.name, "is read only")])
    placement = getattr(placement, "placement", placement)
    if not (placement is None or isinstance(placement, Placement)):
        raise InvalidInput([Fault("placement", type(placement).__name__, "must be a Placement")])
    if placement is not None and len(placement) != len(cluster.partitions):
        raise InvalidInput(
            [Fault("placement", len(placement), f"needs {len(cluster.partitions)} partitions")]
        )
    return tuple(chosen.write(cluster, placement, Path(path), **options))


def _recognise(documents: "Sequence[Document]") -> Format:
    """Return the first format that knows every document; what is not asked is not imported."""
    if not documents:
        raise InvalidInput([Fault("source", [], "names no file")])
    for module in ROOMS.values():
        if all(map(_room(module).recognises, documents)):
            return _room(module)
    there = [load() for load in known().values()]
    for one in there:
        if all(map(one.recognises, documents)):
            return one
    names = [one.name for one in there]
    raise InvalidInput(
        [
            Fault(document.name, document.data[:40], f"is of no known format; known: {names}")
            for document in documents
            if not any(one.recognises(document) for one in there)
        ]
        or [Fault("source", [d.name for d in documents], "are files of different formats")]
    )


def _by_suffix(path: str) -> Format:
    """Return the format with the longest suffix that a path ends in; the first one of several."""
    there = [load() for load in known().values()]
    ends = [
        (len(suffix), one)
        for one in there
        for suffix in one.suffixes
        if path.endswith(suffix) and one.write is not None
    ]
    if not ends:
        names = [one.name for one in there]
        raise InvalidInput([Fault("path", path, f"ends like no known format; name one: {names}")])
    return max(ends, key=lambda end: end[0])[1]
