"""Compute the next action of every range and its priority, and compile rules of a cluster."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel_kernels.cockroach import actions as kernel
from evenkeel_kernels.cockroach.cluster_rules import FIXED, ClusterRules, Rows
from evenkeel_kernels.cockroach.tables import Configs, Ranges
from evenkeel_kernels.core.problem import Problem

# CockroachDB's names of the actions, by their numbers among the kernels
ACTIONS = (
    "Noop",
    "FinalizeAtomicReplicationChange",
    "RemoveLearner",
    "ReplaceDeadVoter",
    "AddVoter",
    "ReplaceDecommissioningVoter",
    "RemoveDeadVoter",
    "RemoveDecommissioningVoter",
    "RemoveVoter",
    "ReplaceDeadNonVoter",
    "AddNonVoter",
    "ReplaceDecommissioningNonVoter",
    "RemoveDeadNonVoter",
    "RemoveDecommissioningNonVoter",
    "RemoveNonVoter",
    "ConsiderRebalance",
    "RangeUnavailable",
)

BY_LEASE_PREFERENCE = 1001.0  # priority of a range whose leaseholder is not where it should be


@dataclass(frozen=True, eq=False)
class Actions:
    """What every range needs first."""

    action: NDArray[np.int8]  # (P,) index into ``ACTIONS``
    # (P,) the higher the more urgent; 0 where nothing is wrong, or nothing can be done
    priority: NDArray[np.float64]


class Enough(NamedTuple):
    """How many replicas, and voters among them, CockroachDB keeps of each range, (P,) each."""

    # fewer than are configured where so few hosts count that they cannot all have one of their own

    replicas: NDArray[np.int32]
    voters: NDArray[np.int32]


def enough_of(configs: Configs, config: NDArray[np.int32], hosts: int) -> Enough:
    """Return what CockroachDB keeps of ranges of each ``config (P,)`` where so many hosts count.

    >>> from evenkeel.systems.cockroach.allocator.zone_configs import configs_of
    >>> from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig
    >>> configs, _ = configs_of([ZoneConfig(num_replicas=5), ZoneConfig(5, 3)])
    >>> enough = enough_of(configs, np.array([0, 1], np.int32), 4)
    >>> enough.voters.tolist(), enough.replicas.tolist()
    ([3, 3], [3, 4])
    """
    both = zip(configs.replicas.tolist(), configs.voters.tolist(), strict=True)
    kept = np.array(
        [
            (kernel.needed_voters(voters, hosts),
             kernel.needed_non_voters(replicas, voters, hosts))
            for replicas, voters in both
        ],
        np.int32,
    ).reshape(-1, 2)[config]  # fmt: skip
    return Enough(kept.sum(axis=1, dtype=np.int32), kept[:, 0].copy())


def actions(
    *,
    first: ArrayLike,
    store: ArrayLike,
    status: ArrayLike,
    configs: Configs,
    hosts: int,
    role: ArrayLike | None = None,
    config: ArrayLike | None = None,
    joint: ArrayLike | None = None,
) -> Actions:
    """Find what every range needs first, in one pass."""
    rows = np.ascontiguousarray(first, np.int64)
    stores = np.ascontiguousarray(store, np.int32)
    count = len(rows) - 1
    found = Actions(np.zeros(count, np.int8), np.zeros(count))
    kernel.actions(
        rows,
        stores,
        np.zeros(len(stores), np.uint8) if role is None else np.ascontiguousarray(role, np.uint8),
        np.zeros(count, np.bool_) if joint is None else np.ascontiguousarray(joint, np.bool_),
        np.zeros(count, np.int32) if config is None else np.ascontiguousarray(config, np.int32),
        np.ascontiguousarray(status, np.int8),
        configs,
        hosts,
        found.action,
        found.priority,
    )
    return found


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
    """Lay out the hard rules of a cluster, its replicas in the slots of its ``ranges``."""
    # where ``enough`` is fewer than a range wants, it may go down to that
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
    limits, group_limits, group_terms = (
        int(np.diff(first).max(initial=0))
        for first in (tables.limit_first, tables.group_limit_first, tables.group_term_first)
    )
    dimensions = len(problem.nodes.capacity)
    of_node = 1 + dimensions * (1 + len(problem.domains.limited))
    return FIXED + 4 * (limits + group_limits) + group_terms + 1 + touched * of_node
