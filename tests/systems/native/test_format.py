"""Native formats keep everything, and say everything that is wrong with a file."""

import contextlib
import io
import json
import os
import zipfile
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.systems import registry
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import decode_json
from tests.support import places
from tests.support.clusters import assert_same, clusters

NATIVE = {"native-npz": ".npz", "native-rows": ".rows.json"}
each_format = pytest.mark.parametrize("name", NATIVE)


def full_cluster(**changes):
    """A cluster with something in every part."""
    given = {
        "capacity": [[10.0, np.inf], [0.0, 5.0], [7.5, 2.0]],
        "load": [[1.0, 0.1], [2.0, 0.2]],
        "leader_load": [[1.5, 0.1], [2.5, 0.2]],
        "non_voter_load": [[0.5, 0.1], [0.0, 0.2]],
        "dimensions": ("cpu", "disk"),
        "transient": ["disk"],
        "bytes": "disk",
        "domains": {"zone": ["b", "a", ""], "rack": [10, 9, -1], "feed": ["x", "y", "x"]},
        "crossing": ["feed"],
        "tier_capacity": {"zone": [[8.0, np.inf], [9.0, 1.0]]},
        "tier_distance": [3.0, 2.0, 1.0, 0.0],
        "watermark": [[8.0, np.inf], [0.0, 4.0], [7.0, 1.0]],
        "alive": [True, False, True],
        "since": [np.nan, 1.7e9, 0.0],
        "weight": [1.0, 0.5, 2.0],
        "max_replicas": [-1, 4, 0],
        "stands_for": [-1, -1, 1],
        "tags": {"ssd": [True, False, False], "none": [False, False, False]},
        "attributes": {"os": ["linux", "", "bsd"]},
        "node_names": ["ö", "n 1", "n2"],
        "partition_names": ["orders-0", "orders-1"],
        "group_names": ["orders", "empty"],
        "group": [0, 0],
        "placement": [0, 1, -1, 2],
        "first": [0, 3, 4],
        "leader": [1, -1],
        "role": [0, 0, 1, 2],
        "flags": [1, 24, 0, 128],
        "replicas": [3, 2],
        "voters": [2, 1],
        "min_active": [1, 0],
        "move_cost": [1.0, 2.5],
        "attached": [2, -1],
        "forbidden": [[1, 0], [0, 2]],
        "depends": [(0, 1, "zone"), (1, 0, "node")],
        "rules": [
            Rule(require=["zone!=a", "+ssd"], spread={"zone": (1, "soft"), "node": None}),
            Rule(voters_place={"os=bsd": 1}, lead=["feed=y"], min_domains={"rack": 2}),
        ],
        "rule": [0, -1],
        "group_rule": [1, -1],
        "native": {"epoch": 7, "list": [1, None, "x"]},
        "native_format": "other",
    }
    return Cluster.from_arrays(**(given | changes))


@each_format
def test_every_part_comes_back(tmp_path, name):
    path = tmp_path / ("cluster" + NATIVE[name])
    cluster = full_cluster()
    assert registry.write(cluster, path, name) == (path,)
    assert_same(registry.read(path), cluster)


@each_format
@given(cluster=clusters())
def test_any_cluster_comes_back(tmp_path_factory, name, cluster):
    path = tmp_path_factory.mktemp("any") / ("cluster" + NATIVE[name])
    registry.write(cluster, path)
    assert_same(registry.read(path), cluster)
    again = path.with_name("again" + NATIVE[name])
    registry.write(registry.read(path), again)
    assert again.read_bytes() == path.read_bytes()


@each_format
@pytest.mark.parametrize("label", ["9223372036854775807", "9223372036854775808", "9" * 5000])
def test_labels_of_many_digits_come_back(tmp_path, name, label):
    labels = np.array(["7", label], object)
    cluster = Cluster.from_arrays(capacity=np.ones((2, 1)), load=[], domains={"zone": labels})
    path = tmp_path / ("cluster" + NATIVE[name])
    registry.write(cluster, path)
    assert_same(registry.read(path), cluster)


