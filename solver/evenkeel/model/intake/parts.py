"""Read the arguments of ``Cluster.from_arrays`` into the parts of a cluster.

Everything is read once, and all validation errors are collected together. A rule is checked by
itself, then against the partitions and groups that it binds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.disks import Disks
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import Given, Sizes, by_column
from evenkeel.model.intake.nodes import check_nodes, read_nodes
from evenkeel.model.intake.partitions import check_partitions, read_partitions
from evenkeel.model.intake.placement import Wanted, read_placement
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.reading.arrays import (
    as_array,
    check_amounts,
    check_range,
    entries_of,
    items_of,
    read_only,
    shape_of,
)
from evenkeel.model.reading.quantities import is_real, is_whole
from evenkeel.model.rules import (
    COUNTS,
    LIMITS,
    REQUIREMENTS,
    Condition,
    Rule,
    mask_of,
    nodes_meeting,
    parse_expression,
)
from evenkeel.model.topology import NODE_TIER, Topology

Parts = dict[str, Any]  # the fields of a cluster by name
# arguments for the placement and the wanted numbers of replicas
OF_PLACEMENT = ("placement", "first", "leader", "role", "flags", "disk", "replicas", "voters")

OF_RULES = (  # arguments that rules are judged by
    *OF_PLACEMENT, "rules", "spread", "rule", "group", "group_names", "group_rule", "domains",
    "crossing", "tags", "attributes", "node_names",
)  # fmt: skip


def read_parts(faults: FaultList, given: Given) -> Parts:
    """Read all arguments of ``Cluster.from_arrays``."""
    given = by_column(faults, given)
    sizes = Sizes.of(given)
    stated = given.get("dimensions")
    dimensions = tuple(Names.read(faults, "dimensions", stated, sizes.dimensions, "d"))
    return _read(faults, given, sizes, {"dimensions": dimensions})


def read_changes(faults: FaultList, given: Given, base: Mapping[str, Any]) -> Parts:
    """Read some arguments again, of the same sizes; the rest of a cluster stays as it is."""
    nodes, partitions = base["nodes"], base["partitions"]
    given = by_column(faults, given, base["dimensions"])
    sizes = Sizes(len(nodes), len(partitions), len(base["dimensions"]))
    parts = dict(base)
    if "dimensions" in given:
        names = Names.read(faults, "dimensions", given["dimensions"], sizes.dimensions, "d")
        parts["dimensions"] = tuple(names)
    return _read(faults, given, sizes, parts)


def _read(faults: FaultList, given: Given, sizes: Sizes, base: Parts) -> Parts:
    """Read arguments into the parts of a base, which has all parts or only dimensions."""
    parts = dict(base)
    first = "nodes" not in base
    topology = read_topology(faults, given, sizes, base.get("topology"))
    nodes = read_nodes(faults, given, sizes, topology, base.get("nodes"))
    was = base.get("partitions")
    placement = base.get("placement")
    wanted: Wanted = (None, None) if was is None else (was.replicas, was.voters)
    if first or any(name in given for name in OF_PLACEMENT):
        stated = given if placement is None or "placement" in given else _placed(given, placement)
        placement, wanted = read_placement(faults, stated, sizes, nodes.names, was)
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
    parts |= _read_rest(faults, given, parts)
    return parts | _read_disks(faults, given, parts)


def _read_disks(faults: FaultList, given: Given, parts: Parts) -> Parts:
    """Read the disks of nodes; a node holds no more than its usable disks hold in all."""
    disks = given.get("disks") if "disks" in given else parts.get("disks")
    placement, nodes = parts["placement"], parts["nodes"]
    if disks is None:
        if given.get("disk") is not None:
            faults.add("disk", shape_of(given["disk"]), "goes with disks: give those, too")
        return {"disks": None}
    if not isinstance(disks, Disks):
        faults.add("disks", type(disks).__name__, "must be evenkeel.Disks")
        return {"disks": None}
    if parts["bytes_dimension"] < 0 and not faults.about("bytes", "dimensions"):
        faults.add("disks", len(disks), "need the dimension that moves: give bytes, too")
    check_range(faults, "disks.node", disks.node, 0, len(nodes), "must be a node")
    if placement.disk is not None:
        check_range(faults, "disk", placement.disk, -1, len(disks), "must be a disk or -1")
    if faults:
        return {"disks": disks}
    capacity, at = nodes.capacity.copy(), parts["bytes_dimension"]
    capacity[:, at] = np.minimum(capacity[:, at], disks.per_node(len(nodes)))
    if not np.array_equal(capacity, nodes.capacity):
        nodes = replace(nodes, capacity=read_only(capacity))
    return {"disks": disks, "nodes": nodes}


def _strays(given: Given, base: Parts, topology: Topology, partitions: Partitions) -> bool:
    """Return whether arguments depend on groups or tiers that have changed."""
    same = topology is base["topology"]
    same &= partitions.group_names is base["partitions"].group_names
    return "depends" not in given and len(base["depends"]) > 0 and not same


def _placed(given: Given, placement: Any) -> Given:
    """Return arguments with the placement that stays, which other arguments may replace."""
    return {"placement": placement, **given}


def _read_rest(faults: FaultList, given: Given, parts: Parts) -> Parts:
    """Read what a cluster has beside nodes, partitions, placement and rules."""
    names, first = parts["dimensions"], "transient" not in parts
    read: Parts = {}
    if first or "transient" in given:
        stated = given.get("transient")
        flowing = _dimensions(faults, "transient", () if stated is None else stated, names)
        read["transient"] = read_only(np.isin(np.arange(len(names)), flowing))
    if first or "bytes" in given:
        stated = given.get("bytes")
        moved = _dimensions(faults, "bytes", () if stated is None else (stated,), names)
        read["bytes_dimension"] = moved[0] if moved else -1
    if first or "forbidden" in given:
        sizes = len(parts["partitions"]), len(parts["nodes"])
        read["forbidden"] = _forbidden(faults, given.get("forbidden"), *sizes)
    if first or "depends" in given:
        stated, groups = given.get("depends"), parts["partitions"].group_names
        needs = () if stated is None else stated
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


# arguments needed to count the replicas that a rule binds
COUNTED_BY = ("rule", "group", "group_rule", "replicas", "voters", "placement", "first", "role")


def read_rules(faults: FaultList, given: Given) -> dict[str, Rule]:
    """Return the rules by path; an empty rule replaces an invalid one."""
    listed = given.get("rules")
    bound = {
        f"rules[{i}]": one
        for i, one in enumerate(items_of(faults, "rules", () if listed is None else listed))
    }
    for path, one in bound.items():
        if not isinstance(one, Rule):
            faults.add(path, one, "must be a Rule")
            bound[path] = Rule()
    spread = given.get("spread")
    if spread is None:
        return bound
    if bound:
        faults.add("spread", spread, "give either spread or rules, not both")
        return bound
    return {"": Rule(spread=spread)}


def check_rules(
    faults: FaultList,
    rules: Mapping[str, Rule],
    nodes: Nodes,
    topology: Topology,
    partitions: Partitions,
) -> None:
    """Check rules by themselves, then against the partitions and groups that they bind."""
    sized = not faults.about(*COUNTED_BY)
    of_group = [
        np.bincount(partitions.group, wanted, len(partitions.group_names)).astype(np.int64)
        for wanted in (partitions.replicas, partitions.voters)
        if sized and (partitions.group_rule >= 0).any()
    ]
    for i, (path, one) in enumerate(rules.items()):
        if not check_rule(faults, path, one, nodes, topology) or not sized:
            continue
        mine = partitions.rule == i
        check_counts(
            faults, path, one, "partition", partitions.replicas[mine], partitions.voters[mine],
            nodes, topology,
        )  # fmt: skip
        if of_group:
            ours = partitions.group_rule == i
            replicas, voters = of_group
            check_counts(faults, path, one, "group", replicas[ours], voters[ours], nodes, topology)


MOST = 2**31 - 1  # what the amount of a limit may be at most
# arguments with labels; expressions are not checked against invalid ones
LABELS = ("domains", "attributes", "node_names")

TAGS = ("tags",)

# limits that no replica at all would meet if their amount were 0
NEVER_MET_BY_NONE = ("spread", "max_domains")


def check_rule(faults: FaultList, path: str, rule: Rule, nodes: Nodes, topology: Topology) -> bool:
    """Note everything wrong with a rule by itself: parsing, unknown names, contradictions."""
    before = len(faults.faults)
    path = f"{path}." if path else ""
    for name in REQUIREMENTS:
        met: list[Condition] = []
        for i, text in enumerate(items_of(faults, f"{path}{name}", getattr(rule, name))):
            met += _conditions(faults, f"{path}{name}[{i}]", text, nodes, topology)
        _check_contradiction(faults, f"{path}{name}", met)
    for name in COUNTS:
        for text, count in entries_of(faults, f"{path}{name}", getattr(rule, name)).items():
            at = f"{path}{name}[{text!r}]"
            conditions = _conditions(faults, at, text, nodes, topology)
            _check_contradiction(faults, at, conditions)
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                faults.add(at, count, "must be a whole number, 0 or more")
    for i, text in enumerate(items_of(faults, f"{path}lead", rule.lead)):
        at = f"{path}lead[{i}]"
        _check_contradiction(faults, at, _conditions(faults, at, text, nodes, topology))
    for name in LIMITS:
        for tier, amount in entries_of(faults, f"{path}{name}", getattr(rule, name)).items():
            at = f"{path}{name}[{tier!r}]"
            _check_tier(faults, at, tier, topology)
            _check_amount(faults, at, amount, 1 if name in NEVER_MET_BY_NONE else 0)
    if len(faults.faults) == before:
        _check_domain_counts(faults, path, rule)
        if not faults.about(*LABELS, *TAGS):
            _check_reach(faults, path, rule, nodes, topology)
    return len(faults.faults) == before


def check_counts(
    faults: FaultList,
    path: str,
    rule: Rule,
    bound: str,
    replicas: NDArray[np.integer[Any]],
    voters: NDArray[np.integer[Any]],
    nodes: Nodes,
    topology: Topology,
) -> None:
    """Note counts above the number of replicas or voters of a partition or group that is bound."""
    path = f"{path}." if path else ""
    asked = replicas > 0
    if not asked.any():
        return
    least, least_voters = int(replicas[asked].min()), int(voters[asked].min())
    for name, of_voters in COUNTS.items():
        counts = getattr(rule, name)
        there, whose = (least_voters, "voters") if of_voters else (least, "replicas")
        message = f"asks for more than the {there} {whose} of a {bound} it binds"
        beyond = {text: count for text, count in counts.items() if count > there}
        for text, count in beyond.items():
            faults.add(f"{path}{name}[{text!r}]", count, message)
        apart = _apart(counts, nodes, topology)
        if not beyond and sum(apart.values()) > there:
            faults.add(f"{path}{name}", apart, f"{message}: no node counts twice here")
    for limit in rule.limits(per_node=False):
        if limit.kind == "min_domains" and limit.hard and limit.amount > least:
            faults.add(
                f"{path}min_domains[{limit.tier!r}]", limit.amount,
                f"asks for more than the {least} replicas of a {bound} it binds",
            )  # fmt: skip


def _conditions(
    faults: FaultList, path: str, text: object, nodes: Nodes, topology: Topology
) -> list[Condition]:
    """Read an expression, noting what does not parse and what no node knows."""
    parsed = parse_expression(faults, path, text)
    known = [one for one in parsed if not faults.about(*(TAGS if one.value is None else LABELS))]
    mask_of(known, nodes, topology, faults, path)
    return list(parsed)


def _check_tier(faults: FaultList, path: str, tier: str, topology: Topology) -> None:
    known = [*topology.tiers, NODE_TIER]
    if tier not in known and not faults.about("domains"):
        faults.add(path, tier, f"unknown tier; known: {known}")


def _check_amount(faults: FaultList, path: str, amount: object, least: int) -> None:
    """Note values that are not amounts."""
    number = amount
    if isinstance(amount, tuple):
        if len(amount) not in (2, 3) or amount[0] is None or amount[1] not in ("hard", "soft"):
            faults.add(path, amount, 'must be a number or (number, "hard" or "soft")')
            return
        number = amount[0]
        _check_weight(faults, path, amount)
    if number is not None and not (is_whole(number) and number >= least):  # type: ignore[operator]
        faults.add(path, number, f"must be a whole number, {least} or more")
    elif number is not None and number > MOST:  # type: ignore[operator]
        faults.add(path, number, f"must be {MOST:,} at most; None sets no limit")


def _check_weight(faults: FaultList, path: str, amount: tuple[object, ...]) -> None:
    """Note a weight that is none, and one of a hard limit."""
    if len(amount) == 2:
        return
    weight = amount[2]
    if amount[1] == "hard":
        faults.add(path, amount, "only a soft limit has a weight")
    elif not is_real(weight) or not 0.0 < weight < np.inf:  # type: ignore[operator]
        faults.add(path, weight, "must be a weight, above 0 and finite")


def _check_contradiction(faults: FaultList, path: str, conditions: list[Condition]) -> None:
    """Note the first condition of a conjunction that no node can meet together with others."""
    met: set[Condition] = set()
    label: dict[str, Condition] = {}
    for one in conditions:
        other: Condition | None = replace(one, wanted=not one.wanted)
        if other not in met:
            wanted = label.setdefault(one.key, one) if one.wanted and one.value is not None else one
            other = None if wanted.value == one.value else wanted
        if other is not None:
            faults.add(path, f"{other}, {one}", "contradict each other: no node meets both")
            return
        met.add(one)


def _check_domain_counts(faults: FaultList, path: str, rule: Rule) -> None:
    """Note a least number of domains above the greatest."""
    amounts = {(limit.kind, limit.tier): limit for limit in rule.limits() if limit.hard}
    for (kind, tier), limit in amounts.items():
        most = amounts.get(("max_domains", tier))
        if kind == "min_domains" and most is not None and limit.amount > most.amount:
            faults.add(
                f"{path}min_domains[{tier!r}]",
                limit.amount,
                f"contradicts max_domains[{tier!r}] = {most.amount}",
            )


def _check_reach(
    faults: FaultList, path: str, rule: Rule, nodes: Nodes, topology: Topology
) -> None:
    """Note requirements, and places to fill, that some nodes meet one by one but none together."""

    def hopeless(texts: Iterable[str]) -> bool:
        silent = FaultList()
        conditions = [one for text in texts for one in parse_expression(silent, "", text)]
        masks = [mask_of([one], nodes, topology, silent, "") for one in conditions]
        met = np.ones(len(nodes), bool)
        for mask in masks:
            met &= mask
        return not met.any() and all(mask.any() for mask in masks)

    terms = rule.terms()
    for kind, voters in REQUIREMENTS.items():
        required = [one.text for one in terms if one.for_all and one.voters <= voters]
        if getattr(rule, kind) and hopeless(required):
            faults.add(f"{path}{kind}", required, "no node meets all of these together")
            return
        for term in terms:
            if term.voters == voters and term.least > 0 and hopeless([*required, term.text]):
                together = " together with the required ones" if required else ""
                faults.add(
                    f"{path}{term.kind}[{term.text!r}]", [*required, term.text],
                    f"no node meets it{together}",
                )  # fmt: skip


def _apart(counts: Mapping[str, int], nodes: Nodes, topology: Topology) -> dict[str, int]:
    """Return demands, the greatest first, whose nodes do not overlap: their counts add up."""
    taken = np.zeros(len(nodes), bool)
    found: dict[str, int] = {}
    for text in sorted(counts, key=lambda text: -counts[text]):
        mask = nodes_meeting([text], nodes, topology)
        if mask.any() and not (mask & taken).any():
            taken |= mask
            found[text] = counts[text]
    return found


SHAPE = ("domains", "crossing")


def read_topology(faults: FaultList, given: Given, sizes: Sizes, base: Topology | None) -> Topology:
    """Read given arguments of the topology; others are the base's, or else defaults."""
    topology = base
    if topology is None or any(name in given for name in SHAPE):
        domains, crossing = given.get("domains"), given.get("crossing")
        if base is not None:
            domains = given.get("domains", labels_by_tier(base))
            crossing = given.get("crossing", list(base.crossing))
        topology = Topology.read(faults, domains, sizes.nodes, () if crossing is None else crossing)
        if base is not None and base.tier_capacity and "tier_capacity" not in given:
            faults.add("tier_capacity", list(base.tier_capacity), "must be given for new domains")
    if base is None or "tier_capacity" in given:
        shared = _shared(faults, given.get("tier_capacity"), topology, sizes.dimensions)
        topology = replace(topology, tier_capacity=shared)
    if given.get("tier_distance") is not None:
        topology = replace(topology, tier_distance=_distance(faults, given, topology))
    return topology


