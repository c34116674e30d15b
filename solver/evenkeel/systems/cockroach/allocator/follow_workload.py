"""Where requests come from: leases follow the workload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenkeel.systems.cockroach.allocator.equivalence_classes import Site, Tiers, diversity
from evenkeel_kernels.cockroach.leases.follow_workload import Workload
from evenkeel_kernels.cockroach.tables import Localities


@dataclass(frozen=True)
class Requests:
    """Where the requests for one range came from.

    Parameters
    ----------
    rate : mapping of tuple of (str, str) to float
        Requests per second from each locality.
    seconds : float
        What the statistics cover. Below 30 no lease moves for their sake, nor for that of counts.

    Examples
    --------
    >>> Requests({(("region", "us"),): 12.5}).seconds
    inf
    """

    rate: Mapping[Tiers, float]
    seconds: float = float("inf")


def workload_of(
    sites: Sequence[Site],
    localities: Localities,
    requests: Sequence[Requests | None],
    *,
    latency: ArrayLike = 0.0,
    eagerness: float = 1.0,
) -> Workload:
    """Lay out for kernels where requests come from.

    Examples
    --------
    >>> from evenkeel.systems.cockroach.allocator.equivalence_classes import localities_of
    >>> sites = [Site(1, (("region", "us"),)), Site(2, (("region", "eu"),))]
    >>> found = workload_of(sites, localities_of(sites, []), [Requests({(("region", "eu"),): 3.0})])
    >>> found.near.tolist(), found.rate.tolist()
    ([[0.0, 1.0]], [3.0])
    """
    number: dict[Tiers, int] = {}
    first, origin, rate, seconds = [0], [], [], []
    for one in requests:
        for tiers, per_second in one.rate.items() if one is not None else ():
            origin.append(number.setdefault(tiers, len(number)))
            rate.append(per_second)
        first.append(len(origin))
        seconds.append(-1.0 if one is None else one.seconds)
    near = np.zeros((len(number), len(localities.pair)))
    located = np.zeros(len(localities.pair), np.bool_)
    for a, begin in enumerate(localities.class_first[:-1]):
        site = sites[localities.class_store[begin]]
        located[a] = bool(site.locality)
        for tiers, o in number.items():
            values = [value for _, value in tiers]
            near[o, a] = 1.0 - diversity(site.values[:-1], values)
    hosts = len(localities.host_first) - 1
    return Workload(
        np.array(first, np.int64),
        np.array(origin, np.int32),
        np.array(rate, np.float64),
        np.array(seconds, np.float64),
        near,
        located,
        np.ascontiguousarray(np.broadcast_to(np.asarray(latency, np.float64), (hosts, hosts))),
        float(eagerness),
    )


def no_workload(localities: Localities) -> Workload:
    """Return that nothing is known of where requests come from.

    Examples
    --------
    >>> from evenkeel.systems.cockroach.allocator.equivalence_classes import localities_of
    >>> len(no_workload(localities_of([Site(1)], [])).seconds)
    0
    """
    classes = len(localities.pair)
    return Workload(
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, classes)),
        np.zeros(classes, np.bool_),
        np.zeros((1, 1)),
        1.0,
    )
