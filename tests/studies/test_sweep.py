"""The sweep: the same as solving one by one, whoever does it, and no scenario stops another."""

import copy
import multiprocessing
import pickle
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds
from evenkeel.measure.compare import forced_moves
from evenkeel.measure.levelness import levelness
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.balance import balance
from evenkeel.methods.registry import METHODS, Method
from evenkeel.model.placement import Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.session import HeldCluster
from evenkeel.studies.fan_out import Failure, Shared, fan_out
from evenkeel.studies.scenario import Study, changed, survival
from evenkeel.studies.sweep import play
from tests.support.clusters import assert_equal, clusters
from tests.support.effort import share_of_examples
from tests.support.instances import as_cluster, generate

GOALS = ek.Goals(level=0.1)
FIGURES = (
    "fits", "hard", "level", "fullest", "moves", "moves_at_least", "leader_changes", "bytes",
    "lost", "without_quorum", "under_min_active",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    return as_cluster(generate(P=600, N=30, Z=5, seed=3))


@pytest.fixture(scope="module")
def swept(cluster):
    return ek.sweep(cluster, "node", goals=GOALS)


def without(cluster, *lost):
    flags = {name: getattr(cluster.nodes, name).copy() for name in ("alive", "keeps")}
    for flag in flags.values():
        flag[list(lost)] = False
    flags = {name: read_only(flag) for name, flag in flags.items()}
    return replace(cluster, nodes=replace(cluster.nodes, **flags))


def assert_same(one, other):
    assert one.names == other.names
    assert one.status == other.status
    for figure in FIGURES:
        left, right = getattr(one, figure), getattr(other, figure)
        assert left.dtype == right.dtype
        assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), figure
    for left, right in zip(one.results, other.results, strict=True):
        for name in ("lost", "without_quorum", "under_min_active"):
            assert np.array_equal(getattr(left.before, name), getattr(right.before, name))
            assert np.array_equal(getattr(left.after, name), getattr(right.after, name))


@pytest.mark.parametrize("solved", [False, True])
def test_it_is_the_same_as_asking_one_by_one(cluster, solved):
    """Where something is wrong before, by a solve; where nothing is, without a search."""
    if solved:
        cluster = cluster.with_placement(ek.solve(cluster, goals=GOALS).placement)
    swept = ek.sweep(cluster, "node", goals=GOALS)
    assert len(swept.names) == int(cluster.nodes.alive.sum())
    for i, n in enumerate(np.flatnonzero(cluster.nodes.alive)):
        alone = ek.Session(cluster).apply(ek.Changes(down=n)).solve(goals=GOALS)
        fresh = ek.solve(without(cluster, n), goals=GOALS)
        assert alone.comparison.moves <= fresh.comparison.moves
        counted = audit(fresh.cluster, alone.placement).counts
        assert alone.audit.counts == fresh.audit.counts == counted
        assert solved or np.array_equal(alone.placement.node, fresh.placement.node)
        assert swept.names[i] == f"node n{n}"
        assert swept.status[i] == alone.status
        assert swept.moves[i] == alone.comparison.moves
        assert swept.moves_at_least[i] == alone.bounds.moves_level
        assert swept.hard[i] == alone.audit.hard
        assert np.allclose(swept.level[i], alone.levelness.ratio, rtol=1e-12)
        assert np.allclose(swept.fullest[i], alone.levelness.most, rtol=1e-12)
        assert swept.bytes[i] == pytest.approx(alone.comparison.bytes_moved)
    again = swept.result("node n5")
    alone = ek.Session(cluster).apply(ek.Changes(down=5)).solve(goals=GOALS)
    assert np.array_equal(again.placement.node, alone.placement.node)


