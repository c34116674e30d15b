"""The store rebalancer: the same decisions as the plain rules, and what a whole run must keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from bench.scenarios.one_range import BY_QPS, Allocator, Replicas, stores_like
from evenkeel.systems.cockroach.allocator.hottest import hottest
from evenkeel.systems.cockroach.allocator.leases import CPU, QPS, LeaseAllocator, rng_state_of
from evenkeel.systems.cockroach.allocator.range_decider import (
    HOT,
    KINDS,
    HotRange,
    LoadRun,
    StoreRebalancer,
)
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Conjunction,
    Constraint,
    Site,
    ZoneConfig,
    configs_of,
    localities_of,
)
from evenkeel_kernels.cockroach import store_rebalancer as store_load
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log
from evenkeel_kernels.cockroach.leases import LEASES_ONLY, OFF
from evenkeel_kernels.cockroach.store_rebalancer import (
    LEASE_BY_LOAD,
    LEASE_WITH_REPLICAS,
    NON_VOTER_BY_LOAD,
    VOTER_BY_LOAD,
)
from tests.naive.cockroach import store_rebalancer as naive
from tests.systems.cockroach.test_leases import arrays, random_case

seeds = st.integers(0, 2**32 - 1)
REGIONS = ("a", "b", "c")


@pytest.mark.small
@given(seeds)
def test_same_lease_target_as_the_plain_rules(seed):
    case = random_case(seed)
    if case.holder not in case.voters:
        case.holder = case.voters[0]
    case.leaderless = False
    rng = np.random.default_rng(seed)
    for store in case.stores:
        store.load = float(rng.choice([0, 100, 300, 600, 1000, 1500])) + float(rng.integers(0, 3))
    load = float(rng.choice([1.0, 5.0, 100.0, 400.0, 2000.0]))
    allocator, stores = arrays(case)
    rebalancer = StoreRebalancer(allocator)
    serving = [store.status in (0, 1) for store in case.stores]
    limit = naive.overfull([store.load for store in case.stores], serving, 0.1, 100.0)
    hot = HotRange(case.voters, case.holder, load, behind=sorted(case.behind))
    expected = naive.lease_target(case, load, load, limit, 200.0, 0.005)
    assert rebalancer.lease_target(stores, hot) == expected


def region_sites(count, hosts=None):
    return [
        Site(s if hosts is None else hosts[s], (("region", REGIONS[s % len(REGIONS)]),))
        for s in range(count)
    ]


@settings(max_examples=60)
@given(seeds)
def test_same_relocation_as_step_after_step(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 10))
    voters = int(rng.integers(1, 4))
    others = int(rng.integers(0, 2))
    wanted = ZoneConfig(
        voters + others,
        voters,
        [Conjunction((Constraint(True, "region", "a"),), 1)] if rng.random() < 0.4 else (),
        lease_preferences=[(Constraint(True, "region", "b"),)] if rng.random() < 0.4 else (),
    )
    configs, conjunctions = configs_of([wanted])
    localities = localities_of(region_sites(count), conjunctions)
    stores = stores_like(count, qps=rng.integers(0, 15, count) * 200.0)
    row = rng.permutation(count)[: voters + others].tolist()
    load = float(rng.choice([30.0, 200.0, 1500.0]))
    holder = row[0]
    rebalancer = StoreRebalancer(LeaseAllocator(localities, configs))
    found = rebalancer.relocation(
        stores, HotRange(row[:voters], holder, load, row[voters:]), seed=seed % 1000
    )
    allocator = Allocator(localities, configs, scorer=BY_QPS, impact=load)

    def step(now, rest, voter):
        role = kernel.VOTER if voter else kernel.NON_VOTER
        drawn = [allocator.rebalance(stores, Replicas(now, rest), role, seed=n) for n in range(12)]
        return {(one.target, one.removed) for one in drawn if one.target >= 0}

    if load < 0.02 * stores.amount[kernel.QPS, holder]:
        assert found is None
        return
    accepted = naive.relocations(row[:voters], row[voters:], step)
    before = (tuple(sorted(row[:voters])), tuple(sorted(row[voters:])))
    if found is None:
        assert before in accepted
        return
    assert (found.voters, found.non_voters) in accepted - {before}
    in_b = [s for s in found.voters if s % 3 == 1] if wanted.lease_preferences else []
    candidates = in_b or list(found.voters)
    qps = stores.amount[kernel.QPS]
    assert qps[found.holder] == min(qps[s] for s in candidates)


def random_fleet(seed, many=80, objective=kernel.QPS):
    """Ranges in three regions, some with non-voters, some stores of one host, a few ranges hot."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 13))
    hosts = (
        np.arange(count) if rng.random() < 0.6 else np.arange(count) // 6 * 3 + np.arange(count) % 3
    )
    wanted = [ZoneConfig(3), ZoneConfig(4, 3), ZoneConfig(1)]
    configs, conjunctions = configs_of(wanted)
    localities = localities_of(region_sites(count, hosts.tolist()), conjunctions)
    config = rng.integers(0, 3, many)
    width = 5
    store = np.full((many, width), -1, np.int32)
    role = np.zeros((many, width), np.uint8)
    for p in range(many):
        seen, free = [], rng.permutation(count).tolist()
        for s in sorted(free, key=lambda s: any(s % 3 == o % 3 for o in seen)):
            if all(hosts[s] != hosts[o] for o in seen):
                seen.append(s)
        need = wanted[config[p]].num_replicas
        store[p, :need] = (seen + [s for s in free if s not in seen])[:need]
        role[p, 3:] = kernel.NON_VOTER if wanted[config[p]].num_replicas == 4 else kernel.VOTER
    each, lease = np.zeros((kernel.AMOUNTS, many)), np.zeros((kernel.AMOUNTS, many))
    each[kernel.RANGES], lease[kernel.LEASES] = 1.0, 1.0
    lease[objective] = rng.lognormal(4.0, 1.5, many) * (1e6 if objective == kernel.CPU else 1.0)
    if rng.random() < 0.5:
        each[objective] = lease[objective] * rng.uniform(0.0, 0.5)
    ranges = kernel.Ranges(
        np.arange(many + 1) * width, store.ravel().copy(), role.ravel(), np.zeros(many, np.int16),
        config.astype(np.int32), each, lease, np.zeros(many, np.int8),
        np.ones(many * width, np.bool_), np.zeros(many * width, np.bool_),
        np.zeros(many, np.bool_),
    )  # fmt: skip
    stores = stores_like(count)
    if rng.random() < 0.3:
        stores.status[count - 1] = int(rng.integers(0, 7))
    for p in range(many):
        stores.amount[:, store[p, 0]] += lease[:, p]
        for s in store[p][store[p] >= 0]:
            stores.amount[:, s] += each[:, p]
    return localities, configs, stores, ranges


