"""Registry of formats: find one by name, content or suffix, and register others.

A format is a module with a ``FORMAT``, and a line in ``ROOMS``. It answers three questions:

* ``recognises(document)``: what this file is, in the system's own words (``"topic description"``),
  or ``""`` if it is none of the system's. It looks at little more than the beginning.
* ``read(documents, **options)``: the cluster that files which belong together describe, in any
  order. All errors in them are raised as one ``InvalidInput``.
* ``encode(cluster, placement, path, **options)``: the files to write, by path.

Everything else is done here: files are loaded and decompressed, and a folder or zip archive is
split into files, unless a format recognises it as a whole; the first format that recognises every
file reads them together; encoded files are written atomically.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.placement import NO_PLACEMENT, Placed, Placement
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.reading.quantities import require
from evenkeel.model.runtime.atomic import as_path, write_atomically
from evenkeel.model.runtime.later import imported
from evenkeel.systems.documents import collector_held

if TYPE_CHECKING:
    from evenkeel.systems.documents import Document, Source
    from evenkeel.systems.folders.carrier import Carrier

# group of entry points under which an installed package offers a ``Format``
ENTRY_POINTS = "evenkeel.systems"

# our own formats, in the order in which they are asked; each room is imported when it is used
ROOMS = {
    "native-npz": "evenkeel.systems.native.npz",
    "native-rows": "evenkeel.systems.native.rows",
    "rebalancer-npz": "evenkeel.systems.native.instances",
    "kafka": "evenkeel.systems.kafka.format",
    "longhorn": "evenkeel.systems.longhorn.format",
    "helix": "evenkeel.systems.helix.format",
    "elasticsearch": "evenkeel.systems.elasticsearch.format",
    "rabbitmq": "evenkeel.systems.rabbitmq.format",
    "nats": "evenkeel.systems.nats.format",
    "qdrant": "evenkeel.systems.qdrant.format",
    "kubernetes": "evenkeel.systems.kubernetes.format",
    "swift": "evenkeel.systems.swift.format",
    "roadef": "evenkeel.systems.roadef.format",
    "ceph": "evenkeel.systems.ceph.format",
    "cockroach": "evenkeel.systems.cockroach.format",
    "tables": "evenkeel.systems.tables.format",
}

# modules with ``recognises`` of systems that take long to import
RECOGNISED_IN = {"longhorn": "evenkeel.systems.longhorn.objects"}

# what stands at the beginning of a plan, which may have a cluster within and is none
PLAN = b'"evenkeel-plan"'

BEGINNING = 4096  # bytes in which that stands


# how messages of tools begin that were saved in place of an answer
MESSAGE = re.compile(
    rb"\s*+(?:<!DOCTYPE html|<html|error\b|curl: \(\d+\)|Exception in thread|Traceback \(|"
    rb"No resources found|(?:The connection to the server|Unable to connect)\b|"
    rb"[^\n]{0,200}: (?:command not found|No such file)|\{\s*\"(?:message|error)\"\s*:)",
    re.IGNORECASE,
)

# how objects begin that JavaScript or Python prints, without JSON's quotes
LITERAL = re.compile(rb"\s*+(?:\[\s*+)?\{\s*+(?:[A-Za-z_$][\w$]*|'[^'\n]{1,60}')\s*:")

# how JSON begins whose first lines are lost
MIDDLE = re.compile(rb'\s*+(?:[}\]],?\s|"[^"\n]+"\s*:)')


@dataclass(frozen=True)
class Format:
    """One way to write a cluster down.

    Examples
    --------
    >>> find("native-npz").suffixes
    ('.npz',)
    """

    name: str  # what ``format=`` calls it
    summary: str  # one line for the list of formats
    # endings of its file names, with the dot, by which ``write`` finds it
    suffixes: tuple[str, ...]
    # ``recognises(document) -> str``: what the document is, in the system's own words, or ``""`` if
    # it is none of this format's. It looks at little more than the beginning and never raises.
    recognises: "Callable[[Document], str]"
    # ``read(documents, **options) -> Cluster``, from files that belong together, in any order; None
    # if it is only written
    read: Callable[..., Cluster] | None
    # ``encode(cluster, placement, path, **options) -> {path: content}``, the file that was asked
    # for first; ``placement`` is None where nothing was solved. ``write`` puts the files in place.
    # None if it is only read.
    encode: Callable[..., Mapping[Path, bytes]] | None
    # how the system carries out the waves of a plan; None if no folder can be made for it
    carrier: "Carrier | None" = None
    no_carrier: str = ""  # why none can be made, and what to do instead
    # ``left_out(cluster) -> iterable of str``: notes on missing input and its effect, for people
    left_out: Callable[[Cluster], Iterable[str]] = lambda cluster: ()
    # ``uncapped(cluster) -> sequence of str``: the dimensions without capacities in the files, so
    # that those of the cluster are assumed
    uncapped: Callable[[Cluster], Sequence[str]] = lambda cluster: ()
    # ``awaited(cluster) -> {name: {dimension: capacity}}``: capacities in the files of nodes that
    # the cluster does not have yet
    awaited: Callable[[Cluster], Mapping[str, Mapping[str, float]]] = lambda cluster: {}
    # ``named_disks(cluster) -> {partition: {node: disk}}``: names of the disks of replicas in files
    # that do not list disks, such as a target's
    named_disks: Callable[[Cluster], Mapping[str, Mapping[str, str]]] = lambda cluster: {}
    # ``usual(cluster) -> {name: value}``: what the system's people expect of a solve that names
    # neither a method nor a goal: ``method``, and fields of ``Goals``
    usual: Callable[[Cluster], Mapping[str, Any]] = lambda cluster: {}
    # ``unfilled(cluster) -> int``: how many replicas the system wants and has on no node, which no
    # order can place
    unfilled: Callable[[Cluster], int] = lambda cluster: 0
    # whether the system itself refuses what breaks the rules in its files
    enforces: bool = False
    # whether a partition serves by a majority of its replicas, however many these are
    majority: bool = False
    # whether the way back that it writes leaves out partitions of which a replica left what is down
    keeps_repairs: bool = False
    # what to do about partitions that are stranded, in the system's words
    stranded: str = "bring back what is down, and read again"
    # ``hint(document) -> str``: of a document that is none of the format's, what it seems to be
    # meant as and in which form that is read, or ``""``
    hint: "Callable[[Document], str]" = lambda document: ""
    # the commands that print what is read, for files of the system that lack it
    asks: str = ""
    # words of its tools, by which a document that has no hint is taken for one of the system's
    words: "re.Pattern[bytes] | None" = None
    # the paths of its files within an archive or folder of many others, which are passed over
    members: "re.Pattern[str] | None" = None


# stands for the system of clusters that are of none, or of one that is not installed
NO_SYSTEM = Format("", "", (), lambda document: "", None, None)

_registered: dict[str, Format] = {}
# files that this process has read a cluster from: ``write`` does not replace them unasked
_sources: set[str] = set()


def register(format: Format) -> None:
    """Add a format for this process; a package that is installed offers an entry point instead.

    Parameters
    ----------
    format : Format
        What recognises, reads and writes its files; ``read``, ``write`` and the command line know
        it from then on.

    Raises
    ------
    ValueError
        If its name is taken.

    Examples
    --------
    >>> from evenkeel.systems.registry import Format, find, known, register
    >>> register(Format("mine", "one of my own", (".mine",), lambda document: "", None, None))
    >>> find("mine").summary, _registered.pop("mine").name
    ('one of my own', 'mine')
    """
    if format.name in known():
        raise ValueError(f"there is a format {format.name!r} already")
    _registered[format.name] = format


def known() -> dict[str, Callable[[], Format]]:
    """Return what loads each format, by name: ours, those installed and those registered."""
    ours = {name: partial(_room, room) for name, room in ROOMS.items()}
    registered = {name: partial(_registered.__getitem__, name) for name in _registered}
    return {**ours, **registered, **_installed(tuple(sys.path))}


@cache
def _installed(path: tuple[str, ...]) -> Mapping[str, Callable[[], Format]]:
    """Return what loads the formats of packages on a path, which is looked through once."""
    from importlib.metadata import entry_points

    return {point.name: point.load for point in entry_points(group=ENTRY_POINTS)}


def is_known(name: str) -> bool:
    """Whether there is a format of a name; only for others than ours are packages asked."""
    return name in ROOMS or name in known()


def system_of(cluster: Cluster) -> Format:
    """Return the format of a cluster's system; one without anything where it is of none."""
    name = cluster.native_format
    return find(name) if name and is_known(name) else NO_SYSTEM


