"""How files find their format: alone, together, packed, in folders and archives, from a pipe."""

import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.systems import documents, registry
from evenkeel.systems.documents import BEFOREHAND, FREE_GROWTH, LARGE, Document
from evenkeel.systems.kafka.rows import CHUNK
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats"
NAMES = ("kafka_describe.txt", "kafka_logdirs.txt", "kafka_racks.json")
FILES = [DATA / name for name in NAMES]


@pytest.fixture(scope="module")
def together():
    return registry.read(FILES)


def archive(kind=zipfile.ZIP_DEFLATED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return file.getvalue()


def test_files_that_belong_together_are_joined_in_any_order(together):
    assert_same(registry.read(*FILES), together)
    assert_same(registry.read(*reversed(FILES)), together)
    assert_same(registry.read(FILES[:1], *FILES[1:]), together)


def test_what_gzip_packed_is_unpacked(together, tmp_path):
    packed = tmp_path / "topics.gz"
    packed.write_bytes(gzip.compress(FILES[0].read_bytes()))
    parts = gzip.compress(FILES[1].read_bytes()[:50]) + gzip.compress(FILES[1].read_bytes()[50:])
    assert_same(registry.read(packed, parts, FILES[2]), together)


def test_a_pipe_is_read_and_named(together):
    with FILES[0].open("rb") as file:
        assert_same(registry.read(file, *FILES[1:]), together)
    with (DATA / "kafka_racks.json").open("rb") as file, pytest.raises(InvalidInput) as caught:
        registry.read(file, b"Topic: a\tPartitionCount: 2\n")
    assert caught.value.faults[0].path == "<bytes>:1"


def test_a_folder_or_archive_is_taken_apart(together, tmp_path):
    for file in FILES:
        inner = tmp_path / "dump" / "deep" / file.name
        inner.parent.mkdir(parents=True, exist_ok=True)
        inner.write_bytes(file.read_bytes())
    assert_same(registry.read(tmp_path / "dump"), together)
    assert_same(registry.read(tmp_path / "dump", format="kafka"), together)
    members = {file.name: file.read_bytes() for file in FILES}
    assert_same(registry.read(archive(**members)), together)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="or none"):
        registry.read(tmp_path / "empty")