@pytest.mark.parametrize("rule", [ek.Rule(spread={"zone": 1}), ek.Rule(skew={"zone": 1})])
def test_what_scenarios_share_is_as_if_each_stood_alone(rule):
    """What the placement that came in breaks, bounds and loads, where zones and loads go."""
    rng = np.random.default_rng(3)
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((6, 2), 100.0),
        load=rng.uniform(1.0, 3.0, (40, 2)),
        placement=np.stack([rng.permutation(6)[:2] for _ in range(40)]),
        domains={"zone": [*"aaabbb"]},
        rules=[rule],
        rule=0,
    )
    zone, double = np.arange(3, 6, dtype=np.int32), {"d0": 2.0, "d1": 2.0}
    changes = [ek.Changes(), ek.Changes(down=zone)]
    changes += [ek.Changes(load_factor=double), ek.Changes(down=zone[:1], load_factor=double)]
    for change in changes * 2:
        shared, alone = changed(cluster, change), stripped(changed(stripped(cluster), change))
        assert audit(shared, shared.placement).counts == audit(alone, alone.placement).counts
        for name in ("fair", "level", "target", "forced", "moves_feasible", "moves_level"):
            found, expected = (getattr(bounds(one, GOALS), name) for one in (shared, alone))
            assert np.array_equal(found, expected), (change.name, name)
        loads = [levelness(one, one.placement).loads for one in (shared, alone)]
        assert np.array_equal(*loads)
        forced = [forced_moves(PlacementCounts.of(one, one.placement)) for one in (shared, alone)]
        assert forced[0] == forced[1]


def stripped(cluster):
    """The same without anything that was counted of it."""
    load = replace(cluster.partitions.load)
    parts = {"partitions": replace(cluster.partitions, load=load)}
    for name in ("nodes", "topology", "placement"):
        parts[name] = replace(getattr(cluster, name))
    return replace(cluster, **parts)


def test_what_is_there_without_any_scenario_is_told_too(cluster, swept):
    now = ek.solve(cluster, goals=GOALS)
    assert swept.now.moves == now.comparison.moves
    assert np.array_equal(swept.now.level, now.levelness.ratio)


@pytest.mark.parametrize(
    "executor",
    [
        lambda: ThreadPoolExecutor(3),
        lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")),
    ],
    ids=["threads", "processes"],
)
def test_whoever_does_it_the_answers_and_their_order_are_the_same(cluster, swept, executor):
    with executor() as workers:
        assert_same(ek.sweep(cluster, "node", workers, goals=GOALS), swept)


@share_of_examples(0.4)
@given(clusters(), st.data())
def test_threads_agree_on_any_cluster_which_stays_as_it_was(cluster, data):
    mine = st.lists(st.integers(0, max(0, len(cluster.nodes) - 1)), max_size=3)
    lost = data.draw(mine) if len(cluster.nodes) else []
    factor = data.draw(st.sampled_from([0.0, 0.5, 1.0, 1.25]))
    before = copy.deepcopy(cluster)
    scenarios = ["node", ek.Changes(name="mine", down=lost, load_factor=factor)]
    alone = ek.sweep(cluster, scenarios, work_limit=20_000)
    with ThreadPoolExecutor(2) as threads:
        assert_same(ek.sweep(cluster, scenarios, threads, work_limit=20_000), alone)
    assert_equal("cluster", cluster, before)
    # whatever lives before a repair lives after it, and nothing else comes back
    assert np.array_equal(alone.lost[:, 0], alone.lost[:, 1])


@given(clusters())
def test_survival_counts_as_one_would_by_hand(cluster):
    placement, nodes = cluster.placement, cluster.nodes
    lost, short, stuck = [], [], []
    for p in range(len(cluster.partitions)):
        row = range(placement.first[p], placement.first[p + 1])
        placed = [k for k in row if placement.node[k] >= 0]
        live = [k for k in placed if nodes.alive[placement.node[k]]]
        live = [k for k in live if not nodes.gone[placement.node[k]]]
        voters = [k for k in placed if placement.role[k] == Role.VOTER]
        majority = len(voters) // 2 + 1
        if cluster.partitions.replicas[p] == 0:
            continue
        if placed and not live:
            lost.append(p)
        if len(live) < cluster.partitions.min_active[p]:
            short.append(p)
        if voters and len(set(voters) & set(live)) < majority:
            stuck.append(p)
    found = survival(cluster, placement)
    assert found.lost.tolist() == lost
    assert found.under_min_active.tolist() == short
    assert found.without_quorum.tolist() == stuck


