"""Before the search: compile the cluster, drop what is too many, mark what must move.

And before the next one: what it made worse than before is left alone.
"""

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.run_state import Run, book_drop, seated
from evenkeel.methods.shared.beyond_limits import beyond_limits
from evenkeel.methods.shared.compile import compile_problem
from evenkeel.methods.shared.replica_counts import (
    may_be_dropped,
    may_be_spared,
    missing_places,
    serving,
    slots_to_fill,
    surplus_replicas,
    within_wanted,
)
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.cluster import Cluster
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.parameters import Parameters
from evenkeel_kernels.levelling.repair import breaches_without, must_relocate


class Restraint(NamedTuple):
    """Replicas that are not dropped, (K,), and partitions that stay where they are, (P,)."""

    kept: NDArray[np.bool_]
    pinned: NDArray[np.bool_]

    @classmethod
    def none(cls, cluster: Cluster) -> "Restraint":
        """Leave nothing alone."""
        return cls(
            np.zeros(len(cluster.placement.node), bool), np.zeros(len(cluster.partitions), bool)
        )

    def after(self, run: Run, outcome: Outcome) -> "Restraint | None":
        """Leave alone what became worse than before, too; None if nothing did.

        What a surplus replica held up breaks where it is dropped, and where leaders weigh less than
        followers a node may be too full while one leaves: neither is seen one move at a time. And
        who was to take the place of one that is dropped may have found none.
        """
        cluster, partitions = run.request.cluster, run.problem.partitions
        lighter = (partitions.leader_load < partitions.voter_load).any()
        surplus = run.dropped.any() or self.kept.any()  # and one that is kept is one too many
        if not surplus and not cluster.transient.any() and not lighter:
            return None
        placement = cluster.placement.replaced(outcome.node, outcome.leader)
        worse = regressions(cluster, placement, audit(cluster, placement)).partitions
        short = missing_places(cluster, outcome.node) > missing_places(
            cluster, cluster.placement.node
        )
        kept = run.dropped & (worse | short)[placement.owner] & ~self.kept
        cut = np.zeros(len(worse), bool)
        cut[placement.owner[kept]] = True
        pinned = worse & ~cut & ~self.pinned
        if not kept.any() and not pinned.any():
            return None
        return Restraint(self.kept | kept, self.pinned | pinned)


def prepare(request: Request, parameters: Parameters, restraint: Restraint, work: int) -> Run:
    """Compile the cluster, drop what is too many, and mark what must move, after so much work."""
    started = time.perf_counter()
    cluster = request.cluster
    target = np.ascontiguousarray(request.bounds.target.T)
    problem = compile_problem(
        cluster, target, np.ones(len(cluster.dimensions)), limits=request.limits
    )
    if restraint.pinned.any():
        problem.partitions.movable[restraint.pinned[cluster.placement.owner]] = False
    dropped = np.zeros(len(request.start.node), bool)
    state = seated(cluster, problem, request.start, dropped)
    must_fill, seat = drop_surplus(cluster, problem, state, dropped, restraint.kept)
    leaving = np.flatnonzero((seat < 0) & (state.node >= 0) & ~must_fill)
    spared = may_be_spared(cluster, state.node, leaving) & ~restraint.kept[leaving]
    problem.partitions.movable[leaving[~spared]] = False  # elsewhere it would be one too many
    drop(problem, state, leaving[spared], dropped)
    forced = must_relocate(problem, state, cluster.nodes.may_hold) & ((seat >= 0) | must_fill)
    if size_of(cluster) > SMALL:  # the refinement of small ones finds who had better go
        forced |= beyond_limits(problem, state, forced)
    forced &= problem.partitions.movable
    run = Run(
        request, parameters, problem, state, forced, dropped, [], request.bounds.leader_target,
        work=work,
    )  # fmt: skip
    run.timings["compile"] = time.perf_counter() - started
    return run


def drop_surplus(
    cluster: Cluster,
    problem: Problem,
    state: State,
    dropped: NDArray[np.bool_],
    kept: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Put replicas beyond those wanted nowhere, one of each partition at a time.

    None of those that are ``kept (K,)``. Returns the slots that must be filled after that, and the
    nodes of the replicas that count, (K,) both.
    """
    with np.errstate(over="ignore"):  # load on a node without capacity
        utilization = (state.load * problem.nodes.inverse).max(axis=0, initial=0.0)
    while True:
        seat = serving(cluster, state.node)
        seat = np.where(dropped, np.int32(-1), seat) if dropped.any() else seat
        filling = slots_to_fill(cluster, seat)
        candidates = may_be_dropped(cluster, seat, filling & ~dropped)
        candidates = candidates[~kept[candidates]]
        candidates = candidates[may_leave(problem, state, candidates)]
        if len(candidates) == 0:
            return within_wanted(cluster, seat, filling), seat
        breaches = np.zeros(len(seat), np.int64)
        breaches_without(problem, state, candidates, breaches)
        surplus = surplus_replicas(cluster, seat, candidates, utilization, breaches)
        drop(problem, state, surplus[_fewest_first(cluster, surplus, candidates)], dropped)


def drop(
    problem: Problem, state: State, replicas: NDArray[np.int64], dropped: NDArray[np.bool_]
) -> None:
    """Drop those that may be, one by one within the budgets of what leaves a node."""
    replicas = replicas[problem.partitions.movable[replicas]]
    if problem.budgets.binds:
        affordable = []
        for k in replicas.tolist():
            if may_leave(problem, state, np.array([k])).all():
                book_drop(problem, state, k)
                affordable.append(k)
        replicas = np.array(affordable, np.int64)
    dropped[replicas] = True
    relocate(problem, state, replicas, np.full(len(replicas), -1, np.int32))


def may_leave(problem: Problem, state: State, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each of ``replicas (M,)`` is movable, and the budgets of its domains let it go."""
    budgets, movable = problem.budgets, problem.partitions.movable[replicas]
    if not budgets.binds:
        return movable
    home = problem.partitions.home[replicas]
    spent = np.append(state.went >= budgets.out_of, False)  # a node outside of domains is last
    free = (home < 0) | ~budgets.source[home]
    stays = spent[problem.domains.domain[budgets.tiers][:, home]].any(axis=0)
    return movable & (free | ~stays)


def _fewest_first(
    cluster: Cluster, replicas: NDArray[np.int64], candidates: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Order replicas so that those of partitions with few ``candidates`` come first."""
    owner = cluster.placement.owner
    choice = np.bincount(owner[candidates], minlength=len(cluster.partitions))
    return np.argsort(choice[owner[replicas]], kind="stable")
