"""The CockroachDB format: read ranges, nodes and zone configurations, write statements.

References
----------
CockroachDB, ``SHOW RANGES``, ``crdb_internal.ranges``, ``crdb_internal.kv_store_status``,
``cockroach node status --all``, ``SHOW ZONE CONFIGURATIONS``, ``ALTER RANGE ... RELOCATE``.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.cockroach.allocator.intake import FORMAT as NAME
from evenkeel.systems.cockroach.allocator.intake import CockroachMap, plenty, sites_of
from evenkeel.systems.cockroach.cluster import read
from evenkeel.systems.cockroach.documents import kind_of, shell_hint
from evenkeel.systems.csv_text import encode_table
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import (
    Answer,
    Carrier,
    Change,
    Observed,
    Orders,
    Wave,
    as_wanted,
    observed,
    stem,
)
from evenkeel.systems.folders.form import Command, Hold, Setting
from evenkeel.systems.notes import noted
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

COLUMNS = {
    "voting_replicas": Role.VOTER, "non_voting_replicas": Role.NON_VOTER,
    "learner_replicas": Role.LEARNER,
}  # fmt: skip
KINDS = {Role.VOTER: "VOTERS", Role.NON_VOTER: "NONVOTERS"}


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return ``ALTER RANGE`` statements and the way back; a ``.csv`` is the table of ranges."""
    # On the way back nothing goes to a store that is down: such a range stays where it then is.
    # Without a placement there is nothing to alter, and the table shows the placement of ranges.
    faults = FaultList()
    check_numbers(faults, cluster)
    faults.raise_if_any()
    target = cluster.placement if placement is None else placement
    if placement is None or path.suffix == ".csv":
        return {path: _table(cluster, target)}
    return {
        path: _all_statements(cluster, cluster.placement, target),
        path.with_suffix(".rollback.sql"): _all_statements(
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
    """Return the exchanges in an order in which each target store is free of the range."""
    # ``RELOCATE`` refuses a store that holds a replica in another role, so that voters and
    # non-voters which trade places are left out: CockroachDB promotes and demotes them by itself
    found, waiting = [], [*exchanges]
    while ready := next((one for one in waiting if one[2] not in held), None):
        waiting.remove(ready)
        found.append(ready)
        held = held - {ready[1]} | {ready[2]}
    return found


def _all_statements(
    cluster: Cluster, now: Placement, then: Placement, down: frozenset[int] = frozenset()
) -> bytes:
    """Return a statement for each replica and lease that goes elsewhere."""
    # Of a range of which a replica would join a store that is ``down``, there is only a comment.
    # One comment at the end lists, for all ranges, the work left to CockroachDB.
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


HELD = "range_id, replicas, voting_replicas, non_voting_replicas, learner_replicas, lease_holder"
NAMES = "database_name, schema_name, table_name, index_name"
LOAD = "kv.allocator.load_based_rebalancing"

SETTINGS = (
    Setting("URL", "", "address as `cockroach sql --url` takes it, that of the tool by default"),
)

NOTES = (
    "The user must have the role `admin`: `ALTER RANGE ... RELOCATE` asks for it. CockroachDB "
    "has that statement since 22.1, and means it for those who know what they do.",
    "`kv.allocator.load_based_rebalancing` is `off` from the first statement to the last, and then "
    "as it was. A run that failed gives it back by `sh run.sh --release`.",
    "CockroachDB goes on to repair ranges and to keep zone configurations: what breaks these it "
    "takes back, and a run stops there. What is to stay needs a zone configuration.",
    "A range that is split or merged meanwhile is not there or is another: a run stops.",
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the statements of each wave: voters, then non-voters, then the lease of each range."""
    faults = FaultList()
    check_numbers(faults, cluster)
    faults.raise_if_any()
    unpaired: dict[str, list[str]] = {}
    found = [
        "".join(f"{line}\n" for one in wave for line in _statements(faults, cluster, one, unpaired))
        for wave in waves
    ]
    if unpaired:
        message = (
            "RELOCATE only exchanges replicas, CockroachDB adds and removes them itself: pin the "
            "ranges, or change their zones"
        )
        ranges = [f"{name} ({' '.join(theirs)})" for name, theirs in unpaired.items()]
        faults.add(counted(len(ranges), "range"), some_of(ranges, str), message)
    faults.raise_if_any()
    names = [f"{stem(number, len(waves))}statements.sql" for number in range(1, len(waves) + 1)]
    return [
        Orders([_sql("-f", "${FILE}", file=name)], {name: text.encode()})
        for name, text in zip(names, found, strict=True)
    ]


def _sql(*words: str, save: str = "", file: str = "", check: str = "") -> Command:
    run = ["cockroach", "sql", ["--url", "${URL}"], "--format=csv", *words]
    return Command(run, file=file, save=save, check=check)


def _held() -> Command:
    """Return what takes moves by load away from CockroachDB, and how they are given back."""
    read = _sql("-e", f"SHOW CLUSTER SETTING {LOAD}", check="setting")
    back = _sql("-e", f"SET CLUSTER SETTING {LOAD} = '${{WAS}}'")
    command = _sql("-e", f"SET CLUSTER SETTING {LOAD} = 'off'")
    command.hold = Hold(LOAD, [back], read, "off")
    return command


def look(plan: "Plan") -> list[Command]:
    """Return what lists ranges, zones, stores and nodes."""
    ranges = _sql("-e", f"SELECT {HELD}, {NAMES} FROM crdb_internal.ranges LEFT JOIN (SELECT "
                  f"range_id, {NAMES} FROM [SHOW CLUSTER RANGES WITH INDEXES]) AS named USING "
                  "(range_id)", save="ranges.csv")  # fmt: skip
    # later releases do not name tables in their internal table, earlier ones only there
    ranges.otherwise = _sql(
        "-e", f"SELECT {HELD}, {NAMES} FROM crdb_internal.ranges", save="ranges.csv"
    )
    # no file gives the ranges of a partition, so its zone is none that could be kept
    zones = ("SELECT target, raw_config_sql FROM [SHOW ZONE CONFIGURATIONS] "
             "WHERE target NOT LIKE 'PARTITION %'")  # fmt: skip
    stores = "SELECT node_id, store_id, attrs, capacity FROM crdb_internal.kv_store_status"
    status = ["cockroach", "node", ["--url", "${URL}"], "status", "--all", "--format=csv"]
    return [
        ranges,
        _sql("-e", zones, save="zones.csv"),
        _sql("-e", stores, save="stores.csv"),
        Command(status, save="nodes.csv"),
    ]


def setting(output: str) -> Answer:
    """Return the value of a cluster setting."""
    value = output.strip().rpartition("\n")[2]
    return Answer(re.fullmatch(r"[a-z -]+", value) is not None, value)


def _statements(
    faults: FaultList, cluster: Cluster, change: Change, unpaired: dict[str, list[str]]
) -> Iterator[str]:
    """Yield the statements of a change, and add to ``unpaired`` what none can do."""
    stores, first = cluster.nodes.names, int(cluster.placement.first[change.partition])
    roles = [Role(int(role)) for role in cluster.placement.role[first : first + len(change.after)]]
    before = {n: role for n, role in zip(change.before, roles, strict=True) if n >= 0}
    after = {n: role for n, role in zip(change.after, roles, strict=True) if n >= 0}
    if traded := [stores[n] for n in before.keys() & after.keys() if before[n] != after[n]]:
        faults.add(change.name, sorted(traded), "would change roles: RELOCATE exchanges stores")
    for role in dict.fromkeys([*KINDS, *roles]):
        leaves = [n for n, own in before.items() if own == role and n not in after]
        joins = [n for n, own in after.items() if own == role and n not in before]
        if not (leaves or joins):
            continue
        if len(leaves) != len(joins) or role not in KINDS:
            moves = [*(f"-{stores[n]}" for n in leaves), *(f"+{stores[n]}" for n in joins)]
            unpaired.setdefault(change.name, []).extend(moves)
            continue
        for source, target in zip(leaves, joins, strict=True):
            way = f"FROM {stores[source]} TO {stores[target]}"
            yield f"ALTER RANGE {change.name} RELOCATE {KINDS[role]} {way};"
    if leader(change) >= 0:
        yield f"ALTER RANGE {change.name} RELOCATE LEASE TO {stores[change.leads]};"


def leader(change: Change) -> int:
    """Return who is given the lease; -1 where it is left to CockroachDB."""
    return change.leads if change.leads != change.led else -1


def observe(documents: Sequence[Document]) -> Observed:
    """Return where ranges are seen; zones, which ``resume`` reads, have no part in that."""
    return observed(read([one for one in documents if not kind_of(one).startswith("zone")]))


PACE = (
    "The cluster setting `kv.snapshot_rebalance.max_rate` limits what a node sends: set it before, "
    "and back afterwards."
)


def lists_stores(documents: Sequence[Document]) -> bool:
    """Return whether they tell all nodes and their stores: ranges name those with replicas."""
    return {"node status", "store status"} <= {*map(kind_of, documents)}


CARRIER = Carrier(
    orders=orders, look=look, checks={"setting": setting}, settings=SETTINGS, notes=NOTES,
    hold=(_held(),), still=f"{LOAD} is still off", leader=leader, observe=observe,
    lists_nodes=lists_stores, listed=as_wanted, pace=PACE,
)  # fmt: skip


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield the missing inputs, their effect, and the commands that print them."""
    native = cluster.native
    yield from noted(native)
    tables = native.tables if isinstance(native, CockroachMap) else None
    if tables and tables.database:
        yield (
            f"no database of the ranges: they count as those of {tables.database}, by the "
            "zones; add database_name"
        )
    if tables and tables.unapplied:
        theirs = some_of(tables.unapplied, printable)
        yield (
            f"no ranges of {theirs}, whose zones hold for none here"
            if "table_name" in tables.columns
            else f"no tables of the ranges: the zones of {theirs} hold for none of them; add "
            "table_name, as SHOW RANGES prints it WITH TABLES"
        )
    load = cluster.partitions.load.leader
    silent = [cluster.dimensions[d] for d in np.flatnonzero(~load.any(axis=0)).tolist()]
    if silent and len(load):
        yield f"no load of {', '.join(silent)}: ranges count as if they took none"
    # no file limits the number of replicas of a store
    named = [name for name in uncapped(cluster) if name != "replicas"]
    if named:
        yield (
            f"no capacities of {' and '.join(named)}: each store has eight times what all "
            "replicas take, and percentages are of that; add crdb_internal.kv_store_status"
        )


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions in which every store has the plenty that stands for no capacity."""
    load, placement = cluster.partitions.load.leader, cluster.placement
    held = np.bincount(placement.owner[placement.node >= 0], minlength=len(placement))
    most = plenty(load, np.maximum(cluster.partitions.replicas, held))
    made_up = np.isclose(cluster.nodes.capacity, most, rtol=1e-9).all(axis=0) & load.any(axis=0)
    return [cluster.dimensions[d] for d in np.flatnonzero(made_up).tolist()]


FORMAT = Format(
    name=NAME,
    summary="CockroachDB: ranges, node status and store status as CSV, TSV, JSON or printed "
    "tables, zone configurations as SQL or YAML",
    suffixes=(".sql",),
    recognises=kind_of,
    read=read,
    encode=encode,
    enforces=True,
    carrier=CARRIER,
    keeps_repairs=True,
    left_out=left_out,
    uncapped=uncapped,
    hint=shell_hint,
    stranded="a range changes its replicas by a majority of its voters: bring back nodes that hold "
    "them, or recover without them at the loss of data (cockroach debug recover), and read again",
)
