"""The simulator's engine: what changes cost, what events do, and what is measured."""

import math
from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from bench.scenarios.cockroach import SCENARIOS
from bench.scenarios.layouts import Ranges, Stores
from evenkeel import simulate
from evenkeel.methods import contract, registry
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role
from evenkeel.simulate import Change, Environment, Health
from evenkeel.simulate.controllers.method import with_roles_exchanged
from evenkeel.simulate.engine.checks import AtMost, Balance, Conforms, Steady, Thrash, Within
from evenkeel.simulate.engine.history import thrash_percent
from evenkeel.simulate.engine.stage import Gossip
from evenkeel.simulate.engine.world import KINDS, Conformance, World
from evenkeel.simulate.events import At, NodesBecome, Overloaded, Split, SplitBusy
from tests.support.simulated import ONE_SECOND, Script, scenario

VOTER, NON_VOTER = Role.VOTER, Role.NON_VOTER


def moved(partition, source, target, **others):
    """One replica goes from here to there."""
    return Change(partition, add=((target, VOTER),), drop=(source,), **others)


def seconds_of(script):
    """When each partition's change ended, and whether it was made."""
    return [(round(at, 3), change.partition, made) for at, change, made in script.ends]


def test_a_snapshot_takes_its_time_and_a_receiver_takes_one_at_a_time():
    script = Script((0.0, moved(0, 1, 3)), (0.0, moved(1, 2, 3)))
    history = simulate.run(scenario(), script)
    assert seconds_of(script) == [(1.1, 0, True), (2.2, 1, True)]
    assert history.replicas[-1].tolist() == [4, 3, 3, 2]
    assert history.total("moves") == 2
    assert history.total("bytes") == 2 * ONE_SECOND


def test_snapshots_to_different_nodes_go_side_by_side_as_far_as_the_sender_allows():
    lines = [(0.0, moved(p, 2, 3 + p)) for p in range(3)]
    script = Script(*lines)
    simulate.run(scenario(stores=6), script)
    assert seconds_of(script) == [(1.1, 0, True), (1.1, 1, True), (2.2, 2, True)]


def test_leadership_leaves_a_node_once_a_second():
    script = Script(*((0.0, Change(p, lead=1)) for p in range(3)), (0.0, Change(3, lead=2)))
    history = simulate.run(scenario(), script)
    assert [at for at, _, _ in seconds_of(script)] == [0.1, 1.1, 2.1, 3.1]
    assert history.leaders[-1].tolist() == [0, 3, 1, 0]
    assert history.total("leader_changes") == 4
    assert history.total("moves") == 0


def test_a_relocation_waits_for_what_is_under_way_and_keeps_the_queue_off():
    first, relocation = moved(0, 1, 3), moved(0, 3, 4, claims=True)
    late = moved(0, 2, 5)
    script = Script((0.0, first), (0.5, relocation), (0.6, late), (1.2, late))
    history = simulate.run(scenario(stores=6), script)
    assert script.numbers[relocation] >= 0
    assert script.numbers[late] == -1, "a claimed partition takes nothing from others"
    assert seconds_of(script) == [(1.1, 0, True), (2.2, 0, True)]
    assert history.replicas[-1].tolist() == [4, 3, 4, 0, 1, 0]


def test_what_takes_too_long_is_given_up_and_frees_its_lane():
    slow = moved(0, 1, 3, deadline=0.5)
    script = Script((0.0, slow), (0.0, moved(1, 1, 3)))
    history = simulate.run(scenario(), script)
    assert seconds_of(script) == [(0.5, 0, False), (1.6, 1, True)]
    assert history.total("expired") == 1
    assert history.total("moves") == 1


def test_what_waits_too_long_for_a_lane_is_given_up_too():
    script = Script((0.0, moved(0, 1, 3)), (0.0, moved(1, 1, 3, deadline=1.0)))
    simulate.run(scenario(), script)
    assert seconds_of(script) == [(1.0, 1, False), (1.1, 0, True)]


def test_a_change_whose_target_died_meanwhile_is_not_made():
    dies = NodesBecome(at=0.5, nodes=[3], health=Health.DEAD)
    script = Script((0.0, moved(0, 1, 3)))
    history = simulate.run(scenario(events=[dies]), script)
    assert seconds_of(script) == [(1.1, 0, False)]
    assert history.total("failed") == 1
    assert history.replicas[-1, 3] == 0


