"""Rules of a cluster beyond CockroachDB's own, laid out for its kernels."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.systems.cockroach.allocator.actions import Enough
from evenkeel_kernels.cockroach.cluster_rules import FIXED, ClusterRules, Rows
from evenkeel_kernels.cockroach.tables import Ranges
from evenkeel_kernels.core.problem import Problem


@cache
def no_rules() -> ClusterRules:
    """Return empty rules, the same for all ranges and never evaluated."""
    cluster = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[0]])
    no_one, none = cluster.placement, np.zeros(0, np.bool_)
    empty = Rows(none.astype(np.int32), none.astype(np.uint8), none.astype(np.int16), none, none)
    rules = _rules(cluster, no_one, no_one.node, empty)
    return rules._replace(wanted=np.zeros(0, np.int32))


def rules_of(
    cluster: Cluster, start: Placement, ranges: Ranges, enough: Enough | None = None
) -> ClusterRules:
    """Lay out the hard rules of a cluster, its replicas in the slots of its ``ranges``.

    Where ``enough`` is fewer than a range wants, it may go down to that.
    """
    slots = np.diff(start.first)
    at = np.arange(len(start.node)) + np.repeat(ranges.first[:-1] - start.first[:-1], slots)
    home, flags = np.full(len(ranges.store), -1, np.int32), np.zeros(len(ranges.store), np.uint16)
    home[at] = cluster.placement.node
    flags[at] = cluster.placement.flags
    wider = Placement(ranges.first, ranges.store, ranges.role, flags, ranges.lease)
    accepted = Rows(
        ranges.store.copy(),
        ranges.role.copy(),
        ranges.lease.copy(),
        ranges.up_to_date.copy(),
        ranges.behind.copy(),
    )
    rules = _rules(cluster, wider, home, accepted)
    if enough is None:
        return rules
    return rules._replace(
        wanted=np.minimum(rules.wanted, enough.replicas),
        voters=np.minimum(rules.voters, enough.voters),
    )


def _rules(
    cluster: Cluster, placed: Placement, home: NDArray[np.int32], accepted: Rows
) -> ClusterRules:
    """Compile the rules of a cluster and the state of a placement, whatever its rows' widths."""
    nodes, dimensions = cluster.nodes, len(cluster.dimensions)
    problem = compile_problem(
        cluster, np.zeros((dimensions, len(nodes))), np.zeros(dimensions), soft_from=np.inf
    )
    pinned = ((placed.flags & Flag.PINNED) > 0) & (home >= 0)
    partitions = problem.partitions._replace(
        first=placed.first.copy(), owner=placed.owner.copy(), home=home.copy(), movable=~pinned
    )
    problem = problem._replace(partitions=partitions)
    serves = nodes.serves
    carries = nodes.carries
    everywhere = np.ones(len(nodes), bool)
    state = compile_state(cluster, problem, placed, everywhere)
    touched = 2 * int(np.diff(placed.first).max(initial=0))
    size = _measures(problem, touched)
    return ClusterRules(
        problem=problem,
        state=state,
        carries=carries,
        serves=serves,
        idle=np.flatnonzero(~carries),
        wanted=cluster.partitions.replicas.astype(np.int32),
        voters=cluster.partitions.voters.astype(np.int32),
        accepted=accepted,
        living=np.where(np.append(serves, False)[placed.node], placed.node, -1).astype(np.int32),
        touched=np.zeros(touched, np.int64),
        was=np.zeros(size),
        now=np.zeros(size),
        drift=np.zeros(size),
    )


def _measures(problem: Problem, touched: int) -> int:
    """Return how many figures the kernel measures of one range at most."""
    tables = problem.rules
    limits, terms, group_limits, group_terms = (
        int(np.diff(first).max(initial=0))
        for first in (
            tables.limit_first, tables.term_first, tables.group_limit_first, tables.group_term_first
        )
    )  # fmt: skip
    dimensions = len(problem.nodes.capacity)
    of_node = 1 + dimensions * (1 + len(problem.domains.limited))
    return FIXED + 4 * (limits + group_limits) + terms + group_terms + 1 + touched * of_node
