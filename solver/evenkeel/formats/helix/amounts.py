"""Capacities of instances and weights of partitions, by the capacity keys of the cluster."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import quoted
from evenkeel.formats.helix.instances import MOST
from evenkeel.formats.helix.records import Found, Records
from evenkeel.model.errors import FaultList

COUNT = "replicas"
"""The dimension of clusters without capacity keys: it counts replicas."""

DEFAULT = "DEFAULT"
"""Under which a resource says what a partition weighs that is not named."""

WEIGHTS: msgspec.json.Decoder[dict[str, float]] = msgspec.json.Decoder(
    dict[str, Annotated[int, msgspec.Meta(ge=0, le=MOST)]]
)
"""Reads amounts as Helix writes them."""


def keys_of(faults: FaultList, records: Records) -> list[str]:
    """Return the capacity keys of the cluster."""
    cluster = next(iter(records.cluster.values()), None)
    keys = [] if cluster is None else cluster.record.listFields.get("INSTANCE_CAPACITY_KEYS", [])
    if cluster is not None and (len({*keys}) != len(keys) or "" in keys):
        at = f"{cluster.at}listFields.INSTANCE_CAPACITY_KEYS"
        faults.add(at, keys[:8], "must be names that differ")
        return []
    return keys


def capacities(
    faults: FaultList, records: Records, names: Sequence[str], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Return what each instance can hold, (N, D); the cluster says what holds by default."""
    usual = _amounts_of(faults, _cluster(records), "DEFAULT_INSTANCE_CAPACITY_MAP")
    rows = []
    for name in names:
        found = records.instance.get(name)
        own = usual | _amounts_of(faults, found, "INSTANCE_CAPACITY_MAP")
        if found is not None:
            _check_complete(faults, f"{found.at}mapFields.INSTANCE_CAPACITY_MAP", own, keys)
        rows.append([own.get(key, 0.0) for key in keys])
    return np.array(rows, np.float64).reshape(len(names), len(keys))


def weights(
    faults: FaultList, records: Records, resources: Mapping[str, Sequence[str]], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Return what a replica of each partition weighs, (P, D)."""
    usual = _amounts_of(faults, _cluster(records), "DEFAULT_PARTITION_WEIGHT_MAP")
    wanted, nothing, values = {*keys}, dict.fromkeys(keys, 0.0), itemgetter(*keys)
    rows: list[Any] = []
    for name, partitions in resources.items():
        found = records.resource.get(name)
        told = {} if found is None else found.record.mapFields.get("PARTITION_CAPACITY_MAP", {})
        at = "" if found is None else f"{found.at}mapFields.PARTITION_CAPACITY_MAP"
        own = _decoded(faults, at, told)
        lacking = {key for key, one in own.items() if not one.keys() >= wanted}
        own |= {key: usual | own[key] for key in lacking}
        for stranger in sorted(own.keys() - {*partitions, DEFAULT}):
            faults.add(
                f"{at}.{quoted(stranger)}", quoted(stranger), f"is not a partition of {name}"
            )
        general = own.get(DEFAULT, usual)
        if not own.keys() >= {*partitions}:
            _check_complete(faults, at or _place(records, name), general, keys)
        for partition in filter(lacking.__contains__, partitions):
            _check_complete(faults, f"{at}.{quoted(partition)}", own[partition], keys)
            own[partition] = nothing | own[partition]
        rows += map(values, map(own.get, partitions, repeat(nothing | general)))
    return np.array(rows, np.float64).reshape(len(rows), len(keys))


def _cluster(records: Records) -> Found | None:
    return next(iter(records.cluster.values()), None)


def _place(records: Records, resource: str) -> str:
    found = records.ideal.get(resource) or records.view[resource]
    return f"{found.at}id"


def _check_complete(
    faults: FaultList, at: str, own: Mapping[str, float], keys: Sequence[str]
) -> None:
    missing = [key for key in keys if key not in own]
    if missing:
        faults.add(at, sorted(own), f"has no value for {missing}, which are capacity keys")


def _amounts_of(faults: FaultList, found: Found | None, name: str) -> dict[str, float]:
    """Return a map of amounts that are texts."""
    if found is None:
        return {}
    at = f"{found.at}mapFields.{name}"
    told = found.record.mapFields.get(name, {})
    return {key: _amount(faults, f"{at}.{quoted(key)}", text) for key, text in told.items()}


def _decoded(faults: FaultList, at: str, told: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Read amounts that are JSON inside texts."""
    try:
        return {key: WEIGHTS.decode(text) for key, text in told.items()}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {key: _read(faults, f"{at}.{quoted(key)}", text) for key, text in told.items()}


def _read(faults: FaultList, at: str, text: str) -> dict[str, float]:
    """Read amounts of which some may be texts themselves, or wrong."""
    try:
        told = msgspec.json.decode(text, type=dict[str, int | str | float])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        faults.add(at, quoted(text), 'must be JSON in a text, such as "{\\"CPU\\":10}"')
        return {}
    return {key: _amount(faults, f"{at}.{quoted(key)}", value) for key, value in told.items()}


def _amount(faults: FaultList, at: str, told: Any) -> float:
    try:
        number = int(told) if not isinstance(told, str) or len(told) <= 20 else -1
    except (ValueError, OverflowError):
        number = -1
    if not 0 <= number <= MOST:
        faults.add(at, quoted(told), f"must be a whole number from 0 to {MOST}")
        return 0.0
    return float(number)