def test_a_partition_without_a_majority_changes_nothing():
    dies = NodesBecome(nodes=[1, 2], health=Health.DEAD)
    script = Script((1.0, moved(0, 1, 3)))
    history = simulate.run(scenario(events=[dies]), script)
    assert seconds_of(script) == [(2.1, 0, False)]
    assert history.astray("unavailable")[-1] == 4
    assert (history.leaders[-1] == [4, 0, 0, 0]).all()


def test_returning_without_an_event_is_thrash_and_with_one_it_is_not():
    there_and_back = ((0.0, moved(0, 1, 3)), (5.0, moved(0, 3, 1)))
    assert simulate.run(scenario(), Script(*there_and_back)).total("thrash") == 1
    event = Overloaded(at=3.0, node=0, score=0.0)
    history = simulate.run(scenario(events=[event]), Script(*there_and_back))
    assert history.total("thrash") == 0
    assert history.events == ((3.0, "s1 overloaded 0"),)


def test_any_sequence_of_changes_keeps_the_sums_right():
    rng = np.random.default_rng(5)
    ranges = Ranges(
        count=12, on=[([0, 1, 2, 3], 1.0), ([4, 0, 2], 1.0)], non_voters=1, rate=600.0,
        reads=0.5, block=100.0, request_cpu=1e-3, raft_cpu=1e-4,
    )  # fmt: skip
    game = scenario(ranges, stores=7)
    world = World(game.cluster, game.environment)
    made = 0
    for step in range(400):
        world.advance(float(step))
        p = int(rng.integers(len(world)))
        at = world.node[p][world.node[p] >= 0]
        joins = tuple((int(n), VOTER) for n in rng.permutation(7)[: rng.integers(3)])
        leaves = tuple(int(n) for n in rng.permutation(at)[: rng.integers(3)])
        role = tuple((int(n), Role(int(rng.integers(2)))) for n in rng.permutation(at)[:1])
        lead = int(rng.choice([-1, *at]))
        change = Change(p, add=joins, drop=leaves, role=role, lead=lead)
        if not world.fits(change):
            continue
        made += 1
        world.apply(change)
        told = (world.load.copy(), world.replicas.copy(), world.leaders.copy())
        world.refresh()
        np.testing.assert_allclose(told[0], world.load, rtol=1e-9, atol=1e-6)
        assert (told[1] == world.replicas).all()
        assert (told[2] == world.leaders).all()
        row = world.node[p][world.node[p] >= 0]
        assert len(set(row.tolist())) == len(row)
    assert made > 50


def test_a_split_halves_load_and_keeps_the_sum():
    ranges = Ranges(count=2, on=[([0, 1, 2], 1.0)], rate=100.0, block=10.0, mebibytes=4.0)
    game = scenario(ranges, events=[Split(at=10.0, partition=1, share=0.25)])
    history = simulate.run(game, Script())
    before, after = history.load[0].sum(0), history.load[-1].sum(0)
    flows = [0, 2]
    np.testing.assert_allclose(before[flows], after[flows])
    assert history.replicas[0].sum() == 6
    assert history.replicas[-1].sum() == 9
    world = World(game.cluster, game.environment)
    world.split(1, 0.25)
    assert len(world.snapshot().partitions) == 3
    assert world.leader_load[:, 0].tolist() == [50.0, 37.5, 12.5]


def test_what_is_too_busy_is_split_until_it_is_not():
    ranges = Ranges(count=2, on=[([0, 1, 2], 1.0)], rate=1000.0, reads=1.0, mebibytes=3.0)
    for limit, pieces in (({"rate": 200.0}, 8), ({"size": 2.0 * ONE_SECOND}, 4)):
        game = scenario(ranges, events=[SplitBusy(at=5.0, every=10.0, **limit)])
        history = simulate.run(game, Script())
        assert history.leaders[-1, 0] == pieces
        assert len(history.events) == round(np.log2(pieces / 2))
        assert history.load[-1, 0, 0] == pytest.approx(1000.0)


def test_a_node_that_stays_away_dies_and_one_that_comes_back_is_suspect_first():
    game = scenario(events=[At(10.0, ek.Changes(down=[0, 1]))])
    world = World(game.cluster, game.environment)
    follow = [later for event in game.events for later in event.happen(world)]
    assert world.health[:2].tolist() == [Health.UNKNOWN] * 2
    assert [later.at for later in follow] == [310.0]
    world.advance(20.0)
    clear = NodesBecome(at=20.0, nodes=[1], health=Health.SUSPECT, later=(30.0, Health.UP)).happen(
        world
    )
    assert world.health[1] == Health.SUSPECT
    world.advance(50.0)
    assert not clear[0].happen(world)
    assert world.health[1] == Health.UP
    world.advance(200.0)
    [down] = At(200.0, ek.Changes(down=[1])).bound(FaultList(), "", game.cluster)
    again = down.happen(world)
    world.advance(310.0)
    assert not follow[0].happen(world)
    assert world.health.tolist() == [Health.DEAD, Health.UNKNOWN, Health.UP, Health.UP]
    world.advance(500.0)
    assert not again[0].happen(world)
    assert world.health[1] == Health.DEAD, "counted from its second outage"


