"""``evenkeel frontier``: compute the trade-off between imbalance and number of moves."""

import argparse
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import NOT_GIVEN, Commands, add_command, level_of
from evenkeel.cli.output import DONE, check_outputs, check_report, emit, list_files, page
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Waiting
from evenkeel.model.goals import Goals

if TYPE_CHECKING:
    from evenkeel.studies.frontier import Frontier


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "tell how level the cluster can be for how many moves, plan by plan"
    parser = add_command(commands, "frontier", summary, run)
    parser.add_files()
    parser.add_argument(
        "--points", type=int, default=10, metavar="N", help="plans to try (%(default)s)"
    )
    parser.add_argument(
        "--level", type=level_of, default=NOT_GIVEN, metavar="X",
        help="tolerance of the most level plan: 0.01 or 1%% (0.001)",
    )  # fmt: skip
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds for each plan")
    parser.add_usual("--seed")
    parser.add_report("frontier")
    parser.add_changes()
    parser.add_output()
    parser.examples = ("evenkeel frontier cluster.npz --points 6",)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.studies.frontier import frontier

    check_report(arguments.report)
    check_outputs(arguments.files, [arguments.report], force=False)
    with Waiting(arguments.quiet) as waiting:
        cluster = read_cluster(arguments, waiting)
        waiting.doing("solving")
        level = arguments.level
        if "level" in arguments.assumed and not isinstance(level, float):
            level = NOT_GIVEN  # tolerances by dimension are for other commands
        goals = None if level is NOT_GIVEN else Goals(level=level)
        found = frontier(
            cluster, arguments.points, goals=goals, time_limit=arguments.time_limit,
            seed=arguments.seed,
        )  # fmt: skip
        waiting.doing("writing")
        written = [] if arguments.report is None else [found.report(arguments.report)]
    return emit(
        arguments, DONE,
        figures=lambda: _figures(found) | {"written": [*map(str, written)]},
        text=lambda: f"{_lines(found)}{list_files(written)}",
    )  # fmt: skip


def _figures(found: "Frontier") -> dict[str, Any]:
    """Return the figures of each plan."""
    columns = found.moves, found.moves_at_least, found.level, found.bytes
    names = ("moves", "moves_at_least", "level", "bytes")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {"plans": [dict(zip(names, row, strict=True)) for row in rows]}


def _lines(found: "Frontier") -> str:
    """Return the plans as a table, cheapest first."""
    from evenkeel.view.studies import frontier_table
    from evenkeel.view.terminal import Line, rendered

    sentence = (
        "at least: moves proven to be needed for that level; max/mean: fullest node over the mean"
    )
    return rendered([frontier_table(found), Line(""), Line(sentence, "dim")], **page()).lstrip("\n")
