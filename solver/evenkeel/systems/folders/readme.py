"""``README.md`` of a folder: what a plan does and why, how to run it, stop, resume and undo it."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.levelness import below_mean_note, levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.figures import amount, duration
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.planning.explain import held_to, seconds_by_wave
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import Blocked, StepKind
from evenkeel.systems.folders.carrier import Carrier, Change, Wave
from evenkeel.systems.folders.form import Form, lines_of, plain, preparing, shown
from evenkeel.systems.one_way import left_disabled
from evenkeel.systems.registry import find

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


MOST_COUNTS = 10_000_000
"""Pairs of a group and a node that are counted for one figure."""

MOST_REASONS = 12
"""Lines of nodes and groups that are listed as reasons."""

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
the plan expects it, or what is left out above is all that is left. Variables of the environment:

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
) -> bytes:
    """Return the page."""
    text = TEXT.format(
        system=plan.cluster.native_format,
        what=_what(plan, carrier),
        asked=_asked(plan.goals) + _reasons(plan),
        why=_why(plan),
        pace=_pace(plan, waves),
        waves=wave_table(plan, carrier, waves),
        changes=change_list(plan, carrier, waves),
        blocked=_blocked(plan),
        stranded=_stranded(plan.cluster),
        down=_down(plan),
        notes="\n".join(f"- {note}" for note in _notes(plan, carrier)) or "Nothing.",
        settings="\n".join(
            f"| `{one.name}` | {f'`{shown(one.default)}`' if one.default else ''} | {one.meaning} |"
            for one in form.settings
        ),
        undo=_undo(plan, back, ways_back, gives_up=bool(carrier.gives_up(plan.cluster).all())),
        hand=_hand(form),
    )
    return text.encode("utf-8", "replace")


def readme_of_way_back(
    plan: Plan, carrier: Carrier, back: Plan, ways_back: Sequence[Wave], form: Form
) -> bytes:
    """Return the page of the way back."""
    count = len(ways_back)
    left = left_of_way_back(plan, back, ways_back)
    what = f"`sh run.sh` takes back what the plan above does, in {counted(count, 'wave')}."
    if left and not count:
        what = f"There is no way back: {left}."
    elif left:
        what += f"\n\nIt leaves out what has no way back: {left}."
    if not carrier.gives_up(plan.cluster).all() and count:
        what += f"\n\n{REPAIRS_STAY.capitalize()}."
    waves = (wave_table(back, carrier, ways_back), change_list(back, carrier, ways_back))
    text = TEXT_BACK.format(
        system=plan.cluster.native_format,
        what=what,
        waves="\n\n".join(waves) if count else "None.",
        hand=_hand(form),
    )
    return text.encode("utf-8", "replace")


def _hand(form: Form) -> str:
    """Return all commands as a person enters them."""
    parts = {
        "Once in a shell": [*preparing(form)],
        "Before anything": [*lines_of(form.first)],
        "To look, into `dump/`": [*lines_of(form.look)],
        "Before the first wave": [*lines_of(form.hold)],
    }
    for number, wave in enumerate(form.waves, start=1):
        parts[f"Wave {number}"] = [*lines_of(wave.commands + wave.ends)]
    blocks = [
        f"{title}:\n\n~~~sh\n" + "\n".join(lines) + "\n~~~\n"
        for title, lines in parts.items()
        if lines
    ]
    return HAND.format(commands="\n".join(blocks))


def _notes(plan: Plan, carrier: Carrier) -> Sequence[str]:
    """Return what has to be known of the system, and what the files that were read left out."""
    missing = find(plan.cluster.native_format).left_out(plan.cluster)
    notes = [*carrier.notes, *(f"The files tell {plain(one)}." for one in missing)]
    if plan.throttle.paces and not carrier.keeps_pace:
        notes.append(f"Nothing here enforces the bytes per second planned for. {carrier.pace}")
    return notes


def _what(plan: Plan, carrier: Carrier) -> str:
    cluster = plan.cluster
    amount = ""
    if cluster.bytes_dimension >= 0:
        unit = cluster.dimensions[cluster.bytes_dimension]
        amount = f", {plan.bytes:,.0f} of {shown(unit)}"
    partitions, nodes = len(cluster.partitions), len(cluster.nodes)
    size = f"{counted(partitions, 'partition')} on {counted(nodes, 'node')}"
    are = "is" if plan.copies == 1 else "are"
    text = f"{counted(plan.copies, 'replica')} {are} copied{amount}, in a cluster of {size}."
    if plan.cancelled:
        names = some_of(plan.cancelled, lambda one: f"{shown(one.partition)} to {shown(one.node)}")
        text += f" Copies on their way that lead nowhere any more, to be dropped first: {names}."
        text += f" {carrier.drops}" if carrier.drops else ""
    return text


def _asked(goals: Goals | Cost | None) -> str:
    """Return what the target was solved for; nothing where that is unknown."""
    if goals is None:
        return ""
    if isinstance(goals, Cost):
        return "Asked for: the least cost.\n\n"
    goals_asked = []
    if level := _tolerances(goals.level):
        above = "above the mean, or above the proven floor where that is higher"
        goals_asked.append(f"no node more than {level} {above}")
    if leaders := _tolerances(goals.leaders):
        goals_asked.append(f"no node more than {leaders} above its share of leaders")
    if floor := _tolerances(goals.floor):
        goals_asked.append(f"no node that takes replicas more than {floor} below the mean")
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
        lines.append(f"- {of}: {counted(wants, 'replica')} instead of {has}")
    if len(lines) > MOST_REASONS:
        lines = [*lines[:MOST_REASONS], f"- and {len(lines) - MOST_REASONS:,} more"]
    return "\n".join([*lines, "", ""]) if lines else ""


def _tolerances(given: float | Mapping[str, float | None] | None) -> str:
    """Return a tolerance in percent, or those of some dimensions; "" where nothing is asked."""
    if not isinstance(given, Mapping):
        return "" if given is None else f"{100.0 * given:.4g}%"
    return ", ".join(
        f"{_tolerances(one)} ({shown(name)})" for name, one in given.items() if one is not None
    )


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


def _why(plan: Plan) -> str:
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
        rows.append(f"| fullest node, {shown(name)}, over the mean | {most[0]} | {most[1]} |")
    off = [furthest_from_share(cluster, one) for one in (before, after)]
    if off[0] != off[1]:
        figures = f"{off[0]:.2f} | {off[1]:.2f}"
        rows.append(f"| replicas of a group, node furthest from its share | {figures} |")
    leads = [_ratio(one.leader_ratio) for one in level]
    rows.append(f"| most leaders on a node, over its share | {leads[0]} | {leads[1]} |")
    if sentence := below_mean_note(level):
        rows += ["", f"Where that is less than 1, {sentence}."]
    return "\n".join(rows)


def _ratio(value: float) -> str:
    """Write how often a node has its share, or that one without a share has some."""
    return f"{value:.3f}" if np.isfinite(value) else "some where no share is"


def furthest_from_share(cluster: Cluster, placement: Placement) -> float:
    """Return by how many replicas a node is off its share of a group, by the weights of nodes.

    This is what some systems level in place of loads, Ceph among them.
    """
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


def _undo(plan: Plan, back: Plan, ways_back: Sequence[Wave], *, gives_up: bool) -> str:
    left = left_of_way_back(plan, back, ways_back)
    count = len(ways_back)
    if count == 0 and left:
        return f"There is no way back: {left}."
    where = "as far as there is a way" if left else "to where everything was"
    text = (
        f"`sh undo/run.sh` goes back {where}, in {counted(count, 'wave')}; "
        "it, too, can be stopped and run again.\nIf the plan was carried out in part, a partition "
        "may be where the way back does not pass, or where there is no\nroom: it stops with exit "
        "code 3 then, before it orders anything. "
        "Let `run.sh` end first and undo then, or plan the way back from there:\n\n"
        "```sh\nevenkeel resume undo/plan.json undo/dump -o ../back\n```"
    )
    if not gives_up:
        text += f"\n\n{REPAIRS_STAY.capitalize()}."
    return f"{text}\n\nIt leaves out what has no way back: {left}." if left else text
