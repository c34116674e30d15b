"""Changes of a session: node states, partitions and arguments that change between two solves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import Labels, Node
from evenkeel.model.intake.changes import STATES, added, listed, with_pins, without_nodes
from evenkeel.model.intake.consistency import vouch_for
from evenkeel.model.intake.partitions import PARTITION_COLUMNS, check_partitions, read_partitions
from evenkeel.model.intake.parts import read_changes
from evenkeel.model.intake.placement import read_placement
from evenkeel.model.intake.sizes import Given, Sizes, length
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import as_array, column, read_only, shape_of
from evenkeel.model.reading.containers import entries_of, items_of
from evenkeel.model.reading.keywords import check_keywords, known_fields
from evenkeel.model.reading.selection import Which, find_nodes, find_partitions
from evenkeel.model.rules import Rule

LOADS = ("load", "leader_load", "non_voter_load")
"""Changes that may be given for single partitions."""

COLUMNS = ("capacity", *LOADS, "rules", "rule", "placement")
"""Changes that ``Cluster.replace`` knows under the same names."""

CHOICES = (*STATES, "drop", "remove_nodes", "pin", "unpin")
"""Changes that choose nodes or partitions."""

Table = ArrayLike | Mapping[str | int, ArrayLike]
"""All rows, or some of them by name, number or expression."""


class NewNodes(TypedDict, total=False):
    """Nodes that join, as ``Cluster.add_nodes`` takes them.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> joining: NewNodes = {"capacity": [[8.0]], "names": ["big"]}
    >>> session = ek.Session(c).apply(ek.Changes(nodes=joining))
    >>> session.cluster.nodes.names[3]
    'big'
    """

    capacity: ArrayLike
    names: Sequence[str] | None
    domains: Mapping[str, Labels] | None
    tags: Mapping[str, ArrayLike] | None
    attributes: Mapping[str, Labels] | None
    watermark: ArrayLike | None
    weight: ArrayLike | None
    lead_weight: ArrayLike | None
    max_replicas: ArrayLike | None
    stands_for: ArrayLike | None


class NewPartitions(TypedDict, total=False):
    """Partitions that join, as ``Cluster.from_arrays`` takes them, with their ``names``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> new: NewPartitions = {"load": [[2.0]], "names": ["audit"], "replicas": [2]}
    >>> session = ek.Session(c).apply(ek.Changes(partitions=new))
    >>> session.cluster.partitions.names[4]
    'audit'
    """

    load: ArrayLike
    leader_load: ArrayLike
    non_voter_load: ArrayLike
    names: Sequence[str]
    placement: ArrayLike | Sequence[Sequence[Node]]
    leader: ArrayLike
    role: ArrayLike
    flags: ArrayLike
    replicas: ArrayLike
    voters: ArrayLike
    min_active: ArrayLike
    group: ArrayLike | Sequence[str]
    rule: ArrayLike
    move_cost: ArrayLike
    attached: ArrayLike


@known_fields
@dataclass(frozen=True, eq=False)
class Changes:
    """What happens to a cluster, all of it at once.

    First nodes join, then partitions leave, then others join; all other changes refer to the
    cluster that this makes, in which new nodes and partitions come last; and removed nodes
    leave at the very end. The verbs are those of ``Cluster``. Nodes and partitions are given
    by name, number, expression or mask, as ``Cluster.down`` and ``Cluster.pin`` take them; one
    name or number may stand by itself. P partitions, D dimensions.

    Parameters
    ----------
    down, up, drain, cordon : str, int, or sequence of them
        Nodes that are dead with all they hold; that are up again, whatever they were; that all
        replicas have to leave; that keep what they have and are given nothing more.
    gone : str, int, or sequence of them
        Nodes that are dead and will not come back.
    pin, unpin : str, int, or sequence of them
        Partitions whose replicas stay where they are; that may move again.
    remove_nodes : str, int, or sequence of them
        Nodes that are taken out of the cluster.
    nodes : NewNodes or None
        Nodes that join: the arguments of ``Cluster.add_nodes`` by name.
    drop : str, int, or sequence of them
        Partitions that leave.
    partitions : NewPartitions or None
        Partitions that join: arguments of ``Cluster.from_arrays`` by name. By default they are in
        the first group, and bound by the rule that binds all others, if there is one.
    capacity : array_like of float64, shape (N, D), mapping, or None
        Capacities of all nodes; or, by name, number or expression, the row (D,) of some of them.
    load, leader_load, non_voter_load : array_like of float64, shape (P, D), mapping, or None
        Loads, as ``Cluster.replace`` takes them; or, by name, number or ``"group=orders"``, the row
        (D,) of some partitions. None leaves them as they are.
    rules : sequence of Rule or None
        Rules in the place of those there are, as ``Cluster.replace`` takes them.
    rule : array_like of int32, shape (P,), or None
        Rule of each partition.
    placement : Placement, array_like of int32 or str, or None
        Where replicas are now, such as the placement of an answer that was carried out.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
    >>> session = ek.Session(c).apply(ek.Changes(down="n0", nodes={"capacity": [[9.0]] * 2}))
    >>> session.cluster.nodes.alive.tolist()
    [False, True, True, True, True]
    """

    down: Which = ()
    up: Which = ()
    drain: Which = ()
    cordon: Which = ()
    gone: Which = ()
    pin: Which = ()
    unpin: Which = ()
    remove_nodes: Which = ()
    nodes: NewNodes | None = None
    drop: Which = ()
    partitions: NewPartitions | None = None
    capacity: Table | None = None
    load: Table | None = None
    leader_load: Table | None = None
    non_voter_load: Table | None = None
    rules: Sequence[Rule] | None = None
    rule: ArrayLike | None = None
    placement: Placement | ArrayLike | Sequence[Sequence[Node]] | None = None

    @property
    def named(self) -> frozenset[str]:
        """Names of the parameters that are given."""
        return frozenset(
            one.name for one in fields(self)
            if (value := getattr(self, one.name)) is not None
            and (one.name not in CHOICES or shape_of(value) == () or len(value))
        )  # fmt: skip


def changed(cluster: Cluster, changes: Changes) -> Cluster:
    """Return the cluster that changes make of another; ``InvalidInput`` names all that is wrong."""
    faults, named = FaultList(), changes.named
    parts, joined = _with_members(faults, cluster, changes, named)
    given: dict[str, Any] = {}
    if "nodes" not in named or joined:
        given |= _states(faults, parts["nodes"], parts["topology"], changes, named)
    if joined:
        given |= {
            name: _whole_table(faults, name, getattr(changes, name), parts)
            for name in COLUMNS
            if name in named
        }
    elif "rules" in named:
        given["rules"] = changes.rules
    parts = read_changes(faults, given, parts)
    if joined:
        parts = _pinned(faults, parts, changes, named)
    leave = np.zeros(0, np.int32)
    if "remove_nodes" in named and ("nodes" not in named or joined):
        which = listed(changes.remove_nodes)
        leave = find_nodes(faults, "remove_nodes", parts["nodes"], parts["topology"], which)
    faults.raise_if_any()
    if len(leave):
        parts = without_nodes(parts, leave)
    vouch_for(parts)
    return replace(cluster, **parts)


def _whole_table(faults: FaultList, name: str, given: Any, parts: dict[str, Any]) -> Any:
    """Return all rows of a table of which some are given one by one; anything else unchanged."""
    if not isinstance(given, Mapping) or name not in ("capacity", *LOADS):
        return given
    nodes, partitions = parts["nodes"], parts["partitions"]
    loads = dict(zip(LOADS, ("voter", "leader", "non_voter"), strict=True))
    old = nodes.capacity if name == "capacity" else getattr(partitions.load, loads[name])
    table = np.array(old)
    for key, row in given.items():
        at = f"{name}[{key!r}]"
        if name == "capacity":
            where: Any = find_nodes(faults, at, nodes, parts["topology"], [key])
        else:
            where = find_partitions(faults, at, partitions, [key])
        table[where] = as_array(faults, at, row, np.float64, (table.shape[1],))
    return table


def _pinned(
    faults: FaultList, parts: dict[str, Any], changes: Changes, named: frozenset[str]
) -> dict[str, Any]:
    """Return the parts with some partitions pinned, and others no more."""
    placement, pinned = parts["placement"], np.zeros(len(parts["partitions"]), bool)
    for name in ("pin", "unpin"):
        if name not in named:
            continue
        which = find_partitions(faults, name, parts["partitions"], listed(getattr(changes, name)))
        for p in which[pinned[which]].tolist():
            faults.add(name, parts["partitions"].names[p], "is also pinned")
        held = np.zeros(len(pinned), bool)
        held[which] = True
        pinned |= held
        placement = with_pins(placement, held, stays=name == "pin")
    return {**parts, "placement": placement}


def lost_nodes(cluster: Cluster, changes: Changes) -> NDArray[np.int32]:
    """Return the nodes that are down; ``InvalidInput`` names invalid ones."""
    faults = FaultList()
    found = find_nodes(faults, "down", cluster.nodes, cluster.topology, listed(changes.down))
    faults.raise_if_any()
    return found


def with_lost(nodes: Nodes, lost: NDArray[np.bool_]) -> Nodes:
    """Return nodes of which those ``lost (N,)`` are dead."""
    flags: dict[str, Any] = {
        name: read_only(getattr(nodes, name) & ~lost) for name in STATES["down"]
    }
    return replace(nodes, **flags)


def _with_members(
    faults: FaultList, cluster: Cluster, changes: Changes, named: frozenset[str]
) -> tuple[dict[str, Any], bool]:
    """Return parts with other nodes and partitions, and whether nothing was wrong with these."""
    parts: dict[str, Any] = {one.name: getattr(cluster, one.name) for one in fields(cluster)}
    if "nodes" in named:
        more = _keywords(faults, "nodes", changes.nodes, NewNodes.__annotations__)
        given = {name: more.get(name) for name in NewNodes.__annotations__ if name != "names"}
        if given["capacity"] is None:
            faults.add("nodes.capacity", None, "must be given: a row for each node that joins")
        else:
            parts = _noted(
                faults, "nodes", added, parts, {**given, "node_names": more.get("names")}
            )
    if "drop" in named:
        which = find_partitions(faults, "drop", cluster.partitions, listed(changes.drop))
        parts = without_partitions(parts, which)
    if "partitions" in named:
        more = _keywords(faults, "partitions", changes.partitions, NewPartitions.__annotations__)
        if more.get("load") is None:
            faults.add("partitions.load", None, "must be given: a row for each that joins")
        else:
            parts = _noted(faults, "partitions", with_partitions, parts, more)
    return parts, not faults


def _noted(
    faults: FaultList, path: str, make: Any, parts: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Return the changed parts, or the parts unchanged with errors noted below a path."""
    inside = FaultList()
    made = cast("dict[str, Any]", make(inside, parts, given))
    for one in inside.faults:
        faults.add(f"{path}.{one.path}", one.value, one.message)
    return parts if inside else made