def runs(parts, load, seed=1, room=20000):
    localities, configs, stores, ranges = parts
    left = nothing_left(len(ranges.lease))
    rng_state = rng_state_of(seed)
    rebalancer = StoreRebalancer(LeaseAllocator(localities, configs, load=load))
    return LoadRun(rebalancer, stores, ranges, room_to_log(room), left, rng_state)


def snapshot(ranges):
    """Stores by role of every range, and the stores that lead."""
    rows = []
    for p in range(len(ranges.lease)):
        row = slice(ranges.first[p], ranges.first[p + 1])
        pairs = zip(ranges.role[row].tolist(), ranges.store[row].tolist(), strict=True)
        rows.append(sorted((role, s) for role, s in pairs if s >= 0))
    led = ranges.store[ranges.first[:-1] + ranges.lease]
    return rows, led.tolist()


def booked(stores, ranges):
    """What stores have, added up afresh."""
    amount = np.zeros_like(stores.amount)
    for p in range(len(ranges.lease)):
        row = ranges.store[ranges.first[p] : ranges.first[p + 1]]
        amount[:, row[ranges.lease[p]]] += ranges.lease_load[:, p]
        for s in row[row >= 0]:
            amount[:, s] += ranges.replica_load[:, p]
    return amount


@pytest.mark.small
@settings(max_examples=25)
@given(seeds, st.sampled_from([QPS, CPU]))
def test_a_run_keeps_what_must_be_kept(seed, load):
    parts = random_fleet(seed, objective=load.row)
    localities, _, stores, ranges = parts
    before, led = snapshot(ranges)
    highest = stores.amount[load.row].max()
    run = runs(parts, load)
    assert run.relieve(10**6)
    after, leads = snapshot(ranges)
    for p, (old, new) in enumerate(zip(before, after, strict=True)):
        assert [role for role, _ in old] == [role for role, _ in new]
        held = [s for _, s in new]
        assert len(set(held)) == len(held)
        assert len({localities.host[s] for s in held}) >= len({localities.host[s] for _, s in old})
        assert (kernel.VOTER, leads[p]) in new
        changed = [s for s in held if (0, s) not in old and (1, s) not in old]
        assert all(stores.status[s] in (0, 1) for s in changed)
    np.testing.assert_allclose(stores.amount, booked(stores, ranges), rtol=1e-9, atol=1e-6)
    assert stores.amount[load.row].max() <= highest + 1e-6
    assert (run.decisions > 0) == (before != after or led != leads)


