"""The readers to fuzz, with valid files for each."""

import gzip
import io
import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Rule
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import plan
from evenkeel.planning.throttle import Throttle
from evenkeel.systems import registry
from evenkeel.systems.plans.reading import read_plan
from evenkeel.systems.plans.writing import encoded
from tests.support.fuzzing.damage import damage_archive, damage_bytes, damage_text
from tests.support.places import DATA

# content of the files that are read together; the first of them is damaged
Files = tuple[bytes, ...]


# what ``_cat`` prints without ?format=json
SHARDS = b"""\
idx shard prirep state      docs store ip       id  node
i   0     p      STARTED      10   1gb 10.0.0.1 id1 es 1
i   0     r      RELOCATING   10   1gb 10.0.0.2 id2 es-2 -> 10.0.0.3 id3 es-3
i   1     r      UNASSIGNED
"""
ALLOCATION = b"""\
1 0 0.0 260b 2gb 6gb 94gb 100gb 6 h 10.0.0.1 es 1 dhm
1 UNASSIGNED
"""


@dataclass(frozen=True)
class Reader:
    """One reader: files that it can read, and how they are damaged and handed in."""

    name: str
    samples: tuple[Files, ...]  # files that are read without a fault
    damage: Callable[[random.Random, bytes], bytes]  # ``damage(random, content) -> content``
    # ``read(files, folder)``; raises or returns a cluster or a plan
    read: Callable[[Files, Path], Cluster | Plan]


def small_cluster() -> Cluster:
    """A small cluster with something in every part."""
    return Cluster.from_arrays(
        capacity=[[10.0, np.inf], [9.0, 5.0], [7.5, 2.0], [8.0, 3.0]],
        load=[[1.0, 0.1], [2.0, 0.2], [0.5, 0.3]],
        leader_load=[[1.5, 0.1], [2.5, 0.2], [0.5, 0.3]],
        dimensions=("cpu", "disk"), transient=["disk"], bytes="disk",
        domains={"zone": ["b", "a", "", "a"], "rack": [10, 9, -1, 8]},
        tier_capacity={"zone": [[8.0, np.inf], [9.0, 1.0]]},
        tier_distance=[3.0, 2.0, 0.0],
        watermark=[[8.0, np.inf], [0.0, 4.0], [7.0, 1.0], [7.0, 1.0]],
        alive=[True, False, True, True], since=[np.nan, 1.7e9, 0.0, np.nan],
        weight=[1.0, 0.5, 2.0, 1.0], max_replicas=[-1, 4, 0, -1], stands_for=[-1, -1, 1, -1],
        tags={"ssd": [True, False, False, True]}, attributes={"os": ["linux", "", "bsd", "bsd"]},
        node_names=["a", "b", "c", "d"], partition_names=["o-0", "o-1", "p-0"],
        group_names=["o", "p"], group=[0, 0, 1],
        placement=[0, 1, -1, 2, 3, 0], first=[0, 3, 4, 6], leader=[1, -1, 0],
        role=[0, 0, 1, 2, 0, 0], flags=[1, 24, 0, 128, 0, 0], replicas=[3, 2, 2], voters=[2, 1, 2],
        min_active=[1, 0, 1], move_cost=[1.0, 2.5, 1.0], attached=[2, -1, 0],
        forbidden=[[1, 0], [0, 2]], depends=[(0, 1, "zone")],
        rules=[
            Rule(require=["zone!=a", "+ssd"], spread={"zone": (1, "soft")}), Rule(skew={"rack": 2})
        ],
        rule=[0, -1, 1], group_rule=[1, -1], native={"epoch": 7}, native_format="other",
    )  # fmt: skip


def instance() -> bytes:
    """A re-placement instance."""
    file = io.BytesIO()
    np.savez_compressed(
        file, capacity=np.ones((3, 2)), zone=np.arange(3), rack=np.arange(3) + 5,
        load=np.full((2, 2), 0.1), leader_extra_load=np.full((2, 2), 0.2),
        placement_before=np.array([[0, 1], [2, -1]], np.int32), dead=np.array([False, True, False]),
        new=np.zeros(3, bool), resource=np.array([0, 1], np.int32), meta=np.array("{}"),
    )  # fmt: skip
    return file.getvalue()


