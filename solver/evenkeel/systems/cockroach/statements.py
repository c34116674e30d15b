"""Writes ALTER RANGE statements for a placement, or a table of ranges and their stores."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.printable import counted
from evenkeel.systems.cockroach.allocator.compile import CockroachMap, sites_of
from evenkeel.systems.csv_text import encode_table

COLUMNS = {
    "voting_replicas": Role.VOTER, "non_voting_replicas": Role.NON_VOTER,
    "learner_replicas": Role.LEARNER,
}  # fmt: skip
KINDS = {Role.VOTER: "VOTERS", Role.NON_VOTER: "NONVOTERS"}


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return ``ALTER RANGE`` statements and the way back; a ``.csv`` is the table of ranges.

    On the way back nothing goes to a store that is down: such a range stays where it then is.
    Without a placement there is nothing to alter, and the table shows the placement of ranges.
    """
    faults = FaultList()
    check_numbers(faults, cluster)
    faults.raise_if_any()
    target = cluster.placement if placement is None else placement
    if placement is None or path.suffix == ".csv":
        return {path: _table(cluster, target)}
    return {
        path: _statements(cluster, cluster.placement, target),
        path.with_suffix(".rollback.sql"): _statements(
            cluster, target, cluster.placement, _down(cluster)
        ),
    }


def check_numbers(faults: FaultList, cluster: Cluster) -> None:
    """Note ranges and stores that are not named by their numbers."""
    for path_of, names in (
        ("partition_names", cluster.partitions.names),
        ("node_names", cluster.nodes.names),
    ):
        for i, name in enumerate(names):
            if not (name.isascii() and name.isdecimal()):
                faults.add(f"{path_of}[{i}]", name, "must be a number")


def _table(cluster: Cluster, placement: Placement) -> bytes:
    """Return the ranges as ``SHOW RANGES`` prints them."""
    stores = list(cluster.nodes.names)
    rows, held = range(len(placement)), _by_role(placement)
    columns: dict[str, Sequence[Any]] = {"range_id": list(cluster.partitions.names)}
    columns["replicas"] = [_array(stores[n] for role in Role for n in held[role][p]) for p in rows]
    places = _localities(cluster)
    if any(places):
        columns["replica_localities"] = [
            _array(f'"{places[n]}"' for role in Role for n in held[role][p]) for p in rows
        ]
    for name, role in COLUMNS.items():
        columns[name] = [_array(stores[n] for n in held[role][p]) for p in rows]
    leads = placement.leader_node.tolist()
    columns["lease_holder"] = [stores[n] if n >= 0 else "" for n in leads]
    if cluster.bytes_dimension >= 0:
        size = cluster.partitions.load.voter[:, cluster.bytes_dimension]
        columns["range_size"] = [int(one) if one == int(one) else one for one in size.tolist()]
    native = cluster.native
    tables = native.tables if isinstance(native, CockroachMap) else None
    if tables is not None and len(tables.of) == len(placement):
        for i, name in enumerate(tables.columns):
            columns[name] = [tables.rows[t][i] for t in tables.of.tolist()]
        if tables.starts:
            columns["start_pretty"] = [tables.starts.get(p, "") for p in rows]
    elif len(cluster.partitions.group_names) > 1:
        groups = cluster.partitions.group.tolist()
        columns["table_name"] = [cluster.partitions.group_names[g] for g in groups]
    return encode_table(columns)


def _localities(cluster: Cluster) -> list[str]:
    """Return where each store is, as CockroachDB writes it: ``region=us,az=b``."""
    return [
        ",".join(f"{tier}={value}" for tier, value in site.locality) for site in sites_of(cluster)
    ]


def _array(ids: Any) -> str:
    return "{" + ",".join(ids) + "}"


def _by_role(placement: Placement) -> dict[Role, list[list[int]]]:
    """Return the nodes of each partition that hold a replica in each role."""
    found: dict[Role, list[list[int]]] = {}
    for role in Role:
        held = np.flatnonzero((placement.role == role) & (placement.node >= 0))
        nodes = placement.node[held].tolist()
        ends = np.searchsorted(held, placement.first).tolist()
        found[role] = [nodes[a:b] for a, b in pairwise(ends)]
    return found


def _down(cluster: Cluster) -> frozenset[int]:
    """Return the stores to which nothing can go back."""
    return frozenset(np.flatnonzero(~cluster.nodes.serves).tolist())


def _accepted(
    exchanges: Sequence[tuple[Role, int, int]], held: set[int]
) -> list[tuple[Role, int, int]]:
    """Return the exchanges in an order in which each target store is free of the range.

    ``RELOCATE`` refuses a store that holds a replica in another role, so that voters and non-voters
    which trade places are left out: CockroachDB promotes and demotes them by itself.
    """
    found, waiting = [], [*exchanges]
    while ready := next((one for one in waiting if one[2] not in held), None):
        waiting.remove(ready)
        found.append(ready)
        held = held - {ready[1]} | {ready[2]}
    return found


def _statements(
    cluster: Cluster, now: Placement, then: Placement, down: frozenset[int] = frozenset()
) -> bytes:
    """Return a statement for each replica and lease that goes elsewhere.

    Of a range of which a replica would join a store that is ``down``, there is only a comment. One
    comment at the end lists, for all ranges, the work left to CockroachDB.
    """
    stores, lines = list(cluster.nodes.names), []
    left: dict[str, list[str]] = {}
    leads, led = then.leader_node.tolist(), now.leader_node.tolist()
    was, will = _by_role(now), _by_role(then)
    for p, name in enumerate(cluster.partitions.names):
        to_down = {n for role in KINDS for n in will[role][p] if n not in was[role][p]} & down
        if to_down:
            listed = ", ".join(stores[n] for n in sorted(to_down))
            lines.append(f"-- range {name} stays as it is: {listed} is down")
            continue
        exchanges: list[tuple[Role, int, int]] = []
        for role, kind in KINDS.items():
            before, after = was[role][p], will[role][p]
            leaves = [n for n in before if n not in after]
            joins = [n for n in after if n not in before]
            exchanges += [(role, *pair) for pair in zip(leaves, joins, strict=False)]
            rest = [f"+{stores[n]}" for n in joins[len(leaves) :]]
            rest += [f"-{stores[n]}" for n in leaves[len(joins) :]]
            if rest:
                left.setdefault(kind, []).append(f"{name} ({' '.join(rest)})")
        done = _accepted(exchanges, {n for role in Role for n in was[role][p]})
        for role, source, target in done:
            lines.append(
                f"ALTER RANGE {name} RELOCATE {KINDS[role]} "
                f"FROM {stores[source]} TO {stores[target]};"
            )
        for role, source, target in exchanges:
            if (role, source, target) not in done:
                traded = f"{name} (+{stores[target]} -{stores[source]})"
                left.setdefault(KINDS[role], []).append(traded)
        votes = {*was[Role.VOTER][p], *(target for role, _, target in done if role == Role.VOTER)}
        if leads[p] in votes and (leads[p] != led[p] or done):
            lines.append(f"ALTER RANGE {name} RELOCATE LEASE TO {stores[leads[p]]};")
    for kind, theirs in left.items():
        ranges = counted(len(theirs), "range")
        lines.append(f"-- {ranges}, {kind}: left to CockroachDB: {', '.join(theirs)}")
    return "".join(f"{line}\n" for line in lines).encode()
