"""Changes to a cluster, such as added nodes or grown loads: one record, applied in one place.

The methods of ``Cluster``, sessions, sweeps, the command line and pipelines all make a ``Changes``
and leave it to ``changed_parts``; so do simulated nodes that join. A node without a domain of a
tier is outside all domains: no limit of that tier counts its replicas.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.disks import Disks, DiskState, find_disks
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.intake.arguments import Given, Labels, Node, Sizes, by_column, length
from evenkeel.model.intake.consistency import vouch_for
from evenkeel.model.intake.nodes import COLUMNS, check_nodes, read_nodes
from evenkeel.model.intake.partitions import PARTITION_COLUMNS, check_partitions, read_partitions
from evenkeel.model.intake.parts import check_rules, labels_by_tier, read_changes
from evenkeel.model.intake.placement import read_placement
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import (
    as_array,
    column,
    entries_of,
    items_of,
    list_entries,
    read_only,
    shape_of,
)
from evenkeel.model.reading.keywords import (
    check_keywords,
    did_you_mean,
    known_arguments,
    known_fields,
    known_keywords,
)
from evenkeel.model.reading.quantities import is_real, is_whole
from evenkeel.model.reading.selection import Which, find_nodes, find_partitions, read_groups
from evenkeel.model.rules import Rule, domains_left
from evenkeel.model.topology import Topology, read_labels

Parts = Mapping[str, Any]  # the fields of a cluster by name
# flags of a node in each state; other flags stay as they were
STATES: Mapping[str, Mapping[str, bool]] = {
    "down": {"alive": False, "accepts": False, "keeps": False, "leads": False},
    "up": {"alive": True, "accepts": True, "keeps": True, "leads": True, "gone": False},
    "cordon": {"accepts": False},
    "drain": {"accepts": False, "keeps": False, "leads": False},
    "gone": {"alive": False, "accepts": False, "keeps": False, "leads": False, "gone": True},
}


# state of disks after each change that chooses some
DISK_STATES = {"empty_disks": DiskState.EMPTYING, "fail_disks": DiskState.FAILED}

# changes that choose nodes, disks or partitions
CHOICES = (*STATES, *DISK_STATES, "pin", "unpin", "remove_nodes", "drop")

# loads that may be given for single partitions, each with its role
LOADS = {"load": "voter", "leader_load": "leader", "non_voter_load": "non_voter"}

# changes that ``Cluster.replace`` knows under the same names
ARGUMENTS = ("capacity", *LOADS, "replicas", "voters", "rules", "rule", "placement")

# all that a record may change
MAY_CHANGE = (*CHOICES, "load_factor", "nodes", "partitions", *ARGUMENTS)

# all rows, or some of them by name, number or expression
Table = ArrayLike | Mapping[str | int, ArrayLike]

# a factor on all loads, on those of a dimension, of some partitions, or of each partition
Factor = float | Mapping[str, float] | ArrayLike


class NewNodes(TypedDict, total=False):
    """Nodes that join, as ``Cluster.add_nodes`` takes them.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> joining: NewNodes = {"capacity": [[8.0]], "names": ["big"]}
    >>> changed = c.apply(ek.Changes(nodes=joining))
    >>> changed.nodes.names[3]
    'big'
    """

    capacity: ArrayLike | None
    names: Sequence[str] | None
    like: Which | None
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
    >>> changed = c.apply(ek.Changes(partitions=new))
    >>> changed.partitions.names[4]
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
    """What happens to a cluster, all of it at once. N nodes, P partitions, D dimensions.

    First nodes join, then partitions leave, then others join; all other changes refer to the
    cluster that this makes, in which new nodes and partitions come last; and removed nodes
    leave at the very end. ``Cluster`` has methods of the same names, each for one change. Nodes are
    given by name (``"n17"``), by number (17), by an expression as in a rule (``"zone=b,+ssd"``), by
    a mask, (N,) bool, or by a list of any of these; partitions likewise, with ``"group=orders"``
    and (P,) bool. A string is always a name or an expression, a number always an index.

    Parameters
    ----------
    down, up, drain, cordon : str, int, or sequence of them
        Nodes that are dead with all they hold; that are up again, whatever they were; that all
        replicas have to leave; that keep what they have and are given nothing more.
    gone : str, int, or sequence of them
        Nodes that are dead and will not come back; replicas are missing from them.
    empty_disks, fail_disks : str, int, or sequence of them
        Disks, by name or a pattern such as ``"*:/data/d2"``, that all replicas have to leave; that
        have failed with all they hold. Nodes hold no more than their other disks from then on.
    pin, unpin : str, int, or sequence of them
        Partitions whose replicas stay where they are (``Flag.PINNED``); that may move again.
    remove_nodes : str, int, or sequence of them
        Nodes that are taken out of the cluster. What stood on them stands nowhere, and is missing
        where it is wanted; other nodes keep their order and names.
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
    load_factor : float, mapping of str to float, array_like of float64, shape (P,), or None
        What all loads are multiplied by; or those of dimensions or, by name or ``"group=orders"``,
        of partitions; or those of each partition.
    replicas, voters : array_like of int32, shape () or (P,), mapping, or None
        Wanted numbers of all partitions, or of some by name, number or ``"group=orders"``. Hard
        limits of ``Rule.spread`` that spread the former number evenly over the domains whose nodes
        take replicas spread the new one evenly, unless ``rules`` or ``rule`` are given, too: of
        four replicas, instead of three, two may be in one of three racks.
    rules : sequence of Rule or None
        Rules in the place of those there are, as ``Cluster.replace`` takes them.
    rule : array_like of int32, shape (P,), mapping, or None
        Rule of each partition, or of some as ``replicas``.
    placement : Placement, array_like of int32 or str, or None
        Where replicas are now, such as the placement of an answer that was carried out.
    name : str
        What a sweep or a history calls it; what it does, if left empty.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
    >>> changed = c.apply(ek.Changes(down="n0", nodes={"capacity": [[9.0]] * 2}))
    >>> changed.nodes.alive.tolist()
    [False, True, True, True, True]
    """

    down: Which = ()
    up: Which = ()
    drain: Which = ()
    cordon: Which = ()
    gone: Which = ()
    empty_disks: Which = ()
    fail_disks: Which = ()
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
    load_factor: Factor | None = None
    replicas: Table | None = None
    voters: Table | None = None
    rules: Sequence[Rule] | None = None
    rule: Table | None = None
    placement: Placement | ArrayLike | Sequence[Sequence[Node]] | None = None
    name: str = ""

    @cached_property
    def named(self) -> frozenset[str]:
        """Names of the parameters that are given."""
        return frozenset(
            name for name in MAY_CHANGE
            if (value := getattr(self, name)) is not None
            and (name not in CHOICES or not _is_empty(value))
        )  # fmt: skip

    def describe(self) -> str:
        """Return its name, or what it does if it has none.

        Returns
        -------
        str
            For people, and to find it by.
        """
        if self.name:
            return self.name
        named, factor = self.named, cast("Any", self.load_factor)
        stated = [
            f"{verb.replace('_', ' ')} {_names_of(getattr(self, verb))}"
            for verb in CHOICES if verb in named
        ]  # fmt: skip
        if isinstance(factor, Mapping):
            stated += [
                f"{what} x {value:g}" if is_real(value) else f"load of {what}"
                for what, value in factor.items()
            ]
        elif factor is not None:
            stated.append(f"load x {factor:g}" if is_real(factor) else "load of each partition")
        given = [name for name in MAY_CHANGE[len(CHOICES) + 1 :] if name in named]
        stated += [f"new {name.replace('_', ' ')}" for name in given]
        return "; ".join(stated) or "as it is"


def _is_empty(which: Which) -> bool:
    if isinstance(which, tuple):  # as nearly all are: sweeps read thousands
        return not which
    return shape_of(which) != () and not len(cast("Any", which))


def _names_of(which: Which) -> str:
    """Return the chosen ones in words, numbers apart from names."""
    chosen: Any = listed(which)
    if not all(isinstance(one, str) or is_whole(one) for one in chosen):
        return "some"
    return ", ".join(one if isinstance(one, str) else f"#{int(one)}" for one in chosen)


Kind = TypeVar("Kind")


class Changeable:
    """Methods of a cluster for single changes, each of which returns another cluster.

    All are short for ``apply``, take what the parameters of ``Changes`` of their names take, and
    raise `InvalidInput` that names every problem.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]])
    >>> c.down("n0").pin("p1").nodes.alive.tolist()
    [False, True]
    >>> c.remove_nodes("n0").placement.node.tolist()
    [-1, 0]
    """

    nodes: Nodes
    topology: Topology
    partitions: Partitions
    placement: Placement

    def apply(self, changes: Changes) -> Self:
        """Return a cluster to which changes have happened, all at once.

        Parameters
        ----------
        changes : Changes
            ``down``, ``add_nodes``, ``pin`` and the like are short for one that says no more.

        Returns
        -------
        Cluster
            Validated, sharing all that does not change with this one.

        Raises
        ------
        InvalidInput
            Naming every problem, with its path and value.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
        >>> c.apply(ek.Changes(down="n0", load_factor=2.0)).partitions.load.voter[0].tolist()
        [2.0]
        """
        if not isinstance(changes, Changes):
            kind = type(changes).__name__
            raise InvalidInput([Fault("changes", kind, "must be evenkeel.Changes")])
        faults = FaultList()
        parts = changed_parts(faults, parts_of(self), changes)
        return _made(faults, self, parts)

    def down(self, *which: Which) -> Self:
        """Return a cluster in which nodes are dead, with all they hold."""
        return self.apply(Changes(down=_chosen_nodes(self, "down", which)))

    def up(self, *which: Which) -> Self:
        """Return a cluster in which nodes are up: alive, accepting, keeping, leading, not gone."""
        return self.apply(Changes(up=_chosen_nodes(self, "up", which)))

    def cordon(self, *which: Which) -> Self:
        """Return a cluster in which nodes keep what they have and take no more replicas."""
        return self.apply(Changes(cordon=_chosen_nodes(self, "cordon", which)))

    def drain(self, *which: Which) -> Self:
        """Return a cluster in which nodes stay alive, and all replicas have to leave them."""
        return self.apply(Changes(drain=_chosen_nodes(self, "drain", which)))

    def gone(self, *which: Which) -> Self:
        """Return a cluster in which nodes are dead and will not come back."""
        return self.apply(Changes(gone=_chosen_nodes(self, "gone", which)))

    def empty_disks(self, *which: Which) -> Self:
        """Return a cluster in which all replicas have to leave disks, by name or pattern."""
        return self.apply(Changes(empty_disks=_together("empty_disks", which)))

    def fail_disks(self, *which: Which) -> Self:
        """Return a cluster in which disks, by name or pattern, have failed."""
        return self.apply(Changes(fail_disks=_together("fail_disks", which)))

    def remove_nodes(self, *which: Which) -> Self:
        """Return a cluster without some nodes, and nothing on them."""
        return self.apply(Changes(remove_nodes=_chosen_nodes(self, "remove_nodes", which)))

    @known_keywords
    def pin(
        self,
        *which: Which,
        group: str | int | Sequence[str | int] | None = None,
        topic: str | Sequence[str] | None = None,
    ) -> Self:
        """Return a cluster in which partitions, or those of groups (topics), stay in place."""
        return self.apply(Changes(pin=_chosen_partitions(self, "pin", which, group, topic)))

    @known_keywords
    def unpin(
        self,
        *which: Which,
        group: str | int | Sequence[str | int] | None = None,
        topic: str | Sequence[str] | None = None,
    ) -> Self:
        """Return a cluster in which partitions, as ``pin`` takes them, may move again."""
        return self.apply(Changes(unpin=_chosen_partitions(self, "unpin", which, group, topic)))

    @known_arguments
    def add_nodes(
        self,
        capacity: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        like: Which | None = None,
        domains: Mapping[str, Labels] | None = None,
        tags: Mapping[str, ArrayLike] | None = None,
        attributes: Mapping[str, Labels] | None = None,
        watermark: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        lead_weight: ArrayLike | None = None,
        max_replicas: ArrayLike | None = None,
        stands_for: ArrayLike | None = None,
    ) -> Self:
        """Return a cluster with more nodes after those it has, empty and up by default.

        Parameters
        ----------
        capacity : array_like of float64, shape (n, D), optional
            Hard limit of each new node; may be left out where ``like`` is given.
        names : sequence of str, optional
            Counted on where the cluster's own names are counted.
        like : str, int, or sequence of them, optional
            A node, or one for each new one, whose capacity, weights, tags, attributes and domains
            the new ones have where they are given none of their own.
        domains : mapping of str to array_like, shape (n,), optional
            Label of each new node per tier of the cluster; labels may be new. None in tiers left
            out, which may not be those that rules limit and in which every node has a domain:
            nodes outside of these would escape the limits.
        tags, attributes : mapping of str to array_like, shape (n,), optional
            As ``from_arrays`` takes them; a new node carries no tag that is left out.
        watermark, weight, lead_weight, max_replicas, stands_for : array_like, optional
            As ``from_arrays`` takes them, for the new nodes.

        Returns
        -------
        Cluster
            Validated.

        Raises
        ------
        InvalidInput
            Naming every problem, with its path and value.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(
        ...     capacity=[[9.0]] * 2, load=[[1.0]] * 4, domains={"zone": ["a", "b"]}, replicas=1)
        >>> c.add_nodes([[9.0]], domains={"zone": ["c"]}).nodes.names[2]
        'n2'
        """
        given = {
            "capacity": capacity, "names": names, "like": like, "domains": domains, "tags": tags,
            "attributes": attributes, "watermark": watermark, "weight": weight,
            "lead_weight": lead_weight, "max_replicas": max_replicas, "stands_for": stands_for,
        }  # fmt: skip
        faults = FaultList()
        return _made(faults, self, _added(faults, parts_of(self), given))


def parts_of(cluster: Any) -> dict[str, Any]:
    """Return the fields of a cluster by name."""
    return {one.name: getattr(cluster, one.name) for one in fields(cluster)}


def _made(faults: FaultList, cluster: Kind, parts: Parts) -> Kind:
    """Return a cluster of other parts, which were validated while they were made."""
    faults.raise_if_any()
    vouch_for(parts)
    return replace(cluster, **parts)  # type: ignore[type-var]


def _arguments(path: str, which: Sequence[Which]) -> Iterator[tuple[str, Any]]:
    """Yield each argument with its path; names and numbers alone make one list."""
    if all(isinstance(one, str) or is_whole(one) for one in which):
        yield path, list(which)
    elif len(which) == 1:
        yield path, listed(which[0])
    else:
        yield from ((f"{path}[{i}]", listed(one)) for i, one in enumerate(which))


def _together(path: str, which: Sequence[Which]) -> list[Any]:
    """Return all that arguments name in one list."""
    return [one for _, some in _arguments(path, which) for one in some]


def _chosen_nodes(cluster: Changeable, path: str, which: Sequence[Which]) -> NDArray[np.int32]:
    """Return the nodes that arguments choose, each once."""
    faults = FaultList()
    found = [
        find_nodes(faults, at, cluster.nodes, cluster.topology, one)
        for at, one in _arguments(path, which)
    ]
    faults.raise_if_any()
    return np.unique(np.concatenate([np.zeros(0, np.int32), *found]))


def _chosen_partitions(
    cluster: Changeable,
    path: str,
    which: Sequence[Which],
    group: str | int | Sequence[str | int] | None,
    topic: str | Sequence[str] | None,
) -> NDArray[np.int64]:
    """Return partitions chosen one by one, and those of groups."""
    faults, partitions = FaultList(), cluster.partitions
    found: list[int] = []
    for at, one in _arguments(path, which):
        found += find_partitions(faults, at, partitions, one).tolist()
    for at, groups in (("group", group), ("topic", topic)):
        for one in () if groups is None else listed(groups):
            found += read_groups(faults, at, partitions, one, one)
    faults.raise_if_any()
    return np.unique(np.array(found, np.int64))


def changed_parts(faults: FaultList, parts: Parts, changes: Changes) -> dict[str, Any]:
    """Return the parts of a cluster after changes; note everything that is wrong with these."""
    named = changes.named
    if not isinstance(changes.name, str):
        faults.add("name", changes.name, "must be a string")
    parts, joined = _with_members(faults, parts, changes, named)
    given: dict[str, Any] = {}
    if "nodes" not in named or joined:
        given |= _states(faults, parts, changes, named)
    if joined:
        given |= {
            name: _whole_table(faults, name, getattr(changes, name), parts)
            for name in ARGUMENTS
            if name in named
        }
        given |= _disk_states(faults, parts["disks"], changes, named)
    elif "rules" in named:
        given["rules"] = changes.rules
    wanted = parts["partitions"].replicas
    parts = read_changes(faults, given, parts)
    if joined:
        if "replicas" in named:
            parts = _no_more_active(parts, wanted)
            if not named & {"rules", "rule"}:
                parts = _spread_evenly(parts, wanted)
        if "load_factor" in named:
            parts = _multiplied(faults, parts, changes.load_factor)
        parts = _pinned(faults, parts, changes, named)
    if "remove_nodes" in named and ("nodes" not in named or joined):
        parts = _without_nodes(parts, _nodes_of(faults, "remove_nodes", parts, changes))
    return parts


def _nodes_of(faults: FaultList, name: str, parts: Parts, changes: Changes) -> NDArray[np.int32]:
    return find_nodes(
        faults, name, parts["nodes"], parts["topology"], listed(getattr(changes, name))
    )


def listed(which: Any) -> Any:
    """Return one name or number as a list of it."""
    several = isinstance(which, Iterable) and not isinstance(which, str) and shape_of(which) != ()
    return which if several else [which]


def _whole_table(faults: FaultList, name: str, given: Any, parts: Parts) -> Any:
    """Return all rows of a table of which some are given one by one; anything else unchanged."""
    if not isinstance(given, Mapping) or name in ("rules", "placement"):
        return given
    nodes, partitions = parts["nodes"], parts["partitions"]
    if name == "capacity":
        table = nodes.capacity.copy()
    elif name in LOADS:
        table = getattr(partitions.load, LOADS[name]).copy()
    else:
        table = getattr(partitions, name).copy()
    for key, row in given.items():
        at = f"{name}[{key!r}]"
        if name == "capacity":
            where: Any = find_nodes(faults, at, nodes, parts["topology"], [key])
        else:
            where = find_partitions(faults, at, partitions, [key])
        table[where] = as_array(faults, at, row, table.dtype.type, table.shape[1:])
    return table


MOST_TIMES = 1e12  # the greatest factor on a load


def by_dimension(
    faults: FaultList, path: str, dimensions: Sequence[str], given: Any
) -> NDArray[np.float64]:
    """Return a factor, or one by dimension, as one for each dimension, (D,)."""
    rates = given if isinstance(given, Mapping) else dict.fromkeys(dimensions, given)
    factor = np.ones(len(dimensions))
    for name, value in rates.items():
        at = f"{path}[{name!r}]" if isinstance(given, Mapping) else path
        if name not in dimensions:
            faults.add(at, name, f"unknown dimension; known: {[*dimensions]}")
        elif is_real(value) and 0.0 <= value <= MOST_TIMES:
            factor[dimensions.index(name)] = float(value)
        elif not faults.about(at):
            faults.add(at, value, f"must be a factor, 0 to {MOST_TIMES:g}")
    return factor


def read_factor(faults: FaultList, path: str, parts: Parts, given: Any) -> NDArray[np.float64]:
    """Return what loads are multiplied by, to be broadcast to (P, D)."""
    partitions, dimensions = parts["partitions"], parts["dimensions"]
    if not isinstance(given, Mapping):
        if shape_of(given) == ():
            return by_dimension(faults, path, dimensions, given)[None]
        factor = as_array(faults, path, given, np.float64, (len(partitions),))
        wrong = ~((factor >= 0.0) & (factor <= MOST_TIMES))
        list_entries(faults, path, factor, wrong, f"must be a factor, 0 to {MOST_TIMES:g}")
        return factor[:, None]
    ours = {key: one for key, one in given.items() if key in dimensions}
    table = np.tile(by_dimension(faults, path, dimensions, ours), (len(partitions), 1))
    for key in [one for one in given if one not in ours]:
        at, inside = f"{path}[{key!r}]", FaultList()
        which = find_partitions(inside, at, partitions, [key])
        for one in inside.faults:
            faults.add(at, key, f"{one.message}; dimensions are {[*dimensions]}")
        table[which] = by_dimension(faults, at, dimensions, given[key])
    return table


def multiplied(faults: FaultList, path: str, load: Loads, factor: NDArray[np.float64]) -> Loads:
    """Return loads times factors that broadcast to (P, D); roles that share an array still do."""
    with np.errstate(over="ignore"):
        made = Loads(*_shared(load, lambda one: one * factor))
    if not all(np.isfinite(one).all() for one in (made.leader, made.voter, made.non_voter)):
        faults.add(path, float(factor.max()), "makes a load infinite")
    return made


def _multiplied(faults: FaultList, parts: Parts, given: Any) -> dict[str, Any]:
    """Return the parts with loads multiplied."""
    partitions, inside = parts["partitions"], FaultList()
    factor = read_factor(inside, "load_factor", parts, given)
    faults.faults += inside.faults
    if inside or (factor == 1.0).all():
        return dict(parts)
    load = multiplied(faults, "load_factor", partitions.load, factor)
    return {**parts, "partitions": replace(partitions, load=load)}


def _no_more_active(parts: Parts, before: NDArray[np.int32]) -> dict[str, Any]:
    """Return the parts in which none of fewer replicas than ``before (P,)`` needs more live."""
    partitions = parts["partitions"]
    now = partitions.replicas
    least = np.where(now < before, np.minimum(partitions.min_active, now), partitions.min_active)
    return {**parts, "partitions": replace(partitions, min_active=read_only(least))}


def _spread_evenly(parts: Parts, then: NDArray[np.int32]) -> dict[str, Any]:
    """Return the parts whose even spreads of ``then (P,)`` replicas are even for those wanted."""
    partitions, rules = parts["partitions"], [*parts["rules"]]
    now, rule = partitions.replicas, partitions.rule.copy()
    bound = (then != now) & (rule >= 0)
    for r, old, new in np.unique(np.stack([rule, then, now], 1)[bound], axis=0).tolist():
        own = dict[str, int]()
        for tier, amount in rules[r].spread.items():
            count = len(domains_left(rules[r], parts["nodes"], parts["topology"], tier))
            even = -(-new // max(count, 1))
            if count and isinstance(amount, int) and amount == -(-old // count) != even:
                own[tier] = even
        if own:
            rule[bound & (partitions.rule == r) & (then == old) & (now == new)] = len(rules)
            rules.append(replace(rules[r], spread={**rules[r].spread, **own}))
    if len(rules) == len(parts["rules"]):
        return dict(parts)
    partitions = replace(partitions, rule=read_only(rule))
    return {**parts, "rules": tuple(rules), "partitions": partitions}


def _pinned(
    faults: FaultList, parts: Parts, changes: Changes, named: frozenset[str]
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
        placement = _with_pins(placement, held, stays=name == "pin")
    return {**parts, "placement": placement}


def _with_pins(placement: Placement, held: NDArray[np.bool_], *, stays: bool) -> Placement:
    """Return a placement with the replicas of ``held (P,)`` partitions pinned, or no more."""
    flags = placement.flags.copy()
    rows = held[placement.owner]
    flags[rows] = (flags[rows] | Flag.PINNED) if stays else (flags[rows] & ~Flag.PINNED)
    return replace(placement, flags=read_only(flags))


def _with_members(
    faults: FaultList, parts: Parts, changes: Changes, named: frozenset[str]
) -> tuple[dict[str, Any], bool]:
    """Return parts with other nodes and partitions, and whether nothing was wrong with these."""
    parts = dict(parts)
    if "nodes" in named:
        more = _keywords(faults, "nodes", changes.nodes, NewNodes.__annotations__)
        parts = _noted(faults, "nodes", _added, parts, more)
    if "drop" in named:
        which = find_partitions(faults, "drop", parts["partitions"], listed(changes.drop))
        parts = _without_partitions(parts, which)
    if "partitions" in named:
        more = _keywords(faults, "partitions", changes.partitions, NewPartitions.__annotations__)
        if more.get("load") is None:
            faults.add("partitions.load", None, "must be given: a row for each that joins")
        else:
            parts = _noted(faults, "partitions", _with_partitions, parts, more)
    return parts, not faults


def _noted(
    faults: FaultList, path: str, make: Any, parts: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Return the changed parts, or the parts unchanged with errors noted below a path."""
    inside = FaultList()
    made: dict[str, Any] = make(inside, parts, given)
    faults.take(inside, f"{path}.")
    return parts if inside else made


