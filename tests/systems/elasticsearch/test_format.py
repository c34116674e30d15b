"""Elasticsearch prints it, we read it; we write commands of a reroute, Elasticsearch takes them."""

import dataclasses
import json
import shlex
import subprocess

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.elasticsearch.format import FORMAT
from evenkeel.systems.folders.carrier import Change, comers
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats" / "elasticsearch"
FILES = sorted(DATA.glob("*.json"))
GB = 2.0**30


def read(**options):
    return registry.read(FILES, **options)


def text(value):
    return json.dumps(value).encode()


def shard(index="i", number="0", prirep="p", node="a", **more):
    state = "STARTED" if node else "UNASSIGNED"
    usual = {"index": index, "shard": number, "prirep": prirep, "state": state, "node": node}
    return usual | more


def nodes_of(*names, **attributes):
    return text(
        {
            "nodes": {
                f"id-{name}": {
                    "name": name, "transport_address": "x", "ip": f"10.0.0.{i}", "roles": ["data"],
                    "attributes": {key: own[i] for key, own in attributes.items()},
                }
                for i, name in enumerate(names)
            }
        }
    )  # fmt: skip


def settings(**persistent):
    named = {key.replace("__", "."): value for key, value in persistent.items()}
    return text({"persistent": named, "transient": {}})


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read([*sources], format="elasticsearch")
    return [(fault.path.removeprefix("<bytes>: "), fault.value) for fault in caught.value.faults]


