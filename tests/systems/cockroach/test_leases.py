"""Leases: the same decisions as the plain rules, one at a time and over a whole cluster."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from bench.scenarios.one_range import stores_like
from evenkeel.systems.cockroach.allocator import leases
from evenkeel.systems.cockroach.allocator.intake import cockroach_cluster
from evenkeel.systems.cockroach.allocator.leases import (
    QPS,
    Lease,
    LeaseAllocator,
    Requests,
    rng_state_of,
    workload_of,
)
from evenkeel.systems.cockroach.allocator.range_decider import LoadRun, StoreRebalancer
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Conjunction,
    Constraint,
    Site,
    ZoneConfig,
    configs_of,
    localities_of,
)
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log
from evenkeel_kernels.cockroach.leases import (
    LEASES_ONLY,
    MOVED,
    OFF,
    workload_adjustment,
    workload_score,
)
from tests.naive.cockroach import leases as naive

seeds = st.integers(0, 2**32 - 1)
REGIONS = [("a", "x"), ("a", "y"), ("b",), ("b", "x", "z")]


def random_case(seed: int, hosts: int = 5, quiet: bool = False) -> naive.Case:
    """A range among a few stores; some of the hosts have two, some stores do not serve."""
    rng = np.random.default_rng(seed)
    spread = rng.integers(0, 12)
    everywhere = REGIONS[: rng.integers(1, len(REGIONS) + 1)]
    tiers = [everywhere[rng.integers(len(everywhere))] for _ in range(hosts)]
    if rng.random() < 0.2:
        tiers = [()] * hosts
    stores = []
    for h in range(rng.integers(1, hosts + 1)):
        for _ in range(1 + (rng.random() < 0.3)):
            status = 0 if quiet or rng.random() < 0.75 else int(rng.integers(0, 7))
            io = float(rng.choice([0.0, 0.0, 0.2, 0.35, 0.5, 2.0]))
            count = 20 + int(rng.integers(0, spread + 1))
            stores.append(naive.Store(h, tiers[h], status, count, io))
    many = len(stores)
    voters = rng.permutation(many)[: rng.integers(1, min(many, 5) + 1)].tolist()
    holder = voters[0] if rng.random() < 0.9 else int(rng.integers(0, many))

    def some_sets(most: int) -> list[set[int]]:
        return [
            set(np.flatnonzero(rng.random(many) < 0.5).tolist())
            for _ in range(rng.integers(0, most))
        ]

    requests = None
    if rng.random() < 0.6:
        near = [tier for tier in everywhere if rng.random() < 0.7]
        requests = {tier: float(rng.choice([0.0, 0.5, 3.0, 100.0])) for tier in near}
    return naive.Case(
        stores=stores,
        voters=voters,
        holder=holder,
        behind={int(s) for s in voters if rng.random() < 0.15},
        leaderless=bool(rng.random() < 0.05),
        constraints=some_sets(2),
        voter_constraints=some_sets(2),
        preferences=some_sets(3),
        enforcement=int(rng.integers(0, 3)),
        requests=requests,
        seconds=float(rng.choice([0.0, 29.0, 30.0, 500.0])),
        latency={
            (a, b): float(rng.choice([0.0, 1.0, 50.0]))
            for a in range(hosts)
            for b in range(hosts)
            if a != b
        },
    )


def arrays(case: naive.Case) -> tuple[LeaseAllocator, kernel.Stores]:
    """What kernels read of a case: a conjunction is an attribute that some stores carry."""
    tables = [case.constraints, case.voter_constraints, case.preferences]
    numbered = [(t, e, stores) for t, table in enumerate(tables) for e, stores in enumerate(table)]
    sites = [
        Site(
            store.host,
            tuple((f"tier{i}", value) for i, value in enumerate(store.tiers)),
            frozenset(f"{t}.{e}" for t, e, stores in numbered if s in stores),
        )
        for s, store in enumerate(case.stores)
    ]
    terms: list[list[tuple[Constraint, ...]]] = [
        [(Constraint(True, "", f"{t}.{e}"),) for e in range(len(table))]
        for t, table in enumerate(tables)
    ]
    configs, conjunctions = configs_of(
        [
            ZoneConfig(
                num_replicas=len(case.voters),
                constraints=[Conjunction(one) for one in terms[0]],
                voter_constraints=[Conjunction(one) for one in terms[1]],
                lease_preferences=terms[2],
            )
        ]
    )
    localities = localities_of(sites, conjunctions)
    requests = None
    if case.requests is not None:
        rate = {
            tuple((f"tier{i}", value) for i, value in enumerate(tier)): q
            for tier, q in case.requests.items()
        }
        requests = Requests(rate, case.seconds)
    hosts = 1 + int(localities.host.max())
    latency = [[case.latency.get((a, b), 0.0) for b in range(hosts)] for a in range(hosts)]
    workload = workload_of(sites, localities, [requests], latency=latency)
    allocator = LeaseAllocator(
        localities, configs, leases.SETTINGS._replace(io_enforcement=case.enforcement), workload
    )
    stores = stores_like(
        len(sites),
        status=[store.status for store in case.stores],
        leases=[store.leases for store in case.stores],
        qps=[store.load for store in case.stores],
        io=[store.io for store in case.stores],
    )
    return allocator, stores


def lease_of(case: naive.Case) -> Lease:
    return Lease(case.voters, case.holder, behind=sorted(case.behind), leaderless=case.leaderless)


@pytest.mark.small
@given(seeds, st.booleans())
def test_same_target_and_reason_as_the_plain_rules(seed: int, asked: bool) -> None:
    case = random_case(seed)
    allocator, stores = arrays(case)
    accepted, why = naive.target(case, asked)
    for draw in range(4):
        found = allocator.target(stores, lease_of(case), asked=asked, seed=draw)
        assert found.reason == why
        assert found.target in accepted if accepted else found.target == -1


@given(seeds)
def test_every_accepted_target_is_drawn(seed: int) -> None:
    case = random_case(seed)
    case.requests = None
    allocator, stores = arrays(case)
    accepted, _ = naive.target(case, asked=True)
    drawn = {
        allocator.target(stores, lease_of(case), asked=True, seed=n).target for n in range(200)
    }
    assert drawn - {-1} == accepted


@given(seeds)
def test_worth_while_wherever_a_target_is_found(seed: int) -> None:
    case = random_case(seed)
    allocator, stores = arrays(case)
    others = [s for s in naive.eligible(case, naive.driven(case) != 0) if s != case.holder]
    forced = naive.driven(case) != naive.STAYS
    scores = naive.workload_scores(case, others)
    if not others:
        expected = False
    elif forced:
        expected = True
    elif scores is not None:
        expected = case.seconds >= 30 and max(scores.values(), default=0) > 0
    else:
        expected = naive.crowded(case, others)
    assert allocator.should_transfer(stores, lease_of(case)) == expected


def test_a_lease_that_nobody_holds_goes_to_whoever_may_hold_it() -> None:
    case = random_case(3, quiet=True)
    case.holder, case.leaderless, case.behind, case.preferences = -1, False, set(), []
    case.enforcement = 0
    allocator, stores = arrays(case)
    found = allocator.target(stores, lease_of(case))
    assert found.target in case.voters
    assert found.text == leases.REASONS[naive.ASKED]


@pytest.mark.parametrize("leaseholder", [0, 1])
def test_two_stores_of_one_host_are_no_nearer_to_requests(leaseholder: int) -> None:
    tier = (("region", "a"),)
    sites = [Site(1, tier), Site(1, tier), Site(2, (("region", "b"),))]
    configs, conjunctions = configs_of([ZoneConfig()])
    localities = localities_of(sites, conjunctions)
    workload = workload_of(sites, localities, [Requests({tier: 50.0})], latency=40.0)
    allocator = LeaseAllocator(localities, configs, workload=workload)
    stores = stores_like(3, leases=[30, 30, 30])
    assert allocator.target(stores, Lease([0, 1, 2], leaseholder)).target == -1
    assert allocator.target(stores, Lease([0, 1, 2], 2)).target in (0, 1)


def test_no_requests_and_no_latency_leave_the_score_to_counts() -> None:
    for leases_there in (0, 5, 10, 15):
        nearer = workload_adjustment(1.0, 0.0, 0.0, 0.0)
        score = workload_score(nearer, float(leases_there), 12.0, 10.0)
        assert score == (12 - 11) + (9 - leases_there)


def random_cluster(seed: int, hosts: int = 6, many: int = 60):
    """Stores and ranges whose leases are where chance put them; plain and as arrays."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, hosts=hosts, quiet=True)
    case.requests, case.enforcement, case.leaderless, case.behind = None, 0, False, set()
    stores = len(case.stores)
    width = min(3, stores)
    rows = np.array([rng.permutation(stores)[:width] for _ in range(many)])
    case.voters = list(range(width))
    allocator, view = arrays(case)
    slots = np.where(rng.random(many) < 0.6, 0, rng.integers(0, width, many))
    if rng.random() < 0.4:
        slots[rng.integers(0, many, 4)] = -1
    load = rng.lognormal(3.0, 1.5, many)
    each, lease = np.zeros((kernel.AMOUNTS, many)), np.zeros((kernel.AMOUNTS, many))
    each[kernel.RANGES], lease[kernel.LEASES], lease[kernel.QPS] = 1.0, 1.0, load
    ranges = kernel.Ranges(
        np.arange(many + 1) * width,
        rows.ravel().astype(np.int32),
        np.zeros(many * width, np.uint8),
        slots.astype(np.int16),
        np.zeros(many, np.int32),
        each,
        lease,
        np.zeros(many, np.int8),
        np.zeros(many * width, np.bool_),
        np.zeros(many * width, np.bool_),
        np.zeros(many, np.bool_),
    )
    if rng.random() < 0.5:
        case.stores[0].status = view.status[0] = int(rng.integers(0, 7))
    led = slots >= 0
    holder = rows[np.arange(many), np.maximum(slots, 0)]
    view.amount[kernel.LEASES] = np.bincount(holder[led], minlength=stores)
    view.amount[kernel.RANGES] = np.bincount(rows.ravel(), minlength=stores)
    view.amount[kernel.QPS] = np.bincount(holder[led], load[led], minlength=stores)
    return case, allocator, view, ranges