def _keywords(faults: FaultList, path: str, given: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of those that join; note words that are not known."""
    entries = entries_of(faults, path, given)
    inside = FaultList()
    check_keywords(inside, entries, [*known])
    faults.take(inside, f"{path}.")
    return {name: value for name, value in entries.items() if name in known}


def _states(
    faults: FaultList, parts: Parts, changes: Changes, named: frozenset[str]
) -> dict[str, Any]:
    """Return the flags of nodes after some of them went into another state."""
    nodes: Nodes = parts["nodes"]
    flags: dict[str, Any] = {}
    state_of = np.full(len(nodes), "", object)
    for state, values in STATES.items():
        if state not in named:
            continue
        which = _nodes_of(faults, state, parts, changes)
        for n in which[state_of[which] != ""].tolist():
            faults.add(state, nodes.names[n], f"is also {state_of[n]}")
        state_of[which] = state
        for name, value in values.items():
            flags.setdefault(name, getattr(nodes, name).copy())[which] = value
    return flags


def _disk_states(
    faults: FaultList, disks: Disks | None, changes: Changes, named: frozenset[str]
) -> dict[str, Any]:
    """Return the disks after some of them went into another state."""
    for change, state in DISK_STATES.items():
        if change not in named:
            continue
        which = listed(getattr(changes, change))
        if disks is None:
            faults.add(change, which, "the nodes have no disks")
            return {}
        found = find_disks(faults, change, disks, which)
        states = disks.state.copy()
        states[found] = np.maximum(states[found], state)
        disks = Disks(disks.node, disks.capacity, states, disks.names)
    return {"disks": disks} if named & DISK_STATES.keys() else {}


# arguments that give the number of partitions that join; the first one given counts
COUNTED_BY = ("load", "leader_load", "non_voter_load", "names", "placement", "replicas")


def _without_partitions(parts: Parts, which: NDArray[np.int64]) -> dict[str, Any]:
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
            disk=None if placement.disk is None else read_only(placement.disk[rows]),
            **{name: read_only(getattr(placement, name)[rows]) for name in PER_REPLICA},
        ),
        "forbidden": read_only(np.stack([place[banned[:, 0]], banned[:, 1]], 1).astype(np.int32)),
    }  # fmt: skip


def _with_partitions(faults: FaultList, parts: Parts, given: Given) -> dict[str, Any]:
    """Return the parts of a cluster with more partitions after those it has."""
    given = by_column(faults, given, parts["dimensions"])
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
    names = _joined_names(faults, "names", old.names, given.get("names"), more, "p")
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
            disk=None if placement.disk is None else read_only(
                np.concatenate([placement.disk, np.full(len(rows.node), -1, np.int32)])
            ),
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


def _padded(group_rule: NDArray[np.int32], groups: int) -> NDArray[np.int32]:
    """Give groups that are new no rule."""
    new = np.full(groups - len(group_rule), -1, np.int32)
    return read_only(np.concatenate([group_rule, new]))


def _starts(width: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows of these widths start, and the end."""
    return np.concatenate([[0], np.cumsum(width)]).astype(np.int64)


def _added(faults: FaultList, parts: Parts, given: Given) -> dict[str, Any]:
    """Return the parts of a cluster with more nodes after those of another, each in its domains."""
    inside = FaultList()
    given = _like(inside, parts, given)
    if inside:
        faults.faults += inside.faults
        return dict(parts)
    if given.get("capacity") is None:
        faults.add("capacity", None, "must be given: a row for each node that joins")
        return dict(parts)
    _check_domains_given(faults, parts, given, length([given["capacity"]]))
    return joined(faults, parts, given)


# columns that new nodes have of those they are like
COPIED = ("capacity", "watermark", "weight", "lead_weight", "max_replicas")


def _like(faults: FaultList, parts: Parts, given: Given) -> Given:
    """Return what new nodes are given, with what they have of nodes that they are like."""
    like = given.get("like")
    if like is None:
        return given
    old, topology = parts["nodes"], parts["topology"]
    chosen: list[int] = []
    for i, name in enumerate(items_of(faults, "like", listed(like))):
        inside = FaultList()
        chosen += find_nodes(inside, "like", old, topology, [name])[:1].tolist()
        for one in inside.faults:
            faults.add(f"like[{i}]", one.value, one.message)
    count = length([given.get("capacity"), given.get("names")]) or len(chosen)
    if faults or len(chosen) not in (1, count):
        if not faults:
            faults.add("like", len(chosen), f"needs one node, or {count}")
        return given
    at = np.resize(chosen, count)
    own: dict[str, Any] = {name: getattr(old, name)[at] for name in COPIED}
    own["tags"] = {tag: mask[at] for tag, mask in old.tags.items()}
    own["attributes"] = {
        key: _texts(codes[at], meaning) for key, (codes, meaning) in old.attributes.items()
    }
    own["domains"] = {
        tier: _texts(topology.label[row, at], topology.label_names[row])
        for row, tier in enumerate(topology.tiers)
    }
    stated = {name: one for name, one in given.items() if one is not None}
    own["domains"] |= entries_of(faults, "domains", stated.pop("domains", {}))
    return {**own, **stated, "at": at}


def joined(faults: FaultList, parts: Parts, given: Given) -> dict[str, Any]:
    """Return the parts with more nodes, which may be outside every domain of a limited tier."""
    old, topology, dimensions = parts["nodes"], parts["topology"], len(parts["dimensions"])
    given = by_column(faults, given, parts["dimensions"])
    more = length([given["capacity"]])
    labels = _joined_labels(faults, "domains", labels_by_tier(topology), given, len(old), more)
    wider = Topology.read(faults, labels, len(old) + more, list(topology.crossing))
    wider = _with_sizes(faults, topology, wider, given.get("at"))
    new = read_nodes(faults, {**given, "attributes": None}, Sizes(more, 0, dimensions), wider, None)
    stated = {key: _texts(*at) for key, at in old.attributes.items()}
    labels = _joined_labels(faults, "attributes", stated, given, len(old), more)
    nodes = Nodes(
        names=_joined_names(faults, "names", old.names, given.get("names"), more, "n"),
        tags={
            tag: read_only(np.concatenate([
                one.tags.get(tag, np.zeros(len(one), bool)) for one in (old, new)
            ]))
            for tag in {**old.tags, **new.tags}
        },
        attributes={
            key: read_labels(faults, f"attributes[{key!r}]", at, len(old) + more)
            for key, at in labels.items()
        },
        **{
            name: read_only(np.concatenate([getattr(old, name), getattr(new, name)]))
            for name in ("capacity", "watermark", *COLUMNS)
        },
    )  # fmt: skip
    rules = {f"rules[{i}]": rule for i, rule in enumerate(parts["rules"])}
    check_nodes(faults, nodes)
    check_rules(faults, rules, nodes, wider, parts["partitions"])
    return {**parts, "nodes": nodes, "topology": wider}


def _without_nodes(parts: Parts, which: NDArray[np.int32]) -> dict[str, Any]:
    """Return the parts of a cluster without some nodes; what stood on them stands nowhere."""
    old, topology, placement = parts["nodes"], parts["topology"], parts["placement"]
    stays = np.ones(len(old), bool)
    stays[which] = False
    left = np.flatnonzero(stays)
    number = np.append(np.where(stays, np.cumsum(stays) - 1, -1), -1).astype(np.int32)
    names = [old.names[n] for n in left.tolist()]
    nodes = Nodes(
        names=Names(names, len(names), ""),
        tags={tag: read_only(has[stays]) for tag, has in old.tags.items()},
        attributes={key: (read_only(code[stays]), text) for key, (code, text)
                    in old.attributes.items()},
        **{
            name: read_only(getattr(old, name)[stays])
            for name in ("capacity", "watermark", *COLUMNS)
        },
    )  # fmt: skip
    nodes = replace(nodes, stands_for=read_only(number[nodes.stands_for]))
    labels: dict[str, Any] = {
        tier: [stated[n] for n in left.tolist()]
        for tier, stated in labels_by_tier(topology).items()
    }
    fewer = Topology.read(FaultList(), labels, len(left), list(topology.crossing))
    shared = {}
    for tier, amounts in topology.tier_capacity.items():
        row = topology.tier_index(tier)
        was, now = topology.domain[row, left], fewer.domain[row]
        table = np.full((int(fewer.domain_count[row]), amounts.shape[1]), np.inf)
        table[now[now >= 0]] = amounts[was[now >= 0]]
        shared[tier] = read_only(table)
    distance = topology.tier_distance
    if distance.ndim == 2:
        distance = read_only(distance[np.ix_(left, left)])
    banned = parts["forbidden"]
    banned = banned[stays[banned[:, 1]]]
    partitions = parts["partitions"]
    node = number[placement.node]
    leader, at = placement.leader.copy(), placement.leader_replica
    leader[(leader >= 0) & (node[np.maximum(at, 0)] < 0)] = -1
    disks, disk_number = parts["disks"], np.array([-1], np.int32)
    if disks is not None:
        kept = stays[disks.node]
        disk_number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)
        disks = Disks(
            number[disks.node[kept]], disks.capacity[kept], disks.state[kept],
            [name for name, stay in zip(disks.names, kept.tolist(), strict=True) if stay],
        )  # fmt: skip
    return {
        **parts,
        "nodes": nodes,
        "topology": replace(fewer, tier_capacity=shared, tier_distance=distance),
        "placement": replace(
            placement,
            node=read_only(node),
            leader=read_only(leader),
            disk=None if placement.disk is None else read_only(disk_number[placement.disk]),
        ),
        "partitions": replace(partitions, attached=read_only(number[partitions.attached])),
        "disks": disks,
        "forbidden": read_only(np.stack([banned[:, 0], number[banned[:, 1]]], 1)),
    }


