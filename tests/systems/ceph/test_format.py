"""Ceph's tools print it, we read it; what we write are the commands that its tools take."""

import json
import re

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.systems import registry
from evenkeel.systems.ceph.crush.crush_map import NO_OSD
from evenkeel.systems.ceph.crush_map import crush_map_of, read_crush_text
from evenkeel.systems.documents import Document
from tests.conformance.schemas.ceph import crush_map
from tests.support import places

DATA = places.DATA / "formats" / "ceph"
DUMP, TEXT, JSON = (DATA / name for name in ("osd_dump.json", "crush.txt", "crush_dump.json"))
STATS, TREE, DF = (DATA / name for name in ("pg_dump.json", "osd_tree.json", "osd_df.json"))


def changed(file, change):
    """A document after a change to what it holds."""
    document = json.loads(file.read_text())
    change(document)
    return json.dumps(document).encode()


def pinned_of(cluster):
    """The groups that stay as they are, whatever devices are up."""
    held = cluster.placement
    stays = (held.flags & Flag.PINNED != 0) & cluster.nodes.alive[held.node]
    owner = held.owner[stays]
    return [cluster.partitions.names[p] for p in np.unique(owner)]


def faults_of(*sources, **options):
    with pytest.raises(InvalidInput) as caught:
        registry.read(*sources, **options)
    return [(fault.path, fault.value) for fault in caught.value.faults]


@pytest.fixture(scope="module")
def cluster():
    return registry.read(DUMP, TEXT)


class TestReading:
    def test_devices_groups_and_hierarchy(self, cluster):
        assert (len(cluster.nodes), len(cluster.partitions)) == (12, 56)
        assert cluster.topology.tiers == ("root", "rack", "host")
        assert list(cluster.partitions.names[:2]) == ["1.0", "1.1"]
        assert list(cluster.partitions.group_names) == ["1", "2", "5"]
        assert [rule.spread for rule in cluster.rules] == [
            {"rack": 1}, {"host": 1}, {"rack": 1, "host": 1},
        ]  # fmt: skip
        assert cluster.rules[1].require == ["+hdd", "root=default"]

    def test_states(self, cluster):
        assert np.flatnonzero(~cluster.nodes.alive).tolist() == [6]
        assert np.flatnonzero(~cluster.nodes.keeps).tolist() == [9]
        assert cluster.native.reweight[[4, 9]].tolist() == [62260, 0]
        assert cluster.native.affinity[2] == 0x8000
        assert not (cluster.placement.node == 9).any()

    def test_the_map_as_text_and_as_json_is_the_same(self, cluster):
        other = registry.read(JSON, DUMP)
        assert np.array_equal(other.placement.node, cluster.placement.node)
        assert other.native.crush.buckets == cluster.native.crush.buckets
        assert other.rules == cluster.rules

    def test_placement_groups_are_where_the_cluster_says(self):
        said = json.loads(STATS.read_text())["pg_map"]["pg_stats"]
        cluster = registry.read(DUMP, TEXT, STATS)
        names = list(cluster.partitions.names)
        rows = cluster.placement.nodes
        for one in said:
            held = [osd for osd in rows[names.index(one["pgid"])].tolist() if osd >= 0]
            there = {osd for osd in one["up"] if osd != NO_OSD}
            assert there == set(held) - {6}
        leads = cluster.placement.leader_node.tolist()
        assert leads == [one["up_primary"] for one in said]

    def test_bytes_and_capacities(self):
        cluster = registry.read(DUMP, TEXT, STATS, TREE, DF)
        bytes_of = {
            one["pgid"]: one["stat_sum"]["num_bytes"]
            for one in json.loads(STATS.read_text())["pg_map"]["pg_stats"]
        }
        load = dict(zip(cluster.partitions.names, cluster.partitions.load.voter[:, 0], strict=True))
        assert load["1.3"] == bytes_of["1.3"]
        assert load["5.3"] == bytes_of["5.3"] / 2  # two shards of data
        assert cluster.nodes.capacity[3, 0] == int(1.819 * 2**30) * 1024

    @pytest.mark.parametrize("wrap", [lambda stats: stats, lambda stats: {"pg_stats": stats}])
    def test_older_releases_and_short_lists_of_groups(self, wrap):
        stats = json.loads(STATS.read_text())["pg_map"]["pg_stats"]
        cluster = registry.read(DUMP, TEXT, json.dumps(wrap(stats)).encode())
        assert cluster.partitions.load.voter.max() > 1e9

    def test_a_primary_that_is_named_leads(self, cluster):
        rows = cluster.placement.nodes
        osd = int(rows[5, 2])
        named = {"pgid": "1.5", "primary_osd": osd}
        data = changed(DUMP, lambda d: d["pg_upmap_primaries"].append(named))
        assert registry.read(data, TEXT).placement.leader_node[5] == osd

    @pytest.mark.parametrize("why", ["down", "erasure"])
    def test_a_primary_that_ceph_would_pass_over_does_not_lead(self, cluster, why):
        first = 40 if why == "erasure" else 0
        rows = cluster.placement.nodes[first:]
        rows = rows if why == "erasure" else rows[:32]
        osd = int(rows[0, 1]) if why == "erasure" else 6
        p = first + int(np.flatnonzero((rows == osd).any(axis=1))[0])
        named = {"pgid": cluster.partitions.names[p], "primary_osd": osd}
        data = changed(DUMP, lambda d: d["pg_upmap_primaries"].append(named))
        again = registry.read(data, TEXT)
        assert np.array_equal(again.placement.leader, cluster.placement.leader)

    def test_commands_name_primaries_and_take_them_back(self, cluster):
        osd = int(cluster.placement.nodes[5, 2])
        command = f"ceph osd pg-upmap-primary 1.5 {osd}\n".encode()
        named = registry.read(DUMP, TEXT, command)
        assert named.placement.leader_node[5] == osd
        both = registry.read(DUMP, TEXT, command + b"ceph osd rm-pg-upmap-primary 1.5\n")
        assert both.placement.leader_node[5] == cluster.placement.leader_node[5]
        assert faults_of(DUMP, TEXT, b"ceph osd pg-upmap-primary 1.5\n")


