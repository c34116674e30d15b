"""Helix keeps it in ZooKeeper, we read it; we write ideal states, Helix brings them about."""

import io
import json
import shutil
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.formats import registry
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.solving import solve
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats" / "helix"


def read(**options):
    return registry.read(DATA, **options)


def record(name, simple=None, lists=None, maps=None):
    return {
        "id": name, "simpleFields": simple or {}, "listFields": lists or {},
        "mapFields": maps or {},
    }  # fmt: skip


def ideal(name="DB", lists=None, **simple):
    usual = {"REBALANCE_MODE": "SEMI_AUTO", "STATE_MODEL_DEF_REF": "MasterSlave", "REPLICAS": "2"}
    return record(name, usual | simple, lists if lists is not None else {"DB_0": ["a", "b"]})


def instance(name, **simple):
    return record(name, {"HELIX_HOST": name} | simple)


def faults_of(*records, **options):
    """The faults of a list of records, as (path, value)."""
    with pytest.raises(InvalidInput) as caught:
        registry.read(json.dumps(records).encode(), format="helix", **options)
    return [(fault.path.removeprefix("<bytes>: "), fault.value) for fault in caught.value.faults]


def zipped(folder):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in sorted(folder.rglob("*")):
            if one.is_file():
                archive.write(one, f"dump/{one.relative_to(folder)}")
    return file.getvalue()


