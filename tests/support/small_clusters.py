"""Small random clusters of eight kinds whose best placement can be proven.

At most 30 replicas on 8 nodes each. Every kind has what makes another part of the search wrong.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import evenkeel as ek

MOST_REPLICAS, MOST_NODES = 30, 8
Given = dict[str, Any]


def draw(kind: str, seed: int) -> tuple[ek.Cluster, ek.Goals]:
    """Draw a cluster of a kind of ``KINDS``, and what is asked of it."""
    given, goals = draw_given(kind, seed)
    return ek.Cluster.from_arrays(**given), goals


def draw_given(kind: str, seed: int) -> tuple[Given, ek.Goals]:
    """Draw what `draw` makes a cluster of."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    given = KINDS[kind](rng)
    level = float(rng.choice([0.0, 0.02, 0.05, 0.1, 0.2]))
    leaders = None if rng.random() < 0.5 else float(rng.choice([0.0, 0.2]))
    return given, ek.Goals(level=level, leaders=leaders)


def plain(
    rng: np.random.Generator, *, fullness: float = 0.6, zones: int = 0, whole: bool = False
) -> Given:
    """Draw nodes alike, loads that differ, and placements that know nothing of either."""
    nodes = int(rng.integers(4, MOST_NODES + 1))
    zones = zones or nodes
    replicas = int(rng.integers(1, min(3, zones) + 1))
    partitions = int(rng.integers(4, MOST_REPLICAS // replicas + 1))
    dimensions = int(rng.integers(1, 4))
    load = rng.lognormal(0.0, 0.6, (partitions, dimensions))
    load = np.ceil(4.0 * load) if whole else np.round(load, 3) + 0.001
    total = load.sum(0) * replicas
    zone = np.arange(nodes) % zones
    placement = []
    for _ in range(partitions):
        inside = rng.choice(zones, replicas, replace=False)
        placement.append([int(rng.choice(np.flatnonzero(zone == z))) for z in inside])
    return {
        "capacity": np.tile(np.round(total / nodes / fullness, 3), (nodes, 1)),
        "load": load,
        "placement": placement,
        "domains": {"zone": zone},
    }


def unlike(rng: np.random.Generator) -> Given:
    """Draw nodes of other sizes."""
    given = plain(rng)
    size = rng.choice([0.5, 1.0, 1.0, 2.0], len(given["capacity"]))
    given["capacity"] = np.round(given["capacity"] * (size / size.mean())[:, None], 3)
    return given


def zoned(rng: np.random.Generator) -> Given:
    """Draw replicas that are to be spread over zones."""
    return plain(rng, zones=int(rng.integers(2, 5))) | {"spread": {"zone": 1}}


def led(rng: np.random.Generator) -> Given:
    """Draw leaders that weigh more than those that follow."""
    given = plain(rng, fullness=0.5, zones=int(rng.integers(3, 5))) | {"spread": {"zone": 1}}
    share = rng.choice([0.0, 0.3, 1.0], given["load"].shape[1])
    given["leader_load"] = np.round(given["load"] * (1.0 + share), 3)
    return given


def losing(rng: np.random.Generator) -> Given:
    """Draw a node that is dead, one that takes no more, and one that is to be emptied."""
    given = plain(rng, fullness=0.5)
    nodes = len(given["capacity"])
    alive, accepts, keeps = (np.ones(nodes, bool) for _ in range(3))
    lost = rng.choice(nodes, 2, replace=False)
    alive[lost[0]] = rng.random() < 0.3
    accepts[lost[1]] = rng.random() < 0.5
    keeps[lost[1]] = accepts[lost[1]] or rng.random() < 0.5
    return given | {"alive": alive, "accepts": accepts, "keeps": keeps}


def tight(rng: np.random.Generator) -> Given:
    """Draw nodes with next to no room beside what one hidden placement puts on them."""
    given = plain(rng, whole=True)
    nodes, replicas = len(given["capacity"]), len(given["placement"][0])
    on = np.zeros_like(given["capacity"])
    for row in given["load"]:
        on[rng.choice(nodes, replicas, replace=False)] += row
    given["capacity"] = np.ceil(on * rng.choice([1.02, 1.1])) + 1.0
    return given


def pinned(rng: np.random.Generator) -> Given:
    """Draw replicas that may not move, and partitions that may not be somewhere."""
    given = plain(rng)
    rows = given["placement"]
    given["flags"] = [[int(ek.Flag.PINNED) * int(rng.random() < 0.25) for _ in row] for row in rows]
    bans = [
        (p, int(n))
        for p, row in enumerate(rows)
        for n in range(len(given["capacity"]))
        if n not in row and rng.random() < 0.1
    ]
    return given | {"forbidden": bans}


def grouped(rng: np.random.Generator) -> Given:
    """Draw groups that are to be spread, and rules on where replicas and leaders are."""
    zones = int(rng.integers(3, 5))
    given = plain(rng, fullness=0.5, zones=zones)
    partitions, replicas = len(given["load"]), len(given["placement"][0])
    nodes = len(given["capacity"])
    groups = max(1, partitions // 3)
    group = rng.integers(0, groups, partitions)
    groups = int(group.max()) + 1
    together = int(np.bincount(group).max()) * replicas
    rules = [
        ek.Rule(spread={"node": 1 + together // nodes}),
        ek.Rule(spread={"zone": 1}, lead=["zone=0"] if rng.random() < 0.5 else []),
        ek.Rule(min_domains={"zone": min(replicas, 2)}, place={"zone=1": 1}),
    ]
    return given | {
        "group": group,
        "rules": rules,
        "group_rule": np.where(rng.random(groups) < 0.5, 0, -1),
        "rule": rng.choice([-1, 1, 2], partitions),
    }


def heaped(rng: np.random.Generator) -> Given:
    """Draw what stands on few of the nodes, some of them too full, or nowhere yet."""
    given = plain(rng, fullness=0.6)
    nodes = len(given["capacity"])
    replicas = len(given["placement"][0])
    few = rng.choice(nodes, max(replicas, nodes // 2), replace=False)
    empty = rng.random() < 0.3
    given["placement"] = [
        [-1] * replicas if empty else rng.choice(few, replicas, replace=False).tolist()
        for _ in given["load"]
    ]
    return given


KINDS: dict[str, Callable[[np.random.Generator], Given]] = {
    "unlike": unlike,
    "zoned": zoned,
    "led": led,
    "losing": losing,
    "tight": tight,
    "pinned": pinned,
    "grouped": grouped,
    "heaped": heaped,
}
