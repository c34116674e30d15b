"""``evenkeel convert``: write a cluster in another format, and list what is lost."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.output import DONE, check_outputs, complain, emit, list_files
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Waiting
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Rule
from evenkeel.systems.native.arguments import RuleDocument


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "convert", "write a cluster in another format, as it is", run)
    parser.add_files()
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="file for the cluster")
    parser.add_usual("--to", "--force")
    parser.add_changes()
    parser.add_output()
    parser.examples = (
        "evenkeel convert topics.txt racks.json -o cluster.npz",
        "evenkeel convert cluster.npz --to tables -o replicas.csv",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.systems.registry import write, writer_of

    check_outputs(arguments.files, [arguments.output], force=arguments.force)
    with Waiting(arguments.quiet) as waiting:
        cluster = read_cluster(arguments, waiting)
        waiting.doing("writing")
        written = write(cluster, arguments.output, arguments.to, overwrite=arguments.force)
        chosen = writer_of(cluster, arguments.output, arguments.to)
        lost = lost_in(cluster, written, chosen.name) if chosen.read is not None else []
    if lost and not arguments.quiet:
        complain(f"note: {written[0]} does not hold: {', '.join(lost)}")
    return emit(
        arguments, DONE, figures=lambda: {
            "cluster": str(cluster), "written": [*map(str, written)], "lost": lost,
        },
        text=lambda: f"{cluster}\n{list_files(written)}",
    )  # fmt: skip


def lost_in(cluster: Cluster, written: Sequence[Path], format: str | None) -> list[str]:
    """Return in words what of a cluster the files do not hold; all of it if that is unknown."""
    from evenkeel.systems.registry import read

    try:
        again = read([*written], format=format)
    except InvalidInput:
        return ["anything but where replicas are"]
    return [*_lost(cluster, again)]


def _lost(cluster: Cluster, again: Cluster) -> Iterator[str]:
    """Yield each kind of thing of which the other cluster has less."""
    at = {name: n for n, name in enumerate(again.nodes.names)}
    place = np.array([at.get(name, -1) for name in cluster.nodes.names], np.int64)
    there = place >= 0
    if not there.all():
        yield f"nodes on which nothing stands ({np.count_nonzero(~there):,})"
    here, other = np.flatnonzero(there), place[there]
    if any(_differ(cluster, again, name, here, other) for name in ("alive", "accepts", "keeps")):
        yield "states of nodes"
    if any(_differ(cluster, again, name, here, other) for name in ("max_replicas", "weight")):
        yield "weights and most replicas of nodes"
    shared = [name for name in cluster.dimensions if name in again.dimensions]
    if len(shared) < len(cluster.dimensions) or not _alike(cluster, again, shared, here, other):
        yield "loads and capacities"
    if not {*cluster.topology.tiers} <= {*again.topology.tiers}:
        yield "tiers"
    if not {*cluster.nodes.tags} <= {*again.nodes.tags}:
        yield "tags"
    if _pinned(cluster) > _pinned(again):
        yield "pins"
    if _rules(cluster) - _rules(again):
        yield "rules"


def _differ(
    cluster: Cluster, again: Cluster, name: str, here: NDArray[np.intp], other: NDArray[np.int64]
) -> bool:
    """Whether nodes that are in both clusters differ in a column."""
    return bool((getattr(cluster.nodes, name)[here] != getattr(again.nodes, name)[other]).any())


def _alike(
    cluster: Cluster,
    again: Cluster,
    shared: Sequence[str],
    here: NDArray[np.intp],
    other: NDArray[np.int64],
) -> bool:
    """Whether loads and capacities are the same in dimensions that both have."""
    for name in shared:
        d, e = cluster.dimensions.index(name), again.dimensions.index(name)
        if not np.array_equal(cluster.nodes.capacity[here, d], again.nodes.capacity[other, e]):
            return False
        mine, theirs = cluster.partitions.load, again.partitions.load
        if not np.array_equal(np.sort(mine.leader[:, d]), np.sort(theirs.leader[:, e])):
            return False
    return True


def _rules(cluster: Cluster) -> set[str]:
    """Return the rules that ask for something, each in words that distinguish it."""
    return {repr(RuleDocument.of(one)) for one in cluster.rules} - {repr(RuleDocument.of(Rule()))}


def _pinned(cluster: Cluster) -> int:
    return int(np.count_nonzero(cluster.placement.flags & int(Flag.PINNED)))