def test_what_is_wrong_inside_an_archive_is_named_by_its_member():
    text = (
        b"Topic: a\tPartitionCount: 1\n\tTopic: a\tPartition: x\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    with pytest.raises(InvalidInput) as caught:
        registry.read(archive(**{"dump/topics.txt": text}))
    assert [fault.path for fault in caught.value.faults] == ["<bytes>/dump/topics.txt:2"]


def test_a_stranger_among_others_is_named_with_what_they_are():
    with pytest.raises(InvalidInput) as caught:
        registry.read(*FILES, b"hello")
    (fault,) = caught.value.faults
    assert (fault.path, fault.value) == ("<bytes>", b"hello")
    assert "the others are of 'kafka', which reads" in fault.message


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_read_by_its_mark(order):
    text = FILES[0].read_text()
    cluster = registry.read(f"\ufeff{text}".encode(order), *FILES[1:])
    assert_same(cluster, registry.read(*FILES))


@pytest.mark.parametrize("others", [(), FILES[:1]])
@pytest.mark.parametrize("data", [b"{", b'[{"id": "a"', b'\n{"partitions": [1, '])
def test_json_that_is_cut_off_before_it_shows_what_it_is_is_said_to_be(data, others):
    with pytest.raises(InvalidInput) as caught:
        registry.read(*others, data)
    (fault,) = caught.value.faults
    assert "ends in the middle of its JSON" in fault.message
    assert fault.path == f"<bytes>:{1 + data.count(bytes([10]))}"
    with pytest.raises(InvalidInput, match="ends in the middle of its JSON"):
        registry.read(*others, data, format="kafka")


def test_files_of_different_formats_are_said_to_be_what_they_are():
    rows = b'{"format":"evenkeel-rows"}'
    with pytest.raises(InvalidInput, match="files of different formats") as caught:
        registry.read(FILES[0], rows)
    assert caught.value.faults[0].value == {
        str(FILES[0]): ["kafka: description"], "<bytes>": ["native-rows: rows"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(b"Topic: a")[:-6], "broken or truncated where gzip packed it"),
        (b"\x1f\x8b" + b"x" * 40, "broken or truncated where gzip packed it"),
        (gzip.compress(bytes(2 * FREE_GROWTH)), "unpacks to more than"),
        (archive(a=bytes(2 * FREE_GROWTH)), "unpacks to more than"),
        (archive(a=b"x" * 99)[:-30], "broken or truncated archive"),
        (archive(zipfile.ZIP_LZMA, a=b"x"), "neither stored nor deflated"),
    ],
    ids=["cut gzip", "no gzip", "gzip bomb", "zip bomb", "cut zip", "lzma"],
)
def test_packed_files_that_are_broken_or_bombs_are_refused(data, said):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=said) as caught:
            registry.read(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * FREE_GROWTH
    finally:
        tracemalloc.stop()
    assert caught.value.faults[0].path == "<bytes>"


def test_what_grows_beyond_belief_is_not_unpacked_to_its_end():
    data = gzip.compress(bytes(2 * FREE_GROWTH)) * 400  # 3 GB, and its limit is 800 MB
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        registry.read(data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 3 * BEFOREHAND


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no such device")
def test_a_device_is_refused_and_a_pipe_is_read_to_its_end():
    with pytest.raises(InvalidInput, match="must be a file"):
        registry.read("/dev/zero")
    rows = FILES[0].read_bytes()
    reading, writing = os.pipe()
    with open(writing, "wb") as file:  # noqa: PTH123
        file.write(rows[:4_000])
    document = Document.load(f"/dev/fd/{reading}")
    os.close(reading)
    assert document.data == rows[:4_000]


def test_a_long_description_takes_less_than_twice_itself_and_its_arrays():
    count = 100_000
    rows = "".join(
        f"\tTopic: t\tPartition: {p}\tLeader: {p % 90}\tReplicas: {held}\tIsr: {held}\n"
        for p, held in ((p, f"{p % 90},{p % 90 + 1},{p % 90 + 2}") for p in range(count))
    )
    data = f"Topic: t\tPartitionCount: {count}\tReplicationFactor: 3\tConfigs: \n{rows}".encode()
    registry.read(data[: data.index(b"\tTopic: t\tPartition: 1\t")].replace(b"100000", b"1"))
    del rows
    tracemalloc.start()
    try:
        cluster = registry.read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    parts = cluster.partitions, cluster.placement
    arrays = sum(a.nbytes for part in parts for a in vars(part).values() if hasattr(a, "nbytes"))
    # what is taken apart at a time is no part of what grows
    assert peak < 2 * (len(data) + arrays) - len(data) + 12 * CHUNK


def test_a_large_stranger_is_not_read_to_its_end(tmp_path):
    file = tmp_path / "disk.img"
    with file.open("wb") as image:
        image.truncate(LARGE + 1)  # sparse
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=r"disk\.img.* is in no known format"):
        registry.read(file)
    with pytest.raises(InvalidInput, match=r"disk\.img.* no known format; known: \['kafka'\]"):
        registry.read(*FILES, file, format="kafka")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < LARGE // 16


def test_a_large_file_that_is_known_is_read(monkeypatch, together):
    monkeypatch.setattr(documents, "LARGE", 100)
    monkeypatch.setattr(documents, "BEGINNING", 1000)
    assert_same(registry.read(FILES), together)


def test_what_memory_does_not_hold_is_refused_by_name(monkeypatch):
    def load(source):
        raise MemoryError

    monkeypatch.setattr(Document, "load", load)
    size = FILES[0].stat().st_size
    with pytest.raises(InvalidInput, match=rf"takes more memory than there is.*{size} bytes"):
        registry.read(FILES[0])


def test_no_file_at_all_is_refused():
    with pytest.raises(InvalidInput, match="names no file"):
        registry.read([])


def test_a_plain_file_has_itself_inside():
    document = Document("a.txt", b"x")
    assert document.inside() == (document,)


READ = """
import sys
import evenkeel as ek

ek.read(*sys.argv[1:])
print(*(name for name in sys.modules if "longhorn" in name))
"""


def test_of_rooms_that_are_passed_over_only_what_recognises_is_loaded():
    files = [str(file) for file in (DATA / "helix").rglob("*") if file.is_file()]
    command = [sys.executable, "-c", READ, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    apart = "evenkeel.systems.longhorn"
    assert {*done.stdout.split()} == {apart, f"{apart}.answers", f"{apart}.objects"}


@pytest.mark.parametrize("name", registry.ROOMS)
def test_what_recognises_is_that_of_the_format(name):
    found = registry.find(name)
    assert found.name == name
    assert registry._recogniser(name) is found.recognises


HINTED = [
    (b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{}}', "kafka-topics.sh --describe"),
    (b"NodeId\tDirectoryId\tLogEndOffset\tLag\n1\tx\t4\t0\n", "kafka-topics.sh --describe"),
    (b"GROUP  TOPIC  PARTITION  CURRENT-OFFSET\ng  t  0  7\n", "kafka-topics.sh --describe"),
    (b"Dynamic configs for broker 1 are:\n  log.retention.ms=1 \n", "kafka-topics.sh --describe"),
    (b"apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\n", "kafka-topics.sh --describe"),
    (b'{"rabbit_version":"3.13.7","queues":[{"name":"q","vhost":"/"}]}', "list_queues name type"),
    (b"Re-balancing leaders of quorum queues...\n", "list_queues name type"),
    (b"+------+----------+\n| name | messages |\n+------+----------+\n", "list_queues name type"),
    (b"index shard time type stage source_host\nwiki 0 73ms store done h\n", "_cat/shards"),
    (b'{"_shards":{"total":4,"successful":4,"failed":0},"_all":{}}', "_cat/shards"),
]


@pytest.mark.parametrize(("data", "remedy"), HINTED)
def test_what_lists_no_replicas_is_refused_with_what_to_give(data, remedy):
    with pytest.raises(InvalidInput) as caught:
        registry.read(data)
    (fault,) = caught.value.faults
    assert remedy in fault.message


def _chunk(version, kind, names, left, **fields):
    rest = {"continue": "x", "remainingItemCount": left} if left else {}
    items = [{"metadata": {"name": name}, **fields} for name in names]
    return {"kind": f"{kind}List", "apiVersion": version, "items": items,
            "metadata": {"resourceVersion": "7", **rest}}  # fmt: skip


def _streams(names):
    group = {"name": "C", "leader": "n"}
    streams = [{"config": {"name": name}, "cluster": group, "state": {}} for name in names]
    return {"type": "io.nats.jetstream.api.v1.stream_list_response", "streams": streams, "total": 3}


LONGHORN = "longhorn.io/v1beta2"
SIZE = {"size": "1", "numberOfReplicas": 1}


@pytest.mark.parametrize(
    ("of", "pages"),
    [
        ("objects of a PodList",
         [_chunk("v1", "Node", "n", 0), _chunk("v1", "Pod", "ab", 1, spec={}),
          _chunk("v1", "Pod", "c", 0, spec={})]),
        ("objects of a VolumeList",
         [_chunk(LONGHORN, "Node", "n", 0, spec={}), _chunk(LONGHORN, "Volume", "ab", 1, spec=SIZE),
          _chunk(LONGHORN, "Volume", "c", 0, spec=SIZE)]),
        ("streams", [_streams("ab"), _streams("c")]),
    ],
)  # fmt: skip
def test_a_list_of_which_pages_are_missing_is_noted(of, pages):
    given = [json.dumps(one).encode() for one in pages]
    whole, part = registry.read(given), registry.read(given[:-1])
    assert not [one for one in registry.system_of(whole).left_out(whole) if "all of them" in one]
    assert [
        one for one in registry.system_of(part).left_out(part) if one.startswith(f"2 of 3 {of}")
    ]


@pytest.mark.parametrize(
    "outside",
    [
        "1 a\n2 b\n",
        "a,1\nb,2\n",
        "a\tb\n",
        "a: z1\n",
        "node rack\nn1 a\n",
        "a b\nc d\n",
        "`a` `b`\n",
    ],
)
def test_lines_outside_of_fences_that_may_be_data_stay(outside):
    page = f"{outside}\n```\nTopic\n```\n".encode()
    assert Document.load(page).data == f"{outside}\n\nTopic\n\n".encode()


@pytest.mark.parametrize(
    "outside",
    [
        "# Racks\n",
        "**Racks**\n",
        "Problem: 3 partitions are on one\n",
        "2. **We print the state**\n",
        "<details>\n",
        "What follows, as printed,\nis of 3 racks:\n",
    ],
)
def test_prose_outside_of_fences_goes(outside):
    page = f"{outside}\n```\na: b\n```\n".encode()
    assert Document.load(page).data.split() == [b"a:", b"b"]


def test_marks_of_code_in_a_cell_are_no_fence():
    assert Document.load(b"partition,node\n0,a```b\n1,c\n").data.count(b",") == 3
