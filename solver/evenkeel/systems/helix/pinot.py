"""Apache Pinot's tables: which servers may hold segments, and what only Pinot itself places.

The ideal state of a table is CUSTOMIZED, so Helix looks at no tag and no limit of it, and its
INSTANCE_GROUP_TAG is the name of the table. Which servers are meant stands in the table's
configuration (``PROPERTYSTORE/CONFIGS/TABLE``), or else in the tags that those servers share.

References
----------
Apache Pinot, ``PinotTableIdealStateBuilder``, ``InstanceTypeUtils``, ``TagNameUtils``,
``TenantConfig``, ``InstancePartitions``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from evenkeel.systems.helix.records import Found, Records

SEGMENTS = "SegmentOnlineOfflineStateModel"
BROKERS = "BrokerResourceOnlineOfflineStateModel"
LEAD_CONTROLLERS = "leadControllerResource"
"""The resource by which the controllers of Pinot divide tables among themselves."""

CONSUMING = "CONSUMING"
"""The state of a segment that still takes rows; Pinot chooses its servers."""

OTHER_KINDS = ("Controller_", "Broker_", "Minion_")
"""How instances that are no servers are called."""

TOGETHER = (
    "of table {} that segments belong together (by upserts, deduplication, or partitions of the "
    "servers): what is there stays; rebalance it by Pinot"
)
UNTAGGED = "no server with the tenant tag of table {}: what is there stays"
INFERRED = (
    "no configuration of table {} (PROPERTYSTORE/CONFIGS/TABLE): segments go to servers with "
    "the tenant tags that its servers share, and no upserts are assumed"
)
DERIVED = "of {}, which Pinot derives from the tags of brokers: what is there stays"
OF_CONTROLLERS = "of {}, which Helix places on live controllers: what is there stays"
PINNED = "of segments of {} that are being consumed: Pinot chooses their servers, live ones stay"


class Servers(NamedTuple):
    """The servers that may hold a table, as a tag, and its replica groups if it has several."""

    tag: str
    instances: frozenset[str]
    groups: tuple[frozenset[str], ...] = ()


def servers_of(records: Records, found: Found, holders: Iterable[str]) -> Servers | None:
    """Return the servers that may hold a table's segments; None, noted, if unknown."""
    name = found.record.id
    raw, _, kind = name.rpartition("_")
    servers = {one for one in records.instance if not one.startswith(OTHER_KINDS)}
    config = records.table.get(name)
    if config is not None and any(
        _fields_of(config, key) for key in ("upsertConfig", "dedupConfig")
    ):
        records.notes.add(TOGETHER, name)
        return None
    own = [f"{raw}_OFFLINE"] if kind == "OFFLINE" else [f"{raw}_COMPLETED", f"{raw}_CONSUMING"]
    listed = next((records.partitions[one] for one in own if one in records.partitions), None)
    if listed is not None and len(listed.record.listFields) > 1:
        lists = listed.record.listFields
        if any(not key.startswith("0_") for key in lists):
            records.notes.add(TOGETHER, name)
            return None
        groups = tuple(frozenset(lists[key]) & servers for key in sorted(lists))
        return Servers(f"servers of {name}", frozenset().union(*groups), groups)
    if config is not None and (tag := _tenant_tag(config, kind)):
        wanted, required = {tag}, True
    else:
        records.notes.add(INFERRED, name)
        tagged = [_tags(records, one, kind) for one in holders if one in servers]
        wanted, required = set.intersection(*tagged) if tagged else set(), True
        if not wanted:
            wanted, required = {tag for one in tagged for tag in one}, False
    fits = wanted.issubset if required else lambda tags: not wanted.isdisjoint(tags)
    homes = frozenset(one for one in servers if not wanted or fits(_tags(records, one, kind)))
    if not homes:
        records.notes.add(UNTAGGED, name)
        return None
    return Servers(", ".join(["servers", *(f"tagged {one}" for one in sorted(wanted))]), homes)


def _tags(records: Records, instance: str, kind: str) -> set[str]:
    """Return the tags of a server by which it serves tables of a kind, OFFLINE or REALTIME."""
    listed = records.instance[instance].record.listFields.get("TAG_LIST", ())
    return {tag for tag in listed if tag.endswith(f"_{kind}")}


def _fields_of(config: Found, name: str) -> dict[str, object]:
    """Return a part of a table's configuration, which is JSON in a text; {} if it is empty."""
    try:
        parsed = msgspec.json.decode(config.text(name) or "{}", type=dict[str, object] | None) or {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return {} if parsed.get("mode") == "NONE" or parsed.get("dedupEnabled") is False else parsed


def _tenant_tag(config: Found, kind: str) -> str:
    """Return the tag of the servers that hold what is complete; "" if there is none."""
    tenants = _fields_of(config, "tenants")
    override = tenants.get("tagOverrideConfig")
    if kind == "REALTIME" and isinstance(override, dict) and override.get("realtimeCompleted"):
        return str(override["realtimeCompleted"])
    return f"{tenants['server']}_{kind}" if tenants.get("server") else ""
