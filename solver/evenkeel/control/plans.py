"""Plans towards what a pipeline published: slots are found for replicas that have none."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import plan
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle


def plan_towards(
    cluster: Cluster, wanted: Assignment, throttle: Throttle | None, protocol: str | Protocol
) -> Plan:
    """Return the plan from where a cluster has its replicas to an assignment of the same numbers.

    A replica that stays keeps its slot; one that comes takes that of one which leaves, if it can in
    the same domains, or an empty one, or one more where there is none.
    """
    start = cluster.placement
    width = np.maximum(np.diff(start.first), np.diff(wanted.first))
    before = _widened(start, width)
    node, leader = before.node.copy(), before.leader.copy()
    rows = zip(before.first[:-1].tolist(), before.first[1:].tolist(), strict=True)
    domain = cluster.topology.domain
    top = wanted.node.copy()
    top[wanted.state != TOP] = -1
    for p, (begin, end) in enumerate(rows):
        due = wanted.node[wanted.first[p] : wanted.first[p + 1]].tolist()
        was = node[begin:end].tolist()
        row = [n if n in due else -1 for n in was]
        for n in due:
            if n not in row:
                free = [slot for slot, held in enumerate(row) if held < 0]
                row[max(free, key=lambda slot: alike(domain, was[slot], n))] = n
        node[begin:end] = row
        leads = top[wanted.first[p] : wanted.first[p + 1]]
        # whom nobody names as a leader the planner finds one for
        leader[p] = row.index(int(leads[0])) if len(leads) and leads[0] >= 0 else -1
    target = before.replaced(node, leader)
    return plan(replace(cluster, placement=before), target, throttle=throttle, protocol=protocol)


def alike(domain: NDArray[np.int32], one: int, other: int) -> int:
    """Return how many domains two nodes share; -1 where one is none. ``domain`` is (L, N)."""
    if one < 0:
        return -1
    return int(np.count_nonzero((domain[:, one] == domain[:, other]) & (domain[:, one] >= 0)))


def _widened(start: Placement, width: NDArray[np.integer]) -> Placement:
    """Return a placement with more slots in some rows, empty ones at their ends."""
    if np.array_equal(width, np.diff(start.first)):
        return start
    first = np.zeros(len(width) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    at = first[start.owner] + np.arange(len(start.node)) - start.first[start.owner]
    node = np.full(int(first[-1]), -1, np.int32)
    role = np.full(len(node), Role.VOTER, np.uint8)
    flags = np.zeros(len(node), np.uint16)
    node[at], role[at], flags[at] = start.node, start.role, start.flags
    return Placement(
        read_only(first), read_only(node), read_only(role), read_only(flags), start.leader
    )
