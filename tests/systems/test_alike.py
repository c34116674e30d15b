"""What holds for the dumps of every system alike: how they are found, refused, and solved."""

import contextlib
import gzip
import json
import re
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from evenkeel.cli import main
from evenkeel.model.changes import Changes
from evenkeel.model.errors import InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.names import Names
from evenkeel.planning.planner import plan
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.folders.writing import write_plan_folder
from tests.support import places
from tests.support.clusters import assert_same

FORMATS = places.DATA / "formats"


def files_of(system):
    folder = FORMATS / system
    return [one for one in sorted(folder.rglob("*")) if one.is_file()]


SYSTEMS = ["elasticsearch", "helix", "kubernetes", "nats", "qdrant", "rabbitmq", "swift"]
SUFFIX = {"swift": "plan.ring.gz"}


@pytest.fixture(params=SYSTEMS)
def system(request):
    return request.param


def same(one, other):
    """Clusters but for their payload, of which not every system's can be compared."""
    assert one.native_format == other.native_format
    assert list(one.partitions.names) == list(other.partitions.names)
    for part in ("nodes", "partitions", "placement"):
        mine, theirs = getattr(one, part), getattr(other, part)
        for name, value in vars(mine).items():
            if isinstance(value, np.ndarray):
                real = value.dtype.kind == "f"
                assert np.array_equal(value, getattr(theirs, name), equal_nan=real)
    assert one.rules == other.rules


def test_a_folder_is_found_by_its_content(system):
    cluster = registry.read(FORMATS / system)
    assert cluster.native_format == system
    assert len(cluster.nodes) > 1 and len(cluster.partitions) > 1


@pytest.mark.parametrize("system", ["elasticsearch", "kubernetes", "nats", "qdrant"])
def test_a_name_that_is_not_unicode_is_not_written(system, tmp_path):
    def unfit(value):
        if isinstance(value, dict):
            return {key: unfit(one) for key, one in value.items()}
        if isinstance(value, list):
            return [*map(unfit, value)]
        return f"{value}\ud800" if isinstance(value, str) else value

    cluster = registry.read(FORMATS / system)
    placement = solve(cluster, goals=Goals(level=0.0)).placement
    if system in ("nats", "qdrant"):  # who ask for streams and shards by what was read
        cluster = replace(cluster, native=unfit(cluster.native))
    else:
        names = Names([f"{name}\ud800" for name in cluster.nodes.names], len(cluster.nodes), "")
        cluster = replace(cluster, nodes=replace(cluster.nodes, names=names))
        if system == "kubernetes":  # whose nodes must be those that were read
            hosts = {name: name for name in names}
            cluster = replace(cluster, native=replace(cluster.native, hosts=hosts))
    with pytest.raises(InvalidInput, match="cannot be written as UTF-8"):
        registry.write(cluster, tmp_path / "out.json", placement=placement)


def test_the_order_of_files_does_not_matter(system):
    files = files_of(system)
    same(registry.read(files[::-1]), registry.read(files))


def test_zipped_or_packed_is_the_same(system, tmp_path):
    want = registry.read(FORMATS / system)
    file = tmp_path / "dump.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in files_of(system):
            data = one.read_bytes()
            # members of an archive are not packed again
            data = gzip.decompress(data) if one.suffix == ".gz" else data
            archive.writestr(str(one.relative_to(FORMATS / system)), data)
    same(registry.read(file), want)
    if system != "helix":  # whose records are told by their folders
        packed = [gzip.compress(one.read_bytes()) for one in files_of(system)]
        if system != "swift":
            same(registry.read(packed), want)


@pytest.mark.parametrize("named", [True, False])
def test_the_same_files_twice_are_refused(system, named):
    files = files_of(system)
    files = files if named else [one.read_bytes() for one in files]
    with pytest.raises(InvalidInput):
        registry.read([*files, *files], format=system)