class TestCrushText:
    @pytest.mark.parametrize("name", ["a06_classes", "a04_dc_4level", "a07_weird_weights"])
    def test_a_map_that_ceph_wrote_comes_back(self, name):
        file = places.DATA / "golden" / "ceph" / f"{name}.json"
        if not file.exists():
            file = next((places.DATA / "golden" / "ceph").glob(f"{name}.json*"))
        document = json.loads(_plain(file))
        expected = crush_map(document)
        faults = FaultList()
        text = Document("crush.txt", decompiled(document).encode())
        found = read_crush_text(faults, text)
        faults.raise_if_any()
        got = crush_map_of(faults, "crush.txt", found, 0, len(text.data))
        faults.raise_if_any()
        own = {b.id: (b.name, b.type, list(b.items)) for b in got.buckets}
        for bucket in expected.buckets:
            items = list(bucket.items) if any(w for _, w in bucket.items) else []
            assert own[bucket.id] == (bucket.name, bucket.type, items)
        assert [rule.steps for rule in got.rules] == [rule.steps for rule in expected.rules]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("choose_local_tries", 2),
            ("choose_total_tries", 19),
            ("chooseleaf_descend_once", 0),
            ("chooseleaf_vary_r", 0),
            ("chooseleaf_stable", 0),
        ],
    )
    def test_a_tunable_that_is_left_out_has_its_oldest_value(self, name, value):
        text = re.sub(rf"tunable {name} .*\n", "", TEXT.read_text())
        dump = json.loads(JSON.read_bytes())
        assert dump["tunables"].pop(name) != value
        for map_of in (text, json.dumps(dump)):
            tunables = registry.read(DUMP, map_of.encode()).native.crush.tunables
            assert tunables[name] == value

    def test_substitute_weights(self):
        text = TEXT.read_text() + (
            "choose_args 18446744073709551615 {\n  {\n    bucket_id -1\n    weight_set [\n"
            "      [ 1.000 2.000 0.500 ]\n      [ 1 1 1 ]\n    ]\n    ids [ -30 -31 -32 ]\n  }\n}\n"
        )
        (args,) = registry.read(DUMP, text.encode()).native.crush.choose_args["-1"]
        assert args.weights == [[65536, 131072, 32768], [65536] * 3]
        assert args.ids == [-30, -31, -32]

    def test_what_version_19_adds_is_no_hindrance_where_no_pool_uses_it(self):
        rule = (
            "rule wide {\n id 7\n type msr_indep\n step set_msr_descents 50\n step take default\n"
            " step choosemsr 4 type host\n step choosemsr 2 type osd\n step emit\n}\n"
        )
        text = "tunable msr_descents 100\ntunable msr_collision_tries 100\n" + TEXT.read_text()
        dump = json.loads(JSON.read_bytes())
        dump["tunables"] |= {"msr_descents": 100, "msr_collision_tries": 100}
        steps = [
            {"op": "set_msr_descents", "num": 50},
            {"op": "take", "item": -1, "item_name": "default"},
            {"op": "choosemsr", "num": 4, "type": "host"},
            {"op": "emit"},
        ]
        dump["rules"].append({"rule_id": 7, "rule_name": "wide", "type": 5, "steps": steps})
        plain = registry.read(DUMP, JSON)
        for map_of in ((text + rule).encode(), json.dumps(dump).encode()):
            found = registry.read(DUMP, map_of)
            assert found.native.crush.rules == plain.native.crush.rules
            assert found.placement.nodes.tolist() == plain.placement.nodes.tolist()
            assert found.rules == plain.rules

            def uses_it(document):
                document["pools"][0]["crush_rule"] = 7

            found = registry.read(changed(DUMP, uses_it), map_of, STATS)
            own = found.partitions.group[found.placement.owner] == 0
            assert (found.placement.flags[own] & Flag.LEFT_ALONE).all()
            assert not (found.placement.flags[~own] & Flag.LEFT_ALONE).any()
            (note,) = found.native.notes
            assert "pool 1" in note and "msr" in note
            assert (found.placement.node[own] >= 0).mean() > 0.8  # where pg dump has them
            unknown = registry.read(changed(DUMP, uses_it), map_of)
            assert (unknown.placement.node[own] < 0).all()
            assert "ceph pg dump" in unknown.native.notes[0]

    def test_everything_wrong_is_named_with_its_line(self):
        text = TEXT.read_text()
        lines = text.split("\n")
        at = {line.strip(): i for i, line in enumerate(lines, start=1)}
        wrong = text.replace("tunable choose_total_tries 50", "tunable choose_total_tries many")
        wrong = wrong.replace("\titem osd.0 weight 3.638", "\titem osd.0 weight heavy")
        wrong = wrong.replace("step chooseleaf firstn 0 type host", "step choose_leaf firstn 0")
        found = faults_of(DUMP, wrong.encode())
        assert ("<bytes>:4", "many") in found
        assert (f"<bytes>:{at['item osd.0 weight 3.638']}", "heavy") in found
        assert (f"<bytes>:{at['step chooseleaf firstn 0 type host']}", "choose_leaf") in found
        assert len(found) == 3

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_a_truncated_text_is_refused(self, share):
        data = TEXT.read_bytes()
        assert faults_of(DUMP, data[: int(share * len(data))])


