"""Place replicas without a node where budgets bind, and evict those beyond count limits.

The most endangered partitions come first. After the search, each replica still without a node is
tried once more: levelling, leader changes and other moves may have freed room.

The search for balance evicts for capacity; count limits it only keeps. So replicas beyond the count
limits of nodes and domains are evicted here, before it. A replica without another node stays.
"""

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import regressions, spread_excess, spread_excess_before
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.make_room import make_room
from evenkeel.methods.levelling.run_state import SearchRun, book_drop, placed_state
from evenkeel.methods.shared.compile import compile_problem
from evenkeel.methods.shared.replica_counts import (
    may_be_dropped,
    may_be_spared,
    missing_places,
    serving,
    slots_to_fill,
    surplus_replicas,
    wants_its_rows,
    within_wanted,
)
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.node_scan import FAR, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.best_fit import best_fit, repairs_first
from evenkeel_kernels.levelling.leaders.moves import replace_leaders
from evenkeel_kernels.levelling.parameters import Parameters
from evenkeel_kernels.levelling.repair import breaches_without, must_relocate
from evenkeel_kernels.levelling.slices import replica_slices

ROUNDS = 4  # how often it is looked, as long as anything is found: one step makes room for another


def place_waiting(run: SearchRun) -> None:
    """Place what waits, the most endangered partitions first, as far as the budgets go."""
    problem, state = run.problem, run.state
    scan = new_scan(problem, np.zeros(len(state.load)))
    replace_leaders(problem, state, scan)
    if not run.forced.any():
        return
    place(run, most_endangered_first(run, run.waiting))
    make_room(problem, state, run.waiting, run.look)
    _place_beside_spread(run)
    replace_leaders(problem, state, scan)
    run.forced &= run.waiting


def place_what_fits(run: SearchRun) -> bool:
    """Place what still waits, the most endangered first, wherever it fits; whether any did."""
    waiting = run.waiting
    if run.stop is not None or not waiting.any():
        return False
    return place(run, most_endangered_first(run, waiting)) > 0


def place(run: SearchRun, order: NDArray[np.int64]) -> int:
    """Place what waits, in that order, each where it fits best; how many were placed."""
    return _placed(run, order, run.state.leader >= 0)


def _placed(run: SearchRun, order: NDArray[np.int64], led: NDArray[np.bool_]) -> int:
    """Place what waits, with room to lead where its partition is not ``led (P,)``."""
    problem, state, placed = run.problem, run.state, 0
    scan = new_scan(problem, np.zeros(len(state.load)))
    for begin, end in replica_slices(problem, order):
        placed += best_fit(problem, state, scan, order, run.forced, led, FAR, begin, end)
        if not run.look():
            break
    return placed


