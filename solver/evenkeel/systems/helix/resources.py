"""Read instances and resources of Helix: tiers, tags, partitions, replicas and leaders.

Tables of Apache Pinot are resources of their own kind: some servers may hold their segments, and
some segments only Pinot itself places. The ideal state of a table is CUSTOMIZED, so Helix ignores
its tags and limits, and its INSTANCE_GROUP_TAG is the name of the table. The servers of a table are
in its configuration (``PROPERTYSTORE/CONFIGS/TABLE``), or else follow from their common tags.

References
----------
Apache Pinot, ``PinotTableIdealStateBuilder``, ``InstanceTypeUtils``, ``TagNameUtils``,
``TenantConfig``, ``InstancePartitions``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.rules import word
from evenkeel.systems.documents import quoted
from evenkeel.systems.helix.options import MASTER_SLAVE, States
from evenkeel.systems.helix.pinot import CONSUMING, OTHER_KINDS, SEGMENTS
from evenkeel.systems.helix.records import NONE, Found, Records

BROKERS = "BrokerResourceOnlineOfflineStateModel"
# the resource by which the controllers of Pinot divide tables among themselves
LEAD_CONTROLLERS = "leadControllerResource"

TOGETHER = (
    "segments of table {} belong together (by upserts, deduplication, or partitions of the "
    "servers): what is there stays; rebalance it by Pinot"
)
TIERED = (
    "segments of table {} move to servers of other tags with their age (tierConfigs): what is "
    "there stays; rebalance it by Pinot"
)
EVERYWHERE = (
    "each server of the tenant of table {} has all its segments (a dimension table): what is "
    "there stays; rebalance it by Pinot"
)
UNASSIGNED = (
    "table {} is not assigned to all servers of its tenant (INSTANCE_PARTITIONS): the "
    "others take no segment unless a rebalance by Pinot reassigns instances"
)
ASSIGNED = (
    "no tenant tag on servers {}, to which a table is assigned (INSTANCE_PARTITIONS): they keep "
    "and take segments until a rebalance by Pinot reassigns instances"
)
UNTAGGED = "no server with the tenant tag of table {}: what is there stays"
INFERRED = (
    "no configuration of table {} (PROPERTYSTORE/CONFIGS/TABLE): segments go to servers with "
    "the tenant tags that its servers share, and no upserts are assumed"
)
DERIVED = "{}, which Pinot derives from the tags of brokers: what is there stays"
OF_CONTROLLERS = "{}, which Helix places on live controllers: what is there stays"
PINNED = (
    "segments of {} that are being consumed, or that stopped and are OFFLINE: Pinot chooses "
    "their servers, live ones stay"
)


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
    config = records.table.get(name, NONE)
    held_back = {
        TOGETHER: _fields_of(config, "upsertConfig") or _fields_of(config, "dedupConfig"),
        TIERED: config.text("tierConfigs").strip() not in ("", "null", "[]"),
        EVERYWHERE: config.text("isDimTable").lower() == "true"
        or "allservers" in config.text("segmentAssignmentConfigMap").lower(),
    }
    for reason, holds in held_back.items():
        if holds:
            records.notes.add(reason, name)
            return None
    own = [f"{raw}_OFFLINE"] if kind == "OFFLINE" else [f"{raw}_COMPLETED", f"{raw}_CONSUMING"]
    given = (records.partitions[one].record.listFields for one in own if one in records.partitions)
    lists = next(given, None) or _lists_inside(found, own)
    assigned = frozenset(one for row in lists.values() for one in row) & servers
    tag = _tenant_tag(config, kind)
    tenants = {one for one in servers if tag and tag in _tags(records, one, "")}
    if _fields_of(config, "instanceAssignmentConfigMap") and assigned & tenants:
        if tenants - assigned:
            records.notes.add(UNASSIGNED, name)
        if assigned - tenants:
            records.notes.add(ASSIGNED, *sorted(assigned - tenants))
        servers = {*assigned}
    if len(lists) > 1:
        if any(not key.startswith("0_") for key in lists):
            records.notes.add(TOGETHER, name)
            return None
        groups = tuple(frozenset(lists[key]) & servers for key in sorted(lists))
        return Servers(f"servers of {name}", frozenset().union(*groups), groups)
    if tag:
        wanted, required = {tag}, True
    else:
        records.notes.add(INFERRED, name)
        tagged = [_tags(records, one, kind) for one in holders if one in servers]
        wanted, required = set.intersection(*tagged) if tagged else set(), True
        if not wanted:
            wanted, required = {tag for one in tagged for tag in one}, False
    fits = wanted.issubset if required else lambda tags: not wanted.isdisjoint(tags)
    # a table of kind REALTIME may keep what is complete on servers with a tag of OFFLINE
    homes = frozenset(one for one in servers if not wanted or fits(_tags(records, one, "")))
    if not homes:
        records.notes.add(UNTAGGED, name)
        return None
    tagged_with = f" tagged {' and '.join(sorted(wanted))}" if wanted else ""
    return Servers(f"servers{tagged_with}", homes)


def _lists_inside(found: Found, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the replica groups that an ideal state keeps itself, in later releases of Pinot."""
    fields = found.record.listFields.items()
    for name in names:
        begin = f"INSTANCE_PARTITIONS__{name}__"
        if lists := {k.removeprefix(begin): row for k, row in fields if k.startswith(begin)}:
            return lists
    return {}


