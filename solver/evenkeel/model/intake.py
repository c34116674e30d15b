"""Arrays in, cluster out: the one place where a cluster's arrays are validated."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.arrays import as_array, check_amounts, check_range, frozen, list_entries
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Placement, Role
from evenkeel.model.rules import Amount, Rule, check_rule
from evenkeel.model.topology import NODE_LEVEL, Topology, read_labels


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
        Time of each node's last change of state, in seconds.
    weight, lead_weight : array_like of float64, shape (N,), optional
        Share of replicas and leaders; 1 by default.
    max_replicas, stands_for : array_like of int32, shape (N,), optional
        -1 for none.
    tags : mapping of str to array_like of bool, shape (N,), optional
        Nodes that carry each tag.
    attributes : mapping of str to array_like, shape (N,), optional
        Further labels of the nodes.
    node_names, partition_names, group_names : sequence of str, optional
        Counted up by default.
    replicas, voters, min_active : array_like of int32, shape () or (P,), optional
        Wanted numbers. By default as many as the placement has slots, all voters, 0.
    group : array_like of int32, shape (P,), optional
        Group of each partition; all in one by default.
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
        Rules; with one and no ``rule``, it binds every partition.
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
    held = as_array(faults, "capacity", capacity, np.float64, (None, None))
    check_amounts(faults, "capacity", held, infinite=True)
    count_nodes, count_dimensions = held.shape
    names = _dimension_names(faults, dimensions, count_dimensions)
    loads = _loads(faults, load, leader_load, non_voter_load, count_dimensions)
    count_partitions = len(loads.voter)

    topology = Topology.read(faults, domains, count_nodes, crossing)
    topology = _with_sizes(faults, topology, level_capacity, level_distance, count_dimensions)

    per_node = _reader(faults, count_nodes)
    is_alive = per_node("alive", alive, np.bool_, True)
    own_names = Names.read(faults, "node_names", node_names, count_nodes, "n")
    marks = np.full_like(held, np.inf)
    if watermark is not None:
        marks = as_array(faults, "watermark", watermark, np.float64, held.shape)
        check_amounts(faults, "watermark", marks, infinite=True)
    nodes = Nodes(
        names=own_names,
        capacity=frozen(held),
        watermark=frozen(marks),
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
            for tag, at in (tags or {}).items()
        },
        attributes={
            key: read_labels(faults, f"attributes[{key!r}]", at, count_nodes)
            for key, at in (attributes or {}).items()
        },
    )
    for name in ("weight", "lead_weight"):
        check_amounts(faults, name, getattr(nodes, name), infinite=False)
    check_range(faults, "stands_for", nodes.stands_for, -1, count_nodes, "must be a node or -1")

    rows, wanted, wanted_voters = _placement(
        faults, placement, first, leader, role, flags, replicas, voters, count_partitions,
        count_nodes,
    )  # fmt: skip
    per_partition = _reader(faults, count_partitions)
    groups = per_partition("group", group, np.int32, 0)
    if group_names is not None:
        count_groups = len(group_names)
    else:
        count_groups = int(groups.max(initial=-1 if count_partitions == 0 else 0)) + 1
    check_range(faults, "group", groups, 0, max(count_groups, 1), "must be a group")
    bound, used = _rules(faults, spread, rules, rule, count_partitions)
    partitions = Partitions(
        names=Names.read(faults, "partition_names", partition_names, count_partitions, "p"),
        load=loads,
        replicas=frozen(wanted),
        voters=frozen(wanted_voters),
        min_active=per_partition("min_active", min_active, np.int32, 0),
        group=groups,
        group_names=Names.read(faults, "group_names", group_names, count_groups, "g"),
        rule=frozen(used),
        group_rule=_reader(faults, count_groups)("group_rule", group_rule, np.int32, -1),
        attached=per_partition("attached", attached, np.int32, -1),
        move_cost=per_partition("move_cost", move_cost, np.float64, 1.0),
    )
    check_amounts(faults, "move_cost", partitions.move_cost, infinite=False)
    check_range(faults, "rule", used, -1, len(bound), "must be the index of a rule or -1")
    check_range(
        faults, "group_rule", partitions.group_rule, -1, len(bound),
        "must be the index of a rule or -1",
    )  # fmt: skip
    check_range(faults, "attached", partitions.attached, -1, count_nodes, "must be a node or -1")
    check_range(faults, "min_active", partitions.min_active, 0, 2**31 - 1, "must be 0 or more")
    for i, one in enumerate(bound):
        check_rule(faults, f"rules[{i}]", one, nodes, topology)
        _check_counts(faults, f"rules[{i}]", one, wanted[used == i], wanted_voters[used == i])

    flows = np.zeros(count_dimensions, bool)
    for name in transient:
        if name in names:
            flows[names.index(name)] = True
        else:
            faults.add("transient", name, f"is no dimension; known: {list(names)}")
    if bytes is not None and bytes not in names:
        faults.add("bytes", bytes, f"is no dimension; known: {list(names)}")
    cluster = Cluster(
        nodes=nodes,
        topology=topology,
        partitions=partitions,
        placement=rows,
        rules=bound,
        dimensions=names,
        transient=frozen(flows),
        bytes_dimension=names.index(bytes) if bytes in names else -1,
        forbidden=_forbidden(faults, forbidden, count_partitions, count_nodes),
        depends=_depends(faults, depends, count_groups, topology),
        native=native,
        native_format=native_format,
    )
    faults.raise_if_any()
    return cluster


def _dimension_names(
    faults: FaultList, given: Sequence[str] | None, count: int
) -> tuple[str, ...]:
    if given is None:
        return tuple(f"d{i}" for i in range(count))
    return tuple(Names.read(faults, "dimensions", given, count, "d"))


def _loads(
    faults: FaultList,
    load: ArrayLike,
    leader_load: ArrayLike | None,
    non_voter_load: ArrayLike | None,
    dimensions: int,
) -> Loads:
    voter = as_array(faults, "load", load, np.float64, (None, dimensions))
    check_amounts(faults, "load", voter, infinite=False)
    by_role = {}
    for name, given in (("leader_load", leader_load), ("non_voter_load", non_voter_load)):
        by_role[name] = voter
        if given is not None:
            by_role[name] = as_array(faults, name, given, np.float64, voter.shape)
            check_amounts(faults, name, by_role[name], infinite=False)
    return Loads(frozen(by_role["leader_load"]), frozen(voter), frozen(by_role["non_voter_load"]))


def _reader(faults: FaultList, count: int) -> Callable[..., NDArray[Any]]:
    """Return a function that reads one value per node (partition, group), or one for all."""

    def read(path: str, given: ArrayLike | None, dtype: type[np.generic], default: Any) -> Any:
        value = default if given is None else given
        if np.ndim(value) == 0:
            one = as_array(faults, path, value, dtype, ())
            return frozen(np.full(count, one, dtype))
        return frozen(as_array(faults, path, value, dtype, (count,)))

    return read


def _with_sizes(
    faults: FaultList,
    topology: Topology,
    level_capacity: Mapping[str, ArrayLike] | None,
    level_distance: ArrayLike | None,
    dimensions: int,
) -> Topology:
    from dataclasses import replace

    shared = {}
    for level, given in (level_capacity or {}).items():
        path = f"level_capacity[{level!r}]"
        if level not in topology.levels:
            faults.add(path, level, f"is no level; known: {list(topology.levels)}")
            continue
        domains = int(topology.domain_count[topology.level_index(level)])
        capacity = as_array(faults, path, given, np.float64, (domains, dimensions))
        check_amounts(faults, path, capacity, infinite=True)
        shared[level] = frozen(capacity)
    distance = topology.level_distance
    if level_distance is not None:
        nodes = topology.domain.shape[1]
        shape = (nodes, nodes) if np.ndim(level_distance) == 2 else (len(topology) + 1,)
        given = as_array(faults, "level_distance", level_distance, np.float64, shape)
        check_amounts(faults, "level_distance", given, infinite=False)
        distance = frozen(given)
    return replace(topology, level_capacity=shared, level_distance=distance)


def _placement(
    faults: FaultList,
    placement: ArrayLike | None,
    first: ArrayLike | None,
    leader: ArrayLike | None,
    role: ArrayLike | None,
    flags: ArrayLike | None,
    replicas: ArrayLike | None,
    voters: ArrayLike | None,
    partitions: int,
    nodes: int,
) -> tuple[Placement, NDArray[np.int32], NDArray[np.int32]]:
    """Read the placement and what is wanted; rows are widened to hold what is wanted."""
    node, start = _rows(faults, placement, first, partitions)
    check_range(faults, "placement", node, -1, nodes, "must be a node or -1")
    per_partition = _reader(faults, partitions)
    width = np.diff(start).astype(np.int32)
    wanted = width if replicas is None else per_partition("replicas", replicas, np.int32, 0)
    check_range(faults, "replicas", wanted, 0, 2**15, "must be 0 to 32767")
    roles = np.zeros(len(node), np.uint8)
    if role is not None:
        roles = as_array(faults, "role", np.ravel(np.asarray(role)), np.uint8, (len(node),))
        check_range(faults, "role", roles, 0, len(Role), "must be a Role")
    marks = np.zeros(len(node), np.uint16)
    if flags is not None:
        marks = as_array(faults, "flags", np.ravel(np.asarray(flags)), np.uint16, (len(node),))
    if (wanted > width).any() and not faults:
        kept = np.arange(len(node)) - np.repeat(start[:-1], width)
        start = np.concatenate([[0], np.cumsum(np.maximum(width, wanted))]).astype(np.int64)
        at = np.repeat(start[:-1], width) + kept
        node, roles, marks = (
            _spread_out(values, at, int(start[-1]), empty)
            for values, empty in ((node, -1), (roles, 0), (marks, 0))
        )
    is_voter = np.concatenate([[0], np.cumsum(roles == Role.VOTER)])
    voting = wanted
    if voters is not None:
        voting = per_partition("voters", voters, np.int32, 0)
        list_entries(
            faults, "voters", voting, (voting < 0) | (voting > wanted),
            "must be between 0 and the replicas wanted",
        )  # fmt: skip
        if role is None and not faults:
            slot = np.arange(len(node)) - np.repeat(start[:-1], np.diff(start))
            roles = np.where(slot < np.repeat(voting, np.diff(start)), Role.VOTER, Role.NON_VOTER)
            roles = roles.astype(np.uint8)
    elif role is not None:
        voting = np.minimum(wanted, is_voter[start[1:]] - is_voter[start[:-1]]).astype(np.int32)
    leads = np.where(np.diff(start) > 0, 0, -1).astype(np.int16)
    if leader is not None:
        leads = as_array(faults, "leader", leader, np.int16, (partitions,))
        beyond = (leads < -1) | (leads >= np.diff(start))
        list_entries(faults, "leader", leads, beyond, "must be a slot of its partition or -1")
    rows = Placement(*(frozen(a) for a in (start, node, roles, marks, leads)))
    return rows, wanted, voting


def _rows(
    faults: FaultList, placement: ArrayLike | None, first: ArrayLike | None, partitions: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return nodes per replica and where rows start, from a table, a flat list or nothing."""
    if placement is None:
        return np.zeros(0, np.int32), np.zeros(partitions + 1, np.int64)
    if first is not None:
        node = as_array(faults, "placement", placement, np.int32, (None,))
        start = as_array(faults, "first", first, np.int64, (partitions + 1,))
        if start[0] != 0 or start[-1] != len(node) or (np.diff(start) < 0).any():
            faults.add("first", start.tolist()[:8], f"must rise from 0 to {len(node)}")
            return np.zeros(0, np.int32), np.zeros(partitions + 1, np.int64)
        return node, start
    table = as_array(faults, "placement", placement, np.int32, (partitions, None))
    slots = table.shape[1]
    return table.reshape(-1), np.arange(0, partitions * slots + 1, max(slots, 1), dtype=np.int64)[
        : partitions + 1
    ] if slots else np.zeros(partitions + 1, np.int64)


