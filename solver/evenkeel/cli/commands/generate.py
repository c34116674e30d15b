"""``evenkeel generate``: generate a newly expanded cluster from a seed and write it."""

import argparse

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.output import DONE, emit, list_files
from evenkeel.cli.waiting import Waiting

COUNTS = {
    "partitions": (25_000, "partitions"),
    "nodes": (300, "nodes, some of them new and empty, some of them dead"),
    "zones": (10, "zones, the nodes round robin in them"),
    "replicas": (3, "replicas per partition, in different zones"),
    "dimensions": (3, "dimensions of load"),
    "seed": (1, "seed of all randomness"),
}
SHARES = {
    "utilisation": (0.70, "total load as a share of the capacity that is alive"),
    "new": (0.10, "share of the nodes that was just added"),
    "dead": (0.03, "share of the nodes that just died"),
    "skew": (0.15, "how unevenly the old nodes are filled"),
    "unassigned": (0.001, "share of the partitions with a replica that is nowhere"),
}


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "write a cluster that was just expanded and lost some nodes, made from a seed"
    parser = add_command(commands, "generate", summary, run)
    parser.add_argument("output", metavar="OUT", help="file for the cluster")
    parser.add_argument("--format", help="its format; found from the suffix by default")
    for table, kind in ((COUNTS, int), (SHARES, float)):
        for name, (default, meaning) in table.items():
            parser.add_argument(
                f"--{name}", type=kind, default=default, metavar="N" if kind is int else "X",
                help=f"{meaning} (%(default)s)",
            )  # fmt: skip
    parser.add_output()
    parser.examples = ("evenkeel generate cluster.npz --nodes 30 --partitions 900 --seed 7",)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.simulate.generators import Disorder, expansion
    from evenkeel.systems.registry import write

    with Waiting(arguments.quiet) as waiting:
        waiting.doing("generating")
        shares = {name: getattr(arguments, name) for name in SHARES}
        utilisation = shares.pop("utilisation")
        cluster = expansion(
            **{name: getattr(arguments, name) for name in COUNTS},
            utilisation=utilisation,
            disorder=Disorder(**shares),
        )
        waiting.doing("writing")
        written = write(cluster, arguments.output, arguments.format)
    return emit(
        arguments, DONE, figures=lambda: {"cluster": str(cluster), "written": [*map(str, written)]},
        text=lambda: f"{cluster}\n{list_files(written)}",
    )  # fmt: skip
