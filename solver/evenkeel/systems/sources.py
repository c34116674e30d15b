"""The files that a cluster is read from, where a fault of none of them must be told."""

from collections.abc import Sequence

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.systems.documents import Document


def largest(documents: Sequence[Document]) -> Document:
    """Return the largest document: what spans several is told of it, and measured by it."""
    if not documents:
        raise InvalidInput([Fault("source", [], "names no file")])
    return max(documents, key=lambda one: len(one.data))
