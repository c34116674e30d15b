"""The upmap and read balancers: rules kept, bands met, few moves, and what cannot be had."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.errors import InvalidInput
from evenkeel.systems.ceph.crush import method as upmap
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD, Bucket, CrushMap, CrushRule, Step
from evenkeel.systems.ceph.crush.failure_domains import broken, failure_domains
from evenkeel.systems.ceph.crush.method import balance_primaries
from evenkeel.systems.ceph.crush.placement import Pool, raw, upmapped, with_primaries
from evenkeel_kernels.ceph import upmap as kernels

TYPES = {"osd": 0, "host": 1, "rack": 2, "root": 3}
RULES = {
    "rack": [("chooseleaf_firstn", 0, "rack")],
    "host": [("chooseleaf_firstn", 0, "host")],
    "shards": [("chooseleaf_indep", 0, "host")],
    "2 x 2": [("choose_firstn", 2, "rack"), ("chooseleaf_firstn", 2, "host")],
    "one rack": [("choose_firstn", 1, "rack"), ("chooseleaf_firstn", 0, "host")],
    "osd": [("choose_firstn", 0, "osd")],
}


def cluster(racks, hosts, osds, seed=None, uneven=4):
    """A map of racks x hosts x devices with every rule above, by the order above."""
    random = np.random.default_rng(seed)
    number = itertools.count()
    buckets, top = [], []
    for r in range(racks):
        within = []
        for h in range(hosts):
            weights = (
                (IN * random.integers(1, uneven + 1, osds)) if seed is not None else [IN] * osds
            )
            items = [(next(number), int(weight)) for weight in weights]
            buckets.append(Bucket(-100 - hosts * r - h, f"h{r}.{h}", "host", items))
            within.append((buckets[-1].id, sum(weight for _, weight in items)))
        buckets.append(Bucket(-10 - r, f"r{r}", "rack", within))
        top.append((-10 - r, sum(weight for _, weight in within)))
    buckets.append(Bucket(-1, "root", "root", top))
    rules = [
        CrushRule(k, name, [Step("take", -1), *itertools.starmap(Step, choices), Step("emit")])
        for k, (name, choices) in enumerate(RULES.items())
    ]
    return CrushMap(racks * hosts * osds, TYPES, buckets, rules)


def pool(rule, pg_num, size):
    kind = "erasure" if rule == "shards" else "replicated"
    return Pool(1, pg_num, size, list(RULES).index(rule), kind=kind)


@pytest.mark.parametrize("rule", RULES)
def test_levels_under_every_rule(rule):
    crush = cluster(5, 4, 3, seed=1)
    size = {"2 x 2": 4}.get(rule, 3)
    found = upmap.balance(crush, pool(rule, 1024, size))
    before = raw(crush, pool(rule, 1024, size))
    assert found.broken.size == 0
    assert found.unresolved == 0
    assert found.after.deviation <= 1.0 < 5.0 < found.before.deviation
    assert np.array_equal(upmapped(before, [IN] * crush.devices, items=found.items), found.rows)
    assert found.moves == sum(map(len, found.items.values()))


@pytest.mark.parametrize("rule", ["rack", "host", "shards"])
def test_moves_are_the_fewest_there_can_be(rule):
    crush = cluster(6, 3, 3, seed=2)
    found = upmap.balance(crush, pool(rule, 2048, 3))
    share, count = found.before.share, found.before.replicas
    above = np.maximum(count - np.floor(share + 1), 0).sum()
    below = np.maximum(np.ceil(share - 1) - count, 0).sum()
    assert found.moves == max(above, below)


def test_levelled_pools_stay_as_they_are():
    crush = cluster(5, 4, 3, seed=3)
    first = upmap.balance(crush, pool("rack", 1024, 3))
    again = upmap.balance(crush, pool("rack", 1024, 3), items=first.items)
    assert again.moves == 0
    assert again.items == first.items


def test_pairs_in_force_are_counted_from_and_mended():
    crush = cluster(5, 4, 3, seed=3)
    some = dict(itertools.islice(upmap.balance(crush, pool("rack", 1024, 3)).items.items(), 60))
    rest = upmap.balance(crush, pool("rack", 1024, 3), items=some)
    assert rest.after.deviation <= 1.0
    everything = upmap.balance(crush, pool("rack", 1024, 3))
    assert rest.moves < everything.moves


def test_a_device_that_is_out_deserves_nothing():
    crush = cluster(5, 4, 3, seed=4)
    reweight = [IN] * crush.devices
    reweight[7], reweight[8] = 0, IN // 2
    found = upmap.balance(crush, pool("host", 1024, 3), reweight=reweight)
    assert found.after.replicas[7] == found.after.share[7] == 0
    assert found.after.deviation <= 1.0


def test_heavy_domain_that_cannot_have_its_share():
    crush = cluster(4, 3, 4, seed=9, uneven=6)
    light = [b if b.name != "root" else Bucket(-1, "root", "root", b.items) for b in crush.buckets]
    heavy = []
    for bucket in light:
        if bucket.type == "host" and bucket.name.startswith("h0"):
            bucket = Bucket(bucket.id, bucket.name, "host", [(o, 4 * w) for o, w in bucket.items])
        if bucket.name in ("r0", "root"):
            grown = [(i, 4 * w if bucket.name == "r0" or i == -10 else w) for i, w in bucket.items]
            bucket = Bucket(bucket.id, bucket.name, bucket.type, grown)
        heavy.append(bucket)
    crush = CrushMap(crush.devices, TYPES, heavy, crush.rules)
    found = upmap.balance(crush, pool("rack", 1024, 3))
    assert found.level > 1.05
    assert found.broken.size == 0
    assert found.unresolved == 0
    assert found.after.fill == pytest.approx(found.level, abs=0.01)
    assert found.after.fill <= found.level + 1e-6 < found.before.fill
    least = np.maximum(found.before.replicas - np.floor(found.level * found.before.share + 1e-9), 0)
    assert found.moves <= 1.15 * least.sum()


@given(
    st.integers(2, 5),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(list(RULES)),
    st.integers(1, 200),
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_rules_hold_and_nothing_gets_worse(racks, hosts, osds, rule, pg_num, size, seed):
    crush = cluster(racks, hosts, osds, seed=seed)
    here = pool(rule, pg_num, size)
    rows = raw(crush, here)
    domains = failure_domains(crush, here.rule, size)
    found = upmap.balance(crush, here)
    assert set(found.broken) <= set(broken(domains, rows))
    assert np.array_equal(np.sort(found.rows == NO_OSD), np.sort(rows == NO_OSD))
    assert np.array_equal(found.rows == NO_OSD, rows == NO_OSD)
    assert found.after.fill <= max(found.before.fill, 1.0) + 1e-9
    assert found.moves == upmap.moves_between(rows, found.rows)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(1, 12), st.integers(0, 999))
def test_bands_are_met_wherever_they_can_be(domains, osds, groups, seed):
    random = np.random.default_rng(seed)
    size = int(random.integers(1, domains + 1))
    n = domains * osds
    domain = np.repeat(np.arange(domains, dtype=np.int32), osds)
    rows = np.array(
        [
            [d * osds + random.integers(osds) for d in random.permutation(domains)[:size]]
            for _ in range(groups)
        ],
        np.int32,
    )
    wanted = np.array(
        [
            [d * osds + random.integers(osds) for d in random.permutation(domains)[:size]]
            for _ in range(groups)
        ]
    )
    high = np.bincount(wanted.ravel(), minlength=n).astype(np.int32)  # so that it can be met
    state = kernels.spread(
        rows.ravel().copy(), size, np.empty((rows.size, 0), np.int32), np.zeros(n, np.int32), domain
    )
    kernels.level(state, kernels.Bands(high.copy(), high, high.astype(np.float64)), 10**6)
    assert np.array_equal(state.tally, high)
    after = state.osd.reshape(rows.shape)
    assert all(len(set(domain[row])) == size for row in after)
    assert np.array_equal(np.bincount(after.ravel(), minlength=n), state.tally)


@pytest.mark.small
@given(st.integers(2, 5), st.integers(1, 3), st.integers(1, 12), st.integers(0, 999))
def test_slices_make_the_moves_that_are_made_at_once(domains, osds, groups, seed):
    random = np.random.default_rng(seed)
    size, n = int(random.integers(1, domains + 1)), domains * osds
    order = [random.permutation(domains)[:size] for _ in range(groups)]
    rows = np.array([row * osds + random.integers(0, osds, size) for row in order], np.int32)
    share = rows.size / n
    low, high = (np.full(n, int(x), np.int32) for x in (share, np.ceil(share)))
    bands = kernels.Bands(low, high, np.full(n, share))

    def begun():
        none = np.empty((rows.size, 0), np.int32)
        domain = np.repeat(np.arange(domains, dtype=np.int32), osds)
        return kernels.spread(rows.ravel().copy(), size, none, np.zeros(n, np.int32), domain)

    budget = int(random.choice([2, 10**6]))
    whole, sliced, course = begun(), begun(), kernels.new_course(n)
    made = kernels.level(whole, bands, budget)
    while not kernels.level_some(sliced, bands, budget, course, 1):
        assert course.at[kernels.MOVES] <= made
    assert course.at[kernels.MOVES] == made
    assert np.array_equal(sliced.osd, whole.osd)


@pytest.mark.parametrize(
    ("row", "rule", "breaks"),
    [
        ([0, 12, 24], "rack", False),
        ([0, 1, 24], "rack", True),
        ([0, 3, 24], "rack", True),
        ([0, 3, 24], "host", False),
        ([0, 0, 24], "osd", True),
        ([0, 3, 12, 15], "2 x 2", False),
        ([0, 3, 12, 24], "2 x 2", True),
        ([0, 1, 12, 15], "2 x 2", True),
        ([0, 3, 6], "one rack", False),
        ([0, 3, 12], "one rack", True),
        ([0, NO_OSD, 24], "rack", False),
    ],
)
def test_broken_rules_are_seen(row, rule, breaks):
    crush = cluster(3, 4, 3)
    domains = failure_domains(crush, list(RULES).index(rule), len(row))
    assert broken(domains, np.array([row], np.int32)).tolist() == ([0] if breaks else [])


def test_pairs_follow_a_device_that_changes_its_slot():
    mapped = np.array([[1, 2, 3]], np.int32)
    assert upmap.pairs_between(mapped, np.array([[4, 1, 3]], np.int32)) == {0: [(2, 4)]}
    assert upmap.pairs_between(mapped, np.array([[2, 1, 3]], np.int32)) == {}


@pytest.mark.parametrize(
    ("mapped", "placed", "pairs"),
    [
        ([1, NO_OSD, NO_OSD], [NO_OSD, 2, NO_OSD], [(1, 2)]),
        ([1, NO_OSD, NO_OSD], [1, 2, NO_OSD], []),
        ([1, 2, 3], [4, NO_OSD, NO_OSD], [(1, 4)]),
        ([5, 1, 5], [5, 5, 4], [(1, 4)]),
        ([3, 3, 1], [1, 3, 4], []),
    ],
)
def test_no_pair_fills_a_hole_or_follows_a_device_for_ever(mapped, placed, pairs):
    found = upmap.pairs_between(np.array([mapped], np.int32), np.array([placed], np.int32))
    assert found == ({0: pairs} if pairs else {})


def test_impossible_requests_are_refused():
    crush = cluster(3, 2, 2)
    with pytest.raises(InvalidInput, match=r"deviation[\s\S]*spare"):
        upmap.balance(crush, pool("rack", 8, 3), deviation=0.2, spare=-1.0)


def test_reads_are_spread():
    crush = cluster(5, 4, 3, seed=5)
    here = pool("rack", 2048, 3)
    rows, first = with_primaries(raw(crush, here), here)
    found = balance_primaries(rows, first, here, devices=crush.devices)
    led = np.bincount(found.primary, minlength=crush.devices)
    assert np.abs(led - found.desired).max() < 1.0
    assert (rows == found.primary[:, None]).any(axis=1).all()
    assert found.after < found.before
    assert found.changes == {
        int(pg): int(found.primary[pg]) for pg in np.flatnonzero(found.primary != first)
    }
    again = balance_primaries(rows, found.primary, here, devices=crush.devices)
    assert again.changes == {}


def test_unwilling_devices_lead_nothing():
    crush = cluster(5, 4, 3)
    here = pool("rack", 512, 3)
    affinity = np.full(crush.devices, IN)
    affinity[:10] = 0
    affinity[10:20] = IN // 2
    rows, first = with_primaries(raw(crush, here), here)
    found = balance_primaries(rows, first, here, devices=crush.devices, affinity=affinity)
    led = np.bincount(found.primary, minlength=crush.devices)
    assert led[:10].sum() == 0
    assert led[10:20].mean() == pytest.approx(led[20:].mean() / 2, rel=0.1)


def test_only_replicated_pools_balance_reads():
    rows = np.array([[0, 1]], np.int32)
    with pytest.raises(InvalidInput, match=r"kind[\s\S]*primary\[0\]"):
        balance_primaries(rows, np.array([5], np.int32), pool("shards", 1, 2), devices=6)