def _keywords(faults: FaultList, path: str, given: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of those that join; note words that are not known."""
    entries = entries_of(faults, path, given)
    inside = FaultList()
    check_keywords(inside, entries, [*known])
    for one in inside.faults:
        faults.add(f"{path}.{one.path}", one.value, one.message)
    return {name: value for name, value in entries.items() if name in known}


def _states(
    faults: FaultList, nodes: Nodes, topology: Any, changes: Changes, named: frozenset[str]
) -> dict[str, Any]:
    """Return the flags of nodes after some of them went into another state."""
    flags: dict[str, Any] = {}
    state_of = np.full(len(nodes), "", object)
    for state, values in STATES.items():
        if state not in named:
            continue
        which = find_nodes(faults, state, nodes, topology, listed(getattr(changes, state)))
        for n in which[state_of[which] != ""].tolist():
            faults.add(state, nodes.names[n], f"is also {state_of[n]}")
        state_of[which] = state
        for name, value in values.items():
            flags.setdefault(name, getattr(nodes, name).copy())[which] = value
    return flags


COUNTED_BY = ("load", "leader_load", "non_voter_load", "names", "placement", "replicas")
"""Arguments that give the number of partitions that join; the first one given counts."""


def without_partitions(parts: Mapping[str, Any], which: NDArray[np.int64]) -> dict[str, Any]:
    """Return the parts of a cluster without some partitions and all that they hold."""
    old, placement = parts["partitions"], parts["placement"]
    stays = np.ones(len(old), bool)
    stays[which] = False
    place = np.cumsum(stays) - 1
    rows = stays[placement.owner]
    names = [name for name, kept in zip(old.names, stays.tolist(), strict=True) if kept]
    banned = parts["forbidden"]
    banned = banned[stays[banned[:, 0]]]
    return {
        **parts,
        "partitions": replace(
            old,
            names=Names(names, len(names), ""),
            load=Loads(*_shared(old.load, lambda load: load[stays])),
            **{name: read_only(getattr(old, name)[stays]) for name in PER_PARTITION},
        ),
        "placement": Placement(
            first=read_only(_starts(np.diff(placement.first)[stays])),
            leader=read_only(placement.leader[stays]),
            **{name: read_only(getattr(placement, name)[rows]) for name in PER_REPLICA},
        ),
        "forbidden": read_only(np.stack([place[banned[:, 0]], banned[:, 1]], 1).astype(np.int32)),
    }  # fmt: skip


def with_partitions(faults: FaultList, parts: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """Return the parts of a cluster with more partitions after those it has."""
    old, placement, nodes = parts["partitions"], parts["placement"], parts["nodes"]
    more = length([given.get(name) for name in COUNTED_BY])
    sizes = Sizes(len(nodes), more, len(parts["dimensions"]))
    rules = {f"rules[{i}]": rule for i, rule in enumerate(parts["rules"])}
    leaderless = len(old) > 0 and not (placement.leader >= 0).any()
    named = {name: value for name, value in given.items() if name not in ("names", "group")}
    if leaderless:
        named.setdefault("leader", np.full(more, -1, np.int16))
    named.setdefault("rule", np.full(more, _usual_rule(old, len(rules)), np.int32))
    rows, wanted = read_placement(faults, named, sizes, nodes.names, None)
    new = read_partitions(faults, named, sizes, wanted, rules, None)
    group, group_names = _groups(faults, old.group_names, given.get("group"), more)
    names = _joined_names(faults, old.names, given.get("names"), more)
    check_partitions(faults, new, sizes.nodes, len(rules))
    new = replace(new, group=group)
    return {
        **parts,
        "partitions": Partitions(
            names=names,
            load=Loads(*_shared(old.load, lambda load: load, new.load)),
            group_names=group_names,
            group_rule=_padded(old.group_rule, len(group_names)),
            **{
                name: read_only(np.concatenate([getattr(old, name), getattr(new, name)]))
                for name in PER_PARTITION
            },
        ),
        "placement": Placement(
            first=read_only(np.concatenate([placement.first[:-1],
                                            placement.first[-1] + rows.first])),
            leader=read_only(np.concatenate([placement.leader, rows.leader])),
            **{
                name: read_only(np.concatenate([getattr(placement, name), getattr(rows, name)]))
                for name in PER_REPLICA
            },
        ),
    }  # fmt: skip


PER_PARTITION = ("replicas", "voters", "group", "rule", *PARTITION_COLUMNS)
PER_REPLICA = ("node", "role", "flags")


def _shared(
    load: Loads, taken: Any, more: Loads | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Make the loads of each role, of which those that were one array stay one."""
    made: dict[tuple[int, int], NDArray[np.float64]] = {}
    roles = []
    for name in ("leader", "voter", "non_voter"):
        one = getattr(load, name)
        other = None if more is None else getattr(more, name)
        key = id(one), id(other)
        if key not in made:
            rows = taken(one)
            made[key] = read_only(rows if other is None else np.concatenate([rows, other]))
        roles.append(made[key])
    return roles[0], roles[1], roles[2]


def _usual_rule(old: Partitions, rules: int) -> int:
    """Return the rule that binds all partitions there are; -1 if there is no such rule."""
    if len(old) == 0:
        return 0 if rules == 1 and not (old.group_rule >= 0).any() else -1
    return int(old.rule[0]) if (old.rule == old.rule[0]).all() else -1


def _groups(
    faults: FaultList, names: Names, given: ArrayLike | None, more: int
) -> tuple[NDArray[np.int32], Names]:
    """Return the group of each partition that joins; groups given by names may be new."""
    if len(names) == 0:
        names = names.counted_to(1)
    if given is None or not any(isinstance(one, str) for one in np.ravel(given).tolist()):
        numbers = column(faults, more, "group", given, np.int32, 0)
        for i in np.flatnonzero((numbers < 0) | (numbers >= len(names))).tolist():
            faults.add(f"group[{i}]", int(numbers[i]), f"must be a group, 0 to {len(names) - 1}")
        return numbers, names
    named = items_of(faults, "group", given)
    if len(named) != more:
        faults.add("group", len(named), f"needs {more} groups")
        return np.zeros(more, np.int32), names
    listed = list(dict.fromkeys([*names, *(str(one) for one in named)]))
    wider = names if len(listed) == len(names) else Names(listed, len(listed), "")
    return read_only(np.array([wider.index(str(one)) for one in named], np.int32)), wider


def _joined_names(faults: FaultList, old: Names, given: Any, more: int) -> Names:
    """Return the names of all partitions; new ones are counted on where none are given."""
    count = len(old) + more
    if given is None and old.counted:
        return old.counted_to(count)
    new = [f"p{i}" for i in range(len(old), count)] if given is None else items_of(
        faults, "names", given
    )  # fmt: skip
    if len(new) != more:
        faults.add("names", len(new), f"needs {more} names")
        return old.counted_to(count)
    return Names.read(faults, "names", [*old, *new], count, "p")


def _padded(group_rule: NDArray[np.int32], groups: int) -> NDArray[np.int32]:
    """Give groups that are new no rule."""
    new = np.full(groups - len(group_rule), -1, np.int32)
    return read_only(np.concatenate([group_rule, new]))


def _starts(width: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows of these widths start, and the end."""
    return np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