def _plain(file):
    import gzip

    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else data


def decompiled(document):
    """The text of a map, written after the tree alone with the ids of its shadows."""
    names = {b["id"]: b["name"] for b in document["buckets"]}
    names |= {d["id"]: d["name"] for d in document["devices"]}
    shadow = {b["name"]: b["id"] for b in document["buckets"] if "~" in b["name"]}
    lines = [f"tunable {key} {value}" for key, value in document["tunables"].items()]
    for device in document["devices"]:
        kind = f" class {device['class']}" if device.get("class") else ""
        lines.append(f"device {device['id']} {device['name']}{kind}")
    lines += [f"type {number} {name}" for name, number in document["types"].items()]
    plain = {b["id"]: b for b in document["buckets"] if "~" not in b["name"]}
    done = set()

    def write(bucket):
        for item, _ in bucket["items"]:
            if item in plain and item not in done:
                write(plain[item])
        done.add(bucket["id"])
        lines.append(f"{bucket['type']} {bucket['name']} {{\n\tid {bucket['id']}\t# keep")
        for name, number in shadow.items():
            if name.split("~")[0] == bucket["name"]:
                lines.append(f"\tid {number} class {name.split('~')[1]}")
        lines.append("\talg straw2\n\thash 0\t# rjenkins1")
        lines.extend(f"\titem {names[i]} weight {w / 65536:.9f}" for i, w in bucket["items"])
        lines.append("}")

    for bucket in plain.values():
        if bucket["id"] not in done:
            write(bucket)
    for rule in document["rules"]:
        lines.append(f"rule {rule['name']} {{\n\tid {rule['rule_id']}\n\ttype replicated")
        for step in rule["steps"]:
            operation = step["op"]
            if operation == "take":
                name, _, kind = names[step["item"]].partition("~")
                lines.append(f"\tstep take {name}" + (f" class {kind}" if kind else ""))
            elif operation.startswith("choose"):
                way, how = operation.split("_")
                lines.append(f"\tstep {way} {how} {step['num']} type {step['type']}")
            else:
                lines.append(f"\tstep {operation} {step.get('num', '')}".rstrip())
        lines.append("}")
    return "\n".join(lines) + "\n"


