"""What dumps show of the partitions of a plan, by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.systems.registry import find, is_known, taken_apart

if TYPE_CHECKING:
    from evenkeel.systems.documents import Document


class Standing(NamedTuple):
    """Where one partition is seen: its nodes, who leads ("" for none), whether it is copied.

    ``behind`` are those of its nodes that live and are not in sync, where others are seen to be.
    """

    nodes: Sequence[str]
    leader: str
    copying: bool
    behind: Sequence[str] = ()


class Observed(NamedTuple):
    """What is seen of a system: which of its nodes live, and where partitions stand."""

    alive: Mapping[str, bool]
    standing: Mapping[str, Standing]


Observing = Callable[["Sequence[Document]"], Observed]
"""``observe(documents)``: what is seen of all partitions."""


def names_all_nodes(format: str, documents: "Sequence[Document]") -> bool:
    """Return whether dumps name every node of their system, so that one they do not name is gone.

    What none of the systems wrote that carry out plans may leave out who holds nothing.
    """
    if not is_known(format):
        return False
    system = find(format)
    carrier = system.carrier
    return carrier is not None and carrier.lists_nodes(taken_apart(documents, [system]))


def observed(live: Cluster) -> Observed:
    """Return what a cluster that was read shows of its partitions."""
    names = [*live.nodes.names]
    placement = live.placement
    first, node = placement.first.tolist(), placement.node.tolist()
    arriving = placement.flags & int(Flag.INCOMING) > 0
    synced = placement.flags & int(Flag.CAUGHT_UP) > 0
    reported = np.bincount(placement.owner[synced], minlength=len(placement)) > 0
    lagging = reported[placement.owner] & ~synced & ~arriving & live.nodes.alive[placement.node]
    incoming, behind = arriving.tolist(), lagging.tolist()
    leader = placement.leader_node.tolist()
    standing = {}
    for p, name in enumerate(live.partitions.names):
        held = [k for k in range(first[p], first[p + 1]) if node[k] >= 0]
        standing[name] = Standing(
            [names[node[k]] for k in held],
            names[leader[p]] if leader[p] >= 0 else "",
            any(incoming[k] for k in held),
            [names[node[k]] for k in held if behind[k]],
        )
    return Observed(dict(zip(names, live.nodes.alive.tolist(), strict=True)), standing)
