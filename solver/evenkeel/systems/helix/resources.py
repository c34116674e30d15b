"""Resources: the partitions of each, their replicas with the states they are in, and who leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.helix import pinot
from evenkeel.systems.helix.instances import whole
from evenkeel.systems.helix.records import Found, Records

ALL = "ANY_LIVEINSTANCE"
"""As many replicas as there are live instances."""

TASKS = {"Task", "ScheduledTask", "SchedulerTaskQueue"}
"""State models of what is run, not held."""


IS_TASK = "of tasks that the task framework assigns: {}; what is there stays"
USER_DEFINED = "of {}, which a rebalancer of its own places (USER_DEFINED): what is there stays"
NO_MODEL = "no states of the state model of {}: what is there stays; add STATEMODELDEFS"
NO_TAG = "no instance with the tag of {}, so that none may hold it: what is there stays"
NO_NUMBER = "no number of replicas of {}: what is there stays"
NO_IDEAL_STATE = "no ideal state of {}: the external view counts for nothing"
NO_PARTITION = "of partitions of {} that only an external view has: they count as gone"
TAG_IGNORED = "no instance with the tag of {}: in CUSTOMIZED Helix ignores it, and so do we"
MOST_IGNORED = "MAX_PARTITIONS_PER_INSTANCE of {}: in CUSTOMIZED Helix ignores it, and so do we"

EMPTY: dict[str, str] = {}
NOWHERE: dict[str, bool] = {}
NOT_HELD = frozenset({"DROPPED"})
MISSING = "\0"
"""Stands for the state of a replica that is not there."""

NOT_AS_WANTED = NOT_HELD | {MISSING}
NOT_SERVED = {"OFFLINE", "ERROR", "DROPPED"}
MOST_REPLICAS = 2**15 - 1


@dataclass(frozen=True)
class Model:
    """A state model: the states of replicas that serve, best first; whether the first is single."""

    states: tuple[str, ...]
    leads: bool


MODELS = {
    "MasterSlave": Model(("MASTER", "SLAVE"), True),
    "LeaderStandby": Model(("LEADER", "STANDBY"), True),
    "LeaderFollower": Model(("LEADER", "FOLLOWER"), True),
    "OnlineOffline": Model(("ONLINE",), False),
    "StorageSchemata": Model(("MASTER",), False),
    "AmbryLeaderStandby": Model(("LEADER", "STANDBY"), True),
    pinot.SEGMENTS: Model(("ONLINE", pinot.CONSUMING), False),
}
"""Those that come with Helix, or with systems on top of it that are known here."""


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
    servers: pinot.Servers | None
    """Instances that may hold it where it has no tag of its own."""


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
    fields = own.record.mapFields
    initial = own.text("INITIAL_STATE")
    listed = own.record.listFields.get("STATE_PRIORITY_LIST", [])
    states = tuple(one for one in listed if one not in NOT_SERVED and one != initial)
    if not states:
        return None
    return Model(states, fields.get(f"{states[0]}.meta", {}).get("count") == "1")


def placed_elsewhere(found: Found) -> str:
    """Return the note on a resource that neither Helix nor its ideal state places, or ""."""
    mode, state_model = mode_of(found), found.text("STATE_MODEL_DEF_REF")
    if mode == "task" or state_model in TASKS:
        return IS_TASK
    if state_model == pinot.BROKERS:
        return pinot.DERIVED
    if found.record.id == pinot.LEAD_CONTROLLERS:
        return pinot.OF_CONTROLLERS
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
    config = records.resource.get(record.id)
    least = whole(faults, found, "MIN_ACTIVE_REPLICAS", -1)
    if config is not None and config.text("MIN_ACTIVE_REPLICAS"):
        least = whole(faults, config, "MIN_ACTIVE_REPLICAS", least)
    custom = mode_of(found) == "customized"
    tag = found.text("INSTANCE_GROUP_TAG")
    most = -1 if custom else whole(faults, found, "MAX_PARTITIONS_PER_INSTANCE", -1)
    servers = None
    if custom:
        # Helix looks at neither, and Pinot calls the tag as it calls the table
        if found.text("STATE_MODEL_DEF_REF") == pinot.SEGMENTS and records.instance:
            holders = sorted({node for row in rows.values() for node in row.nodes})
            servers = pinot.servers_of(records, found, holders)
            if servers is None:
                return None
            tag = servers.tag
        elif tag and not _carried(records, tag):
            records.notes.add(TAG_IGNORED, f"{record.id} ({tag})")
            tag = ""
        if found.text("MAX_PARTITIONS_PER_INSTANCE") not in ("", f"{2**31 - 1}"):
            records.notes.add(MOST_IGNORED, record.id)
    wanted = _wanted(records, found, config, alive, rows)
    if wanted is None:
        return None
    return Resource(
        record.id, found, model, rows, wanted, tag, max(least, 0),
        -1 if most <= 0 or most == 2**31 - 1 else most, servers,
    )  # fmt: skip


def _wanted(
    records: Records,
    found: Found,
    config: Found | None,
    alive: Mapping[str, bool],
    rows: "Mapping[str, Row]",
) -> list[int] | None:
    """Return how many replicas are wanted of each partition; None, with a note, if unknown.

    Where instances are listed, and the number is none, each partition wants as many as are listed.
    """
    source = found if found.text("REPLICAS") or config is None else config
    stated, automatic = source.text("REPLICAS"), mode_of(found) == "full_auto"
    number = int(stated) if stated.isascii() and stated.isdecimal() and len(stated) < 6 else -1
    if 0 <= number <= MOST_REPLICAS and (number or automatic):
        return [number] * len(rows)
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
    found = records.instance.get(instance)
    return found is not None and tag in found.record.listFields.get("TAG_LIST", ())


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