def usual(cluster: Cluster) -> dict[str, Any]:
    """Return what the people of a cluster's system expect of a solve, as arguments of ``solve``.

    Parameters
    ----------
    cluster : Cluster
        The snapshot, from files of a system.

    Returns
    -------
    dict
        ``method``, ``goals``, both or none of them; the command line takes them where neither is
        named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
    >>> usual(cluster)
    {}
    """
    require_cluster(cluster)
    found = dict(system_of(cluster).usual(cluster))
    method = {"method": found.pop("method")} if "method" in found else {}
    return method | ({"goals": Goals(**found)} if found else {})


def _room(module: str) -> Format:
    found: Format = imported(f"{module}:FORMAT")
    return found


def _recogniser(name: str) -> "Callable[[Document], str]":
    """Return what one of our own rooms recognises, without the rest where that takes long."""
    apart = RECOGNISED_IN.get(name)
    found: Callable[[Document], str] = (
        _room(ROOMS[name]).recognises if apart is None else imported(f"{apart}:recognises")
    )
    return found


def find(name: str) -> Format:
    """Return the format of a name; an unknown one is an ``InvalidInput`` that names the others."""
    if isinstance(name, str) and name in ROOMS:
        return _room(ROOMS[name])
    found = known()
    if not isinstance(name, str) or name not in found:
        message = f"unknown format; known: {[*found]}{did_you_mean(str(name), found)}"
        raise InvalidInput([Fault("format", name, message)])
    return found[name]()


