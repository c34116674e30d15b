"""WAGED's runs on small random clusters, against its plain Python twin."""

import contextlib
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.assignment import Assignment
from evenkeel.systems.helix import waged as fit
from evenkeel.systems.helix.crush.tree import HashedNames, set_orders
from evenkeel.systems.helix.waged import (
    NO_LIMIT,
    Kind,
    Model,
    NoResult,
    Preference,
    Scope,
    Task,
    merged,
    nothing,
    prepare,
    rebalance,
)
from evenkeel_kernels.helix.waged import exponential, into_slots, sigmoid
from tests.naive.helix import waged as naive

KEYS = ("CU", "DISK", "MEM", "NET")
STATES = [
    {"MASTER": 1, "SLAVE": "R"},
    {"ONLINE": "R"},
    {"LEADER": 1, "STANDBY": 1, "WITNESS": "R", "OFFLINE": -1},
    {"ALL": "N"},
]
NAMES = ["Aa", "BB", "n\N{OHM SIGN}", "x17", "x2", "z", "node-\U0001f980", "AaAa", "BBBB", "AaBB"]
"""Some of them with the same hash."""

PREFERENCES = st.builds(
    Preference, st.sampled_from([1, 1, 0, 10, 1000]), st.sampled_from([1, 1, 0, 10]), st.booleans()
)


@st.composite
def models(draw):
    """Draw a cluster, degenerate ones too."""
    nodes, count = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    groups, keys = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    few = st.integers(0, 3)
    huge = st.integers(2**26, 2**31 - 1)
    room = draw(st.sampled_from([st.integers(0, 30), st.just(12), st.integers(20, 90), huge]))
    size = draw(st.sampled_from([st.integers(0, 9), st.just(2), st.integers(0, 2**28)]))
    most = st.one_of(st.just(NO_LIMIT), st.just(NO_LIMIT), few)
    kinds = st.builds(
        Kind,
        st.sampled_from(STATES),
        st.one_of(st.integers(0, 4), st.just("ANY_LIVEINSTANCE")),
        st.one_of(st.none(), st.integers(0, 4)),
    )
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, nodes - 1))
    masks = draw(st.lists(column(st.booleans(), nodes, np.bool_), min_size=0, max_size=2))
    chosen = draw(st.permutations(NAMES))
    return Model(
        keys=KEYS[:keys],
        nodes=HashedNames.of(chosen[:nodes]),
        capacity=draw(column(room, nodes * keys, np.int32)).reshape(nodes, keys),
        zone=draw(column(st.integers(0, draw(few)), nodes, np.int32)),
        limit=draw(column(most, nodes, np.int32)),
        masks=np.array([np.ones(nodes, np.bool_), *masks]),
        groups=HashedNames.of(["g", "AaAa", "BBBB"][:groups]),
        group_limit=draw(column(most, groups, np.int32)),
        partitions=HashedNames.of(draw(st.permutations(NAMES))[:count]),
        group=draw(column(st.integers(0, groups - 1), count, np.int32)),
        mask=draw(column(st.integers(0, len(masks)), count, np.int32)),
        kind=draw(column(st.integers(0, 1), count, np.int32)),
        kinds=(draw(kinds), draw(kinds)),
        weight=draw(column(size, count * keys, np.int32)).reshape(count, keys),
        disabled=np.array(sorted(draw(st.sets(pairs, max_size=4))), np.int32).reshape(-1, 2),
    )


def column(entries, count, dtype):
    """So many entries as an array."""
    lists = st.lists(entries, min_size=count, max_size=count)
    return lists.map(lambda given: np.array(given, dtype))


@st.composite
def assignments(draw, model):
    """Draw who holds what, by rules or against them."""
    nodes, owner, node, state = len(model.nodes), [], [], []
    for p in range(len(model.kind)):
        row = draw(st.lists(st.integers(0, nodes - 1), max_size=4, unique=True))
        owner += [p] * len(row)
        node += row
        last = len(model.kinds[model.kind[p]].names) - 1
        state += [draw(st.integers(0, last)) for _ in row]
    pairs = np.array(node, np.int32), np.array(state, np.uint8)
    return Assignment.of_rows(len(model.kind), np.array(owner, np.int64), *pairs)


@st.composite
def tasks(draw, model):
    """Draw what a run is about; often one follows another, so that most of it is as it should."""
    scope = draw(st.sampled_from(Scope))
    nodes = np.flatnonzero(
        draw(column(st.sampled_from([True, True, False]), len(model.nodes), bool))
    )
    current = draw(st.one_of(assignments(model), st.just(nothing(len(model.kind)))))
    if draw(st.booleans()):
        before = Task(
            Scope.GLOBAL,
            np.arange(len(model.nodes)),
            current,
            None,
            np.zeros(len(model.kind), bool),
        )
        with contextlib.suppress(NoResult):
            current = rebalance(model, before, Preference()).assignment
    baseline = draw(st.one_of(st.none(), st.just(current), assignments(model)))
    anew = draw(column(st.booleans(), len(model.kind), np.bool_))
    return Task(scope, nodes, current, baseline, anew)


