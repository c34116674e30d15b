"""Define the arguments that describe a cluster, and infer sizes from their arrays."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from numpy.typing import ArrayLike

from evenkeel.model.disks import Disks
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import shape_of
from evenkeel.model.rules import Amount, Rule

Node = str | int | None  # a node by its name or its number, or none
Group = str | int  # a group by its name or its number
# a label for each node; None, "", NaN or a negative number where it has none
Labels = ArrayLike | Sequence[str | None]

Given = Mapping[str, Any]  # arguments of ``Cluster.from_arrays`` by name
MOST = 2**31  # above every int32
# arguments with a column for each dimension
TABLES = ("capacity", "load", "leader_load", "non_voter_load", "watermark")


class Arguments(TypedDict, total=False):
    """What ``Cluster.from_arrays`` takes and describes, and what ``Cluster.replace`` changes.

    Examples
    --------
    >>> import evenkeel as ek
    >>> given: Arguments = {"capacity": [[4.0]] * 2, "load": [[1.0]] * 4, "replicas": 2}
    >>> ek.Cluster.from_arrays(**given)
    <Cluster: 2 nodes, 4 partitions, 8 replicas wanted, 1 dimension>
    """

    capacity: ArrayLike
    load: ArrayLike
    leader_load: ArrayLike | None
    non_voter_load: ArrayLike | None
    dimensions: Sequence[str] | None
    transient: Sequence[str] | None
    bytes: str | None
    domains: Mapping[str, Labels] | None
    crossing: Sequence[str] | None
    tier_capacity: Mapping[str, ArrayLike] | None
    tier_distance: ArrayLike | None
    watermark: ArrayLike | None
    alive: ArrayLike | None
    accepts: ArrayLike | None
    keeps: ArrayLike | None
    leads: ArrayLike | None
    gone: ArrayLike | None
    since: ArrayLike | None
    weight: ArrayLike | None
    lead_weight: ArrayLike | None
    max_replicas: ArrayLike | None
    stands_for: ArrayLike | None
    tags: Mapping[str, ArrayLike] | None
    attributes: Mapping[str, Labels] | None
    node_names: Sequence[str] | None
    partition_names: Sequence[str] | None
    replicas: ArrayLike | None
    voters: ArrayLike | None
    min_active: ArrayLike | None
    group: ArrayLike | Sequence[str] | None
    group_names: Sequence[str] | None
    move_cost: ArrayLike | None
    attached: ArrayLike | None
    forbidden: ArrayLike | None
    depends: Sequence[tuple[Group, Group, str]] | None
    placement: Placement | ArrayLike | Sequence[Sequence[Node]] | None
    first: ArrayLike | None
    leader: ArrayLike | None
    role: ArrayLike | None
    flags: ArrayLike | None
    disk: ArrayLike | None
    disks: Disks | None
    spread: Mapping[str, Amount] | None
    rules: Sequence[Rule] | None
    rule: ArrayLike | None
    group_rule: ArrayLike | Mapping[str, int] | None
    native: object
    native_format: str


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


def by_column(faults: FaultList, given: Given, names: Sequence[str] | None = None) -> Given:
    """Return arguments whose frames have their columns in one order: that of the dimensions."""
    # if no frame has the names of the dimensions, or these are not given, the first one's count
    frames = {name: labels for name in TABLES if (labels := _labels(given.get(name)))}
    if not frames:
        return given
    stated, first = given.get("dimensions"), next(iter(frames))
    known = names if stated is None else stated
    order = frames[first]
    if known is not None and any({*labels} == {*known} for labels in frames.values()):
        order = [*known]
    changed = {"dimensions": order} if known is None else {}
    for name, labels in frames.items():
        if {*labels} == {*order}:
            table = given[name]
            changed[name] = table.select(order) if hasattr(table, "select") else table[order]
        elif known is None:
            faults.add(name, labels, f"has other columns than {first}: {order}")
    return {**given, **changed}


def _labels(table: object) -> list[str]:
    """Return the names of the columns of a frame; none if it is an array, or numbers them."""
    labels = getattr(table, "column_names", getattr(table, "columns", ()))
    found = [one for one in labels if isinstance(one, str)] if hasattr(labels, "__iter__") else []
    return found if len({*found}) == len([*labels]) else []


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
