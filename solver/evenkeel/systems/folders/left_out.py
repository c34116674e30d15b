"""What a folder leaves out of a plan, and why, in words."""

from collections.abc import Sequence

import numpy as np

from evenkeel.model.intake.stranded import stranded
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.planning.outcome import Blocked
from evenkeel.planning.plan import Plan
from evenkeel.systems.folders.carrier import Wave
from evenkeel.systems.folders.words import plain, shown

REPAIRS_STAY = "what was short of replicas before the plan stays as the plan leaves it"


def left_of_plan(plan: Plan) -> str:
    """Return what a plan does not do of what it was asked for; "" where it does all."""
    sentences = []
    if plan.blocked:
        moves, have = ("move", "has") if len(plan.blocked) == 1 else ("moves", "have")
        names = some_of(plan.blocked, lacking)
        sentences.append(
            f"{len(plan.blocked):,} {moves} {have} no safe order and are left out: {names}"
        )
    held = np.flatnonzero(stranded(plan.cluster.placement)).tolist()
    if held:
        names = some_of(held, lambda p: shown(plan.cluster.partitions.names[p]))
        whose = counted(len(held), "partition")
        sentences.append(f"no live replica surely has all the data of {whose}: {names}")
    return "; ".join(sentences)


def left_of_way_back(plan: Plan, back: Plan, ways_back: Sequence[Wave]) -> str:
    """Return what a way back does not take back of what a plan does."""
    if back.blocked:
        return f"{counted(len(back.blocked), 'change')} cannot be taken back: {_no_way_back(back)}"
    if len(plan) and not ways_back:
        return REPAIRS_STAY
    return ""


def _no_way_back(back: Plan) -> str:
    """Return which changes cannot be taken back, and why."""
    nodes = back.cluster.nodes
    down = {nodes.names[n] for n in np.flatnonzero(~nodes.serves).tolist()}
    return some_of(
        back.blocked,
        lambda one: lacking(one, f"{shown(one.target)} is down" if one.target in down else ""),
    )


def lacking(one: Blocked, why: str = "") -> str:
    """Say which change of which replica is left out, and why."""
    ends = [shown(end) if end else "nowhere" for end in (one.source, one.target)]
    way = " -> ".join(ends) if one.change == "move" else f"{one.change} on {ends[1]}"
    return f"{shown(one.partition)}[{one.slot}] {way} ({why or f'no {plain(one.lacks)}'})"
