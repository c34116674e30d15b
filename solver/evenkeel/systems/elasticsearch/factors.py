"""Indices that are to have more or fewer copies: the settings that a plan writes for them.

``number_of_replicas`` is raised before copies are allocated. Elasticsearch would then place them
itself, so ``index.routing.allocation.enable`` is ``none`` meanwhile, which commands override. A
copy that is given up is cancelled first, since lowering the number removes unassigned copies before
others, and else those that Elasticsearch chooses.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import printable

ENABLE = "index.routing.allocation.enable"
NUMBER = "index.number_of_replicas"


class Factor(NamedTuple):
    """Copies of each shard of an index that may lead, as listed and as wanted."""

    before: int
    after: int


def factors_of(faults: FaultList, cluster: Cluster) -> Mapping[str, Factor]:
    """Return the indices for which other numbers of copies are wanted than are listed."""
    native = cluster.native
    if not (isinstance(native, dict) and isinstance(native.get("shards"), list)):
        return {}
    listed: dict[str, list[int]] = {}
    for row in native["shards"]:
        counts = listed.setdefault(f"{row['index']}/{int(row['shard'])}", [0, 0])
        counts[row.get("prirep") == "s"] += 1
    found: dict[str, set[Factor]] = {}
    for name, wanted in zip(
        cluster.partitions.names, cluster.partitions.replicas.tolist(), strict=True
    ):
        may_lead, searching = listed.get(name, (wanted, 0))
        index = name.rpartition("/")[0]
        found.setdefault(index, set()).add(Factor(may_lead, wanted - searching))
    changed = {}
    for index, own in found.items():
        factor = next(iter(own))
        if all(one.before == one.after for one in own):
            continue
        if len(own) > 1:
            faults.add(index, sorted(own), "must have as many copies of each of its shards")
        elif index in native.get("expanding", ()):
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
