"""No placement beats a bound; on tiny clusters all of them are tried."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.bounds import bounds
from evenkeel.measure.bounds.even import whole_level, whole_loads
from evenkeel.measure.bounds.leading import Ways
from evenkeel.measure.bounds.level import ROWS, column_maxima
from evenkeel.measure.loads import node_loads, utilisation
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Rule
from tests.naive.measure import bounds as naive
from tests.support.clusters import clusters
from tests.support.instances import as_cluster, generate, golden

LEAST = {
    "small": {0.002: 103, 0.01: 101, 0.03: 100, 0.04: 99, 0.05: 96, 0.1: 89},
    "medium": {0.002: 846, 0.01: 828, 0.03: 789, 0.04: 776, 0.05: 761, 0.1: 694},
}
"""Moves for a level by the reference scorer, one dimension at a time, leadership being free."""

PLACES = st.sampled_from([{"+ssd": 1}, {"+ssd": 2}, {"-ssd": 1}, {"+ssd": 1, "-ssd": 1}])
"""Terms that rules may have; both sides of one cover all nodes."""


@st.composite
def tiny(draw):
    """At most four partitions of two replicas on four nodes, with rules and odd nodes."""
    n, p = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    d = draw(st.integers(1, 2))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    lumps = draw(st.sampled_from([1, 3, 50]))
    load = random.integers(0 if lumps > 1 else 1, lumps + 1, (p, d)).astype(float)
    capacity = random.choice([4.0, 8.0, 8.0, 12.0], (n, d)) * max(1.0, lumps / 3)
    loose = draw(st.booleans())
    given = {
        "capacity": capacity * (3.0 if loose else 1.0),
        "load": load,
        "domains": {"zone": random.integers(-1 if draw(st.booleans()) else 0, 3, n)},
        "placement": random.integers(-1, n, (p, draw(st.integers(1, 3)))),
        "replicas": random.integers(0, min(2, n) + 1, p),
    }
    if draw(st.booleans()):
        given["leader_load"] = load + random.integers(0, lumps + 1, (p, d))
    if draw(st.booleans()):
        given["leader"] = np.full(p, -1)
    if draw(st.booleans()):
        given["non_voter_load"] = random.integers(0, lumps + 1, (p, d)).astype(float)
        given["voters"] = np.minimum(given["replicas"], 1)
    for name in ("alive", "accepts", "keeps", "leads"):
        if draw(st.integers(0, 3)) == 0:
            given[name] = random.random(n) < 0.7
    if draw(st.integers(0, 3)) == 0:
        given["max_replicas"] = random.integers(-1, 4, n)
    if draw(st.integers(0, 3)) == 0:
        given["lead_weight"] = random.choice([0.0, 1.0, 1.0, 3.0], n)
    if draw(st.integers(0, 3)) == 0:
        pairs = np.argwhere(random.random((p, n)) < 0.15)
        given["forbidden"] = pairs.reshape(-1, 2)
    given["tags"] = {"ssd": random.random(n) < 0.7}
    rules = [
        Rule(
            spread=draw(
                st.sampled_from(
                    [
                        {"zone": 1},
                        {"zone": 2},
                        {"node": None},
                        {"node": 2},
                        {"zone": (1, "soft")},
                        {},
                    ]
                )
            ),
            require=["+ssd"] if draw(st.integers(0, 3)) == 0 else [],
            place=draw(PLACES) if draw(st.booleans()) else {},
            voters_place=draw(PLACES) if draw(st.integers(0, 2)) == 0 else {},
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    if len(rules) == 2:
        given["rule"] = random.integers(-1, 2, p)
    tolerance = draw(st.sampled_from([0.0, 0.0, 0.1, 0.5]))
    try:
        cluster = Cluster.from_arrays(**given, rules=rules)
    except InvalidInput:  # a term asks for more replicas than a partition wants
        assume(False)
    return cluster, Goals(level=tolerance, leaders=tolerance)


@pytest.mark.small
@settings(max_examples=150)
@given(tiny())
def test_no_placement_beats_the_bounds(case):
    cluster, goals = case
    everything = naive.every_placement(cluster)
    assume(len(everything.moves) > 0)
    found = bounds(cluster, goals)
    serving = cluster.nodes.alive & ~cluster.nodes.gone
    if serving.any():
        level = utilisation(
            everything.load, np.broadcast_to(cluster.nodes.capacity, everything.load.shape)
        )
        best = level[:, serving].max(1).min(0)
        assert (found.level <= best * naive.SLACK).all()
    assert found.leaders <= everything.leaders.max(1).min(initial=99)
    share = cluster.nodes.lead_weight * cluster.nodes.may_lead
    led = everything.leaders.sum(1)
    if found.leaders and share.any():
        ratio = everything.leaders[:, share > 0] / (share[share > 0] * led[0] / share.sum())
        assert found.leader_ratio <= ratio.max(1).min() * naive.SLACK
    assert found.moves_feasible <= everything.moves.min()
    near = (everything.load <= found.target * naive.SLACK).all((1, 2))
    assert found.moves_level <= everything.moves[near].min(initial=99)


@pytest.mark.small
@given(clusters(), st.sampled_from([0.0, 0.04, None]))
def test_any_cluster_has_bounds(cluster, tolerance):
    found = bounds(cluster, Goals(level=tolerance, leaders=tolerance))
    assert not np.isnan(found.level).any()
    assert not np.isnan(found.target).any()
    assert not np.isnan(found.ratio).any()
    assert 0 <= found.missing <= cluster.partitions.replicas.sum()
    assert found.missing <= found.moves_feasible <= found.moves_level


def test_a_closed_node_may_take_what_shares_it_with_its_partition():
    cluster = Cluster.from_arrays(
        load=[[1.0], [1.0]],
        capacity=[[2.0], [2.0], [4.0]],
        placement=[[0, 1], [0, 2]],
        accepts=[True, False, False],
        rules=[Rule(spread={"node": 2})],
        rule=[-1, 0],
    )
    best = naive.every_placement(cluster).load / cluster.nodes.capacity
    assert bounds(cluster, Goals(level={})).level[0] <= best.max(1).min(0)[0] == 0.5


@pytest.mark.small
@settings(max_examples=60)
@given(tiny())
def test_every_proof_can_be_checked(case):
    cluster, goals = case
    found = bounds(cluster, goals)
    least = np.minimum(cluster.partitions.load.leader, cluster.partitions.load.voter)
    least = np.minimum(least, cluster.partitions.load.non_voter)
    placement = cluster.placement
    assert found.missing + found.level_proof.moves == found.moves_level
    for n, count, price in zip(
        found.level_proof.node, found.level_proof.count, found.level_proof.price, strict=True
    ):
        if not price.any():
            assert cluster.nodes.max_replicas[n] >= 0
            continue
        weight = least[placement.owner[placement.node == n]]
        excess = weight.sum(0) - found.target[n]
        largest = np.sort(np.where(price > 0, weight * price, 0.0).sum(1))[::-1]
        assert largest[: count - 1].sum() < np.where(price > 0, excess * price, 0.0).sum()


@pytest.mark.parametrize("name", LEAST)
def test_bounds_are_no_lower_than_those_of_the_reference_scorer(name):
    cluster = as_cluster(golden(name))
    for tolerance, least in LEAST[name].items():
        found = bounds(cluster, Goals(level=tolerance))
        assert least <= found.moves_level <= 1.02 * least
    assert found.forced == found.missing == {"small": 69, "medium": 539}[name]
    assert found.moves_feasible == {"small": 69, "medium": 548}[name]
    assert found.level_term == ("aggregate",) * 3
    expected = {
        "small": [0.696129191321499, 0.6979882097069597, 0.6958938649665551],
        "medium": [0.699736564805058, 0.6992483796558361, 0.6989028667697746],
    }
    assert found.fair == pytest.approx(expected[name], rel=1e-12)
    assert found.level == pytest.approx(expected[name], rel=1e-12)
    assert found.leaders == {"small": 27, "medium": 52}[name]


def test_several_dimensions_at_once_prove_more_than_each_alone():
    cluster = as_cluster(golden("medium"))
    alone = Goals(level={"d1": 0.04})
    assert bounds(cluster, alone).moves_level < bounds(cluster, Goals(level=0.04)).moves_level
    assert bounds(cluster, Goals(level=0.04)).moves_level > LEAST["medium"][0.04]


@pytest.mark.parametrize("seed", range(8))
def test_a_full_node_loses_as_many_replicas_as_its_largest_that_suffice(seed):
    rng = np.random.default_rng(seed)
    load, node = rng.exponential(1.0, 24), rng.integers(0, 4, 24) % 3
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((4, 1), 100.0), load=load[:, None], placement=node[:, None]
    )
    found = bounds(cluster, Goals(level=0.05))
    count = [
        int((held.sum() - np.append(0.0, np.cumsum(-np.sort(-held))) > target).sum())
        for held, target in ((load[node == n], found.target[n, 0]) for n in range(4))
    ]
    assert found.moves_level == sum(count)


def test_a_level_of_as_many_zones_as_replicas_is_bound_by_the_smallest_zone():
    instance = generate(P=60, N=9, Z=3, D=2, seed=3)
    instance["capacity"] = np.where(instance["zone"] == 1, 0.5, 1.0)[:, None] * instance["capacity"]
    found = bounds(as_cluster(instance), Goals())
    alive = ~instance["dead"]
    room = instance["capacity"][alive & (instance["zone"] == 1)].sum(0)
    assert found.level == pytest.approx(instance["load"].sum(0) / room)
    assert found.level_term == ("spread", "spread")
    assert (found.ratio > 1.0).all()


def test_each_term_can_be_the_binding_one():
    def term(**arrays):
        found = bounds(Cluster.from_arrays(**arrays), Goals(level=0.0))
        return found.level_term[0], float(found.level[0])

    ten = [[10.0]] * 3
    assert term(capacity=ten, load=[[1.0], [2.0], [3.0]] * 2, replicas=1) == ("aggregate", 0.4)
    assert term(capacity=ten, load=[[1.0]] * 4, replicas=1) == ("whole replicas", 0.2)
    assert term(capacity=ten, load=[[1.0], [5.0]], replicas=1) == ("largest replica", 0.5)
    everywhere = {"replicas": [3, 1]}  # beside what is on every node
    assert term(capacity=ten, load=[[2.0], [5.0]], **everywhere) == ("largest replica", 0.7)
    assert term(capacity=ten, load=[[4.0], [4.0], [4.5], [4.5]], replicas=1) == ("pigeonhole", 0.8)
    led = {"leads": [True, False, False], "placement": [[1, 2]] * 6, "leader": [0] * 6}
    assert term(capacity=ten, load=[[1.0]] * 6, **led) == ("leaders", 0.6)
    keeps = {"accepts": [False, True, True]}  # and may be as full as it is
    assert term(capacity=ten, load=[[1.0]] * 6, **led, **keeps) != ("leaders", 0.6)
    one = {"tags": {"ssd": [True, False, False]}, "rules": [Rule(place={"+ssd": 1})], "replicas": 2}
    assert term(capacity=ten, load=[[1.0]] * 6, **one) == ("place", 0.6)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(place={"region=b": 1}),
        Rule(voters_place={"region=b": 1}),
        Rule(place={"region=b": 1, "region=a": 1}, voters_require=["region=a"]),
        Rule(spread={"region": (2, "soft")}),
        Rule(place={"region=b": 1}, spread={"region": (2, "soft")}),
    ],
)
def test_the_only_node_of_a_region_has_a_replica_of_each_and_the_others_are_level(rule):
    rows = [[p % 8, (p + 1) % 8, (p + 3) % 8, 8] for p in range(8)]
    rows += [[0, 1, 2, 8]] * 4
    if rule.voters_place:
        rows = [[row[3], *row[:3]] for row in rows]
    cluster = Cluster.from_arrays(
        capacity=[[100.0]] * 9, load=[[1.0]] * 12, placement=rows, voters=3,
        domains={"region": [*"aaaaaaaab"]}, rules=[rule],
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.0)).target[:, 0].tolist() == [5.0] * 8 + [12.0]
    result = ek.solve(cluster, goals=Goals(level=0.0))
    assert result.goals_reached
    assert (
        np.bincount(result.placement.node, minlength=9).max(initial=0, where=[True] * 8 + [False])
        == 5
    )


def test_who_may_lead_lacks_room_for_all_leaders():
    cluster = Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 4, leader_load=[[2.0]] * 4, placement=[[0, 1]] * 4,
        leads=[True, False, False],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.status == "infeasible"
    assert "at least 200.00% of its capacity" in result.message
    assert "leaders" in result.message


def test_counts_are_levelled_to_whole_replicas():
    cluster = Cluster.from_arrays(
        capacity=[[100.0]] * 3, load=[[1.0]] * 10, placement=[[0]] * 10, dimensions=["count"]
    )
    found = bounds(cluster, Goals(level=0.0))
    assert found.target[:, 0].tolist() == [4.0, 4.0, 4.0]
    assert found.moves_level == 6
    assert bounds(cluster, Goals(level=None)).moves_level == 0


def test_places_that_whole_replicas_leave_free_in_a_part_are_room_for_the_others():
    cluster = Cluster.from_arrays(
        capacity=[[2.2], [2.2], [1.0], [1.0], [1.0]],
        load=[[1.0]] * 4,
        tags={"ssd": [True, True, False, False, False]},
        rules=[Rule(require=["+ssd"])],
        rule=[0, 0, 0, -1],
        replicas=1,
    )
    found = bounds(cluster, Goals(level=0.05))
    assert found.target[:, 0].tolist() == [2.0, 2.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("held", "skew", "least"),
    [
        ([0, 0, 1, 3, 3, 4, 5], {"node": 1}, 1),  # node 2 holds none
        ([0, 0, 1, 3, 3, 4, 5], {"zone": 1}, 0),
        ([0, 0, 1, 1, 2, 3], {"zone": 1}, 1),  # zone c
        ([0, 0, 0, 1, 1, 1], {"node": 2}, 0),
        ([0, 0, 0, 0, 0, 0], {"node": 1, "zone": 1}, 5),
        ([0, 1, 2], {"zone": 1}, 1),  # not two, one and none
    ],
)
def test_a_skew_makes_replicas_join_domains_that_hold_too_few(held, skew, least):
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]], placement=[held],
        domains={"zone": [*"aabbcc"]}, rules=[Rule(spread={"node": None}, skew=skew)],
    )  # fmt: skip
    found = bounds(cluster, Goals(level=None)).missing

    def broken(nodes):
        levels = [np.bincount(nodes, minlength=6)] if "node" in skew else []
        levels += [np.bincount(np.array(nodes) // 2, minlength=3)] if "zone" in skew else []
        return any(np.ptp(one) > amount for one, amount in zip(levels, skew.values(), strict=True))

    every = itertools.combinations_with_replacement(range(6), len(held))
    fewest = min(len({*nodes} - {*held}) for nodes in every if not broken(nodes))
    assert found == least <= fewest


@pytest.mark.parametrize(
    ("zones", "partitions", "skew", "target"),
    [
        ("aab", 6, 1, [2.0, 2.0, 3.0]),
        ("aab", 6, 2, [2.0, 2.0, 2.0]),  # two in zone b will do
        ("aaab", 9, 1, [2.0, 2.0, 2.0, 4.0]),
        ("abcc", 6, 1, [2.0, 2.0, 2.0, 2.0]),
        ("aab?", 7, 1, [2.0, 2.0, 2.0, 2.0]),  # the last node takes any number
    ],
)
def test_a_skew_of_a_group_forces_replicas_into_small_domains(zones, partitions, skew, target):
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * len(zones), load=[[1.0]] * partitions, replicas=1,
        domains={"zone": [None if zone == "?" else zone for zone in zones]},
        rules=[Rule(skew={"zone": skew})], group_rule=[0],
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.0)).target[:, 0].tolist() == target
    result = ek.solve(cluster, goals=Goals(level=0.0))
    assert result.success
    assert result.audit.hard == 0


def test_a_skew_of_a_group_leaves_targets_that_can_be_met():
    """Zone a takes two replicas at least, and zone c, which has most room, three at most."""
    cluster = Cluster.from_arrays(
        capacity=[[17.0], [33.0], [17.0], [17.0], [17.0]], load=[[1.0]] * 8,
        placement=[[p % 5] for p in range(8)], domains={"zone": [*"bccba"]},
        rules=[Rule(skew={"zone": 1})], group_rule=[0],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.success
    assert result.comparison.moves == 1


@pytest.mark.parametrize(("hot", "cold"), [(12, 9), (10, 9), (11, 7)])
def test_a_part_as_full_as_all_whole_replicas_ask_leaves_the_others_theirs(hot, cold):
    kinds = ["hot"] * 3 + ["cold"] * 3
    cluster = Cluster.from_arrays(
        capacity=[[100.0]] * 6,
        load=[[1.0]] * (hot + cold),
        tags={kind: [one == kind for one in kinds] for kind in ("hot", "cold")},
        rules=[Rule(require=["+hot"]), Rule(require=["+cold"])],
        rule=[0] * hot + [1] * cold,
        replicas=1,
    )
    found = bounds(cluster, Goals(level=0.05))
    assert found.target[:, 0].tolist() == [4.0] * 3 + [3.0] * 3


def test_zones_that_must_be_as_full_as_all_leave_each_other_what_is_forced():
    cluster = Cluster.from_arrays(
        capacity=[[13.0]] * 5, load=[[1.0]] * 3, replicas=[5, 5, 3],
        domains={"zone": [*"aabbc"]},
        rules=[Rule(spread={"zone": 2, "node": 1}), Rule(spread={"zone": 1, "node": 1})],
        rule=[0, 0, 1],
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.05)).target[:, 0].tolist() == [3.0] * 5


@pytest.mark.filterwarnings("error")
def test_a_node_beside_endless_ones_gets_no_fuller_than_where_rules_force_least():
    cluster = Cluster.from_arrays(
        capacity=[[np.inf], [8.0], [4.0], [4.0]],
        load=[[1.0]] * 4,
        domains={"zone": ["a", "a", "b", "b"]},
        spread={"zone": 1},
        replicas=2,
    )
    found = bounds(cluster, Goals(level=0.05))
    assert found.even[:, 0].tolist() == [0.0, 0.5, 0.5, 0.5]
    assert found.target[:, 0].tolist() == [np.inf, 4.0, 2.0, 2.0]


@pytest.mark.filterwarnings("error")
def test_replicas_that_endless_nodes_may_not_hold_are_divided_among_the_others():
    cluster = Cluster.from_arrays(
        capacity=[[np.inf], [4.0], [4.0]], load=[[1.0]] * 6, max_replicas=[2, -1, -1], replicas=1
    )
    assert bounds(cluster, Goals(level=0.05)).target[:, 0].tolist() == [np.inf, 2.0, 2.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("keeper", [8.0, np.inf])
@pytest.mark.parametrize("state", ["alive", "accepts"])
def test_what_nodes_that_accept_nothing_do_not_keep_is_forced_into_the_others(state, keeper):
    """Two of four keep one there; the endless node takes one of each."""
    cluster = Cluster.from_arrays(
        capacity=[[np.inf], [keeper], [8.0]],
        load=[[1.0]] * 4,
        placement=[[0, 1], [0, 1], [0, 2], [0, 2]],
        keeps=[True] * 3,
        **{state: [True, False, True]},
    )
    assert bounds(cluster, Goals(level=0.0)).target[2, 0] == 2.0


@pytest.mark.filterwarnings("error")
def test_a_keeper_with_an_end_shares_what_endless_keepers_and_nodes_leave():
    """The endless keeper holds none, and the endless node takes one of each."""
    cluster = Cluster.from_arrays(
        capacity=[[np.inf], [np.inf], [8.0], [8.0]],
        load=np.ones((4, 1)),
        placement=[[2, 3]] * 4,
        accepts=[False, True, False, True],
    )
    assert bounds(cluster, Goals(level=0.0)).target[:, 0].tolist() == [np.inf, np.inf, 2.0, 2.0]


INF = np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("capacity", "zones", "accepts", "placement", "replicas", "target"),
    [
        # node 0 and the endless node 2 share a zone, and so one replica of each; 4 and 5 are empty
        ([INF, 6, INF, 12, INF, 99], "babcac", "011100", [[0, -1]] * 9, 2, [3, 6]),
        # a replica that node 4 holds of another partition is no place for these
        ([INF, 6, INF, 12, INF], "babca", "01110", [*[[0]] * 9, *[[4]] * 5], [2] * 9 + [1] * 5,
         [3, 6]),
        # of two replicas that are kept in a zone beyond its limit, one leaves
        ([INF, INF, INF, 12, INF], "bbbcd", "00110", [[0, 1]] * 9, 2, [INF, 9]),
        # what is kept of one partition beyond what it wants is no place for another
        ([INF, 3, INF, 3], "abcd", "0101", [[0, 2], [0, -1]], [1, 2], [1, 1]),
    ],
)  # fmt: skip
def test_nodes_that_accept_nothing_are_places_only_for_what_they_hold(
    capacity, zones, accepts, placement, replicas, target
):
    cluster = Cluster.from_arrays(
        capacity=[[one] for one in capacity],
        load=np.ones((len(placement), 1)),
        placement=placement,
        replicas=replicas,
        domains={"zone": [*zones]},
        spread={"zone": 1},
        accepts=[one == "1" for one in accepts],
    )
    assert bounds(cluster, Goals(level=0.0)).target[[1, 3], 0].tolist() == target


def test_endless_nodes_for_few_replicas_are_in_the_part_that_is_forced():
    cluster = Cluster.from_arrays(
        capacity=[[np.inf], [np.inf], [8.0], [8.0]],
        load=[[1.0]] * 6,
        max_replicas=[-1, 2, -1, -1],
        replicas=2,
    )
    assert bounds(cluster, Goals(level=0.0)).target[2:, 0].tolist() == [2.0, 2.0]


def test_a_node_that_only_its_number_limits_is_no_room_for_a_level():
    """The endless nodes take two of three replicas of each partition, and others share the rest."""
    cluster = Cluster.from_arrays(
        capacity=[[3.0], [3.0], [np.inf], [np.inf]],
        load=[[1.0]] * 2,
        max_replicas=[-1, -1, -1, 4],
        replicas=3,
    )
    assert bounds(cluster, Goals(level=0.0)).target[:2, 0].tolist() == [1.0, 1.0]


def test_nodes_that_are_down_keep_what_fits_and_lets_a_partition_be_led():
    """Of 8 replicas there, 2 may stay on the small node, and one of each partition has to leave."""
    cluster = Cluster.from_arrays(
        capacity=[[2.0], [9.0], [8.0], [8.0]], load=[[1.0]] * 4, placement=[[0, 1]] * 4,
        alive=[False, False, True, True], keeps=[True] * 4,
    )  # fmt: skip
    assert bounds(cluster, Goals(level=0.0)).even[2:, 0].tolist() == [0.25, 0.25]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1.0, 0.1, 2.0**40])
@pytest.mark.parametrize(
    ("state", "even", "target"),
    [
        ({}, [0.375, 0.375, 0.25, 0.25], [3.0, 3.0, 4.0, 2.0]),
        # all that zone a wants may wait on its dead node
        ({"alive": [False, True, True, True]}, [0.25, 0.25, 0.25, 0.25], [8.0, 2.0, 4.0, 2.0]),
        ({"accepts": [False, True, True, True]}, [0.375, 0.375, 0.25, 0.25], [3.0, 3.0, 4.0, 2.0]),
        ({"keeps": [False, True, True, True]}, [0.25, 0.75, 0.25, 0.25], [2.0, 6.0, 4.0, 2.0]),
        ({"max_replicas": [2, -1, -1, -1]}, [0.5, 0.5, 0.25, 0.25], [4.0, 4.0, 4.0, 2.0]),
        ({"max_replicas": [0, -1, -1, -1]}, [0.75, 0.75, 0.25, 0.25], [6.0, 6.0, 4.0, 2.0]),
    ],
)
def test_nodes_beside_one_that_may_not_receive_have_a_target(state, even, target, unit):
    cluster = Cluster.from_arrays(
        capacity=[[8.0 * unit], [8.0 * unit], [16.0 * unit], [8.0 * unit]],
        load=[[unit]] * 6,
        placement=[[0, 2]] * 6,
        domains={"zone": ["a", "a", "b", "b"]},
        spread={"zone": 1},
        **({"keeps": [True] * 4} | state),
    )
    found = bounds(cluster, Goals(level=0.05))
    assert found.even[:, 0].tolist() == pytest.approx(even)
    assert (found.target[:, 0] / unit).tolist() == pytest.approx(target)


def test_room_that_a_part_lacks_for_whole_replicas_is_no_room_for_the_others():
    cluster = Cluster.from_arrays(
        capacity=[[3.9], [3.9], [7.9], [16.0], [4.0]],
        load=[[1.0]] * 14,
        domains={"zone": ["a", "b", "b", "c", "c"]},
        spread={"zone": 1},
        replicas=2,
    )
    found = bounds(cluster, Goals(level=0.0))
    assert found.least[:3, 0].sum() >= 13.0
    assert whole_loads(found.target[:, 0], 1.0).sum() >= 28.0


def test_leaders_are_bound_by_whole_numbers_and_weights():
    cluster = Cluster.from_arrays(
        capacity=[[100.0]] * 3, load=[[1.0]] * 10, lead_weight=[1.0, 1.0, 0.0], replicas=1
    )
    found = bounds(cluster, Goals(leaders=0.0))
    assert (found.leaders, found.leader_ratio) == (5, 1.0)
    assert found.leader_target.tolist() == [5.0, 5.0, 0.0]
    assert np.isinf(bounds(cluster, Goals()).leader_target).all()


def beside_keepers(rng):
    """A cluster some nodes of which keep what they hold and take nothing, or lead nothing."""
    nodes, count, copies = (int(rng.integers(low, high)) for low, high in ((2, 7), (1, 30), (1, 3)))
    few = int(rng.integers(copies, nodes + 1))
    return Cluster.from_arrays(
        capacity=[[100.0]] * nodes, load=[[1.0]] * count, tags={"ssd": rng.random(nodes) < 0.5},
        placement=[rng.choice(few, copies, replace=False).tolist() for _ in range(count)],
        accepts=rng.random(nodes) < 0.5, leads=rng.random(nodes) < 0.8,
        lead_weight=rng.choice([1.0, 1.0, 2.0], nodes),
        rules=[Rule(require=["+ssd"]), Rule(voters_require=["-ssd"])],
        rule=rng.choice(rng.choice([-1, 0, 1], 2), count).tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_what_is_led_in_a_set_of_nodes_only_is_found_as_by_trying_all_sets(seed):
    cluster = beside_keepers(np.random.default_rng(seed))
    nodes = cluster.nodes
    weight = np.where(nodes.may_lead, nodes.lead_weight, 0.0)
    asks = {-1: np.ones(len(nodes), bool), 0: nodes.tags["ssd"], 1: ~nodes.tags["ssd"]}
    may = [
        {
            n
            for n in np.flatnonzero(asks[int(rule)] & (weight > 0.0)).tolist()
            if nodes.may_receive[n] or n in row
        }
        for rule, row in zip(cluster.partitions.rule, cluster.placement.nodes, strict=True)
    ]
    found, level = Ways.of(cluster, weight).fullest(), np.inf
    inside, led = set(), 0.0
    for mask, alone in found:
        now = set(np.flatnonzero(mask).tolist())
        assert alone == sum(bool(of) and of <= now for of in may) and inside <= now
        rest = [n for n in np.flatnonzero(weight).tolist() if n not in inside]
        densest = max(
            ((sum(bool(of) and of <= inside | {*some} for of in may) - led) / weight[[*some]].sum()
             for size in range(1, len(rest) + 1) for some in itertools.combinations(rest, size)),
            default=0.0,
        )  # fmt: skip
        full = (alone - led) / weight[[*(now - inside)]].sum() if now > inside else 0.0
        assert full == pytest.approx(densest) and full < level * (1.0 + 1e-9)
        inside, led, level = now, alone, full
    assert led == sum(map(bool, may))


@pytest.mark.parametrize(("level", "led"), [(None, 4.0), (1.0, 5.0), (0.05, 6.0)])
def test_a_node_leads_no_more_than_it_may_hold(level, led):
    """Six of eleven have two nodes with room, one of them for two, or fewer within a tolerance."""
    cluster = Cluster.from_arrays(
        capacity=[[20.0], [2.0], [0.0], [20.0], [20.0]],
        load=[[1.0]] * 11,
        replicas=1,
        tags={"ssd": [True, True, True, False, False]},
        rules=[Rule(require=["+ssd"])],
        rule=[0] * 6 + [-1] * 5,
    )
    assert bounds(cluster, Goals(level=level, leaders=0.0)).leader_target[0] == led


def test_a_pinned_replica_is_led_on_a_node_that_is_closed_to_its_partition():
    cluster = Cluster.from_arrays(
        capacity=[[9.0]], load=[[1.0]] * 3, placement=[[0]] * 3, forbidden=[[1, 0]],
        flags=[0, Flag.PINNED, 0],
    )  # fmt: skip
    assert bounds(cluster, Goals(leaders=0.0)).leader_target.tolist() == [3.0]


def test_leaders_are_forced_into_nodes_beside_others_that_keep_the_same_partitions():
    """Nodes 1 and 2 take nothing, and keep the same ten partitions: five each."""
    cluster = Cluster.from_arrays(
        capacity=[[100.0]] * 4, load=[[1.0]] * 40, placement=[[1, 2]] * 10 + [[0, 3]] * 30,
        accepts=[True, False, False, True],
    )  # fmt: skip
    assert bounds(cluster, Goals(leaders=0.0)).leader_target.tolist() == [15.0, 5.0, 5.0, 15.0]


def test_an_empty_cluster_has_bounds():
    nothing = Cluster.from_arrays(capacity=np.zeros((0, 1)), load=np.zeros((0, 1)), replicas=0)
    found = bounds(nothing, Goals(level=0.0, leaders=0.0))
    assert (found.moves_level, found.leaders, found.level.tolist()) == (0, 0, [0.0])
    nowhere = Cluster.from_arrays(capacity=np.zeros((0, 1)), load=np.ones((2, 1)), replicas=1)
    assert bounds(nowhere, Goals()).moves_level == 2


@pytest.mark.small
@given(
    st.lists(st.floats(0.0, 20.0).map(lambda x: round(x, 2)), min_size=1, max_size=6),
    st.integers(0, 40),
)
def test_whole_level_is_the_least_at_which_as_many_fit(room, count):
    bins = np.array(room)
    level = whole_level(bins, count)
    if not bins.any():
        assert level == (np.inf if count else 0.0)
        return
    held = np.floor(level * bins + 1e-9).sum()
    assert held >= count
    assert count == 0 or np.floor(level * (1 - 1e-6) * bins + 1e-9).sum() < count


def test_a_placement_at_its_bound_is_found_to_need_nothing():
    cluster = Cluster.from_arrays(
        capacity=[[8.0], [8.0]], load=[[3.0], [1.0], [2.0]], placement=[[0], [1], [1]]
    )
    found = bounds(cluster, Goals(level=0.0))
    assert found.moves_level == 0
    assert (node_loads(cluster, cluster.placement) <= found.target).all()


def test_a_node_counts_for_one_replica_of_each_partition():
    cluster = ek.Cluster.from_arrays(
        capacity=[[300, 100], [300, 300], [100, 300]], load=[[3.0, 1.0]] * 4,
        placement=[[2, 0], [2, 1], [0, 2], [0, 1]],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    assert result.status in ("optimal", "feasible")


def test_dimensions_that_no_replica_loads_together_are_bound_one_by_one():
    cluster = Cluster.from_arrays(
        capacity=np.full((3, 2), 100.0),
        load=np.array([[0.0, 41.0], [32.0, 0.0], [5.0, 0.0], [0.0, 35.0], [4.0, 0.0]]),
        replicas=1,
        placement=np.ones((5, 1), int),
    )
    assert bounds(cluster, Goals()).moves_level == 2


@pytest.mark.parametrize("seed", range(60))
def test_targets_of_replicas_alike_are_the_least_that_can_be_met_together(seed):
    """Whichever dimension would be the only one, all of them together leave room for all."""
    rng = np.random.default_rng(seed)
    nodes, dimensions, count = rng.integers([2, 2, 3], [5, 4, 13]).tolist()
    room = np.round(rng.uniform(2.0, 12.0, (nodes, dimensions)), 1) + count / nodes
    tolerance, unit = rng.choice([0.0, 0.05, 0.2]), np.array([1.0, 5 * 2.0**30, 0.1])[:dimensions]
    few = count // 2 if nodes > 2 and seed % 2 else 0
    of_few = {
        "tags": {"ssd": np.arange(nodes) < 2}, "rules": [Rule(require=["+ssd"])],
        "rule": np.where(np.arange(count) < few, 0, -1), "placement": [[0]] * count,
    }  # fmt: skip
    ways = [
        np.array(way) for way in itertools.product(*(range(int(most) + 1) for most in room.min(1)))
        if sum(way) == count and sum(way[:2]) >= few
    ]  # fmt: skip
    if not ways:
        return
    goals = Goals(level=tolerance)

    def cluster_of(chosen):
        load = np.tile(unit[chosen], (count, 1))
        return Cluster.from_arrays(capacity=(room * unit)[:, chosen], load=load, **of_few)

    alone = [bounds(cluster_of([d]), goals).target[:, 0] / unit[d] for d in range(dimensions)]
    result = ek.solve(cluster_of([*range(dimensions)]), goals=goals)
    asked = (1.0 + tolerance) * result.bounds.even * room

    def raised(way):
        above = way[:, None] > np.array(alone).T * (1.0 + 1e-9)
        return np.sort(np.where(above, way[:, None] / asked, 1.0).max(0))[::-1].round(8).tolist()

    assert result.goals_reached
    assert raised((result.levelness.loads / unit).round()[:, 0]) <= min(map(raised, ways))


@pytest.mark.parametrize("away", ["forbidden", "require"])
def test_what_must_leave_a_node_that_only_keeps_is_no_share_of_it(away):
    """Two of its three replicas must leave: the others share eleven of twelve, not nine."""
    given = {"forbidden": [[0, 0], [1, 0]]}
    if away == "require":
        given = {"tags": {"ok": [False, True, True]}, "rules": [Rule(require=["+ok"])],
                 "rule": [0, 0] + [-1] * 10}  # fmt: skip
    cluster = Cluster.from_arrays(
        capacity=[[12.0]] * 3, load=[[1.0]] * 12, accepts=[False, True, True],
        placement=[[0]] * 3 + [[1]] * 5 + [[2]] * 4, **given,
    )  # fmt: skip
    result = ek.solve(cluster, goals=Goals(level=0.0))
    assert (result.status, result.bounds.target[1:, 0].tolist()) == ("optimal", [6.0, 6.0])
    assert sorted(result.levelness.loads[:, 0].tolist()) == [1.0, 5.0, 6.0]


def test_full_nodes_lose_more_than_rules_take_from_them():
    """Rules take one replica of each partition from nodes 0 to 2, the target two of each three."""
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 9, load=[[1.0]] * 3, placement=[[0, 1, 2]] * 3,
        domains={"zone": [*"aaabbbbbb"]}, spread={"zone": 2},
    )  # fmt: skip
    found = bounds(cluster, Goals(level=None))
    assert (found.moves_level, found.moves_term) == (3, "broken rules")
    found = ek.solve(cluster, goals=Goals(level=0.0))
    assert (found.status, found.comparison.moves, found.bounds.moves_term) == (
        "optimal", 6, "overfull nodes"
    )  # fmt: skip


def test_a_target_beyond_all_numbers_is_the_capacity():
    given = {"capacity": [[1e-300], [0.0]], "load": [[1.7e8]], "replicas": 1}
    found = bounds(Cluster.from_arrays(**given), Goals(level=0.2))
    assert found.target.tolist() == given["capacity"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("capacity", [1e-300, 1.0, 1e9, 1e14])
@pytest.mark.parametrize("load", [5e-324, 1e-308, 1e-300, 1e-295, 1e-200])
@pytest.mark.parametrize("led", [1.0, 2.0])
def test_loads_near_nothing_are_solved_and_proven_as_others_are(capacity, load, led):
    cluster = Cluster.from_arrays(
        capacity=[[capacity]] * 3, load=[[load]] * 4, leader_load=[[led * load]] * 4,
        placement=[[0]] * 4,
    )  # fmt: skip
    result = ek.solve(cluster, goals=Goals(level=0.1))
    assert not result.goals_reached or result.bounds.moves_level <= result.comparison.moves
    assert str(result) and result.gap


@pytest.mark.parametrize("rows", [0, 1, ROWS - 1, ROWS, 3 * ROWS + 1])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_the_greatest_of_a_column_is_found_wherever_it_stands(rows, columns):
    loads = np.random.default_rng(rows).random((rows, columns))
    for end in (loads[::-1], np.asfortranarray(loads), loads):
        assert column_maxima(end).tolist() == end.max(0, initial=0.0).tolist()


def test_a_partition_whose_nodes_are_all_dead_has_a_replica_elsewhere_to_lead():
    cluster = Cluster.from_arrays(
        capacity=[[20.0]] * 6, load=[[1.0]] * 15, placement=[[0, 1]] * 15,
        alive=[False, False, True, True, True, True], keeps=[True] * 6,
        domains={"zone": [*"abcabc"]}, spread={"zone": 1},
    )  # fmt: skip
    result = ek.solve(cluster, goals=Goals(level=0.01))
    assert result.bounds.moves_level == result.comparison.moves == 15
    assert result.bounds.target[2:, 0].tolist() == [4.0] * 4
    assert result.status == "optimal"


@pytest.mark.parametrize(
    ("spread", "least"), [({"node": 1}, 2), ({"zone": 1}, 3), ({"node": 1, "zone": 2}, 2)]
)
def test_replicas_leave_domains_with_too_many_of_a_group(spread, least):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]] * 6, placement=[[0], [0], [1], [0], [0], [2]],
        domains={"zone": [*"aabcd"]}, group=["x", "x", "x", "y", "y", "z"],
        rules=[ek.Rule(spread=spread)], group_rule=[0, 0, -1],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert (result.status, result.comparison.moves, result.bounds.moves_feasible) == (
        "optimal", least, least,
    )  # fmt: skip
    assert result.bounds.moves_term == "groups on crowded nodes"


@pytest.mark.parametrize("seed", range(60))
def test_forbidden_nodes_leave_the_rest_to_others(seed: int) -> None:
    """No placement is more level than is proven, and where few sets are forbidden some is so."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    away = rng.permutation(nodes)[: int(rng.integers(1, nodes))]
    banned = np.array([[p, n] for p in range(partitions) for n in away if rng.random() < 0.8])
    cluster = ek.Cluster.from_arrays(
        capacity=rng.integers(4, 9, (nodes, 1)).astype(float), load=np.ones((partitions, 1)),
        placement=rng.integers(0, nodes, (partitions, 1)), forbidden=banned.reshape(-1, 2),
    )  # fmt: skip
    closed = {(p, n) for p, n in banned.tolist()}
    may = [[n for n in range(nodes) if (p, n) not in closed] for p in range(partitions)]
    room = cluster.nodes.capacity[:, 0]
    least = min((np.bincount(at, minlength=nodes) / room).max() for at in itertools.product(*may))
    proven = bounds(cluster, ek.Goals(level=0.0))
    assert proven.level[0] <= least * (1.0 + 1e-9)
    if len(banned) == partitions * len(away):
        assert proven.level[0] == pytest.approx(least)
        assert ek.solve(cluster, goals=ek.Goals(level=0.0)).goals_reached