@settings(max_examples=25)
@given(seeds, st.sampled_from([QPS, CPU]))
def test_nothing_goes_back_to_where_it_left(seed, load):
    parts = random_fleet(seed, objective=load.row)
    _, _, _, ranges = parts
    now = [{s for _, s in row} for row in snapshot(ranges)[0]]
    gone = [set() for _ in now]
    run = runs(parts, load)
    assert run.relieve(10**6)
    moving = {VOTER_BY_LOAD, NON_VOTER_BY_LOAD}
    for i in range(int(run.log.size[0])):
        kind, p = int(run.log.kind[i]), int(run.log.range[i])
        source, target = int(run.log.source[i]), int(run.log.target[i])
        assert KINDS[kind]
        if kind in moving and target not in now[p]:
            assert target not in gone[p]
            now[p] = now[p] - {source} | {target}
            gone[p].add(source)


@settings(max_examples=25)
@given(seeds, st.sampled_from([QPS, CPU]))
def test_the_next_run_does_nothing(seed, load):
    parts = random_fleet(seed, objective=load.row)
    first = runs(parts, load)
    assert first.relieve(10**6)
    again = runs(parts, load, seed=seed % 1000)
    assert again.relieve(10**6)
    assert again.decisions == 0 or first.withheld > 0


@settings(max_examples=20)
@given(seeds)
def test_every_lease_that_moves_alone_is_what_the_rules_say(seed):
    parts = random_fleet(seed)
    _, _, stores, ranges = parts
    load = QPS._replace(mode=LEASES_ONLY)
    qps = stores.amount[kernel.QPS].copy()
    serving = np.isin(stores.status, [0, 1]).tolist()
    limit = naive.overfull(qps.tolist(), serving, 0.1, 100.0)
    rows, holders = snapshot(ranges)
    run = runs(parts, load)
    assert run.relieve(10**6)
    for i in range(int(run.log.size[0])):
        p, source, target = (int(one[i]) for one in (run.log.range, run.log.source, run.log.target))
        assert run.log.kind[i] == LEASE_BY_LOAD and holders[p] == source and qps[source] > limit
        others = [s for role, s in rows[p] if role == kernel.VOTER and s != source and serving[s]]
        moved = ranges.lease_load[kernel.QPS, p]
        assert target == min(others, key=lambda s: (qps[s], s))
        assert max(qps[source] - moved, 0.0) - qps[target] >= 200.0
        qps[source] -= moved
        qps[target] += moved
        holders[p] = target


