"""What one step would place, lead or drop is done on clusters beyond the reach of CP-SAT, too."""

import numpy as np
import pytest

import evenkeel as ek
from tests.judge.clusters import draw
from tests.judge.trial import try_one
from tests.support.effort import mostly_long


@pytest.mark.parametrize(
    "case",
    mostly_long(
        [
            ("lost_zone", 1014),  # 55 replicas find room once nodes over capacity are relieved
            ("rules", 1006),  # slots kept for a zone that is lost
            ("roles", 1011),  # a budget
            ("roles", 1009),  # no leader though one stands by
            ("finer_budgets", 1003),  # a leader where none may be
            ("anything", 1012),  # a surplus replica that led when others were dropped
            ("groups", 2004),  # a group that is broken either way, but more without a lost replica
            ("overfull", 14200006),  # room for a replica, but not to lead
        ],
        [("roles", 1009)],
    ),
)
def test_nothing_is_left_that_one_step_would_do(case):
    tried = try_one(draw(*case, times=(6, 40)))
    assert tried.findings == []


def test_a_surplus_replica_goes_only_if_who_stays_in_its_place_does():
    """Its voter was to leave a draining node, and a budget kept it there: nothing was kept."""
    tried = try_one(draw("anything", 14000006, times=(4, 10)))
    assert tried.findings == []


NO_TIME = [
    ("anything", 15000001),  # who stands where it may not leaves a place free
    ("roles", 15000083),  # leaders that CP-SAT dealt out make room
    ("extras", 15000010),  # what left a dead node kept its leaders there
    ("states", 15000012),  # levelling was in the way
]


@pytest.mark.parametrize("case", mostly_long(NO_TIME, NO_TIME[:3]))
def test_nothing_is_left_where_cp_sat_had_no_time(case):
    tried = try_one(draw(*case, times=(4, 10)))
    assert tried.findings == []


def test_a_slot_kept_for_a_node_that_is_lost_is_filled():
    count = 300  # replicas x nodes beyond what CP-SAT is asked about
    cluster = ek.Cluster.from_arrays(
        capacity=[[1000.0]] * 8,
        load=[[1.0]] * count,
        domains={"zone": [*"aabbbbbb"]},
        alive=[False, False, *[True] * 6],
        placement=[[p % 2, 2 + p % 6] for p in range(count)],
        rules=[ek.Rule(place={"zone=a": 1})],
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.counts["unassigned"] == result.audit.counts["on_dead"] == 0
    assert result.audit.counts["place"] == count


def test_where_all_weigh_the_same_those_that_fit_nowhere_find_room_all_the_same():
    """Racks of unlike size, one node of the smaller ones lost: its rack has no room left."""
    rng = np.random.default_rng(1)
    rack = np.repeat([0, 1, 2, 3], [12, 16, 24, 12])
    placement = [
        [int(rng.choice(np.flatnonzero(rack == r))) for r in rng.permutation(4)[:3]]
        for _ in range(800)
    ]
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((64, 1), 46.0), load=np.ones((800, 1)), placement=placement,
        domains={"rack": [f"r{r}" for r in rack]}, spread={"rack": 1},
    )  # fmt: skip
    level = ek.solve(cluster, goals=ek.Goals(level=0.05)).placement
    result = ek.solve(cluster.with_placement(level).down("n0", "n1", "n2"),
                      goals=ek.Goals(level=None))  # fmt: skip
    assert result.audit.hard == 0
    assert len(result.unplaced) == 0


@pytest.mark.parametrize("copies", [1, 400])  # with CP-SAT at hand, and beyond it
@pytest.mark.parametrize(("lost", "ill"), [("down", "on_dead"), ("drain", "not_kept")])
@pytest.mark.parametrize("node", ["n0", "n3"])
def test_a_spread_that_came_broken_may_be_broken_in_another_zone(copies, lost, ill, node):
    """Three replicas in two zones: one stands too many wherever they stand."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9000.0]] * 6, load=[[1.0]] * (3 * copies),
        placement=[[0, 1, 3], [1, 2, 4], [3, 4, 0]] * copies,
        domains={"zone": [*"aaabbb"]}, spread={"zone": 1},
    )  # fmt: skip
    cluster = getattr(cluster, lost)(node)
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.counts["unassigned"] == result.audit.counts[ill] == 0
    assert result.audit.counts["spread"] == result.audit_before.counts["spread"] == 3 * copies
    assert (len(result.unplaced), result.regressions) == (0, {})
    assert "no node" not in result.message
