"""CRUSH kernels and maps: against the plain twin, straw2's promise, and what bad maps are told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.errors import InvalidInput
from evenkeel.systems.ceph.crush.crush_map import (
    IN,
    NO_OSD,
    Bucket,
    ChooseArg,
    CrushMap,
    CrushRule,
    Step,
)
from evenkeel_kernels.ceph.straw2 import logarithms, straws
from tests.naive.ceph.crush import Crush

TYPES = {"osd": 0, "host": 1, "rack": 2, "root": 3}
TUNABLES = {
    "choose_total_tries": 50,
    "choose_local_tries": 0,
    "chooseleaf_descend_once": 1,
    "chooseleaf_vary_r": 1,
    "chooseleaf_stable": 1,
}
WEIGHTS = st.one_of(
    st.just(IN), st.sampled_from([0, 1, IN // 2, 3 * IN, 2**31]), st.integers(0, 2**20)
)


def weighed(items, weights):
    """A bucket's items with weights that are not all 0."""
    return list(zip(items, weights if any(weights) else [IN] * len(weights), strict=True))


@st.composite
def hierarchies(draw):
    """Buckets of racks, hosts and devices, some hosts empty, weights all over the place."""
    buckets, racks, devices = [], [], 0
    for _ in range(draw(st.integers(1, 4))):
        hosts = []
        for _ in range(draw(st.integers(1, 3))):
            n = draw(st.integers(0, 3))
            weights = draw(st.lists(WEIGHTS, min_size=n, max_size=n))
            host = -10 - len(buckets)
            buckets.append(
                Bucket(host, f"h{-host}", "host", weighed(range(devices, devices + n), weights))
            )
            devices += n
            hosts.append(host)
        weights = draw(st.lists(WEIGHTS, min_size=len(hosts), max_size=len(hosts)))
        rack = -10 - len(buckets)
        buckets.append(Bucket(rack, f"r{-rack}", "rack", weighed(hosts, weights)))
        racks.append(rack)
    weights = draw(st.lists(WEIGHTS, min_size=len(racks), max_size=len(racks)))
    return [*buckets, Bucket(-1, "root", "root", weighed(racks, weights))], max(devices, 1)


@st.composite
def rules(draw):
    """Steps of one or two choices, firstn or indep, with or without limits set."""
    steps = [
        Step(operation, draw(st.integers(0, 6)))
        for operation in draw(
            st.lists(
                st.sampled_from(
                    [
                        "set_choose_tries",
                        "set_chooseleaf_tries",
                        "set_choose_local_tries",
                        "set_chooseleaf_vary_r",
                        "set_chooseleaf_stable",
                    ]
                ),
                max_size=3,
            )
        )
    ]
    steps.append(Step("take", -1))
    way = draw(st.sampled_from(["firstn", "indep"]))
    if draw(st.booleans()):
        steps.append(Step(f"choose_{way}", draw(st.integers(-1, 3)), "rack"))
        way = draw(st.sampled_from(["firstn", "indep"]))
        kind = draw(st.sampled_from(["host", "osd"]))
    else:
        kind = draw(st.sampled_from(["rack", "host", "osd"]))
    leaf = draw(st.sampled_from(["choose", "chooseleaf"]))
    if kind != "osd":
        leaf = "chooseleaf"
    steps.append(Step(f"{leaf}_{way}", draw(st.integers(-1, 4)), kind))
    return [*steps, Step("emit")]


def naively(crush, steps, tunables, reweight, xs, size, args=()):
    """What the plain twin answers, as rows."""
    given_args = {arg.bucket: arg for arg in args}
    buckets = {}
    for b in crush.buckets:
        arg = given_args.get(b.id, ChooseArg(b.id))
        items = [item for item, _ in b.items]
        rows = list(arg.weights) or [[weight for _, weight in b.items]]
        buckets[b.id] = (TYPES[b.type], items, list(arg.ids) or items, rows)
    plain = Crush(buckets, logarithms().tolist(), crush.devices)
    run = [(step.operation, step.number, TYPES.get(step.type, 0)) for step in steps]
    return [plain.run(run, tunables, reweight, x, size) for x in xs]


def rows(mapped):
    return [row[:n].tolist() for row, n in zip(mapped.osd, mapped.length, strict=True)]