def test_a_world_begins_in_the_states_that_the_cluster_says():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 7,
        load=[[1.0]] * 2,
        placement=[[0, 1], [2, 3]],
        alive=[1, 1, 1, 1, 0, 0, 0],
        accepts=[1, 0, 0, 0, 0, 0, 0],
        keeps=[1, 1, 1, 0, 1, 0, 0],
        leads=[1, 1, 0, 0, 0, 0, 0],
        gone=[0, 0, 0, 0, 0, 0, 1],
    )
    states = [
        Health.UP,
        Health.SUSPECT,
        Health.DRAINING,
        Health.DECOMMISSIONING,
        Health.UNKNOWN,
        Health.DEAD,
        Health.ABSENT,
    ]
    assert World(cluster).health.tolist() == states
    again = World(cluster).snapshot().nodes
    for flag in ("alive", "accepts", "keeps", "leads", "gone"):
        assert getattr(again, flag).tolist() == getattr(cluster.nodes, flag).tolist(), flag


def test_leaders_move_away_from_a_node_that_goes_down():
    history = simulate.run(scenario(events=[At(5.0, ek.Changes(down=[0]))]), Script())
    assert history.leaders[0].tolist() == [4, 0, 0, 0]
    assert history.leaders[1].tolist() == [0, 4, 0, 0]


def test_load_and_wishes_change_and_disks_grow():
    ranges = Ranges(count=2, on=[([0, 1, 2], 1.0)], rate=100.0, block=10.0, mebibytes=0.0)
    events = [
        At(60.0, ek.Changes(load_factor={"p0": dict.fromkeys(("qps", "cpu", "write"), 3.0)})),
        At(60.0, ek.Changes(replicas={"p1": 2})),
    ]
    history = simulate.run(scenario(ranges, events=events), Script())
    grown = history.series("disk")[:, 0]
    assert grown[6] == pytest.approx(60 * 100 * 10 * 1.25)
    assert grown[12] - grown[6] == pytest.approx(2 * grown[6])
    assert history.series("qps")[-1].tolist() == [200.0, 0.0, 0.0, 0.0]
    assert history.astray("over").tolist() == [0] * 6 + [1] * 7


def test_other_numbers_of_replicas_are_reached_with_all_of_them_voting():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 3, placement=[[0, 1, 2]] * 3, replicas=3, min_active=1
    )
    wishes = [At(60.0, ek.Changes(replicas={"p0": 1})),
              At(60.0, ek.Changes(replicas={"p1": 4}))]  # fmt: skip
    history = simulate.play(cluster, wishes, "balance", until=1200.0)
    assert history.replicas.sum(1).tolist()[-1] == 1 + 4 + 3
    for kind in ("under", "over"):
        assert history.astray(kind)[-1] == 0


def naive_conformance(world, rule):
    """Count as the words say, one partition at a time; the rule has place, voters_place, lead."""
    counts = dict.fromkeys(KINDS, 0)
    region = ["a", "a", "b", "b", "c"]
    for p in range(len(world)):
        here = [
            (int(n), int(r)) for n, r in zip(world.node[p], world.role[p], strict=True) if n >= 0
        ]
        kept = [(n, r) for n, r in here if world.health[n] < Health.DEAD]
        up = [(n, r) for n, r in here if world.health[n] < Health.UNKNOWN]
        voting = [n for n, r in here if r == VOTER]
        live_voters = [n for n, r in kept if r == VOTER]
        counts["under"] += len(kept) < world.wanted[p] or len(live_voters) < world.voters[p]
        counts["over"] += len(kept) > world.wanted[p]
        counts["unavailable"] += 2 * sum(r == VOTER for _, r in up) <= len(voting)
        wrong = False
        for text, least in rule.place.items():
            wrong |= sum(region[n] == text[-1] for n, _ in here) < least
        for text, least in rule.voters_place.items():
            wrong |= sum(region[n] == text[-1] for n in voting) < least
        counts["violating"] += wrong
        leader = world.leader_node(p)
        choice = [text[-1] for text in rule.lead]
        there = region[leader] if leader >= 0 else ""
        counts["lead_violating"] += there not in choice
        counts["lead_less_preferred"] += there in choice[1:]
    return [counts[kind] for kind in KINDS]


