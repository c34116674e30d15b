"""Compare a live system with the state that a plan expects, and measure the plan's progress.

Partitions that the plan leaves alone are compared by a digest, since others may have moved them;
the plan itself is read only where that differs.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple
from zlib import adler32, crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, audit
from evenkeel.measure.levelness import levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.model.runtime.memoize import memoize
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import (
    Observed,
    Standing,
    Wave,
    names_all_nodes,
    numbered,
    observed,
)
from evenkeel.systems.folders.form import FILE, Expected, Form, read_form, shown
from evenkeel.systems.json_text import Int32, decode_json
from evenkeel.systems.plans.reading import plan_of
from evenkeel.systems.registry import find, parts_for

# of each wave, by partition, the nodes that join and, as ``~node``, those that leave
Joins = Sequence[Mapping[str, Sequence[int]]]


class Elsewhere(NamedTuple):
    """What has become of partitions outside a plan: changes to report, and changes that stop it."""

    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


def digest_of(cluster: Cluster, planned: Sequence[int], *, lists_down: bool = True) -> str:
    """Return the digest of where the partitions of a cluster are that a plan leaves alone."""
    placement = cluster.placement
    names = cluster.partitions.names
    outside = np.ones(len(names), np.bool_)
    outside[np.array(planned, np.int64)] = False
    keys = memoize(cluster.partitions, "keys of names", lambda: _keys(names))
    shown_at = np.append(cluster.nodes.alive | lists_down, False)
    kept = outside[placement.owner] & shown_at[placement.node]
    node = _keys(cluster.nodes.names)[placement.node[kept]]
    return _digest(keys[outside], keys[placement.owner[kept]], node)


def digest_seen(
    standing: Mapping[str, Standing], planned: Collection[str], unlisted: Collection[str] = ()
) -> str:
    """Return the same of what is seen; what is on ``unlisted`` nodes does not count."""
    rows = [
        (name, [n for n in one.nodes if n not in unlisted] if unlisted else one.nodes)
        for name, one in standing.items()
        if name not in planned
    ]
    keys = _keys([name for name, _ in rows])
    names = [node for _, nodes in rows for node in nodes]
    known = [*{*names}]
    place = dict(zip(known, range(len(known)), strict=True))
    owner = np.repeat(keys, np.array([len(nodes) for _, nodes in rows], np.int64))
    return _digest(keys, owner, _keys(known)[np.array([place[one] for one in names], np.int64)])


def _keys(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for each name, by which names practically never collide."""
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    low = np.array([*map(crc32, texts)], np.uint64)
    return _mixed(low << np.uint64(32) | np.array([*map(adler32, texts)], np.uint64))


def _digest(
    partition: NDArray[np.uint64], owner: NDArray[np.uint64], node: NDArray[np.uint64]
) -> str:
    """Return a sum over all partitions and all their nodes, in which no order matters."""
    total = int(_mixed(partition).sum()) + int(_mixed(owner + _mixed(node)).sum())
    return f"{total % 2**64:016x}"


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finish of SplitMix64 (Steele, Lea and Flood 2014) of each number."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def elsewhere(
    plan: Document,
    standing: Mapping[str, Standing],
    waves: Joins,
    wave: int,
    unlisted: Collection[int] = (),
) -> Elsewhere:
    """Compare what is seen of the partitions outside a plan with where it believes them."""
    read = plan_of(plan)
    cluster, end = read.cluster, read.end
    planned = {name for one in waves for name in one}
    place = {name: n for n, name in enumerate(cluster.nodes.names)}
    start, most = cluster.placement, load_of(cluster)
    node, moved, gone, strange = end.node.copy(), [], 0, False
    extra = np.zeros_like(cluster.nodes.capacity)
    for p, name in enumerate(cluster.partitions.names):
        if name in planned:
            continue
        slots = slice(int(start.first[p]), int(start.first[p + 1]))
        before = {n for n in start.node[slots].tolist() if n >= 0}
        if name not in standing:
            gone += 1
            continue
        now = [place.get(one, -1) for one in standing[name].nodes]
        # dumps do not show what is on ``unlisted`` nodes
        now += [n for n in before if n in unlisted and n not in now]
        if before == {*now}:
            continue
        moved.append(name)
        for n in {*now} - before - {-1}:
            extra[n] += most[p]
        for n in before - {*now}:
            extra[n] -= most[p]
        if len(now) <= slots.stop - slots.start:
            node[slots] = [*now, *[-1] * (slots.stop - slots.start - len(now))]
        else:
            strange = True
    new = sum(name not in planned for name in standing) - sum(
        name in standing for name in cluster.partitions.names if name not in planned
    )
    notes = []
    if moved:
        listed = ", ".join(map(shown, moved[:3])) + (", ..." if len(moved) > 3 else "")
        notes.append(f"{len(moved):,} partitions outside the plan are elsewhere than it has them: "
                     f"{listed}")  # fmt: skip
    if gone or new:
        notes.append(f"partitions outside the plan: {gone:,} not seen, {new:,} new")
    # rules that others broke are only reported; a lack of room for waves to come stops a plan
    if moved and not strange:
        notes += _rules(cluster, end, end.replaced(node, end.leader))
    return Elsewhere(tuple(notes), tuple(_rooms(cluster, waves, wave, extra, most)))


