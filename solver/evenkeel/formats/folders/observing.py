"""What dumps show of the partitions of a plan, by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag

if TYPE_CHECKING:
    from evenkeel.formats.documents import Document


class Standing(NamedTuple):
    """Where one partition is seen: its nodes, who leads ("" for nobody), whether it is copied."""

    nodes: Sequence[str]
    leader: str
    copying: bool


class Observed(NamedTuple):
    """What is seen of a system: which of its nodes live, and where partitions stand."""

    alive: Mapping[str, bool]
    standing: Mapping[str, Standing]


Observing = Callable[["Sequence[Document]"], Observed]
"""``observe(documents)``: what is seen of all partitions."""


def observed(live: Cluster) -> Observed:
    """Return what a cluster that was read shows of its partitions."""
    names = [*live.nodes.names]
    placement = live.placement
    first, node = placement.first.tolist(), placement.node.tolist()
    incoming = (placement.flags & int(Flag.INCOMING) > 0).tolist()
    leader = placement.leader_node.tolist()
    standing = {}
    for p, name in enumerate(live.partitions.names):
        held = [k for k in range(first[p], first[p + 1]) if node[k] >= 0]
        standing[name] = Standing(
            [names[node[k]] for k in held],
            names[leader[p]] if leader[p] >= 0 else "",
            any(incoming[k] for k in held),
        )
    return Observed(dict(zip(names, live.nodes.alive.tolist(), strict=True)), standing)
