"""Write a plan as a folder, wave by wave and atomically."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds_of_levels
from evenkeel.measure.levelness import levelness, mean_note
from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Placement
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import require
from evenkeel.model.runtime.atomic import as_path
from evenkeel.model.runtime.figures import amount, binary, data, duration
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.model.topology import with_labels
from evenkeel.planning.explain import held_to, seconds_by_wave
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import planned
from evenkeel.planning.steps import Blocked, StepKind, outcome
from evenkeel.systems.documents import collector_held
from evenkeel.systems.folders import held
from evenkeel.systems.folders.carrier import Carrier, Change, Wave, comers, places_of
from evenkeel.systems.folders.form import (
    FILE,
    VERSION,
    Expected,
    Form,
    WaveForm,
    encoded,
    lines_of,
    plain,
    preparing,
    settings_of,
    shown,
)
from evenkeel.systems.folders.guarding import (
    PLAN,
    STATE,
    State,
    digest_of,
    encoded_state,
    has_room_for_both,
)
from evenkeel.systems.one_way import left_disabled
from evenkeel.systems.plans.writing import encoded_beside, encoded_cluster
from evenkeel.systems.registry import find, is_known
from evenkeel.verdict import target_texts

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
    if count := len(plan.disk_moves.blocked):
        sentences.append(f"{counted(count, 'move')} between disks of a node have no room")
    return "; ".join(sentences)


def left_of_way_back(plan: Plan, back: Plan, ways_back: Sequence[Wave], led: str) -> str:
    """Return what a way back does not take back of what a plan does, but for leaders, ``led``."""
    left = []
    if back.blocked:
        count = counted(len(back.blocked), "change")
        left.append(f"{count} cannot be taken back: {_no_way_back(back)}")
    if some := np.flatnonzero(left_disabled(plan.cluster, plan.end)).tolist():
        names = some_of(some, lambda p: shown(plan.cluster.partitions.names[p]))
        left.append(f"nothing goes back to where it may not be: {names} stay")
    if left:
        return "; ".join(left)
    if len(plan) and not ways_back:
        return led or REPAIRS_STAY
    return ""


def leaders_of_way_back(carrier: Carrier, waves: Sequence[Wave]) -> str:
    """Return where others lead at the end of a way back than before the plan; "" for nowhere."""
    names = [
        one.name
        for one in {one.partition: one for wave in waves for one in wave}.values()
        if one.leads >= 0 and carrier.leader(one) not in (-1, one.leads)
    ]
    if not names:
        return ""
    where = some_of(names, shown)
    return f"other leaders than before the plan stay where the system elects them: {where}"


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


# partitions that are listed one by one: those of a wave at least, and those of all waves
MOST_CHANGES, MOST_OF_ALL = 10, 500

MOST_SHARES = 30  # nodes of which is listed what the system shows of them, those with the most


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
            cells.append((binary if carrier.binary else amount)(float(size)))
        cells += [duration(seconds)] if paced else []
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def change_list(plan: Plan, carrier: Carrier, waves: Sequence[Wave]) -> str:
    """Return a line for each wave: which replicas go from where to where, and who leads then."""
    names = plan.cluster.nodes.names
    lines = []
    most = max(MOST_CHANGES, MOST_OF_ALL // max(len(waves), 1))
    for number, wave in enumerate(waves, start=1):
        changes = "; ".join(_change(names, one, carrier) for one in wave[:most])
        left = len(wave) - most
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
    if one.first >= 0:
        parts.append(f"{shown(names[one.first])} first in its list")
    return f"{shown(one.name)} {', '.join(parts) or 'in another order'}"


MOST_COUNTS = 10_000_000  # pairs of a group and a node that are counted for one figure
MOST_REASONS = 12  # lines of nodes and groups that are listed as reasons
TEXT = """\
# A plan for {system}

{what}

## Why

{asked}| | before | after |
|---|---:|---:|
{why}

## Waves

{pace}

{waves}

{changes}
{blocked}{stranded}{down}
## What is here

| file | holds |
|---|---|
| `waves.json` | the commands of each wave, what it expects of the system and waits for |
| `waves/` | the files that commands read, in the system's own form |
| `run.sh` | calls `evenkeel run`, which carries `waves.json` out |
| `plan.json` | the plan, step by step: `evenkeel check plan.json` replays it |
| `cluster.npz` | the cluster that it begins with |
| `state.json` | how many waves were seen to be done |
| `undo/` | the way back, the same files |