def load_of(cluster: Cluster) -> NDArray[np.float64]:
    """Return the most that a replica of each partition takes in any role, (P, D)."""
    load = cluster.partitions.load
    return np.maximum(np.maximum(load.leader, load.voter), load.non_voter)


def _rooms(
    cluster: Cluster, waves: Joins, wave: int, extra: NDArray[np.float64], most: NDArray[np.float64]
) -> list[str]:
    """Return the nodes that lack the room that waves to come had in the plan."""
    if not (extra > 0.0).any():
        return []
    index = {name: p for p, name in enumerate(cluster.partitions.names)}
    load, capacity = levelness(cluster, cluster.placement).loads.copy(), cluster.nodes.capacity
    found: dict[int, str] = {}
    for number, one in enumerate(waves, start=1):
        comes, goes = np.zeros_like(load), np.zeros_like(load)
        for name, nodes in one.items():
            for n in nodes:
                (comes if n >= 0 else goes)[n if n >= 0 else ~n] += most[index[name]]
        full = load + comes
        # where the plan counts on room that becomes free within the wave, only its end counts
        full = np.where(full > capacity, full - goes, full)
        load += comes - goes
        if number < wave:
            continue
        lacks = ((full + extra > capacity) & (full <= capacity) & (comes > 0.0)).any(axis=1)
        for n in np.flatnonzero(lacks).tolist():
            found.setdefault(
                n,
                f"{shown(cluster.nodes.names[n])}: has no room any more for what wave {number} "
                "puts there: partitions outside the plan have come",
            )
    return [*found.values()]


def _rules(cluster: Cluster, planned: Placement, mixed: Placement) -> list[str]:
    """Return the hard rules that are broken more often than the plan's end has them."""
    before, after = audit(cluster, planned).counts, audit(cluster, mixed).counts
    return [
        f"{kind.replace('_', ' ')}: broken {before[kind]:,} times in the plan, {after[kind]:,} "
        "times with what others have done"
        for kind in KINDS
        if KINDS[kind].hard and after[kind] > before[kind] and kind not in ("leader", "leaderless")
    ]


class Step(NamedTuple):
    """What a wave does to a partition: how far it then is on its way, and its nodes."""

    place: int
    nodes: Collection[int]


def has_room(
    plan: Document,
    held: Mapping[str, Collection[int]],
    places: Mapping[str, float],
    waves: Sequence[Mapping[str, Step]],
) -> bool:
    """Whether no node ever exceeds its capacity when waves are ordered one after the other."""
    # ``held`` are the nodes that each partition takes room on now, ``places`` how far each has
    # come. What joins is there before what leaves.
    cluster = plan_of(plan).cluster
    if cluster.topology.tier_capacity:
        return False
    most, capacity = load_of(cluster), cluster.nodes.capacity * (1.0 + ROUNDING)
    names, placement = cluster.partitions.names, cluster.placement
    index = {name: p for p, name in enumerate(names)}
    load = np.zeros_like(cluster.nodes.capacity)
    others = np.array([name not in held for name in names], np.bool_)
    kept = others[placement.owner] & (placement.node >= 0)
    np.add.at(load, placement.node[kept], most[placement.owner[kept]])
    now, at = {name: frozenset(nodes) for name, nodes in held.items()}, dict(places)
    for name, nodes in now.items():
        load[[*nodes]] += most[index[name]]
    for wave in waves:
        if all(at[name] >= step.place for name, step in wave.items()):
            continue
        comes, goes = np.zeros_like(load), np.zeros_like(load)
        for name, step in wave.items():
            after = frozenset(step.nodes)
            comes[[*(after - now[name])]] += most[index[name]]
            goes[[*(now[name] - after)]] += most[index[name]]
            now[name], at[name] = after, step.place
        if ((load + comes > capacity) & (comes > 0.0)).any():
            return False
        load += comes - goes
    return True


