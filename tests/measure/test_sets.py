"""Targets hold what rules force into any set of nodes, and no more than that."""

import itertools

import numpy as np
import pytest

from evenkeel.measure.bounds import bounds
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.rules import Rule

SSD = {"require": ["+ssd"]}


@pytest.mark.parametrize(
    ("rule", "bound", "zone", "replicas", "target"),
    [
        (SSD, [0, 0, 0, -1, -1, -1], "aba", 2, [5.0, 3.0, 5.0]),
        ({"skew": {"zone": 1}}, [0, 0, 0], "aab", 2, [2.0, 2.0, 3.0]),
        ({"skew": {"zone": 2}}, [0, 0, 0], "aab", 2, [2.0, 2.0, 2.0]),
        ({"skew": {"zone": 1}}, [0, 0, 0, 0], "aaab", 3, [3.0, 3.0, 3.0, 4.0]),
        ({"min_domains": {"zone": 2}}, [0, 0, 0], "aab", 2, [2.0, 2.0, 3.0]),
        ({"max_domains": {"zone": 1}}, [0, 0, 0, -1], "aab", 2, [4.0, 4.0, 1.0]),
    ],
)
def test_targets_hold_what_rules_leave_no_place_for_elsewhere(rule, bound, zone, replicas, target):
    cluster = Cluster.from_arrays(
        capacity=[[20.0]] * len(zone), load=[[1.0]] * len(bound), replicas=replicas,
        domains={"zone": [*zone]}, tags={"ssd": [z == "a" for z in zone]}, rules=[Rule(**rule)],
        rule=bound,
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.0)).target[:, 0].tolist() == target


@pytest.mark.parametrize(
    ("rule", "voters", "target"),
    [
        # voters wanted in zone a are wanted with a disk, too: on the first node
        ({"voters_require": ["+ssd"], "voters_place": {"zone=a": 1}}, [1] * 6, [6, 2, 2, 2]),
        # nine vote, on the nodes with a disk
        ({"voters_require": ["+ssd"]}, [2, 2, 2, 1, 1, 1], [5, 1, 5, 1]),
        # the one that votes meets both terms: on the first node
        ({"voters_place": {"zone=a": 1, "+ssd": 1}}, [1] * 6, [6, 2, 2, 2]),
    ],
)
def test_terms_on_voters_hold_beside_one_another(rule, voters, target):
    cluster = Cluster.from_arrays(
        capacity=[[20.0]] * 4, load=[[1.0]] * 6, replicas=2, voters=voters,
        domains={"zone": [*"aabc"]}, tags={"ssd": [True, False, True, False]},
        rules=[Rule(**rule)],
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.0)).target[:, 0].tolist() == target


@pytest.mark.parametrize(
    ("limit", "target"),
    [
        ({"node": 1}, [1.0, 1.0, 1.0, np.inf]),  # of four members three
        ({"zone": 2}, [1.0, 1.0, 1.0, np.inf]),  # two of them into zone a
    ],
)
def test_limits_of_groups_force_members_out_of_endless_room(limit, target):
    cluster = Cluster.from_arrays(
        capacity=[[20.0], [20.0], [20.0], [np.inf]], load=[[1.0]] * 4, replicas=1,
        domains={"zone": [*"aabb"]}, group=[0] * 4, rules=[Rule(spread=limit)], group_rule=[0],
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.0)).target[:, 0].tolist() == target


@pytest.mark.parametrize(
    ("capacity", "zone", "target"),
    [
        # two of six are not on the large nodes
        ([4.15, 4.15, 2.07, 1.04, 1.04, 1.04], "abcdef", [2, 2, 1, 1, 1, 1]),
        # four of six are not in the zone of two nodes
        ([3.1, 3.1, 2.07, 2.07] + [1.04] * 11, "aabcdefghijklmn", [1] * 15),
    ],
)
def test_targets_hold_whole_replicas_that_a_spread_leaves_no_place_for(capacity, zone, target):
    cluster = Cluster.from_arrays(
        capacity=[[room] for room in capacity], load=[[1.0]] * 2, replicas=3,
        domains={"zone": [*zone]}, spread={"zone": 1},
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.3)).target[:, 0].tolist() == target