class TestReading:
    def test_instances_are_nodes_and_their_states_are_told(self):
        nodes = read().nodes
        assert list(nodes.names) == [f"h{i}_12913" for i in range(1, 7)]
        # the fourth is evacuating, the fifth is not live, the sixth is disabled
        assert nodes.alive.tolist() == [True] * 4 + [False] * 2
        assert nodes.keeps.tolist() == [True] * 3 + [False] * 3
        assert nodes.accepts.tolist() == [True] * 3 + [False] * 3
        assert nodes.since[4:].tolist() == [1780000005.0, 1780000000.0]
        assert nodes.max_replicas.tolist() == [40] * 6

    def test_an_instance_that_the_cluster_disables_is_as_one_that_disables_itself(self, tmp_path):
        shutil.copytree(DATA, tmp_path / "dump")
        file = tmp_path / "dump" / "CONFIGS" / "CLUSTER" / "books"
        cluster = json.loads(file.read_bytes())
        # the fourth is evacuating, which is more than to be disabled
        stamps = dict.fromkeys(["h1_12913", "h4_12913"], "1780000020000")
        cluster["mapFields"]["DISABLED_INSTANCES"] = stamps
        file.write_text(json.dumps(cluster))
        nodes = registry.read(tmp_path / "dump").nodes
        assert nodes.alive.tolist() == [False, *read().nodes.alive.tolist()[1:]]
        assert nodes.keeps.tolist() == [False, *read().nodes.keeps.tolist()[1:]]
        assert nodes.since[0] == 1780000020.0
        assert registry.read(tmp_path / "dump", now=1780000050.0).nodes.keeps[0]

    def test_within_their_delay_window_nodes_keep_their_places(self):
        # a minute: the sixth was disabled five seconds before the fifth went
        assert read(now=1780000059.0).nodes.keeps.tolist() == [True] * 3 + [False, True, True]
        assert read(now=1780000061.0).nodes.keeps.tolist() == [True] * 3 + [False, True, False]

    def test_zones_capacities_and_weights(self):
        cluster = read()
        assert cluster.dimensions == ("CPU", "DISK")
        assert cluster.topology.tiers == ("zone",)
        assert cluster.topology.label.tolist() == [[0, 1, 2, 0, 1, 2]]
        assert cluster.nodes.capacity[:2].tolist() == [[100, 4000], [100, 2000]]
        weight = dict(
            zip(cluster.partitions.names, cluster.partitions.load.voter.tolist(), strict=True)
        )
        assert weight["MyDB_0"] == [20, 90]
        assert weight["MyDB_10"] == [10, 50]
        assert weight["Logs_0"] == [1, 10]

    def test_replicas_stand_where_the_external_view_says(self):
        cluster = read()
        names = list(cluster.partitions.names)
        assert names == [
            "Keys_0", "Logs_0", "Logs_1", "MyDB_0", "MyDB_1", "MyDB_2", "MyDB_10",
        ]  # fmt: skip
        assert cluster.placement.nodes.tolist() == [
            [0, 1, 2], [0, 1, -1], [2, 3, -1], [0, 1, 2], [1, 2, 3], [2, 0, 4], [0, 1, 5],
        ]  # fmt: skip
        assert cluster.placement.leader.tolist() == [0, -1, -1, 0, 0, 0, 1]
        assert cluster.placement.flags[4] == Flag.ERROR
        assert cluster.partitions.min_active.tolist() == [0, 0, 0, 2, 2, 2, 2]

    def test_rules_and_what_is_disabled(self):
        cluster = read()
        own = dict(zip(cluster.partitions.names, cluster.partitions.rule.tolist(), strict=True))
        assert cluster.rules[own["MyDB_0"]].spread == {"zone": 1}
        assert cluster.rules[own["Logs_0"]].require == ["+ssd"]
        most = cluster.partitions.group_rule[cluster.partitions.group_names.index("Logs")]
        assert cluster.rules[most].spread == {"node": 2}
        assert cluster.forbidden.tolist() == [[2, 1]]
        assert read(spread={"zone": (2, "soft")}).rules[0].spread == {"zone": (2, "soft")}

    def test_a_folder_a_zip_and_a_list_are_the_same(self, tmp_path):
        listed = [
            json.loads(one.read_text())
            for one in sorted(DATA.rglob("*"), reverse=True)
            if one.is_file() and "PROPERTYSTORE" not in one.parts
        ]
        file = tmp_path / "dump.zip"
        file.write_bytes(zipped(DATA))
        assert_same(registry.read(file), read())
        # who comes first of two records of a resource is its ideal state
        listed.sort(key=lambda one: not one["listFields"])
        views = [one for one in listed if one["id"] == "Keys"]
        listed = views + [one for one in listed if one["id"] != "Keys"]
        assert_same(registry.read(json.dumps(listed).encode()), read())

    def test_ideal_states_alone_are_a_cluster(self):
        cluster = registry.read(json.dumps([ideal(), ideal("E", {"E_0": ["b"]})]).encode())
        assert list(cluster.nodes.names) == ["a", "b"]
        assert cluster.dimensions == ("replicas",)
        assert cluster.placement.leader.tolist() == [0, 0]
        assert cluster.partitions.replicas.tolist() == [2, 2]

    @pytest.mark.parametrize("online", [["a"], []])
    def test_rest_lists_who_is_live(self, online):
        listed = json.dumps({"id": "c", "instances": ["a", "b"], "online": online, "disabled": []})
        nodes = [instance("a"), instance("b")]
        for known in ([], nodes):
            cluster = registry.read(json.dumps([ideal(), *known]).encode(), listed.encode())
            assert list(cluster.nodes.names) == ["a", "b"]
            assert cluster.nodes.alive.tolist() == [one in online for one in "ab"]

    def test_who_is_listed_as_disabled_is_as_one_that_disables_itself(self):
        listed = {"instances": ["a", "b"], "online": ["a", "b"], "disabled": ["b"]}
        cluster = registry.read(json.dumps([ideal()]).encode(), json.dumps(listed).encode())
        assert cluster.nodes.alive.tolist() == [True, False]

    def test_partitions_are_disabled_by_resource_or_in_a_list_of_all(self):
        lists = {"HELIX_DISABLED_PARTITION": ["DB_0", "gone_7"]}
        config = record("b", {"HELIX_HOST": "b"}, lists)
        both = [ideal(lists={"DB_0": ["a", "b"], "DB_1": ["a", "b"]}), instance("a"), config]
        cluster = registry.read(json.dumps(both).encode())
        assert cluster.forbidden.tolist() == [[0, 1]]

    def test_a_broken_list_of_instances_is_told(self):
        with pytest.raises(InvalidInput, match="online"):
            registry.read(json.dumps([ideal()]).encode(), b'{"instances": [], "disabled": []}')

    def test_any_live_instance_is_as_many_as_are_live(self):
        live = [record(one, {"SESSION_ID": "1"}) for one in "ab"]
        nodes = [instance(one) for one in "abc"]
        everywhere = ideal(lists={"DB_0": ["ANY_LIVEINSTANCE"]}, REPLICAS="ANY_LIVEINSTANCE")
        cluster = registry.read(json.dumps([everywhere, *nodes, *live]).encode())
        assert cluster.partitions.replicas.tolist() == [2]
        assert cluster.placement.node.tolist() == [0, 1]

    def test_who_is_swapped_in_stands_for_the_other(self):
        told = {
            "TOPOLOGY": "/zone/host",
            "TOPOLOGY_AWARE_ENABLED": "true",
            "FAULT_ZONE_TYPE": "zone",
        }
        nodes = [instance("a", DOMAIN="zone=1,host=x"), instance("b", DOMAIN="zone=2,host=y")]
        nodes.append(instance("c", DOMAIN="zone=1,host=x", INSTANCE_OPERATION="SWAP_IN"))
        cluster = registry.read(json.dumps([ideal(), record("C", told), *nodes]).encode())
        assert cluster.nodes.stands_for.tolist() == [-1, -1, 0]
        assert cluster.nodes.accepts.tolist() == [True, True, False]


