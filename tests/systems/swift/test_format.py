"""Swift's rings are read, and written as Swift reads them."""

import gzip
import hashlib
import json
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.errors import InvalidInput
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.documents import Document
from evenkeel.systems.swift.ring import recognises
from tests.support import places
from tests.support.clusters import assert_same

FILE = places.DATA / "formats" / "swift" / "object.ring.gz"


CALLED = []


def note_call(given):
    CALLED.append(given)


class Calls:
    """What calls a function when it is loaded."""

    def __reduce__(self):
        return note_call, (1,)


def device(number, zone=1, region=1, weight=100.0, **more):
    usual = {
        "id": number, "region": region, "zone": zone, "ip": f"10.0.0.{number + 1}", "port": 6200,
        "device": "sdb1", "weight": weight, "meta": "",
    }  # fmt: skip
    return usual | more


def ring(devices, rows, *, order="little", **head):
    """The unpacked file of a ring with one row of devices per replica."""
    parts = len(rows[0])
    shift = 32 - parts.bit_length() + 1
    count = len(rows) - 1 + len(rows[-1]) / parts
    told = {"devs": devices, "part_shift": shift, "replica_count": count, "byteorder": order}
    text = json.dumps(told | head).encode()
    mark = "<" if order == "little" else ">"
    body = b"".join(np.array(row, f"{mark}u2").tobytes() for row in rows)
    return struct.pack("!4sHI", b"R1NG", 1, len(text)) + text + body


def sections(data, *, wide=2, cut=0, wrong=False):
    """The same ring as version 2 has it: sections, each with its length, and an index of them."""
    length = struct.unpack_from("!4sHI", data)[2]
    head = json.loads(data[10 : 10 + length])
    order = "<" if head["byteorder"] == "little" else ">"
    ids = np.frombuffer(data, f"{order}u2", offset=10 + length).astype(np.uint64)
    ids[ids == 65535] = (1 << 8 * wide) - 1
    meta = {"part_shift": head["part_shift"], "dev_id_bytes": wide, "version": 7}
    parts = {
        "swift/ring/metadata": json.dumps(meta).encode(),
        "swift/ring/devices": json.dumps(head["devs"]).encode(),
        "swift/ring/assignments": ids[: len(ids) - cut].astype(f">u{wide}").tobytes(),
    }
    whole, index = struct.pack("!4sH", b"R1NG", 2), {}
    for name, own in parts.items():
        blob = struct.pack("!Q", len(own)) + own
        digest = hashlib.sha256(blob + b"x" * wrong).hexdigest()
        index[name] = [1, len(whole), 2, len(whole) + len(blob), "sha256", digest]
        whole += blob
    text = json.dumps(index).encode()
    tail = struct.pack("!QQ", len(whole), 99)
    return whole + struct.pack("!Q", len(text)) + text + tail


def unpacked(file):
    """Header and rows of a ring that was written."""
    data = gzip.decompress(file.read_bytes())
    _, _, length = struct.unpack_from("!4sHI", data)
    head = json.loads(data[10 : 10 + length])
    parts = 1 << (32 - head["part_shift"])
    mark = "<" if head.get("byteorder", "little") == "little" else ">"
    flat = np.frombuffer(data, f"{mark}u2", offset=10 + length)
    return head, [flat[i : i + parts].tolist() for i in range(0, len(flat), parts)]


def faults_of(data):
    with pytest.raises(InvalidInput) as caught:
        registry.read(data, format="swift")
    return [(fault.path.removeprefix("<bytes>: "), fault.value) for fault in caught.value.faults]