class TestWhatIsWrong:
    def test_stale_references_are_noted_and_the_rest_is_read(self):
        def change(document):
            document["pools"][0]["crush_rule"] = 7
            document["pg_upmap_items"] += [
                {"pgid": "1.fff", "mappings": [{"from": 1, "to": 2}]},
                {"pgid": "2.1", "mappings": [{"from": 1, "to": 99}]},
            ]
            document["pg_upmap"].append({"pgid": "2.5", "osds": [0, 4]})
            document["pg_upmap_primaries"].append({"pgid": "9.1", "primary_osd": 3})

        tree = changed(TREE, lambda d: d["nodes"].append({"id": 77, "type": "osd", "type_id": 0}))
        found = registry.read(changed(DUMP, change), TEXT, tree)
        told = " ".join(found.native.notes)
        for name in ("pool 1 (CRUSH rule 7)", "1.fff, 2.1", "2.5", "9.1", "77"):
            assert name in told
        at = list(found.partitions.names).index("2.5")
        assert found.placement.nodes[at].tolist()[:2] == [0, 4]
        again = ek.solve(found, "ceph_upmap")
        assert np.array_equal(again.placement.nodes[at], found.placement.nodes[at])
        assert again.comparison.moves > 0

    def test_what_is_twice_or_no_group_is_refused(self):
        def change(document):
            document["pools"][1]["pool"] = 5
            document["pg_upmap_items"].append({"pgid": "x", "mappings": []})

        found = faults_of(changed(DUMP, change), TEXT)
        assert [path.removeprefix("<bytes>: ") for path, _ in found] == [
            "pools[2].pool", "pg_upmap_items[2].pgid"
        ]  # fmt: skip

    def test_single_groups_that_are_elsewhere_or_missing_are_left_alone(self):
        def elsewhere(document):
            document["pg_map"]["pg_stats"][3] |= {"up": [0, 1, 2], "acting": []}
            document["pg_map"]["pg_stats"].append({"pgid": "77.1", "up": [0]})

        found = registry.read(DUMP, TEXT, changed(STATS, elsewhere))
        assert pinned_of(found) == ["1.3"]
        assert "1.3" in " ".join(found.native.notes) and "77.1" in " ".join(found.native.notes)
        free = registry.read(DUMP, TEXT, changed(STATS, elsewhere), compare=False)
        assert pinned_of(free) == []

        def fewer(document):
            del document["pg_map"]["pg_stats"][5:9]

        found = registry.read(DUMP, TEXT, changed(STATS, fewer))
        assert "1.5, 1.6, 1.7, 1.8" in " ".join(found.native.notes)
        load = found.partitions.load.voter[:, 0]
        own = found.partitions.group == 0
        assert np.allclose(load[5:9], np.delete(load[own], [5, 6, 7, 8]).mean())

    def test_files_of_different_times_are_refused(self):
        def elsewhere(document):
            for one in document["pg_map"]["pg_stats"][:40]:
                one["up"] = [0, 1, 2]

        found = faults_of(DUMP, TEXT, changed(STATS, elsewhere))
        assert ("<bytes>: pg_map.pg_stats[3].up", [0, 1, 2]) in found
        registry.read(DUMP, TEXT, changed(STATS, elsewhere), compare=False)

        def fewer(document):
            del document["pg_map"]["pg_stats"][7:]

        assert faults_of(DUMP, TEXT, changed(STATS, fewer)) == [("<bytes>", "1.7")]

    def test_groups_that_are_being_copied_stay(self):
        def copying(document):
            document["pg_map"]["pg_stats"][3]["acting"] = [0, 1, 2]

        found = registry.read(DUMP, TEXT, changed(STATS, copying))
        assert pinned_of(found) == ["1.3"]
        (note,) = found.native.notes
        assert "1 group being copied" in note and "1.3" in note
        # without pg dump, what serves meanwhile shows it
        temporary = {"pgid": "1.4", "osds": [0, 1, 2]}
        found = registry.read(changed(DUMP, lambda d: d.update(pg_temp=[temporary])), TEXT)
        assert pinned_of(found) == ["1.4"]

    @pytest.mark.parametrize("word", ["inf", "-inf", "nan", "-nan", "NaN", "Infinity"])
    def test_figures_that_are_none_hinder_nothing(self, word):
        def figures(file):
            text = file.read_text().rstrip()
            assert text.endswith("}")
            return (text[:-1] + f', "ratio": {word}, "many": [1.0, {word}]}}').encode()

        found = registry.read(figures(DUMP), figures(JSON), figures(STATS), figures(TREE))
        assert len(found.native.notes) == 1  # of four files of one name
        assert all("2 figures" in note for note in found.native.notes)

    @pytest.mark.parametrize("files", [(DUMP,), (TEXT,), (DUMP, TREE, STATS), (DUMP, TEXT, JSON)])
    def test_a_dump_and_one_map_are_needed(self, files):
        assert faults_of(*files)

    def test_values_that_do_not_fit_are_listed_with_their_paths(self):
        def change(document):
            document["pools"][0]["size"] = 0
            document["osds"][3]["weight"] = 7
            document["osds"][4]["osd"] = 2**31

        found = faults_of(changed(DUMP, change), TEXT)
        assert {path.removeprefix("<bytes>: ") for path, _ in found} == {
            "pools[0].size", "osds[3].weight", "osds[4].osd",
        }  # fmt: skip

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d["osds"][0].update(osd=2**31 - 1),
            lambda d: d["pools"][0].update(pg_num=2**31 - 1),
        ],
    )
    def test_what_is_claimed_takes_no_memory(self, change):
        assert faults_of(changed(DUMP, change), TEXT)