class TestReading:
    def test_data_nodes_are_nodes_and_indices_are_groups(self):
        cluster = read()
        assert list(cluster.nodes.names) == [f"es-{i}" for i in range(1, 7)]
        assert list(cluster.partitions.group_names) == ["broken", "logs-2026", "orders"]
        assert list(cluster.partitions.names)[:4] == [
            "broken/0", "logs-2026/0", "logs-2026/1", "orders/0",
        ]  # fmt: skip

    def test_primaries_lead_from_the_first_slot(self):
        cluster = read()
        placed = dict(zip(cluster.partitions.names, cluster.placement.nodes.tolist(), strict=True))
        assert placed["logs-2026/0"] == [5, 2]
        assert placed["logs-2026/1"] == [5, -1]
        assert cluster.placement.leader.tolist() == [-1, 0, 0, 0, 0, 0, 0]

    def test_what_is_on_its_way_counts_as_there(self):
        cluster = read()
        p = cluster.partitions.names.index("orders/2")
        assert cluster.placement.nodes[p].tolist() == [0, 4]
        assert cluster.placement.flags[cluster.placement.first[p] + 1] == Flag.INCOMING

    def test_copies_of_what_is_lost_are_missed_and_not_made(self):
        cluster = read()
        assert cluster.partitions.replicas.tolist() == [2, 2, 2, 2, 2, 2, 2]
        result = ek.solve(cluster)
        assert result.status == "partial"
        assert result.audit.counts["unassigned"] == 2
        assert cluster.partitions.names[0] not in {one.partition for one in result.moves}

    def test_there_is_room_below_the_watermarks(self):
        cluster = read()
        assert cluster.dimensions == ("shards", "disk")
        assert np.allclose(cluster.nodes.capacity[:, 1], 83 * GB)
        assert cluster.partitions.load.voter[1:3, 1].tolist() == [510 * 2.0**20, 20 * 2.0**10]

    @pytest.mark.parametrize(
        ("told", "room"), [("0.8", 80), ("70%", 70), ("20gb", 80), ("1.0", 100), ("200gb", 0)]
    )
    def test_watermarks_are_shares_or_free_bytes(self, told, room):
        rows = [
            {"node": "a", "disk.total": str(100 * 2**30), "disk.used": "0", "disk.indices": "0"}
        ]
        given = settings(cluster__routing__allocation__disk__watermark__low=told)
        cluster = registry.read(text([shard()]), text(rows), given)
        assert np.allclose(cluster.nodes.capacity[0, 1], room * GB)
        notes = "; ".join(registry.find("elasticsearch").left_out(cluster))
        assert f"of what shards may fill up to the low one, {told}, not of the whole" in notes

    @pytest.mark.parametrize("told", [{}, {"zone": ["x", "x", "y"]}])
    def test_attributes_name_nodes_beside_those_of_awareness(self, told):
        given = settings(cluster__routing__allocation__awareness__attributes="zone")
        nodes = nodes_of("a", "b", "c", box_type=["hot", "warm", "warm"], **told)
        cluster = registry.read(text([shard()]), nodes, given)
        assert cluster.drain("box_type=warm").nodes.keeps.tolist() == [True, False, False]
        assert cluster.topology.tiers == tuple(told)

    def test_awareness_spreads_copies(self):
        cluster = read()
        assert cluster.topology.tiers == ("zone",)
        assert cluster.rules[cluster.partitions.rule[3]].spread == {"zone": 1}
        given = settings(
            cluster__routing__allocation__awareness__attributes="zone",
            cluster__routing__allocation__awareness__force__zone__values="x,y",
        )
        three = text(
            [shard(prirep=kind, node=node) for kind, node in zip("prr", "abc", strict=True)]
        )
        cluster = registry.read(three, nodes_of("a", "b", "c", zone=["x", "x", "x"]), given)
        assert cluster.rules[0].spread == {"zone": 2}

    def test_filters_say_who_may_hold_what(self):
        cluster = read()
        # excluded by the cluster: it is drained
        assert cluster.nodes.keeps.tolist() == [True, True, True, False, True, True]
        own = dict(zip(cluster.partitions.names, cluster.partitions.rule.tolist(), strict=True))
        for name, allowed in (("orders/0", "111110"), ("logs-2026/0", "011001")):
            (tag,) = cluster.rules[own[name]].require
            mask = cluster.nodes.tags[tag.removeprefix("+")]
            assert "".join(str(int(one)) for one in mask) == allowed
        group = cluster.partitions.group_names.index("orders")
        assert cluster.rules[cluster.partitions.group_rule[group]].spread == {"node": 3}

    @pytest.mark.parametrize(
        ("settings_of", "on", "allowed"),
        [
            ({}, "hot", "110"), ({}, "frozen", "001"), ({}, None, "110"),
            ({"index.routing.allocation.total_shards_per_node": "5"}, "hot", "110"),
            ({"index.routing.allocation.total_shards_per_node": "5"}, "frozen", "110"),
            ({"index.store.snapshot.partial": "true"}, "frozen", "111"),
            (
                {
                    "index.store.snapshot.partial": "true",
                    "index.routing.allocation.include._tier_preference": "data_frozen",
                },
                "frozen", "011",
            ),
        ],
    )  # fmt: skip
    def test_a_node_for_frozen_indices_takes_no_others(self, settings_of, on, allowed):
        roles = {"hot": ["data_hot", "ingest"], "both": ["data_content", "data_frozen"],
                 "frozen": ["data_frozen"]}  # fmt: skip
        nodes = text(
            {
                "nodes": {
                    name: {"name": name, "transport_address": "x", "roles": own}
                    for name, own in roles.items()
                }
            }
        )
        given = text({"i": {"settings": settings_of}})
        cluster = registry.read(text([shard(node=on)]), nodes, given)
        order = [cluster.nodes.names.index(name) for name in roles]
        require = cluster.rules[0].require
        mask = cluster.nodes.tags[require[0][1:]] if require else np.ones(3, bool)
        assert "".join(str(int(one)) for one in mask[order]) == allowed

    def test_what_no_answer_tells_is_said(self):
        told = [*FORMAT.left_out(registry.read(text([shard()])))]
        named = ["_nodes", "_settings", "_cluster/settings", "_cat/allocation"]
        assert [
            one for one in named if any(text.endswith(one) or f"{one}?" in text for text in told)
        ] == named
        assert len(told) == len(named)
        excluded = "es-4 may hold no shard: cluster.routing.allocation.exclude._name: es-4"
        coming, marks, *others = FORMAT.left_out(read())
        assert coming.startswith("copies of orders/2 relocate or initialise: ")
        assert marks.startswith("watermarks: ") and others == [excluded]

    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [
            ("include._name", "x," * 40 + "a*,c", "101"), ("exclude._ip", "10.0.0.1", "101"),
            ("require.box", "big", "110"), ("include.box", ["small", "none"], "001"),
            ("require.box", "b?g", "000"), ("exclude.box", "", "111"),
        ],
    )  # fmt: skip
    def test_patterns(self, name, value, allowed):
        given = text({"i": {"settings": {f"index.routing.allocation.{name}": value}}})
        nodes = nodes_of("a", "b", "c", box=["big", "big", "small"])
        cluster = registry.read(text([shard()]), nodes, given)
        require = cluster.rules[0].require
        mask = cluster.nodes.tags[require[0][1:]] if require else np.ones(3, bool)
        assert "".join(str(int(one)) for one in mask) == allowed

    def test_nodes_that_are_shut_down_give_away_what_they_have(self):
        gone = {"node_id": "id-a", "type": "REMOVE", "shutdown_startedmillis": 1}
        back = {"node_id": "id-b", "type": "RESTART", "shutdown_startedmillis": 1}
        given = text({"nodes": [gone, back]})
        nodes = registry.read(text([shard()]), nodes_of("a", "b", "c"), given).nodes
        assert nodes.keeps.tolist() == [False, True, True]
        assert nodes.accepts.tolist() == [False, False, True]


