"""``evenkeel sweep``: evaluate the loss of each node or domain, and its repair."""

import argparse
from typing import TYPE_CHECKING

from evenkeel.cli.arguments import Commands, add_command, limits_of, options_of, throttle_from
from evenkeel.cli.commands.solve import as_usual
from evenkeel.cli.output import (
    BROKEN,
    DONE,
    INTERRUPTED,
    check_outputs,
    check_report,
    check_table,
    emit,
    list_files,
    page,
    write_table,
)
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Interrupting, Waiting

if TYPE_CHECKING:
    from evenkeel.studies.sweep import Sweep


SHOWN = 10  # scenarios that are spelled out, the worst first; the rest is counted


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "lose each node or domain in turn, and tell what is in danger and what repairs it"
    parser = add_command(commands, "sweep", summary, run)
    parser.add_files()
    parser.add_argument(
        "--lose", action="append", metavar="WHAT",
        help="node, the name of a tier, or two at once as in 'node pairs'; may be given several "
        "times; node by default",
    )  # fmt: skip
    parser.add_throttle(
        "plan each repair under it, as plan takes it, and tell how long it takes; may be "
        "given several times"
    )
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        default="plain",
        help="what the system can do, for those plans; %(default)s by default",
    )
    parser.add_argument(
        "--table", metavar="OUT", help="file for a row for each scenario, .csv or .json"
    )
    parser.add_report("sweep")
    parser.add_changes()
    parser.add_solving()
    parser.add_output()
    parser.examples = (
        "evenkeel sweep cluster.npz --lose zone --lose 'rack pairs'",
        "evenkeel sweep cluster.npz --throttle node-in=2 --table losses.csv --report losses.html",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.model.runtime.table import Table
    from evenkeel.studies.scenario import Row
    from evenkeel.studies.sweep import sweep

    check_report(arguments.report)
    check_table(arguments.table)
    check_outputs(arguments.files, [arguments.table, arguments.report], force=False)
    with Waiting(arguments.quiet) as waiting, Interrupting() as stopping:
        cluster = read_cluster(arguments, waiting)
        method, goals = as_usual(cluster.down(cluster.nodes.names[:1]), arguments)

        def report_progress(done: int, of: int) -> None:
            waiting.doing(f"{done:,} of {of:,} scenarios")
            if stopping.asked:
                raise StopIteration

        found = sweep(
            cluster, arguments.lose or ["node"], method=method, callback=report_progress,
            recovery=throttle_from(arguments.throttle) if arguments.throttle else None,
            protocol=arguments.protocol,
            goals=goals, limits=limits_of(arguments), options=options_of(arguments),
            time_limit=arguments.time_limit, work_limit=arguments.work_limit, seed=arguments.seed,
        )  # fmt: skip
        waiting.doing("writing")
        written = []
        if arguments.table is not None:
            written.append(write_table(Table.of_records(Row, found.rows()), arguments.table))
        if arguments.report is not None:
            written.append(found.report(arguments.report))
    code = DONE if found.fits.all() else BROKEN
    return emit(
        arguments, INTERRUPTED if stopping.asked else code,
        figures=lambda: {
            "scenarios": [row._asdict() for row in found.rows()], "written": [*map(str, written)],
        },
        text=lambda: f"{_lines(found)}{list_files(written)}",
        verdict=found.summary,
    )  # fmt: skip


def _lines(found: "Sweep") -> str:
    """Return the worst scenarios as a table, and what its columns are."""
    from evenkeel.model.runtime.table import Table
    from evenkeel.studies.scenario import SWEPT, scenario_table
    from evenkeel.view.terminal import Line, rendered

    if not found.results:
        return f"{found.summary}\n"
    table = scenario_table(found.cluster, found.worst(SHOWN), len(found.results))
    heads = {one.short or one.name for one in table.columns}
    legend = [f"  {head:<10} {sentence}" for head, sentence in SWEPT.items() if head in heads]
    parts: list[Line | Table] = [
        Line(found.summary),
        table,
        Line(""),
        *(Line(one, "dim") for one in legend),
    ]
    return rendered(parts, **page())
