"""Instances as nodes: where they stand, what they may do, and what they can hold."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from evenkeel.model.errors import FaultList
from evenkeel.model.rules import word
from evenkeel.systems.documents import quoted
from evenkeel.systems.helix.records import Found, Records

MOST = 2**31 - 1
"""The greatest number that Helix keeps."""

DEFAULT_WEIGHT = 1000
DEFAULT_ZONE = "zone"
"""The tier of clusters that know fault zones and have no topology path."""

DISABLED = "HELIX_DISABLED_PARTITION"
ALL_RESOURCES = "ALL_RESOURCES"
"""Under this name an instance is disabled for the partitions of every resource."""

OTHER = "other"
"""An operation that is not known here."""

STATES: dict[str, dict[str, bool]] = {
    "ENABLE": {},
    "DISABLE": {"alive": False},
    "EVACUATE": {"accepts": False, "keeps": False},
    "SWAP_IN": {"accepts": False},
    "UNKNOWN": {"alive": False, "gone": True},
    OTHER: {"accepts": False},
}
"""What an instance may do under each operation, beside what all may that are live."""


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


def is_true(found: Found | None, name: str, default: bool = False) -> bool:
    """Return a simple field as a truth value, as Java reads it."""
    text = "" if found is None else found.text(name)
    return text.strip().lower() == "true" if text else default


def operation(faults: FaultList, found: Found) -> str:
    """Return the operation of an instance: the last one listed, or by its older fields."""
    listed = found.record.listFields.get("HELIX_INSTANCE_OPERATIONS", [])
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
    """Return what each instance may do: by its operation, and by whether it is live.

    One that is down keeps its places while its delay window is open, which takes ``now`` to know.
    """
    cluster = next(iter(records.cluster.values()), None)
    columns = {name: np.ones(len(names), np.bool_) for name in ("alive", "accepts", "keeps")}
    gone, since = np.zeros(len(names), np.bool_), np.full(len(names), np.nan)
    disabled = {} if cluster is None else cluster.record.mapFields.get("DISABLED_INSTANCES", {})
    delay = 0 if cluster is None else whole(faults, cluster, "DELAY_REBALANCE_TIME", 0)
    if cluster is None or not cluster.text("DELAY_REBALANCE_TIME"):
        # an instance holds replicas of several resources: the one that waits least counts
        delay = min((_delay_of(faults, one) for one in records.ideal.values()), default=0)
    delayed = delay > 0 and is_true(cluster, "DELAY_REBALANCE_ENABLED", True)
    for n, name in enumerate(names):
        found = records.instance.get(name)
        done = "ENABLE" if found is None else operation(faults, found)
        # the cluster's record disables many at once
        if done == "ENABLE" and (name in disabled or records.is_listed_disabled(name)):
            done = "DISABLE"
        if done == OTHER:
            records.notes.add(
                "an operation that is not known here of {}: it takes nothing new", name
            )
        live = records.is_live(name)
        unknown = found is None and bool(records.instance)
        may = {"alive": live, "gone": unknown} | STATES[done]
        alive = live and may["alive"]
        moments = [_moment(faults, found, "HELIX_ENABLED_TIMESTAMP")] if done == "DISABLE" else []
        if _is_moment(disabled.get(name, "")):
            moments.append(int(disabled[name]) / 1000.0)
        if not live:
            moments.append(_moment(faults, records.history.get(name), "LAST_OFFLINE_TIME"))
        known = [moment for moment in moments if moment >= 0.0]
        since[n] = min(known, default=np.nan)
        own = delayed and is_true(found, "DELAY_REBALANCE_ENABLED", True) and now is not None
        waits = own and bool(known) and since[n] + delay / 1000.0 > (now or 0.0)
        if found is not None and ALL_RESOURCES in found.record.mapFields.get(DISABLED, {}):
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


def _moment(faults: FaultList, found: Found | None, name: str) -> float:
    """Return a time in seconds; -1 if none is known."""
    text = "" if found is None else found.text(name)
    if not text or text == "-1":
        return -1.0
    if not _is_moment(text):
        assert found is not None, "no record has no text"
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
    cluster = next(iter(records.cluster.values()), None)
    if not is_true(cluster, "TOPOLOGY_AWARE_ENABLED"):
        return {}, ""
    assert cluster is not None, "no record says nothing"
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
        found = records.instance.get(name)
        text = "" if found is None else found.text(needed)
        if not text and on and found is not None:
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


def _pairs(faults: FaultList, found: Found | None, text: str) -> dict[str, str]:
    """Read ``zone=z1,rack=r2``."""
    pairs = [pair.split("=") for pair in text.split(",")] if text else []
    if any(len(pair) != 2 or not pair[0].strip() for pair in pairs):
        assert found is not None, "no record has no text"
        faults.add(found.place("DOMAIN"), quoted(text), "must be key=value, divided by commas")
        return {}
    return {key.strip(): value.strip() for key, value in pairs}


def logical_names(records: Records, names: Sequence[str]) -> list[str]:
    """Return the logical id of each instance: the last key of its topology path, or its name."""
    cluster = next(iter(records.cluster.values()), None)
    path = "" if cluster is None else cluster.text("TOPOLOGY")
    key = path.rstrip("/").rpartition("/")[2]
    if not key or not is_true(cluster, "TOPOLOGY_AWARE_ENABLED"):
        return [*names]
    silent = FaultList()
    found = [records.instance.get(name) for name in names]
    stated = ["" if one is None else one.text("DOMAIN") for one in found]
    return [
        _pairs(silent, one, text).get(key) or name
        for one, text, name in zip(found, stated, names, strict=True)
    ]


def stands_for(faults: FaultList, records: Records, names: Sequence[str]) -> list[int]:
    """Return whose place each instance takes that is swapped in; -1 for none."""
    silent = FaultList()  # operations were read before
    swapped = [
        name in records.instance and operation(silent, records.instance[name]) == "SWAP_IN"
        for name in names
    ]
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


def tags_of(records: Records, names: Sequence[str]) -> dict[str, list[bool]]:
    """Return which instances carry each tag."""
    own = [
        {*records.instance[name].record.listFields.get("TAG_LIST", ())}
        if name in records.instance
        else set()
        for name in names
    ]
    tags = sorted({tag for some in own for tag in some if tag.strip()})
    return {word(tag): [tag in some for some in own] for tag in tags}


def weights_of(faults: FaultList, records: Records, names: Sequence[str]) -> list[float]:
    """Return the weight of each instance, 1 by default."""
    found = [records.instance.get(name) for name in names]
    stated = [-1 if one is None else whole(faults, one, "INSTANCE_WEIGHT") for one in found]
    return [(weight if weight >= 0 else DEFAULT_WEIGHT) / DEFAULT_WEIGHT for weight in stated]