SHARDS = """\
index  shard prirep state       docs   store ip        node
orders 0     p      STARTED       10   1gb 10.0.0.1  es 1
orders 0     r      STARTED       10   1gb 10.0.0.2  es-2
orders 1     p      RELOCATING    20 1.5gb 10.0.0.2  es-2 -> 10.0.0.1 Id1 es 1
orders 1     r      INITIALIZING          10.0.0.3  es-3
orders 2     p      STARTED       30  208b 10.0.0.3  es-3
orders 2     r      UNASSIGNED
"""
ALLOCATION = """\
shards disk.indices disk.used disk.avail disk.total disk.percent host     ip       node
     2          2gb       6gb       94gb      100gb            6 10.0.0.1 10.0.0.1 es 1
     2          2gb       6gb       94gb      100gb            6 10.0.0.2 10.0.0.2 es-2
     2          2gb       6gb       94gb      100gb            6 10.0.0.3 10.0.0.3 es-3
     1                                                                             UNASSIGNED
"""


def headless(table):
    return table.split("\n", 1)[1]


class TestText:
    """What ``_cat`` prints where nobody asked for JSON."""

    @pytest.mark.parametrize("told", [SHARDS, headless(SHARDS), SHARDS.replace("\n", "\r\n")])
    def test_shards_with_and_without_a_header(self, told):
        cluster = registry.read(told.encode())
        assert cluster.native_format == "elasticsearch"
        assert list(cluster.nodes.names) == ["es 1", "es-2", "es-3"]
        assert list(cluster.partitions.names) == ["orders/0", "orders/1", "orders/2"]
        assert cluster.placement.nodes.tolist() == [[0, 1], [0, 2], [2, -1]]
        assert cluster.partitions.load.voter[:, 1].tolist() == [GB, 1.5 * GB, 208]
        moving = cluster.placement.flags & Flag.INCOMING > 0
        assert moving.tolist() == [False, False, True, True, False, False]

    def test_addresses_that_a_provider_hides(self):
        told = "".join(
            f"movies 0 {kind} STARTED 5000 1.5mb x.x.x.x {name}\n"
            for kind, name in (("p", "57be2b"), ("r", "9a1b2c"))
        )
        for header in ("index shard prirep state docs store ip node\n", ""):
            cluster = registry.read((header + told).encode())
            assert list(cluster.nodes.names) == ["57be2b", "9a1b2c"]
            assert cluster.placement.nodes.tolist() == [[0, 1]]

    def test_commas_of_a_locale(self):
        row = "movies 0 p STARTED 5000 {} 10.0.0.1 n1\n"
        cluster = registry.read(row.format("10,5mb").encode())
        assert cluster.partitions.load.voter[0, cluster.dimensions.index("disk")] == 10.5 * 2**20
        disks = b"5 2,1gb 10,5gb 20gb 30,5gb 33 10.0.0.1 10.0.0.1 n1\n"
        assert list(registry.read([row.format("10,5mb").encode(), disks]).nodes.names) == ["n1"]

    def test_it_says_what_json_says(self):
        rows = registry.read(SHARDS.encode()).native["shards"]
        again = registry.read(text(rows))
        assert_same(registry.read(SHARDS.encode()), again)

    def test_columns_that_were_asked_for(self):
        told = (
            "idx    s p st         id  unassigned.reason n\n"
            "orders 0 p STARTED    Id1                   es 1\n"
            "orders 0 r UNASSIGNED     NODE_LEFT         \n"
            "orders 1 p STARTED    Id2                   es-2\n"
        )
        cluster = registry.read(told.encode())
        assert list(cluster.nodes.names) == ["es 1", "es-2"]
        assert cluster.placement.nodes.tolist() == [[0, -1], [1, -1]]

    def test_columns_in_any_order(self):
        told = b"node index shard prirep state\nes-1 logs  0     p      STARTED\n"
        assert list(registry.read(told).nodes.names) == ["es-1"]
        squeezed = (
            "node index store shard prirep state\na i 9gb 0 p STARTED\nb i 10kb 0 r STARTED\n"
        )
        cluster = registry.read(squeezed.encode())
        assert cluster.placement.nodes.tolist() == [[0, 1]]
        assert cluster.partitions.load.voter[:, 1].tolist() == [9 * GB]

    @pytest.mark.parametrize("state", ["state", ""])
    def test_moves_in_a_column_before_others(self, state):
        moving, waiting = ("RELOCATING", "UNASSIGNED") if state else ("", "")
        told = (
            f"index shard prirep {state:10} node                             unassigned.reason\n"
            f"logs  0     p      {moving:10} es 1 -> 10.0.0.3 BtVDbxIzQo es 3\n"
            f"logs  0     r      {waiting:10}                                  NODE_LEFT\n"
        )
        cluster = registry.read(told.encode())
        assert list(cluster.nodes.names) == ["es 1", "es 3"]
        assert cluster.placement.nodes.tolist() == [[1, -1]]
        assert cluster.placement.flags.tolist() == [Flag.INCOMING | Flag.ELECTED, 0]

    def test_blanks_in_names_are_no_borders(self):
        told = (
            "index shard prirep state   node         docs unassigned.reason\n"
            "logs  0     p      STARTED node 1 1234567890\n"
            "logs  0     r      STARTED node 2          7\n"
        )
        cluster = registry.read(told.encode())
        assert list(cluster.nodes.names) == ["node 1", "node 2"]
        assert cluster.native["shards"][0]["docs"] == "1234567890"

    def test_what_is_pushed_aside_by_names_with_blanks_is_not_guessed(self):
        told = (
            "index shard prirep state   node  docs id\n"
            "logs  0     p      STARTED node 1 10 Aaaa\n"
            "logs  0     r      STARTED node 2    Bbbb\n"
        )
        assert faults_of(told.encode()) == [
            (f"<bytes>:{n}", line) for n, line in enumerate(told.splitlines()[1:], start=2)
        ]

    @pytest.mark.parametrize(
        "told",
        [
            "shards disk.used disk.avail disk.total disk.percent host     ip       node\n"
            "     1      90gb       10gb      100gb           90 10.0.0.1 10.0.0.1 es 1\n"
            "     1      10gb       90gb      100gb           10 10.0.0.2 10.0.0.2 es-2\n",
            "n    s   di   du    dt\nes 1 1 10gb 90gb 100gb\nes-2 1 10gb 10gb 100gb\n",
            "node disk.avail disk.used\nes 1       10gb      90gb\nes-2       90gb      10gb\n",
            "disk.total disk.avail node\n     100gb       10gb es 1\n     100gb       90gb es-2\n",
            "disk.total disk.avail node\n100gb 10gb es 1\n100gb 90gb es-2\n",
        ],
    )
    def test_room_by_columns_that_were_asked_for(self, told):
        shards = b"i 0 p STARTED 1 10gb 10.0.0.1 es 1\ni 0 r STARTED 1 10gb 10.0.0.2 es-2\n"
        cluster = registry.read(shards, told.encode())
        assert list(cluster.nodes.names) == ["es 1", "es-2"]
        # below 90 % of 100, or 85 % of what is no fuller, less what is there beside 10 of shards
        assert cluster.nodes.capacity[:, 1].tolist() == [10 * GB, 85 * GB]

    @pytest.mark.parametrize(
        ("told", "lacks"),
        [
            ("index shard prirep state\ni 0 p STARTED\n", "has no column node"),
            ("disk.used disk.percent node\n1gb 5 a\n", "two of the columns disk.avail, disk."),
        ],
    )
    def test_headers_that_tell_too_little(self, told, lacks):
        with pytest.raises(InvalidInput, match=lacks):
            registry.read(SHARDS.encode(), told.encode())

    def test_of_later_releases(self):
        told = "i 0 p STARTED 1 249b 249b 127.0.0.1 a b\ni 0 r STARTED 1 249b 249b ::1 c\n"
        cluster = registry.read(told.encode())
        assert list(cluster.nodes.names) == ["a b", "c"]
        assert cluster.partitions.load.voter[:, 1].tolist() == [249]

    @pytest.mark.parametrize("told", [ALLOCATION, headless(ALLOCATION)])
    def test_room_of_nodes(self, told):
        cluster = registry.read(SHARDS.encode(), told.encode())
        other = registry.read(SHARDS.encode())
        assert cluster.nodes.capacity[:, 1].tolist() == [81 * GB] * 3
        assert cluster.nodes.capacity[0, 1] != other.nodes.capacity[0, 1]

    def test_room_of_nodes_in_later_releases(self):
        told = "1 0 0.0 260b 2gb 6gb 94gb 100gb 6 h 127.0.0.1 es 1 cdfhilmrstw\n"
        cluster = registry.read(b"i 0 p STARTED 1 249b 127.0.0.1 es 1\n", told.encode())
        assert cluster.nodes.capacity[:, 1].tolist() == [81 * GB]

    def test_lines_are_named(self):
        odd = SHARDS.replace("orders 2     p", "orders x     p").replace(" 208b", " 208xb")
        with pytest.raises(InvalidInput) as caught:
            registry.read(odd.encode())
        (fault,) = caught.value.faults
        assert fault.path == "<bytes>:6"
        assert "is no row of _cat/shards" in fault.message
        twice = SHARDS.replace("10.0.0.2  es-2\norders 1", "10.0.0.1  es 1\norders 1")
        assert faults_of(twice.encode()) == [("<bytes>:3.node", "es 1")]

    def test_a_node_whose_disk_nobody_measured_keeps_its_name(self):
        shards = b"a 0 p STARTED 1 1kb 10.0.0.1 es-2\n"
        allocation = (
            b" 463 0b 1gb 2gb 3gb 40 127.0.0.1 10.0.0.2 es-1\n"
            b" 463   0b                          127.0.0.1 10.0.0.1 es-2\n"
        )
        assert sorted(registry.read(shards, allocation).nodes.names) == ["es-1", "es-2"]


