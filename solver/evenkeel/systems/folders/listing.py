"""The waves of a plan as its page lists them: what each changes, how much that is, and how long."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import amount, duration
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import StepKind
from evenkeel.planning.summary import seconds_by_wave
from evenkeel.systems.folders.carrier import Carrier, Change, Wave
from evenkeel.systems.folders.words import shown

MOST_CHANGES = 10
"""Partitions of a wave that are listed one by one."""


def wave_table(plan: Plan, carrier: Carrier, waves: Sequence[Wave]) -> str:
    """Return a row for each wave: how much it changes, copies, and how long that takes at least."""
    sized, paced = plan.cluster.bytes_dimension >= 0, plan.throttle.paces
    heads = ["wave", "partitions", "copies", "leader changes"]
    if sized:
        heads.append(shown(plan.cluster.dimensions[plan.cluster.bytes_dimension]))
    heads += ["at least"] if paced else []
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    lasts = seconds_of(plan, waves) if paced else [0.0] * len(waves)
    copies = _copies(plan)
    for number, (wave, seconds) in enumerate(zip(waves, lasts, strict=True), start=1):
        led = sum(_leads_elsewhere(one, carrier) for one in wave)
        joins = sum(len(one.joins) for one in wave)
        cells = [f"{number}", f"{len(wave):,}", f"{joins:,}", f"{led:,}"]
        if sized:
            size = plan.steps.size[_steps_of(copies, wave)].sum()
            cells.append(amount(float(size)))
        cells += [duration(seconds)] if paced else []
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def change_list(plan: Plan, carrier: Carrier, waves: Sequence[Wave]) -> str:
    """Return a line for each wave: which replicas go from where to where, and who leads then."""
    names = plan.cluster.nodes.names
    lines = []
    for number, wave in enumerate(waves, start=1):
        changes = "; ".join(_change(names, one, carrier) for one in wave[:MOST_CHANGES])
        left = len(wave) - MOST_CHANGES
        more = f"; and {left:,} more, which `plan.json` has" if left > 0 else ""
        lines.append(f"- **{number}**: {changes}{more}")
    return "\n".join(lines)


def seconds_of(plan: Plan, waves: Sequence[Wave]) -> list[float]:
    """Return how long each wave takes at least, since all of it ends before the next begins."""
    copies = _copies(plan)
    return seconds_by_wave(plan, [_steps_of(copies, wave) for wave in waves])


def _copies(plan: Plan) -> dict[tuple[int, int], int]:
    """Return the step that copies a partition to a node, the last of several."""
    at = np.flatnonzero(plan.steps.kind == StepKind.COPY).tolist()
    partition, target = plan.steps.partition[at].tolist(), plan.steps.target[at].tolist()
    return dict(zip(zip(partition, target, strict=True), at, strict=True))


def _steps_of(copies: dict[tuple[int, int], int], wave: Wave) -> NDArray[np.intp]:
    """Return the copies of a wave."""
    pairs = [(one.partition, n) for one in wave for n in one.joins]
    return np.array([copies[pair] for pair in pairs if pair in copies], np.intp)


def _leads_elsewhere(one: Change, carrier: Carrier) -> bool:
    return carrier.leader(one) not in (-1, one.led)


def _change(names: Sequence[str], one: Change, carrier: Carrier) -> str:
    """Say what becomes of a partition."""
    leaves, joins = (", ".join(shown(names[n]) for n in nodes) for nodes in (one.leaves, one.joins))
    parts = []
    if leaves or joins:
        parts.append(f"{leaves or 'nowhere'} -> {joins or 'nowhere'}")
    if _leads_elsewhere(one, carrier):
        led = shown(names[one.led]) if one.led >= 0 else "none"
        parts.append(f"led by {shown(names[carrier.leader(one)])}, not {led}")
    return f"{shown(one.name)} {', '.join(parts) or 'in another order'}"
