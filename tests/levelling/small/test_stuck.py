"""Where rules, pins or places keep one node above its target, the others are levelled all the same.

The judge here is a few lines of its own: how far each node is above its target.
"""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from tests.support.effort import mostly_long

KINDS = ("min_domains", "pins", "forbidden")
SIZES = {"tiny": (6, 3), "small": (60, 8), "medium": (600, 12), "large": (3_000, 20)}
LEVELS = (0.1, 0.2)


def stuck(kind, partitions, nodes, *, leader_load=None):
    """Keep a replica of each partition on the first node, the others on the next few."""
    few = max(1, nodes // 3)
    placement = np.array([[0, 1 + p % few] for p in range(partitions)])
    given = {
        "capacity": [[2.0 * partitions]] * nodes,
        "load": [[1.0]] * partitions,
        "placement": placement,
        "domains": {"zone": ["a"] + ["b"] * (nodes - 1)},
    }
    if leader_load is not None:
        given |= {"leader_load": [[leader_load]] * partitions}
    if kind == "min_domains":
        given["rules"] = [ek.Rule(min_domains={"zone": 2})]
    elif kind == "pins":
        given["flags"] = np.where(placement == 0, Flag.PINNED, 0)
    else:  # from where it leads anyway it may go nowhere: only others trade places
        given["forbidden"] = [
            (p, n) for p in range(partitions) for n in range(1, nodes)
            if n not in placement[p] and (p + n) % 2
        ]  # fmt: skip
        given["flags"] = np.where(placement == 0, Flag.PINNED, 0)
    if "rules" in given:
        given["rule"] = [0] * partitions
    return ek.Cluster.from_arrays(**given)


def excesses(result, placement=None):
    """How far each node is above its target."""
    loads = np.zeros(len(result.bounds.target))
    placed = result.placement if placement is None else placement
    np.add.at(loads, placed.node, 1.0)
    return np.maximum(loads / result.bounds.target[:, 0] - 1.0, 0.0)


@pytest.mark.parametrize("size", mostly_long(SIZES, ["medium"]))
@pytest.mark.parametrize("kind", KINDS)
def test_beside_a_node_that_stays_above_its_target_all_others_are_within_theirs(kind, size):
    cluster = stuck(kind, *SIZES[size])
    for level in LEVELS:
        result = ek.solve(cluster, goals=ek.Goals(level=level))
        came = excesses(result, cluster.placement)
        assert came[1:].max() > 0.0
        assert excesses(result)[1:].max() == 0.0
        assert excesses(result)[0] <= came[0]


def test_the_message_says_which_pin_is_in_the_way():
    result = ek.solve(stuck("pins", 20, 3), goals=ek.Goals(level=0.2))
    assert result.status == "missed"
    assert "pinned replicas take at least 50.00% of the capacity of n0 in d0" in result.message


def test_what_rules_force_into_a_node_is_its_target():
    result = ek.solve(stuck("min_domains", 20, 3), goals=ek.Goals(level=0.2))
    assert result.status == "optimal" and result.bounds.target[0, 0] >= 20.0


@pytest.mark.parametrize("kind", KINDS)
def test_few_moves_are_made_for_it_and_a_second_solve_makes_none(kind):
    cluster = stuck(kind, 60, 8)
    goals = ek.Goals(level=0.2)
    once = ek.solve(cluster, goals=goals)
    loads = np.bincount(cluster.placement.node, minlength=8)[1:]
    assert len(once.moves) == np.maximum(loads - once.bounds.target[1:, 0], 0.0).sum()
    again = ek.solve(cluster.replace(placement=once.placement), goals=goals)
    assert len(again.moves) == 0


def test_a_node_that_holds_too_much_beside_it_is_relieved_though_all_gain_little():
    """Its leaders go: what is over capacity is mended, however little that is of the excess."""
    cluster = stuck("pins", 3_000, 20, leader_load=3.0).replace(
        capacity=[[7_000.0]] + [[1_500.0]] * 19
    )
    result = ek.solve(cluster, goals=ek.Goals(level=0.1))
    assert result.audit.ok
    assert result.levelness.loads[0, 0] <= 7_000.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_tiny_clusters_come_as_near_as_cp_sat_the_worst_node_first_and_then_all_together(
    kind, seed
):
    rng = np.random.default_rng(seed)
    partitions, nodes = int(rng.integers(5, 10)), int(rng.integers(3, 5))
    cluster = stuck(kind, partitions, nodes)
    goals = ek.Goals(level=float(rng.choice([0.0, 0.1, 0.3])))
    found, best = (ek.solve(cluster, method, goals=goals) for method in ("balance", "exact"))
    assert best.stop_reason in ("optimum", "tolerance")
    assert excesses(found).max() == pytest.approx(excesses(best).max())
    assert excesses(found).sum() == pytest.approx(excesses(best).sum())