class TestBadInput:
    def test_everything_wrong_is_listed_with_its_place(self):
        rows = [
            shard(), shard(), shard(number="x"), shard(prirep="q"), shard(index=None),
            shard(number="1", node=None, state="STARTED"), shard(number="2", node="z", store="9xb"),
        ]  # fmt: skip
        assert faults_of(text(rows), nodes_of("a")) == [
            ("[1].prirep", "p"),
            ("[2].shard", "x"),
            ("[3].prirep", "q"),
            ("[4].index", None),
            ("[1].node", "a"),
            ("[5].node", None),
            ("[6].store", "9xb"),
        ]

    @pytest.mark.parametrize("store", ["1.000", "1,000", "1.5", "1,000mb"])
    def test_bytes_are_whole(self, store):
        assert faults_of(text([shard(store=store)])) == [("[0].store", store)]

    @pytest.mark.parametrize("store", ["1.000.000", "1000000.0", "1000000"])
    def test_a_number_of_bytes(self, store):
        cluster = registry.read([text([shard(store=store)])], format="elasticsearch")
        assert cluster.partitions.load.voter[0, cluster.dimensions.index("disk")] == 1e6

    def test_names_that_come_twice(self):
        double = json.loads(nodes_of("a", "b"))
        double["nodes"]["id-b"]["name"] = "a"
        assert faults_of(text([shard()]), text(double)) == [("nodes.id-b.name", "a")]
        rows = [{"node": "a", "disk.total": "9"}] * 2
        assert faults_of(text([shard()]), text(rows)) == [("[1].node", "a")]

    def test_settings_that_do_not_parse(self):
        given = settings(
            cluster__routing__allocation__disk__watermark__low="much",
            cluster__routing__allocation__awareness__attributes="rack",
            cluster__routing__allocation__total_shards_per_node=10**4000,
        )
        rows = [{"node": "a", "disk.total": "9"}]
        found = faults_of(text([shard()]), text(rows), nodes_of("a"), given)
        at = "persistent.cluster.routing.allocation."
        assert set(found) == {
            (f"{at}disk.watermark.low", "much"),
            (f"{at}total_shards_per_node", "more than 64 bits"),
        }  # fmt: skip


