"""What held before ``balance`` holds after it, rule by rule and partition by partition."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.methods.levelling.run import searched
from evenkeel.methods.registry import find
from evenkeel.methods.run import checked
from evenkeel.methods.shared.stopping import Watch
from tests.judge.clusters import draw
from tests.judge.trial import try_one
from tests.support.random_problems import random_cluster


def row_counts(placement: ek.Placement) -> list[int]:
    """How many replicas of each partition share a node with another one of it."""
    rows = np.split(placement.node, placement.first[1:-1])
    return [len(row[row >= 0]) - len(set(row[row >= 0].tolist())) for row in rows]


def two_zones() -> ek.Cluster:
    return ek.Cluster.from_arrays(
        capacity=[[100.0]] * 6,
        domains={"zone": [*"aaabbb"]},
        load=[[10.0]] * 8,
        placement=[[0, 1, 3]] * 4 + [[0, 2, 4]] * 4,
        spread={"zone": 1},
    )


def test_a_spread_beyond_mending_leaves_one_replica_per_node() -> None:
    result = ek.solve(two_zones(), goals=ek.Goals(level=0.05))
    assert sum(row_counts(result.placement)) == 0


def skewed(per_group: int = 9) -> ek.Cluster:
    groups = 10
    count = groups * per_group
    rng = np.random.default_rng(3)
    return ek.Cluster.from_arrays(
        capacity=[[1000.0]] * 9,
        domains={"zone": [*"aaabbbccc"]},
        load=rng.lognormal(0.0, 1.0, (count, 1)),
        placement=[[(i % 3) * 3] for i in range(count)],
        group=[i // per_group for i in range(count)],
        rules=[ek.Rule(skew={"zone": 1})],
        group_rule=[0] * groups,
    )


@pytest.mark.parametrize("per_group", [9, 90])
def test_a_skew_of_groups_that_held_is_kept(per_group: int) -> None:
    cluster = skewed(per_group)
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    assert result.audit.counts["skew"] == 0


@pytest.mark.parametrize("rule", [ek.Rule(spread={"zone": 1}), ek.Rule(min_domains={"zone": 3})])
def test_what_is_dropped_mends_rules_first(rule: ek.Rule) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(60):
        zones = rng.permutation(5)[:3]
        row = [int(z * 6 + rng.integers(6)) for z in zones]
        twin = int(zones[0] * 6 + (row[0] - zones[0] * 6 + 1) % 6)
        rows.append([int(n) for n in rng.permutation([*row, twin])])
    cluster = ek.Cluster.from_arrays(
        capacity=[[1e6]] * 30,
        domains={"zone": [z for z in "abcde" for _ in range(6)]},
        load=[[1.0]] * 60,
        placement=rows,
        replicas=3,
        rules=[rule],
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.status != "partial"
    assert result.comparison.moves == 0


def test_single_replicas_go_where_they_can_be_led() -> None:
    rng = np.random.default_rng(2)
    leads = np.arange(20) >= 6
    cluster = ek.Cluster.from_arrays(
        capacity=[[40.0]] * 20, load=[[1.0]] * 300, leads=leads,
        placement=rng.integers(0, 20, (300, 1)),
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.counts["leader"] == 0


def test_what_is_drained_leaves_dead_ones_their_place() -> None:
    zones = [*"aaabbbccc"]
    placement = [[i % 3, 3 + (i // 3) % 3, 6 + (i // 2) % 3] for i in range(60)]
    alive = np.arange(9) != 8
    keeps = alive & ~np.isin(np.arange(9), (3, 4, 5))
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 9, domains={"zone": zones}, load=[[1.0]] * 60,
        placement=placement, spread={"zone": 1}, alive=alive, keeps=keeps, accepts=keeps,
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.audit.counts["spread"] == 0
    assert result.audit.counts["on_dead"] == result.audit.counts["unassigned"] == 0


@pytest.mark.parametrize("seed", [9, 10, 18, 43, 50, 93, 98, 104, 183, 192, 193])
def test_a_search_cut_short_worsens_nothing(seed: int) -> None:
    """Over-full nodes and domains, leaders among them: each was made worse once."""
    cluster = random_cluster(seed)
    result = ek.solve(cluster, goals=ek.Goals(level=0.1), seed=seed, work_limit=3_000)
    assert not result.regressions


def test_a_leader_new_at_home_takes_room_of_its_own() -> None:
    """What hands over before it leaves holds no more there than a follower does."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0], [20.0], [20.0]],
        load=[[3.0]],
        leader_load=[[5.0]],
        placement=[[1, 0]],
        leader=[0],
        transient=["d0"],
    )
    result = ek.solve(cluster.drain("n1"))
    leads = result.placement.nodes[0][result.placement.leader[0]]
    assert leads == 2
    assert result.audit.hard == 0


