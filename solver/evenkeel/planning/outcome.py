"""Outcome: the placement that steps lead to."""

import numpy as np

from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.steps import StepKind, Steps


def outcome(start: Placement, steps: Steps, target: Placement) -> Placement:
    """Return where replicas stand, and who leads, once all of some settled steps are done.

    Roles and flags of replicas that have reached the nodes of the target are those of the target.
    """
    node, leader = start.node.copy(), start.leader.copy()
    for kinds, to in (
        ((StepKind.REMOVE,), np.full(len(steps), -1, np.int32)), ((StepKind.COPY,), steps.target),
    ):  # fmt: skip
        # of several the last one counts: assignment goes in the order of the steps
        which = np.flatnonzero(np.isin(steps.kind, kinds))
        node[steps.replica[which]] = to[which]
    touched = np.unique(steps.partition)
    leader[touched[start.leader_node[touched] < 0]] = -1
    led = np.flatnonzero(steps.kind == StepKind.LEAD)
    partition = steps.partition[led]
    leader[partition] = (steps.replica[led] - start.first[partition]).astype(leader.dtype)
    # a leader that was dropped has left nobody behind
    gone = np.flatnonzero(leader >= 0)
    gone = gone[node[start.first[gone] + leader[gone]] < 0]
    leader[gone] = np.where(start.leader[gone] == leader[gone], leader[gone], -1)
    role, flags = start.role.copy(), start.flags.copy()
    done = np.zeros(len(node), bool)
    done[steps.replica] = True
    done &= node == target.node
    role[done], flags[done] = target.role[done], target.flags[done]
    return Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader)
    )