def started(allocator: LeaseAllocator, view, ranges, mode: int = OFF, seed: int = 1) -> LoadRun:
    asked = replace(allocator, workload=None, load=QPS._replace(mode=mode))
    left = nothing_left(len(ranges.lease))
    return LoadRun(
        StoreRebalancer(asked), view, ranges, room_to_log(5000), left, rng_state_of(seed)
    )


def as_case(case: naive.Case, view, ranges, p: int) -> naive.Case:
    """The plain case of one range, with counts as they are now."""
    row = ranges.store[ranges.first[p] : ranges.first[p + 1]].tolist()
    for s, store in enumerate(case.stores):
        store.leases = int(view.amount[kernel.LEASES, s])
    case.voters = row
    case.holder = row[ranges.lease[p]] if ranges.lease[p] >= 0 else -1
    return case


def sheds(case: naive.Case) -> bool:
    """Whether the holder's store must give the lease away."""
    return case.holder < 0 or case.stores[case.holder].status in (3, 4, 6)


def live_quorum(case: naive.Case) -> bool:
    live = sum(case.stores[s].status not in (4, 6) for s in case.voters)
    return live >= len(case.voters) // 2 + 1


@pytest.mark.small
@settings(max_examples=40)
@given(seeds)
def test_a_pass_is_the_plain_rules_range_after_range(seed: int) -> None:
    case, allocator, view, ranges = random_cluster(seed)
    copy = kernel.Stores(*(np.copy(one) for one in view))
    slots = ranges.lease.copy()
    run = started(allocator, view, ranges)
    assert run.transfer(10**6)
    ranges.lease[:], found = slots, ranges.lease.copy()
    visited: list[set[int]] = [set() for _ in slots]
    for i in range(int(run.log.size[0])):
        p, source, target = (int(row[i]) for row in (run.log.range, run.log.source, run.log.target))
        now = as_case(case, copy, ranges, p)
        accepted, why = naive.target(now, sheds(now))
        assert target in accepted and run.log.kind[i] == MOVED + why and source == now.holder
        assert why not in (naive.COUNT, naive.WORKLOAD) or target not in visited[p]
        visited[p].add(source)
        ranges.lease[p] = now.voters.index(target)
        if source >= 0:
            copy.amount[kernel.LEASES, source] -= 1
        copy.amount[kernel.LEASES, target] += 1
    assert ranges.lease.tolist() == found.tolist()
    assert copy.amount[kernel.LEASES].tolist() == view.amount[kernel.LEASES].tolist()
    open_ends = 0
    for p in range(len(found)):
        now = as_case(case, copy, ranges, p)
        accepted, why = naive.target(now, sheds(now)) if live_quorum(now) else (set(), 0)
        mine = case.stores[now.holder].leases
        closer = {s for s in accepted if why != naive.COUNT or mine - case.stores[s].leases >= 2}
        open_ends += bool(closer)
    assert open_ends == 0 or run.withheld > 0


