"""Changed clusters: made of others by name, mask or number, and validated like new ones."""

import dataclasses
import inspect
import pickle
import typing

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel import simulate
from evenkeel.model.intake.arguments import Arguments
from tests.support.clusters import clusters
from tests.support.plain_cluster import build

ZONES = {"domains": {"zone": ["a", "b", "b"]}}


def refused(make):
    with pytest.raises(ek.InvalidInput) as caught:
        make()
    return {fault.path: fault for fault in caught.value.faults}


def same(one, other):
    """Whether two clusters say the same, array by array."""
    for part in ("nodes", "topology", "partitions", "placement"):
        for field in dataclasses.fields(getattr(one, part)):
            a, b = (getattr(getattr(each, part), field.name) for each in (one, other))
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, b, err_msg=f"{part}.{field.name}")
            elif field.name not in ("load", "tags", "attributes", "tier_capacity"):
                assert a == b, f"{part}.{field.name}"
    return one.rules == other.rules


class TestReplace:
    @given(clusters())
    def test_nothing_replaced_is_nothing_changed(self, cluster):
        again = cluster.replace()
        for field in dataclasses.fields(cluster):
            assert getattr(again, field.name) is getattr(cluster, field.name)

    @given(clusters())
    def test_what_does_not_change_is_shared(self, cluster):
        other = cluster.replace(weight=2.0)
        assert (other.nodes.weight == 2.0).all()
        assert other.nodes.names is cluster.nodes.names
        assert other.nodes.tags is cluster.nodes.tags
        for part in ("topology", "partitions", "placement", "rules", "dimensions"):
            assert getattr(other, part) is getattr(cluster, part)

    @given(clusters())
    def test_the_same_arrays_make_the_same_cluster(self, cluster):
        nodes, partitions = cluster.nodes, cluster.partitions
        other = cluster.replace(
            capacity=nodes.capacity, alive=nodes.alive, accepts=nodes.accepts, keeps=nodes.keeps,
            leads=nodes.leads, load=partitions.load.voter, placement=cluster.placement,
            replicas=partitions.replicas, voters=partitions.voters,
            group=partitions.group, min_active=partitions.min_active,
        )  # fmt: skip
        assert same(cluster, other)

    @pytest.mark.parametrize(
        ("change", "path"),
        [
            ({"capacity": [[-1.0, 1.0]] * 3}, "capacity[0, 0]"), ({"alive": [True]}, "alive"),
            ({"capacity": [[1.0, 1.0]] * 4}, "capacity"),
            ({"placement": [[9, 0]] * 4}, "placement[0][0]"),
            ({"load": [[np.nan, 1.0]] * 4}, "load[0, 0]"), ({"rule": [0] * 4}, "rule[0]"),
            ({"spread": {"row": 1}}, "spread['row']"), ({"leader": [2] * 4}, "leader[0]"),
            ({"replicas": -1}, "replicas[0]"), ({"voters": 3}, "voters[0]"),
            ({"rules": [ek.Rule(place={"zone=a": 3})]}, "rules[0].place['zone=a']"),
            ({"domains": {"zone": ["a"]}}, "domains['zone']"),
            ({"forbidden": [[0, 3]]}, "forbidden[:, 1][0]"),
            ({"bytes": "x"}, "bytes"), ({"depends": [(0, 1, "zone")]}, "depends[0]"),
        ],
    )  # fmt: skip
    def test_it_is_validated_like_a_new_one(self, change, path):
        found = refused(lambda: build().replace(**change))
        assert path in found
        assert {one.split("[")[0] for one in found} == {path.split("[")[0]}

    def test_rules_that_no_longer_suit_are_found(self):
        cluster = build(rules=[ek.Rule(require=["+ssd"])])
        assert set(refused(lambda: cluster.replace(tags={}))) == {"rules[0].require[0]"}
        three = build(**ZONES, replicas=3, spread={"zone": 1}, rules=())
        assert three.replace(rules=[ek.Rule(min_domains={"zone": 3})]).rules
        assert "rules[0].min_domains['zone']" in refused(
            lambda: three.replace(replicas=2, rules=[ek.Rule(min_domains={"zone": 3})])
        )

    def test_a_word_that_is_unknown_names_the_closest_one(self):
        found = refused(lambda: build().replace(capacty=[[1.0]], alve=[True]))
        assert "'capacity'" in found["capacty"].message and "'alive'" in found["alve"].message

    def test_fewer_replicas_leave_voters_and_slots_in_order(self):
        cluster = build().replace(replicas=1)
        assert cluster.partitions.voters.tolist() == [1] * 4
        assert cluster.placement.slots == 2

    def test_more_replicas_vote_where_all_did(self):
        cluster = build().replace(replicas=3)
        assert cluster.partitions.voters.tolist() == [3] * 4
        mixed = build(replicas=2, voters=[1, 2, 2, 1]).replace(replicas=[3, 3, 1, 2])
        assert mixed.partitions.voters.tolist() == [1, 3, 1, 1]
        whole = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=3, placement=build().placement
        )
        assert whole.partitions.voters.tolist() == [3] * 4

    def test_it_takes_what_from_arrays_takes(self):
        door = inspect.signature(ek.Cluster.from_arrays)
        assert list(door.parameters) == list(Arguments.__annotations__)
        types = typing.get_type_hints(Arguments)
        hints = typing.get_type_hints(inspect.unwrap(ek.Cluster.from_arrays))
        for name, parameter in door.parameters.items():
            assert parameter.kind is parameter.KEYWORD_ONLY
            assert types[name] == hints[name], name