def _joined_labels(
    faults: FaultList, path: str, old: Mapping[str, list[Any]], given: Given, count: int, more: int
) -> dict[str, list[Any]]:
    """Return labels of all nodes by key; None for new nodes where a key is left out."""
    stated = {} if given.get(path) is None else entries_of(faults, path, given[path])
    joined = {key: labels + [None] * more for key, labels in old.items()}
    for key, labels in stated.items():
        codes, meaning = read_labels(faults, f"{path}[{key!r}]", labels, more)
        joined[key] = old.get(key, [None] * count) + _texts(codes, meaning)
    return joined


def _texts(codes: NDArray[np.int32], meaning: Sequence[str]) -> list[str | None]:
    return [meaning[code] if code >= 0 else None for code in codes.tolist()]


def _joined_names(
    faults: FaultList, path: str, old: Names, given: Any, more: int, letter: str
) -> Names:
    """Return the names of all; new ones are counted on where none are given."""
    count = len(old) + more
    if given is None and old.counted:
        return old.counted_to(count)
    new = [f"{letter}{i}" for i in range(len(old), count)]
    if given is not None:
        new = items_of(faults, path, given)
    if len(new) != more:
        faults.add(path, len(new), f"needs {more} names")
        return old.counted_to(count)
    return Names.read(faults, path, [*old, *new], count, letter)