class TestReading:
    def test_devices_are_nodes_and_partitions_count_up(self):
        cluster = registry.read(FILE)
        assert (len(cluster.nodes), len(cluster.partitions)) == (7, 64)
        assert cluster.nodes.names[0] == "d0r1z1-10.0.0.1:6200/sdb1"
        assert cluster.topology.tiers[:3] == ("region", "zone", "server")
        assert (cluster.placement.leader == -1).all()
        head, rows = unpacked(FILE)
        ids = [one["id"] for one in head["devs"] if one]
        own = np.array(ids)[cluster.placement.nodes]
        assert own.T.tolist() == rows

    def test_weights_say_how_much_and_none_says_leave(self):
        nodes = registry.read(FILE).nodes
        assert nodes.weight.tolist() == [100, 100, 100, 100, 200, 100, 0]
        assert nodes.keeps.tolist() == [True] * 6 + [False]
        assert nodes.capacity[:5, 0].tolist() == [96, 96, 96, 96, 192]

    def test_replicas_stand_as_far_apart_as_weights_let_them(self):
        devices = [device(i, zone=i // 2) for i in range(6)]
        rows = [[0, 1], [2, 3], [4, 5]]
        assert registry.read(ring(devices, rows)).rules[0].spread == {
            "region": 3, "zone": 1, "server": 1,
        }  # fmt: skip
        devices[0]["weight"] = 500.0
        heavier = registry.read(ring(devices, rows))
        assert heavier.rules[0].spread == {
            "region": 3, "zone": 2, "zone of at most 1": 1, "server": 1,
        }  # fmt: skip
        row = heavier.topology.tiers.index("zone of at most 1")
        assert heavier.topology.label[row].tolist() == [-1, -1, 0, 0, 1, 1]
        assert registry.read(ring(devices, rows), spread={"zone": 3}).rules[0].spread == {"zone": 3}

    @given(
        weights=st.lists(st.sampled_from([0.0, 1.0, 50.0, 100.0, 4000.0]), min_size=3, max_size=9),
        zones=st.integers(1, 3),
    )
    def test_some_placement_keeps_the_shares_of_all_domains(self, weights, zones):
        """What one device cannot hold, other domains may."""
        weights[:3] = [max(one, 1.0) for one in weights[:3]]
        devices = [device(i, zone=i % zones, weight=one) for i, one in enumerate(weights)]
        cluster = registry.read(ring(devices, [[0, 1], [1, 2], [2, 0]]))
        result = solve(cluster, "balance")
        assert result.audit.hard == 0

    def test_a_fraction_of_the_partitions_has_one_more(self):
        devices = [device(i) for i in range(3)]
        cluster = registry.read(ring(devices, [[0, 1, 2, 0], [1, 2]]))
        assert cluster.partitions.replicas.tolist() == [2, 2, 1, 1]
        assert cluster.placement.nodes.tolist() == [[0, 1], [1, 2], [2, -1], [0, -1]]

    @pytest.mark.parametrize("short", [1, 3])
    def test_a_short_last_row_is_whole_where_a_checksum_says_so(self, short, tmp_path):
        """Swift's header counts rows: 1.25 replicas are 2 of them."""
        rows = [[0, 1, 2, 0], [1, 2, 0][:short]]
        data = ring([device(i, zone=i % 2) for i in range(3)], rows, replica_count=2)
        (tmp_path / "object.ring.gz").write_bytes(gzip.compress(data))
        with zipfile.ZipFile(tmp_path / "rings.zip", "w") as archive:
            archive.writestr("object.ring", data)
        for packed in (gzip.compress(data), tmp_path / "object.ring.gz", tmp_path / "rings.zip"):
            cluster = registry.read(packed)
            assert cluster.partitions.replicas.tolist() == [2] * short + [1] * (4 - short)
            assert cluster.rules[0].spread["zone"] == 1 + (short > 2)  # zone 0 has two thirds
            (file,) = registry.write(cluster, tmp_path / "o.ring.gz")
            assert gzip.decompress(file.read_bytes()) == data
        assert faults_of(data) == [("<bytes>", 2 * sum(map(len, rows)))]

    @pytest.mark.parametrize("length", [3, 4, 9])
    def test_a_checksum_does_not_make_up_for_rows(self, length):
        data = ring([device(0)], [[0] * 4, [0] * length], replica_count=3 if length < 9 else 2)
        with pytest.raises(InvalidInput, match="do not fit"):
            registry.read(gzip.compress(data))

    @pytest.mark.parametrize("order", ["little", "big"])
    def test_either_order_of_bytes(self, order, tmp_path):
        rows = [[0, 299], [299, 0]]
        devices = [device(0), *[None] * 298, device(299)]
        data = ring(devices, rows, order=order)
        cluster = registry.read(data)
        assert cluster.placement.nodes.tolist() == [[0, 1], [1, 0]]
        (file,) = registry.write(cluster, tmp_path / "o.ring.gz")
        assert gzip.decompress(file.read_bytes()) == data

    def test_addresses_of_version_six(self):
        cluster = registry.read(ring([device(0, ip="fe80::1")], [[0]]))
        assert cluster.nodes.names[0] == "d0r1z1-[fe80::1]:6200/sdb1"


class TestBadInput:
    def test_everything_wrong_is_listed_with_its_place(self):
        devices = [device(0), device(5), device(2, ip="10.0.0.1"), None]
        assert faults_of(ring(devices, [[0, 3], [2, 9]])) == [
            ("devs[1].id", 5),
            ("devs[2].device", "sdb1"),
        ]
        devices = [device(0, weight=-1.0, port="x"), device(1, weight="much")]
        assert {path for path, _ in faults_of(ring(devices, [[0, 0]]))} == {
            "devs[0].weight", "devs[0].port", "devs[1].weight",
        }  # fmt: skip

    def test_truncated_at_any_place(self):
        data = gzip.decompress(FILE.read_bytes())
        for length in range(0, len(data), 7):
            with pytest.raises(InvalidInput):
                registry.read(data[:length], format="swift")

    @pytest.mark.parametrize("wide", [2, 4, 8])
    def test_sections_are_read_as_the_first_version(self, tmp_path, wide):
        first = gzip.decompress(FILE.read_bytes())
        old, new = registry.read(first), registry.read(gzip.compress(sections(first, wide=wide)))
        assert np.array_equal(old.placement.node, new.placement.node)
        assert list(old.nodes.names) == list(new.nodes.names)
        assert np.array_equal(old.nodes.capacity, new.nodes.capacity)
        notes = [*registry.find("swift").left_out(new)]
        assert "a plan is written as version 1" in notes[0]
        result = solve(new)
        files = registry.write(new, tmp_path / "object.ring.gz", placement=result)
        head, rows = unpacked(files[0])
        assert head["replica_count"] == len(rows) and head["version"] in (7, 8)
        assert np.array_equal(registry.read(files[0]).placement.node, result.placement.node)

    def test_a_last_section_may_be_a_part_of_a_row(self):
        first = gzip.decompress(FILE.read_bytes())
        cluster = registry.read(sections(first, cut=20))
        assert (
            cluster.partitions.replicas.sum() == registry.read(first).partitions.replicas.sum() - 20
        )

    def test_sections_that_are_broken(self):
        first = gzip.decompress(FILE.read_bytes())
        data = sections(first)
        for length in range(0, len(data), 7):
            with pytest.raises(InvalidInput):
                registry.read(data[:length], format="swift")
        with pytest.raises(InvalidInput, match="checksum"):
            registry.read(sections(first, wrong=True))

    def test_other_versions(self):
        data = bytearray(gzip.decompress(FILE.read_bytes()))
        data[5] = 3
        with pytest.raises(InvalidInput, match="another version"):
            registry.read(bytes(data))

    def test_builders_without_a_ring(self):
        builder = b"\x80\x02}q\x00(X\n\x00\x00\x00part_powerq\x01K\x0au."
        assert recognises(Document("o.builder", builder)) == "builder"
        with pytest.raises(InvalidInput, match="is a builder"):
            registry.read(builder)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("part_power", 10**12),
            ("part_power", 0),
            pytest.param("part_power", 10**5000, id="part_power-huge"),
            ("devs", None),
            ("devs", ["x"]),
            ("devs", [5]),
            ("version", "x"),
            ("overload", "x"),
            ("overload", [1]),
            ("overload", float("nan")),
            ("overload", -1.0),
            ("replicas", 0.5),
            ("replicas", 1e9),
            ("none_dev_id", "x"),
            ("_replica2part2dev", [1]),
            ("_replica2part2dev", [[[0], [0], [0], [0]]]),
            ("_replica2part2dev", ["0123"]),
            ("_replica2part2dev", [[0.5, 0, 0, 0]]),
            ("_replica2part2dev", [[10**20, 0, 0, 0]]),
            ("_replica2part2dev", [[-2, 0, 0, 0]]),
            ("_replica2part2dev", [[0] * 4, []] * 500),
        ],
    )
    def test_builders_with_other_values_are_refused(self, field, value):
        held = {"part_power": 2, "devs": [device(0)], "version": 1, "_replica2part2dev": [[0] * 4]}
        assert len(registry.read(pickle.dumps(held, protocol=2)).partitions) == 4
        with pytest.raises(InvalidInput, match="is a builder"):
            registry.read(pickle.dumps(held | {field: value}, protocol=2))

    @pytest.mark.parametrize(
        ("replicas", "counts", "more"),
        [(2.5, [3, 3, 2, 2], 2), (2.0, [2, 2, 2, 2], 0), (1.0, [1, 1, 1, 1], -4)],
    )
    def test_builders_have_as_many_replicas_as_they_were_set_to(self, replicas, counts, more):
        rows = [[0, 1, 2, 0], [1, 2, 0, 2]]
        held = {"part_power": 2, "devs": [*map(device, range(3))], "version": 1}
        held |= {"_replica2part2dev": rows, "replicas": replicas}
        cluster = registry.read(pickle.dumps(held, protocol=2))
        assert cluster.partitions.replicas.tolist() == counts
        assert np.diff(cluster.placement.first).tolist() == counts
        assert int((cluster.placement.node < 0).sum()) == max(more, 0)
        assert any("set_replicas" in note for note in cluster.native["notes"]) == bool(more)

    def test_of_devices_in_builders_flat_fields_count(self):
        devices = [device(0), device(1)]
        held = {"part_power": 2, "devs": devices, "version": 1, "_replica2part2dev": [[0] * 4]}
        doubled, key = ["x"], ("x",)
        for _ in range(40):
            doubled = [doubled, doubled]
        for _ in range(16):
            key = (key, key)
        devices[0] |= {"parts": 4, "own": held, "more": doubled, key: 1}
        cluster = registry.read(pickle.dumps(held, protocol=2))
        assert json.loads(cluster.native["header"])["devs"] == [device(0), device(1)]

    def test_builders_of_many_marks_are_refused(self):
        data = b"\x80\x02X\n\0\0\0part_power" + b"(" * 200_000 + b"t" * 200_000 + b"."
        with pytest.raises(InvalidInput, match="is a builder"):
            registry.read(data, format="swift")

    def test_builders_are_pickles_and_are_not_loaded(self):
        held = {"part_power": 1, "version": 1, "devs": [], "_replica2part2dev": [Calls()]}
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(InvalidInput):
                registry.read(pickle.dumps(held, protocol) + b"part_power")
        assert CALLED == []

    @pytest.mark.parametrize(
        "head", [{"part_shift": 0}, {"replica_count": 999.0}, {"replica_count": 1e300}]
    )
    def test_what_is_claimed_is_not_there(self, head):
        data = ring([device(0)], [[0]], **head)
        tracemalloc.start()
        try:
            with pytest.raises(InvalidInput):
                registry.read(data)
            assert tracemalloc.get_traced_memory()[1] < 10 << 20
        finally:
            tracemalloc.stop()