def solved(tmp_path, name="plan.json"):
    cluster = read()
    result = solve(cluster)
    assert not [one for one in result.violations if one.partition != "broken/0"]
    files = registry.write(cluster, tmp_path / name, placement=result)
    return cluster, result, files


class TestWriting:
    def test_commands_bring_the_placement_about(self, tmp_path):
        cluster, result, files = solved(tmp_path)
        there, back, *later = (
            json.loads(file.read_text())["commands"] for file in files if file.suffix == ".json"
        )
        there += [one for commands in later for one in commands]
        held = {
            name: {cluster.nodes.names[n] for n in row if n >= 0}
            for name, row in zip(
                cluster.partitions.names, cluster.placement.nodes.tolist(), strict=True
            )
        }
        start = {name: set(own) for name, own in held.items()}
        for commands in (there, back):
            for command in commands:
                ((verb, what),) = command.items()
                own = held[f"{what['index']}/{what['shard']}"]
                if verb == "move":
                    assert what["to_node"] not in own
                    own.discard(what["from_node"])
                    own.add(what["to_node"])
                elif verb == "allocate_replica":
                    assert what["node"] not in own
                    own.add(what["node"])
            if commands is there:
                for name, row in zip(
                    cluster.partitions.names, result.placement.nodes.tolist(), strict=True
                ):
                    assert held[name] == {cluster.nodes.names[n] for n in row if n >= 0}
        built = {
            f"{one['allocate_replica']['index']}/{one['allocate_replica']['shard']}"
            for one in there
            if "allocate_replica" in one
        }
        assert built == {"logs-2026/1"}
        assert {name: own for name, own in held.items() if name not in built} == {
            name: own for name, own in start.items() if name not in built
        }

    def test_what_is_on_its_way_is_cancelled_first(self, tmp_path):
        cluster = read()
        p = cluster.partitions.names.index("orders/2")
        for target, moves in ((1, [("es-3", "es-2")]), (2, [])):
            node = cluster.placement.node.copy()
            node[cluster.placement.first[p] + 1] = target
            placement = cluster.placement.replaced(node, cluster.placement.leader)
            file = registry.write(cluster, tmp_path / "p.json", placement=placement)[0]
            first, *rest = json.loads(file.read_text())["commands"]
            assert first["cancel"]["node"] == "es-5"
            assert [(one["move"]["from_node"], one["move"]["to_node"]) for one in rest] == moves

    def test_copies_are_not_given_up(self, tmp_path):
        cluster = read()
        node = cluster.placement.node.copy()
        node[cluster.placement.first[3]] = -1
        placement = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match="orders/0: would give up copies"):
            registry.write(cluster, tmp_path / "p.json", placement=placement)
        assert [*tmp_path.iterdir()] == []

    CURL = """#!/bin/sh
before=; body=
for word; do case "$before" in -d) body=$word;; esac; before=$word; done
case "$*" in
  *filter_path=persistent*) echo "$PERSISTENT";;
  *filter_path=transient*) echo "$TRANSIENT";;
  *dry_run*) ;;
  *"PUT "*) echo "$body" >> "$LOG";;
  *_cluster/reroute*) if [ "$ENDS" = fails ]; then exit 22; fi;;
  *_cluster/health*) if [ "$ENDS" = stopped ]; then kill -TERM $PPID; fi;;
esac
"""

    @pytest.mark.parametrize("ends", ["done", "fails", "stopped"])
    @pytest.mark.parametrize(
        ("persistent", "transient"), [(None, None), ("all", None), ("none", "primaries")]
    )
    def test_the_script_gives_the_balancer_back_as_it_was(
        self, tmp_path, ends, persistent, transient
    ):
        def answer(scope, value):
            setting = {"cluster": {"routing": {"rebalance": {"enable": value}}}}
            return json.dumps({} if value is None else {scope: setting}, separators=(",", ":"))

        script = solved(tmp_path, "plan.json")[2][-1]
        curl, log = tmp_path / "curl", tmp_path / "log"
        curl.write_text(self.CURL)
        curl.chmod(0o755)
        ran = subprocess.run(
            ["sh", script, "go"], capture_output=True, timeout=60,
            env={
                "PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(log), "ENDS": ends,
                "PERSISTENT": answer("persistent", persistent),
                "TRANSIENT": answer("transient", transient),
            },
        )  # fmt: skip
        assert (ran.returncode == 0) == (ends == "done"), ran.stderr
        name = "cluster.routing.rebalance.enable"
        assert [json.loads(line) for line in log.read_text().splitlines()] == [
            {"persistent": {name: "none"}, "transient": {name: None}},
            {"persistent": {name: persistent}, "transient": {name: transient}},
        ]

    def test_the_script_is_sound_whatever_the_file_is_called(self, tmp_path):
        name = "a'b $(touch hacked)\n.json"
        script = solved(tmp_path, name)[2][-1]
        checked = subprocess.run(["sh", "-n", script], capture_output=True)
        assert checked.returncode == 0, checked.stderr
        assert shlex.quote(f"./{name}") in script.read_text()

    def test_names_in_commands_are_json(self, tmp_path):
        hostile = '"},{"cancel":{"x":"\n$(id)'
        cluster = registry.read(text([shard(node=hostile), shard(number="1", node="b")]))
        node = cluster.placement.node[::-1].copy()
        target = cluster.placement.replaced(node, cluster.placement.leader)
        file = registry.write(cluster, tmp_path / "p.json", placement=target)[0]
        commands = json.loads(file.read_text())["commands"]
        assert [one["move"]["from_node"] for one in commands] == [hostile, "b"]