def rows(assignment):
    """By partition the pairs of node and state."""
    found = [set() for _ in range(len(assignment))]
    for p, n, s in zip(assignment.owner, assignment.node, assignment.state, strict=True):
        found[p].add((int(n), int(s)))
    return found


@pytest.mark.small
@given(st.data())
def test_a_run_is_what_it_is_in_plain_python(data):
    model = data.draw(models())
    task = data.draw(tasks(model))
    preference = data.draw(PREFERENCES)
    scoring = data.draw(st.sampled_from([(), ("DISK",), ("unknown", "CU"), ("CU", "CU")]))
    expected = naive.run(model, task, preference, scoring)
    if len(task.nodes):
        prepared = prepare(model, task, scoring)
        assert prepared.placed == expected.placed
        assert prepared.estimates.usage == expected.usage
        assert prepared.estimates.usage_top == expected.usage_top
        assert prepared.estimates.count == expected.count
    try:
        found = rebalance(model, task, preference, scoring).assignment
    except NoResult as reason:
        failure = reason.failure
        assert failure.key == expected.short
        assert (failure.partition, failure.state) == (expected.stuck or (-1, -1))
        assert {n: why.name for n, why in failure.reasons.items()} == expected.reasons
    else:
        assert (expected.short, expected.stuck) == ("", None)
        assert rows(found) == expected.rows
        assert np.array_equal(
            np.lexsort((found.node, found.state, found.owner)), np.arange(len(found.node))
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_fuller_run_is_what_it_is_in_plain_python(seed):
    """Where the curve is steep, and nodes differ in the last bits of their scores only."""
    random = np.random.default_rng(seed)
    size = random.choice([1_000, 2_000], (18, 1)) * np.array([3, 4, 5])
    weight = random.integers(1, 90, (60, 3), np.int32)
    model = dataclasses.replace(
        plain(60, 18, replicas=3, zones=6), keys=KEYS[:3], capacity=size.astype(np.int32),
        weight=weight,
    )  # fmt: skip
    every, none = np.arange(18), np.zeros(60, np.bool_)
    first = Task(Scope.GLOBAL, every, nothing(60), None, none)
    best = rebalance(model, first, Preference()).assignment
    assert rows(best) == naive.run(model, first, Preference()).rows
    for scope in (Scope.EMERGENCY, Scope.PARTIAL, Scope.GLOBAL):
        task = Task(scope, every[1:-1], best, best, ~none)
        assert rows(rebalance(model, task, Preference()).assignment) == (
            naive.run(model, task, Preference()).rows
        )


@pytest.mark.small
@given(st.data())
def test_how_a_fit_is_cut_does_not_matter(data):
    model = data.draw(models())
    task = data.draw(tasks(model))
    whole, cut = [], []
    for size, told in ((fit.SLICE, whole), (1, cut)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fit, "SLICE", size)
            try:
                told.append(rows(rebalance(model, task, Preference()).assignment))
            except NoResult as reason:
                told.append(reason.failure)
    assert whole == cut


@pytest.mark.small
@given(st.data())
def test_slots_are_filled_as_in_plain_python(data):
    row = st.dictionaries(st.integers(0, 6), st.integers(0, 2), max_size=4)
    slots = st.lists(st.integers(-1, 6), max_size=4)
    after = [sorted(one.items(), key=lambda pair: pair[::-1]) for one in data.draw(st.lists(row))]
    before = [data.draw(slots) for _ in after]
    led = [data.draw(st.integers(-1, max(len(one) - 1, 0))) for one in before]
    slot_first = np.cumsum([0, *map(len, before)])
    first = np.cumsum([0, *map(len, after)])
    node = np.empty(slot_first[-1], np.int32)
    leader = np.empty(len(after), np.int16)
    flat = [pair for one in after for pair in one]
    spilled = into_slots(
        slot_first, np.array([n for one in before for n in one], np.int32), np.array(led, np.int16),
        first, *pairs([n for n, _ in flat], [s for _, s in flat]), node, leader,
    )  # fmt: skip
    expected = [naive.into_slots(*one) for one in zip(before, led, after, strict=True)]
    assert node.tolist() == [n for slots, _, _ in expected for n in slots]
    assert leader.tolist() == [k for _, k, _ in expected]
    assert spilled == sum(count for _, _, count in expected)


@given(st.lists(st.lists(st.text(max_size=3), unique=True, max_size=30), max_size=4))
def test_sets_are_walked_as_in_plain_python(sets):
    first = np.cumsum([0, *map(len, sets)])
    names = [name for some in sets for name in some]
    walked = [name for some in sets for name in naive.walked(some)]
    order = set_orders(first, HashedNames.of(names).hash)
    assert [names[i] for i in order.tolist()] == walked


def test_a_fit_stops_when_it_is_told_to(monkeypatch):
    monkeypatch.setattr(fit, "SLICE", 4)
    model = plain(partitions=10, nodes=4)
    asked = []

    def stop(placed):
        asked.append(placed)
        return placed >= 3

    task = Task(Scope.GLOBAL, np.arange(4), nothing(10), None, np.zeros(10, bool))
    assert rebalance(model, task, Preference(), stop=stop).assignment is None
    assert asked == [0, 1, 2, 3]


def plain(partitions, nodes, replicas=1, zones=None):
    """A cluster without anything special; every node is a zone unless told otherwise."""
    return Model(
        keys=("CU",),
        nodes=HashedNames.of([f"n{i}" for i in range(nodes)]),
        capacity=np.full((nodes, 1), 100, np.int32),
        zone=np.arange(nodes, dtype=np.int32) % (zones or nodes),
        limit=np.full(nodes, NO_LIMIT, np.int32),
        masks=np.ones((1, nodes), np.bool_),
        groups=HashedNames.of(["g"]),
        group_limit=np.full(1, NO_LIMIT, np.int32),
        partitions=HashedNames.of([f"g_{i}" for i in range(partitions)]),
        group=np.zeros(partitions, np.int32),
        mask=np.zeros(partitions, np.int32),
        kind=np.zeros(partitions, np.int32),
        kinds=(Kind({"MASTER": 1, "SLAVE": "R"}, replicas, None),),
        weight=np.ones((partitions, 1), np.int32),
        disabled=np.zeros((0, 2), np.int32),
    )


def test_sums_over_the_cluster_come_round_as_in_java():
    model = plain(partitions=4, nodes=3)
    model = dataclasses.replace(model, capacity=np.full((3, 1), 2**30, np.int32))
    task = Task(Scope.GLOBAL, np.arange(3), nothing(4), None, np.zeros(4, bool))
    assert prepare(model, task).estimates.capacity.tolist() == [3 * 2**30 - 2**32]
    with pytest.raises(NoResult, match="too little CU, as Helix adds up in 32 bits"):
        rebalance(model, task, Preference())


def test_nothing_is_placed_without_nodes():
    task = Task(Scope.GLOBAL, np.arange(0), nothing(3), None, np.ones(3, bool))
    assert rows(rebalance(plain(3, 2), task, Preference()).assignment) == [set()] * 3


def test_a_collision_of_hashes_is_settled_by_name():
    """Replicas are placed in the order of their names where all numbers about them agree."""
    model = dataclasses.replace(
        plain(partitions=4, nodes=4), partitions=HashedNames.of(["BBBB", "AaBB", "BBAa", "AaAa"])
    )
    task = Task(Scope.GLOBAL, np.arange(4), nothing(4), None, np.ones(4, bool))
    found = rebalance(model, task, Preference()).assignment
    assert found.node.tolist() == [3, 1, 2, 0]


def test_an_overwrite_lies_over_the_best_possible():
    current = Assignment.of_rows(2, np.array([0, 0, 1]), *pairs([0, 1, 2], [0, 1, 0]))
    over = Assignment.of_rows(2, np.array([0, 0]), *pairs([1, 3], [0, 1]))
    assert rows(merged(current, over)) == [{(0, 0), (1, 0), (3, 1)}, {(2, 0)}]


def pairs(node, state):
    return np.array(node, np.int32), np.array(state, np.uint8)


@pytest.mark.small
@given(st.floats(0.0, 1e6))
def test_the_curve_is_what_it_is_in_plain_python(usage):
    assert sigmoid(usage) == naive.sigmoid(usage)


@pytest.mark.small
@pytest.mark.parametrize(
    "x", [-44.0, -1.0, -0.0, 0.0, 0.5, 1.0, 700.0, 709.0, 709.999, 710.0, 1e300]
)
def test_the_exponential_is_what_it_is_in_plain_python(x):
    assert exponential(x) == naive.exponential(x)


@given(st.floats(-44.0, 700.0))
def test_the_exponential_is_within_a_last_bit_of_the_library(x):
    assert exponential(x) == pytest.approx(float(np.exp(x)), rel=2.0**-51)
