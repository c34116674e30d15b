"""Convert a cluster to the arguments of ``Cluster.from_arrays``, and rules to documents.

Arguments at their defaults are left out, which keeps files short.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.quantities import is_whole
from evenkeel.model.rules import COUNTS, LIMITS, Rule
from evenkeel.model.topology import NODE_TIER
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import Int32

Arguments = dict[str, Any]  # arguments of ``Cluster.from_arrays`` by name
FREE_SLOTS = 2**20  # replicas that may be wanted however small a file is
# replicas that may be wanted for each byte of a file: what takes memory is no mere claim
SLOTS_PER_BYTE = 64


# types of which JSON gives every value back as it was; of numbers it does not
PLAIN = {str, bool, type(None), dict, list}

# an amount as a file has it; what stands in the list is checked with the rule
PlainAmount = Int32 | None | list[Int32 | float | str]

# the fields of a rule with their types in a document
FIELDS = {
    one.name: dict[str, PlainAmount] if one.name in LIMITS
    else dict[str, Int32] if one.name in COUNTS else list[str]
    for one in fields(Rule)
}  # fmt: skip
Fields: Any = msgspec.defstruct(
    "Fields", [(name, kind, kind()) for name, kind in FIELDS.items()],
    forbid_unknown_fields=True, omit_defaults=True,
    namespace={"__doc__": "The fields of a ``Rule``, in plain lists, dicts and numbers."},
)  # fmt: skip


class RuleDocument(Fields):  # type: ignore[misc]
    """A ``Rule`` as all native formats write it."""

    @classmethod
    def of(cls, rule: Rule, **more: object) -> Self:
        """Write a rule down, with plain lists, dicts and numbers, and with other fields."""
        return cls(**{name: _plain(getattr(rule, name)) for name in FIELDS}, **more)

    def rule(self) -> Rule:
        """Return the rule that was written down."""
        given = {name: getattr(self, name) for name in FIELDS}
        for kind, amounts in given.items():
            if kind in LIMITS and isinstance(amounts, dict):
                given[kind] = {
                    tier: tuple(amount) if isinstance(amount, list) else amount
                    for tier, amount in amounts.items()
                }
        return Rule(**given)


def _plain(value: Any) -> Any:
    """Return a value with lists, dicts and integers for what is like them."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return int(value) if is_whole(value) else value


def arguments_of(cluster: Cluster) -> Arguments:
    """Return what of the arguments that build an equal cluster differs from its default.

    >>> c = Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    >>> sorted(arguments_of(c))
    ['capacity', 'dimensions', 'load', 'placement']
    """
    topology = cluster.topology
    given: Arguments = {"dimensions": cluster.dimensions}
    given |= _node_arguments(cluster.nodes)
    given |= _partition_arguments(cluster.partitions, len(cluster.rules))
    given |= _placement_arguments(cluster.placement, cluster.partitions)
    if cluster.transient.any():
        given["transient"] = [cluster.dimensions[i] for i in np.flatnonzero(cluster.transient)]
    if cluster.bytes_dimension >= 0:
        given["bytes"] = cluster.dimensions[cluster.bytes_dimension]
    if topology.tiers:
        given["domains"] = {
            tier: labels_of(topology.label[i], topology.label_names[i])
            for i, tier in enumerate(topology.tiers)
        }
    if topology.crossing:
        given["crossing"] = sorted(topology.crossing, key=topology.tiers.index)
    if topology.tier_capacity:
        given["tier_capacity"] = dict(topology.tier_capacity)
    plain = np.ones(len(topology) + 1)
    plain[-1] = 0.0
    if not np.array_equal(topology.tier_distance, plain):
        given["tier_distance"] = topology.tier_distance
    if cluster.rules:
        given["rules"] = cluster.rules
    if len(cluster.forbidden):
        given["forbidden"] = cluster.forbidden
    if len(cluster.depends):
        tiers = (*topology.tiers, "node")
        given["depends"] = [(a, b, tiers[row]) for a, b, row in cluster.depends.tolist()]
    if cluster.disks is not None:
        given["disks"] = cluster.disks
        placement = cluster.placement
        if placement.disk is not None:
            flat = placement.slots is None
            given["disk"] = (
                placement.disk if flat else placement.disk.reshape(placement.nodes.shape)
            )
    if cluster.native is not None:
        _check_payload(cluster)
        given["native"] = cluster.native
    if cluster.native_format:
        given["native_format"] = cluster.native_format
    return given


def build(faults: FaultList, given: Arguments, locate: Callable[[str], str]) -> Cluster:
    """Build a cluster, or raise all faults with the place in the file that ``locate`` finds."""
    cluster = None
    try:
        cluster = Cluster.from_arrays(**given)
    except InvalidInput as error:
        for fault in error.faults:
            faults.add(locate(fault.path), fault.value, fault.message)
    faults.raise_if_any()
    assert cluster is not None, "a cluster that could not be built left no fault"
    return cluster


def attributes_of(
    labels: Sequence[Mapping[str, str]], tiers: Collection[str]
) -> dict[str, list[str]]:
    """Return all labels of nodes that are no tiers, as attributes."""
    keys = {key for own in labels for key, value in own.items() if value} - {*tiers, NODE_TIER}
    return {key: [own.get(key, "") for own in labels] for key in sorted(keys)}


