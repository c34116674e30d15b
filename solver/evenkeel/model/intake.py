"""Arrays in, cluster out: the one place where a cluster's arrays are validated."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.arrays import (
    as_array,
    check_amounts,
    check_range,
    column,
    frozen,
    list_entries,
    shape_of,
)
from evenkeel.model.cluster import Cluster
from evenkeel.model.containers import entries_of, items_of
from evenkeel.model.errors import FaultList
from evenkeel.model.intake_placement import read_placement
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.rule_checks import check_counts, check_rule
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.topology import NODE_LEVEL, Topology, read_labels

MOST = 2**31
"""Above every int32."""

FREE_GROUPS = 1_000
"""Groups that may be numbered without names however few partitions there are."""


def from_arrays(
    *,
    capacity: ArrayLike,
    load: ArrayLike,
    leader_load: ArrayLike | None = None,
    non_voter_load: ArrayLike | None = None,
    dimensions: Sequence[str] | None = None,
    transient: Sequence[str] = (),
    bytes: str | None = None,
    domains: Mapping[str, ArrayLike] | None = None,
    crossing: Sequence[str] = (),
    level_capacity: Mapping[str, ArrayLike] | None = None,
    level_distance: ArrayLike | None = None,
    watermark: ArrayLike | None = None,
    alive: ArrayLike | None = None,
    accepts: ArrayLike | None = None,
    keeps: ArrayLike | None = None,
    leads: ArrayLike | None = None,
    gone: ArrayLike | None = None,
    since: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    lead_weight: ArrayLike | None = None,
    max_replicas: ArrayLike | None = None,
    stands_for: ArrayLike | None = None,
    tags: Mapping[str, ArrayLike] | None = None,
    attributes: Mapping[str, ArrayLike] | None = None,
    node_names: Sequence[str] | None = None,
    partition_names: Sequence[str] | None = None,
    replicas: ArrayLike | None = None,
    voters: ArrayLike | None = None,
    min_active: ArrayLike | None = None,
    group: ArrayLike | None = None,
    group_names: Sequence[str] | None = None,
    move_cost: ArrayLike | None = None,
    attached: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
    depends: Sequence[tuple[int, int, str]] = (),
    placement: ArrayLike | None = None,
    first: ArrayLike | None = None,
    leader: ArrayLike | None = None,
    role: ArrayLike | None = None,
    flags: ArrayLike | None = None,
    spread: Mapping[str, Amount] | None = None,
    rules: Sequence[Rule] = (),
    rule: ArrayLike | None = None,
    group_rule: ArrayLike | None = None,
    native: object = None,
    native_format: str = "",
) -> Cluster:
    """Build a cluster from arrays, and report everything wrong with them at once.

    An array whose dtype and layout fit is used without a copy and never written to. N nodes, P
    partitions, K replicas, G groups, D dimensions.

    Parameters
    ----------
    capacity : array_like of float64, shape (N, D)
        Hard limit per node; 0 allowed, ``inf`` for none.
    load : array_like of float64, shape (P, D)
        Load of one replica.
    leader_load, non_voter_load : array_like of float64, shape (P, D), optional
        Whole load of a replica in that role, where it differs from ``load``.
    dimensions : sequence of str, optional
        D names; ``d0``, ``d1``, ... by default.
    transient : sequence of str, optional
        Dimensions in which a moved replica counts on both ends.
    bytes : str, optional
        The dimension that is moved when a replica moves.
    domains : mapping of str to array_like, shape (N,), optional
        Label of each node per level, widest level first.
    crossing : sequence of str, optional
        Levels that do not nest in the ones before them.
    level_capacity : mapping of str to array_like of float64, shape (domains, D), optional
        Capacity that the nodes of a domain share.
    level_distance : array_like of float64, shape (L + 1,) or (N, N), optional
        Distance by the widest level that differs, or between each pair of nodes.
    watermark : array_like of float64, shape (N, D), optional
        Load above it costs; ``inf`` by default.
    alive, accepts, keeps, leads, gone : array_like of bool, shape (N,), optional
        State of the nodes. All alive by default; the next three follow ``alive``; none gone.
    since : array_like of float64, shape (N,), optional
        Time of each node's last change of state, in seconds; NaN where it is not known.
    weight, lead_weight : array_like of float64, shape (N,), optional
        Share of replicas and leaders; 1 by default.
    max_replicas, stands_for : array_like of int32, shape (N,), optional
        -1 for none.
    tags : mapping of str to array_like of bool, shape (N,), optional
        Nodes that carry each tag.
    attributes : mapping of str to array_like, shape (N,), optional
        Further labels of the nodes, under names that no level has.
    node_names, partition_names : sequence of str, optional
        Counted up by default.
    replicas, voters, min_active : array_like of int32, shape () or (P,), optional
        Wanted numbers. By default as many as the placement has slots, all voters, 0.
    group : array_like of int32, shape (P,), optional
        Group of each partition; all in one by default. Without ``group_names``, below P or 1,000.
    group_names : sequence of str, optional
        Counted up by default.
    move_cost : array_like of float64, shape () or (P,), optional
        Cost of moving one replica; 1 by default.
    attached : array_like of int32, shape (P,), optional
        Node that uses the partition; -1 for none.
    forbidden : array_like of int32, shape (F, 2), optional
        (partition, node) pairs that are disabled.
    depends : sequence of (int, int, str), optional
        (group, group it needs, level).
    placement : array_like of int32, shape (P, R), or (K,) with ``first``, optional
        Node of each replica, -1 for none; the leader first unless ``leader`` says otherwise.
    first : array_like of int64, shape (P + 1,), optional
        Where each partition's replicas start in a flat placement.
    leader : array_like of int16, shape (P,), optional
        Slot that leads; -1 for none.
    role, flags : array_like, same shape as placement, optional
        ``Role`` and ``Flag`` of each replica.
    spread : mapping of str to Amount, optional
        Short for one rule of all partitions, ``rules=[Rule(spread=...)]``.
    rules : sequence of Rule, optional
        Rules. With one, no ``rule`` and no group bound by it, it binds every partition.
    rule : array_like of int32, shape (P,), optional
        Rule of each partition, -1 for none.
    group_rule : array_like of int32, shape (G,), optional
        Rule of each group as a whole, -1 for none.
    native : object, optional
        A system's own payload.
    native_format : str, optional
        Name of that system.

    Returns
    -------
    Cluster
        Validated.

    Raises
    ------
    InvalidInput
        Naming every problem, with its path and value. A broken placement (two replicas on one node,
        replicas on dead nodes, too few or too many of them) is not one: that is what solving mends.

    Examples
    --------
    >>> c = from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, domains={"zone": ["a", "b", "c"]},
    ...                 replicas=2, spread={"zone": 1})
    >>> np.asarray(c.placement).shape
    (4, 2)
    """
    faults = FaultList()
    tables = (capacity, load, leader_load, non_voter_load, watermark)
    count_nodes = _length((capacity, watermark, node_names, alive))
    count_partitions = _length((load, leader_load, non_voter_load, partition_names, placement))
    count_dimensions = _width(tables, _length((dimensions,)))
    names = tuple(Names.read(faults, "dimensions", dimensions, count_dimensions, "d"))
    loads = _loads(faults, load, leader_load, non_voter_load, (count_partitions, count_dimensions))

    topology = Topology.read(faults, domains, count_nodes, crossing)
    topology = _with_sizes(faults, topology, level_capacity, level_distance, count_dimensions)
    per_node = partial(column, faults, count_nodes)
    is_alive = per_node("alive", alive, np.bool_, True)
    size = (count_nodes, count_dimensions)
    held = _amounts(faults, size, "capacity", capacity)
    marks = np.full(size, np.inf) if watermark is None else watermark
    nodes = Nodes(
        names=Names.read(faults, "node_names", node_names, count_nodes, "n"),
        capacity=held,
        watermark=_amounts(faults, size, "watermark", marks),
        alive=is_alive,
        accepts=per_node("accepts", accepts, np.bool_, is_alive),
        keeps=per_node("keeps", keeps, np.bool_, is_alive),
        leads=per_node("leads", leads, np.bool_, is_alive),
        gone=per_node("gone", gone, np.bool_, False),
        since=per_node("since", since, np.float64, np.nan),
        weight=per_node("weight", weight, np.float64, 1.0),
        lead_weight=per_node("lead_weight", lead_weight, np.float64, 1.0),
        max_replicas=per_node("max_replicas", max_replicas, np.int32, -1),
        stands_for=per_node("stands_for", stands_for, np.int32, -1),
        tags={
            tag: frozen(as_array(faults, f"tags[{tag!r}]", at, np.bool_, (count_nodes,)))
            for tag, at in _named(faults, "tags", tags).items()
        },
        attributes=_attributes(faults, attributes, topology, count_nodes),
    )
    _check_nodes(faults, nodes)

    rows, wanted, voting = read_placement(
        faults, placement, first, leader, role, flags, replicas, voters, count_partitions,
        count_nodes,
    )  # fmt: skip
    per_partition = partial(column, faults, count_partitions)
    groups = per_partition("group", group, np.int32, 0)
    count_groups = _count_groups(faults, groups, group_names, group_rule)
    bound = _rules(faults, spread, rules)
    of_group = column(faults, count_groups, "group_rule", group_rule, np.int32, -1)
    alone = len(bound) == 1 and not (of_group >= 0).any()
    partitions = Partitions(
        names=Names.read(faults, "partition_names", partition_names, count_partitions, "p"),
        load=loads,
        replicas=frozen(wanted),
        voters=frozen(voting),
        min_active=per_partition("min_active", min_active, np.int32, 0),
        group=groups,
        group_names=Names.read(faults, "group_names", group_names, count_groups, "g"),
        rule=per_partition("rule", rule, np.int32, 0 if alone and rule is None else -1),
        group_rule=of_group,
        attached=per_partition("attached", attached, np.int32, -1),
        move_cost=per_partition("move_cost", move_cost, np.float64, 1.0),
    )
    check_amounts(faults, "move_cost", partitions.move_cost, infinite=False)
    if bound or not faults.about("rules"):
        for name in ("rule", "group_rule"):
            check_range(
                faults, name, getattr(partitions, name), -1, len(bound),
                "must be the index of a rule or -1",
            )  # fmt: skip
    check_range(faults, "attached", partitions.attached, -1, count_nodes, "must be a node or -1")
    check_range(faults, "min_active", partitions.min_active, 0, MOST, "must be 0 or more")
    _check_rules(faults, bound, nodes, topology, partitions)

    flowing = _dimensions(faults, "transient", items_of(faults, "transient", transient), names)
    moved = _dimensions(faults, "bytes", [] if bytes is None else [bytes], names)
    cluster = Cluster(
        nodes=nodes,
        topology=topology,
        partitions=partitions,
        placement=rows,
        rules=tuple(bound.values()),
        dimensions=names,
        transient=frozen(np.isin(np.arange(len(names)), flowing)),
        bytes_dimension=moved[0] if moved else -1,
        forbidden=_forbidden(faults, forbidden, count_partitions, count_nodes),
        depends=_depends(faults, depends, count_groups, topology),
        native=native,
        native_format=native_format,
    )
    faults.raise_if_any()
    return cluster


def _length(given: Sequence[object]) -> int:
    """Return how many rows the first of some arguments has that has rows at all."""
    for one in given:
        if one is not None and len(shape := shape_of(one)) > 0:
            return shape[0]
    return 0


def _width(tables: Sequence[object], default: int) -> int:
    """Return how many columns the first of some arguments has that is a table."""
    for one in tables:
        if one is not None and len(shape := shape_of(one)) == 2:
            return shape[1]
    return default


def _named(faults: FaultList, path: str, given: Any) -> dict[str, Any]:
    return {} if given is None else entries_of(faults, path, given)


def _dimensions(
    faults: FaultList, path: str, given: Sequence[Any], names: tuple[str, ...]
) -> list[int]:
    """Return the numbers of some dimensions."""
    for name in given:
        if name not in names and not faults.about("dimensions"):
            faults.add(path, name, f"is no dimension; known: {list(names)}")
    return [names.index(name) for name in given if name in names]


def _amounts(
    faults: FaultList, shape: tuple[int | None, int], path: str, given: ArrayLike
) -> NDArray[np.float64]:
    """Read capacities, which may be infinite."""
    amounts = as_array(faults, path, given, np.float64, shape)
    check_amounts(faults, path, amounts, infinite=True)
    return frozen(amounts)


def _loads(
    faults: FaultList,
    load: ArrayLike,
    leader_load: ArrayLike | None,
    non_voter_load: ArrayLike | None,
    shape: tuple[int, int],
) -> Loads:
    def read(path: str, given: ArrayLike) -> NDArray[np.float64]:
        loads = as_array(faults, path, given, np.float64, shape)
        check_amounts(faults, path, loads, infinite=False)
        return frozen(loads)

    voter = read("load", load)
    return Loads(
        leader=voter if leader_load is None else read("leader_load", leader_load),
        voter=voter,
        non_voter=voter if non_voter_load is None else read("non_voter_load", non_voter_load),
    )


def _with_sizes(
    faults: FaultList,
    topology: Topology,
    level_capacity: Mapping[str, ArrayLike] | None,
    level_distance: ArrayLike | None,
    dimensions: int,
) -> Topology:
    """Return the topology with what its domains hold, and how far apart they are."""
    shared = {}
    labelled = not faults.about("domains")
    for level, given in _named(faults, "level_capacity", level_capacity).items():
        path = f"level_capacity[{level!r}]"
        if level in topology.levels:
            domains = int(topology.domain_count[topology.level_index(level)])
            shape = (domains if labelled else None, dimensions)
            shared[level] = _amounts(faults, shape, path, given)
        elif labelled:
            faults.add(path, level, f"is no level; known: {list(topology.levels)}")
    distance = topology.level_distance
    if level_distance is not None:
        nodes = topology.domain.shape[1]
        pairs = len(shape_of(level_distance)) == 2
        wanted = (nodes, nodes) if pairs else (len(topology) + 1,)
        given = as_array(faults, "level_distance", level_distance, np.float64, wanted)
        check_amounts(faults, "level_distance", given, infinite=False)
        distance = frozen(given)
    return replace(topology, level_capacity=shared, level_distance=distance)


def _attributes(
    faults: FaultList, given: Mapping[str, ArrayLike] | None, topology: Topology, nodes: int
) -> dict[str, tuple[NDArray[np.int32], tuple[str, ...]]]:
    found = {}
    for key, labels in _named(faults, "attributes", given).items():
        path = f"attributes[{key!r}]"
        if key in (*topology.levels, NODE_LEVEL):
            faults.add(path, key, "is the name of a level")
        found[key] = read_labels(faults, path, labels, nodes)
    return found


def _check_nodes(faults: FaultList, nodes: Nodes) -> None:
    for name in ("weight", "lead_weight"):
        check_amounts(faults, name, getattr(nodes, name), infinite=False)
    list_entries(
        faults, "since", nodes.since, np.isinf(nodes.since) | (nodes.since < 0.0),
        "must be a time from 0 on, or NaN where it is not known",
    )  # fmt: skip
    check_range(faults, "max_replicas", nodes.max_replicas, -1, MOST, "must be 0 or more, or -1")
    check_range(faults, "stands_for", nodes.stands_for, -1, len(nodes), "must be a node or -1")


def _count_groups(
    faults: FaultList,
    group: NDArray[np.int32],
    names: Sequence[str] | None,
    rule: ArrayLike | None,
) -> int:
    """Return how many groups there are; as many as have rules where partitions do not tell."""
    if names is not None:
        named = _length((names,))
        check_range(faults, "group", group, 0, max(named, 1), "must be a group")
        return named
    # a stray number would otherwise make as many groups, at their cost in time and memory
    most = max(len(group), FREE_GROUPS)
    check_range(faults, "group", group, 0, most, f"must be below {most} without group_names")
    if faults.about("group"):
        return _length((rule,)) or most
    return int(group.max(initial=-1)) + 1


def _rules(
    faults: FaultList, spread: Mapping[str, Amount] | None, rules: Sequence[Rule]
) -> dict[str, Rule]:
    """Return the rules by where they stand; a plain one stands in for what is no rule."""
    bound = {f"rules[{i}]": one for i, one in enumerate(items_of(faults, "rules", rules))}
    for path, one in bound.items():
        if not isinstance(one, Rule):
            faults.add(path, one, "must be a Rule")
            bound[path] = Rule()
    if spread is None:
        return bound
    if bound:
        faults.add("spread", spread, "give either spread or rules, not both")
        return bound
    return {"": Rule(spread=spread)}


def _check_rules(
    faults: FaultList,
    rules: Mapping[str, Rule],
    nodes: Nodes,
    topology: Topology,
    partitions: Partitions,
) -> None:
    """Check rules by themselves, then against the partitions and groups that they bind."""
    sized = not faults.about(
        "rule", "group", "group_rule", "replicas", "voters", "placement", "first", "role"
    )
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


def _forbidden(
    faults: FaultList, given: ArrayLike | None, partitions: int, nodes: int
) -> NDArray[np.int32]:
    if given is None:
        return frozen(np.zeros((0, 2), np.int32))
    pairs = as_array(faults, "forbidden", given, np.int32, (None, 2))
    check_range(faults, "forbidden[:, 0]", pairs[:, 0], 0, partitions, "must be a partition")
    check_range(faults, "forbidden[:, 1]", pairs[:, 1], 0, nodes, "must be a node")
    return frozen(np.unique(pairs, axis=0))


def _depends(
    faults: FaultList,
    given: Sequence[tuple[int, int, str]],
    groups: int,
    topology: Topology,
) -> NDArray[np.int32]:
    rows: list[tuple[int, ...]] = []
    known = [*topology.levels, NODE_LEVEL]
    for i, one in enumerate(items_of(faults, "depends", given)):
        path = f"depends[{i}]"
        if not isinstance(one, tuple | list | np.ndarray) or len(one) != 3:
            faults.add(path, one, "must be (group, group it needs, level)")
            continue
        *pair, level = one
        for group in pair:
            whole = isinstance(group, int | np.integer) and not isinstance(group, bool)
            if not whole or not 0 <= group < groups:
                faults.add(path, group, "must be a group")
        if level in known:
            rows.append((*pair, topology.level_index(level)))
        elif not faults.about("domains"):
            faults.add(path, level, f"is no level; known: {known}")
    return frozen(np.array([] if faults.about("depends") else rows, np.int32).reshape(-1, 3))
