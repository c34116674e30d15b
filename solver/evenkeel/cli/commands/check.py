"""``evenkeel check``: count the violations of a placement, or replay a plan."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import (
    LIMITS,
    NOT_GIVEN,
    OTHER_GOALS,
    TIER_LIMITS,
    Commands,
    add_command,
    goals_of,
    option_name,
    throttle_from,
)
from evenkeel.cli.commands.plan import beyond_limits, code_of_plan, figures_of_plan, verdict_of_plan
from evenkeel.cli.output import BROKEN, DONE, by_group, emit, list_kinds, page
from evenkeel.cli.reading import files_of, read_cluster, read_files, with_measured_loads
from evenkeel.cli.waiting import Waiting
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.runtime.printable import counted

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster


def add(commands: Commands) -> None:
    """Add the command."""
    summary = (
        "count the rules that a placement breaks as it stands, or replay a plan, whichever tool "
        "wrote it"
    )
    parser = add_command(commands, "check", summary, run)
    parser.add_files("a cluster, or a plan, with its cluster where that is not within it")
    parser.add_throttle("hold a plan to this instead of to its own throttle, as plan takes it")
    parser.add_goals(parser.add_argument_group("goals that a cluster as it is has to meet"))
    parser.add_limits()
    parser.add_changes()
    parser.add_by_group()
    parser.add_metrics()
    parser.add_output()
    parser.examples = (
        "evenkeel check cluster.npz --drain zone=a",
        "evenkeel check cluster.npz --level 10% --leaders 20%",
        "evenkeel check plan.json --throttle node-in=1 --moves 500",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.systems.plans.reading import holds_plan

    with Waiting(arguments.quiet) as waiting:
        given = files_of(arguments, waiting)
        files = [one if isinstance(one, str) else one.read() for one in given]
        plans = [one for one in files if holds_plan(one)]
        others = [one for one in files if not holds_plan(one)]
        if len(plans) > 1:
            raise InvalidInput([Fault("FILE", arguments.files, "has more than one plan")])
        _check_asked(arguments, plan=bool(plans))
        if not plans:
            return _check_placement(read_cluster(arguments, waiting, files), arguments, waiting)
        cluster = None
        if others:
            cluster = with_measured_loads(arguments, read_files(arguments, others))
        elif arguments.loads:
            message = "are of a cluster: name its files beside the plan"
            raise InvalidInput([Fault("--loads", arguments.loads, message)])
        return _check_plan(plans[0], cluster, arguments, waiting)


def _check_asked(arguments: argparse.Namespace, *, plan: bool) -> None:
    """Raise for what goes with a plan only, or with a placement only, unless it is assumed."""
    faults = FaultList()
    names, message = ("throttle", *LIMITS, *TIER_LIMITS), "goes with a plan; there is none"
    if plan:
        changes, goals = (("drain", "exclude", "pin", "add_nodes"), ("level", *OTHER_GOALS))
        names, message = (*changes, *goals), "a plan is of its cluster"
    for name in names:
        value = getattr(arguments, name)
        if value not in (None, [], NOT_GIVEN) and name not in arguments.assumed:
            faults.add(option_name(name), value, message)
    faults.raise_if_any()


def _check_plan(
    file: str | bytes, cluster: "Cluster | None", arguments: argparse.Namespace, waiting: Waiting
) -> int:
    """Replay a plan for the cluster within it, or for one that was given beside it."""
    from evenkeel.systems.plans.reading import read_plan
    from evenkeel.view.plans import report_plan

    plan = read_plan(file, cluster)
    if arguments.throttle:
        plan = replace(plan, throttle=throttle_from(arguments.throttle))
    waiting.doing("checking")
    certificate = plan.check()
    beyond = beyond_limits(plan, arguments)
    verdict = verdict_of_plan(plan, certificate, beyond)
    return emit(
        arguments, BROKEN if beyond else code_of_plan(plan, certificate),
        figures=lambda: figures_of_plan(plan, certificate, beyond),
        text=lambda: report_plan(plan, certificate, beyond=beyond, **page()), verdict=verdict,
    )  # fmt: skip


def _check_placement(cluster: "Cluster", arguments: argparse.Namespace, waiting: Waiting) -> int:
    """Count what the placement of a cluster breaks."""
    from evenkeel.measure.audit import audit
    from evenkeel.measure.bounds import bounds, goals_met
    from evenkeel.measure.disks import disk_report
    from evenkeel.measure.group_goals import group_excesses
    from evenkeel.measure.levelness import levelness
    from evenkeel.model.goals import check_goals
    from evenkeel.model.intake.stranded import left_alone_message, stranded_names, unjudged
    from evenkeel.result_rows import down_nodes, waiting_replicas
    from evenkeel.systems.registry import system_of
    from evenkeel.verdict import broken_disks, excesses, missed_disks
    from evenkeel.view.results import report_state

    waiting.doing("checking")
    own = vars(arguments) | dict.fromkeys(arguments.assumed.intersection(OTHER_GOALS))
    if "level" in arguments.assumed:
        own["level"] = NOT_GIVEN  # at the top of a file of options goals are for solves
    goals = goals_of(argparse.Namespace(**own))
    if goals is not None and own["level"] is NOT_GIVEN:
        goals = replace(goals, level=None)  # what is not named is not checked
    if goals is not None:
        faults = FaultList()
        check_goals(faults, cluster, goals)
        faults.raise_if_any()
    audited = audit(cluster, cluster.placement)
    level = levelness(cluster, cluster.placement)
    # what waits on a node that is down breaks no rule, but it does not live either
    held = waiting_replicas(cluster, cluster.placement)
    asked: dict[str, Any] = {}
    if goals is not None:
        proven = bounds(cluster, goals)
        crowded = [*group_excesses(cluster, goals, cluster.placement)]
        met = goals_met(level, proven) and not crowded
        missed = [] if met else [*excesses(cluster, goals, proven, level), *crowded]
        asked = {"met": met, "missed": missed, "moves_at_least": proven.moves_level}
    verdicts = [f"{counted(audited.hard, 'hard violation')}: {list_kinds(audited.counts)}"] * bool(
        audited.hard
    )
    verdicts += [f"replicas that wait on nodes that are down: {held:,}"] * bool(held)
    unfilled = system_of(cluster).unfilled(cluster)
    verdicts += [f"replicas on no node, which no order can place: {unfilled:,}"] * bool(unfilled)
    idle = stranded_names(cluster)
    verdicts += [
        f"partitions without a live replica that surely has all data: {len(idle):,}"
    ] * bool(idle)
    verdicts += [left_alone_message(cluster)] * bool(not verdicts and unjudged(cluster))
    broken = ""
    if cluster.disks is not None:
        disks = disk_report(cluster, cluster.placement, None if goals is None else goals.disks)
        broken = f"inside nodes, {broken_disks(disks)}" if disks.broken else ""
        verdicts += [broken] * bool(broken)
        if goals is not None and (above := missed_disks(disks)):
            asked |= {"met": False, "missed": [*asked["missed"], above]}
        if asked:
            asked["disk_moves_at_least"] = disks.moves_at_least
    verdicts += [f"goal missed: {one}" for one in asked.get("missed", ())]

    groups, more = by_group(arguments, cluster, cluster.placement)

    def figures() -> dict[str, Any]:
        return {
            "hard_violations": audited.hard,
            "soft_violations": audited.soft,
            "broken": {kind: count for kind, count in audited.counts.items() if count},
            "violations": [
                {name: value for name, value in row._asdict().items() if value != ""}
                for row in audited.table()
            ],
            "stranded": idle,
            "unfilled": unfilled,
            "not_alive": [vars(one) for one in down_nodes(cluster, cluster.placement)],
            "level": dict(zip(cluster.dimensions, level.ratio.tolist(), strict=True)),
            "leader_level": level.leader_ratio,
            **({"goals": asked} if asked else {}),
            **(
                {
                    "broken_disks": disks.broken,
                    "disk_level": disks.level,
                    "disk_replicas_to_leave": len(disks.to_empty),
                }
                if cluster.disks is not None
                else {}
            ),
            **more,
        }

    return emit(
        arguments, BROKEN if verdicts else DONE, figures=figures,
        text=lambda: report_state(
            cluster, audited, level, goals=asked, disks=broken, **page()
        ) + groups,
        verdict="; ".join(verdicts),
    )  # fmt: skip