@pytest.mark.parametrize("damage", ["latin-1", "empty", "half", "other"])
def test_a_damaged_file_is_refused_by_name(system, damage, tmp_path):
    *rest, last = files_of(system)
    data = last.read_bytes()
    data = gzip.decompress(data) if last.suffix == ".gz" else data
    if damage == "latin-1":
        data = data.replace(b'"name"', b'"n\xe4me"', 1).replace(b'"id"', b'"\xefd"', 1)
        data = data if b"\xe4" in data or b"\xef" in data else b"\xff" + data
    else:
        data = {"empty": b"", "half": data[: len(data) // 2], "other": b"0 1 2\n"}[damage]
    folder = tmp_path / last.parent.name
    folder.mkdir()
    file = folder / last.name
    file.write_bytes(data)
    with pytest.raises(InvalidInput) as caught:
        registry.read([*rest, file], format=system)
    assert any(fault.path.startswith(str(file)) for fault in caught.value.faults)


def test_a_text_in_utf_16_is_read_and_other_files_are_refused_by_name(system, tmp_path):
    *rest, last = files_of(system)
    data = last.read_bytes()
    data = gzip.decompress(data) if last.suffix == ".gz" else data
    file = tmp_path / last.name
    file.write_bytes(data.decode("latin-1").encode("utf-16"))
    if data.isascii():
        found, usual = (
            registry.read(files, format=system) for files in ([*rest, file], [*rest, last])
        )
        assert found.placement.node.tolist() == usual.placement.node.tolist()
        return
    with pytest.raises(InvalidInput) as refused:
        registry.read([*rest, file], format=system)
    assert any(fault.path.startswith(str(file)) for fault in refused.value.faults)


def test_the_command_line_refuses_it_and_writes_nothing(system, tmp_path, capsys):
    *rest, last = files_of(system)
    broken = tmp_path / "broken"
    broken.write_bytes(last.read_bytes()[:-20])
    out = tmp_path / SUFFIX.get(system, "plan.json")
    code = main(["solve", *map(str, rest), str(broken), "-o", str(out), "--format", system])
    assert code == 2
    assert [one.name for one in tmp_path.iterdir()] == ["broken"]
    assert "broken" in capsys.readouterr().err


def test_unsolved_it_comes_back_as_it_was(system, tmp_path):
    cluster = registry.read(FORMATS / system)
    files = registry.write(cluster, tmp_path / SUFFIX.get(system, "out.json"))
    assert len(files) == 1
    again = registry.write(
        registry.read(files[0], *context(system)), tmp_path / f"b-{files[0].name}"
    )
    assert files[0].read_bytes() == again[0].read_bytes()


def context(system):
    """The files of a system without those that a placement is written to."""
    written = {"elasticsearch": "shards", "rabbitmq": "queues", "swift": "object.ring"}
    if system in ("kubernetes", "nats", "qdrant"):
        return []
    if system == "helix":
        return [one for one in files_of(system) if not {"IDEALSTATES"} & {*one.parts}]
    return [one for one in files_of(system) if not one.name.startswith(written[system])]


@pytest.mark.parametrize("name", ["elasticsearch", "kubernetes", "nats", "rabbitmq"])
def test_a_truncated_answer_is_refused(name):
    files = files_of(name)
    for file in files:
        data, rest = file.read_bytes(), [one for one in files if one != file]
        for length in (len(data) // 2, len(data) - 4):
            with pytest.raises(InvalidInput):
                registry.read([*rest, data[:length]], format=name)


@pytest.mark.parametrize("suffix", [".npz", ".rows.json"])
@pytest.mark.parametrize("name", ["elasticsearch", "helix", "nats", "rabbitmq", "swift"])
def test_it_survives_the_native_formats(name, suffix, tmp_path):
    cluster = registry.read(FORMATS / name)
    registry.write(cluster, tmp_path / f"c{suffix}")
    assert_same(registry.read(tmp_path / f"c{suffix}"), cluster)


def test_the_same_placement_changes_nothing(system, tmp_path):
    cluster = registry.read(FORMATS / system)
    path = tmp_path / SUFFIX.get(system, "plan.json")
    files = registry.write(cluster, path, placement=cluster.placement)
    if system == "swift":
        assert files[0].read_bytes() == files[1].read_bytes()
    elif system == "rabbitmq":
        was = json.loads((FORMATS / system / "queues.json").read_text())
        assert json.loads(files[0].read_text()) == was
    else:
        document = json.loads(files[0].read_text())
        assert document in ([], {"commands": []}, {"cordon": [], "evictions": []})


def test_reading_takes_memory_as_the_file_does(system):
    registry.read(FORMATS / system)  # modules are loaded now
    files = files_of(system)
    size = sum(one.stat().st_size for one in files)
    tracemalloc.start()
    try:
        registry.read(FORMATS / system)
        assert tracemalloc.get_traced_memory()[1] < 60 * size + (8 << 20)
    finally:
        tracemalloc.stop()


def shuffled(cluster, seed):
    """A placement with every replica on a random node, no two of a partition on the same."""
    draw = np.random.default_rng(seed)
    node, first = cluster.placement.node.copy(), cluster.placement.first
    for p in range(len(cluster.partitions)):
        held = np.flatnonzero(node[first[p] : first[p + 1]] >= 0)[: len(cluster.nodes)]
        chosen = draw.choice(len(cluster.nodes), len(held), replace=False)
        node[first[p] + held] = chosen
    return cluster.placement.replaced(node, cluster.placement.leader)


def held_by(cluster, placement):
    """The names of the nodes that hold each partition."""
    names = cluster.nodes.names
    return {
        name: {names[n] for n in row if n >= 0}
        for name, row in zip(cluster.partitions.names, placement.nodes.tolist(), strict=True)
    }


def carried_out(system, cluster, files):
    """Who holds each partition once that was done which was written."""
    document = json.loads(files[0].read_text())
    held = held_by(cluster, cluster.placement)
    if system == "elasticsearch":
        # plan.json, then plan.2.json and so on; the others lead back
        ours = [file for file in files if re.fullmatch(r"plan(\.\d+)?\.json", file.name)]
        calls = [json.loads(file.read_text()) for file in ours]
        for command in (one for call in calls for one in call["commands"]):
            ((verb, what),) = command.items()
            own = held[f"{what['index']}/{what['shard']}"]
            # what is cancelled goes back to where it came from
            source, target = what.get("from_node"), what.get("to_node")
            if verb == "cancel":
                source, target = what["node"], "es-3"
            assert source in own and target not in own
            own.discard(source)
            own.add(target)
        return held
    if system == "nats":
        for one in (one for one in document if "server" in one["request"]):
            own, (tag, *_) = held[one["stream"]], one["request"]["tags"]
            own.remove(one["request"]["server"])
            own.add(tag.removeprefix("server:"))
        return held
    if system == "qdrant":
        for one in document:
            ((kind, what),) = one["request"].items()
            own = held[f"{one['collection']}/{what['shard_id']}"]
            assert kind == "move_shard"
            own.remove(str(what["from_peer_id"]))
            own.add(str(what["to_peer_id"]))
        return held
    if system == "rabbitmq":
        names = {tuple(key): name for name, key in cluster.native["keys"].items()}
        return {
            names[row["vhost"], row["name"]]: {*row["members"]}
            for row in document
            if (row["vhost"], row["name"]) in names
        }
    for one in document:
        for partition, nodes in one["listFields"].items() or one["mapFields"].items():
            held[partition] = {*nodes}
    return held


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", ["elasticsearch", "helix", "nats", "qdrant", "rabbitmq"])
def test_whatever_the_placement_is_it_is_brought_about(name, seed, tmp_path):
    cluster = registry.read(FORMATS / name)
    target = shuffled(cluster, seed)
    files = registry.write(cluster, tmp_path / "plan.json", placement=target)
    found = carried_out(name, cluster, files)
    assert found == held_by(cluster, target)


KAFKA = ("kafka_describe.txt", "kafka_logdirs.txt", "kafka_racks.json")
COCKROACH = ("node_status.csv", "ranges.csv", "store_status.tsv", "zones.sql")
WRITERS = {system: [FORMATS / system] for system in (*SYSTEMS, "pinot", "tables")} | {
    "ceph": [FORMATS / "ceph" / name for name in ("osd_dump.json", "crush.txt")],
    "cockroach": [FORMATS / "cockroach" / name for name in COCKROACH],
    "kafka": [FORMATS / name for name in KAFKA],
    "longhorn": [places.DATA / "longhorn" / "cluster.json"],
    "roadef": [places.DATA / "roadef" / "worked"],
}
WRITTEN = SUFFIX | {
    "ceph": "p.sh",
    "cockroach": "p.sql",
    "roadef": "model_p.txt",
    "tables": "p.csv",
}
FIRST = {"like": [0], "names": ["9999"]}
CHANGES = {
    "a node more": Changes(nodes=FIRST),
    "a node of another name": Changes(nodes=FIRST | {"names": ["other"]}),
    "a node less": Changes(remove_nodes=0),
    "a partition less": Changes(drop=0),
    "one replica": Changes(replicas=1),
}


def changed_since(system):
    """A cluster as it was read, then changed, by what was changed."""
    cluster = registry.read(WRITERS[system])
    for name, change in CHANGES.items():
        with contextlib.suppress(InvalidInput):  # a change that the cluster does not allow
            yield name, cluster.apply(change)
    load = [[0.0] * len(cluster.dimensions)]
    more = {"names": ["other"], "load": load, "placement": [[0]]}
    with contextlib.suppress(InvalidInput):
        yield "a partition more", cluster.apply(Changes(partitions=more))
    for part in ("node", "partition"):
        own = getattr(cluster, f"{part}s").names
        yield f"{part}s renamed", cluster.replace(**{f"{part}_names": [f"q{one}" for one in own]})
    natives = {other: registry.read(WRITERS[other]).native for other in WRITERS if other != system}
    natives |= {str(one): one for one in (None, "x", {})}
    own = cluster.native if isinstance(cluster.native, dict) else {}
    for key in own:
        natives[f"no {key}"] = {name: one for name, one in own.items() if name != key}
        for value in (None, 7, "x", [], [1], {}, {"a": 1}):
            natives[f"{key}={value}"] = own | {key: value}
    for name, native in natives.items():
        yield name, cluster.replace(native=native)


@pytest.mark.parametrize("system", WRITERS)
def test_what_changed_since_it_was_read_is_written_or_refused(system, tmp_path):
    path, name = tmp_path / WRITTEN.get(system, "plan.json"), system.replace("pinot", "helix")
    for _, cluster in changed_since(system):
        for placement in (None, cluster.placement, shuffled(cluster, 0)):
            with contextlib.suppress(InvalidInput):
                registry.write(cluster, path, name, placement)


@pytest.mark.parametrize("system", sorted({*WRITERS} - {"kubernetes", "roadef", "tables"}))
def test_what_changed_since_it_was_read_has_a_folder_or_is_refused(system, tmp_path):
    for i, (_, cluster) in enumerate(changed_since(system)):
        with contextlib.suppress(InvalidInput):
            write_plan_folder(plan(cluster, shuffled(cluster, 0)), tmp_path / str(i))


@pytest.mark.parametrize(
    ("system", "what", "where"),
    [
        ("ceph", "a partition less", "partition_names"),
        ("ceph", "a node more", "node_names[12]"),
        ("helix", "state_models={}", "group_names[0]"),
        ("helix", "ideal_states=7", "cluster.native.ideal_states"),
        ("helix", "pinot", "group_names[0]"),
        ("kubernetes", "a partition less", "partition_names"),
        ("kubernetes", "a partition more", "partition_names[2]"),
        ("longhorn", "a node more", "node_names[4]"),
        ("nats", "a node more", "node_names[6]"),
        ("nats", "partitions renamed", "partition_names[0]"),
        ("nats", "streams=None", "cluster.native.streams"),
        ("qdrant", "a node of another name", "node_names[4]"),
        ("qdrant", "elasticsearch", "cluster.native.shards"),
        ("rabbitmq", "queues=[]", "partition_names[0]"),
        ("rabbitmq", "kafka", "cluster.native"),
        ("swift", "header=x", "cluster.native.header"),
        ("swift", "a partition less", "partition_names"),
    ],
)
def test_what_changed_since_it_was_read_is_refused_by_its_place(system, what, where, tmp_path):
    cluster = dict(changed_since(system))[what]
    path = tmp_path / WRITTEN.get(system, "plan.json")
    with pytest.raises(InvalidInput) as refused:
        registry.write(cluster, path, system, placement=shuffled(cluster, 0))
    assert refused.value.faults[0].path == where
