"""Outcome: the placement that steps lead to, intermediate roles, and blocked replicas."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.steps import StepKind, Steps


def outcome(
    start: Placement, steps: Steps, target: Placement, some: NDArray[np.intp] | None = None
) -> Placement:
    """Return where replicas stand, and who leads, once all steps are done, or ``some`` of them.

    What is copied and neither promoted nor swapped yet is flagged as incoming. Other flags of
    replicas that have reached the nodes of the target are those of the target.
    """
    rows = np.arange(len(steps)) if some is None else some
    kind, replica, to = steps.kind[rows], steps.replica[rows], steps.target[rows]
    node, role, leader = start.node.copy(), start.role.copy(), start.leader.copy()
    # of several the last one counts: assignment goes in the order of the steps
    node[replica[kind == StepKind.REMOVE]] = -1
    copied = kind == StepKind.COPY
    node[replica[copied]] = to[copied]
    touched = np.unique(steps.partition[rows])
    leader[touched[start.leader_node[touched] < 0]] = -1
    led = np.flatnonzero(kind == StepKind.LEAD)
    # what comes in place of a leader that died does not lead by that
    left = touched[start.leader_node[touched] >= 0]
    at = start.leader_replica[left]
    leader[left[(node[at] >= 0) & (node[at] != start.node[at])]] = -1
    partition = steps.partition[rows[led]]
    leader[partition] = (replica[led] - start.first[partition]).astype(leader.dtype)
    # a dropped leader has no successor
    gone = np.flatnonzero(leader >= 0)
    gone = gone[node[start.first[gone] + leader[gone]] < 0]
    leader[gone] = np.where(start.leader[gone] == leader[gone], leader[gone], -1)
    flags = start.flags.copy()
    done = np.zeros(len(node), bool)
    done[replica] = True
    done &= node == target.node
    flags[done] = target.flags[done]
    # what was nowhere, or is nowhere now, has its role in the target
    done &= (start.node < 0) | (node < 0)
    role[done] = target.role[done]
    recast = np.flatnonzero(steps.in_place[rows])
    rises = kind[recast] == StepKind.PROMOTE
    role[replica[recast]] = np.where(rises, Role.VOTER, Role.NON_VOTER)
    coming = np.zeros(len(node), bool)
    coming[replica[copied]] = True
    served = np.flatnonzero((kind == StepKind.PROMOTE) | (kind == StepKind.SWAP))
    coming[replica[served[to[served] == node[replica[served]]]]] = False
    flags[coming] |= np.uint16(Flag.INCOMING)
    return Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader)
    )


def roles_of(start: Placement, steps: Steps, target: Placement) -> NDArray[np.uint8]:
    """Return the role of each step's replica as the step begins, (S,)."""
    begin = np.where(start.node >= 0, start.role, target.role)
    role = begin[steps.replica]
    recast = np.flatnonzero(steps.in_place)
    if len(recast) == 0:
        return role
    own = np.zeros(len(steps), bool)
    own[recast] = True
    order = np.argsort(steps.replica, kind="stable")
    # the last change of a role before each step of the same replica
    last = np.maximum.accumulate(np.where(own[order], np.arange(len(order)), -1))
    opens = np.flatnonzero(np.diff(steps.replica[order], prepend=-1))
    begins = np.repeat(opens, np.diff(np.append(opens, len(order))))
    before = np.append(-1, last[:-1])[: len(order)]
    some = np.flatnonzero(before >= begins)
    rises = steps.kind[order[before[some]]] == StepKind.PROMOTE
    role[order[some]] = np.where(rises, Role.VOTER, Role.NON_VOTER)
    return role


@dataclass(frozen=True)
class Blocked:
    """A replica that the plan leaves where it is, or as it is, and why.

    Parameters
    ----------
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    source, target : str or None
        Nodes that it should leave and join; the same for what is no move.
    lacks : str
        What it waits for in vain.
    circle : int
        Moves with the same number wait for one another; -1: it waits for one of those.
    change : str
        What should become of it: "move", or where it is "lead", "promote" or "demote".

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[2.0]] * 2, load=[[2.0]] * 2, placement=[[0], [1]])
    >>> swapped = c.placement.replaced(c.placement.node[::-1].copy(), c.placement.leader)
    >>> for one in ek.plan(c, swapped).blocked:
    ...     print(one)
    p0[0] n0 -> n1: no room on n1 in d0
    p1[0] n1 -> n0: no room on n0 in d0
    """

    partition: str
    slot: int
    source: str | None
    target: str | None
    lacks: str
    circle: int
    change: str = "move"

    @property
    def way(self) -> str:
        """From where to where it should go, or what it should become where it is."""
        if self.change != "move":
            return f"{self.change} on {self.target}"
        return f"{self.source or 'nowhere'} -> {self.target or 'nowhere'}"

    def __str__(self) -> str:
        return f"{self.partition}[{self.slot}] {self.way}: no {self.lacks}"