def from_bytes(name: str) -> Callable[[Files, Path], Cluster]:
    """Return what reads the contents of files in a format."""
    return lambda files, folder: registry.read([*files], format=name)


def from_folder(files: Files, folder: Path) -> Cluster:
    """Read a model and its assignment from files; those that start so are packed."""
    for file in folder.iterdir():
        file.unlink()
    names = []
    for kind, content in zip(("model", "assignment"), files, strict=True):
        packed = ".gz" if content.startswith(b"\x1f\x8b") else ""
        names.append(folder / f"{kind}_x.txt{packed}")
        names[-1].write_bytes(content)
    return registry.read(names, format="roadef")


PINOT = DATA / "public" / "pinot" / "one-stream-partition" / "session.txt"


def helix() -> bytes:
    """A whole dump of Helix as one list of records; ideal states come first."""
    files = [one for one in (DATA / "formats" / "helix").rglob("*") if one.is_file()]
    files.sort(key=lambda one: ("VIEW" in str(one), str(one)))
    files = [one for one in files if "PROPERTYSTORE" not in one.parts]
    return json.dumps([json.loads(one.read_bytes()) for one in files]).encode()


def damage_ring(draw: random.Random, data: bytes) -> bytes:
    """Damage the list of devices of a ring, with a length that fits, or any byte."""
    length = int.from_bytes(data[6:10], "big")
    if not data.startswith(b"R1NG") or draw.random() < 0.4:
        return damage_bytes(draw, data)
    text = damage_text(draw, data[10 : 10 + length])
    return data[:6] + (len(text) % 2**32).to_bytes(4, "big") + text + data[10 + length :]


def joined(system: str) -> tuple[Files, ...]:
    """The files of a system's folder, each in turn as the first, which is damaged."""
    files = sorted((DATA / "formats" / system).iterdir())
    contents = [one.read_bytes() for one in files if one.is_file()]
    return tuple((one, *(each for each in contents if each is not one)) for one in contents)


def a_plan() -> bytes:
    """A plan with its cluster within, and no fingerprint that would refuse all that is damaged."""
    cluster = Cluster.from_arrays(
        capacity=[[3.0, 9.0]] * 4, load=[[1.0, 0.5]] * 3, dimensions=("cpu", "disk"), bytes="disk",
        transient=["disk"], placement=[[0, 1], [1, 2], [2, -1]], domains={"zone": list("aabb")},
    )  # fmt: skip
    node = np.array([3, 1, 0, 2, 2, 1], np.int32)
    target = cluster.placement.replaced(node, cluster.placement.leader)
    found = plan(cluster, target, throttle=Throttle(node_in=1, domain_in={"zone": 2}))
    written = json.loads(encoded(found))
    del written["fingerprint"]
    return json.dumps(written).encode()


def checked_plan(files: Files, folder: Path) -> Plan:
    """Read a plan and replay it: what was read can be checked, whatever comes of it."""
    found = read_plan(files[0])
    found.check()
    return found


