"""The store rebalancer's decisions in plain Python, from lists."""

from collections.abc import Callable, Iterable

from tests.naive.cockroach import leases as naive

# from voters, non-voters and whether a voter moves to the (target, removed) that may be drawn
Step = Callable[[list[int], list[int], bool], Iterable[tuple[int, int]]]


def overfull(loads: list[float], serving: list[bool], threshold: float, least: float) -> float:
    """The load above which a store carries too much."""
    counted = [load for load, serves in zip(loads, serving, strict=True) if serves]
    mean = sum(counted) / len(counted) if counted else 0.0
    return mean + max(threshold * mean, least)


def hottest(carried: dict[int, float], most: int) -> list[int]:
    """The ranges that carry most on a store, hottest first."""
    return sorted(carried, key=lambda p: (-carried[p], p))[:most]


def lease_target(
    case: naive.Case, moved: float, whole: float, limit: float, difference: float, share: float
) -> int:
    """Where phase 1 sends a lease that takes a load of ``moved`` with it; -1 if it stays."""
    loads = [store.load for store in case.stores]
    source = loads[case.holder]
    if whole < share * source:
        return -1
    others = [s for s in naive.eligible(case, excluded=False) if s != case.holder]
    if not others:
        return -1
    best = min(others, key=lambda s: (loads[s], s))
    if loads[best] > source or source <= limit:
        return -1
    if max(source - moved, 0.0) - loads[best] < difference:
        return -1
    return -1 if prefers_local(case, best) else best


def prefers_local(case: naive.Case, remote: int) -> bool:
    """Whether requests come so much more from near the holder that load is no reason to go."""
    if case.seconds < 30:
        return False
    one = case.stores[case.holder], case.stores[remote]
    if not all(store.tiers for store in one) or one[0].host == one[1].host:
        return False
    counted = naive.Case(**{**vars(case), "voters": [case.holder, remote]})
    adjustment = naive.adjustment(counted, remote)
    return adjustment is not None and -adjustment > 0.1


def relocations(
    voters: list[int], non_voters: list[int], step: Step
) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where phase 2 may want the replicas: up to a step for each voter, then for each other one."""

    def after_voters(row: list[int], others: list[int], left: int) -> Iterable[tuple]:
        drawn = list(step(row, others, True)) if left else []
        if not drawn:
            yield row, others
        for target, removed in drawn:
            moved = sorted([target, *(s for s in row if s != removed)])
            rest = sorted(removed if s == target else s for s in others)
            yield from after_voters(moved, rest, left - 1)

    def after_others(row: list[int], others: list[int], left: int) -> Iterable[tuple]:
        drawn = list(step(row, others, False)) if left else []
        if not drawn:
            yield row, others
        for target, removed in drawn:
            rest = sorted([target, *(s for s in others if s != removed)])
            yield from after_others(row, rest, left - 1)

    return {
        (tuple(row), tuple(rest))
        for first, others in after_voters(sorted(voters), sorted(non_voters), len(voters))
        for row, rest in after_others(first, others, len(non_voters))
    }