class TestFewerReplicas:
    def test_no_more_live_ones_are_needed_than_are_wanted(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 3, load=[[1.0]] * 2, replicas=3, min_active=2,
            placement=[[0, 1, 2]] * 2,
        )  # fmt: skip
        fewer = cluster.apply(ek.Changes(replicas={"p0": 1}))
        assert fewer.partitions.min_active.tolist() == [1, 2]
        assert cluster.apply(ek.Changes(replicas=4)).partitions.min_active.tolist() == [2, 2]
        assert ek.solve(fewer, goals=ek.Goals(level=None)).plan().complete


class TestFromArrays:
    def test_a_word_that_is_unknown_names_the_closest_one(self):
        found = refused(lambda: ek.Cluster.from_arrays(capacty=[[1.0]], load=[[1.0]], replicas=1))
        assert "did you mean 'capacity'" in found["capacty"].message
        assert "mean" not in refused(lambda: build(xyzzy=3))["xyzzy"].message

    def test_groups_may_be_told_by_name(self):
        group = ["pay", "audit", "pay", "audit"]
        cluster = build(group=group, rules=[ek.Rule()], group_rule={"pay": 0},
                        depends=[("pay", "audit", "zone")])  # fmt: skip
        assert list(cluster.partitions.group_names) == ["audit", "pay"]
        assert cluster.partitions.group.tolist() == [1, 0, 1, 0]
        assert cluster.partitions.group_rule.tolist() == [-1, 0]
        assert cluster.depends.tolist() == [[1, 0, 0]]
        ordered = build(group=np.array(group), group_names=["pay", "x", "audit"])
        assert ordered.partitions.group.tolist() == [0, 2, 0, 2]

    @pytest.mark.parametrize(
        ("changes", "paths"),
        [
            ({"group": ["a", "b", None, ""]}, {"group[2]", "group[3]"}),
            ({"group": ["a", "b", "c", "a"], "group_names": ["a", "b"]}, {"group[2]"}),
            ({"group": ["a", "b"]}, {"group"}), ({"group": ["a", 1, "a", "a"]}, {"group[1]"}),
            ({"group": ["a"] * 4, "rules": [ek.Rule()], "group_rule": {"b": 0}},
             {"group_rule['b']"}),
        ],
    )  # fmt: skip
    def test_groups_that_are_none(self, changes, paths):
        assert set(refused(lambda: build(**changes))) == paths

    def test_nodes_of_a_placement_may_be_told_by_name_in_rows_of_any_length(self):
        cluster = build(
            placement=[["n0", "n2"], ["n1"], [2, "n0", None], []], node_names=["n0", "n1", "n2"]
        )
        assert cluster.placement.nodes.tolist() == [[0, 2, -1], [1, -1, -1], [2, 0, -1], [-1] * 3]
        assert cluster.partitions.replicas.tolist() == [2, 1, 3, 0]
        table = build(placement=np.array([["n0", "n2"]] * 4))
        assert table.placement.nodes.tolist() == [[0, 2]] * 4
        flat = build(placement=["n0", "n1", "n2"], first=[0, 1, 1, 2, 3])
        assert flat.placement.node.tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("placement", "paths"),
        [
            ([["n0", "n9"]] * 4, {f"placement[{p}][1]" for p in range(4)}),
            ([[0], [1, True], [2], [0.5]], {"placement[1][1]", "placement[3][0]"}),
            ([["n0"]] * 3, {"placement"}), (["n0"] * 4, {"placement"}), ("n0", {"placement"}),
            ([[0, 1], 2, [0], [1]], {"placement"}), (np.ones((4, 2), bool), {"placement"}),
            ([[False, True]] * 4, {"placement"}), ([[3], [0, 1], [], []], {"placement[0][0]"}),
        ],
    )  # fmt: skip
    def test_placements_that_are_none(self, placement, paths):
        assert set(refused(lambda: build(placement=placement))) == paths

    def test_replicas_that_are_missing_in_floats(self):
        nodes = [[0.0, 1.0, float("nan")], [2.0, float("nan"), float("nan")]] * 2
        placement = build(placement=nodes).placement.nodes
        assert placement.tolist() == [[0, 1, -1], [2, -1, -1]] * 2

    @pytest.mark.parametrize(
        "zones",
        [
            ["a", float("nan"), "b"], ["a", None, "b"], ["a", "", "b"],
            np.array(["a", float("nan"), "b"], object),
        ],
    )  # fmt: skip
    def test_labels_that_are_missing(self, zones):
        topology = build(domains={"zone": zones}).topology
        assert topology.label.tolist() == [[0, -1, 1]]
        assert topology.label_names == (("a", "b"),)

    def test_numbers_that_are_missing(self):
        for zones in ([7.0, float("nan"), 9.0], [7, None, 9], [7, -1, 9]):
            topology = build(domains={"zone": zones}).topology
            assert topology.label.tolist() == [[0, -1, 1]]
            assert topology.label_names == (("7", "9"),)
        assert set(refused(lambda: build(domains={"zone": [7.5, 1.0, 2.0]}))) == {"domains['zone']"}


