"""Machine-reassignment files among the formats: how the pair of files is recognised and found."""

import re
from collections.abc import Sequence
from pathlib import Path

from evenkeel.formats import roadef
from evenkeel.formats.documents import Document
from evenkeel.formats.registry import Format
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement

MODEL = re.compile(r"model.*\.txt(\.gz)?")
EITHER = re.compile(r"(model|assignment).*\.txt(\.gz)?")


def read(documents: Sequence[Document]) -> Cluster:
    """Read an instance from its folder, its model file, or its model and its assignment.

    Parameters
    ----------
    documents : sequence of Document
        One or two, in any order if they bear their usual names; with a model alone, the assignment
        is the file beside it.

    Returns
    -------
    Cluster
        As ``evenkeel.formats.roadef.read``.

    Raises
    ------
    InvalidInput
        Naming every problem in both files.
    """
    paths = [document.path for document in documents if document.path is not None]
    if len(paths) != len(documents) or len(paths) > 2:
        names = [document.name for document in documents]
        raise InvalidInput([Fault("source", names, "needs a folder, or one or two files")])
    paths.sort(key=lambda path: not MODEL.fullmatch(path.name))
    return roadef.read(*paths)


def write(cluster: Cluster, placement: Placement | None, path: Path) -> tuple[Path, ...]:
    """Write an assignment; and the model too, if the file bears the name of one.

    Parameters
    ----------
    cluster : Cluster
        What it assigns.
    placement : Placement or None
        Where its processes should be; where they are now if None.
    path : Path
        The file. Beside ``model*.txt`` the assignment is called ``assignment*.txt``.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    InvalidInput
        If some partition does not have exactly one placed replica, or a model is asked for and the
        cluster is not of this format.
    """
    placement = cluster.placement if placement is None else placement
    if not MODEL.fullmatch(path.name):
        roadef.write(cluster, placement, path)
        return (path,)
    beside = path.with_name("assignment" + path.name.removeprefix("model"))
    roadef.native_of(cluster)  # before anything is written
    roadef.write(cluster, placement, beside)
    roadef.write_model(cluster, path)
    return path, beside


def _recognises(document: Document) -> bool:
    path = document.path
    if path is None:
        return False
    if path.is_dir():
        return any(MODEL.fullmatch(file.name) for file in path.iterdir())
    content = document.data[:4096]
    plain = path.suffix == ".gz" or re.fullmatch(rb"[\d\s]+", content) is not None
    return plain and EITHER.fullmatch(path.name) is not None


FORMAT = Format(
    name=roadef.NAME,
    summary="machine reassignment: model_*.txt with assignment_*.txt",
    suffixes=(".txt", ".txt.gz"),
    recognises=_recognises,
    read=read,
    write=write,
)
