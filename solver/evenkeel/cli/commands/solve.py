"""``evenkeel solve``: choose nodes for all replicas, report the result, and write the placement."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import (
    NOT_GIVEN,
    UNNAMED,
    Commands,
    add_command,
    goals_of,
    limits_of,
    options_of,
)
from evenkeel.cli.output import (
    INTERRUPTED,
    by_group,
    check_apart,
    check_outputs,
    check_report,
    check_table,
    code_of,
    complain,
    emit,
    figures_of,
    list_files,
    page,
    write_plan,
    write_table,
)
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Interrupting, Waiting
from evenkeel.methods.shared.stopping import Progress

if TYPE_CHECKING:
    from evenkeel.methods.registry import MethodName
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.goals import Goals
    from evenkeel.result import Result

NOTHING_WRITTEN = "nothing written; -o OUT writes the new placement, --table OUT the moves"


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "solve", "decide where replicas live, and write the plan", run)
    parser.add_files()
    parser.add_argument("-o", "--output", metavar="OUT", help="file for the new placement")
    parser.add_usual("--to")
    parser.add_argument(
        "--table", metavar="OUT", help="file for the moves and leader changes, .csv or .json"
    )
    parser.add_report("result")
    parser.add_usual("--force")
    parser.add_argument(
        "--explain", metavar="PARTITION", action="append", default=[],
        help="say why the replicas of a partition are where the result has them; may be given "
        "several times",
    )  # fmt: skip
    parser.add_argument("--prove", action="store_true", help="lift the bounds by a relaxation")
    parser.add_argument(
        "--prove-limit", type=float, default=60.0, metavar="S",
        help="seconds that --prove may take (%(default)g)",
    )  # fmt: skip
    parser.add_changes()
    parser.add_solving()
    parser.add_by_group()
    parser.add_metrics()
    parser.add_output()
    parser.examples = (
        "evenkeel solve cluster.npz --level 0.04 -o placed.npz --table moves.csv",
        "evenkeel solve topics.txt logdirs.json --drain 17 --moves 500 -o reassignment.json",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.cli.commands.explain import index_of
    from evenkeel.systems.registry import writer_of
    from evenkeel.view.results import moves_table, report

    check_table(arguments.table)
    check_report(arguments.report)
    outputs = [arguments.output, arguments.table, arguments.report]
    check_outputs(arguments.files, outputs, force=arguments.force)
    with Waiting(arguments.quiet, arguments.time_limit) as waiting, Interrupting() as stopping:
        cluster = read_cluster(arguments, waiting)
        partitions = [index_of(cluster, one) for one in arguments.explain]
        if arguments.output is not None:
            writer_of(cluster, arguments.output, arguments.to)
        result = solved(cluster, arguments, waiting, stopping)
        if arguments.prove and not stopping.asked:
            waiting.doing("proving")
            result = result.proved(arguments.prove_limit)
        waiting.doing("writing")
        written: list[Path] = []
        if arguments.output is not None:
            written += write_plan(result, arguments.output, arguments.to, arguments.force)
            _note_one_way(arguments, result, written)
            check_apart([*written, *outputs[1:]])  # some have a second file beside them
        if arguments.table is not None:
            written.append(write_table(moves_table(result), arguments.table))
        if arguments.report is not None:
            written.append(result.report(arguments.report))
    stopped = stopping.asked or result.stop_reason == "interrupted"
    explained = "".join(f"\n{result.explain(which)}\n" for which in partitions)
    groups, more = by_group(arguments, cluster, result.placement)
    return emit(
        arguments, INTERRUPTED if stopped else code_of(result.status),
        figures=lambda: figures_of(result) | more | {"written": [*map(str, written)]},
        text=lambda: report(result, **page()) + groups + explained
        + list_files(written, NOTHING_WRITTEN),
        verdict=result.message, asked=groups + explained,
    )  # fmt: skip


def _note_one_way(arguments: argparse.Namespace, result: "Result", written: Sequence[Path]) -> None:
    """Say what a file of the way back that was written leaves out."""
    from evenkeel.systems.one_way import describe_one_way
    from evenkeel.systems.registry import writer_of

    ways_back = [one for one in written if {".rollback", ".undo"} & {*one.suffixes}]
    if arguments.quiet or not ways_back:
        return
    keeps_repairs = writer_of(result.cluster, arguments.output, arguments.to).keeps_repairs
    if keeps_repairs and (sentence := describe_one_way(result.cluster, result.placement)):
        complain(f"note: {ways_back[0]} leaves out {sentence}")


def as_usual(
    cluster: "Cluster", arguments: argparse.Namespace
) -> "tuple[MethodName, Goals | None]":
    """Return the method and the goals: what is named, and what is usual beside, with a note."""
    from evenkeel.model.goals import Goals
    from evenkeel.model.limits import Limits
    from evenkeel.systems.registry import usual

    asked, kept = goals_of(arguments), dict[str, Any]()
    if arguments.method is not UNNAMED or arguments.option:
        return arguments.method, asked
    found = usual(cluster)
    of = f" for {cluster.native_format}" if found else ""
    if asked is not None or limits_of(arguments) != Limits():
        found.pop("method", None)
    method = found.get("method", arguments.method)
    goals = found.get("goals", Goals())
    if arguments.level is NOT_GIVEN and "method" not in found and (asked or found):
        kept["level"] = goals.level
        if arguments.leaders is NOT_GIVEN and goals.leaders is not None:
            kept["leaders"] = goals.leaders
    words = [f"--method {method}"] if "method" in found else []
    words += [f"--{name} {value:g}" for name, value in kept.items()]
    note = ""
    if words and asked is None:
        note = f"as usual{of}, since no method or goal is named: {' '.join(words)}"
    elif words:
        note = (
            f"replicas are balanced as usual{of}, beside what is named: {' '.join(words)}; with "
            "--level none they move only for rules and for what is named"
        )
    elif arguments.level is not None and arguments.leaders is NOT_GIVEN and goals.leaders:
        note = f"--level replaces what is usual{of}: --leaders {goals.leaders:g} balances leaders"
    if note and not arguments.quiet:
        complain(f"note: {note}")
    return method, goals_of(arguments, kept)


def solved(
    cluster: "Cluster", arguments: argparse.Namespace, waiting: Waiting, stopping: Interrupting
) -> "Result":
    """Solve as the arguments ask."""
    from evenkeel.solving import solve
    from evenkeel_kernels.build.inventory import on_compile

    def between_slices(found: Progress) -> None:
        waiting.progress(found)
        if stopping.asked:
            raise StopIteration

    method, goals = as_usual(cluster, arguments)
    waiting.doing("solving")
    with on_compile(waiting.compiling):
        return solve(
            cluster,
            method,
            goals=goals,
            limits=limits_of(arguments),
            options=options_of(arguments),
            time_limit=arguments.time_limit,
            work_limit=arguments.work_limit,
            seed=arguments.seed,
            callback=between_slices,
        )
