"""How few moves suffice on the headline cluster: within a deadline, and for every level."""

import time

import pytest

import evenkeel as ek
from bench.support.jobs import headline
from tests.support.instances import as_cluster, golden

pytestmark = pytest.mark.quality

SEEDS = (1, 2, 3)
# for each level the seconds given and the promised moves, as a multiple of the proven minimum
ASKED = {0.04: (0.2, 1.05), 0.001: (1.0, 1.06)}
POINTS = 10


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Compile before anything is timed."""
    ek.solve(as_cluster(golden("small")), goals=ek.Goals(level=0.001))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("level", ASKED)
def test_moves_within_a_deadline(level, seed, tell):
    """The clock decides where a walk runs, so that only what needs none is held to its promise."""
    seconds, promised = ASKED[level]
    result = ek.solve(as_cluster(headline(seed)), goals=ek.Goals(level=level), time_limit=seconds)
    moves, bound = result.comparison.moves, result.bounds.moves_level
    reached = float(result.levelness.ratio.max())
    tell(
        f"headline {seed}, level {level} in {seconds} s: max/mean {reached:.5f}, {moves:,} moves, "
        f"{moves / bound:.4f} times the proven minimum, {promised} promised; {result.stop_reason}"
    )
    assert result.audit.hard == 0
    assert moves <= promised * bound or result.stop_reason == "time"


@pytest.mark.parametrize("seed", SEEDS)
def test_frontier(seed, tell):
    cluster = as_cluster(headline(seed))
    started = time.thread_time()
    found = ek.frontier(cluster, POINTS, time_limit=1.0)
    seconds = time.thread_time() - started
    plans = [(plan.comparison.moves, float(plan.levelness.ratio.max())) for plan in found.results]
    line = ", ".join(f"{moves:,} for {level:.4f}" for moves, level in plans)
    tell(f"headline {seed}, {POINTS} points in {seconds:.2f} CPU s: {line}")
    assert all(plan.audit.hard == 0 for plan in found.results)
    assert plans == sorted(plans, key=lambda plan: (plan[0], -plan[1]))
    assert [level for _, level in plans] == sorted((level for _, level in plans), reverse=True)
    assert len(plans) >= POINTS // 2
