"""Consistency checks between the parts of a cluster.

What ``Cluster.from_arrays`` has read is vouched for. Everything else, such as what
``dataclasses.replace`` makes, is checked when a cluster is made of it: each part once with the
others that it must fit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.intake.nodes import check_nodes
from evenkeel.model.intake.partitions import check_partitions
from evenkeel.model.intake.parts import check_rule, check_topology
from evenkeel.model.intake.placement import check_placement
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Placement
from evenkeel.model.reading.quantities import require
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.memoize import memoize
from evenkeel.model.topology import Topology

Parts = Mapping[str, Any]  # the fields of a cluster by name
PER_NODE: Mapping[str, type[np.generic]] = {
    "alive": np.bool_, "accepts": np.bool_, "keeps": np.bool_, "leads": np.bool_,
    "gone": np.bool_, "since": np.float64, "weight": np.float64, "lead_weight": np.float64,
    "max_replicas": np.int32, "stands_for": np.int32,
}  # fmt: skip

PER_PARTITION: Mapping[str, type[np.generic]] = {
    "replicas": np.int32, "voters": np.int32, "min_active": np.int32, "group": np.int32,
    "rule": np.int32, "attached": np.int32, "move_cost": np.float64,
}  # fmt: skip

PER_REPLICA: Mapping[str, type[np.generic]] = {
    "node": np.int32, "role": np.uint8, "flags": np.uint16,
}  # fmt: skip


def check_consistent(parts: Parts) -> None:
    """Raise all validation errors of parts that were not validated when they were read."""
    found: list[Fault] = []
    for owner, others, check in _checks(parts):
        found += memoize(owner, "faults", partial(_faults_of, check), *others)
    if found:
        raise InvalidInput(found)


def vouch_for(parts: Parts) -> None:
    """Remember that parts fit together, as they were checked while they were read."""
    for owner, others, _ in _checks(parts):
        memoize(owner, "faults", tuple, *others)


Check = Callable[[FaultList], None]


def _checks(parts: Parts) -> Iterable[tuple[object, tuple[object, ...], Check]]:
    """Yield each part, the objects that it must fit, and how that is checked."""
    nodes, topology = parts["nodes"], parts["topology"]
    partitions, placement = parts["partitions"], parts["placement"]
    require("placement", placement, Placement)
    rules, dimensions = parts["rules"], parts["dimensions"]
    yield nodes, (dimensions,), lambda faults: _nodes(faults, nodes, len(dimensions))
    yield topology, (nodes.names,), lambda faults: _topology(faults, topology, len(nodes.names))
    yield (
        partitions, (nodes.names, rules, dimensions),
        lambda faults: _partitions(
            faults, partitions, len(nodes.names), len(rules), len(dimensions)
        ),
    )  # fmt: skip
    yield (
        placement, (nodes.names, partitions.names),
        lambda faults: _placement(faults, placement, len(partitions.names), len(nodes.names)),
    )  # fmt: skip
    yield (
        nodes.names, (rules, topology, nodes.tags, nodes.attributes),
        lambda faults: _rules(faults, rules, nodes, topology),
    )  # fmt: skip


def _faults_of(check: Check) -> tuple[Fault, ...]:
    faults = FaultList()
    check(faults)
    return tuple(faults.faults)


def _nodes(faults: FaultList, nodes: Nodes, dimensions: int) -> None:
    count = len(nodes.names)
    for name in ("capacity", "watermark"):
        _layout(faults, name, getattr(nodes, name), np.float64, (count, dimensions))
    for name, dtype in PER_NODE.items():
        _layout(faults, name, getattr(nodes, name), dtype, (count,))
    for tag, mask in nodes.tags.items():
        _layout(faults, f"tags[{tag!r}]", mask, np.bool_, (count,))
    for key, (codes, _) in nodes.attributes.items():
        _layout(faults, f"attributes[{key!r}]", codes, np.int32, (count,))
    if not faults:
        check_nodes(faults, nodes)


def _topology(faults: FaultList, topology: Topology, nodes: int) -> None:
    shape = (len(topology.tiers), nodes)
    _layout(faults, "domains", topology.label, np.int32, shape)
    _layout(faults, "domains", topology.domain, np.int32, shape)
    if not faults:
        check_topology(faults, topology)


def _partitions(
    faults: FaultList, partitions: Partitions, nodes: int, rules: int, dimensions: int
) -> None:
    count, groups = len(partitions.names), len(partitions.group_names)
    for one in fields(Loads):
        name = "load" if one.name == "voter" else f"{one.name}_load"
        load = getattr(partitions.load, one.name)
        _layout(faults, name, load, np.float64, (count, dimensions))
    for name, dtype in PER_PARTITION.items():
        _layout(faults, name, getattr(partitions, name), dtype, (count,))
    _layout(faults, "group_rule", partitions.group_rule, np.int32, (groups,))
    if not faults:
        check_partitions(faults, partitions, nodes, rules)


def _placement(faults: FaultList, placement: Placement, partitions: int, nodes: int) -> None:
    for name, dtype in PER_REPLICA.items():
        path = "placement" if name == "node" else name
        _layout(faults, path, getattr(placement, name), dtype, placement.node.shape[:1])
    if placement.disk is not None:
        _layout(faults, "disk", placement.disk, np.int32, placement.node.shape[:1])
    _layout(faults, "first", placement.first, np.int64, (partitions + 1,))
    _layout(faults, "leader", placement.leader, np.int16, (partitions,))
    if not faults:
        check_placement(faults, placement, partitions, nodes)


def _rules(faults: FaultList, rules: tuple[Rule, ...], nodes: Nodes, topology: Topology) -> None:
    for i, rule in enumerate(rules):
        if isinstance(rule, Rule):
            check_rule(faults, f"rules[{i}]", rule, nodes, topology)
        else:
            faults.add(f"rules[{i}]", rule, "must be a Rule")


def _layout(
    faults: FaultList, path: str, array: Any, dtype: type[np.generic], shape: tuple[int, ...]
) -> None:
    """Note values that are not arrays of that type and shape."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        kind = getattr(array, "dtype", type(array).__name__)
        wanted = np.dtype(dtype)
        faults.add(path, str(kind), f"must be an array of {wanted}; Cluster.replace makes it one")
    elif array.shape != shape:
        faults.add(path, array.shape, f"needs shape {shape}")