def _spread_out(
    values: NDArray[Any], at: NDArray[np.int64], length: int, empty: int
) -> NDArray[Any]:
    wide = np.full(length, empty, values.dtype)
    wide[at] = values
    return wide


def _rules(
    faults: FaultList,
    spread: Mapping[str, Amount] | None,
    rules: Sequence[Rule],
    rule: ArrayLike | None,
    partitions: int,
) -> tuple[tuple[Rule, ...], NDArray[np.int32]]:
    """Return the rules and the rule of each partition."""
    bound = tuple(rules)
    for i, one in enumerate(bound):
        if not isinstance(one, Rule):
            faults.add(f"rules[{i}]", one, "must be a Rule")
    if spread is not None:
        if bound:
            faults.add("spread", dict(spread), "give either spread or rules, not both")
        else:
            bound = (Rule(spread=spread),)
    default = 0 if len(bound) == 1 else -1
    used = _reader(faults, partitions)("rule", rule, np.int32, default)
    return tuple(one for one in bound if isinstance(one, Rule)), used


def _check_counts(
    faults: FaultList,
    path: str,
    rule: Rule,
    wanted: NDArray[np.int32],
    voting: NDArray[np.int32],
) -> None:
    """Note counts above the number of replicas or voters of a partition that the rule binds."""
    if len(wanted) == 0:
        return
    for name, counts, there in (
        ("place", rule.place, int(wanted.min())),
        ("voters_place", rule.voters_place, int(voting.min())),
    ):
        for text, count in counts.items():
            if isinstance(count, int) and count > there:
                faults.add(
                    f"{path}.{name}[{text!r}]", count,
                    f"asks for more than the {there} replicas of a partition it binds",
                )  # fmt: skip
    for limit in rule.limits():
        if limit.kind == "min_domains" and limit.hard and limit.amount > int(wanted.min()):
            faults.add(
                f"{path}.min_domains[{limit.level!r}]", limit.amount,
                f"asks for more than the {int(wanted.min())} replicas of a partition it binds",
            )  # fmt: skip


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
    rows = np.zeros((len(given), 3), np.int32)
    known = [*topology.levels, NODE_LEVEL]
    for i, (one, other, level) in enumerate(given):
        path = f"depends[{i}]"
        for group in (one, other):
            if not 0 <= group < groups:
                faults.add(path, group, "must be a group")
        if level not in known:
            faults.add(path, level, f"is no level; known: {known}")
            continue
        rows[i] = (one, other, topology.level_index(level))
    return frozen(rows)
