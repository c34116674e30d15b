"""``evenkeel resume``: report the progress of a plan, and plan the rest of it."""

import argparse
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.commands.plan import (
    MOST_NAMED,
    check_carrier,
    check_plan_out,
    code_of_plan,
    figures_of_plan,
    list_plan_files,
    note_held,
    note_left_alone,
    verdict_of_plan,
    write_plan_out,
)
from evenkeel.cli.output import complain, emit, page
from evenkeel.cli.reading import files_of, note_left_out, read_files, with_measured_loads
from evenkeel.cli.waiting import Waiting
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import some_of

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.planning.plan import Plan


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "tell how far a plan has come, and plan the rest from where everything is"
    parser = add_command(commands, "resume", summary, run)
    parser.add_argument("plan", metavar="PLAN", help="the plan that is carried out")
    parser.add_files("the cluster as it is now")
    parser.add_argument(
        "--elapsed", type=float, metavar="S", help="seconds since the plan began, to tell its pace"
    )
    parser.add_argument(
        "--arrived", action="append", default=[], metavar="PARTITION=NODE=SHARE",
        help="what share, such as 0.6 or 60%%, of a copy in flight to a node is there already; "
        "may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--out", metavar="OUT",
        help="file for the rest of the plan, if it ends in .json; else a folder, as of plan",
    )  # fmt: skip
    parser.add_usual("--force")
    parser.examples = (
        "evenkeel resume plan.json now.npz --elapsed 600 -o rest.json",
        "evenkeel resume plan.json now.npz --arrived orders-17=n5=60%",
    )
    parser.add_metrics()
    parser.add_output()


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.systems.documents import Document
    from evenkeel.systems.folders.carrier import names_all_nodes
    from evenkeel.systems.plans.reading import read_plan
    from evenkeel.systems.plans.targets import observed_by_name
    from evenkeel.view.plans import report_plan

    sources = [arguments.plan, *arguments.files]
    check_plan_out(sources, arguments.out, force=arguments.force)
    with Waiting(arguments.quiet) as waiting:
        waiting.doing(f"reading {arguments.plan}")
        plan = read_plan(arguments.plan)
        given = files_of(arguments, waiting)
        files = [one if isinstance(one, str) else one.read() for one in given]
        seen = with_measured_loads(arguments, read_files(arguments, files))
        whole = names_all_nodes(seen.native_format, [*map(Document.load, files)])
        now = observed_by_name(plan.cluster, seen, all_nodes=whole)
        note_left_out(arguments, now)
        check_carrier(now, arguments.out)
        _note_missing(arguments, plan, seen, now)
        waiting.doing("planning")
        arrived = arrived_of(plan, arguments.arrived)
        progress = plan.progress(now, elapsed=arguments.elapsed, arrived=arrived)
        rest = plan.resume(now, arrived=arrived)
        certificate = rest.check()
        out, force = arguments.out, arguments.force
        written = (
            [] if out is None else write_plan_out(rest, certificate, out, sources, force=force)
        )
    note_held(arguments, sources, written)
    state = {
        "done": int(progress.done.sum()),
        "under_way": int(progress.under_way.sum()),
        "bytes_done": progress.bytes_done,
        "disk_moves_left": progress.disk_moves_left,
        "seconds_left": None if progress.died else progress.left,
        "seconds_left_so_far": None if progress.died else progress.left_so_far,
        "astray": progress.astray,
    }
    return emit(
        arguments, code_of_plan(rest, certificate),
        figures=lambda: {"progress": state, "rest": figures_of_plan(rest, certificate),
                         "written": [*map(str, written)]},
        text=lambda: f"{progress}\n\n{report_plan(rest, certificate, **page())}"
        + list_plan_files(written, certificate, out),
        verdict=verdict_of_plan(rest, certificate, ()),
    )  # fmt: skip


def _note_missing(
    arguments: argparse.Namespace, plan: "Plan", seen: "Cluster", now: "Cluster"
) -> None:
    """Say what nothing is known of, and which nodes have died since."""
    from evenkeel.systems.plans.targets import missing_in

    taken = "are taken to be where the plan begins"
    note_left_alone(arguments, plan.cluster, seen, "what is there now", taken)
    if (missing := missing_in(plan.cluster, seen)) and not arguments.quiet:
        names = ", ".join(missing)
        complain(f"note: missing values are taken from the plan: {names}")
    died = np.flatnonzero(plan.cluster.nodes.alive & ~now.nodes.alive).tolist()
    if died and not arguments.quiet:
        names = some_of(died, now.nodes.names.__getitem__, MOST_NAMED)
        complain(
            f"note: dead since the plan was made: {names}; what lies there and was not to "
            "move is not repaired by the rest of this plan: plan afresh"
        )


def arrived_of(plan: "Plan", given: list[str]) -> dict[tuple[str, str], float]:
    """Return shares of copies by partition and node, out of texts such as ``orders-17=n5=60%``."""
    faults = FaultList()
    partitions, nodes = ({*one.names} for one in (plan.cluster.partitions, plan.cluster.nodes))
    found: dict[tuple[str, str], float] = {}
    for text in given:
        names, _, share = text.rpartition("=")
        words = names.split("=")
        pairs = [("=".join(words[:i]), "=".join(words[i:])) for i in range(1, len(words))]
        known = [pair for pair in pairs if pair[0] in partitions and pair[1] in nodes]
        percent = share.strip().endswith("%")
        try:
            value = float(share.strip().removesuffix("%")) / (100.0 if percent else 1.0)
        except ValueError:
            faults.add("arrived", text, "is not of the form PARTITION=NODE=SHARE")
            continue
        if not known:
            faults.add("arrived", text, "names no partition and node of the plan")
        elif known[0] in found:
            faults.add("arrived", text, "is given twice")
        else:
            found[known[0]] = value
    faults.raise_if_any()
    return found
