"""What a way spends of budgets: what is copied out of a node or a domain, and what is not."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.spending import exceeded
from evenkeel.verdict import budgets_used_up


def cluster_of(rows: list[list[int]], **given: object) -> ek.Cluster:
    """Six nodes, two in each of three zones."""
    return ek.Cluster.from_arrays(
        capacity=[[99.0]] * 6, load=[[1.0]] * len(rows), placement=rows,
        domains={"zone": [*"aabbcc"]}, **given,
    )  # fmt: skip


def after(cluster: ek.Cluster, rows: list[list[int]]) -> ek.Placement:
    return cluster.placement.replaced(
        np.array(rows, np.int32).ravel(), cluster.placement.leader.copy()
    )


@pytest.mark.parametrize("lost", ["alive", "gone"])
def test_what_is_lost_with_its_node_leaves_neither_node_nor_zone(lost: str) -> None:
    given = {"alive": np.arange(6) != 0} if lost == "alive" else {"gone": np.arange(6) == 0}
    cluster = cluster_of([[0, 2]] * 3, **given)
    way = after(cluster, [[4, 2]] * 3)
    limits = ek.Limits(node_out=1, domain_out={"zone": 1})
    assert exceeded(cluster, way, limits) == []
    compared = ek.solve(cluster, goals=ek.Goals(level=None)).comparison
    assert compared.node_out.max() == 3
    assert budgets_used_up(cluster, limits, compared) == []


def test_what_lives_leaves_both() -> None:
    cluster = cluster_of([[0, 2]] * 3)
    way = after(cluster, [[4, 2]] * 3)
    assert exceeded(cluster, way, ek.Limits(node_out=2, domain_out={"zone": 2})) == [
        "node_out 3 above 2", "domain_out zone 3 above 2",
    ]  # fmt: skip
    assert exceeded(cluster, way, ek.Limits(node_in=2, domain_in={"zone": 2})) == [
        "node_in 3 above 2", "domain_in zone 3 above 2",
    ]  # fmt: skip


def test_two_that_change_zones_within_a_partition_cross_nothing() -> None:
    cluster = cluster_of([[0, 2]])
    way = after(cluster, [[3, 1]])
    limits = ek.Limits(domain_in={"zone": 0}, domain_out={"zone": 0})
    assert exceeded(cluster, way, limits) == []
    assert exceeded(cluster, way, ek.Limits(moves=1)) == ["moves 2 above 1"]


def test_a_surplus_replica_leaves_its_node() -> None:
    cluster = cluster_of([[0, 2, 4]] * 2, replicas=2)
    way = after(cluster, [[-1, 2, 4]] * 2)
    assert exceeded(cluster, way, ek.Limits(node_out=1, moves=0)) == ["node_out 2 above 1"]
