"""Minimise a weighted sum: compile the request into states for parallel searches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.cost.annealing import Annealing, begin_walk, forked
from evenkeel.methods.cost.parallel_search import ALONE, SEARCHES, Portfolio
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.methods.shared.stopping import StopReason, Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost
from evenkeel.model.placement import Placement
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.cost import cost_state as search_walk

FEWEST_CANDIDATES, PER_REPLICA, MOST_CANDIDATES = 100_000, 100, 20_000_000
"""Candidates where neither a work nor a time limit is given: a small cluster takes 0.1 s or so."""


@dataclass(frozen=True)
class Minimum:
    """What a search found."""

    node: NDArray[np.int32]  # (K,) node of each replica
    cost: float  # weighted sum there
    work: int  # candidates priced
    applied: int  # candidates accepted
    stop_reason: StopReason  # why it stopped


def reassign(request: Request) -> Outcome:
    """Minimise the request's ``Cost``."""
    if not isinstance(request.goals, Cost):
        raise TypeError("reassign minimises a Cost")
    found = minimise(request.cluster, request.goals, request.watch, request.seed, request.start)
    return Outcome(
        node=found.node,
        leader=request.start.leader,
        stop_reason=found.stop_reason,
        message=f"Cost {found.cost:,.10g}.",
        work=found.work,
    )


def minimise(
    cluster: Cluster, cost: Cost, watch: Watch, seed: int = 0, start: Placement | None = None
) -> Minimum:
    """Search for the placement of least cost that keeps every hard rule.

    References
    ----------
    Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220 (1983).
    """
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, weight, cost=cost)
    state = compile_state(cluster, problem, start)
    limit = watch.work_limit
    if limit is None and watch.time_limit is None:
        limit = min(FEWEST_CANDIDATES + PER_REPLICA * len(state.node), MOST_CANDIDATES)
    portfolio = Portfolio(_searches(problem, state, seed, limit), watch)
    stop: StopReason = "optimum"
    if len(portfolio.best.item) and len(portfolio.best.cost) > 1:
        stop = portfolio.run()
    walk = portfolio.best
    return Minimum(
        node=walk.best,
        cost=float(walk.total[1]),
        work=portfolio.work,
        applied=sum(int(one.walk.tally[search_walk.APPLIED]) for one in portfolio.searches),
        stop_reason=stop,
    )


def _searches(problem: Problem, state: State, seed: int, work_limit: int | None) -> list[Annealing]:
    """Begin the state of each search; what none of them changes they share.

    Of two the first may break rules of groups on its way.
    """
    count = SEARCHES if work_limit is None or work_limit >= ALONE else 1
    seeds = np.random.SeedSequence(seed % 2**64).generate_state(count, np.uint64) | np.uint64(1)
    first = begin_walk(problem, state, int(seeds[0]))
    searches = []
    for i in range(count):
        own = None if work_limit is None else (work_limit + i) // count
        if i == 0:
            searches.append(Annealing(problem, state, first, own, count > 1))
        else:
            copied = state._replace(**{name: x.copy() for name, x in state._asdict().items()})
            searches.append(Annealing(problem, copied, forked(first, seeds[i]), own, False))
    return searches
