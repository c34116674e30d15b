"""``evenkeel plan``: compute safe steps from the current placement to the target."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.cli.arguments import Commands, add_command, limits_of, protocol_of, throttle_from
from evenkeel.cli.commands.explain import index_of
from evenkeel.cli.commands.solve import solved
from evenkeel.cli.output import (
    BROKEN,
    DONE,
    FELL_SHORT,
    INTERRUPTED,
    check_apart,
    check_outputs,
    check_report,
    check_table,
    code_of,
    complain,
    emit,
    list_files,
    list_kinds,
    page,
    write_table,
)
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Interrupting, Waiting
from evenkeel.model.placement import placement_of
from evenkeel.model.runtime.printable import counted, some_of

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.placement import Placed, Placement
    from evenkeel.planning.plan import Plan
    from evenkeel.planning.replay import Certificate

SUFFIX = ".json"  # how the file of a plan ends; anything else is the name of a folder
MOST_NAMED = 10  # nodes that have died, or partitions that are new, which a note names


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "turn a target into steps that are safe at every instant, and check them"
    parser = add_command(commands, "plan", summary, run)
    parser.add_files()
    parser.add_argument(
        "--target", action="append", metavar="FILE",
        help="where everything should be, in a file that names the same partitions, such as OUT of "
        "solve; partitions that it leaves out stay; without it, where solve would place it",
    )  # fmt: skip
    parser.add_argument(
        "--protocol", metavar="NAME",
        help="what the system can do: plain, kafka, cockroach, ceph, helix or longhorn; that of "
        "the files' system by default",
    )  # fmt: skip
    parser.add_throttle(
        "node-in, node-out, copies: most copies at once; disk-moves: most moves between "
        "disks of a node at once; domain-in, domain-out: TIER=N; "
        "node-bandwidth: bytes per second, such as 100MB; priority: GROUP=X; "
        "window: BEGIN-END in which copies run, counted from the plan's beginning and not from "
        "midnight, such as 0-8h, with every: after which windows come again, such as 24h; "
        "recovery-first: yes; may be given several times"
    )
    parser.add_argument(
        "-o", "--out", metavar="OUT",
        help="file for the plan, if it ends in .json; else the folder to carry it out with, and "
        "none if nothing is to be done",
    )  # fmt: skip
    parser.add_argument("--table", metavar="OUT", help="file for the steps, .csv or .json")
    parser.add_report("plan")
    parser.add_argument(
        "--without-cluster", action="store_true",
        help="leave the cluster out of OUT, which check then has to be given beside it",
    )  # fmt: skip
    parser.add_argument(
        "--explain", metavar="PARTITION", help="say why each step of a partition waits"
    )
    parser.add_usual("--force")
    parser.add_changes()
    parser.add_solving()
    parser.examples = (
        "evenkeel plan cluster.npz --throttle node-in=2 --throttle copies=20 -o plan.json",
        "evenkeel plan now.json --target wanted.json --protocol kafka --explain orders-17",
        "evenkeel plan described.txt logdirs.json --throttle node-in=2 -o move",
    )
    parser.add_metrics()
    parser.add_output()


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.planning.planner import plan
    from evenkeel.view.plans import report_plan

    check_table(arguments.table)
    check_report(arguments.report)
    read = [*arguments.files, *(arguments.target or ())]
    check_outputs(read, [arguments.table, arguments.report], force=arguments.force)
    check_plan_out(read, arguments.out, force=arguments.force)
    check_apart([arguments.out, arguments.table, arguments.report])
    throttle = throttle_from(arguments.throttle)
    with Waiting(arguments.quiet, arguments.time_limit) as waiting, Interrupting() as stopping:
        cluster = read_cluster(arguments, waiting)
        check_carrier(cluster, arguments.out)
        chosen = None if arguments.explain is None else index_of(cluster, arguments.explain)
        target, short, lacking, named = _target(cluster, arguments, waiting, stopping)
        waiting.doing("planning")
        found = plan(cluster, target, throttle=throttle, protocol=protocol_of(cluster, arguments))
        waiting.doing("checking")
        certificate = found.check()
        # what was solved for keeps its limits, a target that was given need not
        beyond = [] if arguments.target is None else beyond_limits(found, arguments)
        waiting.doing("writing")
        written = [] if beyond else _written(found, certificate, arguments)
    note_held(arguments, arguments.files, written)
    note_orders(arguments, found, placement_of(target), named)
    explained = None if chosen is None else found.explain(chosen)
    code = BROKEN if beyond else code_of_plan(found, certificate)
    if short and code != BROKEN:
        code = short
    verdict = lacking if short else verdict_of_plan(found, certificate, beyond)

    def text() -> str:
        sentence = report_plan(found, certificate, beyond=beyond, lacking=lacking, **page())
        if beyond:
            return f"{sentence}\nnothing written\n"
        if explained is not None:
            sentence += f"\n{explained}\n"
        return sentence + list_plan_files(
            written, certificate, arguments.out,
            "nothing written; -o OUT writes the plan, --table OUT its steps",
        )  # fmt: skip

    def figures() -> dict[str, Any]:
        figures: dict[str, Any] = {
            "verdict": verdict, "target": lacking, "written": [*map(str, written)]
        }  # fmt: skip
        figures |= {} if explained is None else {"explained": str(explained).splitlines()}
        return figures_of_plan(found, certificate, beyond) | figures

    return emit(
        arguments, INTERRUPTED if stopping.asked else code, figures=figures, text=text,
        verdict=verdict, asked=explained or "",
    )  # fmt: skip


def beyond_limits(plan: "Plan", arguments: argparse.Namespace) -> list[str]:
    """Return the limits of the arguments that a plan exceeds."""
    from evenkeel.measure.spending import exceeded

    return exceeded(plan.cluster, plan.end, limits_of(arguments))


def code_of_plan(plan: "Plan", certificate: "Certificate") -> int:
    """Return the exit code for a plan and what its check found."""
    if not certificate.ok or plan.regressions:
        return BROKEN
    return DONE if plan.complete else FELL_SHORT


def verdict_of_plan(plan: "Plan", certificate: "Certificate", beyond: Sequence[str]) -> str:
    """Return in a line what is wrong with a plan, which exceeds some limits."""
    if not certificate.ok:
        return f"the plan is not safe: {list_kinds(certificate.counts)}"
    if beyond:
        return f"the plan exceeds its limits: {', '.join(beyond)}"
    if plan.astray:
        return f"the steps leave {counted(plan.astray, 'partition')} elsewhere than the target"
    if plan.regressions:
        return f"its end breaks rules that the beginning keeps: {list_kinds(plan.regressions)}"
    held = len(plan.blocked) + len(plan.disk_moves.blocked)
    return f"blocked: {counted(held, 'move')}" if held else ""


def list_plan_files(
    written: list[Path], certificate: "Certificate", out: str | None, otherwise: str = ""
) -> str:
    """Return a line for each file written, or why there is none."""
    if out is None or out.endswith(SUFFIX) or Path(out) in written:
        return list_files(written, otherwise)
    why = "nothing is to be done" if certificate.ok else "a plan that is not safe has no folder"
    older = "; what stands there is of an older plan" if Path(out).exists() else ""
    return f"{out} was not written: {why}{older}\n" + list_files(written)


def figures_of_plan(
    plan: "Plan", certificate: "Certificate", beyond: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what ``--json`` says of a plan, which exceeds some limits."""
    from evenkeel.model.intake.stranded import stranded_names
    from evenkeel.planning.explain import seconds_by_wave

    return {
        "verdict": verdict_of_plan(plan, certificate, beyond),
        "safe": certificate.ok,
        "exceeded": [*beyond],
        "complete": plan.complete,
        "steps": len(plan),
        "waves": len(plan.waves),
        "copies": plan.copies,
        "bytes": plan.bytes,
        "makespan": plan.makespan,
        "makespan_by_waves": sum(seconds_by_wave(plan)),
        "makespan_at_least": plan.bound.seconds,
        "at_least_by": plan.bound.term,
        "protocol": plan.protocol.name,
        "broken": certificate.counts,
        "regressions": dict(plan.regressions),
        "breaches": [vars(one) for one in certificate.breaches[:100]],
        "tightest": [vars(one) for one in certificate.tightest],
        "blocked": [vars(one) for one in plan.blocked],
        "disk_moves": len(plan.disk_moves.done),
        "disk_bytes": plan.disk_moves.bytes,
        "disk_waves": plan.disk_moves.waves,
        "disk_moves_blocked": len(plan.disk_moves.blocked),
        "stranded": stranded_names(plan.cluster),
    }


