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

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.helix.cluster import left_out
from evenkeel.systems.plans.targets import target_by_name
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
            "Keys_0", "Logs_0", "Logs_1", "MyDB_0", "MyDB_1", "MyDB_10", "MyDB_2",
        ]  # fmt: skip
        assert cluster.placement.nodes.tolist() == [
            [0, 1, 2], [0, 1, -1], [2, 3, -1], [0, 1, 2], [1, 2, 3], [0, 1, 5], [2, 0, 4],
        ]  # fmt: skip
        # Logs has no leaders, in a cluster that has some
        assert cluster.placement.leader.tolist() == [0, 0, 0, 0, 0, 1, 0]
        assert cluster.placement.flags[4] == Flag.ERROR | Flag.STAND_IN
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
            registry.read(json.dumps([ideal()]).encode(), b'{"instances": [], "online": 3}')

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

    @pytest.mark.parametrize("aware", ["true", "false"])
    def test_what_a_domain_says_names_instances(self, aware):
        told = {"TOPOLOGY": "/zone/host", "TOPOLOGY_AWARE_ENABLED": aware}
        nodes = [instance(one, DOMAIN=f"zone={i},host=h{i}") for i, one in enumerate("ab")]
        cluster = registry.read(json.dumps([ideal(), record("C", told), *nodes]).encode())
        assert cluster.drain("host=h1").nodes.keeps.tolist() == [True, False]
        assert cluster.drain("zone=0").nodes.keeps.tolist() == [False, True]


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
        bad = ideal(lists=lists, MIN_ACTIVE_REPLICAS="two")
        assert faults_of(bad, config, broken) == [
            ("[0].simpleFields.MIN_ACTIVE_REPLICAS", "two"),
            ("[2].mapFields.INSTANCE_CAPACITY_MAP.CPU", "1.5"),
            ("[2].simpleFields.DOMAIN", "zone"),
            ("[2].simpleFields.INSTANCE_WEIGHT", "heavy"),
        ]

    def test_weights_are_json_inside_of_texts(self):
        config = record("C", {}, {"INSTANCE_CAPACITY_KEYS": ["CPU"]})
        config["mapFields"] = {"DEFAULT_INSTANCE_CAPACITY_MAP": {"CPU": "9"}}
        weights = record("DB", {}, {}, {"PARTITION_CAPACITY_MAP": {"DEFAULT": "{", "DB_7": "7"}})
        nodes = [instance(one) for one in "ab"]
        found = faults_of(ideal(), config, weights, *nodes)
        at = "[2].mapFields.PARTITION_CAPACITY_MAP"
        assert (f"{at}.DEFAULT", "{") in found
        assert (f"{at}.DB_7", "7") in found

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

    def test_ids_that_come_twice(self):
        nodes = [instance("a"), instance("a"), instance("b")]
        assert faults_of(ideal(), *nodes) == [("[2].id", "a")]

    def test_a_record_that_shows_nothing_asks_for_a_folder(self):
        assert faults_of(ideal(), record("odd", {"a": "b"})) == [("[1].id", "odd")]

    def test_lists_and_objects_are_no_texts(self):
        other = ideal()
        other["simpleFields"]["REPLICAS"] = [2]
        assert faults_of(other) == [("[0].simpleFields.REPLICAS", "list")]

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


def read_with_notes(*records):
    """The cluster of a list of records, and what is noted of it, in one text."""
    cluster = registry.read(json.dumps(records).encode(), format="helix")
    missing = ("no live instances", "no external view", "no configuration of instances")
    noted = registry.find("helix").left_out(cluster)
    return cluster, "; ".join(one for one in noted if not one.startswith(missing))


def custom(name="DB", states=None, **simple):
    usual = {"REBALANCE_MODE": "CUSTOMIZED", "STATE_MODEL_DEF_REF": "OnlineOffline"}
    told = states if states is not None else {"DB_0": {"a": "ONLINE", "b": "ONLINE"}}
    return record(name, usual | simple, {}, told)


NODES = [instance(one) for one in "ab"]
KEYS = {"INSTANCE_CAPACITY_KEYS": ["CPU"]}
WAGED = "org.apache.helix.controller.rebalancer.waged.WagedRebalancer"


