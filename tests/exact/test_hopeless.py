"""What can be seen to be beyond help: no proof by CP-SAT says otherwise."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.methods.exact.method import is_hopeless, lacking_nodes
from tests.support.effort import mostly_long


def drawn(seed: int) -> ek.Cluster:
    """A few partitions on a few nodes in three zones, some dead, some forbidden, plenty of room."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    alive = rng.random(nodes) < 0.8
    banned = np.argwhere(rng.random((partitions, nodes)) < 0.15)
    return ek.Cluster.from_arrays(
        capacity=[[99.0]] * nodes, load=[[1.0]] * partitions, alive=alive,
        keeps=alive & (rng.random(nodes) < 0.9), forbidden=banned,
        domains={"zone": [*"abcab"][:nodes]}, spread={"zone": int(rng.integers(1, 3))},
        placement=rng.integers(-1, nodes, (partitions, int(rng.integers(1, 4)))),
    )  # fmt: skip


@pytest.mark.parametrize("seed", mostly_long(range(40), range(10)))
def test_what_lacks_nodes_is_what_cp_sat_cannot_place(seed: int) -> None:
    cluster = drawn(seed)
    proof = ek.solve(cluster, "exact", goals=ek.Goals(level=None)).native
    assert int(proof.stages[0].bound) >= lacking_nodes(cluster).sum()
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    if is_hopeless(cluster, ek.Limits(), result.placement, result.audit, False) and result.unplaced:
        assert result.success is False
        assert proof.stages[0].bound > 0


def test_zones_that_are_missing_are_proven_without_a_search() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, replicas=3, placement=[[0, 2], [1, 3]],
        domains={"zone": [*"aabb"]}, spread={"zone": 1},
    )  # fmt: skip
    assert lacking_nodes(cluster).tolist() == [1, 1]
    assert is_hopeless(
        cluster, ek.Limits(), cluster.placement, audit(cluster, cluster.placement), False
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.message == "Proven: whatever is moved, the last 2 of the replicas find no node."


def test_no_moves_left_to_place_more() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 4, placement=[[0, -1]] * 4
    )  # fmt: skip
    limits = ek.Limits(moves=2)
    result = ek.solve(cluster, goals=ek.Goals(level=None), limits=limits)
    assert len(result.unplaced) == 2

    def hopeless(limits: ek.Limits, is_endangered: bool = False) -> bool:
        return is_hopeless(cluster, limits, result.placement, result.audit, is_endangered)

    assert hopeless(limits)
    assert not hopeless(limits, is_endangered=True)
    assert not hopeless(ek.Limits())
    assert not hopeless(ek.Limits(moves=3))


def test_a_replica_that_joins_another_of_its_partition_took_no_move() -> None:
    """Two may share a node: what stands beside another has left the budget for the rest."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0], [2.0]], load=[[1.0]] * 4, placement=[[0, -1]] * 4, spread={"node": 2}
    )
    placement = cluster.placement.replaced(
        np.array([0, 0, 0, 0, 0, -1, 0, -1], np.int32), cluster.placement.leader
    )
    audited = audit(cluster, placement)
    assert not is_hopeless(cluster, ek.Limits(moves=2), placement, audited, False)
    result = ek.solve(cluster, goals=ek.Goals(level=None), limits=ek.Limits(moves=2))
    assert len(result.unplaced) == 0
