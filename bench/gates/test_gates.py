"""Gates: ratios within one run that must hold, and answers that must stay as good as they are.

Each ratio is the time of a reference over the time of ours, both least of several rounds in turns.
``baselines.json`` holds what they were, and the part of it that must be left: so much that a kernel
made half as fast fails, and so little that a noisy machine does not. ``--slowed`` shows the first:
ours does everything twice, and every gate must fail. Where one holds nevertheless, ours has become
so much faster that its baseline guards nothing any more, and is to be measured anew.
"""

import json
import time
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from bench.support import references
from bench.support.compiled_clusters import (
    before_walking,
    compiled_empty,
    compiled_expansion,
    filling,
    redistributed,
)
from bench.support.contest import Contender, least_seconds, twice
from bench.support.jobs import JOBS, OVERFULL, headline, medium
from evenkeel.measure.audit import audit
from evenkeel_kernels.core.state import settle
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first
from evenkeel_kernels.levelling.threshold_walk import accept_by_threshold
from tests.naive.measure import audit as naive_audit
from tests.support.instances import as_cluster

BASELINES = json.loads((Path(__file__).parents[1] / "baselines.json").read_text())

# seconds before each try, until a ratio holds: a busy neighbour goes, a slower kernel stays
PAUSES = (0, 2, 10, 30)

pytestmark = pytest.mark.gate


@pytest.fixture
def gate(tell, request):
    """Give a function that compares the ratio of two contenders with its baseline."""
    slowed = request.config.getoption("--slowed")

    def compare(name, ours, reference, rounds=9):
        least = BASELINES["ratios"][name] * BASELINES["margin"]
        contender = twice(ours) if slowed else ours
        for pause in PAUSES[:1] if slowed else PAUSES:
            time.sleep(pause)
            seconds, by_reference = least_seconds(contender, reference, rounds=rounds)
            ratio = by_reference / seconds
            if ratio >= least:
                break
        tell(
            f"{name:18} {seconds * 1e3:9.3f} ms, reference {by_reference * 1e3:9.3f} ms: "
            f"{ratio:8.2f} times as fast, {least:.2f} needed"
        )
        if slowed:
            assert ratio < least, f"{name} made half as fast goes unnoticed"
        else:
            assert ratio >= least, f"{name} was {BASELINES['ratios'][name]} times as fast"

    return compare


def test_best_fit(gate):
    """Against a vectorised scan of all nodes per replica."""
    compiled = compiled_empty(1_000, 300)
    order = largest_first(compiled.problem, compiled.forced)
    zone = compiled.cluster.topology.domain[0]

    def run(state, *given):
        best_fit(compiled.problem, state, *given, 1.0, 0, len(order))
        return state.load

    theirs = references.best_fit(compiled.problem, order, zone)
    assert np.allclose(run(*filling(compiled, order)), theirs)
    gate(
        "best_fit",
        Contender(run, lambda: filling(compiled, order)),
        Contender(lambda: references.best_fit(compiled.problem, order, zone)),
    )


def test_settle(gate):
    """Against a weighted count per slot and dimension, which keeps no other counts."""
    compiled = compiled_expansion(25_000, 300)

    def run(state):
        settle(compiled.problem, state)
        return state.load

    theirs = references.node_loads(compiled.problem, compiled.state)
    assert np.allclose(run(compiled.blank()), theirs)
    gate(
        "settle",
        Contender(run, lambda: (compiled.blank(),)),
        Contender(lambda: references.node_loads(compiled.problem, compiled.state)),
        rounds=25,
    )


def test_walk(gate):
    """Against pricing as many leadership changes at once, and making none of them."""
    compiled = redistributed(25_000, 300)
    steps = 100_000

    def run(state, targets, moved, threshold, random):
        return accept_by_threshold(
            compiled.problem, state, targets, moved, threshold, 0, steps, steps, np.inf,
            np.zeros(1, np.int64), random,
        )  # fmt: skip

    stroll = before_walking(compiled)
    assert run(*stroll) == steps
    gate(
        "walk",
        Contender(run, lambda: before_walking(compiled)),
        Contender(
            lambda: references.price_leader_changes(
                compiled.problem,
                compiled.state,
                stroll.targets.scale,
                stroll.targets.threshold,
                steps,
            )
        ),
        rounds=15,
    )


def test_audit(gate):
    """Against dictionaries and loops, of clusters of which nothing has been counted yet."""
    cluster = as_cluster(medium())
    placement = cluster.placement
    found = naive_audit.audit(cluster, placement).counts
    mine = audit(cluster, placement).counts
    assert {kind: count for kind, count in mine.items() if count} == dict(found)
    gate(
        "audit",
        Contender(
            lambda fresh: audit(fresh, fresh.placement).counts, lambda: (as_cluster(medium()),)
        ),
        Contender(lambda: naive_audit.audit(cluster, placement)),
    )


@pytest.mark.parametrize("name", ["headline", "headline_repair"])
def test_whole_call(gate, name):
    """Against sorting and counting arrays of the same size."""
    gate(name, Contender(JOBS[name].run), _yardstick())


def test_what_cannot_fit_is_soon_given_up(gate):
    """Against sorting and counting arrays."""
    gate("overfull", Contender(OVERFULL.run), _yardstick(), rounds=2)


def _yardstick():
    """Sort and count arrays of the size of the headline."""
    compiled = compiled_expansion(25_000, 300)
    load = compiled.problem.partitions.leader_load[compiled.problem.partitions.owner]
    node = compiled.cluster.placement.node + 1
    return Contender(lambda: references.yardstick(load, node, 301))


@pytest.mark.parametrize("seed", [1, 2])
def test_headline_is_level_with_few_moves(seed, tell):
    result = ek.solve(as_cluster(headline(seed)), goals=ek.Goals(level=0.04))
    moves, bound = result.comparison.moves, result.bounds.moves_level
    tell(f"headline {seed}: {moves} moves, {moves / bound:.4f} times the bound")
    assert result.audit.hard == 0
    assert (result.levelness.ratio <= 1.04 + 1e-9).all()
    assert moves <= 1.05 * bound


def test_medium_is_level_with_few_moves(tell):
    result = ek.solve(as_cluster(medium()), goals=ek.Goals(level=0.04))
    tell(f"medium: {result.comparison.moves} moves, bound {result.bounds.moves_level}")
    assert result.audit.hard == 0
    assert (result.levelness.ratio <= 1.04 + 1e-9).all()
    assert result.comparison.moves <= 800