class TestWriting:
    def test_a_ring_holds_the_placement_and_the_one_before_stands_beside_it(self, tmp_path):
        cluster = registry.read(FILE)
        result = solve(cluster)
        assert not [one for one in result.violations if one.hard]
        files = registry.write(cluster, tmp_path / "o.ring.gz", placement=result)
        assert [one.name for one in files] == ["o.ring.gz", "o.undo.ring.gz"]
        again, back = map(registry.read, files)
        assert again.placement.nodes.tolist() == result.placement.nodes.tolist()
        assert_same(back, cluster)
        assert unpacked(files[0])[0]["version"] == unpacked(FILE)[0]["version"] + 1

    def test_a_replica_is_not_given_up(self, tmp_path):
        cluster = registry.read(FILE)
        node = cluster.placement.node.copy()
        node[7] = -1
        target = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match="p2: would give up a replica"):
            registry.write(cluster, tmp_path / "o.ring.gz", placement=target)
        assert [*tmp_path.iterdir()] == []


@given(
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(0, 31),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_any_ring_comes_back(tmp_path_factory, power, replicas, short, devices, random):
    parts = 2**power
    rows = [[random.randrange(devices) for _ in range(parts)] for _ in range(replicas)]
    rows[-1] = rows[-1][: parts - short % parts] if replicas > 1 else rows[-1]
    data = ring([device(i, zone=i % 3) for i in range(devices)], rows)
    (file,) = registry.write(registry.read(data), tmp_path_factory.mktemp("swift") / "o.ring.gz")
    assert gzip.decompress(file.read_bytes()) == data