def test_of_replicas_too_many_those_that_serve_nobody_go_first() -> None:
    """A voter too many by role, and the replica that does not vote on a node that is down."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], replicas=2, voters=1, placement=[[0, 1, 2]],
        role=[[0, 0, 1]], alive=[True, True, False], keeps=[True] * 3,
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert not result.regressions
    assert result.placement.node.tolist() == [0, 1, -1]


def test_what_waits_on_a_draining_node_stays_while_another_replica_is_down():
    """One is down but kept, two wait on draining nodes, and only one of these is to be replaced."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5,
        load=[[1.0]],
        placement=[[0, 3, 2, 1, 4]],
        replicas=4,
        alive=[True, True, True, False, True],
        accepts=[False, True, True, False, False],
        keeps=[False, True, True, True, False],
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert not result.regressions
    assert {0, 1, 2, 4} <= set(result.placement.nodes[0].tolist())


def test_what_adds_no_load_joins_a_node_that_is_over_full():
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0, 9.0]],
        load=[[5.0, 1.0], [0.0, 2.0]],
        placement=[[0], [-1]],
        tier_capacity={"rack": [[4.0, 9.0]]},
        domains={"rack": ["r"]},
    )
    result = ek.solve(cluster)
    assert result.placement.nodes.tolist() == [[0], [0]]
    assert result.audit.counts["unassigned"] == 0


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        ("rules", 600055),
        ("anything", 600226),
        ("rules", 600257),
        ("anything", 600252),
        ("extras", 600317),
        ("budgets", 600360),
        ("states", 600671),
        ("roles", 600696),
        ("anything", 600863),
        ("lost_zone", 600818),
        ("roles", 601106),
        ("states", 601098),
        ("budgets", 60030),
        ("extras", 70036),
        ("rules", 70119),
        ("anything", 400752),
        ("overfull", 400537),
        ("roles", 2000315),
        ("few_may_lead", 2100003),
        ("few_may_lead", 2100110),
        ("anything", 2000606),
        ("extras", 2100386),
        ("roles", 2100853),
        ("rules", 2101046),
        ("anything", 2200229),
        ("extras", 2601424),
    ],
)
def test_surplus_that_holds_up_a_rule_stays_and_leaders_step_down_where_there_is_room(
    family: str, seed: int
) -> None:
    tried = try_one(draw(family, seed))
    assert tried.findings == []


def test_a_search_that_began_without_a_live_replica_does_not_put_it_back() -> None:
    """CP-SAT had let another stand where it stood; both together are too much for that node."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0], [1.0]], load=[[1.0]] * 2, placement=[[0, -1], [1, -1]],
        replicas=[2, 1], forbidden=[[0, 1]],
    )  # fmt: skip
    start = cluster.placement.replaced(np.array([-1, -1, 0, 1], np.int32), cluster.placement.leader)
    request = checked(
        find("balance"), cluster, goals=ek.Goals(level=None), limits=None, options=None,
        start=start, watch=Watch(None, None, None), seed=0,
    )  # fmt: skip
    ended = searched(request)
    assert np.bincount(ended.node[ended.node >= 0]).max() == 1


@pytest.mark.parametrize(
    ("placement", "synced"), [([1, 3, 2], 2), ([1, 3, -1], 1), ([1, 3, -1], 0), ([1, 3, 2], 1)]
)
def test_a_replica_in_sync_leads_no_partition_that_its_node_has_no_room_to_lead(
    placement: list[int], synced: int
) -> None:
    flags = np.zeros((2, 3), np.uint16)
    flags[1, synced] = ek.Flag.HEALTHY | ek.Flag.CAUGHT_UP
    cluster = ek.Cluster.from_arrays(
        capacity=[[7.0]] * 6, load=[[3.5], [2.7]], leader_load=[[3.5], [8.0]],
        placement=[[3, -1, -1], placement], leader=[0, -1], flags=flags,
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.regressions == {}
    assert result.placement.leader.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("family", "seed", "work"),
    [
        ("anything", 7800014, 3_000),  # the voter on a lost node has no other yet
        ("roles", 8000034, 700),  # who led was dropped, and the voter has no room to lead
        ("anything", 8100062, 5_000),
        ("roles", 8100000, 5_000),
    ],
)
def test_a_replica_dropped_before_the_search_was_cut_short_comes_back(
    family: str, seed: int, work: int
) -> None:
    kinds = {one.kind for one in try_one(draw(family, seed), work=work).findings}
    assert not kinds & {"lost a live replica", "lost its leader", "raised AssertionError"}