def check_topology(faults: FaultList, topology: Topology) -> None:
    """Note capacities and distances that no domain can have."""
    for tier, amounts in topology.tier_capacity.items():
        check_amounts(faults, f"tier_capacity[{tier!r}]", amounts, infinite=True)
    check_amounts(faults, "tier_distance", topology.tier_distance, infinite=False)


def labels_by_tier(topology: Topology) -> dict[str, list[str | None]]:
    """Return the label of each node on each tier, None where it has none."""
    return {
        tier: [topology.label_names[i][code] if code >= 0 else None for code in row.tolist()]
        for i, (tier, row) in enumerate(zip(topology.tiers, topology.label, strict=True))
    }


def _shared(
    faults: FaultList, given: Any, topology: Topology, dimensions: int
) -> dict[str, NDArray[np.float64]]:
    """Return the shared capacity of the nodes of each domain."""
    shared = {}
    labelled = not faults.about("domains")
    listed = {} if given is None else entries_of(faults, "tier_capacity", given)
    for tier, amounts in listed.items():
        path = f"tier_capacity[{tier!r}]"
        if tier in topology.tiers:
            domains = int(topology.domain_count[topology.tier_index(tier)])
            shape = (domains if labelled else None, dimensions)
            shared[tier] = read_only(as_array(faults, path, amounts, np.float64, shape))
        elif labelled:
            faults.add(path, tier, f"unknown tier; known: {list(topology.tiers)}")
    return shared


def _distance(faults: FaultList, given: Given, topology: Topology) -> NDArray[np.float64]:
    stated = given["tier_distance"]
    nodes = topology.domain.shape[1]
    pairs = len(shape_of(stated)) == 2
    wanted = (nodes, nodes) if pairs else (len(topology) + 1,)
    return read_only(as_array(faults, "tier_distance", stated, np.float64, wanted))