class TestStates:
    def test_they_are_chained(self):
        cluster = build(**ZONES).down("n0").drain("zone=b").up("n1")
        nodes = cluster.nodes
        assert nodes.alive.tolist() == [False, True, True]
        assert nodes.keeps.tolist() == nodes.accepts.tolist() == [False, True, False]
        assert nodes.leads.tolist() == [False, True, False]

    @pytest.mark.parametrize(
        "which",
        [("n0", "n2"), (0, 2), (["n0", 2],), ([True, False, True],), (np.array([0, 2]),),
         (np.array([True, False, True]),), ("+x",), ("zone=a,+x", "zone=c"), (["+x", "n0"],)],
    )  # fmt: skip
    def test_nodes_are_told_in_any_way(self, which):
        cluster = build(domains={"zone": ["a", "b", "c"]}, tags={"x": [True, False, True]})
        assert cluster.down(*which).nodes.alive.tolist() == [False, True, False]

    def test_a_dead_node_is_as_if_it_had_been_built_dead(self):
        assert same(build().down("n1"), build(alive=[True, False, True]))
        assert same(build(alive=[True, False, True]).up(1), build())
        assert build(gone=[True, False, False]).up("n0").nodes.may_receive.all()

    def test_what_a_drained_node_holds_has_to_leave(self):
        cluster = build(**ZONES).drain("n2")
        assert cluster.nodes.alive.all()
        result = ek.solve(cluster, goals=ek.Goals(level=None))
        assert result.audit.ok and not (result.placement.node == 2).any()

    @pytest.mark.parametrize("which", ["n9", 3, -1, "zone=q", None, 1.5, [True], "5"])
    @pytest.mark.parametrize("change", ["down", "up", "drain"])
    def test_what_is_no_node(self, change, which):
        found = refused(lambda: getattr(build(), change)(which))
        assert all(path.startswith(change) for path in found)

    def test_nothing_named_is_nothing_done(self):
        assert same(build().down().drain([]).up().pin(), build())


