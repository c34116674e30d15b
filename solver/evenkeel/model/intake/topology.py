"""Topology in: labels by tier, what domains hold together, and how far apart nodes are."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.sizes import Given, Sizes
from evenkeel.model.reading.arrays import as_array, check_amounts, read_only, shape_of
from evenkeel.model.reading.containers import entries_of
from evenkeel.model.topology import Topology

SHAPE = ("domains", "crossing")


def read_topology(faults: FaultList, given: Given, sizes: Sizes, base: Topology | None) -> Topology:
    """Read what is given of the topology; the rest is the base's, or else by default."""
    topology = base
    if topology is None or any(name in given for name in SHAPE):
        domains, crossing = given.get("domains"), given.get("crossing")
        if base is not None:
            domains = given.get("domains", labels_by_tier(base))
            crossing = given.get("crossing", list(base.crossing))
        topology = Topology.read(faults, domains, sizes.nodes, () if crossing is None else crossing)
        if base is not None and base.tier_capacity and "tier_capacity" not in given:
            faults.add("tier_capacity", list(base.tier_capacity), "must be given for new domains")
    if base is None or "tier_capacity" in given:
        shared = _shared(faults, given.get("tier_capacity"), topology, sizes.dimensions)
        topology = replace(topology, tier_capacity=shared)
    if given.get("tier_distance") is not None:
        topology = replace(topology, tier_distance=_distance(faults, given, topology))
    return topology


def check_topology(faults: FaultList, topology: Topology) -> None:
    """Note capacities and distances that no domain can have."""
    for tier, amounts in topology.tier_capacity.items():
        check_amounts(faults, f"tier_capacity[{tier!r}]", amounts, infinite=True)
    check_amounts(faults, "tier_distance", topology.tier_distance, infinite=False)


def labels_by_tier(topology: Topology) -> dict[str, list[str | None]]:
    """Return the label of each node on each tier, None where it has none."""
    return {
        tier: [topology.label_names[i][code] if code >= 0 else None for code in row.tolist()]
        for i, (tier, row) in enumerate(zip(topology.tiers, topology.label, strict=True))
    }


def _shared(
    faults: FaultList, given: Any, topology: Topology, dimensions: int
) -> dict[str, NDArray[np.float64]]:
    """Return what the nodes of a domain hold together."""
    shared = {}
    labelled = not faults.about("domains")
    listed = {} if given is None else entries_of(faults, "tier_capacity", given)
    for tier, amounts in listed.items():
        path = f"tier_capacity[{tier!r}]"
        if tier in topology.tiers:
            domains = int(topology.domain_count[topology.tier_index(tier)])
            shape = (domains if labelled else None, dimensions)
            shared[tier] = read_only(as_array(faults, path, amounts, np.float64, shape))
        elif labelled:
            faults.add(path, tier, f"unknown tier; known: {list(topology.tiers)}")
    return shared


def _distance(faults: FaultList, given: Given, topology: Topology) -> NDArray[np.float64]:
    told = given["tier_distance"]
    nodes = topology.domain.shape[1]
    pairs = len(shape_of(told)) == 2
    wanted = (nodes, nodes) if pairs else (len(topology) + 1,)
    return read_only(as_array(faults, "tier_distance", told, np.float64, wanted))
