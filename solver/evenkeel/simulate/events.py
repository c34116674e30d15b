"""Events: what happens to a cluster from outside, and when. This is their door."""

from evenkeel.simulate.domain_events import DomainLost, RollingUpgrade
from evenkeel.simulate.event import Event
from evenkeel.simulate.newcomers import NodesAdded
from evenkeel.simulate.node_events import (
    NodesBack,
    NodesBecome,
    NodesDown,
    NodesDrained,
    NodesGone,
    NodesTurn,
    Overloaded,
)
from evenkeel.simulate.partition_events import (
    Growth,
    HotSpot,
    LoadBecomes,
    LoadDrift,
    Rewrite,
    Split,
    SplitBusy,
)

__all__ = [
    "DomainLost",
    "Event",
    "Growth",
    "HotSpot",
    "LoadBecomes",
    "LoadDrift",
    "NodesAdded",
    "NodesBack",
    "NodesBecome",
    "NodesDown",
    "NodesDrained",
    "NodesGone",
    "NodesTurn",
    "Overloaded",
    "Rewrite",
    "RollingUpgrade",
    "Split",
    "SplitBusy",
]