def has_room_for_both(cluster: Cluster, waves: Sequence[Wave]) -> bool:
    """Return whether nodes have room for any mixture of partitions before and after their waves."""
    if cluster.topology.tier_capacity:
        return False
    placement, most = cluster.placement, load_of(cluster)
    joins = [(n, one.partition) for wave in waves for one in wave for n in one.joins]
    held = np.flatnonzero(placement.node >= 0)
    node, partition = np.array(joins, np.int64).reshape(-1, 2).T
    node = np.concatenate([placement.node[held], node])
    partition = np.concatenate([placement.owner[held], partition])
    return all(
        (np.bincount(node, most[partition, d], len(room)) <= room).all()
        for d, room in enumerate(cluster.nodes.capacity.T)
    )


STATE = "state.json"


class State(msgspec.Struct, forbid_unknown_fields=True):
    """Waves that were seen to be done, and when the last of them was; ``""`` for never."""

    waves: Int32
    done: Int32 = 0
    seen: str = ""
    begun: bool = False  # whether what is run once, before anything else, has been run
    # the last of the moves inside nodes that have been run: before the waves, or after them
    inside: Literal["", "before", "after"] = ""


def encoded_state(state: State) -> bytes:
    """Return the file."""
    return msgspec.json.encode(state) + b"\n"


def read_state(faults: FaultList, folder: Path, waves: int) -> State:
    """Return what was recorded; nothing, where the file is gone."""
    file = folder / STATE
    if not file.exists():
        return State(waves)
    document = Document.load(os.fspath(file))
    found = decode_json(faults, document, State)
    if found is None:
        return State(waves)
    if found.waves != waves or not 0 <= found.done <= waves:
        faults.add(f"{file}: done", found.done, f"does not fit a plan of {waves} waves")
    return found


def record(folder: Path, state: State) -> None:
    """Write down how far a plan has been carried out, with the time."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomically(folder / STATE, encoded_state(msgspec.structs.replace(state, seen=now)))


Word = Literal["ready", "partly", "begun", "finished", "differs"]

PLAN = "plan.json"

MOST_BEHIND = 5  # partitions that are named whose replicas are not in sync
BEGUN = 0.5  # added to the place of a partition on its way whose next change is under way


# what ``has_room`` is asked about: where partitions are, how far, and the waves to come
_Mixture = tuple[Mapping[str, frozenset[int]], Mapping[str, float], Sequence[Mapping[str, Step]]]


@dataclass(frozen=True)
class Verdict:
    """What a guard found."""

    # ``ready``: the next wave can be ordered. ``partly``: some of it has been. ``begun``: all of it
    # has been, and some is under way. ``finished``: all waves are done. ``differs``: the system is
    # not where the plan expects it.
    word: Word
    wave: int  # the wave that this is about, from 1 on
    waves: int  # how many there are
    # its changes that are to be ordered, are under way, are done
    counts: tuple[int, int, int] = (0, 0, 0)
    differences: tuple[str, ...] = ()  # what is not as expected, a line each
    # what has become of partitions outside the plan, which replicas of the wave are not in sync,
    # and which nodes have died that no wave left touches, a line each; it does not keep it from
    # going on
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        number = numbered(self.wave, self.waves)
        if self.word == "finished" and not self.waves:
            return f"{number} finished: there is nothing to do"
        if self.word == "finished":
            which = "the only wave is" if self.waves == 1 else f"all {self.waves} waves are"
            return f"{number} finished: {which} done"
        to_do, under_way, done = self.counts
        return (
            f"{number} {self.word}: wave {self.wave} of {self.waves}, "
            f"{counted(to_do, 'change')} to do, {under_way:,} under way, {done:,} done"
        )


class Seen(NamedTuple):
    """What a dump shows of one partition; nodes by the plan's index, -1 for unknown ones."""

    nodes: frozenset[int]
    leader: int
    copying: bool
    first: int