class TestPinning:
    def test_partitions_are_told_in_any_way(self):
        cluster = build(group=["audit", "pay", "audit", "pay"])
        for pinned in (
            cluster.pin("p0", "p2"), cluster.pin([0, 2]), cluster.pin(topic="audit"),
            cluster.pin(group="audit"), cluster.pin("group=audit"), cluster.pin(0, group=["audit"]),
            cluster.pin([True, False, True, False]), cluster.pin(group=0),
        ):  # fmt: skip
            assert pinned.placement.flags.tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
            assert pinned.nodes is cluster.nodes

    def test_other_flags_stay(self):
        cluster = build(flags=[[ek.Flag.HEALTHY, 0]] * 4).pin(0)
        assert cluster.placement.flags.tolist()[:3] == [ek.Flag.HEALTHY | ek.Flag.PINNED, 1, 8]

    @pytest.mark.parametrize(
        ("asked", "path"), [({"topic": "x"}, "topic"), ({"group": 7}, "group"), ({"group": True},
                                                                              "group")]
    )  # fmt: skip
    def test_what_is_no_group(self, asked, path):
        assert set(refused(lambda: build().pin(**asked))) == {path}
        assert set(refused(lambda: build().pin("p9"))) == {"pin[0]"}

    def test_pinned_replicas_stay(self):
        cluster = build(placement=[[0], [0], [0], [0]], group=["audit", "audit", "pay", "pay"])
        result = ek.solve(cluster.pin(topic="audit"), goals=ek.Goals(level=0.0))
        assert result.placement.node[:2].tolist() == [0, 0]
        assert (result.placement.node[2:] != 0).all()

    def test_flags_take_a_flag(self):
        flags = build().placement.flags.copy()
        flags |= ek.Flag.PINNED | ek.Flag.NEW
        flags[:4] &= ~ek.Flag.NEW
        assert flags.dtype == np.uint16
        assert flags.tolist() == [1] * 4 + [33] * 4
        assert (flags & ek.Flag.NEW).tolist() == [0] * 4 + [32] * 4


class TestNewNodes:
    def test_they_stand_after_the_others_empty_and_up(self):
        cluster = build(**ZONES).add_nodes([[5.0, 6.0]] * 2, domains={"zone": ["c", "a"]})
        assert list(cluster.nodes.names) == ["n0", "n1", "n2", "n3", "n4"]
        assert cluster.nodes.capacity[3:].tolist() == [[5.0, 6.0]] * 2
        assert cluster.nodes.may_receive.all()
        assert cluster.topology.label.tolist() == [[0, 1, 1, 2, 0]]
        assert cluster.topology.domain[0, 0] == cluster.topology.domain[0, 4]
        assert cluster.nodes.tags["ssd"].tolist() == [True, True, False, False, False]

    @given(clusters())
    def test_they_are_as_if_they_had_been_there(self, cluster):
        if cluster.topology.tier_distance.ndim == 2:
            return
        count = len(cluster.nodes)
        homes = {tier: ["new"] for tier in cluster.topology.tiers}
        wide = cluster.add_nodes(np.ones((1, len(cluster.dimensions))), domains=homes)
        assert len(wide.nodes) == count + 1
        for field in ("capacity", "alive", "weight", "stands_for"):
            np.testing.assert_array_equal(
                getattr(wide.nodes, field)[:count], getattr(cluster.nodes, field)
            )
        for level, amounts in cluster.topology.tier_capacity.items():
            row = cluster.topology.tier_index(level)
            was, now = cluster.topology.domain[row], wide.topology.domain[row, :count]
            np.testing.assert_array_equal(
                wide.topology.tier_capacity[level][now[was >= 0]], amounts[was[was >= 0]]
            )
        assert wide.placement is cluster.placement and wide.partitions is cluster.partitions

    def test_names_and_labels_are_theirs(self):
        cluster = build(node_names=["x", "y", "z"]).add_nodes(
            [[5.0, 6.0]], names=["w"], attributes={"os": ["bsd"]}, tags={"gpu": [True]}, weight=2.0
        )
        assert cluster.nodes.names.index("w") == 3
        codes, meaning = cluster.nodes.attributes["os"]
        assert [meaning[code] for code in codes] == ["linux", "linux", "bsd", "bsd"]
        assert cluster.nodes.tags["gpu"].tolist() == [False] * 3 + [True]
        assert cluster.nodes.weight.tolist() == [1.0, 1.0, 1.0, 2.0]

    @pytest.mark.parametrize(
        ("capacity", "more", "path"),
        [
            ([[1.0]], {}, "capacity"), ([[1.0, -1.0]], {}, "capacity"),
            ([[1.0, 1.0]], {"names": ["n0"]}, "names"), ([[1.0, 1.0]], {"names": []},
                                                              "names"),
            ([[1.0, 1.0]], {"domains": {"zone": ["a", "b"]}}, "domains"),
            ([[1.0, 1.0]], {"weight": -1.0}, "weight"), ([[1.0, 1.0]], {"tags": 3}, "tags"),
            (3.0, {}, "capacity"),
        ],
    )  # fmt: skip
    def test_what_is_no_node(self, capacity, more, path):
        found = refused(lambda: build().add_nodes(capacity, **more))
        assert found and all(one.startswith(path) for one in found)

    def test_a_tier_that_the_cluster_does_not_have_is_a_slip(self):
        found = refused(
            lambda: build(**ZONES).add_nodes([[-1.0, 1.0]], domains={"zonne": ["a"]}, weight=-1.0)
        )
        assert set(found) == {"capacity[3, 0]", "weight[3]", "domains['zonne']"}
        told = found["domains['zonne']"].message
        assert told == "unknown tier; known: ['zone']; did you mean 'zone'?"

    @pytest.mark.parametrize(
        "rule",
        [{"spread": {"zone": 1}}, {"min_domains": {"zone": (1, "soft")}}, {"skew": {"zone": 1}}],
    )
    @pytest.mark.parametrize("domains", [None, {}, {"rack": ["x", "y"]}, {"zone": ["a", None]}])
    def test_nobody_joins_outside_of_what_rules_count_by(self, rule, domains):
        cluster = build(
            domains={"zone": ["a", "b", "b"], "rack": ["x", "y", None]}, rules=[ek.Rule(**rule)]
        )
        found = refused(lambda: cluster.add_nodes([[5.0, 6.0]] * 2, domains=domains))
        strays = [1] if domains and "zone" in domains else [0, 1]
        assert {path: one.value for path, one in found.items()} == {"domains['zone']": strays}
        joined = ek.Changes(nodes={"capacity": [[5.0, 6.0]] * 2, "domains": domains})
        session = ek.Session(cluster)
        assert set(refused(lambda: session.apply(joined))) == {"nodes.domains['zone']"}

    def test_who_stands_outside_of_tiers_that_no_rule_counts_by_may_join(self):
        cluster = build(domains={"zone": ["a", "b", "b"], "rack": ["x", "y", None]},
                        rules=[ek.Rule(spread={"rack": 1})])  # fmt: skip
        assert cluster.add_nodes([[5.0, 6.0]]).topology.label[:, 3].tolist() == [-1, -1]