def read(
    source: "Source | Sequence[Source]", *more: "Source", format: str | None = None, **options: Any
) -> Cluster:
    """Read a cluster from one file, or from several that belong together.

    Parameters
    ----------
    source : str, path, bytes or binary file, or a sequence of them
        Files, or their content, packed by gzip or not; a folder or zip archive of them.
    *more : str, path, bytes or binary file
        Files that belong to the first, in any order.
    format : str, optional
        Name of the format; by default recognised from the content.
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
    >>> np.savez(file, capacity=np.ones((2, 1)), load=np.ones((1, 1)), replicas=1)
    >>> read(file.getvalue())
    <Cluster: 2 nodes, 1 partition, 1 replica wanted, 1 dimension>
    """
    from evenkeel.systems.documents import Document

    several = isinstance(source, Sequence) and not isinstance(
        source, str | bytes | bytearray | memoryview
    )
    sources: Sequence[Any] = [*source, *more] if several else [source, *more]  # type: ignore[misc]
    asked = None if format is None else find(format)
    _refuse_large_strangers(filter(None, map(Document.beginning, sources)), asked)
    try:
        with collector_held():
            documents = [
                replace(Document.load(one), source=number) for number, one in enumerate(sources)
            ]
            chosen, documents = _recognise(documents, asked)
            if chosen.read is None:
                raise InvalidInput([Fault("format", chosen.name, "can be written and not read")])
            _check_options(chosen, options)
            cluster = chosen.read(documents, **options)
    except MemoryError:
        raise InvalidInput([*map(_too_large, sources)]) from None
    note_sources(*(one.path for one in documents if one.path is not None))
    return cluster


