"""Spending: what a way from one placement to another takes of the budgets of ``Limits``.

What was lost with its node is copied from elsewhere: it leaves neither the node nor its domain.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import Comparison, compare
from evenkeel.model.cluster import Cluster
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.figures import quantity

ROUNDING = 1e-9
"""Sums of data in another order agree within this share."""


def exceeded(cluster: Cluster, after: Placement, limits: Limits) -> list[str]:
    """Say which budgets the way from a cluster's placement to another of it exceeds.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [0]])
    >>> after = c.placement.replaced(np.array([1, 1], np.int32), c.placement.leader.copy())
    >>> exceeded(c, after, Limits(moves=1, node_in=2))
    ['moves 2 above 1']
    """
    asked = [*_asked(limits)]
    if not asked:
        return []
    spent = dict(_spent(cluster, after, [name for name, _ in asked]))
    return [
        f"{name} {quantity(spent[name])} above {quantity(most)}"
        for name, most in asked
        if spent.get(name, 0.0) > most
    ]


class Spent(NamedTuple):
    """What may be spent, and what is: ``compared`` is the way so far.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [0]])
    >>> spent = Spent(Limits(moves=0), compare(c, c.placement, c.placement))
    >>> [name for name, nodes in spent.closes(1.0)]
    ['limits.moves=0']
    """

    limits: Limits
    compared: Comparison

    def closes(self, size: float) -> Iterator[tuple[str, NDArray[np.bool_]]]:
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
            most = getattr(limits, name)
            if most is not None and (after > most).any():
                yield f"limits.{name}={most:,.0f}", after > most


def most_out(cluster: Cluster, compared: Comparison) -> int:
    """Return how many replicas left a node that serves them, of the node that most of them left."""
    return int(compared.node_out[cluster.nodes.serves].max(initial=0))


def _asked(limits: Limits) -> Iterator[tuple[str, float]]:
    """Yield the budgets that are set, those of tiers by tier."""
    for one in fields(limits):
        value = getattr(limits, one.name)
        if isinstance(value, Mapping):
            yield from ((f"{one.name} {tier}", float(most)) for tier, most in value.items())
        elif value is not None:
            yield one.name, float(value)


def _spent(
    cluster: Cluster, after: Placement, asked: Collection[str]
) -> Iterator[tuple[str, float]]:
    """Yield what is spent of each budget; of a node, a domain or a partition, the most of any.

    Of domains only what is ``asked``: they take the longest.
    """
    before, serves = cluster.placement, cluster.nodes.serves
    compared = compare(cluster, before, after)
    yield "moves", compared.moves
    yield "bytes", compared.bytes_moved * (1.0 - ROUNDING)
    yield "node_in", compared.node_in.max(initial=0)
    yield "node_out", most_out(cluster, compared)
    yield "partition_moves", np.bincount(after.owner[compared.joined], minlength=1).max()
    yield "leader_changes", compared.leader_changes
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
    placement: Placement,
    domain: NDArray[np.int32],
    domains: np.int64,
    changed: NDArray[np.bool_],
    counted: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the place, partition times domains plus domain, of each replica that stands in one.

    Those on nodes ``counted (N,)``, and of the partitions that are ``changed (P,)``.
    """
    inside = np.append(counted & (domain >= 0), False)
    of = np.flatnonzero(inside[placement.node] & changed[placement.owner])
    return placement.owner[of] * domains + domain[placement.node[of]]


def _crossings(domains: np.int64, less: NDArray[np.int64], more: NDArray[np.int64]) -> int:
    """Return how many replicas stand in places of ``more`` beyond ``less``, in the busiest domain.

    They are counted partition by partition: two that change places within one cross nothing.
    """
    place, of = np.unique(np.concatenate([less, more]), return_inverse=True)
    sign = np.repeat([-1.0, 1.0], [len(less), len(more)])
    beyond = np.maximum(np.bincount(of, sign, minlength=len(place)), 0.0)
    return int(np.bincount(place % domains, beyond).max(initial=0.0))