class TestNoHole:
    """What ``dataclasses.replace`` makes is checked like everything else."""

    @pytest.mark.parametrize(
        ("part", "change", "path"),
        [
            ("nodes", {"capacity": np.full((3, 2), -1.0)}, "capacity[0, 0]"),
            ("nodes", {"capacity": np.ones((3, 1))}, "capacity"),
            ("nodes", {"alive": [True] * 3}, "alive"),
            ("nodes", {"stands_for": np.full(3, 7, np.int32)}, "stands_for[0]"),
            ("partitions", {"rule": np.zeros(4, np.int32)}, "rule[0]"),
            ("partitions", {"min_active": np.zeros(4)}, "min_active"),
            ("partitions", {"group_rule": np.zeros(9, np.int32)}, "group_rule"),
            ("placement", {"node": np.full(8, 3, np.int32)}, "placement[0]"),
            ("placement", {"leader": np.full(4, 2, np.int16)}, "leader[0]"),
            ("placement", {"first": np.zeros(5, np.int64)}, "first"),
            ("placement", {"flags": np.full(8, 2**15, np.uint16)}, "flags[0]"),
            ("placement", {"role": np.full(8, 3, np.uint8)}, "role[0]"),
        ],
    )  # fmt: skip
    def test_parts_are_checked(self, part, change, path):
        cluster = build()
        changed = dataclasses.replace(getattr(cluster, part), **change)
        found = refused(lambda: dataclasses.replace(cluster, **{part: changed}))
        assert path in found

    def test_so_are_rules(self):
        rules = (ek.Rule(require=["+gpu"]),)
        assert "rules[0].require[0]" in refused(lambda: dataclasses.replace(build(), rules=rules))

    def test_and_loads(self):
        cluster = build()
        load = dataclasses.replace(cluster.partitions.load, voter=np.full((4, 2), np.nan))
        partitions = dataclasses.replace(cluster.partitions, load=load)
        assert "load[0, 0]" in refused(lambda: dataclasses.replace(cluster, partitions=partitions))

    def test_with_placement_too(self):
        other = build(placement=[[0, 1]] * 3, load=[[1.0, 1.0]] * 3).placement
        assert set(refused(lambda: build().with_placement(other))) >= {"first"}

    def test_what_was_checked_is_not_checked_again(self, monkeypatch):
        cluster = build()

        def again(*_):
            raise AssertionError("checked twice")

        monkeypatch.setattr("evenkeel.model.intake.consistency._partitions", again)
        monkeypatch.setattr("evenkeel.model.intake.consistency._placement", again)
        assert cluster.down("n0").up("n0").drain(1).nodes.alive.all()