def _check_options(chosen: Format, options: Mapping[str, Any]) -> None:
    """Raise for options that a format does not read its files with."""
    if not options:
        return
    from inspect import Parameter, signature

    assert chosen.read is not None
    taken = signature(chosen.read).parameters
    if any(one.kind is Parameter.VAR_KEYWORD for one in taken.values()):
        return
    known = [*taken][1:]
    message = f"is no option of format {chosen.name!r}, which takes {known or 'none'}"
    if wrong := [Fault(name, one, message) for name, one in options.items() if name not in known]:
        raise InvalidInput(wrong)


def note_sources(*files: Path) -> None:
    """Remember files that a cluster was read from, so that ``write`` does not replace them."""
    _sources.update(map(os.path.realpath, files))


def write(
    cluster: Cluster,
    path: str | os.PathLike[str],
    format: str | None = None,
    placement: "Placement | Placed | None" = None,
    *,
    overwrite: bool = False,
    **options: Any,
) -> tuple[Path, ...]:
    """Write a cluster, or what solving it came to, to a file.

    Parameters
    ----------
    cluster : Cluster
        What was read or built.
    path : str or path
        Where it goes. Every file is written aside and put in place when it is complete.
    format : str, optional
        Name of the format. By default that of the suffix: ``.npz`` is native, ``.rows.json`` native
        rows; where several formats share a suffix, as with ``.json``, or there is none, it is the
        one of the system that the cluster came from, so that a cluster read from Kafka becomes a
        reassignment.
    placement : Placement or Result, optional
        Where replicas should be; where they are now by default.
    overwrite : bool, optional
        Whether a file that a cluster was read from, in this process, may be replaced.
    **options : Any
        What the format takes.

    Returns
    -------
    tuple of Path
        The files written, the one asked for first.

    Raises
    ------
    InvalidInput
        If the format is unknown or cannot hold this cluster, or a file would be replaced that a
        cluster was read from; nothing is written then.
    OSError
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> cluster = Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in write(cluster, Path(folder, "cluster.npz"))]
    ['cluster.npz']
    """
    if not isinstance(cluster, Cluster):
        message = "must be a Cluster; what a solve came to goes with it, placement=result"
        raise InvalidInput([Fault("cluster", type(cluster).__name__, message)])
    require("overwrite", overwrite, bool)
    target_file = as_path(path)
    chosen = writer_of(cluster, target_file, format)
    assert chosen.encode is not None
    target = getattr(placement, "placement", placement)
    if not (target is None or isinstance(target, Placement)):
        raise InvalidInput([Fault("placement", type(target).__name__, NO_PLACEMENT)])
    if target is not None and len(target) != len(cluster.partitions):
        raise InvalidInput(
            [Fault("placement", len(target), f"needs {len(cluster.partitions)} partitions")]
        )
    files = chosen.encode(cluster, target, target_file, **options)
    if not overwrite:
        _check_sources(*files)
    # what goes with a file, such as the way back, is on disk before the file itself
    for file, content in reversed(list(files.items())):
        write_atomically(file, content)
        _sources.discard(os.path.realpath(file))
    return tuple(files)


def writer_of(cluster: Cluster, path: str | os.PathLike[str], format: str | None) -> Format:
    """Return the format that a cluster would be written in; ``InvalidInput`` if there is none."""
    chosen = find(format) if format is not None else _writer_for(cluster, os.fspath(path))
    if chosen.encode is None:
        raise InvalidInput([Fault("format", chosen.name, "can be read and not written")])
    return chosen


def _check_sources(*files: str | os.PathLike[str]) -> None:
    """Raise for files that a cluster was read from, before any work is done for writing them."""
    message = "is a file that was read: choose another, or overwrite it (overwrite=True, --force)"
    kept = [file for file in files if os.path.realpath(file) in _sources and Path(file).exists()]
    if kept:
        raise InvalidInput([Fault("path", os.fspath(file), message) for file in kept])


