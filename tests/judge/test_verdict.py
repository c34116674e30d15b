"""Test the judge on tampered results and on fixed clusters with known findings."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.levelness import levelness
from tests.judge.beside import beside_the_best
from tests.judge.broken import everything
from tests.judge.case import Case, build
from tests.judge.clusters import FAMILIES, draw
from tests.judge.mending import left_undone
from tests.judge.trial import try_one
from tests.judge.verdict import by_role, claims, exceeded, on_the_way, standing_of, worse
from tests.judge.world import Standing, World
from tests.support.effort import mostly_long

WORK = 2_000


@pytest.mark.parametrize("seed", mostly_long(range(7), [0]))
def test_fixed_clusters_show_nothing(seed):
    found = set()
    for family in FAMILIES:
        tried = try_one(draw(family, seed), work=WORK)
        found |= {(family, finding.kind) for finding in tried.findings}
    assert sorted(found) == []


@pytest.mark.parametrize("seed", [453, 8933, 14593, 19865, 20933])
def test_nodes_that_are_down_and_keep_take_no_share_but_what_may_stay(seed):
    """Parts that rules force loads into were passed over where such nodes stood in them."""
    case = draw("whole_loads", seed)
    assert False in case.cluster.get("alive", [False])
    assert try_one(case).findings == []


KEPT = [
    ("whole_loads", 3018762),
    ("whole_loads", 3034083),
    ("whole_loads", 3044546),
    ("whole_loads", 3050074),
    ("whole_loads", 3053985),
    ("whole_loads", 3063649),
    ("whole_loads", 3100075),
    ("whole_loads", 3200260),
    ("whole_loads", 3200682),
    ("holders", 3200235),
    ("holders", 3200700),
    ("holders", 3201258),
]


LED = [
    ("leaders_beside", 52),
    ("leaders_beside", 285),
    ("leaders_beside", 287),
    ("leaders_beside", 298),
    ("groups_beside", 37),
    ("groups_beside", 270),
    ("groups_beside", 729),
    ("whole_loads", 9010),
    ("whole_loads", 30401),
    ("holders", 9084),
    ("leaders_beside", 30275),
    ("leaders_beside", 30909),
    ("groups_beside", 9262),
    ("groups_beside", 400173),
    ("zones", 400191),
]


@pytest.mark.parametrize(("family", "seed"), LED)
def test_all_that_can_be_led_can_be_led_within_the_targets(family: str, seed: int):
    assert try_one(draw(family, seed)).findings == []


@pytest.mark.parametrize(("family", "seed"), KEPT)
def test_nodes_that_accept_nothing_keep_what_they_hold_but_one_that_leads(family: str, seed: int):
    """The others have to hold the rest, whether or not one of them is endless."""
    assert try_one(draw(family, seed)).findings == []


@pytest.mark.parametrize("seed", [22, 101, 169, 366, 200370, 200483, 910176])
def test_what_terms_on_voters_force_has_room_within_the_targets(seed: int):
    assert try_one(draw("placed_voters", seed)).findings == []


FORCED = {
    # of three, one has to be on a small node, as no more than two may be on the large one
    "by a group": {"capacity": [[6.0], [24.0], [6.0]], "load": [[3.0]] * 3, "placement": [[1]] * 3,
                   "group": [0] * 3, "rules": [{"spread": {"node": 2}}], "rule": [-1] * 3,
                   "group_rule": [0]},
    # the rack of two nodes and the node without a rack take one of each: the third has two
    "beside a node without a rack": {
        "capacity": [[2.0], [4.0], [2.0], [8.0]], "load": [[1.0]] * 2, "spread": {"rack": 1},
        "domains": {"rack": ["a", "a", "b", ""]}, "placement": [[0, 2, 3], [1, 2, 3]]},
}  # fmt: skip


@pytest.mark.parametrize("name", FORCED)
def test_what_a_spread_forces_is_no_more_than_allowed(name):
    given = FORCED[name]
    assert try_one(Case("by hand", 0, given, {"level": 0.1})).findings == []


def test_a_floor_is_whole_replicas_of_what_a_node_can_hold():
    """A node of 8 holds two of 3 each, although the mean is 9 and its target 8."""
    lives, takes = [False, False, True, True, True], [False, False, True, True, False]
    given = {"capacity": [[8.0]] * 5, "load": [[3.0]] * 3, "replicas": 2, "alive": lives,
             "accepts": takes, "keeps": lives, "placement": [[0, 1]] * 3}  # fmt: skip
    assert try_one(Case("by hand", 0, given, {"level": None, "floor": 0.0})).findings == []


def test_a_floor_is_no_more_than_replicas_in_roles_that_there_are_come_to():
    """The large node holds all that it may, four voters; the mean is six."""
    given = {"capacity": [[2.0], [2.0], [12.0]], "load": [[1.0]] * 4, "replicas": 2,
             "non_voter_load": [[2.0]] * 4, "placement": [[0, 2]] * 4}  # fmt: skip
    assert try_one(Case("by hand", 0, given, {"level": None, "floor": 0.0})).findings == []


@pytest.mark.small
def test_the_same_seed_draws_the_same_case():
    for family in FAMILIES:
        assert draw(family, 3) == draw(family, 3)


TWO_ZONES = {
    "capacity": [[10.0]] * 4,
    "load": [[2.0], [3.0]],
    "domains": {"zone": [*"aabb"]},
    "placement": [[0, 2], [1, 3]],
}


def world(limits: dict | None = None, **changed: object) -> World:
    return World(Case("by hand", 0, {**TWO_ZONES, **changed}, {"level": None}, limits or {}))


def kinds(found) -> set[str]:
    return {finding.kind for finding in found}


CAME = [[0, 2], [1, 3]]
WORSE = {
    "broke spread": (world(spread={"zone": 1}), [[0, 1], [1, 3]], [0, 0]),
    "broke same_node": (world(), [[0, 0], [1, 3]], [0, 0]),
    "broke min_domains": (world(rules=[{"min_domains": {"zone": 2}}]), [[0, 1], [1, 3]], [0, 0]),
    "broke max_domains": (
        world(placement=[[0, 1], [1, 3]], rules=[{"max_domains": {"zone": 1}}]), CAME, [0, 0],
    ),
    "broke skew": (world(rules=[{"skew": {"zone": 1}}]), [[0, 1], [1, 3]], [0, 0]),
    "broke require": (
        world(placement=[[0, 1], [1, 3]], rules=[{"require": ["zone=a"]}]), CAME, [0, 0],
    ),
    "broke voters_require": (
        world(placement=[[0, 1], [1, 3]], rules=[{"voters_require": ["zone=a"]}]), CAME, [0, 0],
    ),
    "broke place": (world(rules=[{"place": {"zone=a": 1}}]), [[3, 2], [1, 3]], [0, 0]),
    "broke voters_place": (
        world(rules=[{"voters_place": {"zone=a": 1}}]), [[3, 2], [1, 3]], [0, 0],
    ),
    "broke forbidden": (world(forbidden=[[0, 3]]), [[0, 3], [1, 3]], [0, 0]),
    "broke pinned": (world(flags=[[1, 0], [0, 0]]), [[1, 2], [1, 3]], [0, 0]),
    "broke capacity": (world(capacity=[[4.0]] * 4), [[1, 2], [1, 3]], [0, 0]),
    "worsened capacity": (world(capacity=[[10.0], [1.0], [9.0], [9.0]]), [[1, 2], [1, 3]], [0, 0]),
    "broke transient": (
        world(capacity=[[4.0]] * 4, dimensions=["d"], transient=["d"]), [[1, 2], [0, 3]], [0, 0],
    ),
    "broke max_replicas": (world(max_replicas=[1] * 4), [[1, 2], [1, 3]], [0, 0]),
    "broke tier_capacity": (
        world(tier_capacity={"zone": [[5.0], [5.0]]}), [[0, 1], [1, 3]], [0, 0],
    ),
    "broke surplus": (
        world(placement=[[0, 2, -1], [1, 3, -1]], replicas=2), [[0, 2, 1], [1, 3, -1]], [0, 0],
    ),
    "broke not_kept": (
        world(keeps=[True, True, True, False], placement=CAME), [[0, 3], [1, 3]], [0, 0],
    ),
    "broke min_active": (world(min_active=2), [[0, -1], [1, 3]], [0, 0]),
    "lost a live replica": (world(), [[0, -1], [1, 3]], [0, 0]),
    "lost a replica that waited": (
        world(alive=[True] * 3 + [False], keeps=[True] * 4), [[0, 2], [1, -1]], [0, 0],
    ),
    "joined a node that takes none": (
        world(accepts=[True, False, True, True]), [[1, 2], [1, 3]], [0, 0],
    ),
    "lost its leader": (world(), CAME, [-1, 0]),
    "led by who may not lead": (world(leads=[True, True, False, True]), CAME, [1, 0]),
    "led from behind": (world(flags=[[16, 0], [16, 16]]), CAME, [1, 0]),
    "wish dropped soft_spread": (
        world(spread={"zone": (1, "soft")}), [[0, 1], [1, 3]], [0, 0],
    ),
    "wish dropped lead": (world(rules=[{"lead": ["zone=a"]}]), CAME, [1, 0]),
}  # fmt: skip


@pytest.mark.small
@pytest.mark.parametrize("kind", WORSE)
def test_what_is_worse_is_found(kind):
    at, rows, leaders = WORSE[kind]
    assert kind in kinds(worse(at, Standing(rows, leaders)))
    assert kinds(worse(at, at.came)) == set()


@pytest.mark.small
def test_a_group_is_judged_as_a_whole():
    grouped = world(
        load=[[1.0]] * 4, placement=[[0], [1], [2], [3]], group=[0, 0, 1, 1],
        domains={"zone": [*"abab"]}, rules=[{"skew": {"zone": 1}}], group_rule=[0, 0],
    )  # fmt: skip
    assert kinds(worse(grouped, Standing([[0], [2], [2], [3]], [0] * 4))) == {"broke skew"}


@pytest.mark.small
def test_a_skew_counts_domains_that_the_rule_of_the_group_leaves_open():
    grouped = world(
        placement=[[0, 1], [2, 3]], domains={"zone": [*"abac"]}, group=[0, 0],
        rules=[{"skew": {"zone": 0}}, {"require": ["zone!=c"]}], rule=[0, 0], group_rule=[1],
    )  # fmt: skip
    assert not kinds(worse(grouped, Standing([[0, 1], [2, 1]], [0, 0])))
    assert kinds(worse(grouped, Standing([[0, 2], [2, 3]], [0, 0]))) == {"broke skew"}


def test_dropping_what_is_dead_is_no_loss():
    dead = world(alive=[True] * 3 + [False], rules=[{"min_domains": {"zone": 2}}])
    assert kinds(worse(dead, Standing([[0, 2], [1, -1]], [0, 0]))) == set()
    # what only a dead replica met did not hold
    assert kinds(worse(dead, Standing([[0, 2], [1, 0]], [0, 0]))) == set()
    assert kinds(worse(dead, Standing([[0, 1], [1, -1]], [0, 0]))) == {"broke min_domains"}


BUDGETS = {
    "moves": (1, 2, [[1, 2], [0, 3]], [0, 0]),
    "bytes": (2.5, 3.0, [[0, 2], [0, 3]], [0, 0]),
    "node_in": (0, 1, [[1, 2], [1, 3]], [0, 0]),
    "node_out": (0, 1, [[1, 2], [1, 3]], [0, 0]),
    "partition_moves": (1, 2, [[1, 3], [1, 3]], [0, 0]),
    "leader_changes": (0, 1, CAME, [1, 0]),
    "domain_in": ({"zone": 0}, {"zone": 1}, [[0, 1], [1, 3]], [0, 0]),
    "domain_out": ({"zone": 0}, {"zone": 1}, [[0, 1], [1, 3]], [0, 0]),
}


@pytest.mark.small
@pytest.mark.parametrize("budget", BUDGETS)
def test_budgets_are_counted(budget):
    too_few, enough, rows, leaders = BUDGETS[budget]
    after = Standing(rows, leaders)
    for amount, found in ((too_few, {f"exceeded {budget}"}), (enough, set())):
        at = world({budget: amount}, dimensions=["size"], bytes="size")
        assert kinds(exceeded(at, after)) == found


UNDONE = {
    "left unplaced though it fits": world(placement=[[0, -1], [1, 3]], replicas=2),
    "no lawful leader though one stands by": world(leads=[False, True, True, True]),
    "kept a surplus replica": world(placement=[[0, 2, 3], [1, 3, 0]], replicas=2),
}


@pytest.mark.small
@pytest.mark.parametrize("kind", UNDONE)
def test_what_one_step_mends_is_found(kind):
    at = UNDONE[kind]
    assert kind in kinds(left_undone(at, at.came))


def solved(**changed: object) -> tuple[World, ek.Result]:
    case = Case("by hand", 0, {**TWO_ZONES, **changed}, {"level": 0.5})
    cluster, goals, _ = build(case)
    return World(case), ek.solve(cluster, goals=goals)


def test_an_honest_result_is_left_alone():
    at, result = solved()
    assert list(claims(at, at.came, result)) == []


def test_cp_sat_finds_what_was_left_undone():
    at, result = solved(placement=[[0, -1], [1, 3]], replicas=2, min_active=2)
    idle = lie(result, placement=result.cluster.placement, status="partial")
    found = kinds(beside_the_best(at, at.came, idle).findings)
    assert found == {"mendable but unmended", "more partitions 1 below min_active than need be"}
    assert kinds(beside_the_best(at, standing_of(result.placement), result).findings) == set()


def lie(result: ek.Result, **said: object) -> ek.Result:
    return replace(result, **said)


LIES = {
    "success with rules broken": (
        {"placement": [[0, 0], [1, 3]]}, {"status": "feasible"},
    ),
    "partial with nothing broken": ({}, {"status": "partial"}),
    "stopped by limits without any": ({}, {"stop_reason": "limits"}),
    "tolerance without reaching the goals": (
        {"placement": [[0, 1], [0, 1]]}, {"stop_reason": "tolerance"},
    ),
    "message says goals missed": ({}, {"status": "missed"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
def test_false_words_are_found(kind):
    given, said = LIES[kind]
    at, result = solved(**given)
    result = lie(result, placement=result.cluster.placement, **said)
    assert kind in kinds(claims(at, at.came, result))


BOUNDS = {
    "level bound above the attained": lambda b: {"level": b.level * 1e6},
    "leader bound above the attained": lambda b: {"leaders": 99},
    "bound on mending moves too high": lambda b: {"moves_feasible": 99},
    "bound on moves too high": lambda b: {"moves_level": 99},
}


@pytest.mark.parametrize("kind", BOUNDS)
def test_false_bounds_are_found(kind):
    at, result = solved()
    result = lie(result, bounds=replace(result.bounds, **BOUNDS[kind](result.bounds)))
    assert kind in kinds(claims(at, at.came, result))


def test_floors_that_are_not_as_asked_are_found():
    case = draw("exclusions", 0)
    cluster, goals, limits = build(case)
    result = ek.solve(cluster, goals=goals, limits=limits)
    at, after = World(case), standing_of(result.placement)
    assert "floor" not in kinds(claims(at, after, result))
    none = replace(result.bounds, floor=np.zeros_like(result.bounds.floor))
    unasked = lie(result, bounds=none, levelness=levelness(cluster, cluster.placement))
    assert unasked.goals_reached  # as nothing is asked any more
    assert "floor" in kinds(claims(at, at.came, unasked))
    more = replace(result.bounds, floor=result.bounds.floor * 9.0)
    assert "floor" in kinds(claims(at, after, lie(result, bounds=more)))


@pytest.mark.parametrize(
    "name", ["moves", "over_capacity", "over_target", "to_empty", "adrift", "moves_at_least"]
)
def test_false_words_on_disks_are_found(name):
    case = draw("disks_beside", 0)
    cluster, goals, limits = build(case)
    result = ek.solve(cluster, goals=goals, limits=limits)
    at, after = World(case), standing_of(result.placement)
    assert list(claims(at, after, result)) == []
    said = getattr(result.disks, name)
    more = said + 99 if isinstance(said, int) else np.append(said, said.dtype.type(99))
    result.__dict__["disks"] = replace(result.disks, **{name: more})
    assert len(kinds(claims(at, after, result))) == 1


@pytest.mark.parametrize("name", ["moves", "leader_changes", "bytes_moved"])
def test_false_counts_are_found(name):
    at, result = solved(dimensions=["size"], bytes="size")
    result = lie(result, comparison=replace(result.comparison, **{name: 7}))
    found = kinds(claims(at, at.came, result))
    assert any(kind.startswith("miscounted") for kind in found)


@pytest.mark.parametrize("study", ["sweep", "pipeline"])
@pytest.mark.parametrize("family", ["ragged", "rules", "tight", "budgets"])
@pytest.mark.parametrize("seed", mostly_long([20000, 20001], [20000]))
def test_sweeps_and_pipelines_keep_what_a_solve_keeps(study: str, family: str, seed: int):
    assert try_one(draw(family, seed), study).findings == []


def test_a_rule_that_only_a_dead_replica_met_did_not_hold():
    here = world(rules=[{"place": {"zone=a": 1}}], alive=[False, True, True, True],
                 keeps=[False, True, True, True], accepts=[False, False, True, True])  # fmt: skip
    assert "broke place" not in kinds(worse(here, Standing([[3, 2], [1, 3]], [0, 0])))
    assert "broke place" in kinds(worse(here, Standing([[3, 2], [2, 3]], [0, 0])))


def test_what_a_partition_prefers_for_itself_goes_before_what_its_group_does():
    rules = [{"lead": ["zone=a"]}, {"lead": ["zone=b"]}]
    own = {"partition": ("lead", "partition", 0, ""), "group": ("lead", "group", 0, "partition 0")}
    for rule, broken in (([0, 0], "partition"), ([-1, -1], "group")):
        here = world(rules=rules, rule=rule, group_rule=[1, 1])
        led_from = 1 if rule[0] == 0 else 0
        keys = everything(here, Standing([[0, 2], [1, 3]], [led_from, 1]))
        assert own[broken] in keys
        assert own["group" if broken == "partition" else "partition"] not in keys


@pytest.mark.parametrize(
    "family", ["all_drain", "drain_beside_dead", "lagging", "lost_zone", "some_behind", "states"]
)
@pytest.mark.parametrize("seed", mostly_long(range(40), range(4)))
def test_plans_keep_on_the_way_what_their_end_keeps(family: str, seed: int):
    case = draw(family, seed)
    cluster, goals, limits = build(case)
    result = ek.solve(cluster, goals=goals, limits=limits)
    for protocol in ("plain", "kafka", "helix"):
        assert [*on_the_way(World(case), result, protocol)] == []
        if family == "all_drain" and result.status == "optimal":
            assert result.plan(protocol=protocol).complete


def crowded(case: Case) -> set[str]:
    """Judge a plan whose only wave but the last puts all of a partition on one node."""
    start = build(case)[0].placement
    crowd = start.replaced(np.zeros_like(start.node), start.leader)
    plan = SimpleNamespace(
        blocked=[], waves=(0, 1), end=start, after=lambda done: crowd,
        check=lambda: SimpleNamespace(ok=True),
    )  # fmt: skip
    result = SimpleNamespace(plan=lambda protocol: plan, placement=start)
    return kinds(on_the_way(World(case), result, "plain"))


def test_a_plan_that_crowds_a_zone_on_the_way_is_found():
    found = crowded(draw("all_drain", 0))
    assert "on the way: broke same_node" in found or "on the way: lost a live replica" in found


def test_a_plan_need_not_keep_wishes_on_the_way():
    """What is lost is copied first; a leader leads on although a preferred one has come."""
    given = {"capacity": [[9.0]] * 2, "load": [[1.0]], "placement": [[0, 1]],
             "domains": {"zone": ["a", "b"]}}  # fmt: skip
    for zone, found in (((1, "soft"), set()), (1, {"on the way: broke spread"})):
        rules = [{"spread": {"node": (1, "soft"), "zone": zone}}]
        assert crowded(Case("wish", 0, given | {"rules": rules})) == found


def test_roles_that_were_exchanged_are_read_into_their_slots():
    """Every replica has a slot of its role, none in the place of another that was read before."""
    case = Case("roles", 0, {
        "capacity": [[9.0]] * 5, "load": [[1.0]], "placement": [[0, 1, 2]], "leader": [0],
        "role": [[0, 0, 1]], "replicas": 3, "voters": [2],
    })  # fmt: skip
    cluster = build(case)[0]
    traded = replace(
        cluster.placement, node=np.array([0, 1, 3], np.int32), role=np.array([0, 1, 0], np.uint8)
    )
    read = by_role(World(case), traded)
    assert read.rows == [[0, 3, 1]]
    assert not kinds(one for one in worse(World(case), read))


@pytest.mark.parametrize("rule", [{"skew": {"zone": 1}}, {"min_domains": {"zone": 2}}])
def test_what_a_rule_of_domains_forces_into_a_zone_is_allowed(rule):
    """One replica of each partition has to be on n1, which is alone in its zone."""
    case = Case("by hand", 0, {
        "capacity": [[9.0]] * 3, "load": [[1.0]] * 4, "placement": [[0, 1], [1, 2]] * 2,
        "domains": {"zone": [*"aba"]}, "rules": [rule], "rule": [0] * 4,
    }, {"level": 0.05})  # fmt: skip
    assert try_one(case).findings == []