def _tags(records: Records, instance: str, kind: str) -> set[str]:
    """Return the tags of a server by which it serves tables of a kind, or of all for ""."""
    listed = records.config(instance).listed("TAG_LIST")
    return {tag for tag in listed if tag.endswith(kind and f"_{kind}")}


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


MOST = 2**31 - 1  # the greatest number that Helix keeps
DEFAULT_WEIGHT = 1000
DEFAULT_ZONE = "zone"  # the tier of clusters that know fault zones and have no topology path
DISABLED = "HELIX_DISABLED_PARTITION"
# under this name an instance is disabled for the partitions of every resource
ALL_RESOURCES = "ALL_RESOURCES"

OUT_OF_SERVICE = "an operation of {}, live as they are: they count as not alive, and take nothing"
OTHER = "other"  # an operation that is not known here

# what an instance may do under each operation, beside what all may that are live
STATES: dict[str, dict[str, bool]] = {
    "ENABLE": {},
    "DISABLE": {"alive": False},
    "EVACUATE": {"accepts": False, "keeps": False},
    "SWAP_IN": {"accepts": False},
    "SWAP_OUT": {},  # of releases before 1.4: it is assigned to until the swap is complete
    "UNKNOWN": {"alive": False, "gone": True},
    OTHER: {"accepts": False},
}


def whole(faults: FaultList, found: Found, name: str, default: int = -1) -> int:
    """Return a simple field that is a whole number; the default where it is not there."""
    text = found.text(name)
    if not text:
        return default
    try:
        number = int(text) if len(text) <= 20 else MOST + 1
    except ValueError:
        number = MOST + 1
    if abs(number) > MOST:
        faults.add(found.place(name), quoted(text), "must be a whole number of 32 bits")
        return default
    return number


def is_true(found: Found, name: str, default: bool = False) -> bool:
    """Return a simple field as a truth value, as Java reads it."""
    text = found.text(name)
    return text.strip().lower() == "true" if text else default


def operation(faults: FaultList, found: Found) -> str:
    """Return the operation of an instance: the last one listed, or by its older fields."""
    listed = found.listed("HELIX_INSTANCE_OPERATIONS")
    stated = found.text("INSTANCE_OPERATION")
    if listed:
        place = f"{found.at}listFields.HELIX_INSTANCE_OPERATIONS[{len(listed) - 1}]"
        try:
            last = msgspec.json.decode(listed[-1], type=dict[str, str | int | bool | None])
            stated = str(last.get("OPERATION", ""))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            faults.add(place, quoted(listed[-1]), "must be JSON with an OPERATION")
            return "ENABLE"
    if stated and stated not in STATES:
        return OTHER
    if not is_true(found, "HELIX_ENABLED", True) and stated in ("", "ENABLE"):
        return "DISABLE"
    return stated or "ENABLE"