def test_a_scenario_that_loses_partitions_says_which():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5,
        load=[[1.0]] * 4,
        placement=[[0, 1, 2], [0, 1, 3], [1, 2, 3], [2, 3, 4]],
        partition_names=["a", "b", "c", "d"],
        min_active=2,
    )
    found = ek.sweep(cluster, [*(ek.Changes(name=f"{n}", down=range(n)) for n in (2, 3))])
    assert found.lost_partitions("2") == ()
    assert found.lost_partitions("3") == ("a",)
    assert found.lost.tolist() == [[0, 0], [1, 1]]
    assert found.scenario("2").before.without_quorum.tolist() == [0, 1]
    assert found.without_quorum[:, 0].tolist() == [2, 3]
    assert found.under_min_active[:, 0].tolist() == [2, 3]
    # three replicas on two nodes: one short, but in no danger any more
    assert found.fits.tolist() == [True, False]
    assert found.under_min_active[:, 1].tolist() == [0, 0]
    assert [one.scenario for one in found.worst()] == ["3"]
    with pytest.raises(ek.InvalidInput, match="four"):
        found.scenario("four")


def test_levels_stand_for_the_loss_of_each_of_their_domains():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6,
        load=[[1.0]],
        placement=[[0]],
        domains={"zone": [*"aabbcc"], "rack": ["r1", "r2", "r1", "r1", None, "r2"]},
        alive=[True, True, True, True, True, False],
    )
    each = {name: ek.sweep(cluster, name) for name in ("node", "zone", "rack", "rack pairs")}
    assert each["node"].names == tuple(f"node n{n}" for n in range(5))
    assert each["zone"].names == ("zone a", "zone b", "zone c")
    assert each["rack"].names == ("rack a/r1", "rack a/r2", "rack b/r1")
    assert each["rack pairs"].names[0] == "rack a/r1 + a/r2"
    lost = {change.name: change.down.tolist() for one in each.values() for change in one.changes}
    assert lost["zone b"] == [2, 3]
    assert lost["zone c"] == [4]
    assert lost["rack a/r2 + b/r1"] == [1, 2, 3]
    assert len(ek.sweep(cluster, "node pairs").names) == 10
    assert len(ek.sweep(cluster, ["node", "zone"]).names) == 8


def test_nodes_come_back_and_loads_change():
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0, 8.0]] * 3,
        load=[[1.0, 1.0]] * 6,
        placement=[[0]] * 3 + [[1]] * 3,
        dimensions=("cpu", "disk"),
        alive=[True, True, False],
        tags={"new": [False, False, True]},
        bytes="disk",
    )
    found = ek.sweep(
        cluster,
        [
            ek.Changes(up=["+new"]),
            ek.Changes(load_factor={"cpu": 1.5}),
            ek.Changes(name="grown", load_factor=2.0, up=[2]),
            ek.Changes(
                name="one grows", load_factor=[3.0, 1.0, 1.0, 1.0, 1.0, 1.0], down=["node=n1"]
            ),
        ],
        goals=ek.Goals(level=0.0),
    )
    assert found.names[:2] == ("up +new", "cpu x 1.5")
    assert found.moves.tolist()[:3] == [2, 0, 2]
    assert found.fits.tolist() == [True, False, True, False]
    assert found.fullest.tolist()[:3] == [[0.5, 0.25], [1.125, 0.375], [1.0, 0.5]]
    assert found.bytes.tolist()[0] == 2.0
    assert cluster.partitions.load.voter[0, 0] == 1.0


def test_every_problem_is_reported_together(cluster):
    with pytest.raises(ek.InvalidInput) as error:
        ek.sweep(
            cluster,
            [
                "shelf",
                ek.Changes(name="a", down=["n99", 77, "zone=z"], up=[True, 2.0]),
                ek.Changes(name="b", down=["n1"], up=["n1"], load_factor={"gpu": 2.0}),
                ek.Changes(name="c", load_factor=-1.0),
                ek.Changes(name="d", load_factor=[1.0, 2.0]),
                ek.Changes(name="e", load_factor=1e308),
                ek.Changes(name="same"),
                ek.Changes(name="same"),
                7,
            ],
            executor="threads",
            seed="x",
            callback=3,
        )
    assert [fault.path for fault in error.value.faults] == [
        "scenarios[0]", "scenarios[1].down[0]", "scenarios[1].down[1]", "scenarios[1].down[2]",
        "scenarios[1].up[0]", "scenarios[1].up[1]", "scenarios[2].up",
        "scenarios[2].load_factor['gpu']", "scenarios[3].load_factor", "scenarios[4].load_factor",
        "scenarios[5].load_factor", "scenarios[8]", "scenarios", "executor",
        "callback", "seed",
    ]  # fmt: skip