ROOM = text(
    [
        {"node": name, "disk.avail": f"{free}gb", "disk.total": f"{total}gb"}
        for name, free, total in [("n1", 130, 200), ("n2", 40, 100)]
    ]
)


class TestNodesBeingLeft:
    """Elasticsearch puts no copy on a node that another copy of the shard has not left yet."""

    def answered(self, *others):
        """Drain the node of a primary whose replica is on its way from the only other node."""
        moving = shard(prirep="r", state="RELOCATING", node="a -> 10.0.0.1 id-b b")
        exclude = text({"persistent": {"cluster": {"routing": {"allocation": {
            "exclude": {"_name": "c"}}}}}})  # fmt: skip
        rows = [shard(node="c"), moving, *others]
        cluster = registry.read(text(rows), nodes_of("a", "b", "c"), exclude)
        result = ek.solve(cluster)
        assert "a" in [cluster.nodes.names[n] for n in result.placement.nodes[0].tolist()]
        return cluster, result

    def test_a_move_there_comes_in_a_later_round(self, tmp_path):
        cluster, result = self.answered(shard("i", "1", node="c"))
        registry.write(cluster, tmp_path / "plan.json", "elasticsearch", result)
        first, later = (
            json.loads((tmp_path / name).read_text())["commands"]
            for name in ("plan.json", "plan.2.json")
        )
        assert [one["move"]["shard"] for one in first] == [1]
        assert [(one["move"]["shard"], one["move"]["to_node"]) for one in later] == [(0, "a")]
        script = (tmp_path / "plan.sh").read_text()
        assert "wait_for_no_relocating_shards" in script
        assert "plan.2.json: no dry run: it needs room or nodes" in script.split("exit 0")[0]
        assert 'cd -- "$(dirname -- "$0")"' in script  # its files lie beside it

    def test_the_only_move_waits_as_well(self, tmp_path):
        cluster, result = self.answered()
        registry.write(cluster, tmp_path / "plan.json", "elasticsearch", result)
        assert json.loads((tmp_path / "plan.json").read_text())["commands"] == []
        assert (tmp_path / "plan.2.json").exists()

    @pytest.mark.parametrize("there", ["n1", "n2"])
    def test_an_exchange_and_its_undo_make_room_first(self, tmp_path, there):
        """The disk of n2 has no room for a while b is there, nor for b while a is."""
        other = {"n1": "n2", "n2": "n1"}[there]
        rows = [shard("a", node=there, store="50gb"), shard("b", node=other, store="60gb")]
        cluster = registry.read(text([*rows, shard("c", node="n1", store="20gb")]), ROOM)
        swapped = cluster.placement.node[[1, 0, 2]]
        result = dataclasses.replace(cluster.placement, node=swapped)
        registry.write(cluster, tmp_path / "plan.json", "elasticsearch", result)
        for name in ("plan", "plan.undo"):
            [first], [second] = (
                json.loads((tmp_path / f"{name}{number}.json").read_text())["commands"]
                for number in ("", ".2")
            )
            assert (first["move"]["to_node"], second["move"]["to_node"]) == ("n1", "n2")
            assert f"./{name}.2.json" in (tmp_path / f"{name}.sh").read_text()

    def test_a_wave_waits_before_it_begins(self):
        cluster, result = self.answered()
        before, after = (
            tuple(one.nodes[0].tolist()) for one in (cluster.placement, result.placement)
        )
        change = Change(0, "i/0", before, after, 0, 0, False, comers(before, after))
        [orders] = FORMAT.carrier.orders(cluster, [[change]])
        assert [command.check for command in orders.commands] == ["relocated", "rerouted"]
        assert orders.commands[0].waits
