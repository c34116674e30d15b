"""Playing: what each event does to any cluster, and what is measured of it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.control import Delay
from evenkeel.measure.levelness import levelness
from evenkeel.simulate import (
    At,
    Growth,
    Health,
    LoadDrift,
    NodesBecome,
    RollingUpgrade,
    Split,
    play,
)
from evenkeel.simulate.engine.stage import Controller, Stage
from tests.support.effort import mostly_long
from tests.support.simulated import Script

ZONES = ("a", "b", "c")
FAST = simulate.Environment(overhead=1.0, lead_gap=0.0)
STILL = {"environment": FAST, "goals": ek.Goals(level=None), "every": 10.0}
"""Nothing moves but what has to."""


def cluster_of(nodes=9, partitions=30, replicas=3, capacity=100.0, seed=0, **others):
    """Nodes round robin in three zones; a replica of each partition in each zone."""
    rng = np.random.default_rng(seed)
    placement = np.array([rng.permutation(nodes // 3) for _ in range(partitions)])[:, :1] * 3
    placement = placement + np.arange(replicas)[None, :]
    given = {
        "capacity": np.full((nodes, 2), capacity),
        "load": rng.integers(1, 5, (partitions, 2)).astype(float),
        "dimensions": ("cpu", "disk"),
        "bytes": "disk",
        "domains": {"zone": [ZONES[n % 3] for n in range(nodes)]},
        "placement": placement,
        "min_active": 2,
        "spread": {"zone": 1},
    }
    return ek.Cluster.from_arrays(**(given | others))


class Watching(Controller):
    """Decides nothing, and looks at the world at every event."""

    def __init__(self):
        self.seen = []

    def wake(self, stage: Stage) -> float:
        world = stage.world
        self.seen.append((world.seconds, world.health.copy(), world.snapshot()))
        return np.inf

    def ended(self, number, change, made):
        raise AssertionError("nobody asked for a change")


def watched(events, cluster=None, **others):
    """What the world looks like after each event, when nobody reacts."""
    eye = Watching()
    history = play(cluster or cluster_of(), events, eye, environment=FAST, **others)
    return history, eye.seen


def test_nodes_go_down_die_and_come_back():
    events = [At(10.0, ek.Changes(down="n1"), dead_after=30.0), At(60.0, ek.Changes(up=["n1"]))]
    history, seen = watched(events, every=10.0)
    states = [(seconds, Health(int(health[1])).name) for seconds, health, _ in seen]
    assert states == [
        (0.0, "UP"),
        (10.0, "UNKNOWN"),
        (40.0, "DEAD"),
        (60.0, "SUSPECT"),
        (90.0, "UP"),
    ]
    said = [what for _, what in history.events]
    assert said == ["n1 down", "n1 dead", "n1 back", "n1 up"]
    held = history.replicas[0, 1]
    assert held > 0 and history.astray("under").max() == held
    assert history.astray("under")[-1] == 0, "it came back with all it held"


def test_what_never_follows_is_not_planned():
    events = [At(10.0, ek.Changes(down="n1"), dead_after=np.inf)]
    history, seen = watched(events, every=10.0, until=600.0)
    assert [what for _, what in history.events] == ["n1 down"]
    assert Health(int(seen[-1][1][1])) is Health.UNKNOWN


def test_nodes_that_are_gone_do_not_come_back_unless_they_are_up_again():
    events = [
        At(10.0, ek.Changes(gone="n2")),
        At(15.0, ek.Changes(down="n2")),
        At(30.0, ek.Changes(up="n2")),
    ]
    history, seen = watched(events)
    assert [what for _, what in history.events] == ["n2 gone", "n2 back", "n2 up"]
    states = [Health.UP, Health.ABSENT, Health.SUSPECT, Health.UP]
    assert [health[2] for _, health, _ in seen] == states
    assert bool(seen[1][2].nodes.gone[2])


def test_new_nodes_are_like_another_one_where_nothing_else_is_said():
    new = At(
        10.0,
        ek.Changes(
            nodes={
                "names": ["x", "y"],
                "like": "n1",
                "capacity": [[7.0, 8.0]] * 2,
                "domains": {"zone": ["d", "d"]},
            }
        ),
    )
    cluster = cluster_of(tags={"ssd": [n % 2 == 1 for n in range(9)]})
    history, seen = watched([new, At(20.0, ek.Changes(down="zone=d"))], cluster)
    before, after = seen[0][2], seen[1][2]
    assert len(before.nodes) == 11 and before.nodes.gone[9:].all()
    assert not after.nodes.gone.any() and after.nodes.may_receive[9:].all()
    assert after.nodes.capacity[9:].tolist() == [[7.0, 8.0]] * 2
    assert after.nodes.tags["ssd"].tolist() == [n % 2 == 1 for n in range(9)] + [True, True]
    zone = after.topology.domain[0]
    assert len(set(zone.tolist())) == 4 and zone[9] == zone[10]
    assert zone[:9].tolist() == cluster.topology.domain[0].tolist()
    assert history.events[1] == (20.0, "x, y down")
    assert history.present[0].tolist() == [True] * 9 + [False] * 2


def test_a_drained_node_leads_nothing_and_an_evacuated_one_holds_nothing():
    drained = NodesBecome(at=10.0, nodes="n0", health=Health.DRAINING)
    history = play(cluster_of(), [drained], until=600.0, **STILL)
    assert history.leaders[0, 0] > 0 == history.leaders[-1, 0]
    assert history.replicas[-1, 0] == history.replicas[0, 0]
    gives = At(10.0, ek.Changes(drain="n0"))
    history = play(cluster_of(), [gives], until=600.0, **STILL)
    assert history.replicas[-1, 0] == 0
    assert history.astray("under").max() == 0, "it serves until everything is somewhere else"
    assert [what for _, what in history.events] == ["n0 evacuated"]


def test_a_domain_of_any_level_is_lost_and_comes_back():
    cluster = cluster_of(
        domains={"zone": ["a", "b", "c"] * 3, "rack": [f"r{n // 6}" for n in range(9)]}
    )
    _, seen = watched([At(10.0, ek.Changes(down="zone=b"), lasts=60.0)], cluster)
    assert np.flatnonzero(seen[1][1] == Health.UNKNOWN).tolist() == [1, 4, 7]
    assert (seen[-1][1] == Health.UP).all()
    history, seen = watched([At(10.0, ek.Changes(down="zone=b,rack=r0"))], cluster)
    assert np.flatnonzero(seen[1][1] == Health.UNKNOWN).tolist() == [1, 4]
    assert history.events[0] == (10.0, "n1, n4 down")


@pytest.mark.parametrize("level", ["node", "zone"])
def test_an_upgrade_takes_every_node_once_and_no_two_zones_together(level):
    upgrade = RollingUpgrade(tier=level, batch=2, away=50.0, pause=60.0, at=10.0)
    _, seen = watched([upgrade])
    away = [np.flatnonzero(health == Health.UNKNOWN).tolist() for _, health, _ in seen]
    gone = [nodes for nodes in away if nodes]
    taken = sorted(node for i, nodes in enumerate(gone) if nodes != gone[i - 1] for node in nodes)
    assert taken == list(range(9))
    assert max(map(len, gone)) == 2
    if level == "zone":
        assert all(len({node % 3 for node in nodes}) == 1 for nodes in gone)
    assert (seen[-1][1] == Health.UP).all()


def test_a_hot_spot_multiplies_and_ends_where_it_began():
    cluster = cluster_of()
    hot = At(10.0, ek.Changes(load_factor={"p3": {"cpu": 8.0}, 4: {"cpu": 8.0}}), lasts=30.0)
    _, seen = watched([hot], cluster)
    was, then, after = (one.partitions.load.voter for _, _, one in seen)
    assert np.array_equal(then[3:5, 0], 8.0 * was[3:5, 0])
    assert np.array_equal(then[:, 1], was[:, 1])
    assert np.allclose(after, was)
    _, seen = watched([At(1.0, ek.Changes(load_factor={3: {"disk": 2.0}}))], cluster)
    assert np.array_equal(seen[1][2].partitions.load.voter[3], was[3] * [1.0, 2.0])


def test_partitions_are_named_by_group():
    cluster = cluster_of(group=[0] * 10 + [1] * 20, group_names=["x", "y"])
    _, seen = watched([At(1.0, ek.Changes(load_factor={"group=y": 3.0}))], cluster)
    ratio = seen[1][2].partitions.load.voter[:, 0] / seen[0][2].partitions.load.voter[:, 0]
    assert ratio.tolist() == [1.0] * 10 + [3.0] * 20


def test_load_drifts_the_same_way_for_everybody_and_does_not_run_away():
    drift = LoadDrift(every=10.0, deviation=0.05, pull=0.1, lasts=6_000.0, at=10.0, seed=4)
    cluster = cluster_of(partitions=300, capacity=1e4)
    _, seen = watched([drift], cluster, until=6_000.0)
    base = seen[0][2].partitions.load.voter[:, 0]
    strayed = np.log(np.array([one.partitions.load.voter[:, 0] for _, _, one in seen]) / base)
    steps = np.diff(strayed, axis=0)
    assert steps.std() == pytest.approx(0.05, rel=0.1)
    assert strayed[100:].std() == pytest.approx(0.05 / np.sqrt(1 - 0.9**2), rel=0.1)
    _, again = watched([drift], cluster, until=6_000.0)
    assert np.array_equal(again[-1][2].partitions.load.voter, seen[-1][2].partitions.load.voter)
    history, _ = watched([drift], cluster, until=200.0)
    assert history.events == ((10.0, "load drifts"),), "what goes on is said once"


def test_growth_adds_partitions_that_are_placed_and_load():
    grows = Growth(every=60.0, partitions=5, at=60.0, lasts=240.0, seed=1)
    history = play(cluster_of(), [grows], environment=FAST, until=1800.0)
    assert len(history.partitions) == 30 + 5 * 5
    assert history.partitions[-1] == "p54"
    assert history.astray("under")[-1] == 0
    assert history.replicas[-1].sum() == 3 * 55
    assert history.leaders[-1].sum() == 55, "who comes leads, too"
    _, seen = watched([Growth(every=60.0, load=0.5, at=60.0, lasts=60.0)])
    was, now = seen[0][2].partitions.load.voter, seen[-1][2].partitions.load.voter
    assert np.allclose(now, was * 1.5**2)


def test_names_of_what_is_added_are_new():
    cluster = cluster_of(partitions=2, partition_names=["orders", "orders/2"])
    events = [
        Split(partition="orders", at=1.0, share=0.25),
        Growth(at=2.0, partitions=1, lasts=0.0),
    ]
    history, seen = watched(events, cluster)
    assert history.partitions[:3] == ("orders", "orders/2", "orders/3")
    assert len(set(history.partitions)) == 4
    assert history.events[0] == (1.0, "orders split")
    load = seen[1][2].partitions.load.voter
    assert np.allclose(load[0] + load[2], seen[0][2].partitions.load.voter[0])
    assert np.allclose(load[2], 0.25 * seen[0][2].partitions.load.voter[0])


def test_faults_of_events_and_arguments_are_reported_together():
    events = [
        At(10.0, ek.Changes(down="n99")),
        At(-1.0, ek.Changes(up="n1"), suspect_for=-2.0),
        At(1.0, ek.Changes(nodes={"names": ["new"], "like": "nobody"})),
        At(0.0, ek.Changes(nodes={"names": ["newer"], "like": 0, "capacity": [[1.0]]})),
        At(0.0, ek.Changes(down="row=a")),
        At(0.0, ek.Changes(down="zone=z")),
        RollingUpgrade(tier="row", batch=0, away=0.0),
        At(0.0, ek.Changes(load_factor={"p1": 0.0}), lasts=9.0),
        At(0.0, ek.Changes(load_factor=[1.0])),
        At(0.0, ek.Changes(load_factor={"group=none": -1.0})),
        At(0.0, ek.Changes(load_factor={"p1": {"gpu": 2.0}})),
        At(0.0, ek.Changes(pin="p1")),
        At(0.0),
        At(0.0, "down"),
        LoadDrift(every=0.0, deviation=np.nan, pull=2.0),
        Growth(every=1.0),
        Split(partition="p77", share=1.0),
        At(1e9, ek.Changes(down="n1")),
        "an event",
    ]
    with pytest.raises(ek.InvalidInput) as error:
        play(cluster_of(), events, "no method", until=3600.0, every=0.0, seed="x")
    paths = {fault.path for fault in error.value.faults}
    wanted = {
        "events[0].changes.down[0]", "events[1].at", "events[1].suspect_for",
        "events[2].changes.nodes.like[0]", "events[3].changes.nodes.capacity",
        "events[4].changes.down[0]", "events[5].changes.down[0]", "events[6].tier",
        "events[6].batch", "events[6].away", "events[7].changes.load_factor",
        "events[8].changes.load_factor", "events[9].changes.load_factor['group=none']",
        "events[10].changes.load_factor['p1']['gpu']", "events[11].changes.pin",
        "events[12].changes", "events[13].changes", "events[14].every", "events[14].deviation",
        "events[14].pull", "events[15].partitions", "events[16].partition[0]", "events[16].share",
        "events[18]", "every", "seed", "method",
    }  # fmt: skip
    assert wanted <= paths, wanted - paths
    with pytest.raises(ek.InvalidInput, match=r"events\[0\]\.at: is after the end, 60"):
        play(cluster_of(), [At(61.0, ek.Changes(down="n1"))], until=60.0)
    with pytest.raises(ek.InvalidInput, match="ManualClock"):
        play(cluster_of(), (), ek.control.Pipeline("balance"))


@pytest.mark.parametrize("method", ["balance", "helix_crush", "helix_crushed", "helix_waged"])
def test_a_dead_node_is_emptied_whoever_decides(method):
    dies = At(60.0, ek.Changes(down="n4"), dead_after=120.0)
    options = ek.options.Waged(scope="emergency") if method == "helix_waged" else None
    given = {"options": options, "environment": FAST, "until": 3600.0, "every": 1.0}
    history = play(cluster_of(), [dies], method, **given)
    assert history.method == method
    assert history.astray("under").max() > 0 == history.astray("under")[-1]
    assert history.replicas[-1, 4] == 0
    assert history.total("below_min_active") == 0.0


@pytest.mark.parametrize(
    "case",
    mostly_long(
        product(["node", "zone"], ["balance", "helix_waged"]),
        [("node", "helix_waged"), ("zone", "balance")],
    ),
)
def test_a_pipeline_keeps_min_active_through_an_upgrade(case):
    in_turn, method = case
    upgrade = RollingUpgrade(tier=in_turn, batch=1, away=120.0, pause=60.0, at=60.0)
    with simulate.pipeline(method, delay=Delay(600.0)) as pipeline:
        history = play(cluster_of(), [upgrade], pipeline, environment=FAST)
    assert history.method == f"pipeline, {method}"
    assert history.total("below_min_active") == 0.0
    assert history.astray("in_danger").max() == history.astray("unavailable").max() == 0
    assert history.replicas[-1].sum() == 90
    assert history.warnings == ()


def test_a_pipeline_adds_replicas_where_too_few_serve_and_takes_them_back():
    cluster = cluster_of(min_active=3, placement=[[0, 1, 2], [3, 4, 5], [6, 7, 8]] * 10)
    events = [At(60.0, ek.Changes(down="n0")), At(300.0, ek.Changes(up="n0"), suspect_for=0.0)]
    with simulate.pipeline("helix_waged", delay=Delay(600.0)) as pipeline:
        history = play(cluster, events, pipeline, environment=FAST, every=10.0, until=1200.0)
    total = history.replicas.sum(1)
    assert total[0] == total[-1] == 90 < total.max(), "added, and given up when it was back"
    assert history.astray("in_danger")[history.seconds == 250.0] == 0
    assert history.replicas[-1, 0] == history.replicas[0, 0], "it had its places all the time"
    held = int(history.replicas[0, 0])
    assert 0.0 < history.total("below_min_active") <= held * 60.0


def test_a_pipeline_gives_the_places_away_when_the_window_has_passed():
    down = At(60.0, ek.Changes(down="n0"), dead_after=1e6)
    with simulate.pipeline("balance", delay=Delay(300.0)) as pipeline:
        history = play(cluster_of(), [down], pipeline, environment=FAST, every=10.0, until=1200.0)
    before = history.replicas[(history.seconds >= 60.0) & (history.seconds < 360.0), 0]
    assert before.all() and (before == before[0]).all()
    assert history.replicas[-1, 0] == 0


def test_a_pipeline_may_calculate_beside_itself_one_step_later():
    from evenkeel.control import ManualWorkers

    added = At(60.0, ek.Changes(nodes={"names": ["n9", "n10", "n11"], "like": 0}))
    for workers in (None, ManualWorkers()):
        given = {} if workers is None else {"workers": workers}
        with simulate.pipeline("balance", **given) as pipeline:
            history = play(cluster_of(), [added], pipeline, environment=FAST)
        assert history.replicas[-1, 9:].sum() > 0


def test_a_pipeline_is_run_until_what_it_does_beside_itself_is_done():
    from evenkeel.control import ManualWorkers

    class Slow(ManualWorkers):
        """Done at the fifth look."""

        looks = 0

        def work(self, scope):
            self.looks += self.waiting(scope) > 0
            if self.looks >= 5:
                super().work(scope)

    added = At(60.0, ek.Changes(nodes={"names": ["n9", "n10", "n11"], "like": 0}))
    with simulate.pipeline("balance", workers=Slow()) as pipeline:
        history = play(cluster_of(), [added], pipeline, environment=FAST)
    assert history.replicas[-1, 9:].sum() > 0


@pytest.mark.parametrize("decides", ["balance", "pipeline"])
def test_a_lost_zone_leaves_every_partition_serving(decides):
    lost = At(60.0, ek.Changes(down="zone=a"), lasts=1200.0)
    method = simulate.pipeline("balance", delay=Delay(300.0)) if decides == "pipeline" else decides
    history = play(cluster_of(), [lost], method, environment=FAST, every=10.0)
    assert history.astray("unavailable").max() == 0
    assert history.total("below_min_active") == 0.0, "two of three are left"
    in_zone = history.leaders[history.seconds == 50.0][0, ::3].sum()
    assert history.total("failovers") == in_zone > 0
    assert history.replicas[-1].sum() == 90
    assert history.astray("under")[-1] == 0


def test_a_hot_spot_is_levelled():
    hot = At(300.0, ek.Changes(load_factor={f"p{p}": {"cpu": 6.0} for p in range(8)}))
    cluster = cluster_of(partitions=200, capacity=1000.0)
    history = play(cluster, [hot], environment=FAST, every=10.0, until=3600.0)
    quiet, struck = history.level[29, 0], history.level[30, 0]
    assert quiet <= 1.051 < struck
    assert history.level[-1, 0] <= 1.051


@pytest.mark.long
def test_each_seed_gives_the_same_bits():
    events = [
        LoadDrift(every=60.0, seed=3),
        Growth(every=40.0, partitions=3, seed=5),
        At(60.0, ek.Changes(down="n3")),
        At(100.0, ek.Changes(nodes={"names": ["n9"], "like": 0})),
    ]
    for decides in ("balance", "pipeline"):
        first, second = (
            play(
                cluster_of(),
                events,
                simulate.pipeline("balance") if decides == "pipeline" else decides,
                until=160.0,
                environment=FAST,
            )
            for _ in range(2)
        )
        for name, column in first.table().items():
            assert column.tobytes() == second.table()[name].tobytes(), name
        assert first.log == second.log
        assert first.load.tobytes() == second.load.tobytes()


def test_a_callable_may_decide_and_options_go_to_the_method():
    def leave(cluster, goals, seed):
        return cluster.placement

    history = play(cluster_of(), [At(10.0, ek.Changes(gone="n0"))], leave, until=600.0)
    assert history.method == "leave" and history.total("moves") == 0
    options = ek.options.Crushed(base="multiround")
    assert play(cluster_of(), (), "helix_crushed", options=options, until=60.0).method
    with pytest.raises(ek.InvalidInput, match="options"):
        play(cluster_of(), (), leave, options=options)


def test_pairs_that_are_forbidden_stay_so_when_others_are_added():
    cluster = cluster_of(nodes=6, partitions=4, forbidden=[[0, 3], [1, 3]])
    evacuated = At(60.0, ek.Changes(drain="n0"))
    history = play(cluster, [evacuated], environment=FAST, until=600.0)
    joined = {(one.change.partition, node) for one in history.log for node, _ in one.change.add}
    assert not joined & {(0, 3), (1, 3)}


def test_leaderless_clusters_stay_leaderless():
    cluster = cluster_of(leader=-1)
    history = play(cluster, [At(10.0, ek.Changes(down="n0"), dead_after=20.0)], environment=FAST)
    assert history.leaders.sum() == 0
    assert history.total("failovers") == 0 == history.astray("under")[-1]


def test_levelness_over_time_is_that_of_each_snapshot():
    events = [
        At(60.0, ek.Changes(down="n1"), dead_after=60.0),
        At(300.0, ek.Changes(load_factor={"p1": {"cpu": 10.0}})),
    ]

    class Copying(simulate.Controller):
        def __init__(self):
            self.seen = {}

        def wake(self, stage):
            self.seen[stage.world.seconds] = stage.world.snapshot()
            return stage.world.seconds + 60.0

        def ended(self, number, change, made):
            pass

    eye = Copying()
    cluster = cluster_of(lead_weight=[1.0, 2.0, 1.0] * 3)
    history = play(cluster, events, eye, until=600.0, every=60.0)
    for row, seconds in enumerate(history.seconds.tolist()):
        cluster = eye.seen[seconds]
        found = levelness(cluster, cluster.placement)
        assert history.level[row] == pytest.approx(found.ratio)
        assert history.leader_level[row] == pytest.approx(found.leader_ratio)


def test_returns_are_counted_within_their_window():
    def moved(source, target):
        return simulate.Change(0, add=((target, ek.Role.VOTER),), drop=(source,))

    cluster = cluster_of(placement=[[0, 1, 2]] * 30)
    script = Script((0.0, moved(0, 3)), (100.0, moved(3, 0)), (400.0, moved(0, 3)))
    history = play(cluster, (), script, environment=FAST, until=600.0, every=100.0)
    assert history.returns().tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert history.returns(150.0).tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert history.returns(50.0).tolist() == [0] * 7


def test_seconds_below_min_active_are_exact_and_by_partition():
    cluster = cluster_of(partitions=2, placement=[[0, 1, 2], [3, 4, 5]])
    events = [
        At(10.25, ek.Changes(down=["n0", "n1"])),
        At(47.5, ek.Changes(up=["n1"])),
        At(50.0, ek.Changes(down="n2")),
    ]
    history, _ = watched(events, cluster, until=100.0, every=50.0)
    assert history.below_min_active.tolist() == [37.25 + 50.0, 0.0]
    assert history.table()["seconds_below_min_active"].tolist() == [0.0, 37.25, 87.25]
    assert history.to_dict()["below_min_active"] == {"p0": 87.25}


def test_a_history_is_a_table_and_a_document():
    import json

    events = [At(60.0, ek.Changes(down="n1", name="power cut"), dead_after=60.0)]
    history = play(cluster_of(), events, environment=FAST, until=600.0, name="one night")
    table = history.table()
    assert {len(column) for column in table.values()} == {11}
    assert {"level_cpu", "level_disk", "level_leaders", "moves", "bytes", "returns"} <= set(table)
    document = json.loads(json.dumps(history.to_dict()))
    assert document["scenario"] == "one night"
    assert document["events"][0] == {"seconds": 60.0, "what": "power cut"}
    moved = [one for one in document["changes"] if one["add"]]
    joined = sum(len(one["add"]) for one in moved)
    assert joined == document["totals"]["moves"] == table["moves"][-1]
    assert ["n1"] in [one["drop"] for one in moved]
    shown = history._repr_html_()
    assert "one night" in shown and "60 s  power cut" in shown and "fullest node" in shown
    uneven = history.uneven("replicas")
    assert uneven[0] == history.replicas[0].max() / history.replicas[0].mean()


@pytest.mark.parametrize("growth", [np.zeros(3), np.zeros((30, 1)), 0.0])
def test_growth_of_other_partitions_is_refused(growth):
    with pytest.raises(ek.InvalidInput, match=r"environment\.growth"):
        play(cluster_of(), [], environment=replace(FAST, growth=growth), until=60.0)
    play(cluster_of(), [], environment=replace(FAST, growth=np.zeros(30)), until=60.0)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([("down", 60, 260), ("down", 100, 300)], "60 down, 300 back, 330 up"),
        ([("down", 100, 300), ("down", 60, 260)], "60 down, 300 back, 330 up"),
        ([("down", 60, 260), ("down", 100, 260)], "60 down, 260 back, 290 up"),
        ([("down", 60, 260), ("down", 100, np.inf)], "60 down, 360 dead"),
        ([("down", 60, 260), ("drain", 100, 300)], "60 down, 260 evacuated, 300 back, 330 up"),
        (
            [("drain", 60, 300), ("down", 100, 260)],
            "60 evacuated, 100 down, 260 evacuated, 300 back, 330 up",
        ),
        ([("drain", 60, 260), ("down", 100, 300)], "60 evacuated, 100 down, 300 back, 330 up"),
        ([("cordon", 60, np.inf), ("down", 100, 260)], "60 cordoned, 100 down, 260 cordoned"),
        ([("cordon", 60, 90), ("down", 100, 200)],
         "60 cordoned, 90 back, 100 down, 200 back, 230 up"),
        ([("down", 60, 1500), ("down", 80, 200), ("up", 250, 0)], "60 down, 250 back, 280 up"),
        ([("down", 60, 200), ("up", 100, 0), ("down", 150, np.inf)],
         "60 down, 100 back, 130 up, 150 down, 450 dead"),
    ],
)  # fmt: skip
def test_a_node_is_back_when_the_last_of_its_overlapping_events_has_ended(events, expected):
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    given = [
        At(at, ek.Changes(**{state: "n0"}), lasts=until - at if until else np.inf)
        for state, at, until in events
    ]
    found = play(cluster, given, until=2000.0, every=100.0).events
    assert ", ".join(f"{at:g} {what.removeprefix('n0 ')}" for at, what in found) == expected
