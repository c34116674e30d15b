"""Build a cluster from a Ceph map: devices are nodes, placement groups partitions, pools groups.

A block of a CRUSH rule (the steps between a take and an emit) keeps its replicas on the devices
below its root, apart by the types that it chooses, and together where it chooses in several steps.
A rule of one block becomes ``require``, ``spread`` and ``max_domains``. In a rule of several
blocks, each block is a ``place`` term with its number of replicas. Its limits concern the devices
of its take only, so they may need tiers of their own, such as ``host below default~hdd``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.shared.stopping import Clock
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD, CrushMap
from evenkeel.systems.ceph.crush.failure_domains import (
    OUTSIDE,
    Block,
    blocks,
    chosen_below,
    dropped_by_monitors,
    failure_domains,
    positions,
)
from evenkeel.systems.ceph.crush.placement import (
    Pairs,
    Pool,
    Rows,
    raw,
    up,
    upmapped,
    with_primaries,
)

CLASS = "~"  # stands between the name of a bucket and the device class that its shadow tree is for


# whether a tier may have other devices, in any domain or in others, or must be of its own
Shared = Literal["all", "apart", "none"]


@dataclass(frozen=True)
class Vocabulary:
    """Tiers and tags of the nodes, to which rules add those that they need."""

    # the bucket of each type that each device is in, the widest type first; "" for none
    tiers: dict[str, list[str]]
    tags: dict[str, NDArray[np.bool_]]  # (devices,) device classes
    # tiers of single takes: a bucket's name for the devices of the take, "" for others
    below: dict[str, list[str]] = field(default_factory=dict)

    def condition(self, crush: CrushMap, block: Block, reached: NDArray[np.bool_]) -> list[str]:
        """Return conditions that only the devices meet which a block reaches; none for all."""
        found: list[str] = []
        meets = np.ones(crush.devices, np.bool_)
        name = _name(crush, block)
        bucket, _, device_class = name.partition(CLASS)
        if device_class in self.tags:
            found.append(f"+{device_class}")
            meets &= self.tags[device_class]
        kind = crush.by_id[block.root].type if block.root < 0 else ""
        if bucket in self.tiers.get(kind, ()):
            found.append(f"{kind}={bucket}")
            meets &= np.array([one == bucket for one in self.tiers[kind]], np.bool_)
        if np.array_equal(meets, reached):
            return found
        tag = f"below {name}"
        while tag in self.tags and not np.array_equal(self.tags[tag], reached):
            tag += "'"
        self.tags[tag] = reached
        return [f"+{tag}"]

    def tier(
        self, crush: CrushMap, block: Block, step: int, chosen: NDArray[np.int64], shared: "Shared"
    ) -> str:
        """Return the tier whose domains are what a block has ``chosen`` at a step."""
        code = block.choices[step].kind
        kind = next(name for name, own in crush.types.items() if own == code)
        names = [
            "" if at == NO_OSD else crush.by_id[at].name.partition(CLASS)[0]
            for at in chosen[step + 1].tolist()
        ]
        plain = self.tiers.get(kind, [""] * crush.devices)
        same = all(name in ("", one) for one, name in zip(plain, names, strict=True))
        outside = {one for one, name in zip(plain, names, strict=True) if not name}
        if same and (shared == "all" or (shared == "apart" and not outside & {*names} - {""})):
            return kind
        tier = f"{kind} below {_name(crush, block)}"
        while self.below.setdefault(tier, names) != names:
            tier += "'"
        return tier


def _name(crush: CrushMap, block: Block) -> str:
    return crush.by_id[block.root].name if block.root < 0 else f"osd.{block.root}"


def placed_by(crush: CrushMap, pool: Pool) -> int:
    """Return how many replicas the rule of a pool places if it finds devices for all of them."""
    return sum(block.count for block in blocks(crush, pool.rule, pool.size))


def rule_of(crush: CrushMap, pool: Pool, words: Vocabulary) -> Rule | str:
    """Return the rule of a pool in terms of the model, or the reason why there is none."""
    taken = _merged([one for one in blocks(crush, pool.rule, pool.size) if one.count > 0])
    chosen = [chosen_below(crush, block) for block in taken]
    reached = [one[0] != NO_OSD for one in chosen]
    if (np.sum(reached, axis=0, dtype=int) > 1).any():
        return "several of its takes reach the same devices, so that positions decide"
    for block, mask in zip(taken, reached, strict=True):
        if not mask.any():
            return f"nothing is below {_name(crush, block)} that it could choose"
    alone = len(taken) == 1
    spread: dict[str, Amount] = {}
    most: dict[str, Amount] = {}
    amounts: dict[int, set[int]] = {}
    for block in taken:
        for step, choice in enumerate(block.choices):
            amounts.setdefault(choice.kind, set()).add(_each(block, step))
    for block, own in zip(taken, chosen, strict=True):
        for step, choice in enumerate(block.choices):
            each, together = (
                _each(block, step),
                prod(one.number for one in block.choices[: step + 1]),
            )
            if choice.kind > 0 and (alone or each < block.count):
                alike = len(amounts[choice.kind]) == 1
                shared: Shared = "all" if alone else "apart" if alike else "none"
                spread[words.tier(crush, block, step, own, shared)] = each
            if choice.kind > 0 and together < block.count:
                most[words.tier(crush, block, step, own, "all" if alone else "none")] = together
    conditions = [
        words.condition(crush, block, mask) for block, mask in zip(taken, reached, strict=True)
    ]
    if alone:
        return Rule(require=conditions[0], spread=spread, max_domains=most)
    place = {",".join(one): block.count for one, block in zip(conditions, taken, strict=True)}
    if len(place) < len(taken):
        return "several of its takes reach the same devices, so that positions decide"
    return Rule(place=place, spread=spread, max_domains=most)


def _each(block: Block, step: int) -> int:
    """Return how many replicas each item may hold that a block chooses at a step."""
    return prod(one.number for one in block.choices[step + 1 :])


def _merged(taken: Sequence[Block]) -> list[Block]:
    """Return blocks in which those that choose the same type below the same root are one."""
    keys = [(block.root, block.choices[0].kind) for block in taken if len(block.choices) == 1]
    again = {key for key, times in Counter(keys).items() if times > 1}
    found: list[Block] = []
    for block in taken:
        key = (block.root, block.choices[0].kind) if len(block.choices) == 1 else None
        if key not in again:
            found.append(block)
        elif found and (found[-1].root, found[-1].choices[-1].kind) == key:
            found[-1] = _joined(found[-1], block)
        else:
            found.append(block)
    return found


def _joined(one: Block, other: Block) -> Block:
    count = one.count + other.count
    return Block(one.root, (one.choices[0]._replace(number=count),), count)


FORMAT = "ceph"  # name of the system in ``cluster.native_format``
SHOWN = 5  # groups that a note names; the rest is counted
ROOM = 10.0  # capacity of a device as a multiple of its share, where no capacities are given


@dataclass(frozen=True, eq=False)
class CephMap:
    """A Ceph map, as far as it places: what travels as ``cluster.native``.

    Parameters
    ----------
    crush : CrushMap
        Hierarchy and rules.
    pools : tuple of Pool
        The pools, in the order in which their placement groups are partitions of the cluster.
    reweight : ndarray of int64, shape (devices,)
        16.16 fixed point; 0 is out.
    items : mapping of int to mapping of int to sequence of (int, int)
        ``pg-upmap-items`` in force, by pool and placement group.
    affinity : ndarray of int64, shape (devices,)
        Primary affinity, 16.16 fixed point.
    whole : mapping of int to mapping of int to sequence of int
        ``pg-upmap`` in force, by pool and placement group: all devices of a group.
    known : mapping of int to ndarray of int32, shape (pg_num, size)
        Where the groups of pools are whose rule the map cannot run, by pool.
    notes : tuple of str
        What was left alone when the map was read, and why.

    Examples
    --------
    >>> from evenkeel.systems.ceph.crush.crush_map import Bucket, CrushRule, Step
    >>> hosts = [Bucket(-2 - h, f"h{h}", "host", [(h, 65536)]) for h in range(3)]
    >>> root = Bucket(-1, "root", "root", [(-2 - h, 65536) for h in range(3)])
    >>> steps = [Step("take", -1), Step("chooseleaf_firstn", 0, "host"), Step("emit")]
    >>> types = {"osd": 0, "host": 1, "root": 2}
    >>> crush = CrushMap(3, types, [root, *hosts], [CrushRule(0, "r", steps)])
    >>> native = cluster_of(crush, Pool(id=1, pg_num=8, size=2, rule=0)).native
    >>> native.pools[0].pg_num, native.reweight.tolist()
    (8, [65536, 65536, 65536])
    """

    crush: CrushMap
    pools: tuple[Pool, ...]
    reweight: NDArray[np.int64]
    items: Mapping[int, Pairs] = field(default_factory=dict)
    affinity: NDArray[np.int64] | None = None
    whole: Mapping[int, Mapping[int, Sequence[int]]] = field(default_factory=dict)
    known: Mapping[int, Rows] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def rows(
        self,
        pool: Pool,
        reweight: NDArray[np.int64],
        *,
        upmaps: bool = True,
        clock: Clock | None = None,
    ) -> Rows:
        """Place the groups of a pool.

        Parameters
        ----------
        pool : Pool
            One of the pools.
        reweight : ndarray of int64, shape (devices,)
            16.16 fixed point; 0 is out.
        upmaps : bool
            Whether the pairs in force are applied.
        clock : Clock, optional
            Asked between slices; it may raise ``OutOfTime``.

        Returns
        -------
        ndarray of int32, shape (pg_num, size)
            Devices by slot, ``NO_OSD`` for none.
        """
        if pool.id in self.known:
            return self.known[pool.id]
        mapped = raw(self.crush, pool, reweight, clock=clock)
        return self.with_upmaps(pool, mapped, reweight) if upmaps else mapped

    def with_upmaps(
        self, pool: Pool, mapped: Rows, reweight: NDArray[np.int64] | None = None
    ) -> Rows:
        """Apply the upmaps in force to where CRUSH puts the groups of a pool."""
        if pool.id in self.known:
            return mapped
        weights = self.reweight if reweight is None else reweight
        return upmapped(
            mapped, weights, whole=self.whole.get(pool.id), items=self.items.get(pool.id)
        )

    def leaders(self, pool: Pool, rows: Rows, is_up: NDArray[np.bool_]) -> NDArray[np.int16]:
        """Find who is primary.

        Parameters
        ----------
        pool : Pool
            One of the pools.
        rows : ndarray of int32, shape (pg_num, size)
            Devices by slot.
        is_up : ndarray of bool, shape (devices,)
            Which devices are up.

        Returns
        -------
        ndarray of int16, shape (pg_num,)
            Slot of each primary; -1 for none.
        """
        _, primary = with_primaries(up(rows, pool, is_up), pool, self.affinity)
        return slots_of(rows, primary)


def slots_of(rows: Rows, primary: NDArray[np.int32]) -> NDArray[np.int16]:
    """Find the slots in which primaries stand.

    >>> slots_of(np.array([[4, 7], [5, 6]], np.int32), np.array([7, -1], np.int32)).tolist()
    [1, -1]
    """
    slot = (rows == primary[:, None]).argmax(axis=1)
    return np.where(primary >= 0, slot, -1).astype(np.int16)


def cluster_of(
    crush: CrushMap,
    pools: Pool | Sequence[Pool],
    *,
    reweight: ArrayLike | None = None,
    items: Mapping[int, Pairs] | None = None,
    affinity: ArrayLike | None = None,
    is_up: ArrayLike | None = None,
    load: ArrayLike | None = None,
    capacity: ArrayLike | None = None,
    whole: Mapping[int, Mapping[int, Sequence[int]]] | None = None,
    known: Mapping[int, Rows] | None = None,
    names: Mapping[str, int] | None = None,
) -> Cluster:
    """Build the cluster of a Ceph map, with every placement group where the map has it.

    Parameters
    ----------
    crush : CrushMap
        Hierarchy and rules. Its types of buckets are the tiers, the widest first.
    pools : Pool or sequence of Pool
        Each is a group; its placement groups are called ``pool.group``, in hexadecimal as in Ceph.
    reweight : array_like of int, shape (devices,), optional
        16.16 fixed point; without them every device is in. One that is out keeps nothing.
    items : mapping of int to mapping of int to sequence of (int, int), optional
        ``pg-upmap-items`` in force, by pool and placement group.
    affinity : array_like of int, shape (devices,), optional
        Primary affinity, 16.16 fixed point.
    is_up : array_like of bool, shape (devices,), optional
        All that exist by default.
    load : array_like of float64, shape (P, 1), optional
        Bytes of each placement group's replica, or shard; 1 by default.
    capacity : array_like of float64, shape (devices, 1), optional
        Bytes; by default ten times each device's share by weight, so that what counts is how far
        apart utilisations are.
    whole : mapping of int to mapping of int to sequence of int, optional
        ``pg-upmap`` in force, by pool and placement group.
    known : mapping of int to ndarray of int32, shape (pg_num, size), optional
        Where the groups of pools are whose rule the map cannot run, by pool.
    names : mapping of str to int, optional
        Further names of pools.

    Returns
    -------
    Cluster
        Nodes are called ``osd.0`` and so on; device classes are tags; the map is its ``native``.
        What cannot be moved by pairs, or whose rule the model cannot express, is pinned: pools
        whose places are ``known``, groups placed ``whole``, and those that ``native.notes`` names.
        A group wants as many replicas as CRUSH finds devices for: pairs fill no hole.

    Raises
    ------
    InvalidInput
        If an array has another shape, or a pool's rule does not exist.

    Examples
    --------
    >>> from evenkeel.systems.ceph.crush.crush_map import Bucket, CrushRule, Step
    >>> hosts = [Bucket(-2 - h, f"h{h}", "host", [(h, 65536)]) for h in range(3)]
    >>> root = Bucket(-1, "root", "root", [(-2 - h, 65536) for h in range(3)])
    >>> steps = [Step("take", -1), Step("chooseleaf_firstn", 0, "host"), Step("emit")]
    >>> types = {"osd": 0, "host": 1, "root": 2}
    >>> crush = CrushMap(3, types, [root, *hosts], [CrushRule(0, "r", steps)])
    >>> cluster_of(crush, Pool(id=1, pg_num=8, size=2, rule=0))
    <Cluster: 3 nodes, 8 partitions, 16 replicas wanted, 1 dimension>
    """
    listed = (pools,) if isinstance(pools, Pool) else tuple(pools)
    weights = _per_device("reweight", reweight, crush.devices, IN)
    native = CephMap(
        crush,
        listed,
        weights,
        items or {},
        None if affinity is None else _per_device("affinity", affinity, crush.devices, IN),
        whole or {},
        known or {},
    )
    hierarchy = _hierarchy(crush)
    exists = np.zeros(crush.devices, bool)
    exists[list(hierarchy.parent.keys() & set(range(crush.devices)))] = True
    alive = exists if is_up is None else np.asarray(is_up, bool)
    exists = exists | alive  # one of a host that weighs nothing, or in no host, too
    mapped = [native.rows(pool, weights, upmaps=False) for pool in listed]
    items, dropped = _lawful_items(native, mapped)
    native = replace(native, items=items)
    rows = [native.with_upmaps(*one) for one in zip(listed, mapped, strict=True)]
    leader = [native.leaders(pool, r, alive) for pool, r in zip(listed, rows, strict=True)]
    share = shares_of(native)
    words = Vocabulary(_domains(crush, hierarchy), hierarchy.tags)
    bound = [
        _bound(native, pool, at, r, led, words)
        for pool, at, r, led in zip(listed, mapped, rows, leader, strict=True)
    ]
    native = replace(native, notes=(*dropped, *chain.from_iterable(one.notes for one in bound)))
    first = np.concatenate([[0], *(np.full(len(r), r.shape[1]) for r in rows)]).cumsum()
    node = np.concatenate([np.zeros(0, np.int32), *(r.ravel() for r in rows)])
    alone = np.concatenate([np.zeros(0, bool), *(one.alone for one in bound)])
    numbers = np.repeat(np.arange(len(listed)), [pool.pg_num for pool in listed])
    stays = ~alive & exists & (weights > 0)
    flags = np.where((node != NO_OSD) & stays[np.where(node == NO_OSD, 0, node)], Flag.PINNED, 0)
    flags |= np.repeat(np.where(alone, int(Flag.PINNED | Flag.LEFT_ALONE), 0), np.diff(first))
    at = {pool.id: i for i, pool in enumerate(listed)}
    also = {name: at[number] for name, number in (names or {}).items()}
    return Cluster.from_arrays(
        capacity=ROOM * share[:, None] if capacity is None else capacity,
        load=np.ones((len(first) - 1, 1)) if load is None else load,
        dimensions=("bytes",),
        bytes="bytes",
        domains=words.tiers | words.below,
        crossing=[*words.below],
        tags=words.tags,
        node_names=[f"osd.{i}" for i in range(crush.devices)],
        weight=share / max(float(share.max(initial=0.0)), 1.0),
        alive=alive,
        accepts=alive & (share > 0),
        keeps=exists & (weights > 0),
        leads=alive,
        lead_weight=None if native.affinity is None else np.maximum(native.affinity, 1) / IN,
        gone=~exists,
        partition_names=[f"{pool.id}.{pg:x}" for pool in listed for pg in range(pool.pg_num)],
        group=numbers,
        group_names=Names([str(pool.id) for pool in listed], len(listed), "", also),
        rules=[one.rule for one in bound],
        rule=np.where(alone, -1, numbers),
        replicas=np.concatenate([np.zeros(0, np.int64), *(_held(r) for r in rows)]),
        placement=np.where(node == NO_OSD, -1, node),
        first=first,
        leader=np.concatenate(leader),
        flags=flags,
        native=native,
        native_format=FORMAT,
    )


def _lawful_items(
    native: CephMap, mapped: Sequence[Rows]
) -> tuple[dict[int, dict[int, Sequence[tuple[int, int]]]], list[str]]:
    """Return the pairs in force without those that the monitors drop, and notes on them."""
    kept = {number: dict(own) for number, own in native.items.items()}
    gone: list[str] = []
    idle: list[str] = []
    usable = {*np.flatnonzero(native.reweight).tolist()}
    for pool, rows in zip(native.pools, mapped, strict=True):
        groups = [pg for pg in kept.get(pool.id, ()) if pg not in native.whole.get(pool.id, ())]
        if pool.id in native.known or not groups:
            continue
        then = native.with_upmaps(pool, rows)[groups]
        for pg, row in zip(groups, rows[groups].tolist(), strict=True):
            pairs = kept[pool.id][pg]
            if any(a not in row or b in row or b not in usable for a, b in pairs):
                idle.append(f"{pool.id}.{pg:x}")
        bad, unlawful = (
            dropped_by_monitors(native.crush, pool, some) for some in (then, rows[groups])
        )
        for i in np.flatnonzero(bad & ~unlawful).tolist():
            del kept[pool.id][groups[i]]
            gone.append(f"{pool.id}.{groups[i]:x}")
        if not kept[pool.id]:
            del kept[pool.id]
    notes = {
        "upmaps against the rule of their pool, which the monitors drop, count as dropped": gone,
        "upmaps without effect, as CRUSH puts the group elsewhere, or their target is out or "
        "already there": idle,
    }
    return kept, [f"{note}: {some_of(own, str, SHOWN)}" for note, own in notes.items() if own]


class _Bound(NamedTuple):
    """What binds a pool: its rule, the groups that are left alone (pg_num,), and why."""

    rule: Rule
    alone: NDArray[np.bool_]
    notes: list[str]


def _bound(
    native: CephMap,
    pool: Pool,
    mapped: Rows,
    rows: Rows,
    leader: NDArray[np.int16],
    words: Vocabulary,
) -> _Bound:
    """Return what binds a pool; what no pairs or no rule of the model can express stays."""
    # CRUSH has ``mapped`` it, upmaps make ``rows`` of that, (pg_num, size) both
    if pool.id in native.known:
        return _Bound(Rule(), np.ones(len(rows), bool), [])
    crush = native.crush
    named = f"pool {pool.id} (CRUSH rule {crush.rule(pool.rule).name})"
    rule = rule_of(crush, pool, words)
    held = _held(mapped)
    full = held == placed_by(crush, pool)  # else the takes' positions are shifted
    notes: list[str] = []
    if (held < pool.size).any():
        some, most = int(np.count_nonzero(held < pool.size)), pool.size
        notes.append(
            f"{named}: CRUSH finds devices for fewer than {most} replicas of {some:,} of "
            f"{counted(pool.pg_num, 'group')}; those slots stay empty, since pairs fill none"
        )
    if isinstance(rule, str):
        notes.append(f"{named} is left alone: {rule}")
        return _Bound(Rule(), np.ones(len(rows), bool), notes)
    judged = mapped[full] if rule.place else mapped
    if dropped_by_monitors(crush, pool, judged).any():
        notes.append(
            f"{named} is left alone: Ceph's monitors take where CRUSH itself puts its groups for a "
            "breach of the rule, and drop all pairs (ceph pull requests 69151 and 71053)"
        )
        return _Bound(Rule(), np.ones(len(rows), bool), notes)
    alone = np.zeros(len(rows), bool)
    alone[[pg for pg in native.whole.get(pool.id, ()) if pg < len(rows)]] = True
    if rule.place:
        alone |= ~full
        first = positions(crush, pool.rule, pool.size)[0]
        led = rows[np.arange(len(rows)), np.maximum(leader, 0)]
        if full.any() and first[led[full & (leader >= 0)]].all():
            rule = replace(rule, lead=[next(iter(rule.place))])
    return _Bound(rule, alone, notes)


def _held(rows: Rows) -> NDArray[np.int64]:
    """Return how many devices each row has, (pg_num,)."""
    return np.asarray(np.count_nonzero(rows != NO_OSD, axis=1), np.int64)


def _per_device(
    path: str, given: ArrayLike | None, devices: int, default: int
) -> NDArray[np.int64]:
    """Read one number per device."""
    if given is None:
        return np.full(devices, default, np.int64)
    values = np.asarray(given)
    faults = FaultList()
    if values.shape != (devices,):
        faults.add(path, values.shape, f"must have shape ({devices},)")
    faults.raise_if_any()
    return values.astype(np.int64)


class _Hierarchy(NamedTuple):
    """The parent of every device and bucket outside the shadow trees, and devices by class."""

    parent: dict[int, int]
    tags: dict[str, NDArray[np.bool_]]


def _hierarchy(crush: CrushMap) -> _Hierarchy:
    parent: dict[int, int] = {}
    tags: dict[str, NDArray[np.bool_]] = {}
    for bucket in crush.buckets:
        _, shadow, device_class = bucket.name.partition(CLASS)
        for item, _weight in bucket.items:
            if not shadow:
                parent.setdefault(item, bucket.id)
            elif item >= 0:
                tags.setdefault(device_class, np.zeros(crush.devices, bool))[item] = True
    return _Hierarchy(parent, tags)


def _domains(crush: CrushMap, hierarchy: _Hierarchy) -> dict[str, list[str]]:
    """Name each device's bucket of every type, "" for none, the widest type first."""
    above: list[dict[str, str]] = []
    for osd in range(crush.devices):
        found: dict[str, str] = {}
        at = hierarchy.parent.get(osd)
        while at is not None:
            bucket = crush.by_id[at]
            found[bucket.type] = bucket.name
            at = hierarchy.parent.get(at)
        above.append(found)
    types = sorted(crush.types, key=lambda name: -crush.types[name])
    return {
        kind: [found.get(kind, "") for found in above]
        for kind in types
        if any(kind in found for found in above)
    }


def places_in(crush: CrushMap) -> dict[str, dict[str, str]]:
    """Return the bucket that each device is in, by the type of the bucket."""
    return {
        kind: {f"osd.{i}": name for i, name in enumerate(names) if name}
        for kind, names in _domains(crush, _hierarchy(crush)).items()
    }


def shares_of(native: CephMap, sizes: Sequence[float] | None = None) -> NDArray[np.float64]:
    """What each device deserves of all pools together, by weight below each take."""
    share = np.zeros(native.crush.devices)
    for i, pool in enumerate(native.pools):
        size = 1.0 if sizes is None else sizes[i]
        if pool.id in native.known:
            placed = native.known[pool.id]
            share += size * np.bincount(placed[placed != NO_OSD], minlength=len(share))
            continue
        domains = failure_domains(native.crush, pool.rule, pool.size)
        taken = blocks(native.crush, pool.rule, pool.size)
        for block, levels in zip(taken, domains.levels, strict=True):
            reached = levels[-1][0] != OUTSIDE if levels else domains.weight > 0
            weight = np.where(reached, domains.weight, 0.0) * native.reweight
            if weight.sum() > 0:
                share += weight * (size * pool.pg_num * block.count / weight.sum())
    return share