@settings(max_examples=40)
@given(seeds)
def test_a_pass_ends_where_the_next_one_does_nothing(seed: int) -> None:
    _, allocator, view, ranges = random_cluster(seed)
    first = started(allocator, view, ranges)
    assert first.transfer(10**6)
    again = started(allocator, view, ranges, seed=seed % 1000 + 2)
    assert again.transfer(10**6)
    assert again.decisions == 0 or first.withheld > 0


@settings(max_examples=40)
@given(seeds)
def test_in_pieces_or_at_once_is_the_same(seed: int) -> None:
    outcomes = []
    for budget in (10**6, 7):
        _, allocator, view, ranges = random_cluster(seed)
        run = started(allocator, view, ranges, mode=LEASES_ONLY)
        while not run.transfer(budget):
            pass
        outcomes.append((ranges.lease.tolist(), run.decisions, view.amount.tolist()))
    assert outcomes[0] == outcomes[1]


@given(seeds)
def test_counts_send_no_lease_where_load_would_send_it_away(seed: int) -> None:
    _, allocator, view, ranges = random_cluster(seed)
    run = started(allocator, view, ranges, mode=LEASES_ONLY)
    serving = np.isin(view.status, [0, 1])
    qps = view.amount[kernel.QPS]
    mean = qps[serving].mean() if serving.any() else 0.0
    limit = mean + max(0.1 * mean, 100.0)
    before = qps.copy()
    assert run.transfer(10**6)
    received = {int(s) for s in run.log.target[: run.log.size[0]]}
    by_count = run.log.kind[: run.log.size[0]] == MOVED + naive.COUNT
    for s in received:
        arrivals = run.log.target[: run.log.size[0]] == s
        if by_count[arrivals].all():
            assert qps[s] <= max(limit, before[s]) + 1e-6


