"""Arrivals: whether replicas may go where steps send them, and may leave where they are."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import stands
from evenkeel.model.placement import Flag, Placement
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.steps import StepKind


def check_arrivals(found: Findings, target: Placement | None) -> None:
    """Find copies to nodes that receive none, or that are forbidden to the partition.

    Where the target itself stands the plan has no choice, unless the node is dead.
    """
    steps, cluster = found.timeline.steps, found.cluster
    nodes = cluster.nodes
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    partition, node = steps.partition[copies], steps.target[copies]
    wanted = np.zeros(len(copies), bool) if target is None else stands(target, partition, node)
    dead = ~(nodes.alive & ~nodes.gone)[node]
    _breach(found, "not_accepted", copies[dead | (~nodes.may_receive[node] & ~wanted)])
    if len(cluster.forbidden):
        forbidden = cluster.forbidden.astype(np.int64) @ np.array([len(nodes), 1])
        pair = partition.astype(np.int64) * len(nodes) + node
        _breach(found, "forbidden", copies[np.isin(pair, forbidden) & ~wanted])


def check_pins(found: Findings, target: Placement | None) -> None:
    """Find pinned replicas that leave their nodes, unless the target takes them from there."""
    steps, start = found.timeline.steps, found.cluster.placement
    if not start.flags.any():
        return
    leaves = np.isin(found.timeline.kind, (StepKind.DEMOTE, StepKind.SWAP, StepKind.REMOVE))
    pinned = (start.flags[steps.replica] & Flag.PINNED) != 0
    at_home = (start.node[steps.replica] == steps.source) & (steps.source >= 0)
    which = np.flatnonzero(leaves & pinned & at_home)
    if target is not None:
        which = which[stands(target, steps.partition[which], steps.source[which])]
    _breach(found, "pinned", which, leaving=True)


def _breach(found: Findings, kind: str, step: NDArray[np.intp], *, leaving: bool = False) -> None:
    steps = found.timeline.steps
    node = steps.source if leaving else steps.target
    found.breach(
        kind, step, found.timeline.start[step], partition=steps.partition[step], node=node[step]
    )
