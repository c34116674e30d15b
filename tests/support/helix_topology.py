"""Derive the two levels that the CRUSH strategies use from instance configurations.

References
----------
Apache Helix, ``ClusterTopologyConfig`` and ``Topology``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.tree import BadTopology


@dataclass(frozen=True, eq=False)
class Places:
    """Where the instances stand."""

    kept: NDArray[np.int64]  # the instances that take part, (N,)
    names: tuple[str, ...]  # their names in the topology
    # their fault zones; None where every node is a fault zone of its own
    zones: tuple[str, ...] | None


def flat(instances: Sequence[str]) -> Places:
    """Place the instances of a cluster that is not topology-aware.

    >>> flat(["i1", "i2"]).zones is None
    True
    """
    return Places(np.arange(len(instances)), tuple(instances), None)


def by_path(
    instances: Sequence[str],
    domains: Sequence[str | None],
    enabled: Sequence[bool],
    topology: str,
    fault_zone: str | None = None,
) -> Places:
    """Place the instances of a topology-aware cluster by its topology path.

    >>> domains = ["zone=z1,host=h1", "host=h2"]
    >>> places = by_path(["a", "b"], domains, [True, True], "/zone/host", "zone")
    >>> places.names, places.zones
    (('h1', 'h2'), ('z1', 'Default_zone'))
    """
    keys = [key for key in topology.strip("/").split("/") if key]
    if not keys:
        raise BadTopology(f"topology {topology!r} names no level")
    leaf = keys[-1]
    zone = leaf if fault_zone is None else fault_zone
    if zone not in keys:
        raise BadTopology(f"fault zone {zone!r} is none of {', '.join(keys)}")
    kept = [i for i, domain in enumerate(domains) if domain]
    named = [repr(instances[i]) for i in range(len(instances)) if i not in kept and enabled[i]]
    if named:
        raise BadTopology(f"enabled instances without a domain: {', '.join(named)}")
    found = [_parsed(instances[i], str(domains[i])) for i in kept]
    names = tuple(values.get(leaf, f"Default_{leaf}") for values in found)
    zones = tuple(values.get(zone, f"Default_{zone}") for values in found)
    return Places(np.array(kept, np.int64), names, None if zone == leaf else zones)


def _parsed(instance: str, domain: str) -> Mapping[str, str]:
    pairs = [pair.split("=") for pair in domain.split(",")]
    if any(len(pair) != 2 or not pair[0].strip() for pair in pairs):
        raise BadTopology(f"domain {domain!r} of {instance!r} is no list of key=value")
    return {key.strip(): value.strip() for key, value in pairs}