@dataclass
class _Way:
    """What a plan does to one partition: where it is at first, and after which wave where."""

    places: list[frozenset[int]]
    leaders: list[int]
    first: int = -1  # the node that comes first in its list, where that is all
    waves: list[int] = field(default_factory=list)

    def place_after(self, wave: int) -> int:
        """Return the place where the partition is once a wave is done."""
        return sum(one <= wave for one in self.waves)


def form_of(faults: FaultList, folder: Path) -> Form:
    """Return what a folder of a plan says; raise where it is none."""
    if not folder.is_dir():
        faults.add("folder", os.fspath(folder), "must be a folder that a plan was written to")
        faults.raise_if_any()
    form = read_form(faults, Document.load(os.fspath(folder / FILE)))
    faults.raise_if_any()
    assert form is not None
    return form


def guard(folder: Path, documents: Sequence[Document], form: Form | None = None) -> Verdict:
    """Compare what a system shows with what the plan of a folder expects of it."""
    faults = FaultList()
    form = form or form_of(faults, folder)
    waves = len(form.waves)
    recorded = read_state(faults, folder, waves).done
    faults.raise_if_any()
    system = find(form.format)
    assert system.read is not None
    assert system.carrier is not None
    parts = parts_for(system, documents)
    if system.carrier.observe is not None:
        live = system.carrier.observe(parts)
    else:
        live = observed(system.read(parts))
    if names_all_nodes(form.format, parts):
        live = live._replace(alive=dict.fromkeys(form.nodes, False) | {**live.alive})
    plan = folder / PLAN
    planned = {one.partition for _, one in _changes(form)}
    unlisted = frozenset[int]()
    if not system.carrier.lists_down:
        unlisted = frozenset(form.dead) | {
            n for n, name in enumerate(form.nodes) if not live.alive.get(name, True)
        }
    were_dead = {form.nodes[n] for n in form.dead if n in unlisted}
    others_moved = digest_seen(live.standing, planned, were_dead) != form.outside

    def admits(mixture: _Mixture) -> bool:
        return not others_moved and has_room(Document.load(os.fspath(plan)), *mixture)

    if form.whole != "." and not (form.before or form.after) and _untouched(folder, form, live):
        note = "nothing of the plan is carried out: there is nothing to take back"
        return Verdict("finished", waves, waves, notes=(note,))
    verdict = _compared(form, live, recorded, admits, unlisted)
    if others_moved:
        verdict = _with_outside(plan, form, live, verdict, unlisted)
    return verdict


def _untouched(folder: Path, back: Form, live: Observed) -> bool:
    """Return whether a plan was not begun, and what it or its way back changes is as it was."""
    faults, whole = FaultList(), folder / back.whole
    if not (whole / FILE).is_file():
        return False
    form = form_of(faults, whole)
    begun = read_state(faults, whole, len(form.waves)).done
    faults.raise_if_any()
    begins: dict[str, Expected] = {}
    for _, one in _changes(form):
        begins.setdefault(one.partition, one)
    if begun or not begins or not {one.partition for _, one in _changes(back)} <= begins.keys():
        return False
    for name, one in begins.items():
        seen = live.standing.get(name)
        nodes = sorted(form.nodes[n] for n in one.before if n >= 0)
        if seen is None or seen.copying or sorted(seen.nodes) != nodes:
            return False
        if one.led >= 0 and seen.leader != form.nodes[one.led]:
            return False
    firsts = [pair for wave in form.waves for pair in wave.first.items()]
    return all(live.standing[name].nodes[0] != form.nodes[n] for name, n in firsts)


def _with_outside(
    plan: Path, form: Form, live: Observed, found: Verdict, unlisted: frozenset[int]
) -> Verdict:
    """Return a verdict with what has become of the partitions that no wave changes."""
    joins = [
        {
            one.partition: [
                *(n for n in one.after if n not in one.before),
                *(~n for n in one.before if n not in one.after),
            ]
            for one in wave.expect
        }
        for wave in form.waves
    ]
    first = found.wave + (found.word == "finished")
    others = elsewhere(Document.load(os.fspath(plan)), live.standing, joins, first, unlisted)
    if others.differences:
        found = replace(found, word="differs", differences=found.differences + others.differences)
    return replace(found, notes=found.notes + others.notes)