@each_format
def test_partitions_that_want_nothing_come_back(tmp_path, name):
    cluster = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]] * 2, replicas=0)
    path = tmp_path / ("cluster" + NATIVE[name])
    registry.write(cluster, path)
    assert_same(registry.read(path), cluster)


@each_format
def test_a_new_placement_is_written_in_the_place_of_the_old_one(tmp_path, name):
    cluster = full_cluster()
    moved = cluster.placement.replaced(
        np.array([2, 1, 0, 2, 1], np.int32), np.array([0, 1], np.int16)
    )
    path = tmp_path / ("cluster" + NATIVE[name])
    registry.write(cluster, path, placement=moved)
    assert_same(registry.read(path), cluster.with_placement(moved))


@each_format
def test_a_payload_that_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path, name):
    for native in (object(), {1: "key is no text"}, (1, 2), np.zeros(2), {"x": float("nan")}):
        cluster = full_cluster(native=native, native_format="ceph_crush")
        with pytest.raises(
            InvalidInput, match=r"cluster\.native: cannot be written here: use data"
        ):
            registry.write(cluster, tmp_path / "c", name)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_unicode_is_refused(tmp_path):
    cluster = full_cluster(node_names=["a", "b", "\ud800"])
    with pytest.raises(InvalidInput, match="UTF-8"):
        registry.write(cluster, tmp_path / "c", "native-rows")


def test_an_npz_name_that_ends_in_nul_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"node_names\[2\]: .* ends in a NUL"):
        registry.write(full_cluster(node_names=["a", "b", "b\0"]), tmp_path / "c.npz")


@each_format
def test_truncated_anywhere_is_invalid_input(tmp_path, name):
    path = tmp_path / ("cluster" + NATIVE[name])
    registry.write(full_cluster(), path)
    data = path.read_bytes()
    for length in {0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 9}:
        with pytest.raises(InvalidInput):
            registry.read(data[:length], format=name)
        path.write_bytes(data[:length])
        with pytest.raises(InvalidInput, match=r"cluster\."):
            registry.read(path)


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_flipped_byte_of_an_archive_never_escapes_as_another_error(place, value):
    data = bytearray(archive())
    data[place % len(data)] = value
    with contextlib.suppress(InvalidInput):
        registry.read(bytes(data), format="native-npz")


def archive(**changes):
    """The bytes of a plain archive that numpy wrote."""
    arrays = {"capacity": np.ones((2, 1)), "load": np.ones((3, 1)), "placement": [[0], [1], [1]]}
    file = io.BytesIO()
    np.savez(file, **(arrays | changes))
    return file.getvalue()


@each_format
def test_another_kind_of_file_is_named_as_such(tmp_path, name):
    for i, data in enumerate((b"hello\n", b"\xff\xfe\x00", b"[1, 2]", b'{"a": 1}', b"PK\x03\x04")):
        path = tmp_path / f"{i}{NATIVE[name]}"
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match=rf"{i}\."):
            registry.read(path, format=name)