@given(
    hierarchies(),
    rules(),
    st.integers(1, 5),
    st.fixed_dictionaries(
        {
            "choose_total_tries": st.integers(0, 8),
            "choose_local_tries": st.integers(0, 2),
            "chooseleaf_descend_once": st.integers(0, 1),
            "chooseleaf_vary_r": st.integers(0, 4),
            "chooseleaf_stable": st.integers(0, 1),
        }
    ),
    st.data(),
)
def test_kernel_agrees_with_plain_twin(hierarchy, steps, size, tunables, data):
    buckets, devices = hierarchy
    crush = CrushMap(devices, TYPES, buckets, [CrushRule(0, "rule", steps)], tunables)
    weight = st.sampled_from([IN, IN, 0, IN // 3])
    reweight = data.draw(st.lists(weight, min_size=devices, max_size=devices))
    xs = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8))
    expected = naively(crush, steps, tunables, reweight, xs, size)
    assert rows(crush.map(0, xs, size, reweight)) == expected


@given(hierarchies(), st.sampled_from(["firstn", "indep"]), st.data())
def test_substitutes_by_position_and_id_agree_with_plain_twin(hierarchy, way, data):
    buckets, devices = hierarchy
    args = []
    for bucket in buckets:
        n = len(bucket.items)
        weights = st.lists(st.integers(1, 2**20), min_size=n, max_size=n)
        ids = st.lists(st.integers(-500, 500), min_size=n, max_size=n)
        args.append(
            ChooseArg(
                bucket.id,
                data.draw(st.lists(weights, max_size=3)),
                data.draw(st.one_of(st.just([]), ids)),
            )
        )
    steps = [Step("take", -1), Step(f"chooseleaf_{way}", 0, "rack"), Step("emit")]
    crush = CrushMap(
        devices, TYPES, buckets, [CrushRule(0, "rule", steps)], choose_args={"7": args}
    )
    reweight = [IN] * devices
    expected = naively(crush, steps, TUNABLES, reweight, range(6), 3, args)
    assert rows(crush.map(0, range(6), 3, choose_args="7")) == expected


def flat(weights):
    steps = [Step("take", -1), Step("choose_firstn", 0, "osd"), Step("emit")]
    bucket = Bucket(-1, "root", "root", list(enumerate(weights)))
    return CrushMap(len(weights), TYPES, [bucket], [CrushRule(0, "rule", steps)])


@given(st.lists(st.integers(1, 2**20), min_size=2, max_size=12), st.data())
def test_changing_one_weight_moves_data_only_to_or_from_that_item(weights, data):
    changed = data.draw(st.integers(0, len(weights) - 1))
    new = data.draw(st.integers(0, 2**20))
    if sum(weights) == weights[changed]:
        new = max(new, 1)
    after = [new if osd == changed else weight for osd, weight in enumerate(weights)]
    first = flat(weights).map(0, range(500), 1).osd[:, 0]
    second = flat(after).map(0, range(500), 1).osd[:, 0]
    moved = first != second
    gains = new > weights[changed]
    assert np.all((second if gains else first)[moved] == changed)


@given(st.lists(st.integers(1, 2**20), min_size=2, max_size=8), st.data())
def test_weight_zero_empties_an_item(weights, data):
    emptied = data.draw(st.integers(0, len(weights) - 1))
    weights[emptied] = 0
    assert not np.any(flat(weights).map(0, range(300), 1).osd == emptied)


@given(hierarchies(), st.randoms(use_true_random=False))
def test_names_and_order_of_buckets_do_not_matter(hierarchy, random):
    buckets, devices = hierarchy
    steps = [Step("take", -1), Step("chooseleaf_firstn", 0, "rack"), Step("emit")]
    renamed = [Bucket(b.id, f"x{b.id}", b.type, b.items) for b in buckets]
    random.shuffle(renamed)
    answers = [
        rows(CrushMap(devices, TYPES, each, [CrushRule(0, "r", steps)]).map(0, range(20), 3))
        for each in (buckets, renamed)
    ]
    assert answers[0] == answers[1]


def test_shares_follow_weights():
    weights = [IN, 2 * IN, 3 * IN, 4 * IN]
    counts = np.bincount(flat(weights).map(0, range(100_000), 1).osd[:, 0])
    assert np.allclose(counts / 100_000, [0.1, 0.2, 0.3, 0.4], atol=0.005)


def test_one_input_gives_the_same_as_many():
    crush = flat([IN] * 40)
    many = crush.map(0, range(20_000), 3).osd
    for x in (0, 16_383, 16_384, 19_999):
        assert crush.map(0, x, 3).osd[0].tolist() == many[x].tolist()


def test_logarithm_has_ceph_irregularities():
    table = logarithms()
    assert table[65534] == 281474932780304
    assert table[65535] == 281474708275200
    assert np.count_nonzero(np.diff(table) == 0) == 10_007
    assert straws().min() > 0


