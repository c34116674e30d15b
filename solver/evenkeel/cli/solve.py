"""``evenkeel solve``: decide where replicas live, report it, and write the plan."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenkeel.cli.arguments import (
    Commands,
    add_command,
    add_files,
    add_output,
    add_solving,
    goals_of,
    limits_of,
    options_of,
)
from evenkeel.cli.exits import DONE, INTERRUPTED, LEFT_BROKEN
from evenkeel.cli.interrupting import Interrupting
from evenkeel.cli.output import (
    check_table,
    figures_of,
    page,
    print_json,
    write_plan,
    write_table,
)
from evenkeel.cli.waiting import Waiting
from evenkeel.strategies.shared.stopping import Progress

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.result import Result


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "solve", "decide where replicas live, and write the plan", run)
    add_files(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="file for the new placement")
    parser.add_argument("--to", metavar="FORMAT", help="format of OUT; that of FILE by default")
    parser.add_argument("--table", metavar="OUT", help="file for the moves, .csv or .json")
    parser.add_argument(
        "--prove", nargs="?", const=60.0, type=float, metavar="S",
        help="lift the bounds by a relaxation, in S seconds at most (%(const)g by default)",
    )  # fmt: skip
    add_solving(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.view.report import report

    check_table(arguments.table)
    with Waiting(arguments.quiet, arguments.time_limit) as waiting, Interrupting() as stopping:
        cluster = read_cluster(arguments, waiting)
        result = solved(cluster, arguments, waiting, stopping)
        if arguments.prove is not None and not stopping.asked:
            waiting.doing("proving")
            result = result.proved(arguments.prove)
        waiting.doing("writing")
        written: list[Path] = []
        if arguments.output is not None:
            written += write_plan(result, arguments.output, arguments.to)
        if arguments.table is not None:
            written.append(write_table(result, arguments.table))
        text = "" if arguments.json or arguments.quiet else report(result, **page())
    if arguments.json:
        print_json(figures_of(result) | {"written": [str(path) for path in written]})
    elif not arguments.quiet:
        print(text, end="")
        for path in written:
            print(f"wrote {path}")
        if not written:
            print("nothing written; -o OUT writes the new placement, --table OUT the moves")
    if stopping.asked or result.stop_reason == "interrupted":
        return INTERRUPTED
    return DONE if result.success else LEFT_BROKEN


def read_cluster(arguments: argparse.Namespace, waiting: Waiting) -> "Cluster":
    """Read the files that the arguments name."""
    from evenkeel.formats.registry import read

    waiting.doing(f"reading {', '.join(arguments.files)}")
    files = arguments.files
    return read(files[0] if len(files) == 1 else files, format=arguments.format)


def solved(
    cluster: "Cluster", arguments: argparse.Namespace, waiting: Waiting, stopping: Interrupting
) -> "Result":
    """Solve as the arguments ask."""
    from evenkeel.solve import solve
    from evenkeel_kernels.build.inventory import on_compile

    def between_slices(told: Progress) -> None:
        waiting.progress(told)
        if stopping.asked:
            raise StopIteration

    waiting.doing("solving")
    with on_compile(waiting.compiling):
        return solve(
            cluster,
            arguments.method,
            goals=goals_of(arguments),
            limits=limits_of(arguments),
            options=options_of(arguments),
            time_limit=arguments.time_limit,
            work_limit=arguments.work_limit,
            seed=arguments.seed,
            callback=between_slices,
        )