def readers() -> list[Reader]:
    """All readers, with their samples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c")
        registry.write(small_cluster(), path, "native-npz")
        npz = path.read_bytes()
        registry.write(small_cluster(), path, "native-rows")
        rows = path.read_bytes()
    kafka = {file.name: file.read_bytes() for file in (DATA / "formats").glob("kafka_*")}
    describe = kafka["kafka_describe.txt"]
    racks = [name for name in kafka if name.startswith("kafka_racks")]
    both = [
        (kafka[name], describe)
        for name in (
            "kafka_logdirs.txt", "kafka_capacity.json", "kafka_loads.csv", "kafka_brokers.csv",
            "kafka_answers.txt", "kafka_reassigned.txt", *racks,
        )
    ]  # fmt: skip
    alone = [
        (kafka[f"kafka_{name}"],)
        for name in ("describe.txt", "describe_old.txt", "generate.txt", "reassignment.json")
    ]
    worked = DATA / "roadef" / "worked"
    model, assignment = ((worked / f"{n}_worked.txt").read_bytes() for n in ("model", "assignment"))
    packed = tuple(
        (DATA / "roadef" / f"{n}_a1_1.txt.gz").read_bytes() for n in ("model", "assignment")
    )
    ceph = {file.name: file.read_bytes() for file in (DATA / "formats" / "ceph").iterdir()}
    dump, crush = ceph["osd_dump.json"], ceph["crush.txt"]
    tables = {file.name: file.read_bytes() for file in (DATA / "formats" / "tables").iterdir()}
    roach = {file.name: file.read_bytes() for file in (DATA / "formats" / "cockroach").iterdir()}
    old = DATA / "public" / "cockroach" / "shell-of-version-2"
    printed = {file.name: file.read_bytes() for file in old.iterdir()}
    ring = gzip.decompress((DATA / "formats" / "swift" / "object.ring.gz").read_bytes())
    longhorn = json.loads((DATA / "longhorn" / "cluster.json").read_bytes())
    plain = io.BytesIO()
    np.savez(plain, capacity=np.ones((2, 1)), load=np.ones((3, 1)), replicas=np.array(2))
    return [
        Reader(
            "native-npz", ((npz,), (plain.getvalue(),)), damage_archive, from_bytes("native-npz")
        ),
        Reader("rebalancer-npz", ((instance(),),), damage_archive, from_bytes("rebalancer-npz")),
        Reader("native-rows", ((rows,),), damage_text, from_bytes("native-rows")),
        Reader("plan", ((a_plan(),),), damage_text, checked_plan),
        Reader(
            "ceph",
            (
                (crush, dump),
                (dump, crush),
                (ceph["crush_dump.json"], dump),
                *(
                    (ceph[f"{name}.json"], crush, dump)
                    for name in ("pg_dump", "osd_df", "osd_tree")
                ),
                (
                    b"ceph osd pg-upmap-items 1.3 0 2\nceph osd rm-pg-upmap-items 1.1a\n",
                    dump,
                    crush,
                ),
            ),
            damage_text,
            from_bytes("ceph"),
        ),
        Reader(
            "tables",
            tuple(
                (tables[first], *(content for name, content in tables.items() if name != first))
                for first in sorted(tables)
            ),
            damage_text,
            from_bytes("tables"),
        ),
        Reader(
            "cockroach",
            (
                (roach["ranges.csv"], roach["node_status.csv"], roach["zones.sql"]),
                (roach["zones.sql"], roach["ranges.csv"], roach["node_status.csv"]),
                (roach["zones.yaml"], roach["ranges.csv"], roach["node_status.csv"]),
                (roach["node_status.csv"], roach["ranges.csv"]),
                (roach["store_status.tsv"], roach["ranges.csv"]),
                (printed["ranges.txt"],),
                (printed["zones.txt"], printed["ranges.txt"], printed["nodes.txt"]),
            ),
            damage_text,
            from_bytes("cockroach"),
        ),
        Reader("kafka", (*alone, *both), damage_text, from_bytes("kafka")),
        Reader(
            "longhorn", ((json.dumps(longhorn).encode(),),), damage_text, from_bytes("longhorn")
        ),
        Reader("helix", ((helix(),), (PINOT.read_bytes(),)), damage_text, from_bytes("helix")),
        Reader(
            "elasticsearch",
            (*joined("elasticsearch"), (SHARDS,), (ALLOCATION, SHARDS)),
            damage_text,
            from_bytes("elasticsearch"),
        ),
        Reader("rabbitmq", joined("rabbitmq"), damage_text, from_bytes("rabbitmq")),
        Reader("nats", joined("nats"), damage_text, from_bytes("nats")),
        Reader("qdrant", joined("qdrant"), damage_text, from_bytes("qdrant")),
        Reader("kubernetes", joined("kubernetes"), damage_text, from_bytes("kubernetes")),
        Reader("swift", ((ring,), (gzip.compress(ring),)), damage_ring, from_bytes("swift")),
        Reader("roadef", ((model, assignment), packed), damage_text, from_folder),
    ]
