"""The model: faults are reported together, nothing handed in is copied, written or locked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.arrays import frozen, thawed
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.names import Names
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Limit, Rule
from tests.clusters import clusters

PLAIN = {
    "capacity": [[10.0, 10.0]] * 3,
    "load": [[1.0, 2.0]] * 4,
    "dimensions": ("cpu", "disk"),
    "domains": {"zone": ["a", "a", "b"], "rack": ["r1", "r2", "r1"]},
    "tags": {"ssd": [True, True, False]},
    "attributes": {"os": ["linux", "linux", "bsd"]},
    "placement": [[0, 2], [1, 2], [2, 0], [2, 1]],
}


def build(**changes):
    return Cluster.from_arrays(**(PLAIN | changes))


def faults_of(**changes):
    """The faults of a plain cluster with some arguments changed, by path."""
    with pytest.raises(InvalidInput) as caught:
        build(**changes)
    return {fault.path: fault for fault in caught.value.faults}


class TestFaults:
    def test_all_of_them_are_reported_together(self):
        found = faults_of(
            capacity=[[10.0, np.nan], [-1.0, 10.0], [1.0, 1.0]],
            load=[[np.inf, 1.0]] + [[1.0, -2.0]] + [[1.0, 1.0]] * 2,
            alive=[True, False],
            rules=[Rule(require=["+gpu", "zone==a"], spread={"row": 1})],
            node_names=["x", "y", "x"],
        )
        assert set(found) == {
            "capacity[0, 1]", "capacity[1, 0]", "load[0, 0]", "load[1, 1]", "alive",
            "node_names[2]", "rules[0].require[0]", "rules[0].require[1]", "rules[0].spread['row']",
        }  # fmt: skip
        assert found["load[1, 1]"].value == -2.0
        assert found["node_names[2]"].value == "x"

    def test_it_is_one_value_error_that_names_path_and_value(self):
        with pytest.raises(ValueError, match=r"2 problems[^?]*min_active\[1\]: must be .*got -1"):
            build(min_active=[0, -1, -2, 0])

    @pytest.mark.parametrize("name", ["load", "leader_load", "non_voter_load"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0])
    def test_loads_are_finite_and_not_negative(self, name, value):
        loads = np.ones((4, 2))
        loads[2, 1] = value
        assert set(faults_of(**{name: loads})) == {f"{name}[2, 1]"}

    @pytest.mark.parametrize("name", ["capacity", "watermark"])
    def test_capacities_may_be_infinite_or_zero_but_not_negative(self, name):
        build(**{name: [[np.inf, 0.0]] * 3})
        for value in (np.nan, -1.0, -np.inf):
            assert set(faults_of(**{name: [[1.0, value]] + [[1.0, 1.0]] * 2})) == {f"{name}[0, 1]"}

    @pytest.mark.parametrize("name", ["weight", "lead_weight"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
    def test_weights(self, name, value):
        assert set(faults_of(**{name: [1.0, value, 0.0]})) == {f"{name}[1]"}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("alive", [True] * 4), ("since", [[1.0] * 3]), ("max_replicas", [1, 2]),
            ("stands_for", [0]), ("replicas", [2, 2]), ("voters", [1] * 5), ("group", [0] * 3),
            ("rule", [-1] * 5), ("attached", [0]), ("move_cost", [1.0] * 3),
            ("leader_load", [[1.0, 2.0]]), ("watermark", [[1.0]] * 3), ("placement", [[0, 1]] * 3),
            ("placement", [0, 1, 2]), ("leader", [0]), ("role", [0] * 3), ("flags", [0] * 9),
            ("forbidden", [[1, 2, 3]]), ("level_distance", [1.0]), ("group_rule", [0, 0]),
        ],
    )  # fmt: skip
    def test_shapes(self, name, value):
        assert "shape" in faults_of(**{name: value})[name].message

    @pytest.mark.parametrize(
        ("name", "value", "path"),
        [
            ("load", [["a", "b"]] * 4, "load"),
            ("load", np.ones((4, 2), complex), "load"),
            ("placement", [[0.5, 1]] * 4, "placement[0, 0]"),
            ("placement", [[None, 1]] * 4, "placement"),
            ("replicas", [2, 2, 2**40, 2], "replicas[2]"),
            ("alive", [1, 2, 0], "alive[1]"),
            ("flags", [[70000, 0]] + [[0, 0]] * 3, "flags[0]"),
            ("role", [[9, 0]] + [[0, 0]] * 3, "role[0]"),
        ],
    )
    def test_dtypes(self, name, value, path):
        assert path in faults_of(**{name: value})

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"placement": [[0, 3]] + [[0, 1]] * 3}, "placement[1]"),
            ({"placement": [[0, -2]] + [[0, 1]] * 3}, "placement[1]"),
            ({"leader": [0, 2, 0, 0]}, "leader[1]"),
            ({"attached": [3, -1, -1, -1]}, "attached[0]"),
            ({"stands_for": [-1, 3, -1]}, "stands_for[1]"),
            ({"group": [0, -1, 0, 0]}, "group[1]"),
            ({"group": [0, 2, 0, 0], "group_names": ["x", "y"]}, "group[1]"),
            ({"rule": [0, 1, -1, -1], "rules": [Rule()]}, "rule[1]"),
            ({"group_rule": [1], "rules": [Rule()]}, "group_rule[0]"),
            ({"forbidden": [[4, 0]]}, "forbidden[:, 0][0]"),
            ({"forbidden": [[0, 3]]}, "forbidden[:, 1][0]"),
            ({"depends": [(0, 1, "zone")]}, "depends[0]"),
            ({"depends": [(0, 0, "row")]}, "depends[0]"),
            ({"transient": ["net"]}, "transient"),
            ({"bytes": "net"}, "bytes"),
            ({"crossing": ["row"]}, "crossing"),
            ({"level_capacity": {"row": [[1.0, 1.0]]}}, "level_capacity['row']"),
            ({"voters": [3, 2, 2, 2]}, "voters[0]"),
            ({"replicas": -1}, "replicas[0]"),
            ({"placement": [0, 1], "first": [0, 2, 1, 2, 2]}, "first"),
        ],
    )
    def test_references(self, changes, path):
        assert path in faults_of(**changes)

    @pytest.mark.parametrize("name", ["node_names", "partition_names", "group_names", "dimensions"])
    def test_names_are_distinct_texts_and_as_many_as_needed(self, name):
        count = {"node_names": 3, "partition_names": 4, "group_names": 2, "dimensions": 2}[name]
        names = [f"x{i}" for i in range(count)]
        assert f"{name}[{count - 1}]" in faults_of(**{name: [*names[:-1], names[0]]})
        assert f"{name}[0]" in faults_of(**{name: [7, *names[1:]]})
        if name != "group_names":
            assert name in faults_of(**{name: names[1:]})

    def test_labels_are_texts_or_integers_one_per_node(self):
        assert "domains['zone']" in faults_of(domains={"zone": ["a", "b"]})
        assert "domains['zone']" in faults_of(domains={"zone": [0.5, 1.0, 2.0]})
        assert "attributes['os']" in faults_of(attributes={"os": [["a"], ["b"], ["c"]]})
        assert "domains['node']" in faults_of(domains={"node": ["a", "b", "c"]})

    def test_goals_and_limits_are_checked_too(self):
        with pytest.raises(InvalidInput, match=r"level\['cpu'\]: must be 0 or more"):
            Goals(level={"cpu": -0.1, "disk": None})
        with pytest.raises(InvalidInput, match="2 problems"):
            Goals(level=float("nan"), leaders=-1)
        with pytest.raises(InvalidInput, match="2 problems"):
            Limits(moves=-1, bytes=float("nan"))

    def test_a_thousand_faults_make_a_readable_message(self):
        with pytest.raises(InvalidInput) as caught:
            Cluster.from_arrays(capacity=[[1.0]], load=np.full((1000, 1), -1.0))
        assert len(str(caught.value).splitlines()) <= 25
        assert "990 more" in str(caught.value)

    def test_a_fault_says_where_what_and_why(self):
        fault = Fault("a.json:31", "x", "must be a number")
        assert str(fault) == "a.json:31: must be a number (got 'x')"


class TestRules:
    @pytest.mark.parametrize(
        "text", ["", "zone", "+", "=a", "zone=", "zone!=", "a=b=c", "+ssd,", 7]
    )
    def test_what_does_not_parse(self, text):
        assert "rules[0].require[0]" in faults_of(rules=[Rule(require=[text])])

    @pytest.mark.parametrize(
        "text", ["+gpu", "-gpu", "row=1", "zone=z9", "zone!=z9", "os=mac", "node=n7", "zone=a,+gpu"]
    )
    def test_what_no_node_knows(self, text):
        rule = Rule(
            require=[text], voters_require=[text], lead=[text], place={text: 1},
            voters_place={text: 1},
        )  # fmt: skip
        found = faults_of(rules=[Rule(), rule])
        for path in ("require[0]", "voters_require[0]", "lead[0]"):
            assert f"rules[1].{path}" in found
        for path in ("place", "voters_place"):
            assert f"rules[1].{path}[{text!r}]" in found

    @pytest.mark.parametrize(
        "texts",
        [
            ["+ssd", "-ssd"], ["zone=a", "zone=b"], ["zone=a", "zone!=a"], ["zone=a,zone=b"],
            ["os=linux,+ssd", "os=bsd"],
        ],
    )  # fmt: skip
    def test_contradictions(self, texts):
        assert "rules[0].require" in faults_of(rules=[Rule(require=texts)])

    def test_what_is_no_contradiction(self):
        build(rules=[Rule(require=["zone!=a", "zone!=b", "+ssd"], lead=["zone=a", "zone=b"])])
        build(rules=[Rule(place={"zone=a": 1, "zone=b": 1})])

    def test_counts_that_no_partition_can_meet(self):
        assert "rules[0].place['zone=a']" in faults_of(rules=[Rule(place={"zone=a": 3})])
        found = faults_of(rules=[Rule(voters_place={"zone=a": 2})], voters=1)
        assert "rules[0].voters_place['zone=a']" in found
        rule = Rule(min_domains={"zone": 3})
        assert "rules[0].min_domains['zone']" in faults_of(rules=[rule])
        rule = Rule(min_domains={"zone": 2}, max_domains={"zone": 1})
        assert "rules[0].min_domains['zone']" in faults_of(rules=[rule])

    def test_what_is_only_wished_for_may_be_out_of_reach(self):
        build(rules=[Rule(min_domains={"zone": (3, "soft")}, max_domains={"zone": 1})])

    @pytest.mark.parametrize("amount", [-1, 1.5, "1", True, (1, "maybe"), (1,), (None, "soft", 3)])
    def test_amounts(self, amount):
        for name in ("spread", "min_domains", "max_domains", "skew"):
            assert f"rules[0].{name}['zone']" in faults_of(rules=[Rule(**{name: {"zone": amount}})])

    @pytest.mark.parametrize("count", [-1, 1.5, True])
    def test_counts(self, count):
        assert "rules[0].place['+ssd']" in faults_of(rules=[Rule(place={"+ssd": count})])

    def test_a_text_where_a_list_belongs(self):
        assert "rules[0].require" in faults_of(rules=[Rule(require="zone=a")])

    def test_spread_and_rules_exclude_each_other(self):
        assert "spread" in faults_of(rules=[Rule()], spread={"zone": 1})

    def test_what_is_no_rule(self):
        assert "rules[1]" in faults_of(rules=[Rule(), {"spread": {"zone": 1}}])

    def test_one_rule_binds_all_and_several_bind_whom_they_are_told(self):
        assert build(spread={"zone": 1}).partitions.rule.tolist() == [0] * 4
        assert build(rules=[Rule(), Rule()]).partitions.rule.tolist() == [-1] * 4

    def test_one_replica_per_node_is_a_default_that_can_be_lifted(self):
        node = Limit("node", "spread", 1, True)
        assert Rule().limits() == [node]
        assert Rule().limits(per_node=False) == []
        assert Rule(spread={"node": None}).limits() == []
        assert Rule(spread={"node": (1, "soft")}).limits() == [Limit("node", "spread", 1, False)]


class TestMemory:
    def arrays(self):
        return {
            "capacity": np.ones((3, 2)), "load": np.ones((4, 2)), "leader_load": np.ones((4, 2)),
            "placement": np.zeros((4, 2), np.int32), "group": np.zeros(4, np.int32),
            "alive": np.ones(3, bool), "leader": np.zeros(4, np.int16), "weight": np.ones(3),
            "flags": np.zeros((4, 2), np.uint16), "role": np.zeros((4, 2), np.uint8),
            "watermark": np.ones((3, 2)), "move_cost": np.ones(4),
        }  # fmt: skip

    def held(self, cluster):
        nodes, partitions, placement = cluster.nodes, cluster.partitions, cluster.placement
        return {
            "capacity": nodes.capacity, "load": partitions.load.voter,
            "leader_load": partitions.load.leader, "placement": placement.node,
            "group": partitions.group, "alive": nodes.alive, "leader": placement.leader,
            "weight": nodes.weight, "flags": placement.flags, "role": placement.role,
            "watermark": nodes.watermark, "move_cost": partitions.move_cost,
        }  # fmt: skip

    def test_what_fits_is_not_copied(self):
        arrays = self.arrays()
        held = self.held(Cluster.from_arrays(**arrays))
        for name, array in arrays.items():
            assert np.shares_memory(array, held[name]), name

    def test_loads_that_do_not_differ_share_one_array(self):
        load = build().partitions.load
        assert np.shares_memory(load.leader, load.voter)
        assert np.shares_memory(load.non_voter, load.voter)

    def test_nothing_handed_in_is_written_or_locked(self):
        arrays = self.arrays()
        copies = {name: array.copy() for name, array in arrays.items()}
        Cluster.from_arrays(**arrays, replicas=3)
        for name, array in arrays.items():
            assert array.flags.writeable, name
            np.testing.assert_array_equal(array, copies[name])

    def test_read_only_input_is_taken(self):
        arrays = {name: frozen(array) for name, array in self.arrays().items()}
        assert len(Cluster.from_arrays(**arrays).partitions) == 4

    @given(clusters())
    def test_everything_held_is_read_only_and_in_c_order(self, cluster):
        owners = (cluster.nodes, cluster.topology, cluster.partitions, cluster.partitions.load,
                  cluster.placement, cluster)  # fmt: skip
        arrays = [a for o in owners for a in vars(o).values() if isinstance(a, np.ndarray)]
        arrays += [*cluster.nodes.tags.values(), *cluster.topology.level_capacity.values()]
        for array in arrays:
            assert not array.flags.writeable
            assert array.flags.c_contiguous

    def test_a_cluster_cannot_be_changed(self):
        cluster = build()
        with pytest.raises(AttributeError):
            cluster.rules = ()
        with pytest.raises(ValueError, match="read-only"):
            cluster.nodes.capacity[0, 0] = 5.0
        with pytest.raises(ValueError, match="read-only"):
            cluster.placement.node[0] = 5

    def test_thawing_shares_what_is_ours_and_copies_what_is_locked(self):
        own = np.zeros(3)
        assert np.shares_memory(thawed(frozen(own)), own)
        locked = np.zeros(3)
        locked.flags.writeable = False
        copy = thawed(frozen(locked))
        assert copy.flags.writeable and not np.shares_memory(copy, locked)


class TestEmptyAndBroken:
    @pytest.mark.parametrize(("n", "p"), [(0, 0), (3, 0), (0, 4)])
    def test_empty_clusters_are_legal(self, n, p):
        cluster = Cluster.from_arrays(
            capacity=np.ones((n, 2)), load=np.ones((p, 2)), replicas=2, spread={"node": 1}
        )
        assert (len(cluster.nodes), len(cluster.partitions)) == (n, p)
        assert len(cluster.placement) == p
        assert np.asarray(cluster.placement).shape[0] == p

    def test_no_dimensions_and_no_replicas_are_legal(self):
        cluster = Cluster.from_arrays(capacity=np.ones((2, 0)), load=np.ones((2, 0)), replicas=0)
        assert cluster.dimensions == ()
        assert cluster.placement.leader.tolist() == [-1, -1]
        assert cluster.placement.slots == 0

    def test_broken_placements_are_ordinary_data(self):
        cluster = build(
            placement=[[0, 0, 0, 0], [2, 2, -1, -1], [-1] * 4, [0, 1, 2, 0]],
            alive=[False, True, True],
            gone=[True, False, False],
            forbidden=[[0, 0]],
            rules=[Rule(require=["zone=b"], spread={"zone": 1})],
        )
        assert cluster.partitions.replicas.tolist() == [4] * 4
        assert cluster.placement.leader_node.tolist() == [0, 2, -1, 0]

    def test_a_lost_zone_and_more_replicas_than_nodes(self):
        cluster = build(accepts=[False] * 3, alive=[True, True, False], replicas=9)
        assert not cluster.nodes.may_receive.any()
        assert cluster.placement.slots == 9


class TestPlacement:
    @given(clusters())
    def test_the_array_is_leader_first_and_reads_back(self, cluster):
        placement = cluster.placement
        if placement.slots is None:
            if len(placement):
                with pytest.raises(ValueError, match="differ in length"):
                    np.asarray(placement)
            return
        table = np.asarray(placement)
        assert table.shape == (len(placement), placement.slots)
        led = placement.leader >= 0
        np.testing.assert_array_equal(table[led][:, :1].ravel(), placement.leader_node[led])
        for row, slots in zip(table, placement.by_slot, strict=True):
            assert sorted(row) == sorted(slots)
        again = Cluster.from_arrays(
            capacity=cluster.nodes.capacity, load=cluster.partitions.load.voter, placement=table
        )
        np.testing.assert_array_equal(np.asarray(again.placement), table)
        np.testing.assert_array_equal(again.placement.leader_node[led], placement.leader_node[led])

    def test_a_leadership_change_is_no_swap_of_slots(self):
        before = build().placement
        after = before.replaced(before.node, np.array([1, 0, 0, 1], np.int16))
        assert after.by_slot.tolist() == before.by_slot.tolist()
        assert np.asarray(after).tolist() == [[2, 0], [1, 2], [2, 0], [1, 2]]
        assert after.leader_node.tolist() == [2, 1, 2, 1]

    def test_followers_keep_their_order(self):
        cluster = build(placement=[[0, 1, 2, -1]] * 4, leader=[2, 0, 3, -1])
        rows = [[2, 0, 1, -1], [0, 1, 2, -1], [-1, 0, 1, 2], [0, 1, 2, -1]]
        assert np.asarray(cluster.placement).tolist() == rows

    def test_rows_of_any_length(self):
        cluster = build(placement=[0, 1, 2, 0, 1], first=[0, 2, 2, 3, 5])
        assert cluster.placement.slots is None
        assert cluster.placement.owner.tolist() == [0, 0, 2, 3, 3]
        assert cluster.placement.leader.tolist() == [0, -1, 0, 0]
        assert cluster.partitions.replicas.tolist() == [2, 0, 1, 2]

    def test_rows_are_widened_to_hold_what_is_wanted(self):
        cluster = build(
            placement=[0, 1, 2], first=[0, 2, 2, 3, 3], replicas=[1, 2, 2, 0], flags=[1, 2, 4]
        )
        assert cluster.placement.first.tolist() == [0, 2, 4, 6, 6]
        assert cluster.placement.node.tolist() == [0, 1, -1, -1, 2, -1]
        assert cluster.placement.flags.tolist() == [1, 2, 0, 0, 4, 0]

    def test_with_placement_shares_all_the_rest(self):
        cluster = build()
        other = cluster.with_placement(cluster.placement.replaced(
            np.zeros(8, np.int32), np.zeros(4, np.int16)
        ))  # fmt: skip
        assert other.nodes is cluster.nodes and other.partitions is cluster.partitions
        assert cluster.placement.node.tolist() != other.placement.node.tolist()

    @given(clusters(), st.sampled_from([np.int64, np.float64]))
    def test_numpy_may_ask_for_another_dtype_and_gets_its_own_copy(self, cluster, dtype):
        if isinstance(cluster.placement, Placement) and cluster.placement.slots:
            table = np.array(cluster.placement, dtype=dtype)
            assert table.dtype == dtype and table.flags.writeable
            table[:] = 7
            assert (cluster.placement.node < 7).all()


class TestNamesAndTopology:
    def test_counted_names_are_not_stored_but_found(self):
        names = Names(None, 10**9, "n")
        assert names[-1] == "n999999999" and len(names) == 10**9

    def test_domains_are_qualified_by_their_path(self):
        topology = build().topology
        assert topology.domain.tolist() == [[0, 0, 1], [0, 1, 2]]
        assert topology.label.tolist() == [[0, 0, 1], [0, 1, 0]]
        assert [topology.domain_name(1, d) for d in range(3)] == ["a/r1", "a/r2", "b/r1"]

    def test_a_crossing_level_is_not(self):
        topology = build(crossing=["rack"]).topology
        assert topology.domain[1].tolist() == [0, 1, 0]
        assert topology.domain_name(1, 0) == "r1"

    def test_a_missing_tier_does_not_join_what_is_apart(self):
        topology = build(
            domains={"zone": ["a", "", "b"], "rack": ["r", "r", "r"], "row": ["", "x", "x"]}
        ).topology
        assert topology.domain[0].tolist() == [0, -1, 1]
        assert len(set(topology.domain[1].tolist())) == 3
        assert topology.domain[2, 0] == -1
        assert topology.domain[2, 1] != topology.domain[2, 2]

    def test_integer_labels_count_in_numeric_order(self):
        cluster = build(domains={"zone": [10, 9, -1]})
        assert cluster.topology.label.tolist() == [[1, 0, -1]]
        assert cluster.topology.label_names == (("9", "10"),)
        build(domains={"zone": [10, 9, -1]}, rules=[Rule(require=["zone=10"])])