def check_slots(
    faults: FaultList, path: str, wanted: ArrayLike, partitions: int, document: Document
) -> None:
    """Raise all faults if more replicas are wanted than a file of its size may ask for."""
    counts = np.asarray(wanted)
    if counts.dtype.kind not in "iu" or counts.ndim > 1:
        return  # building the cluster reports it
    total = np.maximum(counts, 0).sum(dtype=np.float64) * (partitions if counts.ndim == 0 else 1)
    if total > max(FREE_SLOTS, SLOTS_PER_BYTE * len(document.data)):
        message = f"asks for more replicas in all than a file of {len(document.data)} bytes may"
        faults.add(path, int(total), message)
        faults.raise_if_any()


def labels_of(codes: NDArray[np.int32], meaning: Sequence[str]) -> NDArray[Any]:
    """Return labels that are read as the same codes: integers if they sort so, else strings."""
    table: NDArray[Any] = np.array([*meaning, ""], np.str_)
    for text, kept in zip(meaning, table.tolist(), strict=False):
        if text != kept:
            raise InvalidInput([Fault("domains", text, "cannot be written: it ends in a NUL")])
    # what was read as integers fits into 64 bits; longer digits were texts
    if meaning and all(text.isdecimal() and text.isascii() and len(text) < 20 for text in meaning):
        numbers = [int(text) for text in meaning]
        canonical = [str(n) for n in numbers] == list(meaning)
        if canonical and sorted(numbers) == numbers and numbers[-1] < 2**63:
            table = np.array([*numbers, -1], np.int64)
    return table[codes]


def _node_arguments(nodes: Nodes) -> Arguments:
    given: Arguments = {"capacity": nodes.capacity} | _names("node_names", nodes.names, "n")
    defaults = {
        "watermark": np.inf, "alive": True, "accepts": nodes.alive, "keeps": nodes.alive,
        "leads": nodes.alive, "gone": False, "since": np.nan, "weight": 1.0, "lead_weight": 1.0,
        "max_replicas": -1, "stands_for": -1,
    }  # fmt: skip
    given |= _unlike(nodes, defaults)
    if nodes.tags:
        given["tags"] = dict(nodes.tags)
    if nodes.attributes:
        given["attributes"] = {key: labels_of(*at) for key, at in nodes.attributes.items()}
    return given


def _partition_arguments(partitions: Partitions, rules: int) -> Arguments:
    load = partitions.load
    given: Arguments = {"load": load.voter} | _names("partition_names", partitions.names, "p")
    if not np.array_equal(load.leader, load.voter):
        given["leader_load"] = load.leader
    if not np.array_equal(load.non_voter, load.voter):
        given["non_voter_load"] = load.non_voter
    defaults = {
        "min_active": 0, "group": 0, "attached": -1, "move_cost": 1.0, "group_rule": -1,
        "rule": 0 if rules == 1 and not (partitions.group_rule >= 0).any() else -1,
    }  # fmt: skip
    given |= _unlike(partitions, defaults)
    given |= _names("group_names", partitions.group_names, "g")
    groups = int(partitions.group.max(initial=-1 if len(partitions) == 0 else 0)) + 1
    if len(partitions.group_names) != groups:
        given["group_names"] = list(partitions.group_names)
    return given


def _placement_arguments(placement: Placement, partitions: Partitions) -> Arguments:
    given: Arguments = {}
    width = np.diff(placement.first)
    if len(placement.node):
        if placement.slots is None:
            given |= {"placement": placement.node, "first": placement.first}
        else:
            given["placement"] = placement.nodes
    if not np.array_equal(placement.leader, np.where(width > 0, 0, -1)):
        given["leader"] = placement.leader
    if placement.flags.any():
        given["flags"] = placement.flags
    if (len(width) and not len(placement.node)) or not np.array_equal(partitions.replicas, width):
        given["replicas"] = partitions.replicas
    # roles are drawn from the number of voters, and the other way round, when only one is given
    all_vote = not (placement.role != Role.VOTER).any()
    if not all_vote or not np.array_equal(partitions.voters, partitions.replicas):
        given |= {"role": placement.role, "voters": partitions.voters}
    return given


def _unlike(owner: Nodes | Partitions, defaults: Arguments) -> Arguments:
    """Return the arrays of an owner that differ from their defaults."""
    kept = {}
    for name, default in defaults.items():
        array = getattr(owner, name)
        same = np.isnan(array) if name == "since" else array == default
        if not np.all(same):
            kept[name] = array
    return kept


def _names(argument: str, names: Names, prefix: str) -> Arguments:
    """Return names as an argument, unless they are counted up the way the model does it."""
    if names.counted and (len(names) == 0 or names[0] == f"{prefix}0"):
        return {}
    return {argument: list(names)}


def _check_payload(cluster: Cluster) -> None:
    """Refuse a payload that would not come back as it is."""
    try:
        text = msgspec.json.encode(cluster.native)
        same = _is_plain(cluster.native) or msgspec.json.decode(text) == cluster.native
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        same = False
    if same is not True:
        from evenkeel.systems.registry import is_known

        own = cluster.native_format
        other = f"the format {own!r}, or " if is_known(own) else ""
        raise InvalidInput(
            [
                Fault(
                    "cluster.native",
                    type(cluster.native).__name__,
                    f"cannot be written here: use {other}dataclasses.replace(cluster, native=None)",
                )
            ]
        )


def _is_plain(payload: Any) -> bool:
    """Whether a payload is dicts, lists, texts and truth alone, which come back as they are."""
    level = [payload]
    while level:
        if not {*map(type, level)} <= PLAIN:
            return False
        dicts = [one for one in level if type(one) is dict]
        if not {*map(type, chain.from_iterable(dicts))} <= {str}:
            return False
        values = chain.from_iterable(map(dict.values, dicts))
        items = chain.from_iterable(one for one in level if type(one) is list)
        # texts are most of it, and need no other look
        level = [one for one in chain(values, items) if type(one) is not str]
    return True
