"""Events: what happens to a cluster from outside, and when. This is their door."""

from evenkeel.simulate.events.domains import DomainLost, RollingUpgrade
from evenkeel.simulate.events.event import Event
from evenkeel.simulate.events.loads import HotSpot, LoadBecomes, LoadDrift
from evenkeel.simulate.events.newcomers import NodesAdded
from evenkeel.simulate.events.nodes import (
    NodesBack,
    NodesBecome,
    NodesDown,
    NodesDrained,
    NodesGone,
    NodesTurn,
    Overloaded,
)
from evenkeel.simulate.events.partitions import Growth, Rewrite, Split, SplitBusy

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
