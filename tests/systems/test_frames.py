"""Frames of pandas, polars and pyarrow, in and out."""

import importlib

import numpy as np
import pandas
import polars
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.model.reading.frames import BACKENDS, frame_of
from evenkeel.systems import registry
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats" / "tables"
NODES = {
    "node": ["a", "b", "c"],
    "zone": ["x", "y", None],
    "cap_cpu": [9.0, 9.0, float("inf")],
    "state": ["up", None, "draining"],
}
REPLICAS = {
    "group": ["g", "g", "h"],
    "index": [0, 0, 0],
    "node": ["a", None, "a"],
    "load_cpu": [1.0, 1.0, 2.0],
    "pinned": [False, True, False],
}


@pytest.fixture(params=BACKENDS)
def backend(request):
    """The name of a library that makes frames."""
    return request.param


@pytest.fixture
def frame(backend):
    """What makes a frame of columns, by the library itself."""
    library = importlib.import_module(backend)
    return library.table if backend == "pyarrow" else library.DataFrame


class TestFrom:
    def test_two_frames_are_a_cluster(self, frame):
        cluster = ek.Cluster.from_frames(
            frame(NODES), frame(REPLICAS), rules={"g": ek.Rule(spread={"zone": 1})}
        )
        assert list(cluster.partitions.names) == ["g-0", "h-0"]
        assert cluster.placement.node.tolist() == [0, -1, 0]
        assert cluster.topology.label.tolist() == [[0, 1, -1]]
        assert cluster.nodes.capacity[:, 0].tolist() == [9.0, 9.0, np.inf]
        assert cluster.nodes.keeps.tolist() == [True, True, False]
        assert cluster.partitions.load.voter.tolist() == [[1.0], [2.0]]
        assert np.flatnonzero(cluster.placement.flags & Flag.PINNED).tolist() == [1]
        assert cluster.partitions.rule.tolist() == [0, -1]

    def test_what_pandas_has_none_of_is_no_label_and_no_node(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 3,
            load=[[1.0]] * 2,
            domains={"zone": pandas.array(["a", pandas.NA, "b"], dtype="string")},
            placement=pandas.DataFrame(
                {"first": pandas.array([0, 1]), "second": pandas.array([2, pandas.NA])}
            ),
        )
        assert cluster.topology.label.tolist() == [[0, -1, 1]]
        assert cluster.placement.nodes.tolist() == [[0, 2], [1, -1]]

    def test_numbers_may_be_whole_names_numbers_and_amounts_texts(self, frame):
        cluster = ek.Cluster.from_frames(
            frame({"node": [7, 8], "cap_disk": ["2TB", "1TB"], "max_replicas": [5, 5]}),
            frame({"partition": [1, 2], "node": [8, 7], "size_disk": [10, 20], "voters": [1, 1]}),
        )
        assert list(cluster.nodes.names) == ["7", "8"]
        assert cluster.nodes.capacity[:, 0].tolist() == [2e12, 1e12]
        assert cluster.nodes.max_replicas.tolist() == [5, 5]
        assert cluster.placement.node.tolist() == [1, 0]
        assert cluster.partitions.load.voter[:, 0].tolist() == [10.0, 20.0]

    def test_rules_may_bind_whole_groups(self, frame):
        rows = {"group": ["x", "x", "y"], "index": [0, 1, 0], "node": ["a", "a", "a"]}
        for rule in (ek.Rule(spread={"node": 1}), {"x": ek.Rule(spread={"node": 1})}):
            cluster = ek.Cluster.from_frames(frame(NODES), frame(rows), group_rules=rule)
            assert cluster.partitions.group_rule.tolist() == [
                0,
                -1 if isinstance(rule, dict) else 0,
            ]
            assert ek.solve(cluster, goals=ek.Goals(level=None)).comparison.moves == 1

    def test_it_is_what_the_tables_of_the_same_columns_are(self):
        named = {"comment": "#", "skipinitialspace": True}
        files = DATA / "nodes.csv", DATA / "replicas.csv"
        nodes, replicas = (pandas.read_csv(one, **named) for one in files)
        assert_same(ek.Cluster.from_frames(nodes, replicas), registry.read(*files))

    def test_partitions_come_as_they_first_stand_whatever_lies_between(self, frame):
        rows = {
            "group": ["b", "a-1", "b", None, "a", "b ", " a-1"],
            "index": [7, 2, 8, 0, 0, 7, 2],
            "node": ["a", "a", None, "b", "c", "b", "b"],
        }
        cluster = ek.Cluster.from_frames(frame(NODES), frame(rows))
        assert list(cluster.partitions.names) == ["b-7", "a-1-2", "b-8", "-0", "a-0"]
        assert list(cluster.partitions.group_names) == ["b", "a-1", "", "a"]
        assert cluster.placement.nodes.tolist() == [[0, 1], [0, 1], [-1, -1], [1, -1], [2, -1]]

    def test_partitions_of_one_name_are_one(self, frame):
        rows = {"group": ["a-1", "a"], "index": ["2", "1-2"], "node": ["a", "b"]}
        cluster = ek.Cluster.from_frames(frame(NODES), frame(rows))
        assert list(cluster.partitions.names) == ["a-1-2"]
        assert cluster.placement.nodes.tolist() == [[0, 1]]

    def test_no_rows_are_no_partitions(self, frame):
        rows = {key: REPLICAS[key][:1] for key in ("group", "index", "node")}
        empty = frame(rows)[:0]
        assert len(ek.Cluster.from_frames(frame(NODES), empty).partitions) == 0

    def test_columns_of_several_types_are_read_cell_by_cell(self):
        rows = pandas.DataFrame({"partition": [1, "1", 1.0, True, None], "node": ["a"] * 5})
        cluster = ek.Cluster.from_frames(pandas.DataFrame(NODES), rows.iloc[[0, 3]])
        assert list(cluster.partitions.names) == ["1", "true"]
        with pytest.raises(ek.InvalidInput, match="each row names its partition"):
            ek.Cluster.from_frames(pandas.DataFrame(NODES), rows.iloc[[0, 3, 4]])

    def test_one_rule_is_for_all_and_a_column_may_name_them(self, frame):
        everywhere = ek.Cluster.from_frames(
            frame(NODES), frame(REPLICAS), rules=ek.Rule(spread={"zone": 1})
        )
        assert everywhere.partitions.rule.tolist() == [0, 0]
        named = ek.Cluster.from_frames(
            frame(NODES), frame(REPLICAS | {"rule": ["wide", "wide", None]}),
            rules={"wide": ek.Rule(spread={"zone": 1})},
        )  # fmt: skip
        assert named.partitions.rule.tolist() == [0, -1]

    def test_everything_wrong_is_told_at_once(self, frame):
        with pytest.raises(ek.InvalidInput) as caught:
            ek.Cluster.from_frames(
                frame({"node": ["a", "a"], "cap_cpu": [-1.0, 2.0], "stat": ["x", "y"]}),
                frame({"partition": ["p"], "node": ["z"], "rloe": ["x"], "voters": [0.5]}),
                rules={"q": 3},
            )
        assert [fault.path for fault in caught.value.faults] == [
            "rules['q']", "replicas: rloe", "nodes: stat", "nodes['node'][1]",
            "nodes['cap_cpu'][0]", "replicas['node'][0]", "replicas['voters'][0]",
        ]  # fmt: skip

    @pytest.mark.parametrize("given", [3, None, "a.csv", {"node": ["a"]}])
    def test_what_is_no_frame(self, frame, given):
        with pytest.raises(ek.InvalidInput, match="must be a frame"):
            ek.Cluster.from_frames(given, frame(REPLICAS))

    def test_a_lazy_frame_has_to_be_collected(self):
        with pytest.raises(ek.InvalidInput, match="collected"):
            ek.Cluster.from_frames(polars.LazyFrame(NODES), polars.DataFrame(REPLICAS))

    def test_frames_that_lack_their_keys(self, frame):
        with pytest.raises(ek.InvalidInput) as caught:
            ek.Cluster.from_frames(frame({"cap_cpu": [1.0]}), frame({"node": ["a"]}))
        assert [fault.path for fault in caught.value.faults] == ["nodes", "replicas"]

    def test_an_index_is_no_column_and_no_column_comes_twice(self):
        nodes, replicas = pandas.DataFrame(NODES), pandas.DataFrame(REPLICAS)
        for given, said in (
            ((nodes.set_index("node"), replicas), r"its index \['node'\] is no column"),
            ((nodes, replicas.set_index(["group", "index"])), "call reset_index"),
            ((pandas.concat([nodes, nodes[["zone"]]], axis=1), replicas), "names a column twice"),
        ):
            with pytest.raises(ek.InvalidInput, match=said):
                ek.Cluster.from_frames(*given)

    def test_columns_of_amounts_go_by_their_names(self, frame):
        capacity = frame({"cpu": [8.0, 8.0], "mem": [32.0, 16.0]})
        load = frame({"mem": [4.0, 2.0], "cpu": [1.0, 3.0]})
        given = {"capacity": capacity, "load": load, "placement": [[0], [1]]}
        cluster = ek.Cluster.from_arrays(**given)
        assert cluster.dimensions == ("cpu", "mem")
        assert cluster.partitions.load.voter.tolist() == [[1.0, 4.0], [3.0, 2.0]]
        doubled = frame({"mem": [8.0, 4.0], "cpu": [2.0, 6.0]})
        for changed in (cluster.replace(load=doubled), cluster.apply(ek.Changes(load=doubled))):
            assert changed.partitions.load.voter.tolist() == [[2.0, 8.0], [6.0, 4.0]]
        joining = {"load": load, "replicas": 1}
        more = cluster.apply(ek.Changes(nodes={"capacity": load}, partitions=joining))
        assert more.nodes.capacity[2:].tolist() == [[1.0, 4.0], [3.0, 2.0]]
        assert more.partitions.load.voter[2:].tolist() == [[1.0, 4.0], [3.0, 2.0]]
        named = ek.Cluster.from_arrays(**given | {"dimensions": ["a", "b"]})
        assert named.partitions.load.voter.tolist() == [[1.0, 4.0], [3.0, 2.0]]
        other = frame({"disk": [4.0, 2.0], "cpu": [1.0, 3.0]})
        with pytest.raises(ek.InvalidInput, match="has other columns than capacity"):
            ek.Cluster.from_arrays(**given | {"load": other})

    @pytest.mark.parametrize("title", ["node", "nodes"])
    @pytest.mark.parametrize(
        "cells",
        [[["n1", "n2"], ["n3"], []], [("n1", "n2"), ("n3",), None], ["n1,n2", "n3", None],
         ["[n1, n2]", "n3", ""]],
    )  # fmt: skip
    def test_a_cell_may_list_several_nodes(self, frame, title, cells):
        nodes = frame({"node": ["n1", "n2", "n3"], "cap_cpu": [9.0] * 3})
        columns = {"partition": ["p", "q", "r"], title: cells, "load_cpu": [1.0, 2.0, 3.0]}
        cluster = ek.Cluster.from_frames(nodes, frame(columns))
        assert cluster.placement.nodes.tolist() == [[0, 1], [2, -1], [-1, -1]]
        assert cluster.partitions.load.voter[:, 0].tolist() == [1.0, 2.0, 3.0]

    @pytest.mark.parametrize(
        ("named", "dtype"), [(["1", "2", None], "string"), ([1, 2, None], "Int64")]
    )
    def test_nullable_columns_of_pandas_may_have_none(self, named, dtype):
        cells = pandas.array(named, dtype=dtype)
        nodes = {"node": cells[:2], "cap_cpu": pandas.array([9.5, None], dtype="Float64")}
        rows = {"partition": ["p", "q", "q"], "node": cells,
                "load_cpu": pandas.array([1, None, None], dtype="Int64")}  # fmt: skip
        cluster = ek.Cluster.from_frames(pandas.DataFrame(nodes), pandas.DataFrame(rows))
        assert cluster.placement.nodes.tolist() == [[0, -1], [1, -1]]
        assert cluster.nodes.capacity.tolist() == [[9.5], [float("inf")]]
        assert cluster.partitions.load.voter.tolist() == [[1.0], [0.0]]

    def test_an_unknown_node_of_a_list_is_told_with_its_row(self, frame):
        columns = {"partition": ["p", "q"], "nodes": [["n1", "n2"], ["n2", "n9"]]}
        with pytest.raises(ek.InvalidInput, match=r"replicas\['nodes'\]\[1\].*n9"):
            ek.Cluster.from_frames(frame({"node": ["n1", "n2"]}), frame(columns))

    @pytest.mark.parametrize(
        "rule",
        [{"spread": {"node": 1.5}}, {"max_domains": {"node": "many"}}, {"skew": ["node"]},
         {"min_domains": {"node": (1.5, "soft")}}, {"require": "+ssd"}],
    )  # fmt: skip
    def test_a_rule_that_is_wrong_is_told_as_in_arrays(self, frame, rule):
        rules, columns = ek.Rule(**rule), {"partition": ["p"], "node": ["n1"]}
        with pytest.raises(ek.InvalidInput) as told:
            ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]], rules=[rules])
        with pytest.raises(ek.InvalidInput) as caught:
            ek.Cluster.from_frames(frame({"node": ["n1"]}), frame(columns), rules=rules)
        said = [fault.message for fault in told.value.faults]
        assert [fault.message for fault in caught.value.faults] == said

    def test_nodes_of_a_list_may_be_numbers(self, frame):
        columns = {"group": ["t", "t"], "index": [0, 1], "nodes": [[1002, 1004], [1004, 1002]]}
        cluster = ek.Cluster.from_frames(frame({"node": [1002, 1004]}), frame(columns))
        assert cluster.placement.nodes.tolist() == [[0, 1], [1, 0]]

    def test_nodes_of_a_list_may_stand_beside_the_number_of_a_shard(self):
        columns = {"partition": ["p", "q"], "nodes": [[("a", 0), ("b", 7)], [("b", 0)]]}
        cluster = ek.Cluster.from_frames(pandas.DataFrame({"node": ["a", "b"]}),
                                         pandas.DataFrame(columns))  # fmt: skip
        assert cluster.placement.nodes.tolist() == [[0, 1], [1, -1]]

    def test_headings_of_other_systems_are_read(self, frame):
        peers = {"REGION_ID": [7, 7], "STORE_ID": [1, 4], "IS_LEADER": [0, 1], "STATUS": ["UP"] * 2}
        cluster = ek.Cluster.from_frames(frame({"node": [1, 4, 5]}), frame(peers))
        assert cluster.placement.nodes.tolist() == [[0, 1]]
        assert cluster.placement.leader_node.tolist() == [1]
        down = ek.Cluster.from_frames(
            frame({"node": [1, 4, 5]}), frame(peers | {"STATUS": ["UP", "DOWN"]})
        )
        assert down.placement.nodes.tolist() == [[0, 1]]
        assert down.nodes.alive.tolist() == [True, False, True]
        assert "STATUS" in " ".join(registry.find("tables").left_out(down))

    def test_tiers_may_be_named(self, frame):
        nodes = frame(NODES | {"stage": ["s", "t", "u"]})
        cluster = ek.Cluster.from_frames(nodes, frame(REPLICAS), tiers=["stage", "zone"])
        assert cluster.topology.tiers == ("stage", "zone")
        with pytest.raises(ek.InvalidInput, match="nodes: zone"):
            ek.Cluster.from_frames(nodes, frame(REPLICAS), tiers=["stage"])

    def test_an_unknown_keyword(self, frame):
        with pytest.raises(ek.InvalidInput, match="did you mean 'rules'"):
            ek.Cluster.from_frames(frame(NODES), frame(REPLICAS), rule=None)


