"""Assign replicas to the disks inside their nodes, with the fewest moves between disks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only, no_alloc

ROUNDING = 1e-9  # share of a target that sums of sizes may be above it

SEARCHED = 40  # replicas of a node up to which all placements on its disks are searched


@by_reference
class NodeDisks(NamedTuple):
    """The replicas (I,) and disks (M,) of all nodes, where replicas are to lie, and scratch."""

    first: NDArray[np.int64]  # (N + 1,) replicas of node n: first[n] : first[n + 1]; largest first
    size: NDArray[np.float64]  # (I,)
    home: NDArray[np.int32]  # (I,) its disk, -1 for none
    fixed: NDArray[np.bool_]  # (I,) it stays there
    disk_first: NDArray[np.int64]  # (N + 1,) likewise of disks
    usable: NDArray[np.bool_]  # (M,) it takes replicas
    capacity: NDArray[np.float64]  # (M,) no replica is placed above it
    share: NDArray[np.float64]  # (M,) what arrives goes where the least of this is taken
    where: NDArray[np.int32]  # (I,) written: a disk, -1 where none has room
    load: NDArray[np.float64]  # (M,) written
    trial: NDArray[np.int32]  # (I,) scratch
    rest: NDArray[np.float64]  # (I,) scratch


@no_alloc
def level_disks(disks: NodeDisks, target: NDArray[np.float64], steps: int) -> int:
    """Bring every disk to its ``target (M,)``; return the steps of exact searches."""
    size, home, fixed, usable = disks.size, disks.home, disks.fixed, disks.usable
    where, load = disks.where, disks.load
    taken = 0
    for n in range(len(disks.first) - 1):
        begin, end = disks.first[n], disks.first[n + 1]
        for d in range(disks.disk_first[n], disks.disk_first[n + 1]):
            load[d] = 0.0
        for i in range(begin, end):
            where[i] = -1
            if home[i] >= 0 and (usable[home[i]] or fixed[i]):
                where[i] = home[i]
                load[home[i]] += size[i]
        fewest = _evict(disks, n, target)
        _place(disks, n, target)
        _even_out(disks, n, target)
        _bring_back(disks, n, target)
        for most in (target, disks.capacity):
            lost, over, moves = _judge(disks, n, most)
            if (lost == 0 and over == 0.0 and moves <= fewest) or end - begin > SEARCHED:
                break
            used, found = _search(disks, n, most, steps, lost > 0 or over > 0.0, moves)
            taken += used
            if found or (lost == 0 and over == 0.0):
                break
        _restore(disks, n)
    return taken


@no_alloc
def _restore(disks: NodeDisks, n: int) -> None:
    """Put what lies nowhere back where it was; what came there leaves as far as room lacks."""
    begin, end = disks.first[n], disks.first[n + 1]
    size, home, usable, capacity = disks.size, disks.home, disks.usable, disks.capacity
    where, load = disks.where, disks.load
    restored = True
    while restored:
        restored = False
        for i in range(begin, end):
            d = home[i]
            if where[i] >= 0 or d < 0 or not usable[d]:
                continue
            for j in range(begin, end):
                if _fits(load[d], size[i], capacity[d]):
                    break
                if where[j] == d and home[j] != d:
                    where[j] = -1
                    load[d] -= size[j]
            where[i] = d
            load[d] += size[i]
            restored = True


@inline_only
def _fits(load: float, size: float, most: float) -> bool:
    """Return whether a disk with this load takes a replica."""
    return load + size <= most + ROUNDING * most


@inline_only
def _fill(load: float, size: float, share: float) -> float:
    """Return how full a disk is with a replica more, of its share of the node."""
    if share > 0.0:
        return (load + size) / share
    return np.inf if load + size > 0.0 else 0.0


@no_alloc
def _evict(disks: NodeDisks, n: int, target: NDArray[np.float64]) -> int:
    """Take off the fewest replicas that bring each disk to its target; return the least moves."""
    begin, end = disks.first[n], disks.first[n + 1]
    left, right = disks.disk_first[n], disks.disk_first[n + 1]
    size, home, fixed, usable = disks.size, disks.home, disks.fixed, disks.usable
    where, load = disks.where, disks.load
    fewest = 0
    for i in range(begin, end):
        if home[i] >= 0 and where[i] < 0:
            fewest += 1
    for d in range(left, right):
        while usable[d] and not _fits(load[d], 0.0, target[d]):
            excess = load[d] - target[d] * (1.0 + ROUNDING)
            best = -1
            for i in range(begin, end):
                if where[i] == d and not fixed[i] and (best < 0 or size[i] >= excess):
                    best = i
            if best < 0 or size[best] <= 0.0:
                break
            where[best] = -1
            load[d] -= size[best]
            fewest += 1
    return fewest


@no_alloc
def _place(disks: NodeDisks, n: int, target: NDArray[np.float64]) -> None:
    """Place what lies nowhere, the largest first, where it leaves the most room."""
    begin, end = disks.first[n], disks.first[n + 1]
    left, right = disks.disk_first[n], disks.disk_first[n + 1]
    size, home, usable, capacity = disks.size, disks.home, disks.usable, disks.capacity
    share, where, load = disks.share, disks.where, disks.load
    for i in range(begin, end):
        if where[i] >= 0:
            continue
        best, least = -1, np.inf
        for d in range(left, right):
            if not usable[d] or not _fits(load[d], size[i], capacity[d]):
                continue
            full = _fill(load[d], size[i], share[d])
            if best < 0 or full < least:
                best, least = d, full
        at = home[i]
        if at >= 0 and usable[at] and _fits(load[at], size[i], capacity[at]):
            # it stays where it was if it may, or if it would be as much too much elsewhere
            if best < 0 or not _fits(load[best], size[i], target[best]):
                best = at
            elif _fits(load[at], size[i], target[at]):
                best = at
        if best < 0 or not _fits(load[best], size[i], target[best]):
            roomy = _make_room(disks, n, i, target)
            best = roomy if roomy >= 0 else best
        where[i] = best
        if best >= 0:
            load[best] += size[i]


@no_alloc
def _make_room(disks: NodeDisks, n: int, i: int, target: NDArray[np.float64]) -> int:
    """Take the fewest smaller replicas off a disk so that one fits; return the disk, or -1."""
    end = disks.first[n + 1]
    left, right = disks.disk_first[n], disks.disk_first[n + 1]
    size, home, fixed, usable = disks.size, disks.home, disks.fixed, disks.usable
    where, load = disks.where, disks.load
    best, fewest = -1, end - i
    for d in range(left, right):
        if not usable[d]:
            continue
        free, count = load[d], int(home[i] != d)
        for j in range(i + 1, end):
            if _fits(free, size[i], target[d]) or count >= fewest:
                break
            if where[j] == d and not fixed[j]:
                free -= size[j]
                count += 1
        if count < fewest and _fits(free, size[i], target[d]):
            best, fewest = d, count
    if best >= 0:
        for j in range(i + 1, end):
            if _fits(load[best], size[i], target[best]):
                break
            if where[j] == best and not fixed[j]:
                where[j] = -1
                load[best] -= size[j]
    return best


@inline_only
def _over(load: float, target: float) -> float:
    """Return how far a disk is above its target."""
    return load - target if load > target + ROUNDING * target else 0.0


@no_alloc
def _even_out(disks: NodeDisks, n: int, target: NDArray[np.float64]) -> None:
    """Move or exchange replicas of disks above their targets until no step lowers the excess."""
    begin, end = disks.first[n], disks.first[n + 1]
    left, right = disks.disk_first[n], disks.disk_first[n + 1]
    size, home, fixed, usable = disks.size, disks.home, disks.fixed, disks.usable
    where, load = disks.where, disks.load
    for _ in range(end - begin + 8):
        best_i, best_j, best_e, best_cost, best_gain = -1, -1, -1, 9, 0.0
        for i in range(begin, end):
            d = where[i]
            if d < 0 or fixed[i] or not usable[d] or _over(load[d], target[d]) == 0.0:
                continue
            for e in range(left, right):
                if e == d or not usable[e]:
                    continue
                before = _over(load[d], target[d]) + _over(load[e], target[e])
                gain = before - _over(load[d] - size[i], target[d])
                gain -= _over(load[e] + size[i], target[e])
                cost = int(home[i] >= 0 and home[i] != e) - int(home[i] >= 0 and home[i] != d)
                if gain > ROUNDING * before and (
                    cost < best_cost or (cost == best_cost and gain > best_gain)
                ):
                    best_i, best_j, best_e, best_cost, best_gain = i, -1, e, cost, gain
        if best_i < 0:  # no replica moves alone
            for i in range(begin, end):
                d = where[i]
                if d < 0 or fixed[i] or not usable[d] or _over(load[d], target[d]) == 0.0:
                    continue
                for j in range(i + 1, end):
                    e = where[j]
                    if e < 0 or e == d or fixed[j] or not usable[e] or size[j] >= size[i]:
                        continue
                    shift = size[i] - size[j]
                    before = _over(load[d], target[d]) + _over(load[e], target[e])
                    gain = before - _over(load[d] - shift, target[d])
                    gain -= _over(load[e] + shift, target[e])
                    cost = int(home[i] >= 0 and home[i] != e) - int(home[i] >= 0 and home[i] != d)
                    cost += int(home[j] >= 0 and home[j] != d) - int(home[j] >= 0 and home[j] != e)
                    if gain > ROUNDING * before and (
                        cost < best_cost or (cost == best_cost and gain > best_gain)
                    ):
                        best_i, best_j, best_e, best_cost, best_gain = i, j, e, cost, gain
        if best_i < 0:
            return
        d = where[best_i]
        where[best_i] = best_e
        load[d] -= size[best_i]
        load[best_e] += size[best_i]
        if best_j >= 0:
            where[best_j] = d
            load[best_e] -= size[best_j]
            load[d] += size[best_j]


@no_alloc
def _bring_back(disks: NodeDisks, n: int, target: NDArray[np.float64]) -> None:
    """Let replicas stay at home after all, alone or in exchange for one that may lie anywhere."""
    begin, end = disks.first[n], disks.first[n + 1]
    size, home, usable, where, load = disks.size, disks.home, disks.usable, disks.where, disks.load
    for i in range(begin, end):
        d, e = home[i], where[i]
        if d < 0 or e < 0 or d == e or not usable[d]:
            continue
        if _fits(load[d], size[i], target[d]):
            where[i] = d
            load[e] -= size[i]
            load[d] += size[i]
            continue
        for j in range(begin, end):
            if where[j] != d or home[j] == d:
                continue
            shift = size[i] - size[j]
            if _fits(load[d], shift, target[d]) and _fits(load[e], -shift, target[e]):
                where[i], where[j] = d, e
                load[d] += shift
                load[e] -= shift
                break


@no_alloc
def _judge(disks: NodeDisks, n: int, target: NDArray[np.float64]) -> tuple[int, float, int]:
    """Return the replicas that lie nowhere, the excess over targets, and the moves within."""
    begin, end = disks.first[n], disks.first[n + 1]
    left, right = disks.disk_first[n], disks.disk_first[n + 1]
    home, usable, where, load = disks.home, disks.usable, disks.where, disks.load
    lost, moves, over = 0, 0, 0.0
    for i in range(begin, end):
        lost += int(where[i] < 0)
        moves += int(home[i] >= 0 and where[i] != home[i])
    for d in range(left, right):
        if usable[d]:
            over += _over(load[d], target[d])
    return lost, over, moves


@no_alloc
def _search(
    disks: NodeDisks, n: int, target: NDArray[np.float64], steps: int, failed: bool, moves: int
) -> tuple[int, bool]:
    """Search depth first for a placement within the targets that takes fewer moves."""
    # the disks of a replica are tried in a circle that begins at home; ``trial`` holds how many
    # were
    begin, end = disks.first[n], disks.first[n + 1]
    left, right = disks.disk_first[n], disks.disk_first[n + 1]
    size, home, fixed, usable = disks.size, disks.home, disks.fixed, disks.usable
    where, load, trial, rest = disks.where, disks.load, disks.trial, disks.rest
    count = right - left
    if count == 0 or end == begin:
        return 0, False
    for d in range(left, right):
        load[d] = 0.0
    best = end - begin + 1 if failed else moves
    used, found, cost, i = 0, False, 0, begin
    trial[begin] = 0
    rest[begin] = -1.0  # disk on which the replica lies in this trial
    while i >= begin and used < steps:
        used += 1
        at = int(rest[i])
        origin = home[i] if home[i] >= 0 else left
        if at >= 0:  # take it off again
            load[at] -= size[i]
            cost -= int(home[i] >= 0 and at != home[i])
            rest[i] = -1.0
        placed = False
        while trial[i] < (1 if fixed[i] else count):
            d = left + (origin - left + trial[i]) % count
            trial[i] += 1
            if not usable[d] and not fixed[i]:
                continue
            price = int(home[i] >= 0 and d != home[i])
            if cost + price >= best:
                continue
            if fixed[i] or _fits(load[d], size[i], target[d]):
                load[d] += size[i]
                cost += price
                rest[i] = d
                placed = True
                break
        if not placed:
            i -= 1
        elif i + 1 < end:
            i += 1
            trial[i] = 0
            rest[i] = -1.0
        else:
            over = 0.0
            for d in range(left, right):
                if usable[d]:
                    over += _over(load[d], target[d])
            if over == 0.0:
                best, found = cost, True
                for k in range(begin, end):
                    where[k] = int(rest[k])
    for d in range(left, right):
        load[d] = 0.0
    for k in range(begin, end):
        if where[k] >= 0:
            load[where[k]] += size[k]
    return used, found
