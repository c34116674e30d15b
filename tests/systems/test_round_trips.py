"""Random dumps of the systems, read and written unsolved: files and clusters are the same.

Kafka, Helix, tables and our own files have theirs beside their other tests.
"""

import csv
import gzip
import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.systems import registry
from tests.support.clusters import assert_same
from tests.support.dumps import (
    ceph,
    cockroach,
    elasticsearch,
    kubernetes,
    longhorn,
    nats,
    qdrant,
    rabbitmq,
    roadef,
    swift,
)

draws = st.integers(0, 2**32 - 1).map(random.Random)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dumps")


def there_and_back(system, first, beside, path):
    """Write what is read of some files without a placement, read it again, and compare."""
    cluster = registry.read([first, *beside], format=system)
    files = registry.write(cluster, path, system, overwrite=True)
    contents = [file.read_bytes() for file in files]
    assert_alike(cluster, registry.read([*contents, *beside], format=system))
    return contents


def assert_alike(one, other):
    """Compare clusters; the payload only where it holds no places of a file."""
    if one.native_format == "kubernetes":
        assert one.native.notes == other.native.notes and one.native.hosts == other.native.hosts
        one, other = one.replace(native=None), other.replace(native=None)
    if one.native_format == "longhorn":
        assert one.native.objects.items == other.native.objects.items
        one, other = one.replace(native=None), other.replace(native=None)
    if one.native_format == "cockroach":  # what is written has the localities of node status
        one, other = (without_notes(each, "other localities") for each in (one, other))
    assert_same(one, other)


def without_notes(cluster, *words):
    """Return a cluster without the notes in which one of some words is."""
    notes = tuple(one for one in cluster.native.notes if not any(word in one for word in words))
    return cluster.replace(native=replace(cluster.native, notes=notes))


def rows_of(text):
    return sorted(json.dumps(row, sort_keys=True) for row in json.loads(text))


@given(draws)
def test_ceph(folder, draw):
    osd_map, crush = ceph.dump(draw)
    files = [ceph.encoded(osd_map), ceph.encoded(crush)]
    cluster = registry.read(files, format="ceph")
    bare = {"pg_upmap_items": [], "pg_upmap_primaries": []}
    written = registry.write(cluster, folder / "commands.sh", "ceph", overwrite=True)
    contents = [file.read_bytes() for file in written]
    again = registry.read([ceph.encoded(osd_map | bare), files[1], *contents], format="ceph")
    # pairs against a rule, or without effect, are noted, count as dropped, and are not all written
    dropped = ("against the rule", "without effect")
    assert_same(*(without_notes(each, *dropped) for each in (again, cluster)))


@given(draws)
def test_cockroach(folder, draw):
    rows, beside = cockroach.dump(draw)
    first = cockroach.table(rows, draw)
    (written,) = there_and_back("cockroach", first, beside, folder / "ranges.csv")
    after = [*csv.DictReader(io.StringIO(written.decode()))]
    assert {row["range_id"] for row in after} == {row["range_id"] for row in rows}
    by_id = {row["range_id"]: row for row in after}
    for row in rows:
        for column in row.keys() & {"database_name", "schema_name", "table_name", "index_name"}:
            assert by_id[row["range_id"]][column] == row[column]


@pytest.mark.parametrize(
    ("system", "dump"), [("elasticsearch", elasticsearch.dump), ("rabbitmq", rabbitmq.dump)]
)
@given(draws)
def test_tables_in_json(folder, system, dump, draw):
    rows, beside = dump(draw)
    first = json.dumps(rows).encode()
    (written,) = there_and_back(system, first, beside, folder / f"{system}.json")
    assert rows_of(written) == rows_of(first)


@pytest.mark.parametrize(
    ("system", "dump"), [("kubernetes", kubernetes.dump), ("longhorn", longhorn.dump)]
)
@given(draws)
def test_lists_of_resources(folder, system, dump, draw):
    objects = dump(draw)
    first = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()
    (written,) = there_and_back(system, first, [], folder / f"{system}.json")
    assert rows_of(json.dumps(json.loads(written)["items"])) == rows_of(json.dumps(objects))


@given(draws)
def test_swift(folder, draw):
    first = swift.dump(draw)
    (written,) = there_and_back("swift", first, [], folder / "object.ring.gz")
    assert gzip.decompress(written) == first


@given(draws)
def test_roadef(folder, draw):
    files = roadef.dump(draw)
    names = [folder / f"{kind}_in.txt" for kind in ("model", "assignment")]
    for name, content in zip(names, files, strict=True):
        name.write_bytes(content)
    cluster = registry.read(names, format="roadef")
    written = registry.write(cluster, folder / "model_out.txt", "roadef", overwrite=True)
    assert [file.read_bytes().split() for file in written] == [one.split() for one in files]
    assert_same(registry.read(written, format="roadef"), cluster)


@given(draws)
def test_nats(folder, draw):
    first = nats.encoded(nats.dump(draw))
    (written,) = there_and_back("nats", first, [], folder / "nats.json")
    rows = json.loads(written)
    assert nats.encoded(rows if isinstance(rows, list) else [rows]) == first


@given(draws)
def test_qdrant(folder, draw):
    rows = qdrant.dump(draw)
    (written,) = there_and_back("qdrant", qdrant.encoded(rows), [], folder / "qdrant.json")
    named = [{"collection": "collection"} | one for one in rows]
    assert [*map(json.loads, written.splitlines())] == named


HERE = {
    "ceph", "cockroach", "elasticsearch", "kubernetes", "longhorn", "nats", "qdrant", "rabbitmq",
    "roadef", "swift",
}  # fmt: skip
ELSEWHERE = {
    "kafka": "kafka/test_format.py", "helix": "helix/test_format.py",
    "tables": "tables/test_format.py",
    "native-npz": "native/test_format.py", "native-rows": "native/test_format.py",
}  # fmt: skip
"""Formats whose clusters are drawn by hypothesis, beside their other tests."""

ONE_WAY = {"rebalancer-npz"}  # what nobody writes


def test_every_format_has_a_round_trip():
    assert HERE | ELSEWHERE.keys() | ONE_WAY == registry.ROOMS.keys()
    folder = Path(__file__).parent
    assert all("@given" in (folder / name).read_text() for name in ELSEWHERE.values())
    for name in ONE_WAY:
        assert registry.find(name).encode is None
