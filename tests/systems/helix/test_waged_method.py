"""WAGED through ``solve``, and as a pipeline calls it."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.run import run_method
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.assignment import Assignment
from evenkeel.model.errors import InvalidInput
from evenkeel.systems.helix import waged as fit
from evenkeel.systems.helix.waged import Reason, WagedFailure, model_of
from tests.conformance import documents
from tests.conformance.schemas.helix_waged import MODELS
from tests.support import places

FOLDER = places.DATA / "golden" / "helix"
CASES = (
    "15krep_60n", "s10_more_replicas_than_zones", "s13_not_topology_aware", "s14_expansion",
    "s15_zone_lost", "s16_zone_lost_small", "s2_tags", "s4_evenness_only", "s5_less_movement",
    "s6_scoring_key", "s7_force_converge", "s1_mixed_models", "s3_max_partitions",
)  # fmt: skip
"""Cases that need neither disabled partitions nor a replica on every node."""


def golden(name):
    """A golden document, its cluster, and the options that all its steps share."""
    document = documents.load(FOLDER / f"waged_{name}.json.gz")
    given = document["input"]
    nodes, resources = given["nodes"], given["resources"]
    sizes = [resource["numPartitions"] for resource in resources]
    group = np.repeat(np.arange(len(resources)), sizes)
    loads = [
        r.get("partitionWeights") or [r["defaultWeight"]] * r["numPartitions"] for r in resources
    ]
    tags = sorted({tag for node in nodes for tag in node.get("tags", ())})
    asked = sorted({r["tag"] for r in resources if "tag" in r})
    rule = np.array([asked.index(r["tag"]) if "tag" in r else len(asked) for r in resources])
    zoned = given["topologyAware"]
    spread = {"zone": 1} if zoned else {}
    cluster = ek.Cluster.from_arrays(
        capacity=np.array([node["capacity"] for node in nodes], float),
        load=np.concatenate([np.array(part, float) for part in loads]),
        dimensions=tuple(given["capacityKeys"]),
        node_names=[node["name"] for node in nodes],
        domains={"zone": [node["domain"].split(",")[0] for node in nodes]} if zoned else None,
        tags={tag: [tag in node.get("tags", ()) for node in nodes] for tag in tags},
        rules=[
            *(ek.Rule(require=[f"+{tag}"], spread=spread) for tag in asked),
            ek.Rule(spread=spread),
        ],
        rule=rule[group],
        partition_names=[f"{r['name']}_{i}" for r in resources for i in range(r["numPartitions"])],
        group=group,
        group_names=[resource["name"] for resource in resources],
        replicas=np.array([r["replicas"] for r in resources])[group],
        min_active=np.array([r.get("minActiveReplicas", r["replicas"]) for r in resources])[group],
        max_replicas=np.full(len(nodes), given.get("maxPartitionsPerInstance", -1)),
    )
    preference = given.get("preference") or {}
    options = ek.options.Waged(
        states=MODELS[resources[0]["stateModel"]],
        group_states={r["name"]: MODELS[r["stateModel"]] for r in resources[1:]},
        max_per_group={
            r["name"]: r["maxPartitionsPerInstance"]
            for r in resources
            if "maxPartitionsPerInstance" in r
        },
        evenness=preference.get("EVENNESS", 1),
        less_movement=preference.get("LESS_MOVEMENT", 1),
        force_converge=preference.get("FORCE_BASELINE_CONVERGE", 0) > 0,
        scoring_keys=given.get("preferredScoringKeys", ()),
        merge=False,
    )
    return document, cluster, options


def expected_assignment(document, step):
    """An expected assignment as arrays."""
    owner, node, state, p = [], [], [], 0
    for resource in document["input"]["resources"]:
        names = list(MODELS[resource["stateModel"]])
        for row in step["assignment"][resource["name"]]:
            for place, one in enumerate(row):
                named = isinstance(one, list)
                owner.append(p)
                node.append(one[0] if named else one)
                state.append(names.index(one[1]) if named else min(place, len(names) - 1))
            p += 1
    return Assignment.of_rows(
        p, np.array(owner), np.array(node, np.int32), np.array(state, np.uint8)
    )


def asked(cluster, options, callback=None):
    """Ask as a pipeline does."""
    watch = Watch(None, None, callback)
    return run_method("helix_waged", cluster, options=options, watch=watch).outcome


@pytest.mark.parametrize("name", CASES)
def test_golden_steps_agree_from_a_cluster(name):
    document, cluster, options = golden(name)
    steps = {step["id"]: step for step in document["input"]["steps"]}
    results = {step["id"]: step for step in document["result"]["steps"]}
    found = {
        name: expected_assignment(document, step)
        for name, step in results.items()
        if "assignment" in step
    }
    for name, result in results.items():
        step = steps[name]
        gone = np.isin(np.arange(len(cluster.nodes)), step.get("down", []))
        given = {key: found[step[key]] for key in ("current", "baseline") if key in step}
        more = dataclasses.replace(
            options, scope=step["scope"], changes=("nodes",) if "changes" in step else (), **given
        )
        nodes = dataclasses.replace(cluster.nodes, gone=gone)
        native = asked(dataclasses.replace(cluster, nodes=nodes), more).native
        if "error" in result:
            assert isinstance(native, WagedFailure)
            assert native.kind in result["error"]
        else:
            assert native.same_as(found[name])


def small(**changes):
    """Six nodes in three zones, ten partitions of three replicas."""
    given = {
        "capacity": np.full((6, 2), 100.0),
        "load": np.arange(1.0, 21.0).reshape(10, 2) % 7 + 1,
        "dimensions": ("cpu", "disk"),
        "domains": {"zone": ["a", "a", "b", "b", "c", "c"]},
        "spread": {"zone": 1},
        "replicas": 3,
        "min_active": 2,
        "placement": np.full((10, 3), -1),
    }
    return ek.Cluster.from_arrays(**(given | changes))


def with_flags(cluster, **flags):
    return dataclasses.replace(cluster, nodes=dataclasses.replace(cluster.nodes, **flags))


def test_solving_places_everything_and_again_moves_nothing():
    cluster = small()
    result = ek.solve(cluster, "helix_waged")
    assert (result.audit.hard, result.native.node.size) == (0, 30)
    assert result.message == "30 replicas placed."
    leaders = result.placement.node[result.placement.first[:-1] + result.placement.leader]
    assert np.array_equal(leaders, result.native.node[result.native.state == 0])
    again = ek.solve(cluster.with_placement(result.placement), "helix_waged")
    assert again.comparison.moves == again.comparison.leader_changes == 0
    assert again.native.same_as(result.native)


@given(st.data())
def test_no_hard_rule_is_broken_and_again_nothing_moves(data):
    def column(entries, count):
        return data.draw(st.lists(entries, min_size=count, max_size=count))

    n, p = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 10))
    pairs = st.tuples(st.integers(0, p - 1), st.integers(0, n - 1))
    cluster = ek.Cluster.from_arrays(
        capacity=np.array(column(st.integers(0, 40), 2 * n), float).reshape(n, 2),
        load=np.array(column(st.integers(0, 9), 2 * p), float).reshape(p, 2),
        domains={"zone": column(st.sampled_from("abc"), n)},
        tags={"ssd": column(st.booleans(), n)},
        rules=[ek.Rule(spread={"zone": 1}), ek.Rule(spread={"zone": 1}, require=["+ssd"])],
        rule=column(st.integers(0, 1), p),
        replicas=column(st.integers(1, 3), p),
        max_replicas=column(st.sampled_from([-1, -1, 3, 0]), n),
        forbidden=sorted(data.draw(st.sets(pairs, max_size=4))) or None,
    )
    result = ek.solve(cluster, "helix_waged")
    if isinstance(result.native, WagedFailure):
        assert (result.placement.node == -1).all()
        return
    broken = {kind for kind, count in result.audit.counts.items() if count}
    assert broken <= {"unassigned", "leaderless"}
    again = ek.solve(cluster.with_placement(result.placement), "helix_waged")
    assert again.native.same_as(result.native)
    assert again.comparison.moves == 0


def test_a_replica_stays_in_its_slot():
    cluster = small()
    placed = ek.solve(cluster, "helix_waged").placement
    node = placed.node.reshape(10, 3)[:, ::-1].ravel().copy()
    turned = placed.replaced(node, (2 - placed.leader).astype(np.int16))
    dead = np.arange(6) == 0
    cluster = with_flags(cluster.with_placement(turned), alive=~dead, keeps=~dead)
    result = ek.solve(cluster, "helix_waged", options=ek.options.Waged(scope="emergency"))
    lost = turned.node == 0
    assert np.array_equal(result.placement.node[~lost], turned.node[~lost])
    assert (result.placement.node[lost] == 1).all()
    assert result.comparison.moves == lost.sum()


def test_two_replicas_on_one_node_are_parted():
    cluster = small()
    node = ek.solve(cluster, "helix_waged").placement.node.copy()
    node[1] = node[0]
    twice = cluster.with_placement(cluster.placement.replaced(node, np.zeros(10, np.int16)))
    result = ek.solve(twice, "helix_waged")
    assert result.message == "1 replicas placed."
    assert (result.audit.hard, result.comparison.moves) == (0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"load": np.zeros((0, 2)), "placement": np.zeros((0, 3), int)},
        {"capacity": np.zeros((0, 2)), "domains": {"zone": []}},
    ],
)
def test_nothing_comes_of_nothing(changes):
    result = ek.solve(small(**changes), "helix_waged")
    assert result.message.endswith("0 replicas placed.")
    assert len(result.native.node) == 0


def test_an_emergency_leaves_nodes_in_their_delay_window_alone():
    cluster = small()
    cluster = cluster.with_placement(ek.solve(cluster, "helix_waged").placement)
    down = np.arange(6) == 2
    cluster = with_flags(cluster, alive=~down)
    result = ek.solve(cluster, "helix_waged", options=ek.options.Waged(scope="emergency"))
    assert result.comparison.moves == 0


def test_an_overwrite_adds_what_is_missing_and_is_merged():
    cluster = small()
    best = ek.solve(cluster, "helix_waged").native
    down = np.isin(np.arange(6), [2, 3])  # a zone: each partition keeps two of three
    cluster = with_flags(cluster, alive=~down)
    options = ek.options.Waged(scope="overwrite", current=best)
    assert asked(cluster, options).native.same_as(best)
    strict = dataclasses.replace(cluster.partitions, min_active=np.full(10, 3, np.int32))
    wide = dataclasses.replace(
        cluster,
        partitions=strict,
        topology=small(domains=None, spread={}).topology,
        rules=(ek.Rule(),),
    )
    found = asked(wide, options)
    assert found.native.node.size == 40
    assert found.warnings == ("10 replicas have no slot; native has them",)
    raw = asked(wide, dataclasses.replace(options, merge=False)).native
    assert raw.node.size == 30
    assert not np.isin(raw.node, [2, 3]).any()


def test_a_partial_run_brings_back_what_left_the_baseline():
    cluster = small()
    baseline = ek.solve(cluster, "helix_waged")
    node = baseline.placement.node.copy()
    moved = np.flatnonzero(node == 0)[:2]
    node[moved] = 1
    away = baseline.placement.replaced(node, baseline.placement.leader)
    options = ek.options.Waged(scope="partial", baseline=baseline.placement, force_converge=True)
    result = ek.solve(cluster.with_placement(away), "helix_waged", options=options)
    assert result.native.same_as(baseline.native)
    assert result.message == "2 replicas placed."


def test_changes_make_a_baseline_anew():
    cluster = small()
    heap = cluster.with_placement(ek.solve(cluster, "helix_waged").placement)
    for what, count in (
        ({"changes": ["nodes"]}, 30), ({"changes": ["cluster"]}, 30), ({"changes": ["groups"]}, 30),
        ({"changed_groups": []}, 0), ({"changed_groups": [heap.partitions.group_names[0]]}, 30),
    ):  # fmt: skip
        options = ek.options.Waged(**what)
        assert ek.solve(heap, "helix_waged", options=options).message == f"{count} replicas placed."


def test_a_replica_without_a_node_leaves_everything_as_it_came():
    result = ek.solve(small(load=np.full((10, 2), [[40.0, 1.0]])), "helix_waged")
    assert result.status == "infeasible"
    assert (result.placement.node == -1).all()
    assert "all nodes together have too little cpu." in result.message
    assert result.native.key == "cpu"
    big = np.ones((10, 2))
    big[4] = 101.0
    result = ek.solve(small(load=big), "helix_waged")
    assert (result.placement.node == -1).all()
    assert (result.native.partition, result.native.state) == (4, 0)
    assert set(result.native.reasons.values()) == {Reason.CAPACITY}
    assert "'p4' has no node for its MASTER" in result.warnings[0]
    assert "n0, n1, n2, n3, n4 and 1 more: too little capacity is left" in result.warnings[0]


def test_a_run_that_is_told_to_stop_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(fit, "SLICE", 30)

    def stop(progress):
        if progress.moves >= 10:
            raise StopIteration

    outcome = asked(small(), ek.options.Waged(), stop)
    assert (outcome.stop_reason, outcome.native) == ("interrupted", None)
    assert (outcome.node == -1).all()
    result = ek.solve(small(), "helix_waged", work_limit=60)
    assert (result.stop_reason, result.native) == ("work", None)


def test_a_model_is_made_once_for_the_same_arrays():
    cluster = small()
    options = ek.options.Waged()
    model = model_of(cluster, options)
    other = with_flags(cluster, alive=np.arange(6) > 0).with_placement(cluster.placement)
    assert model_of(other, ek.options.Waged(scope="emergency", evenness=3)) is model
    assert model_of(cluster, ek.options.Waged(max_per_group=3)) is not model
    bigger = dataclasses.replace(cluster.nodes, capacity=cluster.nodes.capacity * 2)
    assert model_of(dataclasses.replace(cluster, nodes=bigger), options) is not model


@pytest.mark.parametrize(
    ("changes", "options", "paths"),
    [
        ({"capacity": np.full((6, 2), 2.0**31), "load": np.full((10, 2), 0.5)}, {},
         ["capacity[0, 0]", "load[0, 0]"]),
        ({"capacity": np.full((6, 2), np.inf)}, {}, ["capacity[0, 0]"]),
        ({"leader_load": np.full((10, 2), 3.0)}, {}, ["leader_load"]),
        ({}, {"zone": "rack"}, ["options.zone"]),
        ({}, {"scoring_keys": ["net"], "changed_groups": ["x"]},
         ["options.changed_groups", "options.scoring_keys"]),
        ({}, {"current": Assignment(*map(np.array, ([0], [], [])))}, ["options.current"]),
    ],
)  # fmt: skip
def test_all_that_cannot_be_expressed_is_named(changes, options, paths):
    with pytest.raises(InvalidInput) as caught:
        ek.solve(small(**changes), "helix_waged", options=ek.options.Waged(**options))
    found = [fault.path for fault in caught.value.faults]
    assert [path for path in paths if path not in found] == []


def test_options_are_checked_together():
    with pytest.raises(InvalidInput) as caught:
        ek.options.Waged(
            scope="partial", evenness=1001, less_movement=-1, changes=["weather"], current=3,
            max_per_group=-1, states={},
        )  # fmt: skip
    assert {fault.path for fault in caught.value.faults} == {
        "options.states", "options.baseline", "options.evenness", "options.less_movement",
        "options.changes", "options.current", "options.max_per_group",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=r"options\.scope"):
        ek.options.Waged(scope="local")


def test_a_baseline_says_that_it_counts_on_dead_nodes():
    dead = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 4, placement=[[0, 1]] * 4, alive=[True] * 3 + [False]
    )
    left = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 4, placement=[[0, 3]] * 4, alive=[True] * 3 + [False]
    )
    assert ek.solve(dead, "helix_waged").warnings == ()
    found = ek.solve(left, "helix_waged")
    assert "4 are on dead nodes" in found.message
    assert any("scope='emergency'" in warning for warning in found.warnings)
    mended = ek.solve(left, "helix_waged", options=ek.options.Waged(scope="emergency"))
    assert mended.success and mended.warnings == ()


def test_a_node_that_stands_in_is_one_of_them_once_it_is_alone():
    def found(**state):
        return ek.solve(
            ek.Cluster.from_arrays(
                capacity=[[9.0]] * 3,
                load=[[1.0]] * 6,
                placement=[[-1]] * 6,
                stands_for=[-1, -1, 0],
                **state,
            ),
            "helix_waged",
        ).placement.node.tolist()

    assert 2 not in found()
    assert 2 in found(gone=[True, False, False], alive=[False, True, True])


def test_groups_may_have_limits_of_their_own():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 6, placement=[[-1]] * 6, group=[0, 0, 0, 0, 1, 1],
        group_names=["orders", "carts"], tags={"big": [True, False]},
        rules=[ek.Rule(), ek.Rule(require=["+big"])], group_rule=[0, 1],
    )  # fmt: skip

    def run(limit):
        return ek.solve(cluster, "helix_waged", options=ek.options.Waged(max_per_group=limit))

    assert run({"orders": 2}).success and run(2).success
    assert run({"carts": 1}).native.reasons == {0: Reason.LIMIT, 1: Reason.TAG}
    with pytest.raises(InvalidInput, match="unknown group"):
        run({"order": 2})
    with pytest.raises(InvalidInput, match="0 or more"):
        run({"orders": -2})


def test_groups_may_have_state_models_of_their_own():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 4, placement=[[-1, -1]] * 4, group=[0, 0, 1, 1],
        group_names=["orders", "carts"],
    )  # fmt: skip

    def run(states):
        options = ek.options.Waged(group_states=states)
        return ek.solve(cluster, "helix_waged", options=options)

    assert run({}).native.state.tolist() == [0, 1] * 4
    assert run({"carts": {"ONLINE": "R"}}).native.state.tolist() == [0, 1, 0, 1, 0, 0, 0, 0]
    with pytest.raises(InvalidInput, match="unknown group"):
        run({"cart": {"ONLINE": "R"}})
    with pytest.raises(InvalidInput, match="names no state"):
        run({"carts": {}})