def test_a_scenario_may_be_any_change_that_keeps_the_partitions():
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 6, placement=[[0], [0], [0], [1], [1], [2]]
    )
    found = ek.sweep(
        cluster,
        [ek.Changes(nodes={"like": 0}, drain="n0"), ek.Changes(capacity={"n0": [2.0]}),
         ek.Changes(drain="n1", pin="p3", name="pinned")],
        goals=ek.Goals(level=None),
    )  # fmt: skip
    assert found.names == ("drain n0; new nodes", "new capacity", "pinned")
    assert found.moves.tolist() == [3, 1, 1]
    more = ek.Changes(partitions={"load": [[1.0]], "replicas": 1})
    with pytest.raises(ek.InvalidInput) as error:
        ek.sweep(cluster, [ek.Changes(drop="p0"), more])
    paths = [fault.path for fault in error.value.faults]
    assert paths == ["scenarios[0].drop", "scenarios[1].partitions"]


def test_nothing_but_a_cluster_is_swept():
    with pytest.raises(ek.InvalidInput, match="must be a Cluster"):
        ek.sweep([[1.0]], "node")


def test_no_scenarios_are_no_rows(cluster):
    found = ek.sweep(cluster, [])
    assert found.level.shape == (0, 3)
    assert found.lost.shape == (0, 2)
    assert found.complete and found.worst() == [] and str(found).startswith("0 scenarios")


def test_even_the_loss_of_all_nodes_has_a_result(cluster):
    found = ek.sweep(cluster, ek.Changes(name="all", down=range(30)))
    assert found.status == ("infeasible",)
    assert found.lost.tolist() == [[600, 600]]


def refusing_five(request):
    """Balance, but raise for a cluster whose node 5 is dead."""
    if not request.cluster.nodes.alive[5]:
        raise OSError("no plan for that")
    return balance(request)


@pytest.fixture
def method(monkeypatch):
    """Put a strategy of this module into the table of methods."""

    def put(function):
        monkeypatch.setitem(METHODS, "mine", Method("mine", f"{__name__}:{function.__name__}", ""))
        return "mine"

    return put


@pytest.mark.parametrize("threads", [False, True])
def test_one_scenario_that_fails_leaves_the_others_alone(cluster, swept, method, threads):
    given = {"method": method(refusing_five), "goals": GOALS}
    if threads:
        with ThreadPoolExecutor(2) as workers:
            found = ek.sweep(cluster, "node", workers, **given)
    else:
        found = ek.sweep(cluster, "node", **given)
    bad = found.names.index("node n5")
    assert found.status.count("failed") == 1
    assert found.results[bad].message == "OSError: no plan for that"
    assert np.isnan(found.level[bad]).all() and not found.fits[bad]
    others = np.arange(len(found.names)) != bad
    assert np.array_equal(found.moves[others], swept.moves[others])
    assert not found.complete
    assert found.worst()[0].scenario == "node n5"
    assert "1 failed" in str(found)


def test_what_fits_since_partitions_are_lost_is_counted_apart():
    cluster = ek.Cluster.from_arrays(
        capacity=[[6.0], [4.0], [4.0]], load=[[2.0]] * 3,
        placement=[[0, 1], [0, 1], [2, -1]], replicas=[2, 2, 1],
    )  # fmt: skip
    found = ek.sweep(cluster, "node")
    assert found.fits.tolist() == [False, True, True]
    assert found.summary == (
        "3 scenarios: 1 fit with nothing lost, 1 with partitions lost, 1 unfit with nothing lost; "
        "at worst 1 partition lost (node n2), 2 without a majority of voters (node n0)"
    )


@pytest.mark.parametrize(
    ("placement", "min_active", "worst"),
    [
        ([[0, 1, 2]] * 3, 0, ""),
        ([[0, 1, 2]] * 3, 3, "at worst 3 partitions short of min-active (node n0)"),
        ([[0, 1]] + [[1, 2]] * 2, 0,
         "at worst 3 partitions without a majority of voters (node n1)"),
        ([[0], [2], [2]], 1,
         "at worst 2 partitions lost (node n2), 2 without a majority of voters (node n2), "
         "2 short of min-active (node n2)"),
    ],
)  # fmt: skip
def test_the_headline_names_the_worst_of_each_danger(placement, min_active, worst):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 3, placement=placement, min_active=min_active
    )
    found = ek.sweep(cluster, "node")
    assert found.summary.partition("; ")[2] == worst
    assert str(found).splitlines()[0] == found.summary