def states_of(
    faults: FaultList, records: Records, names: Sequence[str], now: float | None
) -> dict[str, Any]:
    """Return what each instance may do: by its operation, and by whether it is live."""
    # one that is down keeps its places while its delay window is open, which takes ``now`` to know
    cluster = records.settings
    columns = {name: np.ones(len(names), np.bool_) for name in ("alive", "accepts", "keeps")}
    gone, since = np.zeros(len(names), np.bool_), np.full(len(names), np.nan)
    disabled = cluster.rows("DISABLED_INSTANCES")
    delay = whole(faults, cluster, "DELAY_REBALANCE_TIME", 0)
    if not cluster.text("DELAY_REBALANCE_TIME"):
        # an instance holds replicas of several resources: the one that waits least counts
        delay = min((_delay_of(faults, one) for one in records.ideal.values()), default=0)
    delayed = delay > 0 and is_true(cluster, "DELAY_REBALANCE_ENABLED", True)
    demanded = _moment(faults, cluster, "LAST_ON_DEMAND_REBALANCE_TIMESTAMP")
    for n, name in enumerate(names):
        found = records.config(name)
        done = operation(faults, found)
        # the cluster's record disables many at once
        if done == "ENABLE" and (name in disabled or records.is_listed_disabled(name)):
            done = "DISABLE"
        if done == OTHER:
            records.notes.add(
                "an operation that is not known here of {}: it takes nothing new", name
            )
        live = records.is_live(name)
        unknown = bool(records.instance) and name not in records.instance
        may = {"alive": live, "gone": unknown} | STATES[done]
        alive = live and may["alive"]
        if live and not alive and done in STATES:
            records.notes.add(OUT_OF_SERVICE, f"{name} ({done})")
        moments = [_moment(faults, found, "HELIX_ENABLED_TIMESTAMP")] if done == "DISABLE" else []
        if _is_moment(disabled.get(name, "")):
            moments.append(int(disabled[name]) / 1000.0)
        if not live:
            moments.append(_moment(faults, records.history.get(name, NONE), "LAST_OFFLINE_TIME"))
        known = [moment for moment in moments if moment >= 0.0]
        since[n] = min(known, default=np.nan)
        own = delayed and is_true(found, "DELAY_REBALANCE_ENABLED", True) and now is not None
        own = own and all(moment >= demanded for moment in known)
        waits = own and bool(known) and since[n] + delay / 1000.0 > (now or 0.0)
        if ALL_RESOURCES in found.rows(DISABLED):
            may |= STATES["EVACUATE"]
        columns["alive"][n] = alive
        columns["accepts"][n] = alive and may.get("accepts", True)
        columns["keeps"][n] = (alive or waits) and may.get("keeps", True)
        gone[n] = may["gone"]
    return columns | {"gone": gone, "since": since}


def _delay_of(faults: FaultList, found: Found) -> int:
    """Return how long a resource waits for what is down, in milliseconds, by its own settings."""
    waits = is_true(found, "DELAY_REBALANCE_ENABLED", True)
    return whole(faults, found, "REBALANCE_DELAY", 0) if waits else 0


def _moment(faults: FaultList, found: Found, name: str) -> float:
    """Return a time in seconds; -1 if none is known."""
    text = found.text(name)
    if not text or text == "-1":
        return -1.0
    if not _is_moment(text):
        faults.add(found.place(name), quoted(text), "must be a time in milliseconds")
        return -1.0
    return int(text) / 1000.0


def _is_moment(text: str) -> bool:
    """Whether a text is a time in milliseconds."""
    return text.isascii() and text.isdecimal() and len(text) <= 15


