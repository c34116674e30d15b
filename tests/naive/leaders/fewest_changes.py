"""Leaders within numbers, the fewest changed, in plain Python: distances relaxed, chains tried."""

from collections.abc import Iterator

import numpy as np

from evenkeel_kernels.leaders.fewest_changes import FAR, LeadFlow

Hop = tuple[int, int, int, int]
"""A partition that a node hands on, the arc that takes it, that arc's node, and the changes."""


def led(flow: LeadFlow) -> list[int]:
    """Leads of every node, from who leads alone."""
    return np.bincount(flow.node[flow.taken], minlength=len(flow.most)).tolist()


def above(flow: LeadFlow) -> int:
    """Leads above what nodes may have."""
    return int(np.maximum(np.array(led(flow)) - flow.most, 0).sum())


def begin(flow: LeadFlow) -> list[int]:
    """Keep who led; let the others be led by who may lead the most more, the first of equals."""
    taken = flow.began.tolist()
    lead = np.bincount(flow.node[flow.began[flow.began >= 0]], minlength=len(flow.most)).tolist()
    for p, arc in enumerate(taken):
        if arc < 0:
            arcs = range(flow.first[p], flow.first[p + 1])
            taken[p] = max(arcs, key=lambda a: flow.most[flow.node[a]] - lead[flow.node[a]])
            lead[flow.node[taken[p]]] += 1
    return taken


def hops(flow: LeadFlow, n: int) -> Iterator[Hop]:
    """Every way in which a node could hand on a lead, at prices."""
    for p, now in enumerate(flow.taken.tolist()):
        for a in range(flow.first[p], flow.first[p + 1]) if flow.node[now] == n else ():
            m = int(flow.node[a])
            more = int(a != flow.began[p]) - int(now != flow.began[p])
            if m != n:
                yield p, a, m, more + int(flow.price[n] - flow.price[m])


def distances(flow: LeadFlow, *, free_only: bool = False) -> list[float]:
    """Changes, or hops that cost nothing, from the nodes that lead too many (Bellman and Ford)."""
    lead = led(flow)
    far = [0.0 if lead[n] > flow.most[n] else np.inf for n in range(len(lead))]
    for _ in lead:
        for n in range(len(lead)):
            for _, _, m, cost in hops(flow, n):
                if not free_only:
                    far[m] = min(far[m], far[n] + cost)
                elif cost == 0:
                    far[m] = min(far[m], far[n] + 1)
    return far


def nearest_end(flow: LeadFlow, far: list[float]) -> float:
    """Distance of the nearest node that may lead more."""
    lead = led(flow)
    return min((far[n] for n in range(len(lead)) if lead[n] < flow.most[n]), default=np.inf)


def is_open(flow: LeadFlow, rank: list[int], n: int) -> bool:
    """Whether a chain of rising rank goes on from a node to one that may lead more."""
    if led(flow)[n] < flow.most[n]:
        return True
    return any(
        cost == 0 and rank[n] != FAR and rank[m] == rank[n] + 1 and is_open(flow, rank, m)
        for _, _, m, cost in hops(flow, n)
    )
