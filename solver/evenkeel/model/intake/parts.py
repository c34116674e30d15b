"""Arrays in, parts of a cluster out: read once, and everything wrong with them noted together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.nodes import check_nodes, read_nodes
from evenkeel.model.intake.partitions import check_partitions, read_partitions
from evenkeel.model.intake.placement import Wanted, read_placement
from evenkeel.model.intake.rules import check_rules, read_rules
from evenkeel.model.intake.sizes import Given, Sizes
from evenkeel.model.intake.topology import check_topology, read_topology
from evenkeel.model.names import Names
from evenkeel.model.partitions import Partitions
from evenkeel.model.reading.arrays import as_array, check_range, read_only
from evenkeel.model.reading.containers import items_of
from evenkeel.model.reading.quantities import is_whole
from evenkeel.model.topology import NODE_TIER, Topology

Parts = dict[str, Any]
"""The fields of a cluster by name."""

OF_PLACEMENT = ("placement", "first", "leader", "role", "flags", "replicas", "voters")
"""Arguments that say where replicas are, and how many are wanted."""

OF_RULES = (
    *OF_PLACEMENT, "rules", "spread", "rule", "group", "group_names", "group_rule", "domains",
    "crossing", "tags", "attributes", "node_names",
)  # fmt: skip
"""Arguments that rules are judged by."""


def read_parts(faults: FaultList, given: Given) -> Parts:
    """Read all arguments of ``Cluster.from_arrays``."""
    sizes = Sizes.of(given)
    told = given.get("dimensions")
    dimensions = tuple(Names.read(faults, "dimensions", told, sizes.dimensions, "d"))
    return _read(faults, given, sizes, {"dimensions": dimensions})


def read_changes(faults: FaultList, given: Given, base: Mapping[str, Any]) -> Parts:
    """Read some arguments again, of the same sizes; the rest of a cluster stays as it is."""
    nodes, partitions = base["nodes"], base["partitions"]
    sizes = Sizes(len(nodes), len(partitions), len(base["dimensions"]))
    parts = dict(base)
    if "dimensions" in given:
        names = Names.read(faults, "dimensions", given["dimensions"], sizes.dimensions, "d")
        parts["dimensions"] = tuple(names)
    return _read(faults, given, sizes, parts)


def _read(faults: FaultList, given: Given, sizes: Sizes, base: Parts) -> Parts:
    """Read what is given into the parts of a base, which has them all or none but dimensions."""
    parts = dict(base)
    first = "nodes" not in base
    topology = read_topology(faults, given, sizes, base.get("topology"))
    nodes = read_nodes(faults, given, sizes, topology, base.get("nodes"))
    was = base.get("partitions")
    placement = base.get("placement")
    wanted: Wanted = (None, None) if was is None else (was.replicas, was.voters)
    if first or any(name in given for name in OF_PLACEMENT):
        told = given if placement is None or "placement" in given else _placed(given, placement)
        placement, wanted = read_placement(faults, told, sizes, nodes.names, was)
    rules = {f"rules[{i}]": rule for i, rule in enumerate(base.get("rules", ()))}
    if first or "rules" in given or "spread" in given:
        rules = read_rules(faults, given)
        parts["rules"] = tuple(rules.values())
    partitions = read_partitions(faults, given, sizes, wanted, rules, was)
    parts |= {
        "nodes": nodes, "topology": topology, "partitions": partitions, "placement": placement,
    }  # fmt: skip
    known_rules = len(rules) if rules or not faults.about("rules") else None
    if topology is not base.get("topology"):
        check_topology(faults, topology)
    if nodes is not base.get("nodes"):
        check_nodes(faults, nodes)
    if partitions is not was or known_rules != len(base.get("rules", ())):
        check_partitions(faults, partitions, sizes.nodes, known_rules)
    if first or any(name in given for name in OF_RULES):
        check_rules(faults, rules, nodes, topology, partitions)
    if was is not None and _strays(given, base, topology, partitions):
        faults.add("depends", len(parts["depends"]), "must be given for new groups or tiers")
    return parts | _read_rest(faults, given, parts)


def _strays(given: Given, base: Parts, topology: Topology, partitions: Partitions) -> bool:
    """Whether what depends on what was told of other groups or tiers."""
    same = topology is base["topology"]
    same &= partitions.group_names is base["partitions"].group_names
    return "depends" not in given and len(base["depends"]) > 0 and not same


def _placed(given: Given, placement: Any) -> Given:
    """Return arguments with the placement that stays, to which others may say more."""
    return {"placement": placement, **given}


def _read_rest(faults: FaultList, given: Given, parts: Parts) -> Parts:
    """Read what a cluster has beside nodes, partitions, placement and rules."""
    names, first = parts["dimensions"], "transient" not in parts
    read: Parts = {}
    if first or "transient" in given:
        told = given.get("transient")
        flowing = _dimensions(faults, "transient", () if told is None else told, names)
        read["transient"] = read_only(np.isin(np.arange(len(names)), flowing))
    if first or "bytes" in given:
        told = given.get("bytes")
        moved = _dimensions(faults, "bytes", () if told is None else (told,), names)
        read["bytes_dimension"] = moved[0] if moved else -1
    if first or "forbidden" in given:
        sizes = len(parts["partitions"]), len(parts["nodes"])
        read["forbidden"] = _forbidden(faults, given.get("forbidden"), *sizes)
    if first or "depends" in given:
        told, groups = given.get("depends"), parts["partitions"].group_names
        needs = () if told is None else told
        read["depends"] = _depends(faults, needs, groups, parts["topology"])
    for name, default in (("native", None), ("native_format", "")):
        if first or name in given:
            read[name] = given.get(name, default)
    return read


def _dimensions(faults: FaultList, path: str, given: Any, names: tuple[str, ...]) -> list[int]:
    """Return the numbers of some dimensions."""
    found = []
    for name in items_of(faults, path, given):
        if isinstance(name, str) and name in names:
            found.append(names.index(name))
        elif not faults.about("dimensions"):
            faults.add(path, name, f"unknown dimension; known: {list(names)}")
    return found


def _forbidden(faults: FaultList, given: Any, partitions: int, nodes: int) -> NDArray[np.int32]:
    if given is None:
        return read_only(np.zeros((0, 2), np.int32))
    pairs = as_array(faults, "forbidden", given, np.int32, (None, 2))
    check_range(faults, "forbidden[:, 0]", pairs[:, 0], 0, partitions, "must be a partition")
    check_range(faults, "forbidden[:, 1]", pairs[:, 1], 0, nodes, "must be a node")
    return read_only(np.unique(pairs, axis=0))


def _depends(
    faults: FaultList, given: Sequence[Any], groups: Names, topology: Topology
) -> NDArray[np.int32]:
    """Read which group needs which, by name or number, within which tier."""
    rows: list[tuple[int, ...]] = []
    known = [*topology.tiers, NODE_TIER]
    for i, one in enumerate(items_of(faults, "depends", given)):
        path = f"depends[{i}]"
        if not isinstance(one, tuple | list | np.ndarray) or len(one) != 3:
            faults.add(path, one, "must be (group, group it needs, tier)")
            continue
        *pair, tier = one
        found = []
        for group in pair:
            number = groups.index(group) if isinstance(group, str) and group in groups else group
            if is_whole(number) and 0 <= number < len(groups):
                found.append(int(number))
            else:
                faults.add(path, group, "must be a group")
        if tier in known:
            rows.append((*found, topology.tier_index(tier)))
        elif not faults.about("domains"):
            faults.add(path, tier, f"unknown tier; known: {known}")
    return read_only(np.array([] if faults.about("depends") else rows, np.int32).reshape(-1, 3))