def topology_of(
    faults: FaultList, records: Records, names: Sequence[str], enabled: Sequence[bool]
) -> tuple[dict[str, list[str]], str]:
    """Return the label of each instance per tier, and the tier of the fault zones, "" for none."""
    cluster = records.settings
    if not is_true(cluster, "TOPOLOGY_AWARE_ENABLED"):
        return {}, ""
    path = [key for key in cluster.text("TOPOLOGY").strip("/").split("/") if key]
    zone = cluster.text("FAULT_ZONE_TYPE") or (path[-1] if path else DEFAULT_ZONE)
    if path and zone not in path:
        message = f"is none of the keys of TOPOLOGY: {path}"
        faults.add(cluster.place("FAULT_ZONE_TYPE"), quoted(zone), message)
        return {}, ""
    if len({*path}) != len(path):
        faults.add(cluster.place("TOPOLOGY"), quoted(cluster.text("TOPOLOGY")), "names a key twice")
        return {}, ""
    if not path:
        zone = DEFAULT_ZONE
    needed = "DOMAIN" if path else "HELIX_ZONE_ID"
    domains: dict[str, list[str]] = {key: [] for key in path or [zone]}
    for name, on in zip(names, enabled, strict=True):
        found = records.config(name)
        text = found.text(needed)
        if not text and on and name in records.instance:
            records.closed.add(name)
            records.notes.add(
                f"no {needed} of {{}}, at which Helix stops: it takes nothing new", name
            )
        own = _pairs(faults, found, text) if path else {zone: text}
        if text and on and zone not in own:
            records.notes.add(
                f"no {zone} in the DOMAIN of {{}}: as in Helix, they are in one of their own", name
            )
        for key, labels in domains.items():
            labels.append(own.get(key) or (f"Default_{key}" if path and text else ""))
    # a key with a value of its own for every instance is the instance
    last = [*domains][-1]
    stated = [label for label in domains[last] if label]
    if stated and len({*stated}) == len(stated):
        del domains[last]
        zone = "" if zone == last else zone
    renamed = {key if key != "node" else "node domain": at for key, at in domains.items()}
    return renamed, "node domain" if zone == "node" else zone


def _pairs(faults: FaultList, found: Found, text: str) -> dict[str, str]:
    """Read ``zone=z1,rack=r2``."""
    pairs = [pair.split("=") for pair in text.split(",")] if text else []
    if any(len(pair) != 2 or not pair[0].strip() for pair in pairs):
        faults.add(found.place("DOMAIN"), quoted(text), "must be key=value, divided by commas")
        return {}
    return {key.strip(): value.strip() for key, value in pairs}


def logical_names(records: Records, names: Sequence[str]) -> list[str]:
    """Return the logical id of each instance: the last key of its topology path, or its name."""
    key = records.settings.text("TOPOLOGY").rstrip("/").rpartition("/")[2]
    if not key or not is_true(records.settings, "TOPOLOGY_AWARE_ENABLED"):
        return [*names]
    return [labels_of(records, name).get(key) or name for name in names]


def stands_for(faults: FaultList, records: Records, names: Sequence[str]) -> list[int]:
    """Return whose place each instance takes that is swapped in; -1 for none."""
    silent = FaultList()  # operations were read before
    swapped = [operation(silent, records.config(name)) == "SWAP_IN" for name in names]
    if not any(swapped):
        return [-1] * len(names)
    logical = logical_names(records, names)
    holder = {own: n for n, own in enumerate(logical) if not swapped[n]}
    places = [
        holder.get(own, -1) if swap else -1 for own, swap in zip(logical, swapped, strict=True)
    ]
    for n, swap in enumerate(swapped):
        if swap and places[n] < 0:
            records.notes.add("no instance for which {} is swapped in: it takes nothing", names[n])
    return places


def labels_of(records: Records, name: str) -> dict[str, str]:
    """Return what the DOMAIN of an instance says, whether or not the topology is of use."""
    found = records.config(name)
    return _pairs(FaultList(), found, found.text("DOMAIN"))