## Before you run it

{notes}

## Run

```sh
sh run.sh
```

Where the tools of the system are, with `evenkeel` on the `PATH`. `sh run.sh --dry-run` looks at the
system and shows the commands that are left, `--until 3` pauses once wave 3 is done. Exit code 0:
all is done, or it paused; 1: a command failed or a wait was given up; 3: the system is not where
the plan expects it, or nothing is left but what the plan leaves out. Variables of the environment:

| variable | by default | meaning |
|---|---|---|
{settings}

## Stop

Interrupt it, at any time. What was ordered goes on by itself; nothing new is ordered, and a
setting of the system that is held is given back. A run that failed or was killed leaves it held: a
run that goes on gives it back at its end, and `sh run.sh --release` does so at once.

## Resume

Run it again: it looks where the system is, and goes on from there. Where that is not where the
plan expects it, it stops with exit code 3 and says what differs. Then plan the rest anew, from what
the system shows now (a run leaves what it saw in `dump/`):

```sh
evenkeel resume plan.json dump -o ../rest
```

That is the rest of this plan and no more: what lies on a node that has died since, and was not to
move, is not repaired by it. Plan afresh then, after it or in its place, from what the system shows.
A setting that is held goes along into the other folder, whose run gives it back at its end.
Of a node that dies and that no wave left touches a note tells, and the plan goes on.

## Undo

{undo}

## By hand

{hand}"""

HAND = """\
Each command as a shell in this folder takes it, with the settings as variables. `evenkeel run .
--dry-run --dump dump` compares a dump with the plan, and lists what is left.

{commands}"""

TEXT_BACK = """\
# The way back of a plan for {system}

{what}

The plan is that of the folder above; its `README.md` says what has to be known before anything is
run, which settings there are, and how to stop and to go on. Let the plan end first:
where it was carried out in part, this may stop with exit code 3 before it orders anything. Then
plan the way back from there, in the folder above:

```sh
evenkeel resume undo/plan.json undo/dump -o ../back
```

## Waves

{waves}

## By hand