class TestTo:
    @pytest.fixture
    def result(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[3.0]] * 3, load=[[1.0]] * 4 + [[4.0]], placement=[[0]] * 4 + [[-1]],
            domains={"zone": ["a", None, "b"]}, group=["g"] * 4 + ["h"],
        )  # fmt: skip
        return ek.solve(cluster)

    def columns(self, frame, backend):
        if backend == "pyarrow":
            return frame.to_pydict()
        return frame.to_dict("list") if backend == "pandas" else frame.to_dict(as_series=False)

    def test_tables_say_what_the_result_says(self, result, backend):
        moves = self.columns(result.to_frame("moves", backend), backend)
        assert moves["partition"] == [one.partition for one in result.moves]
        assert moves["target"] == [one.target for one in result.moves]
        replicas = self.columns(result.to_frame("replicas", backend), backend)
        names = [*result.cluster.nodes.names, None]
        placed = [names[n] for n in result.placement.node.tolist()]
        assert [one if isinstance(one, str) else None for one in replicas["node"]] == placed
        assert replicas["role"][0] == "leader"
        nodes = self.columns(result.to_frame("nodes", backend), backend)
        assert nodes["load_d0"] == result.levelness.loads[:, 0].tolist()
        assert sum(nodes["leaders"]) == 4
        unplaced = self.columns(result.to_frame("unplaced", backend), backend)
        assert unplaced == {
            "partition": ["p4"], "slot": [0], "blocked_by": ["capacity d0"], "nodes": [3]
        }  # fmt: skip
        broken = self.columns(result.to_frame("violations", backend), backend)
        assert broken["kind"] == [one.kind for one in result.violations]

    def test_an_empty_table_has_its_columns_and_their_types(self, backend):
        cluster = ek.Cluster.from_arrays(capacity=[[3.0]], load=[[1.0]], placement=[[0]])
        result = ek.solve(cluster)
        moves = result.to_frame("moves", backend)
        assert moves.shape == (0, 5)
        filled = frame_of({"slot": np.zeros(0, np.int64), "partition": ["p"][:0]}, backend)
        kinds = [str(dict(zip(one.columns, one.dtypes, strict=True))["slot"]) for one in (
            moves, filled)] if backend != "pyarrow" else [
            str(one.schema.field("slot").type) for one in (moves, filled)]  # fmt: skip
        assert kinds[0] == kinds[1]

    def test_steps_of_a_plan(self, result, backend):
        plan = result.plan()
        steps = self.columns(plan.to_frame(backend), backend)
        rows = plan.rows_of(np.arange(len(plan)))
        assert steps["step"] == [row.step for row in rows]
        assert steps["kind"] == [row.kind for row in rows]

    def test_scenarios_of_a_sweep(self, backend):
        cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
        swept = ek.sweep(ek.solve(cluster).cluster, "node")
        found = self.columns(swept.to_frame(backend), backend)
        assert found["scenario"] == [*swept.names]
        assert found["moves"] == swept.moves.tolist()

    def test_unknown_tables_and_libraries(self, result):
        with pytest.raises(ek.InvalidInput, match="did you mean 'moves'"):
            result.to_frame("move")
        with pytest.raises(ek.InvalidInput, match="backend: must be one of"):
            result.to_frame("moves", "excel")

    def test_the_first_library_that_is_there_makes_it_unasked(self, result):
        there = next(one for one in BACKENDS if importlib.util.find_spec(one))
        assert type(result.to_frame()).__module__.startswith(there)