def tags_of(records: Records, names: Sequence[str]) -> dict[str, list[bool]]:
    """Return which instances carry each tag."""
    own = [{*records.config(name).listed("TAG_LIST")} for name in names]
    tags = sorted({tag for some in own for tag in some if tag.strip()})
    return {word(tag): [tag in some for some in own] for tag in tags}


def weights_of(faults: FaultList, records: Records, names: Sequence[str]) -> list[float]:
    """Return the weight of each instance, 1 by default."""
    stated = [whole(faults, records.config(name), "INSTANCE_WEIGHT") for name in names]
    if len({*stated}) > 1:
        records.notes.add(WEIGHTED)
    return [(weight if weight >= 0 else DEFAULT_WEIGHT) / DEFAULT_WEIGHT for weight in stated]


ALL = "ANY_LIVEINSTANCE"  # as many replicas as there are live instances
TASKS = {"Task", "ScheduledTask", "SchedulerTaskQueue"}  # state models of what is run, not held


IS_TASK = "tasks that the task framework assigns: {}; what is there stays"
USER_DEFINED = "{}, which a rebalancer of its own places (USER_DEFINED): what is there stays"
NO_MODEL = "no states of the state model of {}: what is there stays; add STATEMODELDEFS"
NO_TAG = "no instance with the tag of {}, so that none may hold it: what is there stays"
NO_NUMBER = "no number of replicas of {}: what is there stays"
NO_IDEAL_STATE = "no ideal state of {}: the external view counts for nothing"
NO_PARTITION = "partitions of {} that only an external view has: they count as gone"
NOT_SHOWN = (
    "replicas of {} on live instances that the external view does not show: they count where the "
    "ideal state has them"
)
WEIGHTED = (
    "weights of instances that differ (INSTANCE_WEIGHT): methods other than Helix's CRUSH count "
    "all instances alike, but for balance, which gives nothing new to those of weight 0"
)
TAG_IGNORED = "no instance with the tag of {}: in CUSTOMIZED Helix ignores it, and so do we"
RECONFIGURED = (
    "another number of replicas in the configuration of {} than in its ideal state: that of the "
    "configuration counts, as in a rebalance of Pinot"
)
AUTOMATIC = (
    "FULL_AUTO of {}: it is written in SEMI_AUTO, in which Helix places it no more by itself, also "
    "where instances fail"
)
LISTED = (
    "preference lists in the configuration of {}, by which Helix goes in FULL_AUTO: what is where "
    "they say stays; take them out to have it moved"
)
MOST_IGNORED = "MAX_PARTITIONS_PER_INSTANCE of {}: in CUSTOMIZED Helix ignores it, and so do we"

EMPTY: dict[str, str] = {}
NOWHERE: dict[str, bool] = {}
NOT_HELD = frozenset({"DROPPED"})
MISSING = "\0"  # stands for the state of a replica that is not there
NOT_AS_WANTED = NOT_HELD | {MISSING}
NOT_SERVED = {"OFFLINE", "ERROR", "DROPPED"}
MOST_REPLICAS = 2**15 - 1


@dataclass(frozen=True)
class Model:
    """A state model: the states of replicas that serve, best first; whether the first is single."""

    states: tuple[str, ...]
    leads: bool

    @property
    def counts(self) -> dict[str, int | str]:
        """How many replicas are in each state, as ``options.States`` has it."""
        return dict(zip(self.states, (1, "R") if self.leads else ("R",), strict=False))


# those that come with Helix, or with systems on top of it that are known here
MODELS = {
    "MasterSlave": Model(("MASTER", "SLAVE"), True),
    "LeaderStandby": Model(("LEADER", "STANDBY"), True),
    "LeaderFollower": Model(("LEADER", "FOLLOWER"), True),
    "OnlineOffline": Model(("ONLINE",), False),
    "StorageSchemata": Model(("MASTER",), False),
    "AmbryLeaderStandby": Model(("LEADER", "STANDBY"), True),
    SEGMENTS: Model(("ONLINE", CONSUMING), False),
}