def test_workers_that_cannot_be_had_are_said_so(cluster):
    workers = ThreadPoolExecutor(1)
    workers.shutdown()
    found = ek.sweep(cluster, "node", workers)
    assert set(found.status) == {"failed"}
    assert "RuntimeError" in found.results[0].message


@pytest.mark.parametrize("workers", [None, ThreadPoolExecutor])
def test_a_callback_hears_how_far_it_is_and_may_end_it(cluster, swept, workers):
    heard = []

    def listen(done, total):
        heard.append((done, total))
        if done >= 4:
            raise StopIteration

    if workers is None:
        found = ek.sweep(cluster, "node", goals=GOALS, callback=listen)
        assert heard == [(i, len(swept.names)) for i in range(1, 5)]
        assert found.status[4:] == ("not run",) * (len(swept.names) - 4)
    else:
        with workers(1) as executor:
            found = ek.sweep(cluster, "node", executor, goals=GOALS, callback=listen)
        assert heard[-1][0] >= 4
        assert "not run" in found.status
    ran = np.array([one != "not run" for one in found.status])
    assert ran.sum() >= 4
    assert np.array_equal(found.moves[ran], swept.moves[ran])
    assert found.worst(99)[-1].status == "not run"


@pytest.mark.parametrize("workers", [None, ThreadPoolExecutor])
def test_an_answer_may_end_it(cluster, swept, workers):
    study = Study(HeldCluster(cluster), "balance", {"goals": GOALS})
    ends = swept.results[3]

    def is_last(one):
        return one is not None and one.moves == ends.moves and one.bytes_moved == ends.bytes_moved

    executor = None if workers is None else workers(1)
    found = play(study, swept.now, swept.changes, executor, ends=is_last)
    if workers is None:
        assert found.status[4:] == ("not run",) * (len(swept.names) - 4)
    assert np.array_equal(found.moves[:4], swept.moves[:4]) and not found.complete


def test_an_error_of_the_callback_is_the_callers(cluster):
    def listen(done, total):
        raise ValueError("mine")

    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match="mine"):
        ek.sweep(cluster, "node", threads, callback=listen)


def interrupting(request):
    """Balance, but meet Ctrl-C where node 5 is dead."""
    if not request.cluster.nodes.alive[5]:
        raise KeyboardInterrupt
    return balance(request)


def ended_early(request):
    """Balance, but say that Ctrl-C ended it where node 5 is dead."""
    outcome = balance(request)
    if not request.cluster.nodes.alive[5]:
        return replace(outcome, stop_reason="interrupted")
    return outcome


@pytest.mark.parametrize("strategy", [interrupting, ended_early])
def test_ctrl_c_keeps_what_is_done(cluster, swept, method, strategy):
    found = ek.sweep(cluster, "node", goals=GOALS, method=method(strategy))
    at = found.names.index("node n5")
    assert found.status[:at] == swept.status[:at]
    assert set(found.status[at:]) == {"not run"}
    assert np.array_equal(found.moves[:at], swept.moves[:at])


def test_ctrl_c_that_reaches_a_worker_ends_the_sweep(cluster, method):
    with ThreadPoolExecutor(1) as threads:
        found = ek.sweep(cluster, "node", threads, goals=GOALS, method=method(ended_early))
    assert found.status[found.names.index("node n5")] == "not run"
    assert not found.complete


def test_tables_and_text_are_for_people(swept):
    rows = swept.rows()
    assert [row.scenario for row in rows] == list(swept.names)
    assert [row.moves for row in rows] == swept.moves.tolist()
    worst = swept.worst(99)
    assert sorted(row.scenario for row in worst) == sorted(swept.names)
    keys = [(row.without_quorum, row.under_min_active, row.fullest, row.moves) for row in worst]
    assert keys == sorted(keys, reverse=True)
    lines = str(swept).splitlines()
    assert "scenarios: " in lines[0] and "lost" in lines[1]
    assert worst[0].scenario in lines[2]
    assert "more" in lines[-1]
    assert repr(swept) == f"<Sweep: {lines[0]}>"


