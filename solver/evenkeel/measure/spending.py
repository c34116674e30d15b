"""Compute the use of the budgets of ``Limits`` between two placements.

What was lost with its node is copied from elsewhere: it leaves neither the node nor its domain.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from evenkeel.measure.compare import Comparison, compare
from evenkeel.measure.disks import homes
from evenkeel.measure.rows import more_often
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import disk_of
from evenkeel.model.limits import BY_NODE, Limits, node_counts
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints32, Ints64
from evenkeel.model.runtime.figures import quantity

# the most that may be spent of a budget, or that each node may spend of it, (N,)
Most = float | Ints64


def exceeded(cluster: Cluster, after: Placement, limits: Limits) -> list[str]:
    """Return which budgets the way from a cluster's placement to another of it exceeds."""
    asked = [*_asked(cluster, limits)]
    if not asked:
        return []
    spent = dict(_spent(cluster, after, [name for name, _ in asked]))
    return [text for name, most in asked for text in _excess(cluster, name, spent.get(name), most)]


def _excess(cluster: Cluster, name: str, spent: float | Ints64 | None, most: Most) -> Iterator[str]:
    """Return by how much a budget is exceeded; of budgets by node, on the worst node."""
    if spent is None:
        return
    here, allowed = np.broadcast_arrays(np.atleast_1d(spent), np.atleast_1d(most))
    worst = int(np.argmax(here - allowed)) if len(here) else -1
    if worst >= 0 and here[worst] > allowed[worst]:
        of = f" of {cluster.nodes.names[worst]}" * isinstance(most, np.ndarray)
        yield f"{name}{of} {quantity(here[worst])} above {quantity(allowed[worst])}"


class Spent(NamedTuple):
    """Budgets and their use; ``compared`` is the comparison so far.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [0]])
    >>> spent = Spent(Limits(moves=0), compare(c, c.placement, c.placement))
    >>> [name for name, nodes in spent.closes(c, 1.0)]
    ['limits.moves=0']
    """

    limits: Limits
    compared: Comparison

    def closes(self, cluster: Cluster, size: float) -> Iterator[tuple[str, Flags]]:
        """Name each budget without room for one replica more of ``size``, and the nodes it closes.

        The nodes are a mask (N,). Budgets of domains and of partitions are not looked at.
        """
        limits, compared = self.limits, self.compared
        every = np.ones(len(compared.node_in), bool)
        for name, after in (
            ("moves", (compared.moves + 1) * every),
            ("bytes", (compared.bytes_moved + size) * every),
            ("node_in", compared.node_in + 1),
        ):
            given = getattr(limits, name)
            if given is None:
                continue
            if isinstance(given, Mapping | tuple):
                closed = after > node_counts(cluster, given)
                yield f"limits.{name} of the node", closed
            elif (closed := after > given).any():
                yield f"limits.{name}={given:,.0f}", closed


def departed(cluster: Cluster, compared: Comparison) -> Ints64:
    """Return how many replicas left each node that serves them, (N,); 0 of the others."""
    return np.where(cluster.nodes.serves, compared.node_out, 0)


def _asked(cluster: Cluster, limits: Limits) -> Iterator[tuple[str, Most]]:
    """Yield the budgets that are set, those of tiers by tier, those of nodes in one array."""
    for one in fields(limits):
        value = getattr(limits, one.name)
        if one.name in BY_NODE and isinstance(value, Mapping | tuple):
            yield one.name, node_counts(cluster, value)
        elif isinstance(value, Mapping):
            yield from ((f"{one.name} {tier}", float(most)) for tier, most in value.items())
        elif value is not None:
            yield one.name, float(value)


def _spent(
    cluster: Cluster, after: Placement, asked: Collection[str]
) -> Iterator[tuple[str, float | Ints64]]:
    """Yield the use of each budget, by node; of a domain or a partition, the most of any."""
    # domains only where ``asked``: they take the longest
    before, serves = cluster.placement, cluster.nodes.serves
    compared = compare(cluster, before, after)
    yield "moves", compared.moves
    yield "bytes", compared.bytes_moved * (1.0 - ROUNDING)
    yield "node_in", compared.node_in
    yield "node_out", departed(cluster, compared)
    yield "partition_moves", np.bincount(after.owner[compared.joined], minlength=1).max()
    yield "leader_changes", compared.leader_changes
    if cluster.disks is not None:
        lay, lies = homes(cluster, before, after), disk_of(cluster.disks, after)
        yield "disk_moves", int(np.count_nonzero((lay >= 0) & (lies >= 0) & (lies != lay)))
    changed = np.zeros(len(before), bool)
    changed[after.owner[compared.joined]] = changed[before.owner[compared.left]] = True
    everywhere = np.ones(len(serves), bool)
    for row, tier in enumerate(cluster.topology.tiers):
        if f"domain_in {tier}" not in asked and f"domain_out {tier}" not in asked:
            continue
        domain = cluster.topology.domain[row]
        count = np.int64(domain.max(initial=0)) + 1
        now = _standing(after, domain, count, changed, everywhere)
        was = _standing(before, domain, count, changed, everywhere)
        served = _standing(before, domain, count, changed, serves)
        yield f"domain_in {tier}", _crossings(count, was, now)
        yield f"domain_out {tier}", _crossings(count, now, served)


def _standing(
    placement: Placement, domain: Ints32, domains: np.int64, changed: Flags, counted: Flags
) -> Ints64:
    """Return the place, partition times domains plus domain, of each replica that stands in one."""
    # those on nodes ``counted (N,)``, and of the partitions that are ``changed (P,)``
    inside = np.append(counted & (domain >= 0), False)
    of = np.flatnonzero(inside[placement.node] & changed[placement.owner])
    return placement.owner[of] * domains + domain[placement.node[of]]


def _crossings(domains: np.int64, less: Ints64, more: Ints64) -> int:
    """Return how many replicas in places of ``more`` exceed ``less``, in the busiest domain."""
    # counted partition by partition: two that change places within one cross nothing
    place, beyond = more_often(less, more)
    return int(np.bincount(place % domains, beyond).max(initial=0.0))