{hand}"""


def readme(
    plan: Plan,
    carrier: Carrier,
    waves: Sequence[Wave],
    back: Plan,
    ways_back: Sequence[Wave],
    form: Form,
    led: str,
) -> bytes:
    """Return the page; ``led`` is what a way back leaves of leaders."""
    text = TEXT.format(
        system=plan.cluster.native_format,
        what=_what(plan, carrier),
        asked=_asked(plan) + _reasons(plan),
        why=_why(plan, carrier),
        pace=_pace(plan, waves),
        waves=wave_table(plan, carrier, waves) if waves else "None between nodes.",
        changes=change_list(plan, carrier, waves),
        blocked=_blocked(plan),
        stranded=_stranded(plan.cluster),
        down=_down(plan),
        notes="\n".join(f"- {note}" for note in _notes(plan, carrier)) or "Nothing.",
        settings="\n".join(
            f"| `{one.name}` | {f'`{shown(one.default)}`' if one.default else ''} | {one.meaning} |"
            for one in form.settings
        ),
        undo=_undo(plan, back, ways_back, led, gives_up=bool(carrier.gives_up(plan.cluster).all())),
        hand=_hand(form),
    )
    return text.encode("utf-8", "replace")


def readme_of_way_back(
    plan: Plan, carrier: Carrier, back: Plan, ways_back: Sequence[Wave], form: Form, led: str
) -> bytes:
    """Return the page of the way back."""
    count = len(ways_back)
    left = left_of_way_back(plan, back, ways_back, led)
    what = f"`sh run.sh` takes back what the plan above does, {_by(back, count)}."
    if left and not count:
        what = f"There is no way back: {left}."
    elif left:
        what += f"\n\nIt leaves out what has no way back: {left}."
    if led and count:
        what += f"\n\n{_begun(led)}."
    if not carrier.gives_up(plan.cluster).all() and count:
        what += f"\n\n{REPAIRS_STAY.capitalize()}."
    waves = (wave_table(back, carrier, ways_back), change_list(back, carrier, ways_back))
    text = TEXT_BACK.format(
        system=plan.cluster.native_format,
        what=what,
        waves="\n\n".join(waves) if count else "None between nodes.",
        hand=_hand(form),
    )
    return text.encode("utf-8", "replace")


def _hand(form: Form) -> str:
    """Return all commands as a person enters them."""
    parts = {
        "Once in a shell": [*preparing(form)],
        "Before anything": [*lines_of(form.first)],
        "To look, into `dump/`": [*lines_of(form.look)],
        "Before the first wave": [*lines_of(form.hold + form.before)],
    }
    for number, wave in enumerate(form.waves, start=1):
        parts[f"Wave {number}"] = [*lines_of(wave.commands + wave.ends)]
    parts["After the last wave"] = [*lines_of(form.after)]
    blocks = [
        f"{title}:\n\n~~~sh\n" + "\n".join(lines) + "\n~~~\n"
        for title, lines in parts.items()
        if lines
    ]
    return HAND.format(commands="\n".join(blocks))


def _begun(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with the name of a file."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def _notes(plan: Plan, carrier: Carrier) -> Sequence[str]:
    """Return what has to be known of the system, and what the files that were read left out."""
    missing = find(plan.cluster.native_format).left_out(plan.cluster)
    notes = [*carrier.notes, *(f"{_begun(plain(one))}." for one in missing)]
    if came := _begun_with(plan):
        topology, names = plan.cluster.topology, plan.cluster.nodes.names
        named = [with_labels(topology, n, shown(names[n])) for n in came]
        notes.append(
            f"Nodes without replicas now, with some after the plan: {some_of(named, str, 12)}. "
            "A run stops where what it reads of the system names other places of theirs; where it "
            "names none, compare them yourself."
        )
    if plan.throttle.paces and not carrier.keeps_pace:
        notes.append(f"Nothing here enforces the bytes per second planned for. {carrier.pace}")
    return notes


def _what(plan: Plan, carrier: Carrier) -> str:
    cluster = plan.cluster
    size = ""
    if cluster.bytes_dimension >= 0:
        unit = cluster.dimensions[cluster.bytes_dimension]
        written = f"{plan.bytes:,.0f}"
        if carrier.binary:
            written = f"{binary(plan.bytes)} ({data(plan.bytes, 'bytes')})"
        size = f", {written} of {shown(unit)}"
    partitions, nodes = len(cluster.partitions), len(cluster.nodes)
    where = f"{counted(partitions, 'partition')} on {counted(nodes, 'node')}"
    are = "is" if plan.copies == 1 else "are"
    text = f"{counted(plan.copies, 'replica')} {are} copied{size}, in a cluster of {where}."
    if plan.cancelled:
        names = some_of(plan.cancelled, lambda one: f"{shown(one.partition)} to {shown(one.node)}")
        text += f" Copies on their way that lead nowhere any more, to be dropped first: {names}."
        text += f" {carrier.drops}" if carrier.drops else ""
    return f"{text} {plan.inside}".rstrip()


def _asked(plan: Plan) -> str:
    """Return what the target was solved for; nothing where that is unknown."""
    goals = plan.goals
    if goals is None:
        return ""
    if isinstance(goals, Cost):
        return "Asked for: the least cost.\n\n"
    proven = bounds_of_levels(plan.cluster, goals)
    goals_asked = [plain(one) for one in target_texts(plan.cluster, goals, proven)]
    if goals_asked and goals.soft_yield:
        goals_asked.append("soft rules yield to that")
    return f"Asked for: {'; '.join(goals_asked) or 'all rules kept, and no levelness'}.\n\n"


def _reasons(plan: Plan) -> str:
    """Return which nodes have to give their replicas away, and which groups other numbers."""
    cluster, before = plan.cluster, plan.cluster.placement
    nodes, partitions = cluster.nodes, cluster.partitions
    moved = np.unique(before.node[before.node != plan.end.node])
    left = np.isin(np.arange(len(nodes)), moved)
    lines = []
    for which, why in (
        (left & nodes.alive & ~nodes.keeps, "to be emptied (drained, excluded or decommissioned)"),
        (left & ~nodes.alive, "down"),
    ):
        if which.any():
            names = some_of(np.flatnonzero(which).tolist(), lambda n: shown(nodes.names[n]))
            lines.append(f"- {counted(int(which.sum()), 'node')} {why}: {names}")
    held = np.bincount(before.owner[before.node >= 0], minlength=len(before))
    ends = np.bincount(plan.end.owner[plan.end.node >= 0], minlength=len(before))
    changed = np.flatnonzero(held != ends)
    rows = np.stack([partitions.group[changed], held[changed], ends[changed]], 1)
    counts = np.unique(rows, axis=0, return_counts=True)
    for (group, has, wants), count in zip(counts[0].tolist(), counts[1].tolist(), strict=True):
        of = f"{counted(count, 'partition')} of {shown(partitions.group_names[group])}"
        if wants > has:
            are = "is" if wants - has == 1 else "are"
            missing = f"{wants - has:,} of {counted(wants, 'replica')}"
            lines.append(f"- {of}: {missing} {are} missing, and {are} added")
        else:
            lines.append(f"- {of}: {counted(wants, 'replica')} instead of {has:,}")
    if len(lines) > MOST_REASONS:
        lines = [*lines[:MOST_REASONS], f"- and {len(lines) - MOST_REASONS:,} more"]
    return "\n".join([*lines, "", ""]) if lines else ""


def _pace(plan: Plan, waves: Sequence[Wave]) -> str:
    """Return what was to limit the copies, and how long all waves take one after the other."""
    text = (
        "The changes of a wave are ordered together; the next wave waits until they have ended. "
        f"Planned for: {held_to(plan)}."
    )
    if plan.throttle.paces:
        total = duration(sum(seconds_of(plan, waves)))
        text += f" So, one wave after the other, all of them take {total} at least"
        text += ", while copies may run." if plan.throttle.windows is not None else "."
        text += (
            f" The plan's own {duration(plan.makespan)} are those of a hand that lets each step "
            "begin as soon as it may."
        )
    if len(waves) != len(plan.waves):
        text += (
            f" `plan.json` counts {counted(len(plan.waves), 'wave')} where {len(waves):,} are "
            "here: the system takes some in another number of orders."
        )
    return text


def _why(plan: Plan, carrier: Carrier) -> str:
    """Return what is broken, and how level the cluster is, before and after."""
    cluster = plan.cluster
    before, after = cluster.placement, plan.end
    found = [audit(cluster, one).counts for one in (before, after)]
    rows = [
        f"| {kind.replace('_', ' ')} | {found[0].get(kind, 0):,} | {found[1].get(kind, 0):,} |"
        for kind in found[0]
        if found[0][kind] or found[1].get(kind)
    ]
    level = [levelness(cluster, one) for one in (before, after)]
    for d, name in enumerate(cluster.dimensions):
        most = [_ratio(one.ratio[d]) for one in level]
        rows.append(f"| max/mean of {shown(name)} | {most[0]} | {most[1]} |")
    off = [furthest_from_share(cluster, one) for one in (before, after)]
    if off[0] != off[1]:
        figures = f"{off[0]:.2f} | {off[1]:.2f}"
        rows.append(
            f"| replicas of a topic, index or pool, node furthest from its share | {figures} |"
        )
    leads = [_ratio(one.leader_ratio) for one in level]
    rows.append(f"| max/mean of leaders | {leads[0]} | {leads[1]} |")
    shares = sorted(carrier.shares(plan), key=lambda one: -max(one[1:]))
    rows += [f"| {name} | {was:.1%} | {will:.1%} |" for name, was, will in shares[:MOST_SHARES]]
    if (left := len(shares) - MOST_SHARES) > 0:
        rows.append(f"| and {left:,} nodes with less | | |")
    if note := mean_note(cluster):
        rows += ["", f"{_begun(note)}."]
    return "\n".join(rows)


def _ratio(value: float) -> str:
    """Write how often a node has its share, or that one without a share has some."""
    return f"{value:.4f}" if np.isfinite(value) else "some where no share is"


def furthest_from_share(cluster: Cluster, placement: Placement) -> float:
    """Return by how many replicas a node is off its share of a group, by the weights of nodes."""
    nodes = cluster.nodes
    weight = np.where(nodes.alive & nodes.accepts, nodes.weight, 0.0)
    if weight.sum() <= 0.0:
        return 0.0
    held, groups = placement.node >= 0, len(cluster.partitions.group_names)
    if groups * len(nodes) > MOST_COUNTS:
        return 0.0
    at = cluster.partitions.group[placement.owner[held]].astype(np.int64) * len(nodes)
    count = np.bincount(at + placement.node[held], minlength=groups * len(nodes))
    table = count.reshape(groups, len(nodes))
    share = table.sum(axis=1)[:, None] * (weight / weight.sum())
    return float(np.abs(table - share).max(initial=0.0))


def _blocked(plan: Plan) -> str:
    if not plan.blocked:
        return ""
    names = some_of(plan.blocked, lacking)
    moves = counted(len(plan.blocked), "move")
    return f"\n**{moves} without a safe order, left out:** {names}.\n"


def _stranded(cluster: Cluster) -> str:
    """Return what the plan leaves out since nothing could be copied, and what to do about it."""
    held = np.flatnonzero(stranded(cluster.placement)).tolist()
    if not held:
        return ""
    nodes, first = cluster.nodes.names, cluster.placement.first

    def one(p: int) -> str:
        there = [n for n in cluster.placement.node[first[p] : first[p + 1]].tolist() if n >= 0]
        on = ", ".join(shown(nodes[n]) for n in there) or "no node"
        return f"{shown(cluster.partitions.names[p])} (on {on})"

    are = "is" if len(held) == 1 else "are"
    return (
        f"\n**{counted(len(held), 'partition')} cannot be repaired and {are} "
        f"left out**, since no live replica surely has all the data: {some_of(held, one)}. "
        f"What to do: {find(cluster.native_format).stranded}.\n"
    )


def _down(plan: Plan) -> str:
    """Return which nodes are down on which replicas are left, and which partitions lack those."""
    cluster, end = plan.cluster, plan.end
    names = cluster.partitions.names
    left = np.append(~cluster.nodes.alive, False)[end.node]
    nodes = np.unique(end.node[left]).tolist()
    if not nodes:
        return ""
    short = np.unique(end.owner[left]).tolist()
    are = "is" if len(nodes) == 1 else "are"
    listed = some_of(nodes, lambda n: shown(cluster.nodes.names[n]))
    return (
        f"\n**{listed} {are} down**, and the plan leaves {counted(int(left.sum()), 'replica')} "
        f"there, which do not live until that is back: "
        f"{some_of(short, lambda p: shown(names[p]))}.\n"
    )


def _undo(plan: Plan, back: Plan, ways_back: Sequence[Wave], led: str, *, gives_up: bool) -> str:
    left = left_of_way_back(plan, back, ways_back, led)
    count = len(ways_back)
    if count == 0 and left:
        return f"There is no way back: {left}."
    where = "as far as there is a way" if left else "to where every replica was"
    text = (
        f"`sh undo/run.sh` goes back {where}, {_by(back, count)}; "
        "it, too, can be stopped and run again.\nIf the plan was carried out in part, a partition "
        "may be where the way back does not pass, or where there is no\nroom: it stops with exit "
        "code 3 then, before it orders anything. "
        "Let `run.sh` end first and undo then, or plan the way back from there:\n\n"
        "```sh\nevenkeel resume undo/plan.json undo/dump -o ../back\n```"
    )
    if led:
        text += f"\n\n{_begun(led)}."
    if not gives_up:
        text += f"\n\n{REPAIRS_STAY.capitalize()}."
    return f"{text}\n\nIt leaves out what has no way back: {left}." if left else text


def _by(back: Plan, waves: int) -> str:
    """Return by what a way back goes: so many waves, or by moves inside nodes alone."""
    alone = not waves and len(back.disk_moves.done)
    return "by moves inside nodes alone" if alone else f"in {counted(waves, 'wave')}"


# the nodes of a partition by slot, the one that leads, and the preferred one; -1 for none
Row = tuple[tuple[int, ...], int, int]


def waves_of(plan: Plan, original: Placement) -> list[list[Change]]:
    """Return what each wave changes, by partition, given how everything was before any plan."""
    names = [*plan.cluster.partitions.names]
    # of the others nothing changes: rows of those that are touched are all there is to follow
    touched = np.unique(plan.steps.partition)
    start, target, origin = (
        rows_alone(one, touched) for one in (plan.cluster.placement, plan.target, original)
    )
    place = np.searchsorted(touched, plan.steps.partition).astype(np.int32)
    moved = start.first[place] - plan.cluster.placement.first[plan.steps.partition]
    replica = (plan.steps.replica + moved).astype(np.int32)
    steps = replace(plan.steps, partition=place, replica=replica)
    at, first = listed(start), listed(origin)
    waves: list[list[Change]] = []
    done = np.zeros(0, np.intp)
    for wave in plan.waves:
        done = np.sort(np.concatenate([done, wave]))
        own = np.unique(place[wave])
        changes = []
        after = listed(rows_alone(outcome(start, steps, target, done), own))
        for r, row in zip(own.tolist(), after, strict=True):
            if row != (was := at[r]):
                p = int(touched[r])
                restored = row[0] == first[r][0] and row[1] in (first[r][1], -1)
                restored &= row[2] == first[r][2]
                # so is a list of which another than its first leads
                ahead = next((n for n in row[0] if n >= 0), -1)
                restored |= row[1] != row[2] == ahead and row[1:] != was[1:]
                heads = row[2] if row[1] == was[1] and row[2] != was[2] else -1
                joins = comers(was[0], row[0])
                lies = _disks_of(target, r) if target.disk is not None else {}
                changes.append(
                    Change(
                        p, names[p], was[0], row[0], was[1], row[1], restored, joins, lies, heads
                    )
                )
                at[r] = row
        if changes:
            waves.append(changes)
    return waves


def _disks_of(placement: Placement, p: int) -> dict[int, int]:
    """Return the disk of a partition on each of its nodes, where it is known."""
    assert placement.disk is not None, "asked of a placement without disks"
    row = slice(int(placement.first[p]), int(placement.first[p + 1]))
    pairs = zip(placement.node[row].tolist(), placement.disk[row].tolist(), strict=True)
    return {n: d for n, d in pairs if n >= 0 and d >= 0}


def listed(placement: Placement) -> list[Row]:
    """Return the rows of a placement one by one."""
    first, nodes = placement.first.tolist(), placement.node.tolist()
    led, preferred = placement.leader_node.tolist(), placement.preferred_node.tolist()
    return [
        (tuple(nodes[begin:end]), leads, prefers)
        for begin, end, leads, prefers in zip(first, first[1:], led, preferred, strict=False)
    ]


CLUSTER: Literal["cluster.npz"] = "cluster.npz"  # the cluster, once for both ways
RUN = b"""#!/bin/sh
exec "${EVENKEEL:-evenkeel}" run "$(dirname -- "$0")" "$@"
"""


@known_keywords
def write_plan_folder(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    after: str | os.PathLike[str] | None = None,
) -> Path:
    r"""Write a plan as a folder that an operator reviews, and runs on the real system.

    It holds ``README.md``; ``waves.json``, the commands of each wave and what they expect of the
    system; the files that these name, in ``waves``; ``run.sh``, which calls ``evenkeel run``;
    ``plan.json``, and the cluster, ``cluster.npz``; and in ``undo`` the same for the way back.

    Parameters
    ----------
    plan : Plan
        What ``plan`` returned, for a cluster that was read from a system.
    folder : str or path
        Where it goes. It is made beside that and put in place when it is complete.
    overwrite : bool, optional
        Whether a folder of another plan may be replaced; what else stands there never is.
    after : str or path, optional
        The folder whose run was stopped, where this plan goes on from there: a setting of the
        system that it still holds is given back at the end of this one, as it was at first.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InvalidInput
        If the cluster's system cannot carry out a plan by commands, a name cannot stand in them, or
        something else stands there.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile, evenkeel as ek
    >>> described = (
    ...     "Topic: t\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \n"
    ...     "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    ...     "\tTopic: t\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    ... )
    >>> c = ek.read(described.encode(), b"broker,rack\n1,a\n2,b\n")
    >>> plan = ek.solve(c, goals=ek.Goals(level=0.0)).plan(protocol="kafka")
    >>> with tempfile.TemporaryDirectory() as there:
    ...     sorted(file.name for file in write_plan_folder(plan, f"{there}/move").iterdir())
    ['README.md', 'cluster.npz', 'plan.json', 'run.sh', 'state.json', 'undo', 'waves', 'waves.json']
    """
    require("plan", plan, Plan)
    target = Path(os.path.realpath(as_path(folder, "folder")))
    holder = None if after is None else held.holding([as_path(after, "after") / held.HELD])
    check_folder(target, overwrite=overwrite, holder=holder)
    with collector_held():
        _put_in_place(target, _whole_folder(plan), holder)
    return Path(folder)


def _whole_folder(plan: Plan) -> dict[Path, bytes]:
    """Return the files of a folder, by their paths in it."""
    carrier = carrier_of(plan.cluster.native_format)
    _check_plan(plan)
    original = plan.cluster.placement
    given_up = carrier.gives_up(plan.cluster)
    disabled = left_disabled(plan.cluster, plan.end)
    back = plan.undo()
    if disabled.any() or not given_up.all():
        back = _back_but_for_repairs(plan, given_up, disabled)
    there = plan.cluster.placement
    planned_waves, waves_back = (waves_of(way, original) for way in (plan, back))
    waves, ways_back = (
        carrier.stages(plan.cluster, found) for found in (planned_waves, waves_back)
    )
    led = leaders_of_way_back(carrier, waves_back)
    files = {
        Path(CLUSTER): encoded_cluster(plan.cluster),
        Path(PLAN): encoded_beside(plan, CLUSTER, there),
        Path(held.UNDO, PLAN): encoded_beside(back, "../cluster.npz", there),
    }
    left = left_of_way_back(plan, back, ways_back, led)
    undo, form = _files(back, carrier, ways_back, "..", left)
    files |= {Path(held.UNDO, name): data for name, data in undo.items()}
    files[Path(held.UNDO, "README.md")] = readme_of_way_back(
        plan, carrier, back, ways_back, form, led
    )
    own, form = _files(plan, carrier, waves, ".", left_of_plan(plan))
    files |= own
    files[Path("README.md")] = readme(plan, carrier, waves, back, ways_back, form, led)
    return files


def _back_but_for_repairs(
    plan: Plan, given_up: NDArray[np.bool_], disabled: NDArray[np.bool_]
) -> Plan:
    """Return the way back on which partitions that were short of replicas stay as they are."""
    before, end = plan.cluster.placement, plan.end
    had, has = (_nodes_held(one, len(plan.cluster.nodes)) for one in (before, end))
    # what is ``disabled (P,)`` on a node that it left stays as it is, too
    repaired = np.flatnonzero((has > had) & ~given_up | disabled)
    kept = np.isin(before.owner, repaired)
    leader = before.leader.copy()
    leader[repaired] = end.leader[repaired]
    target = before.replaced(np.where(kept, end.node, before.node), leader)
    cluster = replace(plan.cluster, placement=end)
    return planned(cluster, target, plan.throttle, plan.protocol, before)


def _nodes_held(placement: Placement, nodes: int) -> NDArray[np.intp]:
    """Return on how many nodes each partition stands, (P,) int."""
    held = placement.node >= 0
    pairs = np.unique(placement.owner[held].astype(np.int64) * nodes + placement.node[held])
    return np.bincount(pairs // nodes, minlength=len(placement))


def check_folder(
    folder: str | os.PathLike[str], *, overwrite: bool, holder: Path | None = None
) -> None:
    """Raise where no folder of a plan can be put; ``holder`` is the stopped run that it follows."""
    target = Path(folder)
    message = ""
    if target.is_dir():
        if any(target.iterdir()) and not held.holds_folder(target):
            message = "is a folder of something else: choose another"
        elif any(target.iterdir()) and not overwrite:
            message = "is the folder of a plan already: choose another, or overwrite it"
            message += " (overwrite=True, --force)"
        elif held.files(target) and target.resolve() != holder:
            message = "is the folder of a run that still holds a setting of its system: "
            message += "`sh run.sh --release` there gives it back"
    elif target.exists():
        message = "is a file: choose another"
    if message:
        raise InvalidInput([Fault("folder", os.fspath(folder), message)])


# what to do where a system's commands cannot be written
INSTEAD = (
    "; write the plan to a file that ends in .json, and its steps, wave by wave, to a table "
    "(write_plan; plan -o plan.json --table steps.csv)"
)


def carrier_of(name: str) -> Carrier:
    """Return how a system carries out plans, by the name of its format."""
    if not name or not is_known(name):
        message = "is of no system: a folder holds the commands of the one that files were read of"
        raise InvalidInput([Fault("plan.cluster", name, message + INSTEAD)])
    system = find(name)
    if system.carrier is None:
        message = system.no_carrier or "has no commands that carry out a plan"
        raise InvalidInput([Fault("plan.cluster", name, message + INSTEAD)])
    return system.carrier


def _check_plan(plan: Plan) -> None:
    """Raise for a plan that is not safe, or of steps for which the system has no command."""
    certificate = plan.check()
    if not certificate.ok:
        raise InvalidInput([Fault("plan", str(certificate), "is not safe to carry out")])
    recast = np.flatnonzero(plan.steps.in_place)
    if len(recast):
        row = plan.rows_of(recast[:1])[0]
        step = f"{row.kind} of {row.partition} on {row.target}"
        message = f"changes roles in place, which {plan.cluster.native_format} has no command for"
        raise InvalidInput([Fault(f"plan.steps[{row.step}]", step, message)])


def _files(
    plan: Plan, carrier: Carrier, waves: Sequence[Wave], whole: str, left: str
) -> tuple[dict[Path, bytes], Form]:
    """Return the files of one way, by their paths in its folder; ``whole`` is that of both."""
    cluster = plan.cluster
    first, (before, after) = carrier.first(plan), carrier.inside(plan)
    orders = carrier.orders(cluster, waves)
    form = Form(
        version=VERSION,
        format=cluster.native_format,
        nodes=[*cluster.nodes.names],
        dead=np.flatnonzero(~cluster.nodes.alive).tolist(),
        in_any_order=has_room_for_both(cluster, waves),
        outside=digest_of(
            cluster, [one.partition for wave in waves for one in wave],
            lists_down=carrier.lists_down,
        ),
        left=left,
        whole=whole,
        still=carrier.still,
        settings=settings_of(carrier.settings, carrier.given(plan)),
        first=[*first.commands],
        look=[*carrier.look(plan)],
        hold=[*carrier.hold],
        waves=[
            WaveForm(
                [*_expected(wave, carrier)], [*one.commands],
                {change.name: change.first for change in wave if change.first >= 0}, [*one.ends],
            )
            for wave, one in zip(waves, orders, strict=True)
        ],
        before=[*before.commands],
        after=[*after.commands],
        places=places_of(cluster, _begun_with(plan)),
    )  # fmt: skip
    files = {
        Path("run.sh"): RUN,
        Path(FILE): encoded(form),
        Path(STATE): encoded_state(State(len(waves))),
    }
    whole_orders = (first, before, *orders, after)
    files |= {Path(name): data for one in whole_orders for name, data in one.files.items()}
    return files, form


def _begun_with(plan: Plan) -> list[int]:
    """Return the nodes that hold nothing before a plan, and something after it."""
    held, after = plan.cluster.placement.node, plan.target.node
    return [*map(int, np.setdiff1d(after[after >= 0], held))]


def _expected(wave: Wave, carrier: Carrier) -> Iterator[Expected]:
    """Yield what is expected of each change that a look can see."""
    for one in wave:
        leads = carrier.leader(one)
        # no check sees whether a leader changed that the system chooses by itself, nor that a list
        # has its order back in which who leads now came first
        moves = one.joins or {*one.before} != {*one.after}
        if leads not in (-1, one.led) or moves or one.first >= 0:
            before, after = ([n for n in row if n >= 0] for row in (one.before, one.after))
            yield Expected(one.name, before, after, one.led, leads)


def _put_in_place(target: Path, files: Mapping[Path, bytes], holder: Path | None) -> None:
    """Write files into a folder beside its place, with what another one holds, and rename that."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        part.mkdir(parents=True)
        for inner in dict.fromkeys(path.parent for path in files):
            (part / inner).mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            (part / path).write_bytes(data)
            if path.name == "run.sh":
                (part / path).chmod(0o755)
        if holder is not None:
            held.take_along(holder, part)
        if target.exists():
            target.rename(old)
        part.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
