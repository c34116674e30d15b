"""Binding: events as a person writes them, turned into what happens to nodes by number."""

from collections.abc import Sequence

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.containers import items_of
from evenkeel.simulate.events.event import Event
from evenkeel.simulate.events.newcomers import with_newcomers


def bound(
    faults: FaultList, cluster: Cluster, events: Sequence[Event]
) -> tuple[Cluster, tuple[Event, ...]]:
    """Return a cluster with all nodes that will ever be, and what happens to it, by number.

    Examples
    --------
    >>> from evenkeel.simulate.events.catalogue import NodesDown
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[])
    >>> [event.nodes for event in bound(FaultList(), c, [NodesDown(nodes="n2")])[1]]
    [[2]]
    """
    given = items_of(faults, "events", events)
    cluster = with_newcomers(faults, cluster, given)
    found: list[Event] = []
    for i, event in enumerate(given):
        if isinstance(event, Event):
            found += event.bound(faults, f"events[{i}]", cluster)
        else:
            faults.add(f"events[{i}]", event, "must be an event")
    return cluster, tuple(found)
