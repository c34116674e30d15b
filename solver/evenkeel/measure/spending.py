"""Spending: what a way from one placement to another takes of the budgets of ``Limits``."""

from collections.abc import Iterator, Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import compare
from evenkeel.model.cluster import Cluster
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Placement


def exceeded(cluster: Cluster, after: Placement, limits: Limits) -> list[str]:
    """Say which budgets the way from a cluster's placement to another in its slots exceeds.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [0]])
    >>> after = c.placement.replaced(np.array([1, 1], np.int32), c.placement.leader.copy())
    >>> exceeded(c, after, Limits(moves=1, node_in=2))
    ['moves 2 above 1']
    """
    spent = dict(_spent(cluster, after))
    return [
        f"{name} {spent[name]:,.6g} above {most:,.6g}"
        for name, most in _asked(limits)
        if spent.get(name, 0.0) > most
    ]


def _asked(limits: Limits) -> Iterator[tuple[str, float]]:
    """Yield the budgets that are set, those of tiers by tier."""
    for one in fields(limits):
        value = getattr(limits, one.name)
        if isinstance(value, Mapping):
            yield from ((f"{one.name} {tier}", float(most)) for tier, most in value.items())
        elif value is not None:
            yield one.name, float(value)


def _spent(cluster: Cluster, after: Placement) -> Iterator[tuple[str, float]]:
    """Yield what is spent of each budget; of a node, a domain or a partition, the most of any."""
    before = cluster.placement
    compared = compare(cluster, before, after)
    yield "moves", compared.moves
    yield "bytes", compared.bytes_moved
    yield "node_in", compared.node_in.max(initial=0)
    yield "node_out", compared.node_out.max(initial=0)
    yield "partition_moves", np.bincount(after.owner[compared.joined], minlength=1).max()
    yield "leader_changes", compared.leader_changes
    for row, tier in enumerate(cluster.topology.tiers):
        domain = np.append(cluster.topology.domain[row], -1)
        was, now = domain[before.node], domain[after.node]
        crosses = was != now
        yield f"domain_in {tier}", _most(now[crosses & compared.joined])
        yield f"domain_out {tier}", _most(was[crosses & compared.left])


def _most(domains: NDArray[np.int32]) -> int:
    return int(np.bincount(domains[domains >= 0], minlength=1).max())