def _compared(
    form: Form,
    live: Observed,
    recorded: int,
    admits: Callable[[_Mixture], bool],
    unlisted: frozenset[int],
) -> Verdict:
    """Compare where partitions are with where they are to be, ``unlisted`` nodes apart."""
    waves = len(form.waves)
    ways, dead = _ways(form, unlisted), frozenset(form.dead)
    index = {name: n for n, name in enumerate(form.nodes)}
    seen = {
        name: Seen(
            frozenset(index.get(n, -1) for n in one.nodes) - unlisted,
            index.get(one.leader, -1),
            one.copying,
            index.get(one.nodes[0], -1) if one.nodes else -1,
        )
        for name, one in live.standing.items()
    }
    differences: list[str] = []
    places: dict[str, float] = {}
    for name, way in ways.items():
        expects = way.place_after(recorded)
        at = None if name not in seen else _place(way, seen[name], expects, dead)
        if at is None:
            differences.append(_astray(form, name, way.places[expects], live.standing.get(name)))
        else:
            places[name] = at
    after = {id(one): ways[one.partition].place_after(w) for w, one in _changes(form)}
    undone = [
        w for w, one in _changes(form)
        if places.get(one.partition, np.inf) < after[id(one)]
    ]  # fmt: skip
    wave = min(undone, default=waves + 1)
    if wave <= recorded:
        differences += _taken_back(form, places, after, recorded)
    if not form.in_any_order and not differences:
        early = _early(form, places, after, wave)
        if early and not admits(_mixture(form, ways, seen, places, wave)):
            differences += early
    if wave <= waves:
        differences += _misplaced(form, live)
    needed, spared = _died(form, live, wave)
    differences += [f"{shown(one)}: is dead, and the plan needs it" for one in needed]
    if differences:
        return Verdict("differs", min(wave, max(waves, 1)), waves, differences=tuple(differences))
    lost = [
        f"{shown(one)}: has died since the plan was made. Nothing that is left to do touches it, "
        "so the plan goes on; it does not repair what lies there: plan afresh after it"
        for one in spared
    ]
    if wave > waves:
        return Verdict("finished", waves, waves, notes=tuple(lost))
    now = [(places[one.partition], after[id(one)]) for one in form.waves[wave - 1].expect]
    done = sum(place >= then for place, then in now)
    to_do = sum(place <= then - 1 for place, then in now)
    under_way = len(now) - done - to_do
    word: Word = "ready" if to_do == len(now) else "partly" if to_do else "begun"
    notes = _behind(form, live, wave) if to_do else ()
    return Verdict(word, wave, waves, (to_do, under_way, done), notes=(*notes, *lost))


def _behind(form: Form, live: Observed, wave: int) -> tuple[str, ...]:
    """Return a note of the replicas, on nodes that live, that are not in sync where a wave is."""
    # a plan may repair them, and systems drop nothing before what is new is in sync
    names = [one.partition for one in form.waves[wave - 1].expect]
    rows = [(name, live.standing[name]) for name in names if live.standing[name].behind]
    if not rows:
        return ()
    listed = some_of(
        rows,
        lambda row: f"{shown(row[0])} ({_listed(row[1].behind)} of {_listed(row[1].nodes)})",
        MOST_BEHIND,
    )
    whose = counted(len(rows), "partition")
    return (f"replicas of {whose} of wave {wave} are not in sync: {listed}",)


def _early(
    form: Form, places: Mapping[str, float], after: Mapping[int, int], wave: int
) -> list[str]:
    """Return what later waves do and is done, in part or as a whole."""
    return [
        f"{shown(one.partition)}: is where wave {w} puts it before wave {wave} is done, and there "
        "is not room for that order"
        for w, one in _changes(form)
        if w > wave and places.get(one.partition, 0.0) > after[id(one)] - 1
    ]


