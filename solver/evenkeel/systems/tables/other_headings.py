"""Read tables of replicas under the headings of the systems that print them."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.csv_text import Table
from evenkeel.systems.documents import quoted
from evenkeel.systems.tables.lists import FALSE, NULLS, TRUE, lists_in, row_by_replica
from evenkeel.systems.tables.other_nodes import PARTED
from evenkeel.systems.tables.replica_states import BROKEN, STATED

# what columns of replicas are called, in lower case, ours first
WORDS = {
    "group": ("group", "table_name", "tablename", "relname", "table", "topic", "collection",
              "keyspace", "database", "db", "cluster"),
    "index": ("index", "shard", "shard_num", "shard_name", "last_token", "id"),
    "partition": ("partition", "region_id", "regionid", "region_name", "tablet_id", "tabletid",
                  "shardid", "segment_id", "content", "partition_id", "partition_name", "shard_id",
                  "chunk", "chunk_id", "vm", "vm_name", "vm_id", "vmid", "pod", "tenant",
                  "tenant_id", "tenant_name", "bucket", "tablet", "block", "block_id", "slot",
                  "partitionid", "pidx"),
    "node": ("node", "store_id", "backend_id", "backendid", "datanodeid", "server", "server_name",
             "nodename", "node_name", "hostname", "host_name", "node_id", "host", "broker",
             "broker_id", "instance", "worker", "nodes", "replicas", "hosts", "servers", "brokers",
             "owners", "machine", "datanode", "tserver", "hypervisor", "region_server"),
    "role": ("role", "tablettype", "prirep", "replicarole"),
}  # fmt: skip

# columns of Greenplum, ScyllaDB and YugabyteDB that mean this only beside one of others
BESIDE = {"content": {"preferred_role"}, "replicas": {"last_token", "start_hash_code"}}

# columns of chunks of MongoDB, regions of TiKV, tasks of Docker and Nomad and machines of VMware:
# some that the others are ours beside
OF_SYSTEMS = (
    ({"ns", "min", "max"}, {"partition": "id", "node": "shard", "group": "ns"}),
    ({"uuid", "min", "max"}, {"partition": "id", "node": "shard", "group": "uuid"}),
    ({"peer_stores"}, {"partition": "id", "node": "peer_stores"}),
    (set[str](), {"partition": "name", "node": "region_server"}),
    ({"desired_state"}, {"partition": "name", "node": "node"}),
    ({"desiredstate"}, {"partition": "name", "node": "node"}),
    ({"desired"}, {"partition": "id", "node": "node_name", "group": "task_group"}),
    ({"desired"}, {"partition": "id", "node": "node_id", "group": "task_group"}),
    (set[str](), {"partition": "name", "node": "vmhost"}),
)

JUMBO = "jumbo"  # a column of chunks that stay where they are

TASKS = (frozenset({"shutdown", "remove", "stop", "evict"}), "rows of tasks that are no more")
MACHINES = (
    frozenset({"shelved_offloaded", "soft_deleted", "deleted"}),
    "rows of machines that have no host",
)
PLACEMENTS = (frozenset({"4"}), "rows of placements that are to be deleted (shardstate 4)")
# columns by which tasks of Docker and Nomad, machines of OpenStack and placements of Citus have no
# place any more, the words of these, and what to call them
PAST = {
    **dict.fromkeys(("desired state", "desiredstate", "desired"), TASKS),
    "status": MACHINES,
    "shardstate": PLACEMENTS,
}

# columns of what tables are in, which may be called alike in several
SPACES = ("keyspace_name", "keyspace", "schema_name", "schema", "table_schema", "database", "db",
          "db_name", "dbname")  # fmt: skip

KEYSPACE, COORDINATOR = "keyspace_name", "-1"
OF_COORDINATOR = f"rows of the coordinator (content {COORDINATOR})"
# how Greenplum and Elasticsearch write roles
LETTERS = {"p": "primary", "m": "secondary", "r": "replica"}

# columns that are true where a replica has a role, or that name the node which has it
FLAGGED = {"leader": ("is_leader", "leader", "is_primary", "primary", "is_master", "master",
                      "leader_node", "primary_node"),
           "learner": ("is_learner",)}  # fmt: skip

LEADING = ("leader", "primary", "master")
# columns that each name the node of one replica, or list those that follow
PLACE = re.compile(
    r"(?:leader|primary|master)(?:[ _-]?(?:node|host))?|secondaries"
    r"|(?:replica|follower|secondary|standby|backup|peer)(?:[ _-]?(?:node|host))?s?"
    r"|(?:replica|node|host|broker|server|follower|secondary|standby)[ _-]?([0-9]+)"
)

# cells that say what a node has of a partition, where those of a place name a node
MARKS = {"true", "false", "t", "f", "yes", "no", "y", "n", "x", "p", "r", "m", "s", "l",
         "leader", "primary", "master", "replica", "follower", "secondary", "slave"}  # fmt: skip

# columns of amounts without the name of a dimension, which is theirs
SIZES = ("size", "load", "bytes")

# columns that become roles and loads
OTHERS = (*SIZES, *(one for names in FLAGGED.values() for one in names))

PORT = "nodeport"
KEPT = ("size_", "load_", "leader_load_", "non_voter_load_")


def titles_in(names: AbstractSet[str]) -> dict[str, str]:
    """Return the columns by our names; none if a node or its partitions have no column.

    >>> titles_in({"region_id", "store_id", "is_leader"})
    {'partition': 'region_id', 'node': 'store_id'}
    >>> titles_in({"partition", "replica_1", "replica_2"})
    {'partition': 'partition', 'node': 'node'}
    >>> titles_in({"store_id", "region_count"})
    {}
    """
    called = {PARTED.sub("_", one).strip("_"): one for one in names}
    found = {
        own: called[here[0]]
        for own, words in WORDS.items()
        if (here := [one for one in words if one in called and BESIDE.get(one, {one}) & {*called}])
    }
    places = places_in(names)
    led = sum(one.startswith(LEADING) for one in places)
    if "node" not in found and len(places) > 1 and led < 2:
        found["node"] = "node"
    if "node" not in found and found.get("partition", "")[:5] == "chunk" and "index" in found:
        found["node"] = found.pop("index")  # a chunk of MongoDB on a shard
    for beside, own in OF_SYSTEMS:
        if called.keys() >= {*beside, *own.values()}:
            found = {name: called[one] for name, one in own.items()}
            break
    if not found.keys() & {"group", "partition"} and found.get("index", "")[:5] == "shard":
        found["partition"] = found.pop("index")
    located = "node" in found and ("partition" in found or found.keys() >= {"group", "index"})
    return found if located else {}


def places_in(names: AbstractSet[str]) -> list[str]:
    """Return the columns that each name the node of one replica, in order.

    >>> places_in({"primary", "secondary", "size"}), places_in({"leader", "node"})
    (['primary', 'secondary'], ['leader'])
    """
    found = {one: match for one in names if (match := PLACE.fullmatch(one))}
    return sorted(
        found, key=lambda one: (not one.startswith(LEADING), int(found[one][1] or 0), one)
    )


def in_our_words(faults: FaultList, table: Table) -> tuple[Table, list[str]]:
    """Return a table under our headings, and the titles of columns that are not read."""
    found = titles_in(table.columns.keys())
    segments = found.get("partition") == "content"
    if "partition" in found:
        found.pop("index", None)
    if found["node"] not in table.columns:
        table = _with_lists(faults, table)
    table = row_by_replica(table, (), found["node"])
    if found.get("index") == "id":
        _check_ids(faults, table, [table.columns[found["group"]], table.columns["id"]])
    columns = {own: table.columns[one] for own, one in found.items()}
    if PORT in table.columns:
        both = zip(columns["node"], table.columns[PORT], strict=True)
        columns["node"] = [f"{name}:{port}" for name, port in both]
    tasks = not {"desired state", "desiredstate"}.isdisjoint(table.columns)  # of Docker
    if tasks:
        columns["group"] = [name.rpartition(".")[0] for name in columns["partition"]]
    if JUMBO in table.columns and found["node"] == "shard":
        columns["pinned"], found["pinned"] = table.columns[JUMBO], JUMBO
    if {*columns.get("role", ())} <= LETTERS.keys() and "role" in columns:
        columns["role"] = [LETTERS[cell] for cell in columns["role"]]
    space = next((one for one in SPACES if one in table.columns and "group" in columns), "")
    spaced = [*zip(table.columns[space], columns["group"], strict=True)] if space else []
    if space == KEYSPACE or len({*spaced}) > len({name for _, name in spaced}):
        columns["group"] = [".".join(names) for names in spaced]
    elif space:
        space = ""
    if {"group", "partition"} <= columns.keys() and _repeat(columns):
        columns["index"], found["index"] = columns.pop("partition"), found.pop("partition")
    others = (*OTHERS, *STATED, *BROKEN)
    amounts = {
        one: cells for one, cells in table.columns.items() if one.startswith(KEPT) or one in others
    }
    read = {*found.values(), *amounts, PORT, space}
    ours = tasks or not BESIDE.keys().isdisjoint(found.values())
    titles = {
        own: own if ours else table.titles.get(found.get(own, own), own)
        for own in (*columns, *amounts)
    }
    left = [title for one, title in table.titles.items() if one not in read]
    columns, lines = {**columns, **amounts}, table.lines
    stated = next((one for one in PAST if one in table.columns), "desired")
    apart = [cell.lower() in PAST[stated][0] for cell in table.columns.get(stated, ())]
    if segments:
        apart = [cell == COORDINATOR for cell in columns["partition"]]
    if any(apart):
        kept = [row for row, one in enumerate(apart) if not one]
        columns = {name: [cells[row] for row in kept] for name, cells in columns.items()}
        lines = [lines[row] for row in kept]
        left.insert(0, OF_COORDINATOR if segments else PAST[stated][1])
    return Table(table.name, columns, lines, titles, notes=table.notes), left


def by_id_or_name(table: Table, *, replicas: bool = False) -> Table | None:
    """Return a table of replicas whose partitions have an id or a name; None if it is of nodes."""
    columns = dict(table.columns)
    node = next((one for one in WORDS["node"] if one in columns), "")
    called = [one for one in ("name", "id") if one in columns]
    limited = any(one.startswith("cap_") for one in columns)
    # a node comes several times in a table of replicas
    if not node or not called or limited or (not replicas and len({*columns[node]}) == len(table)):
        return None
    named = next((one for one in called if len({*columns[one]}) == len(table)), called[-1])
    columns["partition"] = columns.pop(named)
    titles = {**table.titles, "partition": table.titles[named]}
    titles = {one: titles[one] for one in columns}
    return Table(table.name, columns, table.lines, titles, table.delimiter, table.notes)


def _check_ids(faults: FaultList, table: Table, keys: Sequence[Sequence[str]]) -> None:
    """Report ids that are of rows rather than of partitions, which repeat or are numbers from 0."""
    ids = {*keys[1]}
    if len({*zip(*keys, strict=True)}) == len(ids) == len(table) and ids != {
        *map(str, range(len(ids)))
    }:
        message = "has another id in each row: name the partition of each replica"
        faults.add(f"{table.name}: id", quoted(keys[1][0]), message)


def _repeat(columns: Mapping[str, Sequence[str]]) -> bool:
    """Return whether groups number their partitions, so that several have the same numbers."""
    both = {*zip(columns["group"], columns["partition"], strict=True)}
    return len({partition for _, partition in both}) < len(both)


def _with_lists(faults: FaultList, table: Table) -> Table:
    """Return a table with the nodes of columns of replicas as lists in one column."""
    places = places_in(table.columns.keys())
    for one in places:
        found = {cell.lower() for cell in {*table.columns[one]} - {"", *NULLS}}
        counts = one.endswith("s") and all(cell.isdigit() for cell in found)
        if found and (found <= MARKS or counts):
            message = "names no node: such a column names those of replicas, or lists them"
            faults.add(f"{table.name}: {table.titles[one]}", quoted(sorted(found)[0]), message)
    columns = {one: cells for one, cells in table.columns.items() if one not in places}
    several = lists_in({cell for one in places for cell in table.columns[one]}, ())
    lists = [
        [[name for name in several.get(cell, [cell]) if name and name not in NULLS] for cell in row]
        for row in zip(*(table.columns[one] for one in places), strict=True)
    ]
    if places[0].startswith(LEADING):
        columns["leader"] = table.columns[places[0]]
        # a node that leads and is listed by another column counts once
        if any({*row[0]} & {*chain(*row[1:])} for row in lists):
            lists = [row[1:] if any(row[1:]) else row for row in lists]
    columns["node"] = [msgspec.json.encode([*chain(*row)]).decode() for row in lists]
    titles = {one: table.titles.get(one, one) for one in columns}
    return Table(table.name, columns, table.lines, titles, notes=table.notes)


def completed(faults: FaultList, table: Table, nodes: Table) -> tuple[Table, list[str]]:
    """Return a table with roles and loads from columns of other systems, and titles not read."""
    columns, titles = dict(table.columns), {**table.titles}
    others = {one: columns.pop(one) for one in OTHERS if one in columns}
    if not others:
        return table, []
    read = []
    flags: dict[str, list[bool]] = {}
    for role, names in FLAGGED.items():
        for one in names if "role" not in columns else ():
            if one in others and role not in flags:
                flags[role] = _having_role(others[one], columns)
                read.append(one)
                if len(table) and not flags[role]:
                    known = {*TRUE, *FALSE, *NULLS}
                    row = next(i for i, cell in enumerate(others[one]) if cell.lower() not in known)
                    message = "is neither true nor false, nor the node of a replica"
                    faults.add(table.at(row, titles[one]), quoted(others[one][row]), message)
    if all(flags.values()) and flags:
        rows = range(len(table))
        roles = [[role for role, having in flags.items() if having[row]] for row in rows]
        columns["role"] = [(own or ["voter"])[0] for own in roles]
        titles["role"] = "role"
    size = next((one for one in SIZES if one in others), "")
    limited = [one for one in nodes.columns if one.startswith("cap_")]
    if (
        size
        and not any(one.startswith(KEPT) for one in columns)
        and (not limited or f"cap_{size}" in limited)
    ):
        read.append(size)
        columns[f"size_{size}"], titles[f"size_{size}"] = others[size], f"size_{titles[size]}"
    titles_left = {one: title for one, title in titles.items() if one in columns}
    made = Table(table.name, columns, table.lines, titles_left, table.delimiter, table.notes)
    return made, [table.titles[one] for one in others if one not in read]


def _having_role(cells: Sequence[str], columns: Mapping[str, Sequence[str]]) -> list[bool]:
    """Return which replicas a column marks, or names by their nodes; none if it does neither."""
    nodes = columns["node"]
    named_by = columns.keys() & {"partition", "group", "index"}
    keys = [*zip(*(columns[one] for one in named_by), strict=True)]
    alike = len({*zip(keys, cells, strict=True)}) == len({*keys}) < len(keys)
    # nodes that are the same in all rows of a partition are names, 1 as well as 2
    numbers = "1" in cells and alike and {*cells} <= {*nodes}
    if not numbers and {cell.lower() for cell in {*cells} - NULLS} <= {*TRUE, *FALSE}:
        return [cell.lower() in TRUE for cell in cells]
    named = [cell == node for cell, node in zip(cells, nodes, strict=True)]
    return named if any(named) else []