def states_by_group(cluster: Cluster, options: States) -> Mapping[str, Mapping[str, int | str]]:
    """Return the states of groups that are not ``options.states``, by name."""
    if options.group_states is not None:
        return options.group_states
    if cluster.native_format != "helix" or options.states != MASTER_SLAVE:
        return {}
    found, native = {}, cluster.native
    for name in cluster.partitions.group_names:
        record = native["ideal_states"].get(name, {"simpleFields": {}})
        stated = record["simpleFields"].get("STATE_MODEL_DEF_REF", "")
        own = native["state_models"].get(stated)
        model = MODELS.get(stated) if own is None else Model(tuple(own[0]), bool(own[1]))
        if model is not None and model.counts != MASTER_SLAVE:
            found[name] = model.counts
    return found


@dataclass
class Resource:
    """One resource as it is, with the replicas of each partition, and how many each wants."""

    name: str
    found: Found
    model: Model
    rows: "dict[str, Row]"
    replicas: list[int]
    tag: str
    min_active: int
    most_per_instance: int
    servers: Servers | None  # instances that may hold it where it has no tag of its own


def mode_of(found: Found) -> str:
    """Return the rebalance mode in lower case, under its new name or the old one."""
    return (found.text("REBALANCE_MODE") or found.text("IDEAL_STATE_MODE")).lower()


def resources(faults: FaultList, records: Records, alive: Mapping[str, bool]) -> list[Resource]:
    """Return the resources that can be placed, in the order of their names; others are noted."""
    stated = records.ideal or records.view
    for name in records.view:
        if records.ideal and name not in records.ideal:
            records.notes.add(NO_IDEAL_STATE, name)
    found = [_resource(faults, records, one, alive) for one in stated.values()]
    return [one for one in found if one is not None]


def model_of(records: Records, found: Found) -> Model | None:
    """Return the state model of a resource, as it is defined there, or as it is known."""
    name = found.text("STATE_MODEL_DEF_REF")
    own = records.states.get(name)
    if own is None:
        return MODELS.get(name)
    initial, listed = own.text("INITIAL_STATE"), own.listed("STATE_PRIORITY_LIST")
    states = tuple(one for one in listed if one not in NOT_SERVED and one != initial)
    if not states:
        return None
    return Model(states, own.rows(f"{states[0]}.meta").get("count") == "1")


def placed_elsewhere(found: Found) -> str:
    """Return the note on a resource that neither Helix nor its ideal state places, or ""."""
    mode, state_model = mode_of(found), found.text("STATE_MODEL_DEF_REF")
    if mode == "task" or state_model in TASKS:
        return IS_TASK
    if state_model == BROKERS:
        return DERIVED
    if found.record.id == LEAD_CONTROLLERS:
        return OF_CONTROLLERS
    return USER_DEFINED if mode == "user_defined" else ""


def _left_alone(records: Records, found: Found, model: Model | None) -> bool:
    """Note and return whether a resource is placed elsewhere, or cannot be placed."""
    name, tag = found.record.id, found.text("INSTANCE_GROUP_TAG")
    if note := placed_elsewhere(found):
        records.notes.add(note, name)
    elif model is None:
        records.notes.add(NO_MODEL, name)
    elif mode_of(found) != "customized" and tag and not _carried(records, tag):
        records.notes.add(NO_TAG, f"{name} ({tag})")
    else:
        return False
    return True


