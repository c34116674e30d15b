"""From stores, ranges and zone configurations, as CockroachDB speaks of them, to a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.arrays import as_array, list_entries
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.strategies.cockroach.fleet import FORMAT, CockroachMap
from evenkeel.strategies.cockroach.store_classes import Tiers
from evenkeel.strategies.cockroach.wishes import HOST
from evenkeel.strategies.cockroach.zone_configs import (
    Conjunction,
    Constraint,
    ZoneConfig,
    check_config,
    parse_conjunction,
)
from evenkeel_kernels import allocator as kernel

STATES = {
    "available": kernel.AVAILABLE,
    "throttled": kernel.THROTTLED,
    "suspect": kernel.SUSPECT,
    "draining": kernel.DRAINING,
    "unknown": kernel.UNKNOWN,
    "decommissioning": kernel.DECOMMISSIONING,
    "decommissioned": kernel.DEAD,
    "dead": kernel.DEAD,
}
"""States of a store, by name."""

FIELDS = ("num_replicas", "num_voters", "constraints", "voter_constraints", "lease_preferences")

LOADS = ("cpu", "qps", "writes", "bytes")
"""Dimensions, in the order in which the cluster has them."""


def cluster_of(
    *,
    localities: Sequence[str],
    replicas: ArrayLike,
    configs: Sequence[Mapping[str, object] | ZoneConfig],
    config: ArrayLike | None = None,
    roles: ArrayLike | None = None,
    leaseholder: ArrayLike | None = None,
    hosts: ArrayLike | None = None,
    attributes: Sequence[Sequence[str]] | None = None,
    status: Sequence[str] | None = None,
    io: ArrayLike | None = None,
    capacity: ArrayLike | None = None,
    cpu: ArrayLike = 0.0,
    qps: ArrayLike = 0.0,
    writes: ArrayLike = 0.0,
    size: ArrayLike = 0.0,
) -> Cluster:
    """Build the cluster of stores and ranges.

    Parameters
    ----------
    localities : sequence of str
        One for each of S stores, such as ``"region=us,zone=a"``; "" for none.
    replicas : array_like of int32, shape (P, R)
        Stores of the replicas of each range; -1 for an empty slot.
    configs : sequence of mapping or ZoneConfig
        Zone configurations with the fields ``num_replicas``, ``num_voters``, ``constraints``,
        ``voter_constraints`` and ``lease_preferences``. Constraints are a list of texts, which hold
        for every replica, or a mapping from texts joined by commas to numbers of replicas.
    config : array_like of int32, shape (P,), optional
        Configuration of each range; the first of all by default.
    roles : array_like of uint8, shape (P, R), optional
        ``Role`` of each replica; all voters by default.
    leaseholder : array_like of int32, shape (P,), optional
        Store that holds each lease, -1 for none; that of the first voter by default.
    hosts : array_like of int32, shape (S,), optional
        Id of each store's host, what CockroachDB calls a node; each has its own by default.
    attributes : sequence of sequence of str, optional
        Of each store and its host.
    status : sequence of str, optional
        State of each store, of ``STATES``; all available by default.
    io : array_like of float64, shape (S,), optional
        Overload of each disk's bandwidth.
    capacity : array_like of float64, shape (S,), optional
        Bytes of each disk; not known by default.
    cpu, qps, writes, size : array_like of float64, shape () or (P,), optional
        Of each range: cores and queries per second where it is led, bytes written per second and
        bytes held by every replica.

    Returns
    -------
    Cluster
        For ``solve(cluster, "cockroach")``; its ``native`` is a `CockroachMap`.

    Raises
    ------
    InvalidInput
        Naming every problem, with its range or store and field.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = cluster_of(
    ...     localities=["region=us", "region=us", "region=eu", "region=eu"],
    ...     replicas=[[0, 2]] * 6, configs=[{"num_replicas": 2, "constraints": {"+region=us": 1}}],
    ... )
    >>> cluster.native.configs[0].constraints[0].replicas
    1
    >>> cluster_of(localities=["region=us"], replicas=[[0]], leaseholder=[7], qps=[-1.0],
    ...            configs=[{"num_replicas": 1, "constraints": {"+zone=a": 2}}])
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: 4 problems with the input:
      configs[0].constraints: asks for more replicas than the 1 there are (got 2)
      configs[0].constraints[0]: no store has a tier 'zone'; known: ['region'] (got '+zone=a')
      leaseholder[0]: range 0 has no replica there (got 7)
      qps[0]: must not be negative or NaN (got -1.0)
    """
    faults = FaultList()
    tiers = [_locality(faults, f"localities[{s}]", text) for s, text in enumerate(localities)]
    count = len(tiers)
    rows = as_array(faults, "replicas", replicas, np.int32, (None, None))
    list_entries(
        faults, "replicas", rows, (rows < -1) | (rows >= count), f"is no store; there are {count}"
    )
    read = [parse_config(faults, f"configs[{q}]", one) for q, one in enumerate(configs)]
    names = {key for one in tiers for key, _ in one}
    for q, one in enumerate(read):
        check_config(faults, f"configs[{q}]", one, names)
    wanted = _per_range(faults, "config", config, len(rows), np.int32, 0)
    outside = (wanted < 0) | (wanted >= len(read))
    list_entries(faults, "config", wanted, outside, f"is no configuration; there are {len(read)}")
    role = _roles(faults, roles, rows)
    leader = _leaders(faults, leaseholder, rows, role)
    state = _states(faults, status, count)
    loads = [
        _amounts(faults, name, given, len(rows))
        for name, given in (("cpu", cpu), ("qps", qps), ("writes", writes), ("size", size))
    ]
    overload = _per_range(faults, "io", io, count, np.float64, 0.0)
    held = _per_range(faults, "capacity", capacity, count, np.float64, np.inf)
    ids = _per_range(faults, "hosts", hosts, count, np.int32, -1)
    if hosts is None:
        ids = np.arange(count, dtype=np.int32)
    _check_hosts(faults, ids, tiers)
    faults.raise_if_any()
    leading = np.stack(loads, axis=1)
    following = leading.copy()
    following[:, :2] = 0.0
    replicas_wanted = np.array([one.num_replicas for one in read], np.int32)[wanted]
    voters_wanted = np.array([one.voters for one in read], np.int32)[wanted]
    rows, role = _widened(rows, role, replicas_wanted, voters_wanted)
    return Cluster.from_arrays(
        capacity=np.column_stack([np.full((count, 3), np.inf), held]),
        load=following,
        leader_load=leading,
        dimensions=LOADS,
        bytes="bytes",
        domains=_levels(tiers, ids),
        tags=_tags(attributes, count),
        alive=~np.isin(state, (kernel.DEAD, kernel.UNKNOWN)),
        accepts=np.isin(state, (kernel.AVAILABLE, kernel.THROTTLED)),
        keeps=~np.isin(state, (kernel.DEAD, kernel.DECOMMISSIONING)),
        leads=np.isin(state, (kernel.AVAILABLE, kernel.THROTTLED, kernel.SUSPECT)),
        replicas=replicas_wanted,
        voters=voters_wanted,
        placement=rows,
        role=role,
        leader=leader,
        native=CockroachMap(tuple(read), wanted, state, overload),
        native_format=FORMAT,
    )


def parse_config(
    faults: FaultList, path: str, given: Mapping[str, object] | ZoneConfig
) -> ZoneConfig:
    """Read a zone configuration.

    Parameters
    ----------
    faults : FaultList
        Where what does not parse is noted.
    path : str
        Where it stands.
    given : mapping or ZoneConfig
        Its fields.

    Returns
    -------
    ZoneConfig
        Without what did not parse.

    Examples
    --------
    >>> found = parse_config(FaultList(), "configs[0]", {"constraints": ["+ssd", "-region=eu"]})
    >>> [str(one) for one in found.constraints[0].constraints]
    ['+ssd', '-region=eu']
    """
    if isinstance(given, ZoneConfig):
        return given
    for name in given.keys() - set(FIELDS):
        faults.add(f"{path}.{name}", given[name], f"is no field; known: {', '.join(FIELDS)}")
    numbers = {}
    for name, default in (("num_replicas", 3), ("num_voters", 0)):
        number = given.get(name, default)
        if not isinstance(number, int) or isinstance(number, bool):
            faults.add(f"{path}.{name}", number, "needs a whole number")
            number = default
        numbers[name] = number
    preferences = given.get("lease_preferences", ())
    if not isinstance(preferences, list | tuple):
        faults.add(f"{path}.lease_preferences", preferences, "needs a list of lists of constraints")
        preferences = ()
    lead: list[tuple[Constraint, ...]] = []
    for i, texts in enumerate(preferences):
        listed = texts if isinstance(texts, list | tuple) else [texts]
        lead.append(parse_conjunction(faults, f"{path}.lease_preferences[{i}]", listed).constraints)
    return ZoneConfig(
        num_replicas=numbers["num_replicas"],
        num_voters=numbers["num_voters"],
        constraints=_table(faults, f"{path}.constraints", given.get("constraints", ())),
        voter_constraints=_table(
            faults, f"{path}.voter_constraints", given.get("voter_constraints", ())
        ),
        lease_preferences=lead,
    )


def _table(faults: FaultList, path: str, given: object) -> list[Conjunction]:
    """Read a list of texts, or a mapping from texts to numbers."""
    if isinstance(given, Mapping):
        return [
            parse_conjunction(faults, f"{path}[{i}]", str(texts).split(","), number)
            for i, (texts, number) in enumerate(given.items())
        ]
    if not isinstance(given, list | tuple):
        faults.add(path, given, "needs a list of constraints, or a mapping to numbers")
        return []
    return [parse_conjunction(faults, path, given)] if given else []


def _locality(faults: FaultList, path: str, text: object) -> Tiers:
    """Read ``region=us,zone=a``."""
    if not isinstance(text, str):
        faults.add(path, text, "must be a string such as 'region=us,zone=a'")
        return ()
    found = []
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        key, sign, value = part.partition("=")
        if not key or not value or not sign or "=" in value or key == HOST:
            faults.add(path, text, f"{part!r} is no tier such as region=us")
            return ()
        found.append((key, value))
    return tuple(found)


def _per_range(
    faults: FaultList,
    path: str,
    given: ArrayLike | None,
    count: int,
    dtype: type[np.generic],
    default: float,
) -> NDArray[Any]:
    """Read one number for each."""
    if given is None:
        return np.full(count, default, dtype)
    return as_array(faults, path, given, dtype, (count,))


def _amounts(faults: FaultList, path: str, given: ArrayLike, count: int) -> NDArray[np.float64]:
    """Read one amount for each range."""
    if np.ndim(given) == 0:
        given = np.full(count, given)
    found: NDArray[np.float64] = as_array(faults, path, given, np.float64, (count,))
    list_entries(faults, path, found, ~(found >= 0.0), "must not be negative or NaN")
    return found


def _roles(
    faults: FaultList, given: ArrayLike | None, rows: NDArray[np.int32]
) -> NDArray[np.uint8]:
    if given is None:
        return np.zeros(rows.shape, np.uint8)
    found: NDArray[np.uint8] = as_array(faults, "roles", given, np.uint8, rows.shape)
    list_entries(faults, "roles", found, found > kernel.LEARNER, "is no role; 0, 1 or 2")
    return found


def _leaders(
    faults: FaultList,
    given: ArrayLike | None,
    rows: NDArray[np.int32],
    role: NDArray[np.uint8],
) -> NDArray[np.int16]:
    """Slots of the leaseholders; a store without a replica of the range holds no lease."""
    votes = (rows >= 0) & (role == kernel.VOTER)
    if given is None:
        return np.where(votes.any(axis=1), votes.argmax(axis=1), -1).astype(np.int16)
    store = as_array(faults, "leaseholder", given, np.int32, (len(rows),))
    there = (rows == store[:, None]) & (rows >= 0)
    for p in np.flatnonzero((store >= 0) & ~there.any(axis=1)).tolist():
        faults.add(f"leaseholder[{p}]", int(store[p]), f"range {p} has no replica there")
    return np.where(there.any(axis=1), there.argmax(axis=1), -1).astype(np.int16)


def _states(faults: FaultList, given: Sequence[str] | None, count: int) -> NDArray[np.int8]:
    if given is None:
        return np.zeros(count, np.int8)
    if len(given) != count:
        faults.add("status", len(given), f"needs one state for each of {count} stores")
        return np.zeros(count, np.int8)
    for s, name in enumerate(given):
        if name not in STATES:
            faults.add(f"status[{s}]", name, f"is none of {', '.join(STATES)}")
    return np.array([STATES.get(name, 0) for name in given], np.int8)


def _check_hosts(faults: FaultList, ids: NDArray[np.int32], tiers: Sequence[Tiers]) -> None:
    """A locality is the host's: its stores share it."""
    first: dict[int, int] = {}
    for s, host in enumerate(ids.tolist()):
        other = first.setdefault(host, s)
        if tiers[other] != tiers[s]:
            faults.add(
                f"localities[{s}]", tiers[s], f"differs from that of store {other}, same host"
            )