class TestArchive:
    def test_plain_arrays_without_meta_are_read(self):
        data = archive(
            node_names=["a", "b"], alive=[True, False], **{"domains/zone": np.array(["z1", "z2"])}
        )
        cluster = registry.read(data)
        assert list(cluster.nodes.names) == ["a", "b"]
        assert cluster.topology.tiers == ("zone",)
        assert np.asarray(cluster.placement).tolist() == [[0], [1], [1]]

    def test_all_problems_are_listed_with_member_and_value(self):
        with pytest.raises(InvalidInput) as caught:
            registry.read(archive(load=[[np.nan], [-1.0], [1.0]], placement=[[0], [7], [1]]))
        found = {(fault.path, fault.message) for fault in caught.value.faults}
        assert found == {
            ("<bytes>: load[0, 0]", "must be a number"),
            ("<bytes>: load[1, 0]", "must not be negative"),
            ("<bytes>: placement[1][0]", "must be a node, 0 to 1, or -1 for none"),
        }

    def test_unknown_members_and_pickles_are_refused(self):
        pickled = np.array([{"a": 1}], object)
        with pytest.raises(InvalidInput) as caught:
            registry.read(archive(lode=np.ones(1), alive=pickled), format="native-npz")
        assert {f.path for f in caught.value.faults} == {"<bytes>: lode", "<bytes>: alive"}

    def test_a_member_that_does_not_match_its_checksum_is_named(self):
        data = archive()
        at = data.index(np.ones((3, 1)).tobytes())
        with pytest.raises(InvalidInput, match=r"<bytes>: load: is broken") as caught:
            registry.read(data[:at] + b"\1" + data[at + 1 :])
        assert len(caught.value.faults) == 1

    def test_levels_must_be_both_listed_and_there(self, tmp_path):
        path = tmp_path / "c.npz"
        registry.write(full_cluster(), path)
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "d.npz", "w") as new:
            for name in old.namelist():
                if name != "domains/rack.npy":
                    new.writestr(name, old.read(name))
        with pytest.raises(InvalidInput, match="domains/rack: must stand both"):
            registry.read(tmp_path / "d.npz")

    def test_arrays_come_back_writable_underneath_and_contiguous(self, tmp_path):
        registry.write(full_cluster(), tmp_path / "c.npz")
        load = registry.read(tmp_path / "c.npz").partitions.load.voter
        assert not load.flags.writeable
        assert load.flags.c_contiguous and load.flags.aligned
        assert load.base is not None and load.base.flags.writeable

    def test_fortran_order_is_read(self):
        load = np.asfortranarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        cluster = registry.read(archive(load=load, capacity=np.ones((2, 2))))
        assert cluster.partitions.load.voter.tolist() == load.tolist()


ROWS = {
    "format": "evenkeel-rows",
    "version": 1,
    "dimensions": ["cpu", "disk"],
    "tiers": ["zone"],
    "nodes": [
        {"name": "a", "capacity": [10, None], "domains": {"zone": "z1"}, "tags": ["ssd"]},
        {"name": "b", "capacity": [10, 100.5], "domains": {"zone": "z2"}},
    ],
    "partitions": [
        {"name": "p", "load": [1, 2], "nodes": ["a", "b"], "group": "g"},
        {"name": "q", "load": [1, 2], "nodes": [None, "b"], "replicas": 3, "group": "h"},
    ],
    "rules": [{"require": ["+ssd"], "spread": {"zone": [1, "soft"]}}],
}


def as_json(document, **changes):
    return json.dumps(document | changes).encode()


