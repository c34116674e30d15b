"""Capacities of instances and weights of partitions, by the capacity keys of the cluster."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import quoted
from evenkeel.systems.helix.instances import MOST
from evenkeel.systems.helix.records import Found, Records

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
    """Return what each instance can hold, (N, D), NaN where nothing says so.

    The cluster says what holds by default; an instance without a config holds nothing.
    """
    usual = _amounts_of(faults, _cluster(records), "DEFAULT_INSTANCE_CAPACITY_MAP")
    rows = []
    for name in names:
        found = records.instance.get(name)
        own = usual | _amounts_of(faults, found, "INSTANCE_CAPACITY_MAP")
        unknown = 0.0 if found is None and records.instance else np.nan
        rows.append([own.get(key, unknown) for key in keys])
    return np.array(rows, np.float64).reshape(len(names), len(keys))


def weights(
    faults: FaultList, records: Records, resources: Mapping[str, Sequence[str]], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Return what a replica of each partition weighs, (P, D), NaN where nothing says so."""
    usual = _amounts_of(faults, _cluster(records), "DEFAULT_PARTITION_WEIGHT_MAP")
    wanted, nothing, values = {*keys}, dict.fromkeys(keys, np.nan), itemgetter(*keys)
    rows: list[Any] = []
    for name, partitions in resources.items():
        found = records.resource.get(name)
        told = {} if found is None else found.record.mapFields.get("PARTITION_CAPACITY_MAP", {})
        at = "" if found is None else f"{found.at}mapFields.PARTITION_CAPACITY_MAP"
        own = _decoded(faults, at, told)
        own |= {key: nothing | usual | one for key, one in own.items() if not one.keys() >= wanted}
        if own.keys() - {*partitions, DEFAULT}:
            records.notes.add("no partition of {} for some of the weights of partitions", name)
        general = nothing | own.get(DEFAULT, usual)
        rows += map(values, map(own.get, partitions, repeat(general)))
    return np.array(rows, np.float64).reshape(len(rows), len(keys))


def _cluster(records: Records) -> Found | None:
    return next(iter(records.cluster.values()), None)


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