def _target(
    cluster: "Cluster", arguments: argparse.Namespace, waiting: Waiting, stopping: Interrupting
) -> tuple["Placed | Placement", int, str, Sequence[str]]:
    """Return where everything should be, its exit code, what it lacks, and which it names."""
    if arguments.target is None:
        result = solved(cluster, arguments, waiting, stopping)
        lacking = "" if result.success else f"{result.status}. {result.message}"
        return result, code_of(result.status), lacking, cluster.partitions.names
    from evenkeel.systems.plans.targets import target_by_name
    from evenkeel.systems.registry import read

    waiting.doing(f"reading {', '.join(arguments.target)}")
    wanted = read(arguments.target)
    target = target_by_name(cluster, wanted)
    note_left_alone(arguments, cluster, wanted, "the target", "stay where they are")
    return target, DONE, "", wanted.partitions.names


def note_orders(
    arguments: argparse.Namespace, plan: "Plan", target: "Placement", named: Iterable[str]
) -> None:
    """Say which lists of the named partitions stay though the target has another order."""
    start, names, asked = plan.cluster.placement, plan.cluster.partitions.names, {*named}
    first = start.preferred_node != target.preferred_node
    behind = np.zeros(len(start), np.bool_)
    if arguments.target is not None and plan.protocol.names_all:
        was, then = start.nodes, target.nodes
        behind = (was != then).any(1) & (np.sort(was) == np.sort(then)).all(1)
    for differs, why in (
        (
            first & (start.preferred_node != start.leader_node),
            "led by others than the first of its list: the lead goes back to the first, since no "
            "list is taken that names a broker that is down",
        ),
        (behind & ~first, "whose list differs from the target's behind the first alone"),
    ):
        still = np.setdiff1d(np.flatnonzero(differs), plan.steps.partition).tolist()
        left = [name for p in still if (name := str(names[p])) in asked]
        if left and not arguments.quiet:
            complain(
                f"note: no step of {counted(len(left), 'partition')} "
                f"({some_of(left, str, MOST_NAMED)}), {why}"
            )