@pytest.mark.parametrize("seed", range(5))
def test_conformance_agrees_with_counting_one_by_one(seed):
    rng = np.random.default_rng(seed)
    rule = ek.Rule(
        place={"region=a": 1, "region=b": 1},
        voters_place={"region=a": 1},
        lead=["region=a", "region=c"],
    )
    ranges = Ranges(count=40, on=[([0, 2, 4], 1.0), ([3, 2, 1, 4], 1.0)], wanted=3, voters=2)
    game = scenario(ranges, stores=Stores({"a": 2, "b": 2, "c": 1}), rules=[rule])
    world = World(game.cluster, game.environment)
    for p in range(len(world)):
        row = rng.permutation(5)[: world.node.shape[1]]
        world.node[p] = np.where(rng.random(len(row)) < 0.8, row, -1)
        world.role[p] = rng.integers(0, 2, len(row))
        held = np.flatnonzero(world.node[p] >= 0)
        world.leader[p] = rng.choice(held) if len(held) else -1
    world.health[:] = rng.choice(list(Health)[:6], 5)
    assert Conformance(game.cluster).count(world).tolist() == naive_conformance(world, rule)


def test_in_danger_counts_against_min_active():
    game = scenario()
    partitions = replace(game.cluster.partitions, min_active=np.array([2, 3, 1, 0], np.int32))
    world = World(replace(game.cluster, partitions=partitions), game.environment)
    world.health[1] = Health.UNKNOWN
    counted = dict(zip(KINDS, Conformance(game.cluster).count(world).tolist(), strict=True))
    assert counted["in_danger"] == 1
    assert counted["under"] == 0


def test_thrash_as_published():
    hump = np.array([1.0, 2, 4, 8, 10, 8, 4, 2, 1])
    assert thrash_percent(hump) == pytest.approx(200.0)
    assert thrash_percent(np.array([0.0, 1.0, 0.5])) == pytest.approx(107.4349, abs=1e-4)
    assert thrash_percent(np.arange(5.0)) == 0.0
    assert thrash_percent(np.ones(1)) == 0.0
    assert thrash_percent(np.ones((3, 2))).tolist() == [0.0, 0.0]


def test_gossip_is_heard_late_but_nobody_waits_for_his_own_figures():
    game = scenario()
    world = World(game.cluster, game.environment)
    gossip = Gossip(world, interval=10.0, delay=0.5)
    gossip.view(0)
    world.advance(1.0)
    world.apply(moved(0, 1, 3))
    gossip.changed(np.array([1, 3]))
    assert gossip.view(2)[1].tolist() == [4, 4, 4, 0]
    assert gossip.view(3)[1].tolist() == [4, 4, 4, 1]
    world.advance(1.5)
    assert gossip.view(2)[1].tolist() == [4, 3, 4, 1]


def test_without_gossip_everybody_knows_everything():
    world = World(scenario().cluster)
    gossip = Gossip(world, interval=0.0, delay=0.0)
    world.apply(moved(0, 1, 3))
    assert gossip.view(2)[1].tolist() == [4, 3, 4, 1]


def test_roles_change_places_without_moving_data():
    rule = ek.Rule(voters_place={"region=a": 2, "region=b": 1})
    ranges = Ranges(count=3, on=[([0, 2, 3, 1], 1.0)], non_voters=1)
    game = scenario(ranges, stores=Stores({"a": 2, "b": 2}), rules=[rule])
    exchanged = with_roles_exchanged(game.cluster)
    assert exchanged.node.tolist() == game.cluster.placement.node.tolist()
    for row in exchanged.role.reshape(3, 4):
        assert row.tolist().count(VOTER) == 3
        assert row[0] == VOTER, "the leader keeps its vote where it can"
        assert row[3] == VOTER
    same = replace(game.cluster, placement=exchanged)
    assert with_roles_exchanged(same).role.tolist() == exchanged.role.tolist()


def test_the_same_seed_gives_the_same_bits():
    for method in ("balance", "cockroach"):
        one, two = (simulate.run(SCENARIOS["rebalancing"](), method, seed=3) for _ in range(2))
        for name in ("seconds", "load", "replicas", "leaders", "moves", "conformance", "totals"):
            assert (getattr(one, name) == getattr(two, name)).all(), (method, name)


