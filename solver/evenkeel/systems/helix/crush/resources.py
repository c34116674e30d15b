"""Resources of Helix, their replicas by state, and the nodes that they may use, from a cluster.

A group is a resource. Nodes stand in the order of their names, as in Helix's controller. A node
that is alive, accepts and keeps replicas is *live* in Helix; a node that keeps replicas but is not
alive or does not accept is offline or disabled within its delay window, and *active*; a dead node
still counts in the tree; an evacuating or removed node is not in it.

References
----------
Apache Helix, ``StateModelDefinition.getStateCountMap``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import Demands, partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.topology import NODE_TIER
from evenkeel.systems.helix.crush.hashed import HashedNames, hashed, text_order
from evenkeel.systems.helix.crush.tree import DEFAULT_WEIGHT, Tree
from evenkeel.systems.helix.options import States


class Resource(NamedTuple):
    """Partitions that are placed together."""

    name: str  # name of their group
    rows: NDArray[np.int64]  # (P,) the partitions
    partitions: HashedNames  # their names
    states: tuple[int, ...]  # replicas in each state, the top state first


@dataclass(frozen=True, eq=False)
class Site:
    """Nodes, and the resources that may use exactly these. n nodes."""

    nodes: NDArray[np.int64]  # (n,) their indices in the cluster, in the order of their names
    tree: Tree  # the same nodes, all of them live
    live: NDArray[np.bool_]  # (n,) nodes that are up and enabled
    # (n,) these, and the ones that keep their places because they may soon be back
    active: NDArray[np.bool_]
    resources: tuple[Resource, ...]  # what they hold

    def with_live(self, live: NDArray[np.bool_]) -> Tree:
        """Return the tree with some nodes live."""
        return replace(self.tree, live=live)


def sites(cluster: Cluster, options: States, zone: str | None) -> list[Site]:
    """Sort partitions into resources, and resources by the nodes that they may use."""
    faults = FaultList()
    known = [*cluster.topology.tiers, NODE_TIER]
    if zone is not None and zone not in known:
        faults.add("options.zone", zone, f"unknown tier; known: {known}")
    faults.raise_if_any()
    scope = partition_scope(cluster)
    tiers = [zone_tier(cluster, one) if zone is None else zone for one in scope.demands]
    kinds: dict[tuple[bytes, str], int] = {}
    kind = [
        kinds.setdefault((mask.tobytes(), tier), len(kinds))
        for mask, tier in zip(scope.open, tiers, strict=True)
    ]
    site_of = np.array(kind, np.int64)[scope.rule]
    names = hashed(cluster.partitions.names)
    found = []
    for number, (mask, tier) in enumerate(kinds):
        site = _site(cluster, np.frombuffer(mask, np.bool_), tier)
        rows = np.flatnonzero(site_of == number)
        resources = _resources(cluster, names, rows, options, int(site.active.sum()), faults)
        if resources:
            found.append(replace(site, resources=tuple(resources)))
    faults.raise_if_any()
    return found


def zone_tier(cluster: Cluster, demands: Demands) -> str:
    """Choose the tier of the fault zones: the widest on which a rule spreads replicas."""
    spread = {limit.tier for limit in demands.limits if limit.kind == "spread"}
    return next((tier for tier in cluster.topology.tiers if tier in spread), NODE_TIER)


def _site(cluster: Cluster, allowed: NDArray[np.bool_], tier: str) -> Site:
    """Build the tree of the nodes that are allowed."""
    nodes = cluster.nodes
    evacuating = nodes.alive & ~nodes.keeps
    by_name = text_order(nodes.names)
    chosen = by_name[(allowed & ~evacuating & ~nodes.gone)[by_name]]
    zones = None
    if tier != NODE_TIER:
        row = cluster.topology.tier_index(tier)
        labels = [*cluster.topology.label_names[row], f"Default_{tier}"]
        zones = [labels[code] for code in cluster.topology.label[row, chosen].tolist()]
    weight = np.rint(nodes.weight[chosen] * DEFAULT_WEIGHT).astype(np.int64)
    tree = Tree.of([nodes.names[n] for n in chosen.tolist()], zones, weight)
    live = nodes.may_receive[chosen]
    return Site(chosen, tree, live, live | nodes.may_hold[chosen], ())


def _resources(
    cluster: Cluster,
    names: HashedNames,
    rows: NDArray[np.int64],
    options: States,
    active: int,
    faults: FaultList,
) -> Sequence[Resource]:
    """Sort partitions by group and number of replicas."""
    group = cluster.partitions.group[rows].astype(np.int64)
    wanted = cluster.partitions.replicas[rows].astype(np.int64)
    if options.replicas is not None:
        wanted[:] = active
    slots = np.diff(cluster.placement.first)[rows]
    key = group * (int(wanted.max(initial=0)) + 1) + wanted
    beat()
    order = np.argsort(key, kind="stable")
    beat()
    found = []
    for part in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        if len(part) == 0:
            continue
        name = cluster.partitions.group_names[int(group[part[0]])]
        counts = state_counts(options.states, active, int(wanted[part[0]]))
        states = tuple(counts[state] for state in options.states if state in counts)
        if sum(states) > slots[part].min():
            message = f"has fewer slots than the {sum(states)} replicas of a partition"
            faults.add(f"group[{name!r}]", int(slots[part].min()), message)
        elif states:
            whole = len(part) == len(names)
            members = names if whole else names.some(rows[part])
            found.append(Resource(name, rows[part], members, states))
    return found


ANY_LIVE = "ANY_LIVEINSTANCE"
"""As many replicas as there are eligible nodes."""

CANDIDATES, REPLICAS = "N", "R"
"""Counts that stand for all candidates, and for the replicas that are left."""


def state_counts(model: Mapping[str, int | str], candidates: int, replicas: int) -> dict[str, int]:
    """Count the replicas in each state."""
    counts: dict[str, int] = {}
    for state, number in model.items():
        if candidates <= 0:
            break
        if number == CANDIDATES:
            counts[state] = candidates
            replicas -= candidates
            candidates = 0
        elif number != REPLICAS and str(number).isdigit() and int(number) > 0:
            counts[state] = min(candidates, int(number))
            candidates -= counts[state]
            replicas -= counts[state]
    for state, number in model.items():
        if number == REPLICAS and candidates > 0 and replicas > 0:
            counts[state] = min(candidates, replicas)
            break
    return counts


def wanted_replicas(stated: int | str, eligible: int) -> int:
    """Read how many replicas a group wants."""
    return eligible if stated == ANY_LIVE else int(stated)
