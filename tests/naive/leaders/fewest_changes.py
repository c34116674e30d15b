"""Leaders within numbers, the fewest changed, in plain Python: distances relaxed, chains tried."""

from collections.abc import Iterator

import numpy as np

from evenkeel_kernels.leaders.fewest_changes import FAR, LeadFlow

Hop = tuple[int, int]  # the place that a lead goes to, and the changes that this costs, at prices


def led(flow: LeadFlow) -> list[int]:
    """Leads of every place, from who leads alone."""
    return np.bincount(flow.place[flow.taken], minlength=len(flow.most)).tolist()


def surplus(flow: LeadFlow) -> list[int]:
    """Leads of every place, and of those within, beyond what counts around it."""
    found = np.array(led(flow)) - flow.passed
    np.add.at(found, flow.around[:-1], flow.passed[:-1])
    return found.tolist()


def above(flow: LeadFlow) -> int:
    """Leads above what places may have, or that should be elsewhere."""
    return sum(max(one, 0) for one in surplus(flow))


def begin(flow: LeadFlow) -> list[int]:
    """Keep who led; let the others be led by who may lead the most more, the first of equals."""
    taken = flow.began.tolist()
    lead = np.bincount(flow.place[flow.began[flow.began >= 0]], minlength=len(flow.most)).tolist()
    for p, arc in enumerate(taken):
        if arc < 0:
            arcs = range(flow.first[p], flow.first[p + 1])
            taken[p] = max(arcs, key=lambda a: flow.most[flow.place[a]] - lead[flow.place[a]])
            lead[flow.place[taken[p]]] += 1
    return taken


def hops(flow: LeadFlow, v: int) -> Iterator[Hop]:
    """Every way in which a place could hand on a lead, at prices."""
    for p, now in enumerate(flow.taken.tolist()):
        for a in range(flow.first[p], flow.first[p + 1]) if flow.place[now] == v else ():
            w = int(flow.place[a])
            more = int(a != flow.began[p]) - int(now != flow.began[p])
            if w != v:
                yield w, more + int(flow.price[v] - flow.price[w])
    for w in range(len(flow.most)):
        up = flow.around[v] == w and flow.passed[v] < flow.most[v]
        down = flow.around[w] == v and flow.passed[w] > flow.least[w]
        if up or down:
            yield w, int(flow.price[v] - flow.price[w])


def distances(flow: LeadFlow, *, free_only: bool = False) -> list[float]:
    """Changes, or hops that cost nothing, from places with too many leads (Bellman and Ford)."""
    many = surplus(flow)
    far = [0.0 if one > 0 else np.inf for one in many]
    for _ in many:
        for v in range(len(many)):
            for w, cost in hops(flow, v):
                if not free_only:
                    far[w] = min(far[w], far[v] + cost)
                elif cost == 0:
                    far[w] = min(far[w], far[v] + 1)
    return far


def nearest_end(flow: LeadFlow, far: list[float]) -> float:
    """Distance of the nearest place that lacks a lead."""
    ends = (far[v] for v, one in enumerate(surplus(flow)) if one < 0)
    return min(ends, default=np.inf)


def is_open(flow: LeadFlow, rank: list[int], v: int) -> bool:
    """Whether a chain of rising rank goes on from a place to one that lacks a lead."""
    if surplus(flow)[v] < 0:
        return True
    return any(
        cost == 0 and rank[v] != FAR and rank[w] == rank[v] + 1 and is_open(flow, rank, w)
        for w, cost in hops(flow, v)
    )
