"""Placement groups: seeds, exceptions, devices that are down or gone, and primaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.errors import InvalidInput
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD, Bucket, CrushMap, CrushRule, Step
from evenkeel.systems.ceph.crush.placement import (
    Pool,
    raw,
    seeds,
    stable_mod,
    up,
    upmapped,
    with_primaries,
)
from tests.naive.ceph.crush import hash2


def crush(hosts=6, way="firstn", **kwargs):
    below = [Bucket(-2 - h, f"h{h}", "host", [(2 * h, IN), (2 * h + 1, IN)]) for h in range(hosts)]
    root = Bucket(-1, "root", "root", [(b.id, 2 * IN) for b in below])
    steps = [Step("take", -1), Step(f"chooseleaf_{way}", 0, "host"), Step("emit")]
    types = {"osd": 0, "host": 1, "root": 2}
    return CrushMap(2 * hosts, types, [root, *below], [CrushRule(0, "r", steps)], **kwargs)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**20))
def test_stable_mod_as_ceph_has_it(value, count):
    mask = (1 << (count - 1).bit_length()) - 1
    low = value & mask
    expected = low if low < count else value & (mask >> 1)
    assert stable_mod([value], count)[0] == expected < count


@given(st.integers(1, 300))
def test_growing_a_pool_splits_groups_only(count):
    values = np.arange(5000) * 2654435761 % 2**32
    before, after = stable_mod(values, count), stable_mod(values, count + 1)
    assert set(after[before != after].tolist()) <= {count}


@pytest.mark.parametrize("hashed", [True, False])
def test_seeds(hashed):
    pool = Pool(id=9, pg_num=24, pgp_num=10, size=3, rule=0, hashpspool=hashed)
    places = [int(stable_mod([ps], 10)[0]) for ps in range(24)]
    expected = [hash2(place, 9) if hashed else place + 9 for place in places]
    assert seeds(pool).tolist() == expected


def test_a_set_of_substitutes_is_found_by_pool_then_default():
    from evenkeel.systems.ceph.crush.crush_map import ChooseArg

    only_first = {
        "3": [ChooseArg(-1, [[IN, IN, IN, 0, 0, 0]])],
        "-1": [ChooseArg(-1, [[0] * 5 + [IN]])],
    }
    shaped = crush(choose_args=only_first)
    assert raw(shaped, Pool(3, 200, 1, 0)).max() < 6
    assert set(raw(shaped, Pool(4, 200, 1, 0)).ravel().tolist()) == {10, 11}


@pytest.mark.parametrize("chosen", [[], [Step("choose_firstn", 0, "host")]])
@pytest.mark.parametrize("exists", [None, np.ones(12, bool)])
@pytest.mark.parametrize("kind", ["replicated", "erasure"])
def test_a_rule_that_ends_in_buckets_places_on_no_device(chosen, exists, kind):
    whole = crush()
    steps = [Step("take", -1), *chosen, Step("emit")]
    short = CrushMap(12, whole.types, whole.buckets, [CrushRule(0, "r", steps)])
    rows = raw(short, Pool(1, 16, 3, 0, kind=kind), exists=exists)
    assert (rows == NO_OSD).all()


def test_devices_that_do_not_exist_vanish():
    exists = np.ones(12, bool)
    exists[::2] = False
    for kind in ("replicated", "erasure"):
        pool = Pool(1, 64, 3, 0, kind=kind)
        everything = raw(crush(), pool)
        rows = raw(crush(), pool, exists=exists)
        for whole, row in zip(everything.tolist(), rows.tolist(), strict=True):
            kept = [osd if osd % 2 else NO_OSD for osd in whole]
            if kind == "replicated":
                kept = [osd for osd in kept if osd != NO_OSD]
                kept += [NO_OSD] * (3 - len(kept))
            assert row == kept


ALL_IN = [IN] * 8
ROWS = np.array([[0, 1, 2], [3, 4, 5]], np.int32)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"items": {0: [(1, 6)]}}, [0, 6, 2]),
        ({"items": {0: [(1, 2)]}}, [0, 1, 2]),  # is there already
        ({"items": {0: [(7, 6)]}}, [0, 1, 2]),  # has nothing to give
        ({"items": {0: [(1, 6), (6, 7)]}}, [0, 7, 2]),  # one after another
        ({"items": {0: [(0, 1), (1, 0)]}}, [0, 1, 2]),  # no swaps
        ({"items": {0: [(0, 6), (1, 0)]}}, [6, 0, 2]),
        ({"whole": {0: [7, 6, 5]}}, [7, 6, 5]),
        ({"whole": {0: [7, 6, 5]}, "items": {0: [(7, 4)]}}, [4, 6, 5]),
        ({"primary": {0: 2}}, [2, 1, 0]),
        ({"primary": {0: 0}}, [0, 1, 2]),
        ({"primary": {0: 7}}, [0, 1, 2]),
    ],
)
def test_exceptions(given, expected):
    answer = upmapped(ROWS, ALL_IN, **given)
    assert answer.tolist() == [expected, [3, 4, 5]]
    assert ROWS[0].tolist() == [0, 1, 2]


def test_exceptions_towards_a_device_that_is_out_have_no_effect():
    out = [*ALL_IN[:7], 0]
    assert upmapped(ROWS, out, items={0: [(1, 7)]}).tolist() == ROWS.tolist()
    void = upmapped(ROWS, out, whole={0: [7, 6, 5]}, items={0: [(0, 6)]})
    assert void.tolist() == ROWS.tolist()


def test_down_devices_leave_holes_only_in_erasure_coded_pools():
    is_up = np.ones(8, bool)
    is_up[[0, 4]] = False
    assert up(ROWS, Pool(1, 2, 3, 0), is_up).tolist() == [[1, 2, NO_OSD], [3, 5, NO_OSD]]
    assert up(ROWS, Pool(1, 2, 3, 0, kind="erasure"), is_up).tolist() == [
        [NO_OSD, 1, 2],
        [3, NO_OSD, 5],
    ]


def test_first_device_is_primary_by_default():
    rows, primary = with_primaries(ROWS, Pool(1, 2, 3, 0))
    assert rows.tolist() == ROWS.tolist()
    assert primary.tolist() == [0, 3]
    holes = np.array([[NO_OSD, 4, 5], [NO_OSD] * 3], np.int32)
    rows, primary = with_primaries(holes, Pool(1, 2, 3, 0, kind="erasure"))
    assert primary.tolist() == [4, -1]


@given(st.lists(st.sampled_from([0, 1000, IN // 2, IN]), min_size=12, max_size=12), st.booleans())
def test_primary_affinity_as_ceph_has_it(affinity, erasure):
    pool = Pool(5, 64, 3, 0, kind="erasure" if erasure else "replicated")
    before = raw(crush(), pool)
    rows, primary = with_primaries(before, pool, affinity)
    for x, row, now, first in zip(
        seeds(pool).tolist(), before.tolist(), rows.tolist(), primary, strict=True
    ):
        willing = [o for o in row if affinity[o] >= IN or hash2(x, o) >> 16 < affinity[o]]
        chosen = willing[0] if willing else row[0]
        assert first == chosen
        others = [osd for osd in row if osd != chosen]
        assert now == (row if erasure else [chosen, *others])


def test_bad_pools():
    with pytest.raises(InvalidInput, match=r"pool.pg_num[\s\S]*pool.size"):
        Pool(1, 0, 0, 0)
    with pytest.raises(InvalidInput, match="pgp_num"):
        Pool(1, 4, 3, 0, pgp_num=5)
    with pytest.raises(InvalidInput, match="kind"):
        Pool(1, 4, 3, 0, kind="mirrored")
