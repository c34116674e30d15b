"""``evenkeel explain``: explain why the replicas of a partition are on their nodes."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.commands.solve import solved
from evenkeel.cli.output import DONE, INTERRUPTED, emit
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Interrupting, Waiting
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.reading.keywords import meant_name

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster


MORE = "evenkeel plan --explain says how they get there, and why each step waits"


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "say why the replicas of one partition are, or would be, where they are"
    parser = add_command(commands, "explain", summary, run)
    parser.add_files()
    parser.add_argument("partition", metavar="PARTITION", help="its name, or its number from 0 on")
    parser.add_argument(
        "--as-is", action="store_true", help="explain the placement as it stands, without solving"
    )
    parser.add_changes()
    parser.add_solving()
    parser.examples = ("evenkeel explain cluster.npz orders-17 --as-is",)
    parser.add_output()


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.measure.explain import explain
    from evenkeel.measure.loads import node_loads

    with Waiting(arguments.quiet, arguments.time_limit) as waiting, Interrupting() as stopping:
        cluster = read_cluster(arguments, waiting)
        partition = index_of(cluster, arguments.partition)
        if arguments.as_is:
            placement = cluster.placement
            explained = explain(cluster, placement, node_loads(cluster, placement), partition)
        else:
            explained = solved(cluster, arguments, waiting, stopping).explain(partition)
    more = "" if arguments.as_is else f"\n{MORE}"
    return emit(
        arguments, INTERRUPTED if stopping.asked else DONE,
        figures=lambda: asdict(explained), text=lambda: f"{explained}{more}",
    )  # fmt: skip


def index_of(cluster: "Cluster", text: str) -> int:
    """Return the index of a partition that is named, or numbered where no name is that number.

    >>> from evenkeel.model.cluster import Cluster
    >>> cluster = Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]] * 3, placement=[[0]] * 3)
    >>> index_of(cluster, "p2"), index_of(cluster, "1")
    (2, 1)
    """
    names = cluster.partitions.names
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and int(text) < len(names):
        return int(text)
    message = f"is none of the {len(names)} partitions"
    if len(names):
        message += f", {names[0]} to {names[len(names) - 1]}"
        message += meant_name(FaultList(), text, names)
    raise InvalidInput([Fault("partition", text, message)])
