"""Whatever a method answers on any cluster: what the guard lets pass is no worse, counted anew."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.measure.audit import KINDS
from evenkeel.methods.run import guarded
from tests.naive.measure import audit as naive
from tests.support.clusters import clusters

BY_LIFE = {"unassigned", "min_active", "leaderless", "leader"}


def broken(cluster, placement):
    """How much of each hard rule is broken, by partition, group, node or domain and dimension."""
    amounts = defaultdict(float)
    for (kind, p, g, *rest), amount in naive.audit(cluster, placement).amounts.items():
        node, level, domain, dimension = rest
        if KINDS[kind].hard and kind not in BY_LIFE:
            kind = "capacity" if kind == "transient" else kind
            where = (-1, -1) if p >= 0 or g >= 0 else (node, domain)
            amounts[kind, p, g, level, dimension, *where] += amount
    return amounts


def live(cluster, placement):
    """Live replicas of each partition."""
    serves = cluster.nodes.alive & ~cluster.nodes.gone
    return [sum(bool(serves[n]) for _, n, _ in row) for row in naive.rows_of(placement)]


@given(clusters(), st.data())
def test_nothing_is_worse_than_it_came(cluster, data):
    before = cluster.placement
    node = before.node.copy()
    for k in data.draw(st.lists(st.integers(0, max(len(node) - 1, 0)), max_size=5)):
        if len(node):
            node[k] = data.draw(st.integers(-1, len(cluster.nodes) - 1))
    leader = before.leader.copy()
    for p in range(len(leader)):
        slots = int(before.first[p + 1] - before.first[p])
        if leader[p] >= 0 and slots:
            leader[p] = data.draw(st.integers(0, slots - 1))
    with np.errstate(all="ignore"):
        found = guarded(cluster, before.replaced(node, leader))
        was, now = broken(cluster, before), broken(cluster, found.placement)
        serves = np.append(cluster.nodes.alive & ~cluster.nodes.gone, False)
        alone = np.where(serves[before.node], before.node, -1).astype(np.int32)
        held = broken(cluster, before.replaced(alone, before.leader))
    for rule, amount in now.items():
        allowed = max(was[rule], held[rule])
        assert amount <= allowed + 1e-9 * (1.0 + abs(amount)), (rule, amount, allowed)
    for p, (had, has) in enumerate(
        zip(live(cluster, before), live(cluster, found.placement), strict=True)
    ):
        assert has >= min(had, int(cluster.partitions.replicas[p]))
    if found.strikes == 0:
        assert np.array_equal(found.placement.node, node)
        assert np.array_equal(found.placement.leader, leader)
    else:
        assert found.reason