def halve(common, item):
    """Divide what all share by an item."""
    return common // item


def test_what_is_shared_is_packed_once_and_unpacked_once():
    shared = Shared([84])
    sent = pickle.dumps((shared, 1)), pickle.dumps((shared, 2))
    assert shared._packed is not None
    (one, _), (other, _) = map(pickle.loads, sent)
    assert one is other and one.value == [84]


def test_answers_come_in_order_with_failures_in_their_place():
    items = [*range(1, 200), 0]
    with ThreadPoolExecutor(4) as threads:
        found = fan_out(halve, 84, items, threads)
    assert found[:-1] == [84 // item for item in items[:-1]]
    assert isinstance(found[-1], Failure) and "ZeroDivisionError" in found[-1].message


def test_an_executor_that_breaks_fails_its_own_batches():
    class Fragile(ThreadPoolExecutor):
        count = 0

        def submit(self, *given, **more):
            self.count += 1
            if self.count == 2:
                raise RuntimeError("broken")
            return super().submit(*given, **more)

    assert issubclass(Fragile, Executor)
    with Fragile(1) as executor:
        found = fan_out(halve, 84, list(range(1, 100)), executor)
    failed = [i for i, one in enumerate(found) if isinstance(one, Failure)]
    assert 0 < len(failed) < 10
    assert failed == list(range(failed[0], failed[-1] + 1))


def test_how_long_recovery_takes_is_told_when_asked():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 6, load=[[1.0]] * 12, dimensions=["disk"], bytes="disk",
        placement=[[p % 6, (p + 1) % 6] for p in range(12)],
    )  # fmt: skip
    plain = ek.sweep(cluster, "node")
    assert np.isnan(plain.recovery).all()
    assert np.isnan(plain.under_replicated).all()
    assert {(row.recovery, row.under_replicated) for row in plain.rows()} == {(None, None)}
    slow, fast = (
        ek.sweep(cluster, "node", recovery=ek.Throttle(copies=n), protocol="kafka") for n in (1, 4)
    )
    assert (slow.recovery >= 4.0).all()
    assert (slow.under_replicated <= slow.recovery).all()
    assert (slow.under_replicated >= 4.0).all()
    assert (fast.recovery < slow.recovery).all()
    assert slow.rows()[0].recovery == slow.recovery[0]
    way = slow.result(0).plan(throttle=ek.Throttle(copies=1), protocol="kafka")
    assert (way.makespan, way.short_for) == (slow.recovery[0], slow.under_replicated[0])


def test_what_is_wrong_with_the_recovery_is_said_with_all_else():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput) as caught:
        ek.sweep(cluster, "row", recovery=ek.Throttle(domain_in={"rack": 1}), protocol="magic")
    assert len(caught.value.faults) == 3


def halve_even(total, items):
    """Answer what is even, up to the first three; the rest is for the task."""
    if items[0] == 13:
        raise OSError("unlucky")
    return [total // item if item % 2 == 0 else None for item in items[:3]]


@pytest.mark.parametrize("threads", [False, True])
def test_what_is_done_together_is_as_if_done_alone(threads):
    items = [2, 4, 3, 6, 7, 12, 14, 21, 28, 42, 0, 84, 1]
    with ThreadPoolExecutor(2) as workers:
        found = fan_out(halve, 84, items, workers if threads else None, together=halve_even)
    alone = fan_out(halve, 84, items)
    assert [str(one) for one in found] == [str(one) for one in alone]
    assert fan_out(halve, 84, [13], together=halve_even) == [Failure("OSError: unlucky")]


def test_scenarios_and_results_travel_as_they_are(swept):
    travelled = pickle.loads(pickle.dumps(swept))
    assert_same(travelled, swept)
    assert travelled.results[0].before.lost.dtype == np.int32
    assert not travelled.results[0].level.flags.writeable
    for ours, theirs in zip(travelled.changes, swept.changes, strict=True):
        assert np.array_equal(ours.down, theirs.down) and ours.down.dtype == theirs.down.dtype
    monday = ek.Changes(name="Monday", up=[3], load_factor=2.0)
    again = pickle.loads(pickle.dumps(monday))
    assert again.named == {"up", "load_factor"} and again.describe() == "Monday"
