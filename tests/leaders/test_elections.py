"""Leaders are those that an election would choose: in sync, or where their system leaves them."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure import elections
from evenkeel_kernels.core import problem

SYNCED = int(ek.Flag.CAUGHT_UP)
ALONE = int(ek.Flag.LEFT_ALONE | ek.Flag.PINNED)


def cluster(flags, **more):
    rows = [[0, 1, 2]] * len(flags)
    return ek.Cluster.from_arrays(
        capacity=[[99.0]] * 4, load=[[1.0]] * len(rows), placement=rows, flags=flags, **more
    )


def test_kernels_and_judges_count_alike():
    names = ("NOWHERE", "MOVED", "ANYWHERE")
    assert [getattr(problem, one) for one in names] == [getattr(elections, one) for one in names]


@pytest.mark.parametrize("method", ["leaders", "balance", "exact"])
@pytest.mark.parametrize(
    ("flags", "leaders"),
    [
        ([[SYNCED, SYNCED, 0]] * 4, {0: 2, 1: 2}),
        ([[SYNCED, 0, 0]] * 2 + [[SYNCED] * 3] * 4, {0: 2, 1: 2, 2: 2}),
        ([[ALONE, ALONE, ALONE]] * 2 + [[0, 0, 0]] * 4, {0: 2, 1: 2, 2: 2}),
    ],
    ids=["one lags everywhere", "two lag in some", "some are left alone"],
)
def test_leaders_are_level_among_those_that_may_be_elected(method, flags, leaders):
    came = cluster(flags)
    result = ek.solve(came.cordon("n3"), method=method, goals=ek.Goals(level=None, leaders=0.0))
    at, counts = np.unique(result.placement.leader_node, return_counts=True)
    moved = (result.placement.node != came.placement.node).any()
    assert moved or dict(zip(at.tolist(), counts.tolist(), strict=True)) == leaders
    for p, row in enumerate(flags):
        led = int(result.placement.leader_node[p])
        assert led == 0 or (row[0] != ALONE and (row[led] == row[0]))


def test_a_replica_that_lags_leads_where_it_moves_to():
    came = cluster([[SYNCED, 0, 0]] * 2).drain("n0").cordon("n1", "n2")
    result = ek.solve(came, goals=ek.Goals(level=None))
    assert result.success
    assert set(result.placement.leader_node.tolist()) == {3}