@settings(max_examples=20)
@given(seeds)
def test_in_pieces_or_at_once_is_the_same(seed):
    outcomes = []
    for budget in (10**6, 1):
        parts = random_fleet(seed)
        run = runs(parts, QPS)
        while not run.relieve(budget):
            pass
        outcomes.append((snapshot(parts[3]), run.decisions, parts[2].amount.tolist()))
    assert outcomes[0] == outcomes[1]


def test_off_moves_nothing():
    parts = random_fleet(5)
    run = runs(parts, QPS._replace(mode=OFF))
    assert run.relieve(10) and run.decisions == 0


def test_a_full_log_stops_the_run_until_it_is_emptied():
    parts = random_fleet(7)
    whole = random_fleet(7)
    at_once = runs(whole, QPS)
    assert at_once.relieve(10**6)
    run = runs(parts, QPS, room=HOT * 15 + 3)
    kinds = []
    for _ in range(1000):
        done = run.relieve(10**6)
        kinds += run.log.kind[: run.log.size[0]].tolist()
        run.log.size[0] = 0
        if done:
            break
    assert kinds == at_once.log.kind[: at_once.log.size[0]].tolist()
    assert snapshot(parts[3]) == snapshot(whole[3])


def test_a_log_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="must hold 1920 decisions"):
        runs(random_fleet(7), QPS, room=HOT * 15 - 1)


def test_leases_come_before_replicas():
    """Where leases alone relieve a store, no replica moves."""
    configs, conjunctions = configs_of([ZoneConfig()])
    localities = localities_of([Site(s) for s in range(4)], conjunctions)
    many = 40
    store = np.tile(np.array([0, 1, 2], np.int32), many)
    each, lease = np.zeros((kernel.AMOUNTS, many)), np.zeros((kernel.AMOUNTS, many))
    each[kernel.RANGES], lease[kernel.LEASES], lease[kernel.QPS] = 1.0, 1.0, 50.0
    ranges = kernel.Ranges(
        np.arange(many + 1) * 3, store, np.zeros(3 * many, np.uint8), np.zeros(many, np.int16),
        np.zeros(many, np.int32), each, lease, np.zeros(many, np.int8),
        np.ones(3 * many, np.bool_), np.zeros(3 * many, np.bool_), np.zeros(many, np.bool_),
    )  # fmt: skip
    stores = stores_like(
        4, ranges=[many] * 3 + [0], leases=[many, 0, 0, 600], qps=[50.0 * many, 0, 0, 600]
    )
    run = runs((localities, configs, stores, ranges), QPS)
    assert run.relieve(10**6)
    assert {int(k) for k in run.log.kind[: run.log.size[0]]} == {LEASE_BY_LOAD}
    assert stores.amount[kernel.QPS].max() == 800.0  # 50 more would leave no difference of 200


def test_the_lease_is_logged_behind_the_replicas_that_moved_with_it():
    configs, conjunctions = configs_of([ZoneConfig()])
    localities = localities_of([Site(s) for s in range(5)], conjunctions)
    stores = stores_like(5, qps=[12000, 10000, 8000, 200, 100])
    ranges = HotRange([0, 1, 2], 0, 5000.0).as_ranges(kernel.QPS)
    run = runs((localities, configs, stores, ranges), QPS._replace(threshold=0.25))
    run.ranges.up_to_date[:] = True
    assert run.relieve(10**6)
    kinds = run.log.kind[: run.log.size[0]].tolist()
    assert kinds[-1] in (LEASE_WITH_REPLICAS, LEASE_BY_LOAD)
    assert stores.amount[kernel.QPS, 0] == 7000.0


