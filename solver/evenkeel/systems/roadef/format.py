"""Machine-reassignment files among the formats: how the pair of files is recognised and found."""

import re
from collections.abc import Sequence
from pathlib import Path

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems import roadef
from evenkeel.systems.documents import Document
from evenkeel.systems.registry import Format, note_sources
from evenkeel.systems.roadef.files import encoded_assignment, encoded_model, pair

MODEL = re.compile(r"model.*\.txt(\.gz)?")
EITHER = re.compile(r"(model|assignment).*\.txt(\.gz)?")


def read(documents: Sequence[Document]) -> Cluster:
    """Read an instance from its folder, its model file, or its model and its assignment.

    One or two files, in any order if they bear their usual names; with a model alone, the
    assignment is the file beside it.
    """
    paths = [document.path for document in documents if document.path is not None]
    if len(paths) != len(documents) or len(paths) > 2:
        names = [document.name for document in documents]
        raise InvalidInput([Fault("source", names, "needs a folder, or one or two files")])
    paths.sort(key=lambda path: not MODEL.fullmatch(path.name))
    files = pair(*paths)
    cluster = roadef.read(*files)
    note_sources(*files)
    return cluster


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return an assignment, or if the path is a model's, the model with its assignment beside."""
    placement = cluster.placement if placement is None else placement
    if not MODEL.fullmatch(path.name):
        return {path: encoded_assignment(cluster, placement, path)}
    beside = path.with_name("assignment" + path.name.removeprefix("model"))
    model = encoded_model(cluster, path)
    return {path: model, beside: encoded_assignment(cluster, placement, beside)}


def _recognises(document: Document) -> str:
    path = document.path
    if path is None:
        return ""
    if path.is_dir():
        return "instance" if any(MODEL.fullmatch(file.name) for file in path.iterdir()) else ""
    plain = re.fullmatch(rb"[\d\s]+", document.data[:4096])
    named = EITHER.fullmatch(path.name)
    return named[1] if plain and named else ""


FORMAT = Format(
    name=roadef.NAME,
    summary="machine reassignment: model_*.txt with assignment_*.txt",
    suffixes=(),
    recognises=_recognises,
    read=read,
    encode=encode,
)