def _recognise(
    documents: "Sequence[Document]", asked: Format | None
) -> "tuple[Format, list[Document]]":
    """Return the format that was asked for, or else the first that knows all, and the documents."""
    if not documents:
        raise InvalidInput([Fault("source", [], "names no file")])
    if plans := [one for one in documents if PLAN in one.data[:BEGINNING]]:
        raise InvalidInput([Fault(one.name, "", "is a plan: read_plan reads it") for one in plans])
    if asked is not None:
        return asked, parts_for(asked, documents)
    # what is not asked is not imported: most files are those of a format of our own
    whole = not any(one.is_archive for one in documents)
    for name in ROOMS if whole else ():
        if all(map(_recogniser(name), documents)):
            return find(name), [*documents]
    there = [load() for load in known().values()]
    parts = _taken_apart(documents, there)
    for given in (parts, _values_of_strangers(parts, there)):
        for one in there:
            if given and all(map(one.recognises, given)):
                return one, given
    raise InvalidInput(_strangers(parts, there) or _mixed(parts or documents, there))


def _too_large(source: "Source") -> Fault:
    """Return the fault of a file that memory was too small for, alone or with others."""
    message = "takes more memory than there is, alone or with the other files"
    if not isinstance(source, str | os.PathLike):
        return Fault("<bytes>", type(source).__name__, message)
    return Fault(os.fspath(source), f"{Path(source).stat().st_size} bytes", message)


def _refuse_large_strangers(beginnings: "Iterable[Document]", asked: Format | None) -> None:
    """Raise for large files whose beginning no format knows, before all of them is read."""
    faults = FaultList()
    for one in beginnings:
        there = [load() for load in known().values()] if asked is None else [asked]
        if not any(room.recognises(one) for room in there):
            message = f"is in no known format; known: {[room.name for room in there]}"
            faults.add(one.name, one.data[:40], message)
    faults.raise_if_any()


def parts_for(format: Format, documents: "Sequence[Document]") -> "list[Document]":
    """Return documents as a format reads them, without archives and lines around JSON."""
    return _values_of_strangers(_taken_apart(documents, [format]), [format])


def _taken_apart(documents: "Sequence[Document]", there: Sequence[Format]) -> "list[Document]":
    """Put the files of folders and archives in their places, unless a format knows the whole."""
    found: list[Document] = []
    for whole in documents:
        read = not whole.is_archive and any(one.recognises(whole) for one in there)
        inside = [whole] if read else whole.inside()
        parts = [replace(one, source=whole.source) for one in inside]
        for members in [one.members for one in there if one.members is not None]:
            parts = [part for part in parts if members.search(part.name)] or parts
        found += parts
    return found


def _values_of_strangers(
    documents: "Sequence[Document]", there: Sequence[Format]
) -> "list[Document]":
    """Replace documents that no format knows by the values of JSON among their lines."""
    return [
        value
        for one in documents
        for value in ([one] if any(room.recognises(one) for room in there) else one.values())
    ]


def _strangers(documents: "Sequence[Document]", there: Sequence[Format]) -> list[Fault]:
    """Return the documents that no format knows, each with what it could be."""
    from evenkeel.systems.documents import STRANGE
    from evenkeel.systems.json_text import note_cut_off

    known_by = {
        one.name: sum(bool(one.recognises(document)) for document in documents) for one in there
    }
    likely = max(there, key=lambda one: known_by[one.name])
    others = (
        f"known: {[*known_by]}. Of any other system give two tables, of nodes and of replicas: "
        "docs/systems/tables.md"
    )
    near = there
    if known_by[likely.name]:
        give = f": give {likely.asks}" if likely.asks else ""
        others = f"the others are of {likely.name!r}, which reads {likely.summary}{give}"
        near = [likely]
    faults = FaultList()
    for document in documents:
        if any(one.recognises(document) for one in there) or note_cut_off(faults, document):
            continue
        hint = next((text for one in near if (text := _hint(one, document))), "")
        strange = (text for begins, text in STRANGE.items() if document.data.startswith(begins))
        if not document.data.strip():
            message = "is empty"
        elif binary := next(strange, ""):
            message = binary
        elif hint:
            message = (
                hint if hint.startswith(("is ", "seems ")) else f"is not in a known format: {hint}"
            )
        elif MESSAGE.match(document.data[:BEGINNING]):
            message = "is a message of a tool, and no data: see why the command failed"
        elif LITERAL.match(document.data[:BEGINNING]):
            message = "is an object as JavaScript or Python prints it: save it as JSON"
        elif MIDDLE.match(document.data[:BEGINNING]):
            message = "begins in the middle of JSON: its first lines are missing"
        else:
            message = f"is not in a known format; {others}"
        faults.add(document.name, document.data[:40], message)
    return faults.faults


