"""Soft rules against goals: they bind, unless told to yield, and then no more than need be."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from tests.judge.clusters import draw
from tests.judge.trial import try_one

SIXTEEN = {"zone": (1, "soft")}


def two_large_nodes_in_a_zone(**changes):
    """Twenty of 32 replicas belong in a zone that may hold one of each of 16 partitions."""
    given = {
        "capacity": [[50.0]] * 2 + [[10.0]] * 4,
        "load": [[1.0]] * 16,
        "domains": {"zone": ["a", "a", "b", "b", "c", "c"]},
        "replicas": 2,
        "rules": [ek.Rule(spread=SIXTEEN)],
        "rule": [0] * 16,
    }
    return ek.Cluster.from_arrays(**(given | changes))


def test_soft_rules_bind_against_goals():
    result = ek.solve(two_large_nodes_in_a_zone(), goals=ek.Goals(level=0.1))
    assert result.status == "optimal"  # beside what they leave
    assert result.audit.counts["soft_spread"] == 0


@pytest.mark.parametrize("amount", [1, (1, "soft")])
def test_an_empty_node_shares_what_its_zone_may_hold(amount):
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 7,
        load=[[1.0]] * 60,
        placement=[[p % 2, 2 + p % 2, 4 + p % 2] for p in range(60)],
        domains={"zone": [*"aabbcca"]},
        spread={"zone": amount},
    )
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    held = np.bincount(result.placement.nodes.ravel())
    assert held.tolist() == [21, 21, 30, 30, 30, 30, 18] and result.status == "optimal"


def test_soft_rules_yield_to_goals_where_they_are_told_to():
    result = ek.solve(two_large_nodes_in_a_zone(), goals=ek.Goals(level=0.32, soft_yield=True))
    assert result.goals_reached
    assert result.audit.hard == 0
    # 3 on each of the four small nodes: the other 20 are in a zone of 16 partitions
    assert result.audit.counts["soft_spread"] == 4


def test_lighter_rules_yield_first():
    tiers = {"zone": list("aaaabbcc"), "rack": list("rrssrsrs")}
    spread = {"zone": (1, "soft", 1.0), "rack": (1, "soft", 5.0)}
    cluster = two_large_nodes_in_a_zone(
        capacity=[[25.0]] * 4 + [[10.0]] * 4, domains=tiers, rules=[ek.Rule(spread=spread)]
    )
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, soft_yield=True))
    assert result.goals_reached
    broken = [one.tier for one in result.audit.found if one.kind == "soft_spread"]
    tier = list(cluster.topology.tiers).index("zone")
    assert broken and all((one == tier).all() for one in broken)


@pytest.mark.parametrize("partitions", [4, 200])
@pytest.mark.parametrize(
    "hard",
    [
        {"place": {"dc=central": 2, "dc=west": 1}},
        {"voters_place": {"dc=central": 2}},
        {"max_domains": {"dc": 2}},
        {"spread": {"rack": 1}},
    ],
)
def test_they_yield_to_hard_rules_and_to_no_more_than_these(hard, partitions):
    places = {"dc": ["east"] * 4 + ["central"] * 4 + ["west"] * 4, "rack": [*"abcdaabbcdcd"]}
    rows = [[p % 4, 4 + p // 4 % 4, 8 + p // 16 % 4] for p in range(partitions)]
    if "spread" in hard:
        rows = [[4, 5, 8]] * partitions  # of rack a only, which central and east have
        places["rack"] = [*"bbbbaaccdddd"]
    soft = {"dc": (1, "soft"), "host": (1, "soft")}
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0 * partitions]] * 12, load=[[1.0]] * partitions, placement=rows,
        domains=places | {"host": [f"h{n // 2}" for n in range(12)]},
        rules=[ek.Rule(**{"spread": soft} | hard | {"spread": soft | hard.get("spread", {})})],
        rule=[0] * partitions,
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.hard == 0 and len(result.moves) == partitions
    broken = {one.tier for one in result.violations}
    assert broken <= {"dc"}  # two hosts of a place suffice


@pytest.mark.parametrize(
    ("partitions", "zones", "level", "beyond"),
    [
        (6, "aab", 0.0, 2),  # every node holds four of twelve: two rows are in zone a alone
        (400, "aaaaaaaaaabbbbb", 0.05, 120),  # 56 of 800 on each node, 280 of them in zone b
    ],
)
def test_what_yields_to_goals_stacks_nothing_and_costs_the_least(partitions, zones, level, beyond):
    one, other = zones.count("a"), zones.count("b")
    cluster = ek.Cluster.from_arrays(
        capacity=[[1000.0]] * len(zones), load=[[1.0]] * partitions,
        placement=[[p % one, one + p % other] for p in range(partitions)],
        domains={"zone": [*zones]}, rules=[ek.Rule(spread=SIXTEEN)], rule=[0] * partitions,
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=level, soft_yield=True))
    assert result.goals_reached and result.audit.hard == 0 and not result.regressions
    assert result.audit.counts["soft_spread"] == beyond


def test_hard_rules_do_not_yield():
    cluster = two_large_nodes_in_a_zone(rules=[ek.Rule(spread={"zone": 1})])
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, soft_yield=True))
    assert result.audit.hard == 0
    assert result.audit.counts["spread"] == 0


@pytest.mark.parametrize("method", ["exact", "helix_crush"])
def test_methods_that_do_not_let_them_yield_say_so(method):
    with pytest.raises(ek.InvalidInput, match="soft_yield"):
        ek.solve(two_large_nodes_in_a_zone(), method, goals=ek.Goals(soft_yield=True))


@pytest.mark.parametrize("seed", [13, 15, 45, 68, 128, 138, 143, 172])
def test_solved_again_nothing_moves_for_a_soft_rule(seed: int) -> None:
    """What gave way to placing is mended where it can be, and no move home breaks it anew."""
    rng = np.random.default_rng(seed)
    nodes, partitions, replicas = (int(rng.integers(*of)) for of in ((3, 9), (2, 10), (1, 4)))
    cluster = ek.Cluster.from_arrays(
        domains={"zone": [f"z{z}" for z in rng.integers(0, 3, nodes)]},
        capacity=rng.integers(2, 9, (nodes, 1)).astype(float),
        load=np.ones((partitions, 1)),
        placement=[
            rng.choice(nodes, min(replicas, nodes), replace=False).tolist()
            for _ in range(partitions)
        ],
        alive=rng.random(nodes) > 0.15,
        rules=[ek.Rule(spread={"zone": (1, "soft")})],
    )
    goals = ek.Goals(level=float(rng.choice([0.1, 0.5, 1.0])))
    once = ek.solve(cluster, goals=goals)
    again = ek.solve(cluster.with_placement(once.placement), goals=goals)
    assert again.comparison.moves == 0
    assert again.audit.soft == once.audit.soft


def test_they_yield_to_placing_beside_limits_that_came_broken():
    case = draw("lost_zone", 38, times=(1, 3))
    given = case.cluster | {"group": [p % 3 for p in range(54)]}
    case = replace(case, cluster=given, goals={"level": None, "groups": 0.0})
    found = try_one(case)
    assert found.after is not None and not found.findings
