"""Derive from a CRUSH rule's steps the failure domains of replicas, and their enclosures.

A rule of one choosing step keeps the replicas of a group apart by one type of bucket. A rule of
several, such as three racks and then two hosts in each, also keeps replicas together: the two in a
rack must stay in one rack. A single replica can then only move within its rack, its *enclosure*,
to a host that the other one does not use. A rule of several takes, such as one SSD and two HDDs,
places the first replicas by the first take, the next ones by the second, and so on.
"""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.ceph.crush.crush_map import NO_OSD, CrushMap
from evenkeel.systems.ceph.crush.placement import Pool, Rows

OUTSIDE = -1  # stands for the domain of a device that a rule does not reach


class Choice(NamedTuple):
    """One choosing step of a rule."""

    number: int  # items chosen below each item of the step before
    kind: int  # their type
    leaf: bool = False  # whether a device below each of them is chosen at once


@dataclass(frozen=True)
class Block:
    """What a rule does between a take and an emit."""

    root: int  # the bucket or device that it takes
    choices: tuple[Choice, ...]  # what it chooses below
    count: int  # replicas that it places: as many as it chooses, and as the blocks before leave


@dataclass(frozen=True)
class FailureDomains:
    """How a rule divides the devices."""

    # (devices,) CRUSH weight under the rule, 1.0 for 65536; 0 for a device that it does not reach
    weight: NDArray[np.float64]
    # (devices,) replicas stay within it; ``OUTSIDE`` where the rule does not reach
    enclosure: NDArray[np.int32]
    # (devices,) at most one replica of a group each; ``OUTSIDE`` where the rule does not reach
    domain: NDArray[np.int32]
    # for each block and each of its choosing steps the domain of every device, and how many of them
    # each domain of the step before may hold
    levels: tuple[tuple[tuple[NDArray[np.int32], int], ...], ...]


def blocks(crush: CrushMap, rule: int, size: int) -> list[Block]:
    """Split a rule into what it does between each take and emit."""
    found: list[Block] = []
    root, left = 0, size
    choices: list[Choice] = []
    for step in crush.rule(rule).steps:
        if step.operation == "take":
            root, choices = step.number, []
        elif step.operation == "emit":
            chosen = prod(max(choice.number, 0) for choice in choices)
            found.append(Block(root, tuple(choices), min(chosen, left)))
            left -= found[-1].count
            choices = []
        elif step.operation.endswith(("firstn", "indep")):
            number = step.number if step.number > 0 else step.number + size
            leaf = step.operation.startswith("chooseleaf")
            choices.append(Choice(number, crush.types[step.type], leaf))
    return found


def chosen_below(crush: CrushMap, block: Block) -> NDArray[np.int64]:
    """Return what is above each device at each choosing step of a block, (steps + 1, devices)."""
    # the first row is 0 below the block's root; ``NO_OSD`` stands where a device has no bucket of
    # one of the types above it
    found = np.full((len(block.choices) + 1, crush.devices), NO_OSD, np.int64)
    for osd, above, _ in _devices_below(crush, block.root):
        within = above | {0: osd}
        if all(choice.kind in within for choice in block.choices):
            found[:, osd] = [0, *(within[choice.kind] for choice in block.choices)]
    return found


def positions(crush: CrushMap, rule: int, size: int) -> NDArray[np.bool_]:
    """Tell which devices each position of a row may hold by the takes of a rule, (size, devices).

    >>> from evenkeel.systems.ceph.crush.crush_map import Bucket, CrushRule, Step
    >>> hosts = [Bucket(-1 - h, f"h{h}", "host", [(h, 65536)]) for h in range(2)]
    >>> steps = [
    ...     one for h in range(2)
    ...     for one in (Step("take", -1 - h), Step("choose_firstn", 1, "osd"), Step("emit"))
    ... ]
    >>> crush = CrushMap(2, {"osd": 0, "host": 1}, hosts, [CrushRule(0, "both", steps)])
    >>> positions(crush, 0, 2).tolist()
    [[True, False], [False, True]]
    """
    found = np.zeros((size, crush.devices), np.bool_)
    at = 0
    for block in blocks(crush, rule, size):
        found[at : at + block.count] = chosen_below(crush, block)[0] != NO_OSD
        at += block.count
    return found


def failure_domains(crush: CrushMap, rule: int, size: int) -> FailureDomains:
    """Work out enclosures, failure domains and weights under a rule."""
    weight = np.zeros(crush.devices)
    enclosure = np.full(crush.devices, OUTSIDE, np.int32)
    domain = np.full(crush.devices, OUTSIDE, np.int32)
    levels: list[tuple[tuple[NDArray[np.int32], int], ...]] = []
    numbers: dict[tuple[int, ...], int] = {}
    for b, block in enumerate(blocks(crush, rule, size)):
        several = [k for k, choice in enumerate(block.choices) if choice.number != 1]
        decisive = several[-1] if several else 0
        steps = [np.full(crush.devices, OUTSIDE, np.int32) for _ in block.choices]
        for osd, above, share in _devices_below(crush, block.root):
            path = [b]
            for k, choice in enumerate(block.choices):
                at = osd if choice.kind == 0 else above.get(choice.kind)
                if at is None:
                    break
                path.append(at)
                steps[k][osd] = numbers.setdefault(tuple(path), len(numbers))
            else:
                if domain[osd] == OUTSIDE:
                    weight[osd] = share / 0x10000
                    enclosure[osd] = numbers.setdefault(tuple(path[: decisive + 1]), len(numbers))
                    domain[osd] = steps[decisive][osd] if block.choices else osd
        levels.append(
            tuple((step, choice.number) for step, choice in zip(steps, block.choices, strict=True))
        )
    return FailureDomains(weight, _renumbered(enclosure), _renumbered(domain), tuple(levels))


