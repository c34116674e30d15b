"""Partitions that a plan leaves alone: whether others have moved them, and what that means.

Their nodes are kept as one digest beside what is expected of the others. Only where a live system
does not match it the plan itself is read, to say what has become of its rooms and its rules.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from zlib import adler32, crc32

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.levelness import levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.memoize import memoize
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Wave
from evenkeel.systems.folders.form import shown
from evenkeel.systems.folders.observing import Standing
from evenkeel.systems.plans.reading import plan_of

Joins = Sequence[Mapping[str, Sequence[int]]]
"""Of each wave, by partition, the nodes that join and, as ``~node``, those that leave."""


class Elsewhere(NamedTuple):
    """What has become of partitions outside a plan: changes to report, and changes that stop it."""

    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


def digest_of(cluster: Cluster, planned: Sequence[int], *, lists_down: bool = True) -> str:
    """Return the digest of where the partitions of a cluster are that a plan leaves alone.

    ``planned`` are the others. What is on nodes that are down counts where dumps list it.
    """
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
    """Compare what is seen of the partitions outside a plan with where it believes them.

    A node that has no room any more for what waves from ``wave`` on put there stops a plan; rules
    that others broke are only reported, since the plan does not break them. Replicas on
    ``unlisted`` nodes are there still: dumps do not show them.
    """
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
        notes.append(f"outside the plan {gone:,} partitions are not seen, and {new:,} are new")
    if moved and not strange:
        notes += _rules(cluster, end, end.replaced(node, end.leader))
    return Elsewhere(tuple(notes), tuple(_rooms(cluster, waves, wave, extra, most)))


def load_of(cluster: Cluster) -> NDArray[np.float64]:
    """Return the most that a replica of each partition takes in any role, (P, D)."""
    load = cluster.partitions.load
    return np.maximum(np.maximum(load.leader, load.voter), load.non_voter)


def _rooms(
    cluster: Cluster,
    waves: Joins,
    wave: int,
    extra: NDArray[np.float64],
    most: NDArray[np.float64],
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


ROUNDING = 1.0 + 1e-9
"""Above a capacity by this a node is still within it: sums are added up in another order here."""


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
    """Whether no node ever exceeds its capacity when waves are ordered one after the other.

    ``held`` are the nodes that each partition takes room on now, ``places`` how far each has come.
    A wave is ordered as a whole unless all of it is done; what joins is there before what leaves.
    """
    cluster = plan_of(plan).cluster
    if cluster.topology.tier_capacity:
        return False
    most, capacity = load_of(cluster), cluster.nodes.capacity * ROUNDING
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
    """Return whether every node has room for all that any wave puts there beside all that is there.

    Any mixture of partitions before and after their waves then is within capacity.
    """
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