def _mixture(
    form: Form,
    ways: Mapping[str, _Way],
    seen: Mapping[str, Seen],
    places: Mapping[str, float],
    wave: int,
) -> _Mixture:
    """Return where partitions take room now, and what the waves from ``wave`` on do to them."""
    held = {}
    for name, at in places.items():
        # what is under way has room reserved on both ends
        there = ways[name].places[int(at) : int(np.ceil(at)) + 1]
        held[name] = frozenset[int]().union(seen[name].nodes, *there)
    steps = [
        {
            one.partition: Step(ways[one.partition].place_after(w), one.after)
            for one in form.waves[w - 1].expect
        }
        for w in range(wave, len(form.waves) + 1)
    ]
    return held, places, steps


def _changes(form: Form) -> list[tuple[int, Expected]]:
    return [(w, one) for w, wave in enumerate(form.waves, start=1) for one in wave.expect]


def _ways(form: Form, unlisted: frozenset[int]) -> dict[str, _Way]:
    """Return the way of each partition, as dumps show it that leave ``unlisted`` nodes out."""
    ways: dict[str, _Way] = {}
    for w, one in _changes(form):
        begin, first = frozenset(one.before) - unlisted, form.waves[w - 1].first
        way = ways.setdefault(one.partition, _Way([begin], [one.led], first.get(one.partition, -1)))
        way.places.append(frozenset(one.after) - unlisted)
        way.leaders.append(one.leads)
        way.waves.append(w)
    return ways


def _place(way: _Way, seen: Seen, expected: int, dead: frozenset[int]) -> float | None:
    """Return how far a partition has come on its way, or None where it is off it."""
    places = way.places
    if way.first >= 0 and seen.nodes == places[0]:
        return seen.first == way.first and (expected > 0 or seen.leader == way.leaders[-1])
    here = [i for i, place in enumerate(places) if place == seen.nodes]
    if here:
        led = [i for i in here if way.leaders[i] in (-1, seen.leader)]
        # of places that look alike, the one that is expected, or else the next one after it
        at = min(led or here, key=lambda i: (i < expected, abs(i - expected)))
        if at <= expected:
            return at
        return at - BEGUN if seen.copying else at if led else at - 1
    for i in sorted(range(len(places) - 1), key=lambda i: (i < expected, abs(i - expected))):
        before, after = places[i], places[i + 1]
        # who leaves a node that was dead may be gone before another has come
        fewest = min(len(before) - len((before - after) & dead), len(after))
        if before & after <= seen.nodes <= before | after and len(seen.nodes) >= fewest:
            return i + BEGUN
    return None


def _astray(form: Form, name: str, place: frozenset[int], seen: Standing | None) -> str:
    """Say where a partition is, and where the plan has it."""
    if seen is None:
        return f"{shown(name)}: is not there"
    then = [form.nodes[n] for n in sorted(place)]
    return f"{shown(name)}: is on {_listed(seen.nodes)}, not on {_listed(then)}"


def _taken_back(
    form: Form, places: Mapping[str, float], after: Mapping[int, int], recorded: int
) -> list[str]:
    """Return what is no longer done, unless nothing is: then the plan begins anew."""
    if not any(places.values()):
        return []
    back = {
        one.partition: w
        for w, one in _changes(form)
        if w <= recorded and places.get(one.partition, np.inf) < after[id(one)]
    }
    return [f"{shown(name)}: wave {w} was done there, and is not now" for name, w in back.items()]


def _misplaced(form: Form, live: Observed) -> list[str]:
    """Return the nodes that the system shows elsewhere than the plan counts on."""
    return [
        f"{shown(node)}: is in {tier} {shown(now)}, where the plan has it in {shown(label)}"
        for tier, labels in form.places.items()
        for node, label in labels.items()
        if (now := live.places.get(tier, {}).get(node, label)) != label
    ]


def _died(form: Form, live: Observed, wave: int) -> tuple[list[str], list[str]]:
    """Return the nodes that have died since: those that the waves left touch, and the others."""
    touched = {n for w, one in _changes(form) if w >= wave for n in (*one.before, *one.after)}
    died = [
        (n in touched, name)
        for n, name in enumerate(form.nodes)
        if n not in {*form.dead} and not live.alive.get(name, True)
    ]
    return [name for yes, name in died if yes], [name for yes, name in died if not yes]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names)) or "no node"
