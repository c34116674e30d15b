"""``evenkeel resume``: how far a plan has come, and the rest of it from where everything is."""

import argparse

from evenkeel.cli.arguments import Commands, add_command, add_files, add_output
from evenkeel.cli.commands.plan import (
    check_plan_out,
    code_of_plan,
    figures_of_plan,
    told_plan_files,
    verdict_of_plan,
    write_plan_out,
)
from evenkeel.cli.commands.solve import read_cluster
from evenkeel.cli.output import page, tell
from evenkeel.cli.waiting import Waiting


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "tell how far a plan has come, and plan the rest from where everything is"
    parser = add_command(commands, "resume", summary, run)
    parser.add_argument("plan", metavar="PLAN", help="the plan that is carried out")
    add_files(parser, "the cluster as it is now")
    parser.add_argument(
        "--elapsed", type=float, metavar="S", help="seconds since the plan began, to tell its pace"
    )
    parser.add_argument(
        "-o", "--out", metavar="OUT",
        help="file for the rest of the plan, if it ends in .json; else a folder, as of plan",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="write OUT even where it is one of the files read"
    )
    parser.examples = ("evenkeel resume plan.json now.npz --elapsed 600 -o rest.json",)
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.formats.plans.reading import read_plan
    from evenkeel.formats.plans.targets import observed_by_name
    from evenkeel.view.plan_report import report_plan

    check_plan_out([arguments.plan, *arguments.files], arguments.out, force=arguments.force)
    with Waiting(arguments.quiet) as waiting:
        waiting.doing(f"reading {arguments.plan}")
        plan = read_plan(arguments.plan)
        now = observed_by_name(plan.cluster, read_cluster(arguments, waiting))
        waiting.doing("planning")
        progress = plan.progress(now, elapsed=arguments.elapsed)
        rest = plan.resume(now)
        certificate = rest.check()
        out, force = arguments.out, arguments.force
        written = [] if out is None else write_plan_out(rest, certificate, out, force=force)
    told = {
        "done": int(progress.done.sum()),
        "under_way": int(progress.under_way.sum()),
        "bytes_done": progress.bytes_done,
        "seconds_left": progress.left,
        "seconds_left_so_far": progress.left_so_far,
        "astray": progress.astray,
    }
    return tell(
        arguments, code_of_plan(rest, certificate),
        figures=lambda: {"progress": told, "rest": figures_of_plan(rest, certificate),
                         "written": [*map(str, written)]},
        text=lambda: f"{progress}\n\n{report_plan(rest, certificate, **page())}"
        + told_plan_files(written, certificate, out),
        verdict=verdict_of_plan(rest, certificate),
    )  # fmt: skip