def test_a_draining_store_ends_without_leases() -> None:
    sites = [Site(i) for i in range(4)]
    configs, conjunctions = configs_of([ZoneConfig()])
    allocator = LeaseAllocator(localities_of(sites, conjunctions), configs)
    _, _, _, ranges = random_cluster(11, hosts=4)
    rows = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3]] * 20, np.int32)
    ranges = ranges._replace(
        first=np.arange(61) * 3, store=rows.ravel(), lease=np.zeros(60, np.int16),
        role=np.zeros(180, np.uint8), behind=np.zeros(180, np.bool_),
    )  # fmt: skip
    view = stores_like(4, status=[kernel.DRAINING, 0, 0, 0], ranges=[60, 40, 40, 40])
    view.amount[kernel.LEASES, 0] = 60.0
    view.amount[kernel.QPS, 0] = ranges.lease_load[kernel.QPS].sum()
    run = started(allocator, view, ranges)
    assert run.transfer(10**6)
    assert view.amount[kernel.LEASES].tolist()[0] == 0.0
    assert view.amount[kernel.LEASES, 1:].max() <= math.ceil(20 + 5)
    assert {int(k) for k in run.log.kind[:60]} == {MOVED + naive.ASKED}


@pytest.mark.parametrize("eagerness", [0.0, 1.0])
def test_in_a_whole_run_leases_follow_the_workload_as_eagerly_as_asked(eagerness: float) -> None:
    regions = ["us", "eu", "asia"]
    many = 60
    cluster = cockroach_cluster(
        localities=[f"region={name}" for name in regions for _ in range(2)],
        replicas=[[p % 2, 2 + p % 2, 4 + p % 2] for p in range(many)],
        configs=[{"num_replicas": 3}],
        leaseholder=[p % 2 for p in range(many)],
    )
    requests = [Requests({(("region", regions[1 + p % 2]),): 500.0}) for p in range(many)]
    cluster = replace(cluster, native=replace(cluster.native, requests=requests, latency=100.0))
    options = ek.options.Cockroach(aggressiveness=eagerness)
    result = ek.solve(cluster, method="cockroach", options=options)
    led = result.placement.leader_node // 2
    near = sum(int(led[p] == 1 + p % 2) for p in range(many))
    assert result.native.converged
    assert near == many if eagerness else near < many
    assert result.comparison.moves == 0
