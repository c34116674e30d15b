"""Read and check the columns of nodes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import MOST, Given, Sizes
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.arrays import (
    as_array,
    check_amounts,
    check_range,
    column,
    entries_of,
    list_entries,
    node_or_none,
    read_only,
)
from evenkeel.model.topology import NODE_TIER, Topology, read_labels

# one value per node: its type, and its default or the column that it follows by default
COLUMNS: Mapping[str, tuple[type[np.generic], Any]] = {
    "alive": (np.bool_, True),
    "accepts": (np.bool_, "alive"),
    "keeps": (np.bool_, "alive"),
    "leads": (np.bool_, "alive"),
    "gone": (np.bool_, False),
    "since": (np.float64, np.nan),
    "weight": (np.float64, 1.0),
    "lead_weight": (np.float64, 1.0),
    "max_replicas": (np.int32, -1),
    "stands_for": (np.int32, -1),
}


def read_nodes(
    faults: FaultList, given: Given, sizes: Sizes, topology: Topology, base: Nodes | None
) -> Nodes:
    """Read given columns of nodes; others are the base's, or else defaults."""
    count = sizes.nodes
    read: dict[str, Any] = {}
    if base is None or "node_names" in given:
        read["names"] = Names.read(faults, "node_names", given.get("node_names"), count, "n")
    for name in ("capacity", "watermark"):
        if base is None or name in given:
            read[name] = _amounts(faults, sizes, name, given.get(name))
    for name, (dtype, default) in COLUMNS.items():
        if base is None or name in given:
            usual = read[default] if isinstance(default, str) and default in read else default
            if isinstance(usual, str):
                usual = getattr(base, usual)
            read[name] = column(faults, count, name, given.get(name), dtype, usual)
    if base is None or "tags" in given:
        tags = {} if given.get("tags") is None else entries_of(faults, "tags", given["tags"])
        read["tags"] = {
            tag: read_only(as_array(faults, f"tags[{tag!r}]", at, np.bool_, (count,)))
            for tag, at in tags.items()
        }
    if base is None or "attributes" in given:
        read["attributes"] = _attributes(faults, given.get("attributes"), topology, count)
    if base is not None and not read:
        return base
    return Nodes(**read) if base is None else replace(base, **read)


def check_nodes(faults: FaultList, nodes: Nodes) -> None:
    """Note values that no node can have."""
    for name in ("capacity", "watermark"):
        check_amounts(faults, name, getattr(nodes, name), infinite=True)
    for name in ("weight", "lead_weight"):
        check_amounts(faults, name, getattr(nodes, name), infinite=False)
    list_entries(
        faults, "since", nodes.since, np.isinf(nodes.since) | (nodes.since < 0.0),
        "must be a time from 0 on, or NaN where it is not known",
    )  # fmt: skip
    check_range(faults, "max_replicas", nodes.max_replicas, -1, MOST, "must be 0 or more, or -1")
    check_range(faults, "stands_for", nodes.stands_for, -1, len(nodes), node_or_none(len(nodes)))


def _amounts(
    faults: FaultList, sizes: Sizes, path: str, given: ArrayLike | None
) -> NDArray[np.float64]:
    shape = (sizes.nodes, sizes.dimensions)
    if given is None and path == "watermark":
        return read_only(np.full(shape, np.inf))
    return read_only(as_array(faults, path, [] if given is None else given, np.float64, shape))


def _attributes(
    faults: FaultList, given: Any, topology: Topology, nodes: int
) -> dict[str, tuple[NDArray[np.int32], tuple[str, ...]]]:
    found = {}
    for key, labels in ({} if given is None else entries_of(faults, "attributes", given)).items():
        path = f"attributes[{key!r}]"
        if key in (*topology.tiers, NODE_TIER):
            faults.add(path, key, "is the name of a tier")
        found[key] = read_labels(faults, path, labels, nodes)
    return found
