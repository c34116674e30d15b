"""Resources: the partitions of each, their replicas with the states they are in, and who leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import msgspec

from evenkeel.formats.documents import quoted
from evenkeel.formats.helix.instances import whole
from evenkeel.formats.helix.records import Found, Records
from evenkeel.model.errors import FaultList

ALL = "ANY_LIVEINSTANCE"
"""As many replicas as there are live instances."""

UNPLACED = {"task"}
"""Modes whose partitions are not replicas of anything."""

NOBODY: dict[str, str] = {}
NOT_HELD = frozenset({"DROPPED"})
UNTOLD = "\0"
"""Stands for the state of a replica that is not there."""

NOT_AS_WANTED = NOT_HELD | {UNTOLD}
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
}
"""Those that come with Helix."""


@dataclass
class Resource:
    """One resource as it is, with the replicas of each partition."""

    name: str
    found: Found
    model: Model
    rows: "dict[str, Row]"
    replicas: int
    tag: str
    min_active: int
    most_per_instance: int


def mode_of(found: Found) -> str:
    """Return the rebalance mode in lower case, under its new name or the old one."""
    return (found.text("REBALANCE_MODE") or found.text("IDEAL_STATE_MODE")).lower()


def resources(faults: FaultList, records: Records, alive: Mapping[str, bool]) -> list[Resource]:
    """Return the resources that hold replicas, in the order of their names."""
    told = records.ideal or records.view
    for name, found in records.view.items():
        if records.ideal and name not in records.ideal:
            faults.add(f"{found.at}id", quoted(name), "is not a resource: it has no ideal state")
    return [
        _resource(faults, records, found, alive)
        for found in told.values()
        if mode_of(found) not in UNPLACED
    ]


def model_of(faults: FaultList, records: Records, found: Found) -> Model:
    """Return the state model of a resource, as it is defined there, or as Helix brings it."""
    name = found.text("STATE_MODEL_DEF_REF")
    own = records.states.get(name)
    if own is None:
        if name not in MODELS:
            message = "unknown state model: read its definition, too (STATEMODELDEFS)"
            faults.add(found.place("STATE_MODEL_DEF_REF"), quoted(name), message)
        return MODELS.get(name, MODELS["OnlineOffline"])
    fields = own.record.mapFields
    initial = own.text("INITIAL_STATE")
    listed = own.record.listFields.get("STATE_PRIORITY_LIST", [])
    states = tuple(one for one in listed if one not in NOT_SERVED and one != initial)
    if not states:
        at = f"{own.at}listFields.STATE_PRIORITY_LIST"
        faults.add(at, listed[:8], "names no state in which a replica serves")
        return MODELS["OnlineOffline"]
    return Model(states, fields.get(f"{states[0]}.meta", {}).get("count") == "1")


def _resource(
    faults: FaultList, records: Records, found: Found, alive: Mapping[str, bool]
) -> Resource:
    record = found.record
    model = model_of(faults, records, found)
    view = records.view.get(record.id)
    rows = _rows(found, view, model, alive)
    for stranger in sorted(view.record.mapFields.keys() - rows.keys()) if view else ():
        at = f"{found.at if view is None else view.at}mapFields.{quoted(stranger)}"
        message = f"is not a partition of the ideal state of {quoted(record.id)}"
        faults.add(at, quoted(stranger), message)
    config = records.resource.get(record.id)
    least = whole(faults, found, "MIN_ACTIVE_REPLICAS", -1)
    if config is not None and config.text("MIN_ACTIVE_REPLICAS"):
        least = whole(faults, config, "MIN_ACTIVE_REPLICAS", least)
    tag = found.text("INSTANCE_GROUP_TAG")
    most = whole(faults, found, "MAX_PARTITIONS_PER_INSTANCE", -1)
    wanted = _wanted(faults, records, found, config, alive)
    if wanted is None:
        wanted = max((len(row.nodes) for row in rows.values()), default=0)
    return Resource(
        record.id, found, model, rows, wanted, tag, max(least, 0),
        -1 if most <= 0 or most == 2**31 - 1 else most,
    )  # fmt: skip


def _wanted(
    faults: FaultList,
    records: Records,
    found: Found,
    config: Found | None,
    alive: Mapping[str, bool],
) -> int | None:
    """Return how many replicas are wanted of each partition; None where nothing says so."""
    source = found if found.text("REPLICAS") or config is None else config
    if source.text("REPLICAS") == ALL:
        tag = found.text("INSTANCE_GROUP_TAG")
        return sum(up and (not tag or _carries(records, name, tag)) for name, up in alive.items())
    number = whole(faults, source, "REPLICAS", -1)
    if number < -1 or number > MOST_REPLICAS:
        message = f"must be a number of replicas, to {MOST_REPLICAS}, or {ALL}"
        faults.add(source.place("REPLICAS"), number, message)
    return None if not 0 <= number <= MOST_REPLICAS else number


def _carries(records: Records, instance: str, tag: str) -> bool:
    found = records.instance.get(instance)
    return found is not None and tag in found.record.listFields.get("TAG_LIST", ())


class Row(msgspec.Struct, frozen=True, gc=False):
    """The instances that hold a partition, in order, and their states; none where none is told."""

    nodes: Sequence[str]
    states: Sequence[str]


def _rows(
    found: Found, view: Found | None, model: Model, alive: Mapping[str, bool]
) -> dict[str, Row]:
    """Return the replicas of each partition: those that are, then those on nodes that are down."""
    lists, states = found.record.listFields, found.record.mapFields
    # of equal length they sort by the numbers that they end in
    partitions = sorted(sorted(lists.keys() | states.keys() if states else lists), key=len)
    rank = {state: i for i, state in enumerate(model.states)}
    if view is None:
        custom = mode_of(found) == "customized"
        return {
            one: _as_wanted(lists.get(one, ()), states.get(one, {}), custom, rank, alive)
            for one in partitions
        }
    there = view.record.mapFields
    held = [*map(there.get, partitions, repeat(NOBODY))]
    wanted = [lists.get(one) or sorted(states.get(one, ())) for one in partitions]
    own = [[*map(has.get, asks, repeat(UNTOLD))] for has, asks in zip(held, wanted, strict=True)]
    rows = [*map(Row, wanted, own)]
    # few are not as they are wanted
    for i, (has, told) in enumerate(zip(held, own, strict=True)):
        if len(has) != len(told) or not NOT_AS_WANTED.isdisjoint(told):
            rows[i] = _as_viewed(has, wanted[i], rank, alive)
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


def note_strangers(faults: FaultList, records: Records, one: Resource, p: str) -> None:
    """Note each instance that a partition names and that has no config."""
    for found in (records.ideal.get(one.name), records.view.get(one.name)):
        if found is None:
            continue
        record = found.record
        for kind, nodes in (("listFields", record.listFields), ("mapFields", record.mapFields)):
            for node in nodes.get(p, ()):
                if node not in records.instance and node != ALL:
                    at = f"{found.at}{kind}.{quoted(p)}"
                    faults.add(at, quoted(node), "is not an instance: it has no InstanceConfig")