class TestBadInput:
    def test_everything_wrong_is_listed_with_its_place(self):
        told = {
            "TOPOLOGY_AWARE_ENABLED": "true",
            "TOPOLOGY": "/zone/host",
            "FAULT_ZONE_TYPE": "zone",
        }
        config = record("C", told, {"INSTANCE_CAPACITY_KEYS": ["CPU"]})
        broken = instance("a", DOMAIN="zone", INSTANCE_WEIGHT="heavy")
        broken["mapFields"] = {"INSTANCE_CAPACITY_MAP": {"CPU": "1.5"}}
        lists = {"DB_0": ["a", "z"]}
        bad = ideal(
            lists=lists, STATE_MODEL_DEF_REF="Odd", INSTANCE_GROUP_TAG="gpu", REPLICAS="two"
        )
        assert faults_of(bad, config, broken) == [
            ("[0].simpleFields.STATE_MODEL_DEF_REF", "Odd"),
            ("[0].simpleFields.REPLICAS", "two"),
            ("[2].simpleFields.DOMAIN", "zone"),
            ("[0].simpleFields.INSTANCE_GROUP_TAG", "gpu"),
            ("[0].listFields.DB_0", "z"),
            ("[2].mapFields.INSTANCE_CAPACITY_MAP.CPU", "1.5"),
            ("[0].id", []),
            ("[2].simpleFields.INSTANCE_WEIGHT", "heavy"),
        ]

    def test_weights_are_json_inside_of_texts(self):
        config = record("C", {}, {"INSTANCE_CAPACITY_KEYS": ["CPU"]})
        config["mapFields"] = {"DEFAULT_INSTANCE_CAPACITY_MAP": {"CPU": "9"}}
        weights = record("DB", {}, {}, {"PARTITION_CAPACITY_MAP": {"DEFAULT": "{", "DB_7": "{}"}})
        nodes = [instance(one) for one in "ab"]
        found = faults_of(ideal(), config, weights, *nodes)
        at = "[2].mapFields.PARTITION_CAPACITY_MAP"
        assert (f"{at}.DEFAULT", "{") in found
        assert (f"{at}.DB_7", "DB_7") in found

    @pytest.mark.parametrize(
        "texts",
        [('{"CPU":1', ',"CPU":2}'), ('{"CPU":1}\n{"CPU":2}', ""), ('{"CPU":1}{"CPU":2}', "")],
    )
    def test_weights_that_are_json_only_together_are_refused(self, texts):
        config = record("C", {}, {"INSTANCE_CAPACITY_KEYS": ["CPU"]})
        config["mapFields"] = {"DEFAULT_INSTANCE_CAPACITY_MAP": {"CPU": "9"}}
        told = dict(zip(("DB_0", "DEFAULT"), texts, strict=True))
        weights = record("DB", {}, {}, {"PARTITION_CAPACITY_MAP": told})
        found = faults_of(ideal(), config, weights, *(instance(one) for one in "ab"))
        at = "[2].mapFields.PARTITION_CAPACITY_MAP"
        assert all((f"{at}.{key}", text) in found for key, text in told.items())

    def test_weights_may_be_divided_into_lines(self):
        config = record("C", {}, {"INSTANCE_CAPACITY_KEYS": ["CPU", "NET"]})
        config["mapFields"] = {"DEFAULT_INSTANCE_CAPACITY_MAP": {"CPU": "9", "NET": "9"}}
        told = {"DB_0": '{\n"CPU": 3,\n"NET": 4}\n', "DEFAULT": '{"CPU": 1, "NET": 1}'}
        weights = record("DB", {}, {}, {"PARTITION_CAPACITY_MAP": told})
        records = [ideal(), config, weights, *(instance(one) for one in "ab")]
        cluster = registry.read(json.dumps(records).encode(), format="helix")
        assert cluster.partitions.load.voter.tolist() == [[3.0, 4.0]]

    def test_ids_that_come_twice_and_records_that_dangle(self):
        nodes = [instance("a"), instance("a"), instance("b")]
        view = record("Gone", {}, {}, {"Gone_0": {"a": "MASTER"}})
        live = record("c", {"SESSION_ID": "1"})
        found = faults_of(ideal(), *nodes, view, live)
        assert ("[2].id", "a") in found
        assert ("[4].id", "Gone") in found
        assert ("[5].id", "c") in found

    def test_a_record_that_shows_nothing_asks_for_a_folder(self):
        assert faults_of(ideal(), record("odd", {"a": "b"})) == [("[1].id", "odd")]

    def test_numbers_are_texts(self):
        other = ideal()
        other["simpleFields"]["REPLICAS"] = 2
        assert faults_of(other) == [("[0].simpleFields.REPLICAS", 2)]

    def test_a_truncated_file_in_a_folder_is_named(self, tmp_path):
        folder = tmp_path / "dump"
        shutil.copytree(DATA, folder)
        file = folder / "IDEALSTATES" / "MyDB"
        file.write_text(file.read_text()[:200])
        with pytest.raises(InvalidInput) as caught:
            registry.read(folder)
        assert all("IDEALSTATES/MyDB:" in fault.path for fault in caught.value.faults[:1])

    def test_what_a_zip_claims_takes_no_memory(self, tmp_path):
        file = tmp_path / "bomb.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("IDEALSTATES/DB", b'{"id":"' + b" " * 50_000_000)
        tracemalloc.start()
        try:
            with pytest.raises(InvalidInput, match="unpacks to more than"):
                registry.read(file)
            assert tracemalloc.get_traced_memory()[1] < 20 << 20
        finally:
            tracemalloc.stop()

    def test_a_truncated_zip_is_named(self):
        with pytest.raises(InvalidInput, match="broken or truncated"):
            registry.read(zipped(DATA)[:-30], format="helix")