class TestRows:
    def test_a_document_written_by_hand(self):
        cluster = registry.read(as_json(ROWS))
        assert cluster.nodes.capacity.tolist() == [[10.0, np.inf], [10.0, 100.5]]
        assert cluster.partitions.replicas.tolist() == [2, 3]
        assert cluster.placement.node.tolist() == [0, 1, -1, 1, -1]
        assert list(cluster.partitions.group_names) == ["g", "h"]
        assert cluster.rules[0].spread == {"zone": (1, "soft")}
        assert cluster.partitions.rule.tolist() == [-1, -1]

    def test_all_dangling_names_are_listed_with_their_path(self):
        partitions = [
            {"name": "p", "load": [1, 2], "nodes": ["a", "nowhere"], "forbidden": ["x"]},
            {"name": "p", "load": [1], "attached": "y", "nodes": ["b"], "rule": 4},
        ]
        wrong = as_json(
            ROWS,
            partitions=partitions,
            groups=[{"name": "g", "rule": -1}],
            depends=[{"group": "g", "needs": "h", "tier": "zone"}],
            tier_capacity=[{"tier": "zone", "node": "z", "capacity": [1, 2]}],
            transient=["net"],
        )
        with pytest.raises(InvalidInput) as caught:
            registry.read(wrong)
        found = {(f.path.removeprefix("<bytes>: "), f.value) for f in caught.value.faults}
        assert found == {
            ("partitions[0].nodes[1]", "nowhere"),
            ("partitions[0].forbidden[0]", "x"),
            ("partitions[1].attached", "y"),
            ("partitions[1].load", 1),
            ("partitions[1].name", "p"),
            ("partitions[1].rule", 4),
            ("depends[0].needs", "h"),
            ("tier_capacity[0].node", "z"),
            ("transient", "net"),
        }

    def test_every_misfit_of_a_type_is_listed(self):
        nodes = [{"name": 1, "capacity": ["x", 2]}, {"capacity": [1, 2], "colour": "red"}]
        with pytest.raises(InvalidInput) as caught:
            registry.read(as_json(ROWS, nodes=nodes, version=2, rules=[{"spread": {"zone": "1"}}]))
        found = {f.path.removeprefix("<bytes>: ") for f in caught.value.faults}
        assert found == {
            "version", "nodes[0].name", "nodes[0].capacity[0]", "nodes[1].name", "nodes[1].colour",
            "rules[0].spread.zone",
        }  # fmt: skip

    def test_model_faults_name_the_row(self):
        nodes = [dict(row, capacity=[-1, 5]) for row in ROWS["nodes"]]
        with pytest.raises(InvalidInput) as caught:
            registry.read(as_json(ROWS, nodes=nodes))
        found = {(f.path, f.value) for f in caught.value.faults}
        assert found == {(f"<bytes>: nodes[{n}].capacity[0]", -1.0) for n in (0, 1)}

    def test_the_line_of_a_syntax_error_is_named(self):
        text = b'{"format":\n"evenkeel-rows",\n"version": 1,,}'
        with pytest.raises(InvalidInput, match=r"<bytes>:3: is not JSON"):
            registry.read(text)


class TestReplacementInstances:
    def arrays(self, **changes):
        given = {
            "capacity": np.ones((3, 2)),
            "zone": np.arange(3),
            "rack": np.arange(3) + 5,
            "load": np.full((2, 2), 0.1),
            "leader_extra_load": np.full((2, 2), 0.2),
            "placement_before": np.array([[0, 1], [2, -1]], np.int32),
            "dead": np.array([False, True, False]),
            "new": np.zeros(3, bool),
            "resource": np.array([0, 1], np.int32),
            "meta": np.array("{}"),
        }
        file = io.BytesIO()
        np.savez_compressed(file, **{k: v for k, v in (given | changes).items() if v is not None})
        return file.getvalue()

    def test_names_are_mapped(self):
        cluster = registry.read(self.arrays())
        assert cluster.nodes.alive.tolist() == [True, False, True]
        np.testing.assert_allclose(cluster.partitions.load.leader, 0.3)
        assert cluster.placement.node.tolist() == [0, 1, 2, -1]
        assert cluster.placement.leader.tolist() == [0, 0]
        assert cluster.topology.tiers == ("zone", "rack")
        assert cluster.rules[0].spread == {"zone": 1}
        assert cluster.dimensions == ("d0", "d1")

    def test_faults_speak_of_its_own_names(self):
        wrong = self.arrays(placement_before=np.array([[0, 9], [2, -1]]), rack=None)
        with pytest.raises(InvalidInput, match="rack: is missing"):
            registry.read(wrong)
        with pytest.raises(InvalidInput, match=r"placement_before\[0\]\[1\]: must be a node"):
            registry.read(self.arrays(placement_before=np.array([[0, 9], [2, -1]])))

    def test_it_is_read_only(self, tmp_path):
        with pytest.raises(InvalidInput, match="can be read and not written"):
            registry.write(full_cluster(), tmp_path / "c.npz", format="rebalancer-npz")


