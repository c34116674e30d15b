"""Pins that keep replicas where nothing else would leave them are named."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag, Placement


def ring() -> ek.Cluster:
    return ek.Cluster.from_arrays(
        capacity=[[90.0]] * 5, load=[[1.0]] * 40, replicas=2,
        placement=[[i % 5, (i + 1) % 5] for i in range(40)],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        (ring().pin("p0", "p4").down("n0"), "2 pinned replicas stay on a node that is down: n0"),
        (ring().pin("p0").drain("n0"), "1 pinned replica stays on a node that is to be emptied"),
        (ring().pin("p0").replace(forbidden=[[0, 1]]), "is forbidden to its partition: n1"),
        (ring().pin("p0").down("n0").drain("n1"), "down: n0"),
    ],
)
@pytest.mark.parametrize("method", ["balance", "exact"])
def test_pins_on_nodes_that_are_down_draining_or_forbidden_are_named(cluster, told, method) -> None:
    result = ek.solve(cluster, method=method, time_limit=2.0)
    assert any(told in one for one in result.warnings)
    pinned = (cluster.placement.flags & Flag.PINNED) != 0
    assert (result.placement.node[pinned] == cluster.placement.node[pinned]).all()


def test_pins_that_contradict_nothing_are_not_named() -> None:
    cluster = ring().pin("p0")
    assert ek.solve(cluster).warnings == ek.solve(cluster.cordon("n0")).warnings == ()


def test_a_session_leaves_alone_what_a_solve_does() -> None:
    cluster = ring()
    held = cluster.placement
    flags = np.zeros(len(held.node), np.uint16)
    flags[2 * 5 + 1] = Flag.LEFT_ALONE  # of p5, on n0 and n1, the replica on n1
    cluster = cluster.with_placement(
        Placement(held.first, held.node, held.role, flags, held.leader)
    )
    session = ek.Session(cluster)
    session.solve()
    session.apply(ek.Changes(down=["n0"]))
    found, solved = session.solve(), ek.solve(cluster.down("n0"))
    assert found.placement.node[10:12].tolist() == solved.placement.node[10:12].tolist() == [0, 1]
    assert found.placement.leader[5] == solved.placement.leader[5] == 0
    assert found.status == solved.status
