"""Lease decisions in plain Python, from lists: one function for each sentence of the rules."""

import math
from dataclasses import dataclass, field

SERVING = {0, 1}  # available and throttled: what may be given a lease, and counts in means
STAYS, NO_TARGET, TOO_EARLY, COUNT, WORKLOAD, PREFERENCE, OVERLOAD, ASKED = range(8)


@dataclass
class Store:
    """One store as it is known."""

    host: int
    tiers: tuple[str, ...]
    status: int
    leases: int
    io: float
    load: float = 0.0


@dataclass
class Case:
    """One range and the stores around it; stores are called by their index."""

    stores: list[Store]
    voters: list[int]
    holder: int
    behind: set[int]
    leaderless: bool
    constraints: list[set[int]]  # stores that satisfy each conjunction
    voter_constraints: list[set[int]]
    preferences: list[set[int]]
    enforcement: int  # of overload: 0 ignore, 1 block, 2 shed
    requests: dict[tuple[str, ...], float] | None
    seconds: float = math.inf
    latency: dict[tuple[int, int], float] = field(default_factory=dict)


def far(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    """Diversity of two lists of tiers."""
    short = min(len(a), len(b))
    for i in range(short):
        if a[i] != b[i]:
            return (short - i) / short
    return 0.0 if len(a) == len(b) else 1 / (short + 1)


def mean_leases(case: Case) -> float:
    """Mean over the serving stores that both tables of constraints allow."""
    counted = [
        store.leases
        for s, store in enumerate(case.stores)
        if store.status in SERVING
        and all(
            not table or any(s in one for one in table)
            for table in (case.constraints, case.voter_constraints)
        )
    ]
    return sum(counted) / len(counted) if counted else 0.0


def mean_io(case: Case) -> float:
    """Mean overload of the serving stores."""
    counted = [store.io for store in case.stores if store.status in SERVING]
    return sum(counted) / len(counted) if counted else 0.0


def able(case: Case) -> list[int]:
    """Voters that serve and do not lag."""
    if case.leaderless:
        return []
    return [
        s
        for s in case.voters
        if case.stores[s].status in SERVING and (s == case.holder or s not in case.behind)
    ]


def preferred(case: Case, among: list[int]) -> list[int]:
    """Those that meet the first preference that any meets; empty if none meets any."""
    for one in case.preferences:
        met = [s for s in among if s in one]
        if met:
            return met
    return []


def must_shed(case: Case) -> bool:
    """Whether the holder's disk is so overloaded that leases must leave it."""
    io = case.stores[case.holder].io
    return case.enforcement == 2 and io >= 0.4 and io >= 1.75 * mean_io(case)


def refuses(case: Case, s: int) -> bool:
    """Whether a store's disk is too overloaded to be given a lease."""
    io = case.stores[s].io
    return case.enforcement >= 1 and io >= 0.3 and io >= 1.1 * mean_io(case)


def eligible(case: Case, excluded: bool) -> list[int]:
    """Voters that may hold the lease."""
    left = [s for s in able(case) if not (excluded and s == case.holder)]
    left = preferred(case, left) or left
    return [s for s in left if not (must_shed(case) if s == case.holder else refuses(case, s))]


def driven(case: Case) -> int:
    """Why the lease must leave its holder, or STAYS."""
    if case.holder not in case.voters:
        return STAYS
    better = preferred(case, able(case))
    if better and case.holder not in better:
        return PREFERENCE
    return OVERLOAD if must_shed(case) else STAYS


def adjustment(case: Case, s: int) -> float | None:
    """How much nearer a remote store is to where requests come from; None if nothing is known."""
    if case.requests is None or case.holder < 0:
        return None
    if any(not case.stores[v].tiers for v in case.voters):
        return None

    def weight(v: int) -> float:
        near = [(1 - far(case.stores[v].tiers, o)) * q for o, q in case.requests.items()]
        return max(sum(near), 0.001)

    delay = case.latency.get((case.stores[case.holder].host, case.stores[s].host), 0.0)
    return 0.1 * math.log10(weight(s) / weight(case.holder)) * math.log1p(delay)


def workload_scores(case: Case, remotes: list[int]) -> dict[int, int] | None:
    """Score of each remote on another host, or None if nothing is known."""
    if adjustment(case, case.voters[0]) is None:
        return None
    source, mean = case.stores[case.holder], mean_leases(case)
    scores = {}
    for s in remotes:
        remote = case.stores[s]
        if remote.host != source.host:
            threshold = 0.1 - adjustment(case, s)
            over = source.leases - math.ceil(mean * (1 + threshold))
            under = math.floor(mean * (1 - threshold)) - remote.leases
            scores[s] = over + under
    return scores


def crowded(case: Case, others: list[int]) -> bool:
    """Whether counts ask for the lease to leave."""
    mean, mine = mean_leases(case), case.stores[case.holder].leases
    if mine > max(math.ceil(1.05 * mean), math.ceil(mean + 5)):
        return True
    few = min(math.ceil(0.95 * mean), math.ceil(mean - 5))
    return mine > mean and any(case.stores[s].leases < few for s in others)


def target(case: Case, asked: bool) -> tuple[set[int], int]:
    """The stores of which one gets the lease, none if it stays, and why."""
    why = ASKED if asked else driven(case)
    forced = why != STAYS
    others = [s for s in eligible(case, forced) if s != case.holder]
    if not others:
        return set(), NO_TARGET
    scores = workload_scores(case, others)
    if scores is not None and case.seconds >= 30:
        best = max(scores.values(), default=0)
        if best > 0:
            return {s for s in scores if scores[s] == best}, why if forced else WORKLOAD
    if not forced:
        if scores is not None:
            return set(), STAYS if case.seconds >= 30 else TOO_EARLY
        if not crowded(case, others):
            return set(), STAYS
    mean = mean_leases(case)
    few = {s for s in others if case.stores[s].leases < mean - 0.5}
    if not few and forced:
        least = min(case.stores[s].leases for s in others)
        few = {s for s in others if case.stores[s].leases == least}
    return few, (why if forced else COUNT) if few else STAYS
