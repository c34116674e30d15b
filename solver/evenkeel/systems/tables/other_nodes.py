"""Give the columns of node tables of other systems, such as ``host``, the names used here."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from evenkeel.systems.csv_text import Table
from evenkeel.systems.node_states import NODE_STATES
from evenkeel.systems.tables.lists import FALSE, NULLS, TRUE

# columns that name the node, beside ours
NAMES = ("host", "hostname", "host_name", "server", "server_name", "broker", "broker_id", "node_id",
         "nodeid", "node_name", "instance", "store_id", "backendid", "backend_id", "worker",
         "machine", "hypervisor_hostname", "hypervisor", "nodename", "member")  # fmt: skip

# columns of tiers by which a table of nodes is recognised that has no capacities
TIERS = {"cloud", "provider", "region", "dc", "datacenter", "data_center", "availability_zone",
         "az", "zone", "site", "room", "row", "rack", "cell", "host"}  # fmt: skip

PORT = "port"  # a column that is part of a node's name where replicas name nodes with it

# the columns of NebulaGraph's zones, whose names are not those of the hosts
OF_ZONES = {"name", "host", PORT}

OF_SHARDS = {"id", "host", "state"}  # columns of MongoDB's shards

# columns that may be a capacity, or a load beside the names of partitions
LIMIT = re.compile(
    r"(?:capacity|total|max|disk|storage|size|load|v?cpus?|cores|memory|mem|ram)(?:_.*)?"
    r"|.*_(?:capacity|total)|cap_.+"
)

KEPT_APART = ("size", "max_replicas")  # headings that mean something in both tables already

ONLY = re.compile(r"(?:(?:capacity|total|max)_?)+")
# columns that may be the capacity of the only load, but for the unit; and if it is of bytes
ONLY_BYTES = re.compile(r"(?:(?:capacity|total|max|disk|storage|space|size)_?)+")

AS_BYTES = ("size", "bytes", "disk", "storage")

# what parts the words of a heading, which are written with ``_`` here: ``node['name']``
PARTED = re.compile(r"[\W_]+")

AMOUNT = re.compile(r"[0-9][0-9.,']*\s*[A-Za-z]*")
UNIT = re.compile(r"_[kmgtp]i?b$")
STATUS = "status"
# columns of nodes that are true or false, the state of a node that they tell, and where
FLAGGED = {
    **dict.fromkeys(("alive", "is_alive", "online", "is_online"), ("down", FALSE)),
    **dict.fromkeys(("decommissioned", "systemdecommissioned", "decommissioning",
                     "is_decommissioning", "is_draining", "draining"), ("draining", TRUE)),
}  # fmt: skip

# what a status says of nodes that may still have what they held, and are not heard of now
UNHEARD = ("unknown", "disconnected", "initializing")

# our states by what a status says
STATES = {
    **dict.fromkeys(("online", "alive", "ready", "active", "healthy", "normal", "running",
                     "connected"), "up"),
    **dict.fromkeys(("leaving", "decommissioning", "removing"), "draining"),
    **dict.fromkeys(("readonly", "read_only"), "cordoned"),
    **dict.fromkeys(("offline", "dead", "notready", "inactive", "lost", "failed"), "down"),
    **dict.fromkeys(UNHEARD, "cordoned"),
}  # fmt: skip

# our states of nodes that are up by columns of Nomad and Docker
AVAILABLE = {
    "eligibility": {"ineligible": "cordoned"},
    "drain": {"true": "draining"},
    "availability": {"pause": "cordoned", "drain": "draining"},
}

OF_STORES = "store_state_name"
# columns of TiDB and VMware, and our states by their words: a store that is offline still has its
# data, and machines leave a host in maintenance
STATED = {
    OF_STORES: {"offline": "draining", "disconnected": "cordoned", "tombstone": "down"},
    "connectionstate": {"connected": "up", "maintenance": "draining", "disconnected": "down",
                        "notresponding": "down"},
}  # fmt: skip

# columns of PD and of VMware, and how others call them
CALLED = {"state_name": OF_STORES,
          **dict.fromkeys(("memorygb", "memorytotalgb"), "memory_gb")}  # fmt: skip


def describes_nodes(
    names: AbstractSet[str], ours: Collection[str], tiers: AbstractSet[str]
) -> bool:
    """Return whether a table names nodes, by one of ``ours`` or of others, and says more of them.

    >>> describes_nodes({"host", "disk_gb"}, (), set()), describes_nodes({"host"}, (), {"host"})
    (True, False)
    """
    names = {*map(_plain, names)}
    named = {*ours, *NAMES} & names
    more = names - named - {PORT}
    of_states = {STATUS, *STATED, *FLAGGED}
    more_of_them = (
        any(one in of_states or LIMIT.fullmatch(one) for one in more)
        or (more and more <= {*tiers, "state", "tags", "weight"})
        or (more & tiers and PORT in names)
    )
    return bool(named and more_of_them) or names == OF_ZONES or names >= OF_SHARDS


def _plain(name: str) -> str:
    """Return the title of a column, in lower case, as it is written here."""
    plain = PARTED.sub("_", name).strip("_")
    return CALLED.get(plain, plain)


def with_plain_names(table: Table) -> Table:
    """Return a table of nodes whose columns that mean something here have the names used here."""
    known = {"id", *NAMES, STATUS, *CALLED.values(), *FLAGGED}
    called = {
        one: plain
        for one in table.columns
        if (plain := _plain(one)) in known and plain not in table.columns
    }
    # a state that is a number, as MongoDB has it, is none of ours
    if all(map(str.isdigit, table.columns.get("state", [""]))):
        called["state"] = "state_number"
    columns = {called.get(one, one): cells for one, cells in table.columns.items()}
    titles = {called.get(one, one): title for one, title in table.titles.items()}
    return replace(table, columns=columns, titles=titles) if called else table


def named_as(table: Table, held: AbstractSet[str], ours: Sequence[str]) -> tuple[Table, list[str]]:
    """Return a table of nodes under the names that replicas give them, and titles left out."""
    columns, titles = dict(table.columns), dict(table.titles)
    if columns.keys() == OF_ZONES:
        columns["zone"], titles["zone"] = columns.pop("name"), "zone"
    names: dict[tuple[str, ...], list[str]] = {
        (one,): columns[one] for one in (*ours, *NAMES) if one in columns
    }
    if PORT in columns:
        names |= {
            (*one, PORT): [*map(":".join, zip(cells, columns[PORT], strict=True))]
            for one, cells in names.items()
        }
    usual = next(iter(names))
    found = next((one for one, cells in names.items() if not held.isdisjoint(cells)), usual)
    others = [one for one in ours if one in columns and one not in found]
    if found == usual and not others and {*found} <= {*ours}:
        return table, []
    left = [titles[one] for one in others]
    moved = found if {*found}.isdisjoint(ours) or len(found) > 1 else ()
    columns |= {moved[0]: names[found]} if moved else {}
    called = {
        one: "node" if one in moved else one
        for one in columns
        if one not in others and one not in moved[1:]
    }
    columns = {own: columns[one] for one, own in called.items()}
    titles = {own: titles[one] for one, own in called.items()}
    return Table(table.name, columns, table.lines, titles, table.delimiter, table.notes), left


def with_shared_loads(table: Table, nodes: Sequence[Table]) -> Table:
    """Return a table of replicas whose amounts under a heading of the nodes are loads."""
    ours = ("cap_", "load_", "size_", "leader_load_")
    if any(name.startswith(ours) for one in (table, *nodes) for name in one.columns):
        return table
    named = {CALLED.get(one, one): one for one in table.columns}
    shared = {
        named[name]: name for one in nodes for name, cells in one.columns.items()
        if name in named and name not in KEPT_APART and LIMIT.fullmatch(name)
        and all(
            AMOUNT.fullmatch(cell)
            for cell in {*cells, *table.columns[named[name]]} - NULLS if cell
        )
    }  # fmt: skip
    called = {one: f"load_{shared[one]}" if one in shared else one for one in table.columns}
    columns = {called[one]: cells for one, cells in table.columns.items()}
    titles = {
        called.get(one, one): f"load_{shared[one]}"
        if one in CALLED and one in shared
        else f"load_{title}"
        if one in shared
        else title
        for one, title in table.titles.items()
    }
    return replace(table, columns=columns, titles=titles)


def nodes_in_our_words(
    table: Table, known: Collection[str], loads: Sequence[str]
) -> tuple[Table, list[str]]:
    """Return a table under our headings, and the titles of columns that are not read."""
    columns, titles = dict(table.columns), dict(table.titles)
    flags = [one for one in FLAGGED if "state" not in columns and _is_flag(columns, one)]
    words = {STATES.get(cell.lower(), cell.lower()) for cell in columns.get(STATUS, ())}
    unread = []
    if flags and STATUS in columns and words.isdisjoint(NODE_STATES):  # of something else
        del columns[STATUS]
        unread.append(titles.pop(STATUS))
    if stated := next((one for one in STATED if one in columns), ""):
        columns[STATUS] = [STATED[stated].get(cell.lower(), cell) for cell in columns.pop(stated)]
        titles[STATUS] = STATUS
    elif STATUS in columns:
        columns[STATUS] = [STATES.get(cell.lower(), cell) for cell in columns[STATUS]]
    elif flags:
        rows = zip(
            *([_state(one, cell) for cell in columns.pop(one)] for one in flags), strict=True
        )
        columns[STATUS] = [next(filter(None, row), "up") for row in rows]
        titles[STATUS] = STATUS
    for one in [one for one in AVAILABLE if one in columns and STATUS in columns]:
        given = [AVAILABLE[one].get(cell.lower(), "up") for cell in columns.pop(one)]
        both = zip(columns[STATUS], given, strict=True)
        columns[STATUS] = [own if state == "up" or own == "down" else state for own, state in both]
    renamed = dict(_renamed(columns, known, loads))
    for own, name in renamed.items():
        columns[own], titles[own] = columns.pop(name), own
    left = [name for name in columns if name not in known and name not in renamed]
    unread += [titles[name] for name in left]
    kept = {name: cells for name, cells in columns.items() if name not in left}
    titles = {name: titles[name] for name in kept}
    return Table(table.name, kept, table.lines, titles, table.delimiter, table.notes), unread


def unheard_of(table: Table, made: Table) -> list[str]:
    """Return the nodes of a table, ``made`` in our words, that are not heard of but count as up."""
    stated = next((one for one in (*STATED, STATUS) if one in table.columns), "")
    name = next((one for one in ("node", "id", "name") if one in made.columns), "")
    rows = zip(made.cells(name), made.cells("state"), table.cells(stated), strict=True)
    return [node for node, state, cell in rows if state == "cordoned" and cell.lower() in UNHEARD]


def _renamed(
    columns: Mapping[str, Sequence[str]], known: Collection[str], loads: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield our name of each column that means something here, and its own."""
    if not NODE_STATES.keys().isdisjoint(cell.lower() for cell in columns.get(STATUS, ())):
        yield "state", STATUS
    amounts = [
        name for name, cells in columns.items()
        if name not in known and all(not cell or AMOUNT.fullmatch(cell) for cell in cells)
    ]  # fmt: skip
    for load in loads:
        called = (load, *(f"{word}_{load}" for word in ("capacity", "total", "max")),
                  f"{load}_capacity", f"{load}_total")  # fmt: skip
        same = [name for name in called if name in amounts]
        if not same and len(loads) == 1:
            unit = _unit(load)
            limit = ONLY_BYTES if unit or load in AS_BYTES else ONLY
            same = [name for name in amounts if name.endswith(unit) and _unit(name) == unit]
            same = [name for name in same if limit.fullmatch(name.removesuffix(unit))]
        if len(same) == 1:
            yield f"cap_{load}", same[0]


def _is_flag(columns: Mapping[str, Sequence[str]], name: str) -> bool:
    """Return whether there is such a column and its cells are true or false, or empty."""
    cells = {cell.lower() for cell in columns.get(name, ())}
    return bool(cells) and cells <= {*TRUE, *FALSE}


def _state(name: str, cell: str) -> str:
    """Return the state of a node that a column which is true or false tells, "" for none."""
    state, cells = FLAGGED[name]
    return state if cell and cell.lower() in cells else ""


def _unit(name: str) -> str:
    """Return the unit that a name ends with, "" if there is none."""
    unit = UNIT.search(f"_{name}")
    return unit[0] if unit else ""
