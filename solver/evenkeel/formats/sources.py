"""The files that a cluster is read from, where a fault of none of them must be told."""

from collections.abc import Sequence

from evenkeel.formats.documents import Document
from evenkeel.model.errors import Fault, InvalidInput


def largest(documents: Sequence[Document]) -> Document:
    """Return the largest document: what spans several is told of it, and measured by it."""
    if not documents:
        raise InvalidInput([Fault("source", [], "names no file")])
    return max(documents, key=lambda one: len(one.data))