def _levels(tiers: Sequence[Tiers], ids: NDArray[np.int32]) -> dict[str, list[str]]:
    """Labels of every tier, in the order in which most localities have them, and of the host."""
    names: dict[str, None] = {}
    for one in sorted(tiers, key=len, reverse=True):
        for key, _ in one:
            names.setdefault(key)
    levels = {name: [dict(one).get(name, "") for one in tiers] for name in names}
    return levels | {HOST: [str(host) for host in ids.tolist()]}


def _tags(attributes: Sequence[Sequence[str]] | None, count: int) -> dict[str, NDArray[np.bool_]]:
    tags: dict[str, NDArray[np.bool_]] = {}
    for s, listed in enumerate(attributes or ()):
        for name in listed:
            tags.setdefault(name, np.zeros(count, np.bool_))[s] = True
    return tags


def _widened(
    rows: NDArray[np.int32],
    role: NDArray[np.uint8],
    replicas: NDArray[np.int32],
    voters: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Add empty slots, so that every range has one for each replica that it should have."""
    missing = max(int(replicas.max(initial=0)) - rows.shape[1], 0)
    rows = np.hstack([rows, np.full((len(rows), missing), -1, np.int32)])
    role = np.hstack([role, np.zeros((len(role), missing), np.uint8)])
    voting = ((role == kernel.VOTER) & (rows >= 0)).sum(axis=1)
    for slot in range(rows.shape[1]):
        empty = rows[:, slot] < 0
        short = empty & (voting < voters)
        role[empty, slot] = kernel.NON_VOTER
        role[short, slot] = kernel.VOTER
        voting += short
    return rows, role