class TestStateModels:
    """Strategies place each resource in the states of its own model."""

    @pytest.mark.parametrize("method", ["helix_waged", "helix_crushed", "helix_auto"])
    @pytest.mark.parametrize(
        ("model", "states"),
        [
            ("LeaderStandby", {"LEADER": 1, "STANDBY": "R"}),
            ("OnlineOffline", {"ONLINE": "R"}),
            ("OfTheirOwn", {"ACTIVE": 1, "SPARE": "R"}),
        ],
    )
    def test_a_resource_is_placed_in_its_states(self, method, model, states):
        lists = {f"DB_{p}": ["n0", "n1"] if p % 2 else [] for p in range(40)}
        records = [
            ideal(lists=lists, STATE_MODEL_DEF_REF=model), *(instance(f"n{i}") for i in range(5)),
            record("OfTheirOwn", {"INITIAL_STATE": "OFFLINE"}, {
                "STATE_PRIORITY_LIST": ["ACTIVE", "SPARE", "OFFLINE"],
            }, {"ACTIVE.meta": {"count": "1"}, "SPARE.meta": {"count": "R"}}),
        ]  # fmt: skip
        cluster, _ = read_with_notes(*records)
        kind = {"helix_waged": ek.options.Waged, "helix_crushed": ek.options.Crushed}
        kind = kind.get(method, ek.options.Auto)

        def answer(options=None):
            found = ek.solve(cluster, method, options=options).placement
            return found.node.tolist(), found.leader.tolist()

        assert answer() == answer(kind(states=states)) == answer(kind(group_states={"DB": states}))
        if method == "helix_waged":
            assert answer() != answer(kind(group_states={}))