@pytest.mark.small
@given(seeds, st.integers(1, 12))
def test_the_hottest_are_those_a_sort_finds(seed, most):
    _, _, stores, ranges = random_fleet(seed, many=30)
    ranges.lease_load[kernel.QPS] = np.floor(ranges.lease_load[kernel.QPS] / 60.0)  # with ties
    count, replicas = len(stores.io), len(ranges.store)
    first, owner, slot = (np.zeros(n, np.int64) for n in (count + 1, replicas, replicas))
    store_load.list_replicas(ranges, first, owner, slot)
    hot = store_load.room_for_hottest(most)
    for s in range(count):
        store_load.hottest(ranges, kernel.QPS, s, first, owner, slot, hot)
        carried = {}
        for p in range(len(ranges.lease)):
            row = ranges.store[ranges.first[p] : ranges.first[p + 1]].tolist()
            if s in row:
                carried[p] = float(ranges.replica_load[kernel.QPS, p])
                if row[ranges.lease[p]] == s:
                    carried[p] += float(ranges.lease_load[kernel.QPS, p])
        expected = naive.hottest(carried, most)
        assert hot.range[: hot.size[0]].tolist() == expected
        assert hot.load[: hot.size[0]].tolist() == [carried[p] for p in expected]


def test_hottest_of_a_cluster():
    cluster = ek.Cluster.from_arrays(
        capacity=[[90.0, 90.0]] * 3,
        load=[[1.0, 0.0], [1.0, 0.5], [1.0, 2.0]],
        leader_load=[[1.0, 7.0], [1.0, 9.0], [1.0, 4.0]],
        dimensions=("bytes", "qps"),
        node_names=["s1", "s2", "s3"],
        placement=[[0, 1], [1, 0], [0, 2]],
    )
    found = hottest(cluster, "s1")
    assert found.partition.tolist() == [0, 2, 1]
    assert found.load.tolist() == [7.0, 4.0, 0.5]
    assert found.leads.tolist() == [True, True, False]
    assert hottest(cluster, 0, 1).names == (cluster.partitions.names[0],)
    assert hottest(cluster, 0, dimension="bytes").partition.tolist() == [0, 1, 2]


def test_hottest_reports_every_fault_at_once():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput) as caught:
        hottest(cluster, "nowhere", -1, dimension="heat")
    assert [fault.path for fault in caught.value.faults] == ["node", "dimension", "k"]
    with pytest.raises(ek.InvalidInput, match="whole number"):
        hottest(cluster, 0, 2.5)


def test_a_run_sends_no_followers_about_for_nothing():
    """A preference keeps the lease: the decision moves followers, which takes no load off."""
    home = Constraint(True, "region", "a")
    configs, conjunctions = configs_of([ZoneConfig(lease_preferences=[(home,)])])
    sites = [Site(s, (("region", "a" if s == 0 else "b"),)) for s in range(5)]
    localities = localities_of(sites, conjunctions)
    stores = stores_like(5, ranges=[1, 1, 1, 0, 0], qps=[5000, 4000, 4000, 0, 0])
    hot = HotRange([0, 1, 2], 0, 900.0)
    found = StoreRebalancer(LeaseAllocator(localities, configs)).relocation(stores, hot)
    assert found is not None and found.voters == (0, 3, 4) and found.holder == 0
    run = runs((localities, configs, stores, hot.as_ranges(kernel.QPS)), QPS)
    assert run.relieve(100) and run.decisions == 0


def test_a_run_crowds_no_store_for_the_sake_of_load():
    """Where the only light store has many ranges, the replicate queue would undo the move."""
    configs, conjunctions = configs_of([ZoneConfig()])
    localities = localities_of([Site(s) for s in range(4)], conjunctions)
    hot = HotRange([0, 1, 2], 0, 900.0)
    for there, decisions in ((10, 1), (40, 0)):
        stores = stores_like(4, ranges=[10, 10, 10, there], qps=[5000, 4900, 4900, 0])
        run = runs((localities, configs, stores, hot.as_ranges(kernel.QPS)), QPS)
        assert run.relieve(100) and run.decisions == decisions
