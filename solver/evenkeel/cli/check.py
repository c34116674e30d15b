"""``evenkeel check``: count what a placement breaks, as it stands."""

import argparse

from evenkeel.cli.arguments import Commands, add_command, add_files, add_output
from evenkeel.cli.exits import DONE, LEFT_BROKEN
from evenkeel.cli.output import page, print_json
from evenkeel.cli.solve import read_cluster
from evenkeel.cli.waiting import Waiting


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "count the rules that a placement breaks as it stands, and show the worst"
    parser = add_command(commands, "check", summary, run)
    add_files(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.measure.audit import audit
    from evenkeel.measure.levelness import levelness
    from evenkeel.view.report import report_state

    with Waiting(arguments.quiet) as waiting:
        cluster = read_cluster(arguments, waiting)
        waiting.doing("checking")
        audited = audit(cluster, cluster.placement)
        level = levelness(cluster, cluster.placement)
    if arguments.json:
        print_json(
            {
                "hard_violations": audited.hard,
                "soft_violations": audited.soft,
                "broken": {kind: count for kind, count in audited.counts.items() if count},
                "violations": [
                    {name: value for name, value in row._asdict().items() if value != ""}
                    for row in audited.table()
                ],
                "level": dict(zip(cluster.dimensions, level.ratio.tolist(), strict=True)),
            }
        )
    elif not arguments.quiet:
        print(report_state(cluster, audited, level, **page()), end="")
    return DONE if audited.ok else LEFT_BROKEN
