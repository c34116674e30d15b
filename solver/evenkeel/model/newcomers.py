"""Add nodes that resemble existing nodes of a cluster."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.changes import joined, parts_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.intake.consistency import vouch_for
from evenkeel.model.names import Names

MOST = 1_000_000

# names of tiers whose domains are machines: a node that joins may come with one of its own
MACHINES = re.compile("host|server|node|machine|instance", re.IGNORECASE)


def more_alike(cluster: Cluster, count: int, names: Sequence[str] = ()) -> Cluster:
    """Return a cluster with more nodes, each like one that accepts, where domains have fewest."""
    nodes, topology = cluster.nodes, cluster.topology
    accepting = np.flatnonzero(nodes.alive & nodes.accepts & ~nodes.gone)
    if not len(accepting) or not 0 < count <= MOST:
        message = f"must be 1 to {MOST:,}" if len(accepting) else "no node accepts replicas"
        raise InvalidInput([Fault("count", count, message)])
    names = names or _names(nodes.names, count)
    own = [
        MACHINES.search(tier) is not None and _one_each(topology.label[row])
        for row, tier in enumerate(topology.tiers)
    ]
    shared = [topology.domain[row] for row in range(len(topology.tiers)) if not own[row]]
    like = _templates(accepting, shared, count)
    hosts = {tier: names for row, tier in enumerate(topology.tiers) if own[row]}
    return cluster.add_nodes(names=names, like=like, domains=hosts)


def with_unknown_domains(cluster: Cluster, capacity: ArrayLike, **given: Any) -> Cluster:
    """Return a cluster with more nodes as ``add_nodes`` does, though their domains are unknown."""
    # for nodes that others have described, or that stand for many: what a person adds has domains
    faults = FaultList()
    made = joined(faults, parts_of(cluster), {"capacity": capacity, **given})
    faults.raise_if_any()
    vouch_for(made)
    return replace(cluster, **made)


def _names(known: Names, count: int) -> list[str]:
    """Return names that are free: counted on where they are numbers, else new1 and so on."""
    if known and all(name.isascii() and name.isdigit() for name in known):
        first = max(map(int, known)) + 1
        return [str(first + i) for i in range(count)]
    prefix = "n" if known.counted else "new"
    free = (name for i in range(len(known) + count) if (name := f"{prefix}{i}") not in known)
    return [next(free) for _ in range(count)]


def _one_each(label: NDArray[np.int32]) -> bool:
    """Return whether every node has a domain of its own."""
    return len(label) > 1 and bool((label >= 0).all()) and len(np.unique(label)) == len(label)


def _templates(
    accepting: NDArray[np.intp], domains: list[NDArray[np.int32]], count: int
) -> NDArray[np.intp]:
    """Choose a model for each added node: one of the domain with the fewest, widest first."""
    held = [np.bincount(domain[domain >= 0], minlength=1) for domain in domains]
    found = np.empty(count, np.intp)
    for i in range(count):
        fewest = [
            np.where(domain[accepting] >= 0, own[domain[accepting]], np.iinfo(np.int64).max)
            for domain, own in zip(domains, held, strict=True)
        ]
        found[i] = accepting[np.lexsort((accepting, *fewest[::-1]))[0]]
        for domain, own in zip(domains, held, strict=True):
            if domain[found[i]] >= 0:
                own[domain[found[i]]] += 1
    return found