class TestWriting:
    def test_unsolved_the_pairs_in_force_come_back(self, cluster, tmp_path):
        registry.write(cluster, tmp_path / "now.sh")
        text = (tmp_path / "now.sh").read_text()
        said = [
            f"ceph osd pg-upmap-items {one['pgid']} "
            + " ".join(f"{pair['from']} {pair['to']}" for pair in one["mappings"])
            for one in json.loads(DUMP.read_text())["pg_upmap_items"]
        ]
        assert sorted(text.splitlines()) == sorted(said)
        without = changed(DUMP, lambda document: document.update(pg_upmap_items=[]))
        again = registry.read(without, TEXT, tmp_path / "now.sh")
        assert np.array_equal(again.placement.node, cluster.placement.node)

    @pytest.mark.parametrize("method", ["ceph_upmap", "balance"])
    def test_what_was_solved_is_brought_about_and_taken_back(self, cluster, tmp_path, method):
        result = ek.solve(cluster, method)
        files = registry.write(cluster, tmp_path / "plan.sh", placement=result)
        assert [file.name for file in files][:2] == ["plan.sh", "plan.rollback.sh"]
        lines = files[0].read_text().splitlines()
        assert lines
        command = r"ceph osd (pg-upmap-items [0-9]+\.[0-9a-f]+( \d+ \d+)+|rm-pg-upmap-items \S+)"
        assert all(re.fullmatch(command, line) for line in lines)
        after = registry.read(DUMP, TEXT, files[0])
        wanted = np.sort(result.placement.nodes, axis=1)
        assert np.array_equal(np.sort(after.placement.nodes, axis=1), wanted)
        back = registry.read(DUMP, TEXT, files[0], files[1])
        assert np.array_equal(back.placement.node, cluster.placement.node)

    def test_a_primary_by_decree_is_a_command_of_its_own(self, cluster, tmp_path):
        leader = cluster.placement.leader.copy()
        leader[4] = (leader[4] + 1) % 3
        placement = cluster.placement.replaced(cluster.placement.node, leader)
        files = registry.write(cluster, tmp_path / "p.sh", placement=placement)
        osd = int(placement.leader_node[4])
        assert [file.name for file in files][2:] == ["p.primaries.sh", "p.primaries.rollback.sh"]
        assert files[0].read_text() == ""
        assert files[2].read_text() == f"ceph osd pg-upmap-primary 1.4 {osd}\n"

    def test_what_pairs_cannot_bring_about_is_refused(self, cluster, tmp_path):
        node = cluster.placement.node.copy()
        node[0] = 9  # a device that is out
        placement = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match=r"1\.0: pg-upmap-items can only bring about"):
            registry.write(cluster, tmp_path / "p.sh", placement=placement)
        assert not (tmp_path / "p.sh").exists()

    def test_other_lines_than_its_commands_are_refused(self):
        commands = b"ceph osd pg-upmap-items 1.0 0 1\nrm -rf /\nceph osd pg-upmap-items 1.0 0\n"
        found = faults_of(DUMP, TEXT, commands, format="ceph")
        assert [path for path, _ in found] == ["<bytes>:2", "<bytes>:3"]