def _resource(
    faults: FaultList, records: Records, found: Found, alive: Mapping[str, bool]
) -> Resource | None:
    record, model = found.record, model_of(records, found)
    if _left_alone(records, found, model):
        return None
    assert model is not None, "a resource without one is left alone"
    view = records.view.get(record.id)
    rows = _rows(found, view, model, alive)
    if view is not None and not view.record.mapFields.keys() <= rows.keys():
        records.notes.add(NO_PARTITION, record.id)
    config = records.resource.get(record.id, NONE)
    least = whole(faults, found, "MIN_ACTIVE_REPLICAS", -1)
    least = whole(faults, config, "MIN_ACTIVE_REPLICAS", least)
    custom = mode_of(found) == "customized"
    if custom and found.text("STATE_MODEL_DEF_REF") == SEGMENTS:
        rows |= _stopped(found)
    if custom and any(
        not state and alive.get(node, False) and found.rows(one).get(node) != "OFFLINE"
        for one, row in rows.items()
        for node, state in zip(row.nodes, row.states, strict=False)
    ):  # Helix of today shows no replica that is to be OFFLINE
        records.notes.add(NOT_SHOWN, record.id)
    if mode_of(found) == "full_auto":
        records.notes.add(AUTOMATIC, record.id)
    tag = found.text("INSTANCE_GROUP_TAG")
    most = -1 if custom else whole(faults, found, "MAX_PARTITIONS_PER_INSTANCE", -1)
    servers = None
    if custom:
        # Helix looks at neither, and Pinot calls the tag as it calls the table
        if found.text("STATE_MODEL_DEF_REF") == SEGMENTS and records.instance:
            holders = sorted({node for row in rows.values() for node in row.nodes})
            servers = servers_of(records, found, holders)
            if servers is None:
                return None
            tag = servers.tag
        elif tag and not _carried(records, tag):
            records.notes.add(TAG_IGNORED, f"{record.id} ({tag})")
            tag = ""
        if found.text("MAX_PARTITIONS_PER_INSTANCE") not in ("", f"{MOST}"):
            records.notes.add(MOST_IGNORED, record.id)
    wanted = _wanted(records, found, config, alive, rows)
    if wanted is None:
        return None
    return Resource(
        record.id, found, model, rows, wanted, tag, max(least, 0),
        -1 if most <= 0 or most == MOST else most, servers,
    )  # fmt: skip


def _wanted(
    records: Records,
    found: Found,
    config: Found,
    alive: Mapping[str, bool],
    rows: "Mapping[str, Row]",
) -> list[int] | None:
    """Return how many replicas are wanted of each partition; None, with a note, if unknown."""
    stated, automatic = found.text("REPLICAS"), mode_of(found) == "full_auto"
    stated = stated or config.text("REPLICAS")
    configured = _configured(records.table.get(found.record.id, NONE))
    if stated and configured not in ("", stated):
        records.notes.add(RECONFIGURED, f"{found.record.id} ({configured} for {stated})")
    stated = configured or stated
    number = int(stated) if stated.isascii() and stated.isdecimal() and len(stated) < 6 else -1
    if 0 <= number <= MOST_REPLICAS and (number or automatic):
        return [
            len(row.nodes) if configured and CONSUMING in row.states else number
            for row in rows.values()
        ]
    if stated == ALL or not automatic:
        tag = found.text("INSTANCE_GROUP_TAG")
        up = sum(is_up and (not tag or _carries(records, n, tag)) for n, is_up in alive.items())
        listed = {} if automatic else _listed(found)
        everywhere = up if stated == ALL else 0
        return [len(listed[one]) if one in listed else everywhere for one in rows]
    if not stated:
        return [max((len(row.nodes) for row in rows.values()), default=0)] * len(rows)
    records.notes.add(NO_NUMBER, f"{found.record.id} ({stated})")
    return None


def _configured(table: Found) -> str:
    """Return how many replicas a table of Pinot is to have, "" where instances are assigned."""
    if _fields_of(table, "instanceAssignmentConfigMap"):
        return ""
    segments, names = _fields_of(table, "segmentsConfig"), ("replicasPerPartition", "replication")
    chosen = names if table.record.id.endswith("_REALTIME") else names[1:]
    return str(next((segments[name] for name in chosen if segments.get(name)), ""))


