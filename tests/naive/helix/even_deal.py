"""The steps of CRUSH-ed on names, in plain Python."""

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from tests.naive.core.jenkins_hash import (
    JavaMap,
    java_hash,
    java_order,
    java_shuffle,
    jenkins,
    signed,
    utf16,
)
from tests.naive.helix.crush import Item, crush, leaves, tree


def node_hash(node: Item) -> int:
    """Hash of a node as a map key."""
    return node.hash


def zone_of(node: Item) -> Item:
    """Fault zone of a node: itself where there are no zones."""
    assert node.parent is not None
    return node if node.parent.name == "root" and node.parent.kind == "root" else node.parent


def java_set(nodes: Sequence[Item]) -> list[Item]:
    """A ``HashSet`` made from a list of nodes, as it is walked."""
    copied = JavaMap(node_hash, int(len(nodes) / 0.75) + 1)
    for node in nodes:
        copied[node] = None
    return list(copied)


def hands(names: Sequence[str], rows: Sequence[Sequence[Item]]) -> JavaMap:
    """Each node's list of partitions."""
    row_of = dict(zip(names, rows, strict=True))
    held = JavaMap(node_hash)
    for name in java_order(names, java_hash):
        for node in row_of[name]:
            held.setdefault(node, []).append(name)
    return held


def deal(root: Item, held: JavaMap, replicas: int, seed: int) -> bool:
    """Card dealing, in place; False where it does not converge."""
    f32 = np.float32
    nodes = leaves(root)
    zones = list(dict.fromkeys(zone_of(node) for node in nodes))
    total = sum(map(len, held.values()))
    if total == 0 or replicas > len(zones):
        return False
    whole = sum(node.weight for node in nodes)
    target = {}
    for node in nodes:
        zone = zone_of(node)
        if replicas == len(zones):
            share = f32(f32(total) / f32(len(zones)))
        else:
            share = f32(f32(f32(total) * f32(zone.weight)) / f32(whole))
        target[node] = f32(f32(f32(node.weight) / f32(zone.weight)) * share)
    budget = total % len(nodes)
    zone_budget = {
        zone: math.ceil(f32(f32(f32(budget) * f32(zone.weight)) / f32(whole))) for zone in zones
    }
    pool: list[str] = []
    for node in java_shuffle(java_order(nodes, node_hash), seed):
        floor, zone = math.floor(target[node]), zone_of(node)
        if len(held.get(node, ())) <= floor:
            continue
        limit = floor
        if budget > 0 and zone_budget[zone] > 0:
            limit = math.ceil(target[node])
            budget -= 1
            zone_budget[zone] -= 1
        shuffled = java_shuffle(held[node], signed(31 * node.hash + seed))
        held[node] = shuffled[:limit]
        pool += shuffled[limit:]
    pool.sort(key=utf16)
    tie = {node: java_hash(node.name + str(seed)) for node in nodes}
    holding: dict[str, set[Item]] = {}
    for node in held:
        for name in held[node]:
            holding.setdefault(name, set()).add(zone_of(node))
    for adjustment in range(3):
        queue = list(nodes)
        while queue and pool:
            node = min(queue, key=lambda node: (len(held.get(node, ())), tie[node]))
            room = math.floor(target[node]) + adjustment - len(held.get(node, ()))
            fitting = [n for n in pool if zone_of(node) not in holding.get(n, ())]
            if room <= 0 or not fitting:
                queue.remove(node)
                continue
            pool.remove(fitting[0])
            held.setdefault(node, []).append(fitting[0])
            holding.setdefault(fitting[0], set()).add(zone_of(node))
    return not pool


def lists_of(held: JavaMap) -> JavaMap:
    """Each partition's nodes."""
    lists = JavaMap(java_hash)
    for node in held:
        for name in held[node]:
            lists.setdefault(name, []).append(node)
    return lists


def shuffle_lists(held: JavaMap) -> JavaMap:
    """Order each partition's nodes so that every node leads about as often."""
    lists = lists_of(held)
    score = {node: len(held[node]) for node in held}
    for name in lists:
        nodes = lists[name]
        order = {node: (score[node], java_hash(name + node.name)) for node in nodes}
        nodes.sort(key=order.__getitem__)
        for node in nodes:
            score[node] -= 1
        score[nodes[0]] += len(nodes) ** 2
    return lists


def rehome(root: Item, held: JavaMap, live: Sequence[bool], seed: int) -> bool:
    """Move replicas off nodes that are not live, along a ring, in place; False at its end."""
    owner: dict[int, Item] = {}
    for node in java_order(leaves(root), node_hash):
        for i in range(1000):
            owner[jenkins(node.hash, i)] = node
    points = sorted(owner)
    lost = JavaMap(java_hash)
    for node in held:
        if not live[node.instance]:
            for name in held[node]:
                lost[name] = lost.get(name, 0) + 1
            held[node] = []
    holding: dict[str, set[Item]] = {}
    for node in held:
        for name in held[node]:
            holding.setdefault(name, set()).add(zone_of(node))
    for name in lost:
        zones = holding.setdefault(name, set())
        for k in range(lost[name]):
            start = jenkins(jenkins(seed, java_hash(name), k))
            for point in points[bisect_left(points, start) :]:
                node = owner[point]
                if live[node.instance] and zone_of(node) not in zones:
                    held.setdefault(node, []).append(name)
                    zones.add(zone_of(node))
                    break
            else:
                return False
    return True


def crushed(
    names: Sequence[str],
    replicas: int,
    group: str,
    node_names: Sequence[str],
    zones: Sequence[str] | None,
    weights: Sequence[int],
    live: Sequence[bool],
) -> tuple[list[list[int]], bool]:
    """CRUSH-ed for one group: the lists, and whether every step converged."""
    some = [i for i, weight in enumerate(weights) if weight > 0]
    root = tree(
        [node_names[i] for i in some],
        None if zones is None else [zones[i] for i in some],
        [weights[i] for i in some],
        [True] * len(some),
    )
    nodes = {}
    for leaf in leaves(root):
        leaf.instance = some[leaf.instance]
        nodes[leaf.instance] = leaf
    rows = [[nodes[i] for i in crush(root, name, replicas)] for name in names]
    held = hands(names, rows)
    seed = java_hash(group)
    if deal(root, held, replicas, seed):
        lists = shuffle_lists(held)
        if all(live[i] for i in some):
            return [[n.instance for n in lists[name]] for name in names], True
        if rehome(root, held, live, seed):
            after = lists_of(held)
            final = []
            for name in names:
                now = after.get(name, [])
                kept = [node for node in lists[name] if node in now]
                new = [node for node in java_set(now) if node not in kept]
                final.append([node.instance for node in kept + new])
            return final, True
    plain = tree(
        [node_names[i] for i in some],
        None if zones is None else [zones[i] for i in some],
        [weights[i] for i in some],
        [live[i] for i in some],
    )
    return [[some[n] for n in crush(plain, name, replicas)] for name in names], False
