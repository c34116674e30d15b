"""The model: nothing handed in is copied, written or locked, and names are found both ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.model.names import Names
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only, writable
from evenkeel.model.rules import Rule
from tests.support.clusters import clusters
from tests.support.plain_cluster import build, faults_of


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
        arrays = {name: read_only(array) for name, array in self.arrays().items()}
        assert len(Cluster.from_arrays(**arrays).partitions) == 4

    @given(clusters())
    def test_everything_held_is_read_only_and_in_c_order(self, cluster):
        owners = (cluster.nodes, cluster.topology, cluster.partitions, cluster.partitions.load,
                  cluster.placement, cluster)  # fmt: skip
        arrays = [a for o in owners for a in vars(o).values() if isinstance(a, np.ndarray)]
        arrays += [*cluster.nodes.tags.values(), *cluster.topology.tier_capacity.values()]
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
        assert np.shares_memory(writable(read_only(own)), own)
        locked = np.zeros(3)
        locked.flags.writeable = False
        copy = writable(read_only(locked))
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

    def test_empty_lists_are_empty_arrays(self):
        cluster = Cluster.from_arrays(
            capacity=[], load=[], dimensions=["cpu", "disk"], domains={"zone": []},
            attributes={"a": []}, tags={"t": []}, forbidden=[], placement=[], alive=[],
            tier_capacity={"zone": []}, group=[], spread={"zone": 1},
        )  # fmt: skip
        assert cluster.nodes.capacity.shape == (0, 2)
        assert cluster.partitions.load.voter.shape == (0, 2)
        assert cluster.topology.domain.shape == (1, 0)
        assert cluster.forbidden.shape == (0, 2)
        assert cluster.dimensions == ("cpu", "disk")
        assert Cluster.from_arrays(capacity=[], load=[]).nodes.capacity.shape == (0, 0)
        assert Cluster.from_arrays(
            capacity=[], load=[[1.0, 2.0]], replicas=1
        ).nodes.capacity.shape == (0, 2)
        assert build(load=[], placement=[], forbidden=[], depends=[]).placement.node.shape == (0,)

    def test_an_empty_list_is_no_array_of_others(self):
        found = faults_of(alive=[], load=[[1.0, 1.0]] * 4, domains={"zone": []}, placement=[])
        assert set(found) == {"alive", "domains['zone']", "placement"}

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
    def test_other_nodes_are_taken_from_lists_of_the_same_length(self):
        cluster = build()
        placement = cluster.placement
        other = placement.replaced(placement.node.tolist(), placement.leader.tolist())
        assert other.node.dtype == placement.node.dtype and not other.node.flags.writeable
        with pytest.raises(InvalidInput, match=r"(?s)node.*shape.*leader: needs"):
            placement.replaced([0], [True] * len(placement))

    @given(clusters())
    def test_there_is_one_order_of_slots(self, cluster):
        placement = cluster.placement
        table = np.asarray(placement)
        np.testing.assert_array_equal(table, placement.nodes)
        width = np.diff(placement.first)
        assert table.shape == (len(placement), width.max(initial=0))
        for p, row in enumerate(table.tolist()):
            own = placement.node[placement.first[p] : placement.first[p + 1]].tolist()
            assert row == own + [-1] * (len(row) - len(own))
            if placement.leader[p] >= 0:
                assert row[placement.leader[p]] == placement.leader_node[p]

    @given(clusters())
    def test_a_placement_goes_back_in(self, cluster):
        sizes = {"capacity": cluster.nodes.capacity, "load": cluster.partitions.load.voter}
        placement = cluster.placement
        again = [Cluster.from_arrays(**sizes, placement=placement).placement]
        if placement.slots is not None:
            again.append(Cluster.from_arrays(
                **sizes, placement=np.asarray(placement), leader=placement.leader,
                role=placement.role, flags=placement.flags,
            ).placement)  # fmt: skip
        for one in again:
            for name in ("first", "node", "role", "flags", "leader"):
                np.testing.assert_array_equal(getattr(one, name), getattr(placement, name))

    @given(clusters())
    def test_leaders_come_first_where_that_is_asked_for(self, cluster):
        placement = cluster.placement
        table = placement.by_leader()
        for p, (row, own) in enumerate(zip(table.tolist(), placement.nodes.tolist(), strict=True)):
            leader = placement.leader[p]
            assert row == (own if leader < 0 else [own.pop(leader), *own])

    def test_a_leadership_change_is_no_swap_of_slots(self):
        before = build().placement
        after = before.replaced(before.node, np.array([1, 0, 0, 1], np.int16))
        assert np.asarray(after).tolist() == np.asarray(before).tolist()
        assert after.by_leader().tolist() == [[2, 0], [1, 2], [2, 0], [1, 2]]
        assert after.leader_node.tolist() == [2, 1, 2, 1]

    def test_followers_keep_their_order(self):
        cluster = build(placement=[[0, 1, 2, -1]] * 4, leader=[2, 0, 3, -1])
        rows = [[2, 0, 1, -1], [0, 1, 2, -1], [-1, 0, 1, 2], [0, 1, 2, -1]]
        assert cluster.placement.by_leader().tolist() == rows

    def test_what_goes_with_a_placement_may_be_told_anew_but_not_where_rows_start(self):
        given = build(leader=[1, 0, 0, 1], flags=[[1, 0]] * 4).placement
        again = build(placement=given, leader=[0, 0, 0, -1]).placement
        assert again.leader.tolist() == [0, 0, 0, -1]
        np.testing.assert_array_equal(again.flags, given.flags)
        assert set(faults_of(placement=given, first=given.first)) == {"first"}
        assert set(faults_of(placement=given, load=[[1.0, 2.0]] * 3)) == {"placement"}

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
    def test_names_are_shown_as_such(self):
        assert repr(Names(["x", "y'"], 2, "")) == """<Names: 'x', "y'">"""
        assert repr(Names(None, 0, "n")) == "<Names: none>"
        many = repr(Names(None, 10**9, "n"))
        assert (
            many == "<Names: 'n0', 'n1', 'n2', 'n3', 'n4', ... 'n999999999', 1,000,000,000 in all>"
        )

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
