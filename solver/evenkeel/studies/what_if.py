"""What if: a change to a cluster as a person writes it, and the cluster that would be."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.partitions import Loads
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.containers import items_of
from evenkeel.model.reading.selection import find_nodes
from evenkeel.model.topology import NODE_TIER
from evenkeel.studies.flat import Flat, flat, unflat

PAIRS = " pairs"
"""What follows the name of a tier to lose two of its domains at once."""

COUNTED_ONCE = ("slots", "owner", "leader_replica", "leader_node")
"""What a placement counts when it is first asked, whatever the state of the nodes."""

STANDING_ONCE = ("node_row", "replicas", "leaders", "loads")
"""What is counted by node, whatever the state of the nodes."""


@dataclass(frozen=True, eq=False)
class WhatIf:
    """One scenario: nodes that are lost, nodes that come back or join, and loads that change.

    Nodes are given by name, by number, or by an expression as in a rule: ``"rack=r7"``, ``"+ssd"``.

    Parameters
    ----------
    name : str
        What it is called in the results; what it does, if left empty.
    lost : sequence of (str or int)
        Nodes that are dead, with all they hold.
    back : sequence of (str or int)
        Nodes that are up, whatever they were; new ones are part of the cluster, dead so far.
    load : float, mapping of str to float, or array_like of float64, shape (P,)
        Factor on all loads, on those of some dimensions, or on those of each partition.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[2.0]] * 3, placement=[[0, 1]] * 3)
    >>> found = ek.sweep(c, [ek.WhatIf("Monday", load=1.5), ek.WhatIf(lost=["n0", "n1"])])
    >>> found.names, found.fits.tolist()
    (('Monday', 'lost n0, n1'), [True, False])
    """

    name: str = ""
    lost: Sequence[str | int] = ()
    back: Sequence[str | int] = ()
    load: float | Mapping[str, float] | ArrayLike = 1.0

    def describe(self) -> str:
        """Return its name, or what it does if it has none.

        Returns
        -------
        str
            For people, and to find it by.
        """
        if self.name:
            return self.name
        parts = [
            f"{verb} {', '.join(_called(node) for node in nodes)}"
            for verb, nodes in (("lost", self.lost), ("back", self.back))
            if len(nodes)
        ]
        if isinstance(self.load, Mapping):
            parts += [f"{dimension} x {factor:g}" for dimension, factor in self.load.items()]
        elif np.ndim(self.load):
            parts.append("load of each partition")
        elif self.load != 1.0:
            parts.append(f"load x {self.load:g}")
        return "; ".join(parts) or "as it is"


def _called(node: str | int) -> str:
    """Tell the node of a number from the node of that name."""
    return node if isinstance(node, str) else f"#{int(node)}"


class Change(NamedTuple):
    """A scenario in numbers. P partitions, D dimensions.

    Parameters
    ----------
    name : str
        What it is called.
    lost, back : ndarray of int32, shape (n,)
        Nodes.
    factor : ndarray of float64, shape (1, D) or (P, 1), or None
        What loads are multiplied by; None for nothing.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> change = ek.sweep(c, ek.WhatIf("Monday", lost=["n2"])).changes[0]
    >>> change.name, change.lost.tolist(), change.factor is None
    ('Monday', [2], True)
    """

    name: str
    lost: NDArray[np.int32]
    back: NDArray[np.int32]
    factor: NDArray[np.float64] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        nodes = (flat(array, np.int32) for array in (self.lost, self.back))
        return _unpacked, (self.name, *nodes, self.factor)


def _unpacked(name: str, lost: Flat, back: Flat, factor: NDArray[np.float64] | None) -> Change:
    return Change(name, unflat(lost, np.int32), unflat(back, np.int32), factor)


def read_changes(
    faults: FaultList, cluster: Cluster, scenarios: str | WhatIf | Sequence[str | WhatIf]
) -> list[Change]:
    """Turn scenarios as a person writes them into numbers."""
    if isinstance(scenarios, str | WhatIf):
        scenarios = [scenarios]
    found: list[Change] = []
    for i, one in enumerate(items_of(faults, "scenarios", scenarios)):
        path = f"scenarios[{i}]"
        if isinstance(one, str):
            found += _losses(faults, path, cluster, one)
        elif isinstance(one, WhatIf):
            found.append(_change(faults, path, cluster, one))
        else:
            faults.add(path, one, "must be a WhatIf, or the name of a tier")
    seen: set[str] = set()
    for change in found:
        if change.name in seen:
            faults.add("scenarios", change.name, "is the name of two scenarios")
        seen.add(change.name)
    return found


def changed(cluster: Cluster, change: Change) -> Cluster:
    """Return the cluster that would be."""
    for name in COUNTED_ONCE:
        getattr(cluster.placement, name)
    standing = PlacementCounts.of(cluster, cluster.placement)
    for name in STANDING_ONCE:
        getattr(standing, name)
    broken_limits(standing)
    # a placement also keeps what was counted of it for one cluster, so that each needs its own
    made = cluster.with_placement(copy.copy(cluster.placement))
    if len(change.lost) or len(change.back):
        made = replace(made, nodes=replace(cluster.nodes, **_states(cluster, change)))
    if change.factor is not None:
        load = multiplied(cluster.partitions.load, change.factor)
        made = replace(made, partitions=replace(cluster.partitions, load=load))
    return made


def multiplied(load: Loads, factor: NDArray[np.float64]) -> Loads:
    """Return loads times factors that broadcast to (P, D); roles that share an array still do."""
    scaled: dict[int, NDArray[np.float64]] = {}
    for each in (load.leader, load.voter, load.non_voter):
        if id(each) not in scaled:
            scaled[id(each)] = read_only(each * factor)
    return Loads(*(scaled[id(each)] for each in (load.leader, load.voter, load.non_voter)))


def _states(cluster: Cluster, change: Change) -> dict[str, Any]:
    """Flags of the nodes after a change: the lost are dead, those back are up."""
    flags = {
        name: getattr(cluster.nodes, name).copy()
        for name in ("alive", "accepts", "keeps", "leads", "gone")
    }
    for name in ("alive", "keeps"):
        flags[name][change.lost] = False
    for name, flag in flags.items():
        flag[change.back] = name != "gone"
    return {name: read_only(flag) for name, flag in flags.items()}


def _losses(faults: FaultList, path: str, cluster: Cluster, text: str) -> Iterator[Change]:
    """Losses of each domain of a tier, or of every two; domains that hold nothing are left out."""
    topology = cluster.topology
    tiers = dict.fromkeys([*topology.tiers, NODE_TIER])
    tier = text if text in tiers else text.removesuffix(PAIRS)
    if tier not in tiers:
        faults.add(path, text, f"unknown tier; tiers, alone or with 'pairs', are {[*tiers]}")
        return
    row = topology.tier_index(tier)
    there = cluster.nodes.carries
    domain = np.where(there, topology.domain_with_nodes[row], -1)
    names = cluster.nodes.names
    order = np.argsort(domain, kind="stable").astype(np.int32)
    found, start = np.unique(domain[order], return_index=True)
    members = {
        names[d] if row == len(topology) else topology.domain_name(row, d): held
        for d, held in zip(found.tolist(), np.split(order, start)[1:], strict=True)
        if d >= 0
    }
    no_nodes = np.zeros(0, np.int32)
    for several in combinations(members, 1 if tier == text else 2):
        lost = np.concatenate([members[one] for one in several])
        yield Change(f"{tier} {' + '.join(several)}", lost, no_nodes)


def _change(faults: FaultList, path: str, cluster: Cluster, given: WhatIf) -> Change:
    if not isinstance(given.name, str):
        faults.add(f"{path}.name", given.name, "must be a string")
    lost = find_nodes(faults, f"{path}.lost", cluster.nodes, cluster.topology, given.lost)
    back = find_nodes(faults, f"{path}.back", cluster.nodes, cluster.topology, given.back)
    for n in np.intersect1d(lost, back).tolist():
        faults.add(f"{path}.back", cluster.nodes.names[n], "is lost in the same scenario")
    factor = _factor(faults, f"{path}.load", cluster, given.load)
    name = "" if faults.about(path) else given.describe()
    return Change(name or path, lost, back, factor)


def _factor(
    faults: FaultList, path: str, cluster: Cluster, given: float | Mapping[str, float] | ArrayLike
) -> NDArray[np.float64] | None:
    """What loads are multiplied by, to be broadcast to (P, D); None for 1."""
    shape = (len(cluster.partitions), len(cluster.dimensions))
    if isinstance(given, Mapping):
        for name in set(given) - set(cluster.dimensions):
            faults.add(path, name, f"unknown dimension; known: {list(cluster.dimensions)}")
        given = [given.get(name, 1.0) for name in cluster.dimensions]
        wanted, form = (shape[1],), (1, -1)
    else:
        wanted, form = (shape[0],), (-1, 1)
    try:
        factor = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        faults.add(path, given, "must be a number, numbers by dimension, or one per partition")
        return None
    if factor.shape not in ((), wanted):
        faults.add(path, factor.shape, f"needs one factor per partition, ({shape[0]},)")
        return None
    bad = ~(np.isfinite(factor) & (factor >= 0.0))
    if bad.any():
        faults.add(path, float(factor[bad].flat[0]), "must be finite and 0 or more")
        return None
    if (factor == 1.0).all():
        return None
    factor = np.broadcast_to(factor, (1, 1)) if factor.ndim == 0 else factor.reshape(form)
    load = cluster.partitions.load
    with np.errstate(over="ignore"):
        for each in (load.leader, load.voter, load.non_voter):
            if not np.isfinite((each * factor).max(initial=0.0)):
                faults.add(path, float(factor.max()), "makes a load infinite")
                return None
    return np.ascontiguousarray(factor)