class TestBrokenClusters:
    """What a cluster may well have is read and noted; what it concerns stays, the rest does not."""

    @pytest.mark.parametrize(
        ("one", "named"),
        [
            (ideal("X", REBALANCE_MODE="TASK"), "X"),
            (ideal("X", STATE_MODEL_DEF_REF="Task", REBALANCE_MODE="USER_DEFINED"), "X"),
            (ideal("X", REBALANCE_MODE="USER_DEFINED"), "X"),
            (ideal("X", STATE_MODEL_DEF_REF="OfTheirOwn"), "X"),
            (ideal("X", INSTANCE_GROUP_TAG="gpu"), "X (gpu)"),
            (ideal("X", REBALANCE_MODE="FULL_AUTO", INSTANCE_GROUP_TAG="gpu"), "X (gpu)"),
            (ideal("X", REBALANCE_MODE="FULL_AUTO", REPLICAS="two"), "X (two)"),
            (custom("brokerResource", STATE_MODEL_DEF_REF="BrokerResourceOnlineOfflineStateModel"),
             "brokerResource"),
        ],
    )  # fmt: skip
    def test_a_resource_that_cannot_be_judged_stays_as_it_is(self, one, named, tmp_path):
        cluster, notes = read_with_notes(ideal(), one, *NODES)
        assert list(cluster.partitions.group_names) == ["DB"]
        assert named in notes
        assert by_id(written(cluster, tmp_path / "a.json")[0])[one["id"]] == one
        alone, notes = read_with_notes(one, *NODES)
        assert len(alone.partitions) == 0
        assert named in notes

    def test_an_instance_without_a_config_is_gone(self):
        lists = {"DB_0": ["a", "z"], "DB_1": ["z", "b"]}
        live = [record(one, {"SESSION_ID": "1"}) for one in "abyz"]
        cluster, notes = read_with_notes(ideal(lists=lists), *NODES, *live)
        assert list(cluster.nodes.names) == ["a", "b", "y", "z"]
        assert cluster.nodes.gone.tolist() == [False, False, True, True]
        assert cluster.nodes.alive.tolist() == [True, True, False, False]
        assert audit(cluster, cluster.placement).counts["on_dead"] == 2
        assert "y, z" in notes

    def test_the_ghosts_of_a_topology_are_in_no_zone(self):
        told = {"TOPOLOGY": "/zone/host", "TOPOLOGY_AWARE_ENABLED": "true"}
        told |= {"FAULT_ZONE_TYPE": "zone"}
        nodes = [instance(one, DOMAIN=f"zone={one},host={one}") for one in "ab"]
        lists = {"DB_0": ["a", "y"], "DB_1": ["z", "b"]}
        cluster, _ = read_with_notes(ideal(lists=lists), record("C", told), *nodes)
        assert list(cluster.topology.tiers) == ["zone"]
        assert cluster.topology.label[0].tolist()[2:] == [-1, -1]

    @pytest.mark.parametrize("needed", ["DOMAIN", "HELIX_ZONE_ID"])
    def test_an_instance_without_a_zone_takes_nothing_new(self, needed):
        told = {"TOPOLOGY_AWARE_ENABLED": "true"}
        if needed == "DOMAIN":
            told |= {"TOPOLOGY": "/zone/host", "FAULT_ZONE_TYPE": "zone"}
        nodes = [instance("a", **{needed: "zone=1,host=a"}), instance("b")]
        cluster, notes = read_with_notes(ideal(), record("C", told), *nodes)
        assert cluster.nodes.accepts.tolist() == [True, False]
        assert cluster.nodes.keeps.tolist() == [True, True]
        assert f"{needed} of b" in notes

    def test_who_is_swapped_out_is_assigned_to_until_the_swap_is_complete(self):
        topology = {
            "TOPOLOGY_AWARE_ENABLED": "true",
            "TOPOLOGY": "/zone/host",
            "FAULT_ZONE_TYPE": "zone",
        }
        nodes = [
            instance("a", DOMAIN="zone=1,host=x", INSTANCE_OPERATION="SWAP_OUT"),
            instance("b", DOMAIN="zone=1,host=x", INSTANCE_OPERATION="SWAP_IN"),
        ]
        cluster, notes = read_with_notes(ideal(), record("C", topology), *nodes)
        assert cluster.nodes.accepts.tolist() == [True, False]
        assert cluster.nodes.stands_for.tolist() == [-1, 0]
        assert "operation" not in notes and "Helix mirrors them" in notes

    @pytest.mark.parametrize("one", ["REPLACE", "SWAP_IN"])
    def test_an_operation_that_nobody_knows_and_a_swap_for_nobody(self, one):
        nodes = [instance("a"), instance("b", INSTANCE_OPERATION=one)]
        cluster, notes = read_with_notes(ideal(), *nodes)
        assert cluster.nodes.accepts.tolist() == [True, False]
        assert cluster.nodes.stands_for.tolist() == [-1, -1]
        assert " b" in notes

    def test_names_that_are_out_of_date_change_nothing(self):
        config = record("b", {"HELIX_HOST": "b"}, {}, {
            "HELIX_DISABLED_PARTITION": {"Gone": "Gone_0", "DB": "DB_0,DB_9"},
        })  # fmt: skip
        view = record("Old", {}, {}, {"Old_0": {"a": "MASTER"}})
        own = record("DB", {}, {}, {"DB_0": {"a": "MASTER"}, "DB_8": {"b": "SLAVE"}})
        cluster, notes = read_with_notes(ideal(), instance("a"), config, view, own)
        assert list(cluster.partitions.names) == ["DB_0"]
        assert cluster.forbidden.tolist() == [[0, 1]]
        assert all(one in notes for one in ("Gone", "DB_9", "Old", "partitions of DB"))

    def test_customized_heeds_neither_tags_nor_limits_and_goes_by_its_map(self):
        states = {"DB_0": {"a": "ONLINE", "b": "ONLINE"}, "DB_1": {"a": "ONLINE"}}
        told = {"INSTANCE_GROUP_TAG": "DB", "MAX_PARTITIONS_PER_INSTANCE": "1", "REPLICAS": "0"}
        cluster, notes = read_with_notes(custom(states=states, **told), *NODES)
        assert cluster.partitions.replicas.tolist() == [2, 1]
        assert audit(cluster, cluster.placement).hard == 0
        assert "DB (DB)" in notes
        assert "MAX_PARTITIONS_PER_INSTANCE" in notes

    def test_what_a_customized_state_has_is_where_it_will_be(self, tmp_path):
        view = record("DB", {}, {}, {"DB_0": {"a": "ERROR"}})
        cluster, _ = read_with_notes(custom(REPLICAS="2"), *NODES, view)
        assert cluster.placement.node.tolist() == [0, 1]
        assert cluster.placement.flags.tolist() == [int(Flag.ERROR), 0]

    def test_lists_of_unlike_length_ask_for_what_they_list(self):
        # Ambry: any live instance stands for no number at all
        lists = {"1": ["a", "b", "c"], "2": ["b", "c"]}
        ambry = ideal("5", lists, REPLICAS="ANY_LIVEINSTANCE",
                      STATE_MODEL_DEF_REF="AmbryLeaderStandby")  # fmt: skip
        cluster, notes = read_with_notes(ambry, *(instance(one) for one in "abcd"))
        assert cluster.partitions.replicas.tolist() == [3, 2]
        assert audit(cluster, cluster.placement).hard == 0
        assert not notes

    @pytest.mark.parametrize(
        ("capacity", "mode", "dimensions", "accepts"),
        [
            ({"a": "9", "b": "9"}, "", ("CPU",), [True, True]),
            ({"a": "9"}, "", ("replicas",), [True, True]),
            ({"a": "9"}, WAGED, ("CPU",), [True, False]),
            ({}, WAGED, ("replicas",), [True, True]),
        ],
    )
    def test_capacities_that_not_all_tell(self, capacity, mode, dimensions, accepts):
        nodes = [
            instance(one) | {"mapFields": {"INSTANCE_CAPACITY_MAP": {"CPU": capacity[one]}}}
            if one in capacity else instance(one)
            for one in "ab"
        ]  # fmt: skip
        config = record("C", {}, KEYS, {"DEFAULT_PARTITION_WEIGHT_MAP": {"CPU": "1"}})
        told = {"REBALANCER_CLASS_NAME": mode} if mode else {}
        cluster, notes = read_with_notes(ideal(**told), config, *nodes)
        assert cluster.dimensions == dimensions
        assert cluster.nodes.accepts.tolist() == accepts
        assert bool(notes) == (len(capacity) < 2)

    def test_weights_that_not_all_tell(self):
        config = record("C", {}, KEYS, {"DEFAULT_INSTANCE_CAPACITY_MAP": {"CPU": "9"}})
        told = {"PARTITION_CAPACITY_MAP": {"DEFAULT": '{"CPU": 4}', "DB_7": '{"CPU": 1}'}}
        waged = {"REBALANCER_CLASS_NAME": WAGED}
        cluster, notes = read_with_notes(
            ideal(**waged), ideal("E", {"E_0": ["a"]}), ideal("F", {"F_0": ["b"]}, **waged),
            config, record("DB", {}, {}, told), *NODES,
        )  # fmt: skip
        assert list(cluster.partitions.group_names) == ["DB", "E"]
        assert cluster.dimensions == ("CPU", "replicas")
        assert cluster.partitions.load.voter.tolist() == [[4.0, 0.0], [0.0, 1.0]]
        assert "keys of F" in notes
        assert "partition of DB" in notes