class TestErrors:
    def test_they_survive_pickling(self):
        with pytest.raises(ek.InvalidInput) as caught:
            build(capacity=[[-1.0, np.nan]] * 3)
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        assert [fault.path for fault in again.faults] == [f.path for f in caught.value.faults]

    def test_so_do_values_that_cannot_be_pickled(self):
        error = ek.InvalidInput([ek.Fault("x", lambda: 3, "is wrong"), ek.Fault("y", 2, "too")])
        again = pickle.loads(pickle.dumps(error))
        assert "lambda" in str(again.faults[0].value) and again.faults[1].value == 2

    def test_a_start_that_is_an_array(self):
        found = refused(lambda: ek.solve(build(), start=np.zeros((4, 2))))
        assert "must be a Placement" in found["start"].message

    def test_a_limit_that_is_no_number(self):
        found = refused(lambda: ek.solve(build(), time_limit="1", work_limit=True))
        assert set(found) == {"time_limit", "work_limit"}

    @pytest.mark.parametrize(
        ("which", "paths"),
        [
            (("b1", "b2"), {"down[0]", "down[1]"}),
            ((["b1", "n0"], "x"), {"down[0][0]", "down[1][0]"}),
            ((["b1", "n0", "q"],), {"down[0]", "down[2]"}),
        ],
    )
    def test_each_unknown_node_has_its_place(self, which, paths):
        assert set(refused(lambda: build().down(*which))) == paths


@pytest.mark.parametrize(
    ("rule", "changes", "spread"),
    [
        ({"rack": 1}, {"replicas": 4}, {"rack": 2}),
        ({"rack": 1}, {"replicas": {0: 7}}, {"rack": 3}),
        ({"rack": 1}, {"replicas": 2}, {"rack": 1}),
        ({"rack": 2}, {"replicas": 4}, {"rack": 2}),
        ({"rack": (1, "soft")}, {"replicas": 4}, {"rack": (1, "soft")}),
        ({"rack": 1, "node": 1}, {"replicas": 4}, {"rack": 2, "node": 1}),
        ({"rack": 1}, {"replicas": 4, "rules": [ek.Rule(spread={"rack": 1})]}, {"rack": 1}),
        ({"rack": 2}, {"replicas": 4, "drain": "rack=c"}, {"rack": 2}),
    ],
)
def test_what_spread_the_former_number_evenly_spreads_the_new_one(rule, changes, spread):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 9, load=[[1.0]] * 2, placement=[[0, 3, 6]] * 2, replicas=3,
        domains={"rack": list("aaabbbccc")}, rules=[ek.Rule(spread=rule)],
    )  # fmt: skip
    session = ek.Session(cluster)
    session.apply(ek.Changes(**changes))
    for changed in (cluster.apply(ek.Changes(**changes)), session.cluster):
        assert dict(changed.rules[changed.partitions.rule[0]].spread) == spread
        every = changes["replicas"] != {0: 7}
        assert (changed.partitions.rule[0] == changed.partitions.rule[1]) == every
        result = ek.solve(changed)
        assert not any(one.hard for one in result.violations) or "rules" in changes


def test_a_simulated_change_of_numbers_spreads_replicas_evenly():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 2, placement=[[0, 2, 4]] * 2, replicas=3,
        domains={"rack": list("aabbcc")}, rules=[ek.Rule(spread={"rack": 1})],
    )  # fmt: skip
    event = simulate.At(60.0, ek.Changes(replicas=4))
    ended = simulate.play(cluster, [event], until=7200.0, every=600.0)
    assert ended.conformance[-1].sum() == 0
