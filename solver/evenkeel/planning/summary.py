"""Summary of a plan in words: losses, waves, recovery, throttle."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.planning.bounds import copying_bound
from evenkeel.planning.steps import StepKind, Steps
from evenkeel.planning.throttle import BY_TIER, COUNTS, RATES

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


def losses_in_words(plan: "Plan") -> str:
    """Return a sentence on rules that only the end breaks, and on copies without a live source.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]]).down("n0")
    >>> losses_in_words(ek.solve(c).plan())
    ' Of 1 partition no replica lives: what is copied first comes from elsewhere, or is empty.'
    """
    text = ""
    if plan.regressions:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in plan.regressions.items())
        text = f" Its end breaks rules that the beginning keeps: {kinds}."
    steps, start = plan.steps, plan.cluster.placement
    held = np.bincount(start.owner[start.node >= 0], minlength=len(start)) > 0
    nowhere = np.unique(steps.partition[(steps.kind == StepKind.COPY) & (steps.source < 0)])
    if count := int(np.count_nonzero(held[nowhere])):
        text += (
            f" Of {counted(count, 'partition')} no replica lives: what is copied first comes from "
            "elsewhere, or is empty."
        )
    return text


def wave_numbers(plan: "Plan") -> NDArray[np.int64]:
    """Return the number of each step's wave as people count, from 1 on, (S,)."""
    return np.searchsorted(np.unique(plan.steps.wave), plan.steps.wave) + 1


def seconds_by_wave(plan: "Plan", waves: Sequence[NDArray[np.intp]] | None = None) -> list[float]:
    """Return how long each wave takes at least, since all of it ends before the next begins.

    ``waves`` are the steps of each; the plan's own without them. Windows are left out of account.
    """
    steps, throttle = plan.steps, replace(plan.throttle, windows=None)
    copied = steps.kind == StepKind.COPY
    found = []
    for wave in plan.waves if waves is None else waves:
        own = wave[copied[wave]]
        waits = np.zeros(len(own) + 1, np.int64)
        alone = Steps(
            steps.kind[own], steps.partition[own], steps.replica[own], steps.source[own],
            steps.target[own], steps.size[own], steps.start[own], steps.finish[own],
            steps.wave[own], waits, np.zeros(0, np.int32),
        )  # fmt: skip
        exchange = plan.change[own] if plan.protocol.whole else None
        in_turn = exchange is None
        found.append(copying_bound(plan.cluster, alone, throttle, in_turn, exchange).seconds)
    return found


def short_until(plan: "Plan") -> NDArray[np.float64]:
    """Return when each partition has as many live replicas as are wanted, (P,); inf for never.

    A replica that was nowhere, or on a node that has died, lives again when it serves on a live
    node: as its promotion or its swap has finished.
    """
    cluster, steps = plan.cluster, plan.steps
    live = np.append(cluster.nodes.serves, False)
    start = cluster.placement
    having = np.bincount(start.owner[live[start.node]], minlength=len(start))
    lack = np.maximum(cluster.partitions.replicas - having, 0)
    until = np.where(lack > 0, np.inf, 0.0)
    serves = np.isin(steps.kind, (StepKind.PROMOTE, StepKind.SWAP)) & live[steps.target]
    serves &= ~live[start.node[steps.replica]]
    # of a replica that moves twice the first time counts
    which = np.flatnonzero(serves)
    which = which[np.lexsort((steps.finish[which], steps.replica[which]))]
    which = which[np.diff(steps.replica[which], prepend=-1) != 0]
    which = which[np.lexsort((steps.finish[which], steps.partition[which]))]
    partition = steps.partition[which]
    opens = np.flatnonzero(np.diff(partition, prepend=-1))
    count = np.diff(np.append(opens, len(which)))
    owner = partition[opens]
    repaired = np.flatnonzero((lack[owner] > 0) & (count >= lack[owner]))
    last = opens[repaired] + lack[owner[repaired]] - 1
    until[owner[repaired]] = steps.finish[which[last]]
    return until


def held_to(plan: "Plan") -> str:
    """Return the protocol and the throttle in words."""
    throttle = plan.throttle
    parts = [f"protocol {plan.protocol.name}"]
    parts += [
        f"{name} {quantity(value)}"
        for name in (*COUNTS, *RATES)
        if (value := getattr(throttle, name)) is not None
    ]  # fmt: skip
    for name in BY_TIER:
        parts += [
            f"{name} {tier} {quantity(most)}" for tier, most in getattr(throttle, name).items()
        ]
    if throttle.windows is not None:
        parts.append("in windows of time")
    if throttle.recovery_first:
        parts.append("recovery first")
    return " · ".join(parts)
