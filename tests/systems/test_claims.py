"""What a file only claims takes neither memory nor time."""

import contextlib
import gzip
import io
import json
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.systems import registry
from tests.support.fuzzing.damage import npy

MOST_MEMORY = 100 << 20


def archive(**arrays):
    """An archive of arrays, or of members that are bytes already; it is compressed."""
    file = io.BytesIO()
    given = {"capacity": np.ones((2, 1)), "load": np.ones((3, 1)),
             "replicas": np.ones(3, np.int32)} | arrays  # fmt: skip
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, array in given.items():
            out.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))
    return file.getvalue()


def header(text, data=b""):
    """The bytes of an array whose header says anything."""
    padded = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + data


def claiming(shape, dtype="<f8", data=b""):
    return header(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}", data)


def rows(**changes):
    given = {
        "format": "evenkeel-rows", "version": 1, "dimensions": ["cpu"],
        "nodes": [{"name": "a", "capacity": [1]}], "partitions": [{"name": "p", "load": [1]}],
    }  # fmt: skip
    return json.dumps(given | changes).encode()


def wanting(count, replicas):
    return [{"name": f"p{i}", "load": [1], "replicas": replicas} for i in range(count)]


CLAIMS = {
    "shape": ("native-npz", archive(load=claiming("(99999999999, 1)"))),
    "nothing in many rows": ("native-npz", archive(load=claiming("(99999999999, 0)"))),
    "characters": ("native-npz", archive(node_names=claiming("(9,)", "<U99999999"))),
    "bomb": ("native-npz", archive(load=np.zeros((20_000_000, 1), bool))),
    "replicas of all": ("native-npz", archive(load=np.zeros((2000, 1)), replicas=np.array(32767))),
    "replicas of each": ("native-rows", rows(partitions=wanting(200, 32767))),
    "nodes nested": ("native-rows", b'{"format":"evenkeel-rows","nodes":' + b"[" * 9000),
    "native nested": ("native-rows", rows()[:-1] + b',"native":' + b"[" * 9000),
    "disk nested": ("kafka", b'{"brokerCapacities":[{"capacity":{"DISK":' + b'{"DISK":' * 900),
    "a number of many digits": ("kafka", b'{"partitions":[{"replicas":[' + b"7" * 9000 + b"]}]}"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_what_is_claimed_is_not_there(name):
    reader, data = CLAIMS[name]
    assert len(data) < 50_000
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as caught:
            registry.read(data, format=reader)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    assert all(fault.path.startswith("<bytes>") for fault in caught.value.faults)


def test_services_that_a_model_claims_are_not_there(tmp_path):
    (tmp_path / "model_x.txt").write_text("0 0 4294967295 1 1")
    (tmp_path / "assignment_x.txt").write_text("0")
    with pytest.raises(InvalidInput, match=r"model_x\.txt: services: the file ends"):
        registry.read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        header("{'descr': '<f8', 'shape': __import__('os').getcwd(), 'fortran_order': False}"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"),
        header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        claiming("(3,)", "|b1", b"\x00\x01\x02"),
        claiming("(1,)", "<U1", b"\x00\xd8\x00\x00"),
        claiming("(1,)", "<U1", b"\xff\xff\xff\x7f"),
        claiming("(2,)", "<f8", bytes(24)),
        b"\x93NUMPY\x01\x00\xff\xff{",
        npy(np.array([{"a": 1}], object)),
    ],
)
def test_members_are_plain_arrays_or_broken(content):
    with pytest.raises(InvalidInput, match="<bytes>: tags/x: is broken"):
        registry.read(archive(**{"tags/x": content}), format="native-npz")


@pytest.mark.parametrize(
    "content",
    [
        header("{ 'shape':(2L, ),'fortran_order' : False, 'descr':'|b1' }", b"\x00\x01"),
        header('{"descr": "|b1", "fortran_order": True, "shape": (2,)}', b"\x00\x01"),
    ],
)
def test_headers_that_others_write_are_read(content):
    cluster = registry.read(archive(**{"tags/x": content}), format="native-npz")
    assert cluster.nodes.tags["x"].tolist() == [False, True]


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_ordinary_compression_is_taken_apart(kind):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as out:
        out.writestr("capacity.npy", npy(np.ones((2, 1))))
    with pytest.raises(InvalidInput, match="neither stored nor deflated"):
        registry.read(file.getvalue(), format="native-npz")


def test_members_that_share_their_bytes_are_refused():
    data = bytearray(archive())
    at = data.rindex(b"PK\x01\x02")
    data[at + 20 : at + 24] = len(data).to_bytes(4, "little")  # compressed size
    with pytest.raises(InvalidInput, match=r"claims members of more|is broken|truncated"):
        registry.read(bytes(data), format="native-npz")


def test_conditions_that_contradict_each_other_are_told_once():
    wanted = [f"zone=z{i}" for i in range(300)]
    nodes = [{"name": z, "capacity": [1], "domains": {"zone": z[5:]}} for z in wanted]
    data = rows(nodes=nodes, tiers=["zone"], rules=[{"require": wanted}])
    with pytest.raises(InvalidInput) as caught:
        registry.read(data, format="native-rows")
    told = [fault for fault in caught.value.faults if "contradict" in fault.message]
    assert len(told) == 1


def test_a_long_line_takes_no_longer_than_a_description_as_long():
    lines = "".join(
        f"\tTopic: a\tPartition: {p}\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n" for p in range(1000)
    )
    description = b"Topic: a\tPartitionCount: 1000\tReplicationFactor: 2\n" + lines.encode()
    registry.read(description)

    def seconds(data):
        began = time.process_time()
        with contextlib.suppress(InvalidInput):
            registry.read(data, format="kafka")
        return time.process_time() - began

    ordinary = seconds(description)
    for line in (b"Topic: " + b"a" * 60_000, b"Topic:\t" * 8_000, b'{"partitions"' + b" " * 60_000):
        assert seconds(line) < 5 * ordinary


@pytest.mark.parametrize("words", [b"x ", b"0 "])
def test_a_packed_model_of_many_words_takes_little(tmp_path, words):
    model = tmp_path / "model_x.txt.gz"
    model.write_bytes(gzip.compress(words * 1_000_000))
    assert model.stat().st_size < 5_000
    (tmp_path / "assignment_x.txt").write_text("0")
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=r"model_x\.txt\.gz"):
            registry.read(model)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