def _listed(found: Found) -> dict[str, Sequence[str]]:
    """Return the instances that an ideal state lists for its partitions, where it lists any."""
    lists = found.record.listFields
    states = {
        one: [node for node, state in nodes.items() if state not in NOT_HELD]
        for one, nodes in found.record.mapFields.items()
    }
    first, second = (states, lists) if mode_of(found) == "customized" else (lists, states)
    listed = {**second, **first}
    return {one: nodes for one, nodes in listed.items() if nodes and ALL not in nodes}


def _carried(records: Records, tag: str) -> bool:
    return any(_carries(records, name, tag) for name in records.instance)


def _carries(records: Records, instance: str, tag: str) -> bool:
    return tag in records.config(instance).listed("TAG_LIST")


class Row(msgspec.Struct, frozen=True, gc=False):
    """The instances that hold a partition, in order, and their states; none where unknown."""

    nodes: Sequence[str]
    states: Sequence[str]


def _rows(
    found: Found, view: Found | None, model: Model, alive: Mapping[str, bool]
) -> dict[str, Row]:
    """Return the replicas of each partition: those that are, then those on nodes that are down."""
    lists, states = found.record.listFields, found.record.mapFields
    custom = mode_of(found) == "customized"
    own = states if custom and states else lists if lists and not custom else lists | states
    partitions = sorted(own)  # as the maps of Helix's controller: CRUSH-ed goes by their order
    rank = {state: i for i, state in enumerate(model.states)}
    if view is None:
        return {
            one: _as_wanted(lists.get(one, ()), states.get(one, {}), custom, rank, alive)
            for one in partitions
        }
    there = view.record.mapFields
    held = [*map(there.get, partitions, repeat(EMPTY))]
    if custom and states:
        wanted = [sorted(states[one]) for one in partitions]
    else:
        wanted = [lists.get(one) or sorted(states.get(one, ())) for one in partitions]
    found_ = [
        [*map(has.get, asks, repeat(MISSING))] for has, asks in zip(held, wanted, strict=True)
    ]
    rows = [*map(Row, wanted, found_)]
    # few are not as they are wanted; what a CUSTOMIZED state has is where it will be
    up = NOWHERE if custom else alive
    for i, (has, stated) in enumerate(zip(held, found_, strict=True)):
        if len(has) != len(stated) or not NOT_AS_WANTED.isdisjoint(stated):
            rows[i] = _as_viewed(has, wanted[i], rank, up)
    return dict(zip(partitions, rows, strict=True))


def _stopped(found: Found) -> dict[str, Row]:
    """Return the segments of Pinot that stopped while they were consumed, which are OFFLINE."""
    return {
        one: Row(sorted(states), [CONSUMING] * len(states))
        for one, states in found.record.mapFields.items()
        if {*states.values()} == {"OFFLINE"}
    }


def _as_viewed(
    held: Mapping[str, str],
    wanted: Sequence[str],
    rank: Mapping[str, int],
    alive: Mapping[str, bool],
) -> Row:
    """Return the replicas that are, those of the list first, then those that are down."""
    order = {node: i for i, node in enumerate(wanted)}
    there = [(node, state) for node, state in held.items() if state not in NOT_HELD]
    there.sort(key=lambda it: (order.get(it[0], len(order)), rank.get(it[1], len(rank)), it[0]))
    lost = [n for n in wanted if n not in held and not alive.get(n, False) and n != ALL]
    return Row(
        [*(node for node, _ in there), *lost], [*(state for _, state in there), *("" for _ in lost)]
    )


def _as_wanted(
    listed: Sequence[str],
    states: Mapping[str, str],
    custom: bool,
    rank: Mapping[str, int],
    alive: Mapping[str, bool],
) -> Row:
    """Return the replicas of a partition as its ideal state has them."""
    if states and (custom or not listed):
        row = [it for it in states.items() if it[1] not in NOT_HELD]
        row.sort(key=lambda it: (rank.get(it[1], len(rank)), it[0]))
        return Row([node for node, _ in row], [state for _, state in row])
    if len(listed) == 1 and listed[0] == ALL:
        return Row(sorted(node for node, up in alive.items() if up), ())
    return Row(listed, ())
