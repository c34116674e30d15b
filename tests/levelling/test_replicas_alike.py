"""Replicas that weigh the same: those that leave are of all groups, and of many partitions.

Dumps without loads show such clusters. Whoever gives away whole replica sets of one topic to new
nodes reaches the level in as few moves, and leaves the topic's traffic on them.
"""

import numpy as np
import pytest

import evenkeel as ek

GROUPS = 10


def grown(partitions, nodes, new):
    """Return a level cluster of partitions alike to which ``new`` nodes have come."""
    about = {
        "capacity": np.full((nodes, 1), 1e6), "load": np.ones((partitions, 1)),
        "domains": {"zone": np.arange(nodes) % 5}, "spread": {"zone": 1},
        "group": np.arange(partitions) * GROUPS // partitions,
    }  # fmt: skip
    alone = ek.Cluster.from_arrays(**about, replicas=3, alive=np.arange(nodes) < nodes - new)
    before = ek.solve(alone, goals=ek.Goals(level=0.0)).placement
    led = np.bincount(before.leader_node, minlength=nodes)[: nodes - new]
    assert led.max() - led.min() <= 2, "who has never been led is led by whoever leads least"
    return ek.Cluster.from_arrays(**about, placement=before.by_leader())


@pytest.mark.parametrize("goals", [ek.Goals(level=0.02), ek.Goals(level=0.02, floor=0.02)], ids=str)
@pytest.mark.parametrize("sizes", [(2_000, 20, 2), (5_000, 100, 10)], ids=str)
def test_new_nodes_take_some_of_each_group_and_seldom_two_replicas_of_a_partition(sizes, goals):
    cluster = grown(*sizes)
    result = ek.solve(cluster, goals=goals)
    before, after = cluster.placement.nodes, result.placement.nodes
    assert result.success
    came = np.array([len({*now} - {*was}) for was, now in zip(before, after, strict=True)])
    assert came.sum() == result.comparison.moves
    assert result.comparison.leader_changes <= 0.05 * came.sum(), "who follows serves as well"
    assert (came > 1).sum() <= 0.25 * (came > 0).sum()
    group = np.repeat(cluster.partitions.group, 3)
    held = np.zeros((GROUPS, sizes[1]))
    np.add.at(held, (group, after.reshape(-1)), 1)
    most = held[:, -sizes[2] :].max(axis=0) / held[:, -sizes[2] :].mean(axis=0)
    assert most.max() <= 3.0


def test_what_a_node_leaves_behind_falls_on_many():
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((90, 1), 1e6), load=np.ones((5_000, 1)), replicas=3,
        domains={"zone": np.arange(90) % 5}, spread={"zone": 1},
    )  # fmt: skip
    shares = [set() for _ in range(90)]
    for row in ek.solve(cluster).placement.nodes.tolist():
        for n in row:
            shares[n].update(row)
    assert min(map(len, shares)) > 10