def test_breaking_off_keeps_what_was_measured():
    class Impatient(Script):
        def wake(self, stage):
            if stage.world.seconds >= 30.0:
                raise KeyboardInterrupt
            return 30.0

    history = simulate.run(scenario(), Impatient())
    assert history.interrupted
    assert history.seconds.tolist() == [0.0, 10.0, 20.0, 30.0]
    assert history.warnings == ("broken off by the user",)


def test_breaking_off_is_heard_while_a_method_solves(monkeypatch):
    """Strategies keep their best so far when they are interrupted; the simulation ends."""
    calls = []

    def interrupted(request):
        calls.append(request)
        cluster = request.cluster
        return contract.Outcome(
            cluster.placement.node, cluster.placement.leader, stop_reason="interrupted"
        )

    monkeypatch.setattr(registry.Method, "load", lambda self: interrupted)
    history = simulate.run(scenario(), "balance")
    assert history.interrupted
    assert len(calls) == 1
    assert history.seconds.tolist() == [0.0]


def test_any_callable_may_be_in_the_loop_and_acts_on_what_it_could_know():
    def one_step_right(cluster, goals, seed):
        node = cluster.placement.node.copy()
        node[0] = 3
        return cluster.placement.replaced(node, cluster.placement.leader)

    history = simulate.run(scenario(gossip_delay=20.0), one_step_right)
    assert history.method == "one_step_right"
    first = history.seconds[np.flatnonzero(history.replicas[:, 3])[0]]
    assert first == 30.0, "decided on at 0, asked for at 20, done at 21.1"


def test_balance_leaves_what_has_no_majority_alone_and_repairs_the_rest():
    ranges = [Ranges(count=3, on=[([0, 1, 2], 1.0)]), Ranges(count=3, on=[([2, 3, 4], 1.0)])]
    still = {"stores": 6, "goals": ek.Goals(level=None)}
    dies = At(10.0, ek.Changes(down=[0, 1]), dead_after=20.0)
    history = simulate.run(scenario(*ranges, events=[dies], **still), "balance")
    assert history.total("moves") == 0
    assert history.astray("unavailable")[-1] == 3
    one_dies = At(10.0, ek.Changes(down=[0]), dead_after=20.0)
    history = simulate.run(scenario(*ranges, events=[one_dies], **still), "balance")
    assert history.total("moves") == 3
    assert history.astray("under").tolist()[:4] == [0, 0, 0, 3]
    assert history.astray("under")[-1] == 0


def test_checks_measure_the_last_samples():
    history = simulate.run(scenario(), Script((70.0, moved(0, 1, 3))))
    found = {
        "even": Balance("replicas", 1.34).of(history),
        "uneven": Balance("replicas", 1.2).of(history),
        "of some": Balance("replicas", 1.01, nodes=[0, 2]).of(history),
        "steady": Steady("replicas", 0.1, last=3).of(history),
        "not steady": Steady("replicas", 0.1, last=9).of(history),
        "within": Within("replicas", [3], 1.0, 1.0, last=2).of(history),
        "not within": Within("replicas", [3], at_least=1.0, last=13).of(history),
        "conforms": Conforms(under=0, over=0).of(history),
        "moves": AtMost("moves", 0.0).of(history),
        "thrash": Thrash("replicas", 0.0).of(history),
    }
    met = {name for name, finding in found.items() if finding.met}
    assert met == {"even", "of some", "steady", "within", "conforms", "thrash"}
    assert found["even"].measured == pytest.approx(4 / 3)
    assert found["not within"].measured == 0.0
    assert "s4" in found["within"].what


def test_faults_of_a_scenario_are_reported_together():
    with pytest.raises(ek.InvalidInput) as error:
        scenario(
            minutes=0.0,
            events=[NodesBecome(at=-1.0, nodes=[9], health=Health.DEAD)],
            switched_off=["everything"],
        )
    text = str(error.value)
    for part in ("minutes", "events[0].at", "events[0]", "switched_off[0]"):
        assert part in text
    with pytest.raises(ek.InvalidInput, match=r"(?s)environment\.receive.*\.gossip_delay"):
        Environment(receive=0, gossip_delay=-1.0)
    with pytest.raises(ek.InvalidInput, match="unknown method"):
        simulate.run(scenario(), "nothing")


def test_an_idle_cluster_is_jumped_over():
    class Counting(Script):
        wakes = 0

        def wake(self, stage):
            Counting.wakes += 1
            return math.inf

    history = simulate.run(scenario(minutes=600.0, every=600.0), Counting())
    assert Counting.wakes == 1
    assert len(history.seconds) == 61
