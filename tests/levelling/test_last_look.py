"""What one step would place, lead or drop is done on clusters beyond the reach of CP-SAT, too."""

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
        ],
        [("roles", 1009)],
    ),
)
def test_nothing_is_left_that_one_step_would_do(case):
    tried = try_one(draw(*case, times=(6, 40)))
    assert (tried.strikes, tried.findings) == (0, [])


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
