"""Sizes: the numbers of nodes, partitions and dimensions of the given arrays."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenkeel.model.reading.arrays import shape_of

Given = Mapping[str, Any]
"""Arguments of ``Cluster.from_arrays`` by name."""

MOST = 2**31
"""Above every int32."""

TABLES = ("capacity", "load", "leader_load", "non_voter_load", "watermark")
"""Arguments with a column for each dimension."""


class Sizes(NamedTuple):
    """How many there are of what arrays are about."""

    nodes: int
    partitions: int
    dimensions: int

    @classmethod
    def of(cls, given: Given) -> "Sizes":
        """Count by the first argument that is given."""
        return cls(
            length([given.get(name) for name in ("capacity", "watermark", "node_names", "alive")]),
            length(
                [
                    given.get(name)
                    for name in (
                        "load", "leader_load", "non_voter_load", "partition_names", "placement"
                    )
                ]
            ),
            _width([given.get(name) for name in TABLES], length([given.get("dimensions")])),
        )  # fmt: skip


def length(given: Sequence[object]) -> int:
    """Return how many rows the first of some arguments has that has rows at all."""
    for one in given:
        if one is not None and len(shape := shape_of(one)) > 0:
            return shape[0]
    return 0


def _width(tables: Sequence[object], default: int) -> int:
    """Return how many columns the first of some arguments has that is a table; a list is one."""
    shapes = [shape_of(one) for one in tables if one is not None]
    flat = any(len(shape) == 1 and shape[0] > 0 for shape in shapes)
    return next((shape[1] for shape in shapes if len(shape) == 2), default or int(flat))
