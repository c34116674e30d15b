"""Inputs of the corpus: stored clusters, drawn expansions, and the files of systems."""

import ast
import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import evenkeel as ek
from tests.judge.case import Case, build
from tests.judge.clusters import FAMILIES, draw
from tests.support import places
from tests.support.instances import as_cluster, generate

STORED = Path(__file__).with_name("clusters.txt.gz")
FIRST_SEED, SEEDS = 7000, 6
LARGER = ((300, 20, 5), (2000, 50, 10), (5000, 100, 10))
"""Partitions, nodes and zones of the expansions."""

ROLE_LOADS = ("leader_load", "non_voter_load", "transient")
MOST = 2**31 - 1  # the greatest capacity of a whole cluster
Input = tuple[str, ek.Cluster, ek.Goals, ek.Limits]


def store() -> None:
    """Draw the small clusters of all families and store them as text, one to a line."""
    cases = [
        draw(family, seed) for family in FAMILIES for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)
    ]
    rows = [(one.family, one.seed, one.cluster, one.goals, one.limits) for one in cases]
    text = "\n".join(repr(row).replace("inf", "1e999") for row in rows)
    STORED.write_bytes(gzip.compress(text.encode(), mtime=0))


def small_clusters() -> Iterator[Input]:
    """Yield the stored clusters with their goals and limits."""
    for case in _stored():
        yield f"{case.family}-{case.seed}", *build(case)


def whole_clusters() -> Iterator[Input]:
    """Yield the stored clusters with hundredths as whole units, and no role that weighs more."""
    for case in _stored():
        given = {name: one for name, one in case.cluster.items() if name not in ROLE_LOADS}
        given |= {name: _hundredths(given[name]) for name in ("capacity", "load")}
        yield f"whole {case.family}-{case.seed}", *build(replace(case, cluster=given))


def _stored() -> Iterator[Case]:
    for line in gzip.decompress(STORED.read_bytes()).decode().splitlines():
        yield Case(*ast.literal_eval(line))


def _hundredths(given: Any) -> Any:
    if isinstance(given, list):
        return [_hundredths(one) for one in given]
    return float(min(round(100 * given), MOST) if given < MOST else MOST)


def expansions() -> Iterator[Input]:
    """Yield clusters that were just expanded and lost some nodes, with levelling goals."""
    for partitions, nodes, zones in LARGER:
        cluster = as_cluster(generate(partitions, nodes, zones, seed=3))
        yield f"expanded-{partitions}", cluster, ek.Goals(level=0.04, leaders=0.1), ek.Limits()


def on_disks() -> Iterator[Input]:
    """Yield the smallest of them with disks in each node, the first of which is to be emptied."""
    cluster = as_cluster(generate(*LARGER[0], seed=3))
    nodes, disks = len(cluster.nodes.names), 4
    most = cluster.nodes.capacity[:, 0] / disks
    for name, first in (("", 0), (" emptied", 1)):
        state = [first] + [0] * (nodes * disks - 1)
        held = ek.Disks(np.repeat(np.arange(nodes), disks), np.repeat(most, disks), state)
        node = cluster.placement.node
        disk = np.where(node >= 0, disks * node + np.arange(len(node)) % 2, -1)
        placement = replace(cluster.placement, disk=disk.astype(np.int32))
        goals = ek.Goals(level=0.1, disks=0.2)
        moved = cluster.replace(bytes=cluster.dimensions[0], disks=held, placement=placement)
        yield f"disks{name}", moved, goals, ek.Limits()


def grouped() -> Iterator[Input]:
    """Yield the smallest of them with goals within groups."""
    partitions, nodes, zones = LARGER[0]
    cluster = as_cluster(generate(partitions, nodes, zones, seed=3))
    first = cluster.partitions.group_names[0]
    for name, goals in (
        ("groups", {"groups": 0.2}),
        ("group leaders", {"group_leaders": 0.2}),
        ("least leaders", {"min_leaders": {first: 1}}),
    ):
        yield f"{name} {partitions}", cluster, ek.Goals(level=0.1, **goals), ek.Limits()


def dumps() -> Iterator[tuple[str, list[Path]]]:
    """Yield the files of systems that are read together, each under the name of its folder."""
    formats = places.DATA / "formats"
    names = ("describe.txt", "racks.json", "capacity.json", "loads.csv")
    yield "formats/kafka", [formats / f"kafka_{name}" for name in names]
    yield "formats/helix", [formats / "helix"]
    yield "formats/longhorn", [places.DATA / "longhorn" / "cluster.json"]
    for system in ("elasticsearch", "kubernetes", "rabbitmq", "swift", "tables"):
        yield f"formats/{system}", _files(formats / system)
    ceph, cockroach = formats / "ceph", formats / "cockroach"
    yield "formats/ceph", [ceph / name for name in ("osd_dump.json", "crush_dump.json")]
    yield "formats/cockroach", [file for file in _files(cockroach) if file.suffix != ".yaml"]
    for about in sorted((places.DATA / "public").glob("*/*/about.md")):
        folder = about.parent
        name = folder.relative_to(places.DATA).as_posix()
        if files := [file for file in _files(folder) if file != about]:
            yield name, files


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())
