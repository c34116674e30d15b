"""``evenkeel demo``: generate a large cluster, solve it, report it, and write the plan."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenkeel.cli.arguments import LIMITS, TIER_LIMITS, Commands, add_command
from evenkeel.cli.commands.solve import solved
from evenkeel.cli.output import (
    INTERRUPTED,
    code_of,
    emit,
    figures_of,
    list_files,
    page,
    write_plan,
    write_table,
)
from evenkeel.cli.waiting import Interrupting, Waiting
from evenkeel.measure.loads import replica_counts

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster

LEVEL = 0.04
INTRODUCTION = """\
A cluster was just expanded: {new} of its {nodes} nodes are new and empty, {dead} have died with all
they held, and the others are filled unevenly, some above what they can take. Every partition wants
{replicas} replicas in different zones. The solve below repairs what is broken and levels every
dimension to within {level:.0%}, with as few moves as it can.
"""


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "generate a large cluster, solve it, report what came of it, and write the plan"
    parser = add_command(commands, "demo", summary, run)
    parser.add_argument("--folder", default="demo", help="for the files (%(default)s)")
    parser.add_argument("--partitions", type=int, default=25_000, metavar="N", help="(%(default)s)")
    parser.add_argument("--nodes", type=int, default=300, metavar="N", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(%(default)s)")
    parser.add_output()
    parser.examples = ("evenkeel demo --folder demo",)
    parser.set_defaults(
        method="balance", option=[], level=LEVEL, leaders=None, floor=None, time_limit=None,
        work_limit=None, **dict.fromkeys([*LIMITS, *TIER_LIMITS]),
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.simulate.generators import expansion
    from evenkeel.systems.registry import write
    from evenkeel.view.results import moves_table, report

    with Waiting(arguments.quiet) as waiting, Interrupting() as stopping:
        waiting.doing("generating")
        cluster = expansion(arguments.partitions, arguments.nodes, seed=arguments.seed)
        solved(cluster, arguments, waiting, stopping)  # compiles or loads what the next one times
        result = solved(cluster, arguments, waiting, stopping)
        waiting.doing("writing")
        folder = Path(arguments.folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [
            *write(cluster, folder / "cluster.npz"),
            *write_plan(result, str(folder / "placement.npz"), None),
            write_table(moves_table(result), str(folder / "moves.csv")),
        ]
    parts = _introduction(cluster), report(result, **page()), list_files(written)
    return emit(
        arguments, INTERRUPTED if stopping.asked else code_of(result.status),
        figures=lambda: figures_of(result) | {"written": [*map(str, written)]},
        text=lambda: "\n".join(parts), verdict=result.message,
    )  # fmt: skip


def _introduction(cluster: "Cluster") -> str:
    held = replica_counts(cluster, cluster.placement)
    alive = cluster.nodes.alive
    return INTRODUCTION.format(
        nodes=len(alive),
        new=int((held[alive] == 0).sum()),
        dead=int((~alive).sum()),
        replicas=int(cluster.partitions.replicas.max(initial=0)),
        level=LEVEL,
    )