def _devices_below(crush: CrushMap, root: int) -> list[tuple[int, dict[int, int], int]]:
    """Each device below ``root`` with its ancestors by type, and the weight it has there."""
    if root >= 0:
        return [(root, {}, 0x10000)]
    found: list[tuple[int, dict[int, int], int]] = []
    waiting: list[tuple[int, dict[int, int]]] = [(root, {})]
    while waiting:
        at, above = waiting.pop()
        bucket = crush.by_id[at]
        within = above | {crush.types[bucket.type]: at}
        for item, share in bucket.items:
            if item >= 0:
                found.append((item, within, share))
            else:
                waiting.append((item, within))
    return sorted(found, key=lambda each: each[0])


def _renumbered(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number labels from 0 in the order of the devices that have them first."""
    known, first, which = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.where(known == OUTSIDE, -1, first), kind="stable")
    rank = np.empty(known.size, np.int32)
    rank[order] = np.arange(known.size, dtype=np.int32)
    answer: NDArray[np.int32] = rank[which] - np.int32(OUTSIDE in known)
    return answer.astype(np.int32)


def dropped_by_monitors(crush: CrushMap, pool: Pool, rows: Rows) -> NDArray[np.bool_]:
    """Tell of which rows Ceph's monitors drop the pairs, as breaches of the rule."""
    # They are stricter than the rule where it has several takes or chooses in more than two steps:
    # the number of each step is compared with the buckets of all replicas. A device that weighs
    # nothing may hold none.
    # Ceph, ``OSDMap::check_pg_upmaps`` and ``CrushWrapper::verify_upmap``; pull requests 69151 and
    # 71053 describe its errors.
    taken = blocks(crush, pool.rule, pool.size)
    held = rows != NO_OSD
    osd = np.where(held, rows, 0)
    bad = np.zeros(len(rows), np.bool_)
    for choice in {choice for block in taken for choice in block.choices if choice.kind > 0}:
        above = np.full(crush.devices, OUTSIDE, np.int64)
        for root in sorted({block.root for block in taken}):
            for device, buckets, _ in _devices_below(crush, root):
                if above[device] == OUTSIDE and choice.kind in buckets:
                    above[device] = -buckets[choice.kind]
        parents = np.where(held, above[osd], OUTSIDE)
        if choice.leaf:
            bad |= _most_alike(parents) > 1
        else:
            bad |= _most_below(np.zeros(rows.shape, np.int64), parents) > choice.number
    at = 0
    weight = np.zeros(crush.devices, np.int64)
    for block in taken:
        below = np.zeros(crush.devices, np.bool_)
        for device, _, share in _devices_below(crush, block.root):
            below[device] = True
            weight[device] = max(weight[device], share)
        mine = slice(at, at + block.count)
        if block.root < 0:
            bad |= (held[:, mine] & ~below[osd[:, mine]]).any(axis=1)
        at += block.count
    bad |= (held & (weight[osd] == 0)).any(axis=1)
    return bad


def broken(domains: FailureDomains, rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """Find the placement groups that break their rule."""
    held = rows != NO_OSD
    osd = np.where(held, rows, 0)
    bad = (held & (domains.domain[osd] == OUTSIDE)).any(axis=1)
    bad |= _most_alike(np.where(held, rows, -1)) > 1
    for block in domains.levels:
        above = np.zeros(rows.shape, np.int64)
        for level, number in block:
            here = np.where(held, level[osd], OUTSIDE)
            bad |= _most_below(above, here) > number
            above = np.where(here == OUTSIDE, OUTSIDE, here)
        if block:
            bad |= _most_alike(above) > 1
    return np.flatnonzero(bad)


def breaks_rule(crush: CrushMap, pool: Pool, rows: Rows) -> NDArray[np.bool_]:
    """Tell which rows break the rule of their pool, by its domains or by its takes."""
    found = np.zeros(len(rows), np.bool_)
    found[broken(failure_domains(crush, pool.rule, pool.size), rows)] = True
    held = rows != NO_OSD
    allowed = positions(crush, pool.rule, pool.size)
    for slot in range(pool.size):
        at = np.where(held[:, slot], rows[:, slot], 0)
        found |= held[:, slot] & ~allowed[slot, at]
    return found


def _most_alike(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """How often the commonest label of each row occurs, ``OUTSIDE`` apart."""
    most = np.zeros(len(labels), np.int64)
    columns = np.ascontiguousarray(labels.T)
    for column in columns:
        beat()
        alike = np.count_nonzero(columns == column, axis=0)
        np.maximum(most, np.where(column == OUTSIDE, 0, alike), out=most)
    return most


def _most_below(above: NDArray[np.integer], here: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many different labels stand below one label of the level above, at most, in each row."""
    ranked = np.sort(here, axis=1)
    beat()
    order = np.argsort(here, axis=1, kind="stable")
    first = np.ones(here.shape, bool)
    first[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    parents = np.take_along_axis(above, order, axis=1)
    counted = np.where(first & (ranked != OUTSIDE), parents, OUTSIDE)
    return _most_alike(counted)