def _with_sizes(
    faults: FaultList, old: Topology, new: Topology, like: NDArray[np.int64] | None
) -> Topology:
    """Return a topology with the capacities and distances of another that it contains."""
    shared = {}
    for tier, amounts in old.tier_capacity.items():
        row = new.tier_index(tier)
        was, now = old.domain[row], new.domain[row, : old.domain.shape[1]]
        wider = np.full((int(new.domain_count[row]), amounts.shape[1]), np.inf)
        wider[now[was >= 0]] = amounts[was[was >= 0]]
        shared[tier] = read_only(wider)
    distance = new.tier_distance
    if old.tier_distance.ndim == 1 and len(old) == len(new):
        distance = old.tier_distance
    elif old.tier_distance.ndim == 2 and like is not None:
        at = np.concatenate([np.arange(len(old.tier_distance)), like])
        distance = read_only(np.ascontiguousarray(old.tier_distance[np.ix_(at, at)]))
    elif old.tier_distance.ndim == 2:
        message = "is between the old nodes only: give distances by tier, by Cluster.replace, first"
        faults.add("tier_distance", old.tier_distance.shape, message)
    return replace(new, tier_capacity=shared, tier_distance=distance)


LISTED = 10  # nodes without a domain that are listed; the others are counted


def limited_tiers(rules: Sequence[Rule], topology: Topology) -> list[str]:
    """List the tiers that rules set limits on and that every node has a domain of.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[], domains={"zone": ["a", "b"], "rack": ["x", None]},
    ...     rules=[Rule(spread={"zone": 1, "rack": 1})])
    >>> limited_tiers(c.rules, c.topology)
    ['zone']
    """
    limited = {limit.tier for rule in rules for limit in rule.limits()}
    return [
        tier
        for row, tier in enumerate(topology.tiers)
        if tier in limited and len(topology.label[row]) and (topology.label[row] >= 0).all()
    ]


def _check_domains_given(faults: FaultList, parts: Parts, given: Given, more: int) -> None:
    """Note tiers that the cluster does not have, and new nodes that rules would not count."""
    topology: Topology = parts["topology"]
    stated = given.get("domains")
    stated = stated if isinstance(stated, Mapping) else {}
    for tier in stated:
        if isinstance(tier, str) and tier not in topology.tiers:
            known = list(topology.tiers)
            message = f"unknown tier; known: {known}{did_you_mean(tier, known)}"
            faults.add(f"domains[{tier!r}]", tier, message)
    for tier in limited_tiers(parts["rules"], topology):
        inside = FaultList()
        codes, _ = read_labels(inside, "", stated.get(tier, [None] * more), more)
        strays = [] if inside else np.flatnonzero(codes < 0).tolist()
        if strays:
            shown = strays if len(strays) <= LISTED else [*strays[:LISTED], "..."]
            message = f"new nodes have none, and rules count replicas by {tier}: give each its own"
            faults.add(f"domains[{tier!r}]", shown, message)