def most_endangered_first(run: SearchRun, waiting: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List replicas ``waiting (K,)``: the fewest live replicas against ``min_active`` first."""
    # Then by quorum. Each replica of a partition that is placed makes the next one less urgent.
    # Live replicas that must leave their node come last. Ties are in the order of `repairs_first`.
    cluster, state = run.request.cluster, run.state
    placement, partitions = cluster.placement, cluster.partitions
    lives = np.append(cluster.nodes.serves, False).take(state.node)
    count = len(partitions)
    live = np.bincount(placement.owner[lives], minlength=count)
    votes = lives & (placement.role == Role.VOTER)
    voting = np.bincount(placement.owner[votes], minlength=count)
    order = repairs_first(run.problem, run.state, waiting, waiting)
    owner = placement.owner[order]
    lost = ~lives[order]
    rank = _earlier_lost(owner, lost)
    margin = np.where(lost, (live - partitions.min_active)[owner] + rank, 0)
    quorum = np.where(lost, (voting - partitions.voters // 2 - 1)[owner] + rank, 0)
    return order[np.lexsort((np.arange(len(order)), quorum, margin, ~lost))]


def _earlier_lost(owner: NDArray[np.int32], lost: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many lost replicas of the same partition come before each; partitions are in one run."""
    if len(owner) == 0:
        return np.zeros(0, np.int64)
    before: NDArray[np.int64] = np.cumsum(lost) - lost
    starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    length = np.diff(np.append(starts, len(owner)))
    return before - np.repeat(before[starts], length)


def look_once_more(run: SearchRun) -> None:
    """Place, lead and drop what one step would, until nothing more is found."""
    for _ in range(ROUNDS):
        if run.stop is not None:
            break
        steps = [appoint, _drop]
        if run.waiting.any():
            steps[:0] = place_what_fits, _place_beside_terms, _place_beside_spread, _place_unled
        if sum(step(run) for step in steps) == 0:
            break


def _place_beside_terms(run: SearchRun) -> bool:
    """Place what has no node where a slot is kept free for a node that a term wants."""
    nowhere = run.waiting & (run.state.node < 0)
    if not nowhere.any() or not (run.problem.rules.term[:, 0] > 0).any():
        return False
    asked = run.problem
    run.problem = _without_counted_terms(asked)
    placed = place(run, most_endangered_first(run, nowhere)) > 0
    run.problem = asked
    return placed


def _place_beside_spread(run: SearchRun) -> bool:
    """Place what waits where its partition breaks its hard spread limits no more than it came."""
    if not run.waiting.any() or not (run.problem.rules.limit[:, 1] >= 0).any():
        return False
    came = spread_excess_before(run.request.cluster)
    stuck = (came.sum(axis=0) > 0)[run.request.cluster.placement.owner]
    asked = run.problem
    placed = _placed_beyond(run, came, run.waiting & stuck)
    run.problem = _without_counted_terms(asked)
    placed += _placed_beyond(run, came, run.waiting & stuck & (run.state.node < 0))
    run.problem = asked
    return placed > 0


def _placed_beyond(run: SearchRun, came: NDArray[np.int64], waiting: NDArray[np.bool_]) -> int:
    """Place a replica of each partition that may break its limits by one more; how many were."""
    if not waiting.any():
        return 0
    cluster, asked = run.request.cluster, run.problem
    owner, placed = cluster.placement.owner, 0
    order = most_endangered_first(run, waiting)
    order = order[np.sort(np.unique(owner[order], return_index=True)[1])]
    node = run.state.node.copy()
    node[order] = -1
    without = cluster.placement.replaced(node, run.state.leader)
    spare = (came > spread_excess(cluster, audit(cluster, without)))[:, owner[order]]
    for tiers in np.unique(spare, axis=1).T:
        if tiers.any():
            run.problem = _without_spread(asked, np.flatnonzero(tiers))
            placed += place(run, order[np.all(spare == tiers[:, None], axis=0)])
    run.problem = asked
    return placed


def _place_unled(run: SearchRun) -> bool:
    """Place what has no node with the room to lead, of partitions without a leader in any case."""
    nowhere = run.waiting & (run.state.node < 0)
    nowhere &= (run.state.leader < 0)[run.problem.partitions.owner]
    if not nowhere.any() or not has_leaders(run.request.cluster):
        return False
    every = np.ones(len(run.state.leader), bool)
    return _placed(run, most_endangered_first(run, nowhere), every) > 0


def _without_counted_terms(problem: Problem) -> Problem:
    """Return the problem with terms that ask no replica to be inside of them, all or none."""
    term = problem.rules.term.copy()
    term[:, 0] = np.minimum(term[:, 0], 0)
    return problem._replace(rules=problem.rules._replace(term=term))


def _without_spread(problem: Problem, tiers: NDArray[np.intp]) -> Problem:
    """Return the problem with any number of a partition's replicas in a domain of some tiers."""
    limit = problem.rules.limit.copy()
    limit[np.isin(limit[:, 0], tiers), 1] = -1
    return problem._replace(rules=problem.rules._replace(limit=limit))


def appoint(run: SearchRun) -> bool:
    """Let partitions be led that are not, or not where a leader may stand."""
    scan = new_scan(run.problem, np.zeros(len(run.state.load)))
    return replace_leaders(run.problem, run.state, scan) > 0


def _drop(run: SearchRun) -> bool:
    """Drop followers beyond those wanted that were needed before, and are not any more."""
    cluster, state = run.request.cluster, run.state
    if wants_its_rows(cluster):
        return False
    serving_node = serving(cluster, state.node)
    spare = may_be_dropped(
        cluster, serving_node, slots_to_fill(cluster, serving_node) & ~run.dropped
    )
    owner, first = cluster.placement.owner, run.problem.partitions.first
    spare = spare[first[owner[spare]] + state.leader[owner[spare]] != spare]
    spare = spare[may_leave(run.problem, state, spare)]
    spare = spare[may_be_spared(cluster, state.node, spare)]
    spare = spare[np.unique(owner[spare], return_index=True)[1]]  # one of each
    if len(spare) == 0:
        return False
    spare = spare[~_is_missed(run, spare)]
    drop(run.problem, state, spare, run.dropped)
    return bool(run.dropped[spare].any())


def _is_missed(run: SearchRun, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether a partition is worse than it came without each of some replicas."""
    cluster, node = run.request.cluster, run.state.node.copy()
    node[replicas] = -1
    without = cluster.placement.replaced(node, run.state.leader)
    worse = regressions(cluster, without, audit(cluster, without)).partitions
    return worse[cluster.placement.owner[replicas]]


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

    def after(self, run: SearchRun, outcome: Outcome) -> "Restraint | None":
        """Leave alone what became worse than before, too; None if nothing did."""
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


def prepare(request: Request, parameters: Parameters, restraint: Restraint, work: int) -> SearchRun:
    """Compile the cluster, drop surplus replicas, and mark those that must move."""
    started = time.perf_counter()
    cluster = request.cluster
    target = np.ascontiguousarray(request.bounds.target.T)
    problem = compile_problem(
        cluster, target, np.ones(len(cluster.dimensions)), limits=request.limits
    )
    if restraint.pinned.any():
        problem.partitions.movable[restraint.pinned[cluster.placement.owner]] = False
    start = request.start.node
    dropped = (cluster.placement.node >= 0) & (start < 0)
    if dropped.any():
        dropped &= ~slots_to_fill(cluster, serving(cluster, start))
    state = placed_state(cluster, problem, request.start, dropped)
    must_fill, serving_node = drop_surplus(cluster, problem, state, dropped, restraint.kept)
    leaving = np.flatnonzero((serving_node < 0) & (state.node >= 0) & ~must_fill)
    spared = may_be_spared(cluster, state.node, leaving) & ~restraint.kept[leaving]
    problem.partitions.movable[leaving[~spared]] = False  # elsewhere it would be one too many
    drop(problem, state, leaving[spared], dropped)
    forced = must_relocate(problem, state, cluster.nodes.may_hold) & (
        (serving_node >= 0) | must_fill
    )
    if size_of(cluster) > SMALL:  # the refinement of small ones chooses better
        forced |= beyond_limits(problem, state, forced)
    forced &= problem.partitions.movable
    run = SearchRun(
        request, parameters, problem, state, forced, dropped, [], request.bounds.leader_target,
        work=work,
    )  # fmt: skip
    run.timings["prepare"] = time.perf_counter() - started
    return run


def drop_surplus(
    cluster: Cluster,
    problem: Problem,
    state: State,
    dropped: NDArray[np.bool_],
    kept: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Put surplus replicas nowhere, one of each partition at a time, but no ``kept (K,)`` one."""
    # returns the slots that must be filled after that, and the nodes of the replicas that count,
    # (K,) both
    with np.errstate(over="ignore"):  # load on a node without capacity
        utilization = (state.load * problem.nodes.inverse).max(axis=0, initial=0.0)
    while True:
        serving_node = serving(cluster, state.node)
        serving_node = (
            np.where(dropped, np.int32(-1), serving_node) if dropped.any() else serving_node
        )
        filling = slots_to_fill(cluster, serving_node)
        candidates = may_be_dropped(cluster, serving_node, filling & ~dropped)
        candidates = candidates[~kept[candidates]]
        candidates = candidates[may_leave(problem, state, candidates)]
        if len(candidates) == 0:
            return within_wanted(cluster, serving_node, filling), serving_node
        breaches = np.zeros(len(serving_node), np.int64)
        breaches_without(problem, state, candidates, breaches)
        surplus = surplus_replicas(cluster, serving_node, candidates, utilization, breaches)
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
    """Return whether each of ``replicas (M,)`` is movable within the budgets of its domains."""
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


def beyond_limits(problem: Problem, state: State, forced: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the replicas that leave for both limits, the ``forced (K,)`` among them, (K,) bool."""
    leaving = np.zeros(len(forced), bool)
    limited = problem.domains.limited
    if len(limited) == 0 and (state.replicas <= problem.nodes.max_replicas).all():
        return leaving
    nodes, free = len(state.replicas), problem.partitions.movable & ~forced
    held = np.bincount(state.node[~forced & (state.node >= 0)], minlength=nodes)
    over = np.flatnonzero(held > problem.nodes.max_replicas)
    if len(over) == 0 and len(limited) == 0:
        return leaving
    first, member = scattered_by_node(problem.partitions, state.node, state.leader, nodes)
    for n in over.tolist():
        there = member[first[n] : first[n + 1]]
        leaving[there[free[there]][: held[n] - problem.nodes.max_replicas[n]]] = True
    for level in limited.tolist():
        _leave_domains(problem, state, level, first, member, free, leaving)
    return leaving


def _leave_domains(
    problem: Problem,
    state: State,
    level: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    free: NDArray[np.bool_],
    leaving: NDArray[np.bool_],
) -> None:
    """Mark the followers that leave the domains of a level, the largest first."""
    partitions, domains = problem.partitions, problem.domains
    for domain in range(domains.domain_offset[level], domains.domain_offset[level + 1]):
        excess = state.domain_load[:, domain] - domains.tier_capacity[:, domain]
        if (excess <= 0.0).all():
            continue
        inside = domains.member[domains.member_first[domain] : domains.member_first[domain + 1]]
        there = np.concatenate([member[first[n] : first[n + 1]] for n in inside.tolist()])
        gone = there[leaving[there] | ~free[there]]
        excess = excess - partitions.voter_load[partitions.owner[gone]].sum(axis=0)
        there = there[free[there] & ~leaving[there] & ~_leads(problem, state, there)]
        load = partitions.voter_load[partitions.owner[there]]
        order = np.argsort(-load[:, int(np.argmax(excess))], kind="stable")
        short = (np.cumsum(load[order], axis=0) - load[order] < excess).any(axis=1)
        leaving[there[order[short]]] = True


def _leads(problem: Problem, state: State, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each of some replicas leads its partition."""
    p = problem.partitions.owner[replicas]
    return np.asarray(replicas == problem.partitions.first[p] + state.leader[p])