def test_division_in_doubles_is_integer_division():
    table = straws()
    for weight in (1, 3, IN, IN + 1, 7 * IN // 3, 2**31, 2**32 - 1):
        assert np.array_equal(np.floor(table / weight), table.astype(np.int64) // weight)


GOOD = {
    "devices": 2,
    "types": TYPES,
    "buckets": [Bucket(-1, "root", "root", [(0, IN), (1, IN)])],
    "rules": [CrushRule(0, "rule", [Step("take", -1), Step("emit")])],
}


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"buckets": [Bucket(-1, "root", "root", [(0, 0), (1, 0)])]}, "buckets[root]", "nothing"),
        ({"buckets": [Bucket(-1, "root", "room", [(0, IN)])]}, "buckets[root].type", "not a type"),
        ({"buckets": [Bucket(-1, "root", "osd", [(0, IN)])]}, "buckets[root].type", "not a type"),
        ({"buckets": [Bucket(-1, "root", "root", [(5, IN)])]}, "buckets[root].items", "below 2"),
        ({"buckets": [Bucket(-1, "root", "root", [(-7, IN)])]}, "buckets[root].items", "no bucket"),
        ({"buckets": [Bucket(-1, "root", "root", [(0, -1)])]}, "buckets[root].items[0]", "32 bits"),
        (
            {"buckets": [Bucket(-1, "root", "root", [(0, IN)], "straw")]},
            "buckets[root].alg",
            "straw2",
        ),
        ({"buckets": [Bucket(1, "root", "root", [(0, IN)])]}, "buckets[root].id", "below 0"),
        ({"tunables": {"choose_tries": 5}}, "tunables[choose_tries]", "not a tunable"),
        (
            {"tunables": {"choose_local_fallback_tries": 5}},
            "tunables[choose_local_fallback_tries]",
            "only 0",
        ),
        ({"rules": [CrushRule(0, "a", [Step("take", -9)])]}, "rules[a].steps[0]", "does not exist"),
        (
            {"rules": [CrushRule(0, "a", [Step("grab", -1)])]},
            "rules[a].steps[0]",
            "not an operation",
        ),
        (
            {"rules": [CrushRule(0, "a", [Step("choose_firstn", 0, "shelf")])]},
            "rules[a].steps[0]",
            "does not have",
        ),
        (
            {"choose_args": {"0": [ChooseArg(-1, [[IN]])]}},
            "choose_args[0][-1].weights",
            "must be 2 weights",
        ),
        ({"choose_args": {"0": [ChooseArg(-4)]}}, "choose_args[0][-4]", "no bucket"),
    ],
)
def test_bad_maps_name_the_offender(change, path, words):
    with pytest.raises(InvalidInput) as caught:
        CrushMap(**(GOOD | change))
    assert any(fault.path == path and words in fault.message for fault in caught.value.faults)


def test_cycle_is_named():
    buckets = [Bucket(-1, "a", "root", [(-2, IN)]), Bucket(-2, "b", "rack", [(-1, IN)])]
    with pytest.raises(InvalidInput, match=r"a < b < a|b < a < b"):
        CrushMap(2, TYPES, buckets, [])


def test_all_problems_are_reported_together():
    buckets = [Bucket(-1, "root", "room", [(9, IN)], "list")]
    with pytest.raises(InvalidInput) as caught:
        CrushMap(2, TYPES, buckets, [CrushRule(0, "a", [Step("take", -9)])], {"x": 1})
    assert len(caught.value.faults) == 5


def test_bad_requests():
    crush = flat([IN, IN])
    with pytest.raises(InvalidInput, match="size"):
        crush.map(0, [1], 0)
    with pytest.raises(InvalidInput, match="rule"):
        crush.map(3, [1], 1)
    with pytest.raises(InvalidInput, match="reweight"):
        crush.map(0, [1], 1, [IN])
    with pytest.raises(InvalidInput, match="choose_args"):
        crush.map(0, [1], 1, choose_args="9")


def test_too_few_domains_give_short_answers_or_holes():
    hosts = [Bucket(-2 - h, f"h{h}", "host", [(h, IN)]) for h in range(2)]
    root = Bucket(-1, "root", "root", [(-2, IN), (-3, IN)])
    for way, expected in (("firstn", 2), ("indep", 3)):
        steps = [Step("take", -1), Step(f"chooseleaf_{way}", 0, "host"), Step("emit")]
        crush = CrushMap(2, TYPES, [root, *hosts], [CrushRule(0, "r", steps)])
        mapped = crush.map(0, range(50), 3)
        assert np.all(mapped.length == expected)
        assert np.all((mapped.osd == NO_OSD).sum(axis=1) == 1)