def _hint(format: Format, document: "Document") -> str:
    """Return what a format says of a document that it does not read, "" for other systems."""
    head = document.data[:BEGINNING]
    # words of its tools tell where it has no hint
    words = format.words is not None and format.words.search(head) and not MESSAGE.match(head)
    by_words = f"seems to be of {format.name}, in a form that is not read: give {format.asks}"
    return format.hint(document) or (by_words if words else "")


def kind_in_words(document: "Document") -> str:
    """Return what a document is, in the words of the first format of ours that knows it, or ""."""
    for name in ROOMS:
        if kind := _recogniser(name)(document):
            return f"{kind} ({name})"
    return ""


def _mixed(documents: "Sequence[Document]", there: Sequence[Format]) -> list[Fault]:
    """Return what each document is, where no one format knows them all."""
    kinds = {
        document.name: {one.name: kind for one in there if (kind := one.recognises(document))}
        for document in documents
    }
    counts = Counter(name for of in kinds.values() for name in of)
    likely, most = counts.most_common(1)[0] if counts else ("", 0)
    if 2 * most > len(documents):
        return [
            Fault(
                document,
                [f"{name}: {kind}" for name, kind in of.items()],
                f"is not of {likely!r}, as the others are: read the files of one system at a time",
            )
            for document, of in kinds.items()
            if likely not in of
        ]
    hints = [
        Fault(document.name, document.data[:40], hint)
        for document in documents
        for one in there
        if one.name in counts and one.name not in kinds[document.name]
        if (hint := one.hint(document))
    ]
    if hints:
        return hints
    given = {
        document: [f"{name}: {kind}" for name, kind in of.items()] for document, of in kinds.items()
    }
    message = "are files of different formats, or none: read those of one system at a time"
    return [Fault("source", given, message)]


def _writer_for(cluster: Cluster, path: str) -> Format:
    """Return the format with the longest suffix of a path; of several, the cluster's own if any."""
    name, loads = Path(path).name, known()
    own = loads[cluster.native_format]() if cluster.native_format in loads else None
    if own is not None and own.encode is not None:
        before = [name.removesuffix(each) for each in own.suffixes if name.endswith(each)]
        if any("." not in stem for stem in before):  # no suffix is longer: spare loading the others
            return own
    there = {name: load() for name, load in loads.items()}
    ends = {
        one: max((len(suffix) for suffix in one.suffixes if path.endswith(suffix)), default=0)
        for one in there.values()
        if one.encode is not None
    }
    longest = max(ends.values())
    if longest:
        fitting = [one for one, length in ends.items() if length == longest]
        if own in fitting:
            return own
        if own is not None and own.carrier and fitting[0].carrier:
            others = " and ".join(one.name for one in fitting)
            message = (
                f"ends as files of {others} do: for {own.name}, end it in "
                f"{' or '.join(own.suffixes)}, or name another format (format=, --to)"
            )
            raise InvalidInput([Fault("path", path, message)])
        return fitting[0]
    if own in ends and own is not None and not (Path(path).suffix and own.suffixes):
        return own
    endings = sorted({suffix for one in ends for suffix in one.suffixes})
    names = sorted(one.name for one in ends)
    message = f"ends like no known format: it takes one of {endings}, or the name of one of {names}"
    raise InvalidInput([Fault("path", path, message)])
