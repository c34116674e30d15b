"""``evenkeel convert``: a cluster in another format."""

import argparse

from evenkeel.cli.arguments import Commands, add_command, add_files, add_output
from evenkeel.cli.changes import add_changes
from evenkeel.cli.commands.solve import read_cluster
from evenkeel.cli.output import DONE, check_outputs, complain, emit, list_files
from evenkeel.cli.waiting import Waiting


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "convert", "write a cluster in another format, as it is", run)
    add_files(parser)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="file for the cluster")
    parser.add_argument(
        "--to", metavar="FORMAT", help="format of OUT; by its suffix, or that of FILE, by default"
    )
    parser.add_argument(
        "--force", action="store_true", help="write OUT even where it is one of the files read"
    )
    add_changes(parser)
    add_output(parser)
    parser.examples = (
        "evenkeel convert topics.txt racks.json -o cluster.npz",
        "evenkeel convert cluster.npz --to tables -o replicas.csv",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.cli.lost import lost_in
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
