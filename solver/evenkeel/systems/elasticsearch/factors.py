"""Write the settings of indices whose number of copies a plan changes.

``number_of_replicas`` is raised before copies are allocated. Elasticsearch would then place them
itself, so ``index.routing.allocation.enable`` is ``none`` meanwhile, which commands override. A
copy that is given up is cancelled first, since lowering the number removes unassigned copies before
others, and else those that Elasticsearch chooses.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import printable
from evenkeel.systems.elasticsearch.shards import native_of

ENABLE = "index.routing.allocation.enable"
NUMBER = "index.number_of_replicas"


class Factor(NamedTuple):
    """Copies of each shard of an index that may lead, as listed and as wanted."""

    before: int
    after: int


def listed(cluster: Cluster) -> NDArray[np.int32]:
    """Return how many copies the listing has of each shard, (P,); those wanted without one."""
    there = _counted(cluster, {"p", "r", "s", None})
    return np.where(there > 0, there, cluster.partitions.replicas)


def _counted(cluster: Cluster, kinds: Collection[str | None]) -> NDArray[np.int32]:
    """Return how many copies of some kinds the listing has of each shard, (P,)."""
    counts = Counter(
        f"{row['index']}/{int(row['shard'])}"
        for row in native_of(cluster)["shards"]
        if row.get("prirep") in kinds
    )
    return np.array([counts[name] for name in cluster.partitions.names], np.int32)


def factors_of(faults: FaultList, cluster: Cluster) -> Mapping[str, Factor]:
    """Return the indices for which other numbers of copies are wanted than are listed."""
    there, wanted = listed(cluster), cluster.partitions.replicas
    if np.array_equal(there, wanted):
        return {}
    searching = _counted(cluster, {"s"})
    found: dict[str, set[Factor]] = {}
    for name, before, after in zip(
        cluster.partitions.names, (there - searching).tolist(), (wanted - searching).tolist(),
        strict=True,
    ):  # fmt: skip
        found.setdefault(name.rpartition("/")[0], set()).add(Factor(before, after))
    changed = {}
    for index, own in found.items():
        factor = next(iter(own))
        if all(one.before == one.after for one in own):
            continue
        if len(own) > 1:
            faults.add(index, sorted(own), "must have as many copies of each of its shards")
        elif index in cluster.native.get("expanding", ()):
            message = "sets number_of_replicas by index.auto_expand_replicas: change that instead"
            faults.add(index, factor.after, message)
        elif factor.after < 1:
            faults.add(index, factor.after, "must keep a copy that is no search replica")
        else:
            changed[index] = factor
    return changed


def path_of(index: str) -> str:
    """Return the path of the settings of an index.

    >>> path_of("logs-2026.11")
    '/logs-2026.11/_settings'
    """
    return f"/{quote(index, safe='')}/_settings"


def held_back(copies: int) -> bytes:
    """Return the settings of an index with so many copies, none of which Elasticsearch places."""
    return _encoded({NUMBER: copies - 1, ENABLE: "none"})


def let_go(copies: int, enable: str | None) -> bytes:
    """Return the settings of an index with so many copies, allocated as before."""
    return _encoded({NUMBER: copies - 1, ENABLE: enable})


def numbered_only(copies: int) -> bytes:
    """Return the settings of an index with so many copies."""
    return _encoded({NUMBER: copies - 1})


def freed_only(enable: str | None) -> bytes:
    """Return the settings of an index whose copies Elasticsearch places as before."""
    return _encoded({ENABLE: enable})


def enable_of(cluster: Cluster, index: str) -> str | None:
    """Return what the index has for ``index.routing.allocation.enable``, None for nothing."""
    value = cluster.native.get("enable", {}).get(index)
    return None if value is None else printable(str(value))


def _encoded(settings: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(settings)
