"""Certificates prove what they say to code that shares nothing with their maker, or are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.bounds import bounds
from evenkeel.measure.bounds.certificate import Case, Cover, certified, complete
from evenkeel.methods.relaxation import least_losses, relaxation
from tests.measure.test_bounds import tiny
from tests.naive.measure import bounds as naive
from tests.naive.measure.certificate import must_lose, proven_moves
from tests.support.instances import as_cluster, generate


def chain():
    """X may go from the first node to the second only, y from there to the third."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3,
        load=[[1.0]] * 15,
        placement=[[0]] * 7 + [[1]] * 5 + [[2]] * 3,
        tags={"x": [True, True, False], "y": [False, True, True]},
        rules=[ek.Rule(require=["+x"]), ek.Rule(require=["+y"])],
        rule=[0] * 7 + [1] * 8,
    )


@pytest.fixture(scope="module")
def lifted():
    """A few clusters just expanded, with what a relaxation proves of them."""
    found = []
    for seed, level in ((3, 0.02), (4, 0.0), (5, 0.1)):
        instance = generate(P=90, N=12, Z=4, seed=seed)
        bound = relaxation(as_cluster(instance), ek.Goals(level=level))
        found.append((instance, bound))
    assert any(bound.certificate is not None for _, bound in found)
    return found


def weights(instance, node):
    """What the replicas on a node weigh at least."""
    mine = (instance["placement_before"] == node).any(1)
    return instance["load"][mine]


def test_an_outsider_finds_the_same(lifted):
    for instance, bound in lifted:
        if bound.certificate is None:
            continue
        proof, alive = bound.certificate, ~instance["dead"]
        for cover in proof.covers:
            weight = weights(instance, cover.node)
            excess = weight.sum(0) - bound.target[cover.node]
            assert must_lose(weight, np.maximum(excess, 0.0), cover.count)
        total = proven_moves(
            instance["placement_before"].tolist(), alive, instance["zone"], instance["load"],
            instance["load"] + instance["leader_extra_load"],
            np.where(np.isfinite(bound.target), bound.target, 0.0),
            proof.load_price, proof.loss_price, [(c.node, c.count) for c in proof.covers],
        )  # fmt: skip
        assert proof.moves == bound.moves_level <= total


def test_what_was_tampered_with_is_refused(lifted):
    instance, bound = next(pair for pair in lifted if pair[1].certificate is not None)
    cluster, proof = as_cluster(instance), bound.certificate
    assert certified(cluster, bound.target, proof) >= proof.moves

    def refused(match, **changed):
        with pytest.raises(ek.InvalidInput, match=match):
            certified(cluster, bound.target, replace(proof, **changed))

    refused("moves", moves=proof.moves + 1)
    refused("load_price", load_price=proof.load_price - 1.0)
    refused("load_price", load_price=proof.load_price[:-1])
    refused("loss_price", loss_price=np.full_like(proof.loss_price, np.nan))
    endless = np.where(np.isinf(bound.target), 1.0, proof.load_price)
    refused("load_price", load_price=endless)
    free = 0.0 * proof.load_price
    refused("more than is proven", load_price=free, loss_price=0.0 * proof.loss_price)
    refused("more than is proven", load_price=free, covers=())
    first, *others = proof.covers
    for wrong in (
        replace(first, count=first.count + 1),
        replace(first, node=len(cluster.nodes)),
        replace(first, cases=()),
        replace(first, cases=(replace(first.cases[0], price=-first.cases[0].price),)),
        replace(first, cases=(replace(first.cases[0], stays=(len(cluster.partitions),)),)),
    ):
        refused("covers", covers=(wrong, *others))
    refused("covers", covers=(first, *proof.covers))


def test_a_target_that_is_looser_is_not_proven(lifted):
    instance, bound = next(pair for pair in lifted if pair[1].certificate is not None)
    with pytest.raises(ek.InvalidInput):
        certified(as_cluster(instance), 1.3 * bound.target, bound.certificate)


@pytest.mark.small
@settings(max_examples=60)
@given(tiny())
def test_no_placement_beats_a_lifted_bound(case):
    cluster, goals = case
    everything = naive.every_placement(cluster)
    assume(len(everything.moves) > 0)
    before = bounds(cluster, goals)
    found = relaxation(cluster, goals, proven=before)
    assert found.moves_level >= before.moves_level
    near = (everything.load <= found.target * naive.SLACK).all((1, 2))
    assert found.moves_level <= everything.moves[near].min(initial=99)
    if found.certificate is not None:
        assert certified(cluster, found.target, found.certificate) >= found.moves_level


def test_prices_see_what_has_to_make_room_for_what_moves():
    cluster, goals = chain(), ek.Goals(level=0.0)
    assert bounds(cluster, goals).moves_level == 2
    found = relaxation(cluster, goals)
    assert (found.moves_level, found.moves_term) == (4, "joint prices")
    assert found.certificate.joint


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 3))
def test_covers_are_exact_where_all_subsets_can_be_tried(seed, replicas, dimensions):
    random = np.random.default_rng(seed)
    weight = random.integers(0, 6, (replicas, dimensions)).astype(float)
    excess = np.minimum(random.integers(0, 12, dimensions), weight.sum(0)).astype(float)
    clipped = np.minimum(weight, excess)
    start = Cover(0, 0, (Case(np.zeros(dimensions)),))
    partition = np.arange(replicas)
    cover = least_losses(0, partition, clipped, excess, start, lambda: False)
    assert must_lose(weight, excess, cover.count) or cover.count == 0
    assert not must_lose(weight, excess, cover.count + 1)
    assert complete(cover.cases, set(range(replicas)))


def test_out_of_time_keeps_what_is_known():
    weight = np.ones((4, 1))
    known = Cover(0, 1, (Case(np.ones(1)),))
    found = least_losses(0, np.arange(4), weight, np.full(1, 3.0), known, lambda: True)
    assert found is known
    cluster = chain()
    assert relaxation(cluster, ek.Goals(level=0.0), time_limit=0.0).moves_level == 2


def test_a_result_is_proved_and_says_so():
    cluster = chain()
    result = ek.solve(cluster, method="exact", goals=ek.Goals(level=0.0))
    assert result.comparison.moves == 4
    proved = result.proved()
    assert proved.gap.moves == 0.0 <= result.gap.moves
    assert "moves 4 (at least 4 by joint prices; gap 0.00%)" in str(proved)
    assert result.proved(0.0).bounds.moves_level == 2
    assert proved.status == "optimal"