def written(cluster, path, placement=None, **options):
    files = registry.write(cluster, path, "helix", placement=placement, **options)
    return [json.loads(file.read_text()) for file in files]


def by_id(records):
    return {one["id"]: one for one in records}


class TestWriting:
    def test_reading_and_writing_changes_nothing(self, tmp_path):
        (records,) = written(read(), tmp_path / "out.json")
        own = [json.loads(one.read_text()) for one in (DATA / "IDEALSTATES").iterdir()]
        assert by_id(records) == by_id(own)

    def test_a_solved_cluster_becomes_lists_that_helix_keeps(self, tmp_path):
        cluster = read()
        result = solve(cluster)
        assert result.success
        after, before = (by_id(one) for one in written(cluster, tmp_path / "p.json", result))
        assert after.keys() == before.keys() == {"Logs", "MyDB"}
        assert after["Logs"]["simpleFields"]["REBALANCE_MODE"] == "SEMI_AUTO"
        assert before["Logs"]["simpleFields"]["REBALANCE_MODE"] == "FULL_AUTO"
        for p, name in enumerate(cluster.partitions.names):
            group = cluster.partitions.group_names[cluster.partitions.group[p]]
            if group in after:
                nodes = result.placement.nodes[p]
                own = [cluster.nodes.names[n] for n in nodes.tolist() if n >= 0]
                assert sorted(after[group]["listFields"][name]) == sorted(own)
            if group == "MyDB":
                leader = cluster.nodes.names[result.placement.leader_node[p]]
                assert after[group]["listFields"][name][0] == leader

    @pytest.mark.parametrize(
        ("simple", "mode", "after"),
        [
            ({"REBALANCE_MODE": "FULL_AUTO", "IDEAL_STATE_MODE": "AUTO_REBALANCE"}, None,
             {"REBALANCE_MODE": "SEMI_AUTO", "IDEAL_STATE_MODE": "AUTO"}),
            ({"REBALANCE_MODE": "FULL_AUTO", "IDEAL_STATE_MODE": "CUSTOMIZED"}, None,
             {"REBALANCE_MODE": "SEMI_AUTO", "IDEAL_STATE_MODE": "AUTO"}),
            ({"IDEAL_STATE_MODE": "AUTO_REBALANCE"}, None, {"IDEAL_STATE_MODE": "AUTO"}),
            ({"IDEAL_STATE_MODE": "CUSTOMIZED"}, None, {"IDEAL_STATE_MODE": "CUSTOMIZED"}),
            ({"REBALANCE_MODE": "FULL_AUTO", "IDEAL_STATE_MODE": "AUTO_REBALANCE"}, "CUSTOMIZED",
             {"REBALANCE_MODE": "CUSTOMIZED", "IDEAL_STATE_MODE": "CUSTOMIZED"}),
            ({}, None, {"REBALANCE_MODE": "SEMI_AUTO"}),
        ],
    )  # fmt: skip
    def test_helix_heeds_the_lists_whichever_field_says_its_mode(
        self, simple, mode, after, tmp_path
    ):
        """The newer field is read first, and the older one has words of its own."""
        told = record("DB", {"STATE_MODEL_DEF_REF": "MasterSlave", "REPLICAS": "2"} | simple,
                      {"DB_0": ["a", "b"]}, {"DB_0": {"a": "MASTER", "b": "SLAVE"}})  # fmt: skip
        others = [instance("a"), instance("b"), instance("c")]
        cluster = registry.read(json.dumps([told, *others]).encode())
        other = cluster.placement.replaced([2, 1], [0])
        file, _ = registry.write(cluster, tmp_path / "o.json", placement=other, mode=mode)
        (found,) = json.loads(file.read_bytes())
        modes = {"REBALANCE_MODE", "IDEAL_STATE_MODE"}
        assert {k: v for k, v in found["simpleFields"].items() if k in modes} == after

    def test_what_was_written_is_read_as_the_placement(self, tmp_path):
        cluster = read()
        result = solve(cluster)
        files = registry.write(
            cluster, tmp_path / "p.zip", placement=result, resources="all", mode="CUSTOMIZED"
        )
        with zipfile.ZipFile(files[0]) as archive:
            records = [json.loads(archive.read(one)) for one in archive.namelist()]
        rest = [
            json.loads(one.read_text())
            for one in DATA.rglob("*")
            if one.is_file() and {"CONFIGS", "LIVEINSTANCES", "STATEMODELDEFS"} & {*one.parts}
        ]
        again = registry.read(json.dumps(records + rest).encode())
        assert [sorted(row) for row in again.placement.nodes.tolist()] == [
            sorted(row) for row in result.placement.nodes.tolist()
        ]
        led = cluster.placement.leader >= 0
        assert (again.placement.leader_node == result.placement.leader_node)[led].all()

    def test_customized_replicas_keep_their_states(self, tmp_path):
        cluster = read()
        node = cluster.placement.node.copy()
        node[1] = 3  # instead of the second
        target = cluster.placement.replaced(node, cluster.placement.leader)
        after, _ = written(cluster, tmp_path / "p.json", target)
        assert after[0]["mapFields"]["Keys_0"] == {
            "h1_12913": "FIRST", "h3_12913": "THIRD", "h4_12913": "SECOND",
        }  # fmt: skip

    def test_hostile_names_stay_inside_of_the_archive(self, tmp_path):
        names = ["../../etc/passwd", "a\nb", "$(rm -rf /)", "..", "-rf"]
        records = [ideal(name, {f"{i}_0": ["a"]}) for i, name in enumerate(names)]
        cluster = registry.read(json.dumps(records).encode())
        (file,) = registry.write(cluster, tmp_path / "out.zip", "helix")
        with zipfile.ZipFile(file) as archive:
            members = archive.namelist()
        assert all(one.count("/") == 1 and ".." not in one and "\n" not in one for one in members)
        assert_same(registry.read(file), cluster)

    def test_a_partition_without_replicas_is_refused(self, tmp_path):
        cluster = read()
        node = np.full(len(cluster.placement.node), -1, np.int32)
        target = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match="MyDB_0: would be left without replicas"):
            written(cluster, tmp_path / "p.json", target)
        assert [*tmp_path.iterdir()] == []

    def test_it_survives_the_native_formats(self, tmp_path):
        cluster = read()
        for suffix in (".npz", ".rows.json"):
            path = tmp_path / f"c{suffix}"
            registry.write(cluster, path)
            assert_same(registry.read(path), cluster)


names = st.sampled_from(["a", "b-c", "ü", "x y", "h_1"])


@given(
    st.dictionaries(
        names, st.lists(st.lists(names, max_size=3, unique=True), max_size=4), max_size=3
    )
)
def test_any_ideal_states_come_back(tmp_path_factory, lists):
    records = [
        ideal(name, {f"{name}_{i}": row for i, row in enumerate(rows)})
        for name, rows in lists.items()
    ]
    path = Path(tmp_path_factory.mktemp("helix"), "in.json")
    if not records:
        return
    cluster = registry.read(json.dumps(records).encode(), format="helix")
    (after,) = written(cluster, path)
    assert by_id(after) == by_id(records)
    again = registry.read(path)
    assert_same(again, cluster)