def note_left_alone(
    arguments: argparse.Namespace, cluster: "Cluster", named: "Cluster", what: str, stay: str
) -> None:
    """Say of how many partitions files say nothing, what is made of that, and which are new."""
    if arguments.quiet:
        return
    known, count = {*cluster.partitions.names}, len(cluster.partitions)
    new = [name for name in named.partitions.names if name not in known]
    there = len(named.partitions) - len(new)
    if there < count:
        complain(f"note: {what} names {there:,} of {count:,} partitions: the other ones {stay}")
    if new:
        names = some_of(new, str, MOST_NAMED)
        complain(f"note: {what} has {counted(len(new), 'partition')} more, left out: {names}")


def check_plan_out(read: Sequence[str], out: str | None, *, force: bool) -> None:
    """Raise for a place where no plan can be put, before any work is done for it."""
    from evenkeel.systems.folders.held import holding
    from evenkeel.systems.folders.writing import check_folder

    if out is not None and not out.endswith(SUFFIX):
        check_apart([out])
        check_folder(out, overwrite=force, holder=holding(read))
    else:
        check_outputs(read, [out], force=force)


def check_carrier(cluster: "Cluster", out: str | None) -> None:
    """Raise where a folder is asked for of what is of no system, before any work is done for it."""
    from evenkeel.systems.folders.writing import carrier_of

    if out is not None and not out.endswith(SUFFIX):
        carrier_of(cluster.native_format)


def note_held(arguments: argparse.Namespace, read: Sequence[str], written: Sequence[Path]) -> None:
    """Say that the run of a folder that files were read of holds a setting of the system."""
    from evenkeel.systems.folders.held import files, holding

    if arguments.quiet or (holder := holding(read)) is None:
        return
    later = [one for one in written if files(one)]
    if later:
        end = f"the run of {later[0]} gives it back at its end"
    else:
        end = f"`evenkeel run {holder} --release` gives it back"
    complain(f"note: the run of {holder} still holds a setting of the system: {end}")


def write_plan_out(
    plan: "Plan",
    certificate: "Certificate",
    out: str,
    read: Sequence[str],
    *,
    force: bool,
    with_cluster: bool = True,
) -> list[Path]:
    """Write a plan to a file or a folder, as the ending of the name says."""
    from evenkeel.systems.folders.held import holding
    from evenkeel.systems.folders.writing import write_plan_folder
    from evenkeel.systems.plans.writing import write_plan

    if out.endswith(SUFFIX):
        return [write_plan(plan, out, with_cluster=with_cluster)]
    # what the folder of a stopped run holds goes along
    holder = holding(read)
    moves = len(plan) or plan.disk_moves.waves
    if not certificate.ok or not (moves or holder):  # a setting of a stopped run is given back
        return []
    return [write_plan_folder(plan, out, overwrite=force, after=holder)]


def _written(plan: "Plan", certificate: "Certificate", arguments: argparse.Namespace) -> list[Path]:
    """Write the plan, the table of its steps and its page where they were asked for."""
    from evenkeel.view.plans import steps_table

    written = []
    if arguments.out is not None:
        kept, force = not arguments.without_cluster, arguments.force
        out = arguments.out
        read = arguments.files
        written += write_plan_out(plan, certificate, out, read, force=force, with_cluster=kept)
    if arguments.table is not None:
        written.append(write_table(steps_table(plan), arguments.table))
    if arguments.report is not None:
        from evenkeel.view.html import write_page
        from evenkeel.view.plans import plan_page

        written.append(write_page(plan_page(plan, certificate), arguments.report))
    return written