@pytest.mark.parametrize("others", [7, 8])
def test_a_node_leads_what_one_beside_it_has_no_room_for(others):
    """Six can be led on two nodes, one of which has room for one replica."""
    cluster = Cluster.from_arrays(
        capacity=[[1.0], [20.0], [20.0], [20.0]], load=[[1.0]] * (6 + others), replicas=1,
        tags={"ssd": [True, True, False, False]}, rules=[Rule(**SSD)], rule=[0] * 6 + [-1] * others,
    )  # fmt: skip
    target = bounds(cluster, Goals(level=None, leaders=0.0)).leader_target
    assert target[1] == 5.0 and target[2:].sum() >= others


KINDS = [
    SSD, {"spread": {"zone": 1}}, {"skew": {"zone": 1}}, {"skew": {"zone": 2}},
    {"min_domains": {"zone": 2}}, {"max_domains": {"zone": 1}}, {"place": {"+ssd": 1}},
    {"place": {"zone=0": 1, "+ssd": 1}}, {"place": {"zone=0": 1, "-ssd": 1}},
]  # fmt: skip


def rows_within(rule, replicas, zone, ssd):
    """Return every row that keeps a rule: on which nodes the replicas of a partition are."""
    open_to = [n for n in range(len(zone)) if ssd[n] or "require" not in rule]
    counted = [*{zone[n] for n in open_to}]
    on = {"+ssd": ssd, "-ssd": ~ssd, "zone=0": zone == 0}

    def keeps(row):
        held = np.bincount(zone[[*row]], minlength=2)
        return (
            held.max() <= rule.get("spread", {}).get("zone", replicas)
            and held.max() - held[counted].min() <= rule.get("skew", {}).get("zone", replicas)
            and np.count_nonzero(held) >= rule.get("min_domains", {}).get("zone", 0)
            and np.count_nonzero(held) <= rule.get("max_domains", {}).get("zone", 2)
            and all(on[text][[*row]].sum() >= k for text, k in rule.get("place", {}).items())
        )

    return [row for row in itertools.combinations(open_to, replicas) if keeps(row)]


@pytest.mark.parametrize("seed", range(60))
def test_some_placement_is_within_the_targets_if_any_keeps_the_rules(seed):
    rng = np.random.default_rng(seed)
    nodes, count = int(rng.integers(2, 5)), int(rng.integers(2, 6))
    replicas = int(rng.integers(1, min(3, nodes) + 1))
    zone, ssd = rng.permutation(np.arange(nodes) % 2), rng.random(nodes) < 0.6
    ssd[0] = True
    rules = [KINDS[k] for k in rng.integers(0, len(KINDS), 2)]
    rules = [
        rule for rule in rules
        if replicas > 1 or ("min_domains" not in rule and len(rule.get("place", ())) < 2)
    ]  # fmt: skip
    bound = rng.integers(-1, len(rules), count).tolist()
    cluster = Cluster.from_arrays(
        capacity=20.0 * rng.choice([1.0, 1.0, 2.0], (nodes, 1)), load=[[1.0]] * count,
        replicas=replicas, domains={"zone": zone}, tags={"ssd": ssd},
        rules=[Rule(**rule) for rule in rules], rule=bound,
    )  # fmt: skip
    reached = {(0,) * nodes}
    for q in bound:
        rows = rows_within(rules[q] if q >= 0 else {}, replicas, zone, ssd)
        each = [np.bincount([*row], minlength=nodes) for row in rows]
        reached = {(*(held + row).tolist(),) for held in reached for row in each}
    found, room = bounds(cluster, Goals(level=0.0)), cluster.nodes.capacity[:, 0]
    held = np.array([*reached]).reshape(len(reached), nodes)
    if reached:
        assert (held <= found.target[:, 0]).all(1).any()
        assert found.level[0] <= (held / room).max(1).min() * (1.0 + 1e-9)