class TestRegistry:
    def test_an_unknown_format_is_answered_with_the_known_ones(self, tmp_path):
        with pytest.raises(InvalidInput, match=r"nonsense.*") as caught:
            registry.read(b"", format="nonsense")
        assert "native-npz" in str(caught.value) and "kafka" in str(caught.value)
        with pytest.raises(InvalidInput, match="native-npz"):
            registry.read(b"what is this")
        with pytest.raises(InvalidInput, match=r"c\.docx"):
            registry.write(full_cluster(), tmp_path / "c.docx")

    def test_a_missing_file_stays_a_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            registry.read(tmp_path / "none.npz")

    def test_a_single_file_format_takes_one_file(self):
        with pytest.raises(InvalidInput, match="read from one file"):
            registry.read([archive(), archive()])

    def test_anybody_may_add_a_format(self, tmp_path):
        lines = registry.Format(
            name="lines",
            summary="a node per line",
            suffixes=(".lines",),
            recognises=lambda document: "lines" * document.data.startswith(b"#lines"),
            read=lambda documents: Cluster.from_arrays(
                capacity=np.ones((documents[0].data.count(b"\n"), 1)), load=np.ones((0, 1))
            ),
            encode=lambda cluster, placement, path: {path: b"#lines" + b"\n" * len(cluster.nodes)},
        )
        registry.register(lines)
        try:
            with pytest.raises(ValueError, match="already"):
                registry.register(lines)
            cluster = full_cluster(native=None)
            assert registry.write(cluster, tmp_path / "c.lines") == (tmp_path / "c.lines",)
            assert len(registry.read(tmp_path / "c.lines").nodes) == 3
        finally:
            registry._registered.clear()

    def test_an_installed_package_may_offer_one(self, monkeypatch, tmp_path):
        (tmp_path / "theirs-1.dist-info").mkdir()
        (tmp_path / "theirs-1.dist-info/METADATA").write_text("Name: theirs\nVersion: 1\n")
        (tmp_path / "theirs-1.dist-info/entry_points.txt").write_text(
            "[evenkeel.systems]\ntheirs = format_of_theirs:FORMAT\n"
        )
        (tmp_path / "format_of_theirs.py").write_text(
            "from evenkeel.systems.registry import Format\n"
            'FORMAT = Format("theirs", "", (".t",), lambda document: "", None, None)\n'
        )
        monkeypatch.syspath_prepend(tmp_path)
        assert registry.find("theirs") is import_module("format_of_theirs").FORMAT
        assert [*registry.known()] == [*registry.ROOMS, "theirs"]
        with pytest.raises(InvalidInput, match="can be written and not read"):
            registry.read(b"", format="theirs")
        monkeypatch.undo()
        assert [*registry.known()] == [*registry.ROOMS]

    def test_a_placement_of_another_cluster_is_refused(self, tmp_path):
        other = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[0]])
        with pytest.raises(InvalidInput, match="needs 2 partitions"):
            registry.write(full_cluster(), tmp_path / "c.npz", placement=other.placement)
        with pytest.raises(InvalidInput, match="must be a Placement"):
            registry.write(full_cluster(), tmp_path / "c.npz", placement=[[0]])


