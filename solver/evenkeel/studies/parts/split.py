"""Split: which partitions make up a part, and the cluster that a part is."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.names import Names
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.rules import Rule

Entry = TypeVar("Entry", bound=np.generic)


def split(cluster: Cluster, parts: int, seed: int) -> NDArray[np.int32]:
    """Draw the part of each partition, (P,), so that parts have as many replicas each.

    Groups that a limit or a dependence binds together stay together: the largest first, each goes
    where the fewest replicas are. The other partitions even that out.
    """
    wanted = cluster.partitions.replicas
    part = np.full(len(wanted), -1, np.int32)
    filled = np.zeros(parts, np.int64)
    bound = _bound_together(cluster)[cluster.partitions.group]
    tied = bound >= 0
    if tied.any():
        size = np.bincount(bound[tied], wanted[tied]).astype(np.int64)
        home = np.zeros(len(size), np.int32)
        for each in np.argsort(-size, kind="stable").tolist():
            home[each] = np.argmin(filled)
            filled[home[each]] += size[each]
        part[tied] = home[bound[tied]]
    free = np.flatnonzero(~tied)
    quota = _quotas(filled, int(wanted[free].sum(dtype=np.int64)))
    drawn = np.random.default_rng(np.random.PCG64(seed % 2**64)).random(len(free))
    share = np.cumsum(quota) / max(quota.sum(), 1.0)
    part[free] = np.searchsorted(share[:-1], drawn, side="right")
    return part


def _quotas(filled: NDArray[np.int64], more: int) -> NDArray[np.float64]:
    """How much of what is free each part takes, so that the fullest part is as small as it can be.

    Examples
    --------
    >>> _quotas(np.array([4, 0, 1]), 4).tolist()
    [0.0, 2.5, 1.5]
    """
    order = np.sort(filled)
    most = (np.cumsum(order) + more) / np.arange(1, len(order) + 1)
    height = most[np.flatnonzero(most >= order)[-1]] if more else 0.0
    left: NDArray[np.float64] = np.maximum(height - filled, 0.0)
    return left


def _bound_together(cluster: Cluster) -> NDArray[np.int32]:
    """The first of the groups that each group must stay together with; -1 for none, (G,)."""
    rules, group_rule = cluster.rules, cluster.partitions.group_rule
    whole = np.array([_binds_a_group(rule) for rule in rules] + [False])
    first = np.where(whole[group_rule], np.arange(len(group_rule)), -1).astype(np.int32)
    for a, b in cluster.depends[:, :2].tolist():
        for each in (a, b):
            first[each] = each if first[each] < 0 else first[each]
        joined = np.isin(first, (first[a], first[b])) & (first >= 0)
        first[joined] = min(first[a], first[b])
    return first


def _binds_a_group(rule: Rule) -> bool:
    """Whether a rule counts the replicas of all partitions of its group together."""
    counted = any(not term.for_all for term in rule.terms())
    return counted or bool(rule.limits(per_node=False))


def rows_of(part: NDArray[np.int32], i: int, placement: Placement) -> NDArray[np.intp]:
    """Return the replicas of a part, in the order of the whole placement."""
    return np.flatnonzero(np.repeat(part == i, placement.slots or np.diff(placement.first)))


def cut(cluster: Cluster, chosen: NDArray[np.bool_]) -> Cluster:
    """Return the cluster of some partitions, (P,) bool, in their order, on all nodes."""
    which = np.flatnonzero(chosen)
    number = np.cumsum(chosen) - 1
    pairs = cluster.forbidden[chosen[cluster.forbidden[:, 0]]].copy()
    pairs[:, 0] = number[pairs[:, 0]]
    return replace(
        cluster,
        partitions=_partitions(cluster.partitions, which),
        placement=rows_alone(cluster.placement, which),
        forbidden=read_only(pairs),
        native=None,
        native_format="",
    )


def _partitions(whole: Partitions, which: NDArray[np.intp]) -> Partitions:
    load, shared = whole.load, {}
    for each in (load.leader, load.voter, load.non_voter):  # roles that share one array go on so
        if each.ctypes.data not in shared:
            shared[each.ctypes.data] = _take(each, which)
    return replace(
        whole,
        names=Names(None, len(which), "p"),
        load=Loads(
            leader=shared[load.leader.ctypes.data],
            voter=shared[load.voter.ctypes.data],
            non_voter=shared[load.non_voter.ctypes.data],
        ),
        replicas=_take(whole.replicas, which),
        voters=_take(whole.voters, which),
        min_active=_take(whole.min_active, which),
        group=_take(whole.group, which),
        rule=_take(whole.rule, which),
        attached=_take(whole.attached, which),
        move_cost=_take(whole.move_cost, which),
    )


def _take(array: NDArray[Entry], which: NDArray[np.intp]) -> NDArray[Entry]:
    return read_only(array.take(which, axis=0))
