"""Helix's CRUSH and MultiRoundCRUSH on names, in plain Python, one draw at a time."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tests.naive.core.jenkins_hash import JavaMap, java_hash, java_order, jenkins


@dataclass(eq=False)
class Item:
    """A node of the tree: the root, a zone, or a node that holds replicas."""

    name: str
    kind: str
    weight: int = 0
    failed: bool = False
    instance: int = -1
    children: list["Item"] = field(default_factory=list)
    parent: "Item | None" = None
    drawn: dict[tuple[int, int], "Item"] = field(default_factory=dict)

    @cached_property
    def id(self) -> int:
        return int.from_bytes(hashlib.sha1(self.name.encode()).digest()[:4], "big")

    @cached_property
    def hash(self) -> int:
        return java_hash(self.name)

    @property
    def out(self) -> bool:
        return self.failed or self.weight == 0

    @cached_property
    def straw_of(self) -> "dict[Item, int]":
        """Straw length of each child, in map order."""
        ordered = sorted(self.children, key=lambda child: -child.weight)
        length = dict(zip(ordered, straws([child.weight for child in ordered]), strict=True))
        return {child: length[child] for child in java_order(ordered, lambda child: child.hash)}


def tree(
    names: Sequence[str], zones: Sequence[str] | None, weights: Sequence[int], live: Sequence[bool]
) -> Item:
    """Build the tree over the nodes in their order; without zones it has two levels."""
    root = Item("root", "root")
    found: dict[str, Item] = {}
    for i, name in enumerate(names):
        above = root
        if zones is not None:
            above = found.get(zones[i]) or Item(zones[i], "zone", parent=root)
            if zones[i] not in found:
                found[zones[i]] = above
                root.children.append(above)
        leaf = Item(name, "node", weights[i] if live[i] else 0, not live[i], i, parent=above)
        above.children.append(leaf)
        if zones is not None:
            above.weight += leaf.weight
        root.weight += leaf.weight
    return root


def leaves(root: Item) -> list[Item]:
    """The nodes below an item, in tree order."""
    if root.kind == "node":
        return [root]
    return [leaf for child in root.children for leaf in leaves(child)]


def straws(weights: Sequence[int]) -> list[int]:
    """Straw lengths of weights in descending order."""
    f32 = np.float32
    lengths = []
    straw, below, last = f32(1), f32(0), f32(0)
    left = len(weights)
    for i, weight in enumerate(weights):
        if weight == 0:
            lengths.append(0)
            continue
        lengths.append(int(f32(straw * f32(65536))))
        if i + 1 == len(weights) or weights[i + 1] == weight:
            continue
        after = weights[i + 1]
        below = f32(below + f32(f32(f32(weight) - last) * f32(left)))
        left -= weights.count(after)
        ahead = f32(left * (after - weight))
        share = f32(below / f32(below + ahead))
        straw = f32(float(straw) * math.pow(1.0 / float(share), 1.0 / left))
        last = f32(weight)
    return lengths


def draw(bucket: Item, x: int, trial: int) -> Item:
    """Draw a child: the longest straw, the first in map order among equals."""
    if not bucket.children:
        raise ValueError(f"{bucket.name} has no children")
    if (x, trial) not in bucket.drawn:
        score = {
            child: (jenkins(x, child.id, trial) & 0xFFFF) * length
            for child, length in bucket.straw_of.items()
        }
        bucket.drawn[x, trial] = max(score, key=lambda child: score[child])
    return bucket.drawn[x, trial]


def select(
    origin: Item, x: int, count: int, kind: str, acceptable: Callable[[Item], bool]
) -> list[Item]:
    """Select up to ``count`` different items of a kind below ``origin``."""
    selected: list[Item] = []
    for r in range(1, count + 1):
        failure = loopbacks = 0
        bucket, rejected, found = origin, set[Item](), False
        while not found:
            item = draw(bucket, x, r + failure)
            if item.kind != kind:
                bucket = item
                continue
            restart = False
            if item in selected or not acceptable(item):
                if item not in selected:
                    rejected.add(item)
                failure += 1
                restart = all(
                    child.out or child in selected or child in rejected for child in bucket.children
                )
            elif item.out:
                failure += 1
                restart = True
            else:
                selected.append(item)
                found = True
            if restart:
                if loopbacks == 50:
                    break
                loopbacks += 1
                bucket, rejected = origin, set()
    return selected


def crush(root: Item, name: str, replicas: int) -> list[int]:
    """Place one partition; the list is short where ten rounds are not enough."""
    x = java_hash(name)
    zoned = any(child.kind == "zone" for child in root.children)
    nodes: list[Item] = []
    taken: set[Item] = set()
    for _ in range(10):
        missing = replicas - len(nodes)
        if zoned:
            zones = select(root, x, missing, "zone", lambda zone: zone not in taken)
            taken.update(zones)
            for zone in zones:
                nodes += select(zone, x, 1, "node", lambda node: True)
        else:
            nodes += select(
                root, x, missing, "node", lambda node, had=tuple(nodes): node not in had
            )
        if len(nodes) == replicas:
            break
        x = jenkins(x)
    return [node.instance for node in nodes]


class NotEnoughZones(Exception):
    """MultiRound found too few zones in a hundred rounds."""


def found_in_rounds(
    origin: Item, x: int, count: int, kind: str, acceptable: Callable[[Item], bool]
) -> list[Item]:
    """Select in up to a hundred rounds, asking for ``count`` each time."""
    found: list[Item] = []
    for _ in range(100):
        had = tuple(found)
        found += select(
            origin, x, count, kind, lambda item, had=had: item not in had and acceptable(item)
        )
        if len(found) >= count:
            return found[:count]
        x = jenkins(x)
    raise NotEnoughZones


def multiround(root: Item, names: Sequence[str], states: Sequence[int]) -> list[list[int]]:
    """Place all partitions of a group; ``states`` are the counts, top state first."""
    replicas = sum(states)
    state_of = [s for s, count in enumerate(states) for _ in range(count)]
    zones = {
        name: found_in_rounds(root, java_hash(name), replicas, "zone", lambda zone: True)
        for name in names
    }
    order = java_order(names, java_hash)
    lists: dict[str, list[list[int]]] = {name: [[] for _ in states] for name in names}
    for zone in root.children:
        for s in range(len(states)):
            members = [
                name
                for name in order
                for k, z in enumerate(zones[name])
                if z is zone and state_of[k] == s
            ]
            if members and zone.weight:
                for name, node in inside(zone, members).items():
                    lists[name][s].append(node.instance)
    return [[node for state in lists[name] for node in state] for name in names]


def inside(zone: Item, names: Sequence[str]) -> dict[str, Item]:
    """Distribute partitions inside a zone, in three iterations."""
    node_hash = lambda node: node.hash  # noqa: E731
    target = {node: math.floor(node.weight / zone.weight * len(names)) for node in zone.children}
    held = JavaMap(node_hash)
    surplus = JavaMap(node_hash)
    bucket, original = zone, {leaf: leaf for leaf in zone.children}
    waiting = list(names)
    for _ in range(3):
        for node in surplus:
            held[node] = [name for name in held[node] if name not in surplus[node]]
            waiting += surplus[node]
        for name in waiting:
            drawn = found_in_rounds(bucket, java_hash(name), 1, "node", lambda node: True)[0]
            held.setdefault(original[drawn], []).append(name)
            bucket, original = reweighted(zone, target, held, surplus)
        waiting = []
    return {name: node for node in held for name in held[node]}


def reweighted(
    zone: Item, target: dict[Item, int], held: JavaMap, surplus: JavaMap
) -> tuple[Item, dict[Item, Item]]:
    """A copy of the zone in which what a node still lacks is its weight."""
    lacks = {}
    for node in zone.children:
        count = len(held.get(node, ()))
        if count > target[node] + 1:
            surplus[node] = held[node][: count - target[node] - 1]
        if count < target[node]:
            lacks[node] = 10 * (target[node] - count)
    if not lacks:
        return zone, {leaf: leaf for leaf in zone.children}
    copies = {
        Item(node.name, "node", lacks.get(node, 0), node not in lacks, node.instance): node
        for node in zone.children
    }
    return Item(zone.name, "zone", sum(lacks.values()), children=list(copies)), copies