class TestPinot:
    """Segments go to the servers of their tenant, as Pinot's own records say."""

    NODES = [
        record(f"Server_{i}", {}, {"TAG_LIST": ["T_OFFLINE" if i < 3 else "U_OFFLINE"]})
        for i in range(5)
    ] + [record("Broker_0", {}, {"TAG_LIST": ["T_OFFLINE", "T_BROKER"]})]
    MODEL = "SegmentOnlineOfflineStateModel"

    def table(self, *segments, **simple):
        states = {f"s{i}": dict.fromkeys(row, "ONLINE") for i, row in enumerate(segments)}
        told = {"STATE_MODEL_DEF_REF": self.MODEL, "INSTANCE_GROUP_TAG": "t_OFFLINE"}
        return custom("t_OFFLINE", states, **told, **simple)

    def dump(self, folder, table, config=None, partitions=None):
        files = {f"IDEALSTATES/{table['id']}": table}
        files |= {f"CONFIGS/PARTICIPANT/{one['id']}": one for one in self.NODES}
        if config is not None:
            told = {key: json.dumps(one) for key, one in config.items()}
            files["PROPERTYSTORE/CONFIGS/TABLE/t_OFFLINE"] = record("t_OFFLINE", told)
        if partitions is not None:
            files["PROPERTYSTORE/INSTANCE_PARTITIONS/t_OFFLINE"] = record(
                "t_OFFLINE", {}, partitions
            )
        for name, one in files.items():
            file = folder / "dump" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(one))
        cluster = registry.read(folder / "dump")
        return cluster, "; ".join(registry.find("helix").left_out(cluster))

    @pytest.mark.parametrize(
        ("held", "config", "servers"),
        [
            (["Server_0"], None, {0, 1, 2}),
            (["Server_3"], None, {3, 4}),
            (["Server_0", "Server_3"], None, {0, 1, 2, 3, 4}),
            (["Server_0"], {"tenants": {"server": "U"}}, {3, 4}),
            (["Server_0"], {"tenants": {"server": "T"}, "dedupConfig": None}, {0, 1, 2}),
        ],
    )  # fmt: skip
    def test_the_tenant_says_which_servers(self, held, config, servers, tmp_path):
        cluster, notes = self.dump(tmp_path, self.table(*([one] for one in held * 6)), config)
        placed = solve(cluster).placement
        names = [cluster.nodes.names[n] for n in {*placed.node.tolist()}]
        assert {int(one.removeprefix("Server_")) for one in names} == servers
        assert ("no configuration of table" in notes) == (config is None)

    def test_rules_name_the_tag_of_the_tenant(self, tmp_path):
        config = {"tenants": {"server": "T"}}
        cluster, _ = self.dump(tmp_path, self.table(["Server_0"]), config)
        asked = {str(term) for rule in cluster.rules for term in rule.terms()}
        assert asked == {"require +servers tagged T_OFFLINE"}

    @pytest.mark.parametrize(
        ("config", "partitions"),
        [
            ({"upsertConfig": {"mode": "FULL"}}, None),
            ({"dedupConfig": {"dedupEnabled": True}}, None),
            ({"tenants": {"server": "None"}}, None),
            (None, {"0_0": ["Server_0"], "1_0": ["Server_1"]}),
        ],
    )
    def test_what_only_pinot_can_tell_stays(self, config, partitions, tmp_path):
        cluster, notes = self.dump(tmp_path, self.table(["Server_0"]), config, partitions)
        assert len(cluster.partitions) == 0
        assert "t_OFFLINE" in notes

    def test_each_replica_group_has_a_replica(self, tmp_path):
        groups = {"0_0": ["Server_0", "Server_1"], "0_1": ["Server_2", "Server_3"]}
        table = self.table(*[["Server_0", "Server_1"]] * 8, REPLICAS="2")
        cluster, _ = self.dump(tmp_path, table, None, groups)
        found = solve(cluster)
        assert found.audit.hard == 0
        assert sorted({*map(tuple, np.sort(found.placement.nodes // 2, axis=1).tolist())}) == [
            (0, 1)
        ]

    @pytest.mark.parametrize(
        ("mapped", "held", "noted"),
        [
            ({"OFFLINE": {}}, {"Server_0", "Server_1"}, True),
            (None, {f"Server_{i}" for i in range(3)}, False),
        ],
    )
    def test_segments_stay_on_servers_that_a_table_is_assigned(self, mapped, held, noted, tmp_path):
        config = {"tenants": {"server": "T"}, "instanceAssignmentConfigMap": mapped}
        groups = {"0_0": ["Server_0", "Server_1"]}
        cluster, notes = self.dump(tmp_path, self.table(*[["Server_0"]] * 6), config, groups)
        placed = solve(cluster).placement
        assert {cluster.nodes.names[n] for n in placed.node.tolist()} == held
        assert ("not assigned to all servers" in notes) == noted

    def test_only_servers_are_nodes(self, tmp_path):
        cluster, _ = self.dump(tmp_path, self.table(["Server_0"]))
        assert list(cluster.nodes.names) == [f"Server_{i}" for i in range(5)]

    def test_lists_that_are_no_partitions_are_left_alone(self, tmp_path):
        table = self.table(*[["Server_0"]] * 6)
        table["listFields"] = {"INSTANCE_PARTITIONS__0_0": ["Server_0"]}
        cluster, _ = self.dump(tmp_path, table)
        assert len(cluster.partitions) == 6
        (after,), _ = written(cluster, tmp_path / "a.json", solve(cluster).placement)
        assert after["listFields"] == table["listFields"]


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
        led = [not name.startswith("Logs") for name in cluster.partitions.names]
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

    @pytest.mark.parametrize("file", ["target.json", "target.zip"])
    def test_what_changes_nothing_is_read_as_a_target(self, tmp_path, file):
        cluster = read()
        for path in registry.write(cluster, tmp_path / file, "helix", cluster.placement):
            target = registry.read(path)
            assert [*left_out(target)]
            after = target_by_name(cluster, target)
            assert after.node.tolist() == cluster.placement.node.tolist()
            assert after.leader.tolist() == cluster.placement.leader.tolist()

    def test_a_partition_without_replicas_is_refused(self, tmp_path):
        cluster = read()
        node = np.full(len(cluster.placement.node), -1, np.int32)
        target = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match="MyDB_0: would be left without replicas"):
            written(cluster, tmp_path / "p.json", target)
        assert [*tmp_path.iterdir()] == []


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
    cluster = registry.read(json.dumps(records).encode(), format="helix")
    (after,) = written(cluster, path)
    assert by_id(after) == by_id(records)
    again = registry.read(path)
    assert_same(again, cluster)


class TestAnswersOfPinot:
    """Answers of Pinot's controller, and a folder that writes by it."""

    @pytest.mark.parametrize(
        ("file", "segments", "table"),
        [
            ("idealstate.json", ["t__0__1__2020Z", "t__1__1__2020Z"], "t_REALTIME"),
            ("a.json", ["air_REALTIME_10_0", "air_REALTIME_11_0"], "air_REALTIME"),
            ("a_b-idealstate.json", ["a_b_2020_0", "a_b_2020_1"], "a_b_REALTIME"),
            ("a.json", ["only"], "only_REALTIME"),
        ],
    )
    def test_a_table_is_called_by_its_file_or_its_segments(self, file, segments, table, tmp_path):
        path = tmp_path / file
        path.write_text(json.dumps({"REALTIME": {one: {"Server_a": "ONLINE"} for one in segments}}))
        assert [*registry.read(path).partitions.group_names] == [table]

    @pytest.mark.parametrize("answer", [{"OFFLINE": {"s": 3}}, {"OFFLINE": 3}, {"OFFLINE": "t"}])
    def test_other_shapes_are_refused_with_their_place(self, answer):
        with pytest.raises(InvalidInput):
            registry.read(json.dumps(answer).encode(), format="helix")

    def test_a_folder_of_tables_is_read_and_written_by_the_controller(self, tmp_path):
        cluster = registry.read([*(DATA.parent / "pinot").iterdir()])
        plan = ek.plan(cluster, ek.solve(cluster), protocol="helix")
        folder = ek.write_plan_folder(plan, tmp_path / "move")
        form = json.loads((folder / "waves.json").read_text())
        asked = [one["run"][-1] for one in form["look"]]
        of = "${CONTROLLER}/zk/{}?path=/${CLUSTER}/{}"
        assert of.replace("{}", "get", 1).replace("{}", "EXTERNALVIEW/t_OFFLINE") in asked
        calls = [call["run"] for wave in form["waves"] for call in wave["commands"]]
        assert {call[0] for call in calls} == {"curl"}
        assert {call[-1] for call in calls} == {
            of.replace("{}", "put", 1).replace("{}", "IDEALSTATES/t_OFFLINE")
        }
        last = json.loads((folder / form["waves"][-1]["commands"][0]["file"]).read_text())
        assert {len(row) for row in last["mapFields"].values()} == {2}
        assert last["simpleFields"]["REPLICAS"] == "2"