class TestWriting:
    """Which format is written, and what is not written over."""

    @pytest.fixture
    def kafka(self):
        return registry.read(places.DATA / "formats" / "kafka_describe.txt")

    def test_a_shared_suffix_means_the_system_that_the_cluster_came_from(self, kafka, tmp_path):
        for placement in (None, kafka.placement):
            files = registry.write(kafka, tmp_path / "plan.json", placement=placement)
            assert json.loads(files[0].read_text()).keys() == {"partitions", "version"}
        registry.write(full_cluster(), tmp_path / "c.json")
        assert json.loads((tmp_path / "c.json").read_text())["format"] == "evenkeel-rows"

    @pytest.mark.parametrize("suffix", NATIVE.values())
    def test_a_suffix_of_our_own_is_ours_wherever_the_cluster_came_from(
        self, kafka, tmp_path, suffix
    ):
        path = tmp_path / f"c{suffix}"
        assert registry.write(kafka, path) == (path,)
        assert_same(registry.read(path), kafka)

    def test_no_suffix_is_that_of_the_system_and_one_of_nobody_a_fault(self, kafka, tmp_path):
        files = registry.write(kafka, tmp_path / "plan", placement=kafka.placement)
        assert [file.name for file in files] == ["plan", "plan.rollback.json", "plan.election.json"]
        with pytest.raises(InvalidInput, match=r"ends like no known format.*c\.txt"):
            registry.write(full_cluster(), tmp_path / "c.txt")
        for name in ("x.sh", "x.ring.gz", "x.sql", "x.zip"):
            with pytest.raises(InvalidInput, match=r"for kafka, end it in \.json"):
                registry.write(kafka, tmp_path / name)
        for name in ("out.pdf", "x.xyz"):
            with pytest.raises(InvalidInput, match=r"ends like no known format: it takes one of"):
                registry.write(kafka, tmp_path / name)
            assert registry.write(kafka, tmp_path / name, format="kafka")

    @each_format
    def test_a_file_that_was_read_is_replaced_only_when_told_so(self, tmp_path, name):
        path, link = tmp_path / ("c" + NATIVE[name]), tmp_path / "link"
        registry.write(full_cluster(), path)
        registry.write(full_cluster(), path)  # it was only written so far
        cluster, before = registry.read(path), path.read_bytes()
        link.symlink_to(path)
        for file in (path, link, tmp_path / "." / path.name):
            with pytest.raises(InvalidInput, match="is a file that was read"):
                registry.write(cluster.with_placement(cluster.placement), file, name)
        assert path.read_bytes() == before
        registry.write(cluster, path, overwrite=True)
        registry.write(cluster, path)
        registry.read(path)
        path.unlink()
        registry.write(cluster, path)

    def test_nor_is_a_file_that_goes_with_the_one_asked_for(self, kafka, tmp_path):
        plan, back = tmp_path / "plan.json", tmp_path / "plan.rollback.json"
        registry.write(kafka, back)
        again = registry.read(back)
        with pytest.raises(InvalidInput, match=r"plan\.rollback\.json: is|rollback") as caught:
            registry.write(again, plan, placement=again.placement)
        assert [fault.value for fault in caught.value.faults] == [str(back)]
        assert not plan.exists()

    def test_nor_is_the_assignment_that_was_found_beside_a_model(self, tmp_path):
        for file in (places.DATA / "roadef" / "worked").iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        cluster = registry.read(tmp_path / "model_worked.txt")
        with pytest.raises(InvalidInput, match="is a file that was read"):
            registry.write(cluster, tmp_path / "assignment_worked.txt")
        written = registry.write(cluster, tmp_path / "new.txt")
        assert [file.name for file in written] == ["new.txt"]


class TestAtomicWriting:
    def test_a_failed_write_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "c.txt"
        write_atomically(path, b"old")

        def fail(descriptor):
            raise OSError("disk full")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_atomically(path, b"new")
        assert path.read_bytes() == b"old"
        assert [file.name for file in tmp_path.iterdir()] == ["c.txt"]

    def test_permissions_and_links_stay(self, tmp_path):
        path, link = tmp_path / "c.txt", tmp_path / "link"
        path.write_bytes(b"old")
        path.chmod(0o640)
        link.symlink_to(path)
        write_atomically(link, b"new")
        assert link.is_symlink()
        assert path.read_bytes() == b"new"
        assert path.stat().st_mode & 0o777 == 0o640


def test_misfits_of_nested_types_are_all_found():
    faults = FaultList()
    document = Document("a.json", b'{"x": [1, "a"], "y": [null], "z": [0]}')
    assert decode_json(faults, document, dict[str, list[int]]) is None
    assert [fault.path for fault in faults.faults] == ["a.json: x[1]", "a.json: y[0]"]
