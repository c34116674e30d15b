"""Build a cluster from tables of nodes and replicas and a file of rules.

The titles of the columns travel in ``cluster.native`` where they are not the default ones, so that
tables are written with the titles that were read.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.changes import limited_tiers
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag, Role
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.model.reading.keywords import closest
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.csv_text import ANYTHING, BYTES, Table, header_of, numbered, read_table
from evenkeel.systems.documents import Document, Source, largest, quoted
from evenkeel.systems.json_text import note_misfits
from evenkeel.systems.native.arguments import Arguments, RuleDocument, build, check_slots
from evenkeel.systems.node_states import NODE_STATES, NodeState, columns_of, read_states
from evenkeel.systems.payload import payload_of
from evenkeel.systems.printed import HEAD
from evenkeel.systems.registry import system_of
from evenkeel.systems.tables.disks import TITLES, disk_column, is_of_disks, read_disks, read_lying
from evenkeel.systems.tables.json_forms import as_rows
from evenkeel.systems.tables.lists import FALSE, NULLS, TRUE, row_by_replica
from evenkeel.systems.tables.other_headings import by_id_or_name, completed, in_our_words, titles_in
from evenkeel.systems.tables.other_nodes import (
    PORT,
    TIERS,
    describes_nodes,
    named_as,
    nodes_in_our_words,
    unheard_of,
    with_plain_names,
    with_shared_loads,
)
from evenkeel.systems.tables.replica_states import OutOfService, without_lost

NAME = "tables"
Kind = Literal["nodes", "replicas", "disks", "rules", ""]

NODE = ("node", "id", "name")
LISTED = {"node", "nodes"}  # columns of replicas that name the node, or several
OF_NODES = {*NODE, "state", "tags", "weight", "max_replicas"}
CAPACITY, WATERMARK = "cap_", "watermark_"

# how an answer of Elasticsearch's SQL ends that has only a part of the rows
NEXT_PAGE = re.compile(rb'\]\s*,\s*"cursor"\s*:\s*"([^"]+)"\s*\}\s*\Z')

# how a list of another system begins that a shell has ruled, such as ``cockroach node ls``
RULED = re.compile(rb"\s*(?:id|name)\s*\n\s*--", re.IGNORECASE)

# the dimension that counts replicas, where tables have neither capacities nor loads
COUNT = "replicas"

# what a column of loads starts with, by argument
LOADS = {"load": ("load_", "size_"), "leader_load": ("leader_load_",),
         "non_voter_load": ("non_voter_load_",)}  # fmt: skip

COUNTS = ("replicas", "voters", "min_active")
OF_REPLICAS = {"group", "index", "partition", "node", "role", "pinned", "flags", *COUNTS, "rule"}
LEADING = ("leader", "master", "primary")
FOLLOWING = ("follower", "slave", "secondary", "activesecondary", "standby", "replica")
# roles as tables and other systems call them, in lower case
ROLES = {
    **dict.fromkeys(("", *LEADING, *FOLLOWING), Role.VOTER),
    **dict.fromkeys(("observer", "rdonly", "read_replica"), Role.NON_VOTER),
    **{role.name.lower(): role for role in Role},
}

FLAGS = {flag.name.lower(): flag for flag in Flag if flag.name}
UNGROUPED = "g0"  # the group of partitions that name none
MOST = 2**15 - 1
# how much a title may be like that of a known column before it cannot be that of a tier
ALIKE = 0.8

# an amount that can be of nothing else than bytes
AS_BYTES = re.compile(r"[0-9][0-9.,']*\s*[kKMGTPE]i?B")

RULE = re.compile(
    rb"^\s*(?:\[\[\s*rule\s*\]\]|(?:tiers|transient|uncapped)\s*=\s*\[|bytes\s*=\s*[\"'])",
    re.MULTILINE,
)
AT_LINE = re.compile(r"\(at line (\d+)")


class RuleEntry(RuleDocument):
    """A rule, the groups that it binds, and whether it counts the replicas of each together."""

    name: str | None = None
    groups: list[str] | None = None
    per: Literal["partition", "group"] = "partition"


class Rules(msgspec.Struct, forbid_unknown_fields=True):
    """The TOML file."""

    rule: list[RuleEntry] = []
    bytes: str | None = None
    transient: list[str] = []
    tiers: list[str] = []
    uncapped: list[str] = []


ORDINAL = "replica"  # a column of replicas that numbers those of a partition
# what is to be done about rows that repeat others
DISTINCT = "leave one of each, as SELECT DISTINCT does"

# how the last row of a spreadsheet is called
TOTALS = {"total", "totals", "sum", "all", "gesamt", "summe"}

TOTAL_ROW = "seems to be the total of the rows above: leave it out"

# the columns by which a table is recognised
HEADINGS = {
    "nodes": "node, id or name, and cap_NAME for each dimension, or tiers like zone and rack alone",
    "replicas": "node, and partition or both group and index, with a row for each replica, or "
    "partition, replica_1, replica_2, ... with a row for each partition",
}


class Partitions(NamedTuple):
    """The partitions of a table by name, and which of them each row is of."""

    names: list[str]
    owner: NDArray[np.int64]


@dataclass
class Found:
    """The tables read so far, and the rules with the name of their file."""

    faults: FaultList = field(default_factory=FaultList)
    nodes: list[Table] = field(default_factory=list)
    replicas: list[Table] = field(default_factory=list)
    disks: list[Table] = field(default_factory=list)
    # nodes without disks of which replicas name some
    undisked: list[str] = field(default_factory=list)
    rules: tuple[str, Rules] | None = None
    # titles of columns of another system's table of replicas that are not read
    unread: list[str] = field(default_factory=list)
    # what is out of service by a column of states of replicas
    out: OutOfService = field(default_factory=lambda: OutOfService([], [], []))
    # whether there is no table of nodes: those that replicas are on count
    without_nodes: bool = False
    # notes on rows that are not there or not counted, and on states in our words
    on_rows: list[str] = field(default_factory=list)
    # numbers of cells without a value that are read as empty, or as a default, by column
    nulls: dict[str, int] = field(default_factory=dict)


def kind_of(document: Document) -> Kind:
    r"""Tell which of the four files this is.

    >>> kind_of(Document("n.csv", b"node,zone,cap_cpu\na,z1,8\n"))
    'nodes'
    """
    document = as_rows(document)[-1]
    names = header_of(document) - {""}  # the index of a frame, or nothing
    if names & {*NODE} and any(name.startswith(CAPACITY) for name in names):
        return "nodes"
    if names & {*NODE} and names <= OF_NODES | TIERS and not RULED.match(document.data[:HEAD]):
        return "nodes"
    if is_ours(names) or titles_in(names):
        return "replicas"
    if is_of_disks(names):
        return "disks"
    if describes_nodes(names, NODE, TIERS) and not RULED.match(document.data[:HEAD]):
        return "nodes"
    if RULE.search(document.data[:65536]):
        return "rules"
    return ""


def is_ours(names: Collection[str]) -> bool:
    """Return whether a table has our columns of replicas."""
    located = "partition" in names or {"group", "index"} <= {*names}
    return located and not LISTED.isdisjoint(names)


def tables_in(documents: Sequence[Document]) -> Found:
    """Return a table of nodes, one of replicas, and perhaps rules; raise if there are others."""
    found = Found()
    kinds = [(kind_of(table), table) for one in documents for table in as_rows(one)]
    for one in documents:
        if page := NEXT_PAGE.search(one.data[-HEAD:]):
            message = "is for the next page of rows, which are not here: give all of them"
            found.faults.add(f"{one.name}: cursor", page[1], message)
    read = [
        (kind, read_table(found.faults, document))
        for kind, document in kinds
        if kind in {"nodes", "replicas", "disks"}
    ]
    cut = [sentence.format(place) for _, table in read for sentence, place in table.notes]
    found.on_rows += dict.fromkeys(cut)
    if all(kind != "replicas" for kind, _ in read):
        named = [(kind, table, by_id_or_name(table)) for kind, table in read]
        read = [("replicas", own) if own else (kind, table) for kind, table, own in named]
    for kind, table in sorted(read, key=lambda one: one[0] != "nodes"):
        if kind == "nodes":
            found.nodes.append(_without_nulls(found, with_plain_names(table), {*NODE}))
        elif kind == "replicas":
            table = with_shared_loads(_named_once(table), found.nodes)
            if not is_ours(table.columns):
                table, found.unread = in_our_words(found.faults, table)
            found.replicas.append(_without_nulls(found, table, {"group", "index", "partition"}))
        else:
            found.disks.append(_without_nulls(found, table, {"node", disk_column(table.columns)}))
    for what, document in kinds:
        if what == "rules":
            _read_rules(found, document)
        elif not what:
            message = "is neither a table of nodes, replicas or disks nor rules in TOML"
            found.faults.add(document.name, document.data[:40], message)
    if len(found.nodes) > 1:  # lists by node name them once more
        found.nodes = [one for one in found.nodes if one.columns.keys() != {"node"}]
    faults = found.faults
    if len(found.replicas) == 1 and not found.nodes and not faults:
        rows = row_by_replica(found.replicas[0], ())
        held = [*filter(None, dict.fromkeys(rows.columns["node"]))]
        found.without_nodes = bool(held)
        if held:
            found.nodes = [Table(rows.name, {"node": held}, range(len(held)), {"node": "node"})]
    elif len(found.nodes) == len(found.replicas) == 1:  # lists by node have no table of nodes
        found.without_nodes = found.nodes[0].columns.keys() == {"node"} and (
            found.nodes[0].name == found.replicas[0].name
        )
    for what, tables in (("nodes", found.nodes), ("replicas", found.replicas)):
        if len(tables) != 1 and not faults:
            names = [document.name for document in documents]
            wanted = HEADINGS[what]
            message = f"needs one table of {what}, with {wanted}; there are {len(tables)}"
            faults.add("source", names, message)
    if len(found.disks) > 1:
        faults.add("source", [one.name for one in found.disks], "are several tables of disks")
    faults.raise_if_any()
    (nodes,), (replicas,) = found.nodes, found.replicas
    on = {*row_by_replica(replicas, ()).columns["node"], *replicas.columns["node"]} - {""}
    nodes, of_nodes = named_as(_without_total(found, nodes), on, NODE)
    called = {*nodes.cells(name_column(nodes))}
    rows = _turned(row_by_replica(replicas, called), called)
    replicas, unread = completed(faults, rows, nodes)
    found.nodes, found.replicas = [nodes], [replicas]
    found.unread += unread + of_nodes
    _read_other_nodes(found)
    return found


def _turned(table: Table, nodes: Collection[str]) -> Table:
    """Return a table with partitions and nodes exchanged where each of its lists is of a node."""
    columns = table.columns
    if columns.keys() != {"partition", "node"} or not {*columns["partition"]} <= {*nodes}:
        return table
    if not table or not {*nodes}.isdisjoint(columns["node"]):
        return table
    turned = {"partition": columns["node"], "node": columns["partition"]}
    turned["role"] = ["voter"] * len(table)
    return replace(table, columns=turned, titles={one: one for one in turned})


def _read_other_nodes(found: Found) -> None:
    """Put a table of nodes without capacities under our headings, as far as these can be found."""
    nodes, replicas = found.nodes[0], found.replicas[0]
    tiers = [] if found.rules is None else found.rules[1].tiers
    known = {*OF_NODES, *TIERS, *(tier.lower() for tier in tiers)}
    if nodes.columns.keys() <= known or has_capacities(nodes):
        return
    starts = LOADS["load"]
    loads = [
        name.removeprefix(start) for name in replicas.columns for start in starts
        if name.startswith(start)
    ]  # fmt: skip
    made, unread = nodes_in_our_words(nodes, known, loads)
    if quiet := unheard_of(nodes, made):
        found.on_rows.append(NOT_HEARD.format(some_of(quiet, printable, NAMED)))
    found.nodes[0] = _without_former(found, made)
    found.unread += unread


def _without_former(found: Found, nodes: Table) -> Table:
    """Return nodes without those that are down and have the name of another."""
    names = nodes.columns[name_column(nodes)]
    states = [*map(str.lower, nodes.cells("state"))]
    held = {name for name, state in zip(names, states, strict=True) if state != "down"}
    kept = []
    for row, (name, state) in enumerate(zip(names, states, strict=True)):
        if state != "down" or name not in held:
            kept.append(row)
            held.add(name)
    if len(kept) == len(nodes):
        return nodes
    former = {*range(len(nodes))} - {*kept}
    several = [*dict.fromkeys(names[row] for row in sorted(former))]
    found.on_rows.append(FORMER.format(some_of(several, printable, NAMED)))
    columns = {one: [cells[row] for row in kept] for one, cells in nodes.columns.items()}
    return replace(nodes, columns=columns, lines=[nodes.lines[row] for row in kept])


def _named_once(table: Table) -> Table:
    """Return a table of replicas whose column of nodes, or of lists of nodes, is ``node``."""
    if "node" in table.columns:
        return table
    columns = {"node" if name == "nodes" else name: cells for name, cells in table.columns.items()}
    titles = {"node" if name == "nodes" else name: one for name, one in table.titles.items()}
    return replace(table, columns=columns, titles=titles)


def _without_nulls(found: Found, table: Table, names: Collection[str]) -> Table:
    """Return a table whose cells without a value are empty, but for columns of ``names``."""
    columns = dict(table.columns)
    for name in columns.keys() - names:
        if count := sum(cell in NULLS for cell in columns[name]):
            columns[name] = ["" if cell in NULLS else cell for cell in columns[name]]
            title = table.titles[name]
            found.nulls[title] = found.nulls.get(title, 0) + count
    return replace(table, columns=columns)


def _without_total(found: Found, nodes: Table) -> Table:
    """Return nodes without a last row of totals that has no port, as NebulaGraph prints it."""
    last = [name for name, cells in nodes.columns.items() if cells and cells[-1].lower() in TOTALS]
    if not last or PORT not in nodes.columns or nodes.columns[PORT][-1]:
        return nodes
    found.unread.append(f"the row {nodes.columns[last[0]][-1]}")
    columns = {name: cells[:-1] for name, cells in nodes.columns.items()}
    return replace(nodes, columns=columns, lines=nodes.lines[:-1])


def _check_totals(faults: FaultList, nodes: Table, replicas: Table) -> None:
    """Report a row of totals below nodes or replicas, as spreadsheets have it."""
    names = nodes.cells(name_column(nodes))
    last = names[-1] if len(names) > 1 else ""
    if last.lower() in TOTALS and last not in replicas.columns["node"]:
        at = nodes.at(len(names) - 1, name_column(nodes))
        faults.add(at, quoted(names[-1]), TOTAL_ROW)
    named, on = replicas.columns.get("partition", ()), replicas.columns["node"]
    if len(named) > 1 and named[-1].lower() in TOTALS and not on[-1]:
        faults.add(replicas.at(len(named) - 1, "partition"), quoted(named[-1]), TOTAL_ROW)


def name_column(table: Table) -> str:
    """Return the column of a table of nodes that names them, "" if there is none."""
    return next((name for name in NODE if name in table.columns), "")


def strangers_in(nodes: Table, replicas: Table) -> list[str]:
    """Return the nodes that replicas are on and the other table has not, unless it has none."""
    key = name_column(nodes)
    named = dict.fromkeys(filter(None, replicas.columns["node"]))
    known = {*nodes.columns[key]}
    return [name for name in named if name not in known] if known & named.keys() else []


def with_rows(nodes: Table, names: Sequence[str]) -> Table:
    """Return a table of nodes with rows for some more, which hold nothing."""
    key = name_column(nodes)
    columns = {
        name: [*column, *(names if name == key else [filler] * len(names))]
        for name, column in nodes.columns.items()
        for filler in ["0" if name.startswith(CAPACITY) else ""]
    }
    lines = [*nodes.lines, *([0] * len(names))]
    return replace(nodes, columns=columns, lines=lines) if names else nodes


def cluster_of(found: Found, packed: Document | None = None) -> Cluster:
    """Return the cluster of two tables and rules; what a file claims is held against its size."""
    faults = found.faults
    nodes = found.nodes[0]
    replicas, found.out = without_lost(found.replicas[0], nodes)
    found.replicas[0] = replicas
    _check_totals(faults, nodes, replicas)
    measured = _dimensions(faults, nodes, replicas)
    dimensions = measured or [COUNT]
    _check_titles(faults, found, dimensions)
    given: Arguments = {"dimensions": dimensions}
    tiers = [] if found.rules is None else found.rules[1].tiers
    of_bytes = None if found.rules is None else found.rules[1].bytes
    given |= node_columns(faults, nodes, dimensions, tiers, of_bytes)
    if found.out.nodes:
        states = ["down" if name in found.out.nodes else "up" for name in given["node_names"]]
        given |= columns_of([NODE_STATES[one] for one in states])
    partitions = _partitions(faults, replicas)
    given |= _replicas(found, partitions, dimensions, given["node_names"], of_bytes)
    given |= _disks(found, partitions, given["node_names"])
    given |= _bound(faults, found, partitions, given)
    if "role" not in replicas.columns and _of_single_replicas(given):
        given["leader"] = np.full(len(partitions.names), -1)
    if not measured:
        given["load"] = np.ones((len(partitions.names), 1))
    if not has_capacities(nodes):
        given["capacity"] = np.tile(_room(given), (len(given["node_names"]), 1))
    faults.raise_if_any()
    if "replicas" in given and packed is not None:
        wanted = np.array(given["replicas"])
        check_slots(faults, f"{replicas.name}: replicas", wanted, len(wanted), packed)
    return build(faults, given, lambda path: f"{_file_of(path, found)}: {path}")


def _of_single_replicas(given: Arguments) -> bool:
    """Return whether partitions have one replica each and nothing asks for leaders."""
    most = max(np.diff(given["first"]).max(initial=0), np.max(given.get("replicas", 0), initial=0))
    asked = "leader_load" in given or any(rule.lead for rule in given.get("rules", ()))
    return int(most) < 2 and not asked


def has_capacities(nodes: Table) -> bool:
    """Return whether a table of nodes has a column of capacities."""
    return any(name.startswith(CAPACITY) for name in nodes.columns)


def _room(given: Arguments) -> NDArray[np.float64]:
    """Return the load of all replicas, (D,), which nodes without capacities are alike in."""
    most = np.max([given[name] for name in LOADS if name in given], axis=0)
    room: NDArray[np.float64] = np.maximum(np.diff(given["first"]) @ most, 1.0)
    return room


def _disks(found: Found, partitions: Partitions, nodes: Sequence[str]) -> Arguments:
    """Return the disks of nodes, and on which of them replicas lie."""
    if not found.disks:
        return {}
    table, replicas = found.disks[0], found.replicas[0]
    disks = read_disks(found.faults, table, nodes)
    if disks is None:
        return {}
    if count := int(table.empty("capacity").sum()):
        found.nulls.setdefault(table.titles["capacity"], count)
    lying, found.undisked = read_lying(found.faults, replicas, disks, nodes)
    order = np.argsort(partitions.owner, kind="stable")
    return {"disks": disks} | ({} if lying is None else {"disk": lying[order]})


def _file_of(path: str, found: Found) -> str:
    if found.disks and path.startswith("disk"):
        return found.disks[0].name
    if found.rules is not None and path.startswith(("rule", "bytes", "transient")):
        return found.rules[0]
    of_nodes = ("capacity", "node", "domains", "watermark", "weight", "tags", "max_", "alive")
    return (found.nodes if path.startswith(of_nodes) else found.replicas)[0].name


def _read_rules(found: Found, document: Document) -> None:
    if found.rules is not None:
        found.faults.add(document.name, "rules", "is a second file of this kind; one is needed")
        return
    text = document.text(found.faults)
    try:
        loaded = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        line = AT_LINE.search(str(error))
        at = f"{document.name}:{line[1]}" if line else document.name
        found.faults.add(at, quoted(text), f"is not valid TOML: {str(error)[:200]}")
        return
    before = len(found.faults.faults)
    note_misfits(found.faults, f"{document.name}: ", loaded, Rules)
    if len(found.faults.faults) == before:
        found.rules = (document.name, msgspec.convert(loaded, Rules))


def _dimensions(faults: FaultList, nodes: Table, replicas: Table) -> list[str]:
    """Return the dimensions as the nodes have them, or else the loads; a load needs a capacity."""
    found = [title[len(CAPACITY) :] for name, title in nodes.titles.items()
             if name.startswith(CAPACITY)]  # fmt: skip
    of_loads = tuple(prefix for each in LOADS.values() for prefix in each)
    if not found:
        own: dict[str, str] = {}
        for name, title in replicas.titles.items():
            for start in filter(name.startswith, of_loads):
                own.setdefault(name[len(start) :], title[len(start) :])
        found = [*own.values()]
    known = {name.lower() for name in found}
    for table, prefixes in ((nodes, (WATERMARK,)), (replicas, of_loads)):
        for name, title in table.titles.items():
            prefix = next((one for one in prefixes if name.startswith(one)), None)
            if prefix is not None and name[len(prefix) :] not in known:
                column = f"{CAPACITY}{title[len(prefix) :]}"
                known_too = f", beside those of {', '.join(found)}" if found else ""
                message = f"needs a column {column!r} of the nodes{known_too}"
                faults.add(f"{table.name}: {quoted(title)}", quoted(title), message)
    return found


def _check_titles(faults: FaultList, found: Found, dimensions: Sequence[str]) -> None:
    """Note columns that are neither known nor a tier."""
    nodes, replicas = found.nodes[0], found.replicas[0]
    loads = tuple(prefix for each in LOADS.values() for prefix in each)
    of_loads = {f"{prefix}{one.lower()}" for prefix in loads for one in dimensions}
    unlike = {name for name in replicas.columns if name.startswith(loads)} - of_loads
    column = disk_column(replicas.columns)
    known = {*OF_REPLICAS, *of_loads, *unlike, column}
    others = [
        name for name in replicas.titles
        if name not in known and (name == ORDINAL or not closest(name, known))
    ]  # fmt: skip
    found.unread += [replicas.titles[name] for name in others if name]
    replicas.check_columns(faults, {*known, *others})
    if column and not found.disks:
        message = f"needs a table of disks: node, {column}, capacity and perhaps state"
        title = quoted(replicas.titles[column])
        faults.add(f"{replicas.name}: {title}", title, message)
    tiers = [] if found.rules is None else found.rules[1].tiers
    if tiers:
        unlike = {name for name in nodes.columns if name.startswith(WATERMARK)}
        known = of_nodes(dimensions) | unlike
        nodes.check_columns(faults, {*known, *(tier.lower() for tier in tiers)})
        return
    for name, title in nodes.titles.items():
        close = likely_column(name, dimensions)
        if close is not None:
            message = f"did you mean {close!r}? The rules have to name a tier like this: tiers = []"
            faults.add(f"{nodes.name}: {quoted(title)}", quoted(title), message)


def of_nodes(dimensions: Sequence[str]) -> set[str]:
    """Return the names of the columns that nodes may have and that are no tiers."""
    amounts = {f"{prefix}{one.lower()}" for prefix in (CAPACITY, WATERMARK) for one in dimensions}
    return OF_NODES | amounts


def likely_column(name: str, dimensions: Sequence[str]) -> str | None:
    """Return the known column of nodes that a name is so like that it may be a slip.

    >>> likely_column("stat", ["cpu"]), likely_column("rack", ["cpu"])
    ('state', None)
    >>> likely_column("capacity_disk", [])
    'cap_disk'
    """
    known = of_nodes(dimensions)
    if name.lower().startswith("capacity"):
        return CAPACITY + (name[len("capacity") :].lstrip(" _:.-") or "NAME")
    if name.lower() in known or name.startswith((CAPACITY, WATERMARK)):
        return None
    return closest(name.lower(), known, ALIKE)


def node_columns(
    faults: FaultList,
    table: Table,
    dimensions: Sequence[str],
    tiers: Sequence[str],
    of_bytes: str | None = None,
) -> Arguments:
    """Return the columns of nodes as arguments of a cluster."""
    key = name_column(table)
    names = table.columns[key]
    _check_names(faults, table, key)
    given: Arguments = {"node_names": names}
    given["capacity"] = _columns(faults, table, (CAPACITY,), dimensions, np.inf, of_bytes)
    if any(name.startswith(WATERMARK) for name in table.columns):
        given["watermark"] = _columns(faults, table, (WATERMARK,), dimensions, np.inf, of_bytes)
    if "state" in table.columns:
        given |= columns_of(read_states(faults, table, "state"))
    if "weight" in table.columns:
        given["weight"] = table.amounts(faults, "weight", 1.0, unit="weight")
    if "max_replicas" in table.columns:
        cells = ["0" if cell in ("", "-1") else cell for cell in table.columns["max_replicas"]]
        none = np.array([cell in ("", "-1") for cell in table.columns["max_replicas"]], np.bool_)
        limits = Table(table.name, {"max_replicas": cells}, table.lines, table.titles)
        most = limits.wholes(faults, "max_replicas", 2**31 - 1)
        given["max_replicas"] = np.where(none, -1, most)
    if "tags" in table.columns:
        listed = [cell.split() for cell in table.columns["tags"]]
        tags = dict.fromkeys(tag for own in listed for tag in own)
        if len(tags) * len(names) > max(2**20, 64 * sum(map(len, table.columns["tags"]))):
            faults.add(f"{table.name}: tags", len(tags), "are too many tags for so many nodes")
            tags = {}
        given["tags"] = {tag: [tag in own for own in listed] for tag in tags}
    titles = [title for name, title in table.titles.items()
              if name not in OF_NODES and not name.startswith((CAPACITY, WATERMARK))]  # fmt: skip
    for tier in tiers:
        if tier not in titles:
            faults.add(f"{table.name}: tiers", quoted(tier), f"is not a column: {titles}")
    domains = {
        tier: np.array(table.columns[tier.lower()], object)
        for tier in tiers or titles
        if tier in titles
    }
    return given | ({"domains": domains} if domains else {})


def _check_names(faults: FaultList, table: Table, key: str) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(table.columns[key]):
        if not name:
            faults.add(table.at(row, key), name, "is empty")
        elif first.setdefault(name, row) != row:
            at = table.at(first[name], key)
            faults.add(table.at(row, key), quoted(name), f"is already given at {at}")


def _columns(
    faults: FaultList,
    table: Table,
    prefixes: Sequence[str],
    dimensions: Sequence[str],
    default: float,
    of_bytes: str | None,
) -> NDArray[np.float64]:
    """Return one column for each dimension, the default where the table has none."""
    found = np.full((len(table), len(dimensions)), default)
    for d, dimension in enumerate(dimensions):
        for prefix in prefixes:
            name = f"{prefix}{dimension.lower()}"
            if name in table.columns:
                unit = BYTES if dimension == of_bytes else ANYTHING
                found[:, d] = table.amounts(faults, name, default, infinite=True, unit=unit)
    return found


def _replicas(
    found: Found,
    partitions: Partitions,
    dimensions: Sequence[str],
    nodes: Sequence[str],
    of_bytes: str | None,
) -> Arguments:
    """Return partitions in the order in which they first stand, with their replicas."""
    faults, table = found.faults, found.replicas[0]
    names, owner = partitions
    order = np.argsort(owner, kind="stable")
    first = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=len(names)), out=first[1:])
    heads = order[first[:-1]]
    known = {name: n for n, name in enumerate(nodes)}
    known[""] = -1
    texts, code = table.numbered("node")
    if not known.keys() >= {*texts}:
        message = "is not a node of the other table"
        table.each(faults, "node", lambda cell: cell not in known, message)
    node = np.array([known.get(cell, -1) for cell in texts], np.int64)[code]
    given: Arguments = {
        "partition_names": names,
        "placement": node[order],
        "first": first,
        "flags": _flags(faults, table)[order],
    }
    given |= _roles(faults, table, order, first)
    if "group" in table.columns:
        texts, code = table.numbered("group")
        labels = [texts[code] for code in code[heads].tolist()]
    else:
        labels = [UNGROUPED] * len(names)
    given["group_names"], given["group"] = numbered(labels)
    for argument, prefixes in LOADS.items():
        default = 0.0 if argument == "load" else np.nan
        if argument == "load" or any(name.startswith(prefixes) for name in table.columns):
            loads = _columns(faults, table, prefixes, dimensions, default, of_bytes)
            titles = [
                next((p + one for p in prefixes if p + one in table.columns), argument)
                for one in map(str.lower, dimensions)
            ]
            given[argument] = _same(faults, table, titles, loads, owner, heads)
            if argument != "load":
                given[argument] = np.where(
                    np.isnan(given[argument]), given["load"], given[argument]
                )
    for name in COUNTS:
        if name in table.columns:
            empty, filled = table.empty(name), table
            if empty.any():
                cells = [cell or "0" for cell in table.columns[name]]
                filled = Table(table.name, {name: cells}, table.lines, table.titles)
            counts = filled.wholes(faults, name, MOST)
            if empty.any():
                rows = np.diff(first)
                usual = {"replicas": rows, "voters": given.get("replicas", rows)}
                counts = np.where(empty, usual.get(name, 0 * rows)[owner], counts)
                found.nulls.setdefault(table.titles[name], int(empty.sum()))
            given[name] = _same(faults, table, [name], counts[:, np.newaxis], owner, heads)[:, 0]
    return given


def _partitions(faults: FaultList, table: Table) -> Partitions:
    """Return the partitions in the order in which they first stand."""
    keys = ("partition",) if "partition" in table.columns else ("group", "index")
    numbers = [table.numbered(key) for key in keys]
    for key, (texts, _) in zip(keys, numbers, strict=True):
        if key != "group" and "" in texts:  # partitions may be of no group
            table.each(faults, key, lambda cell: not cell, "is empty: each row names its partition")
    if len(keys) == 1:
        return Partitions(*numbers[0])
    (groups, group), (indices, index) = numbers
    pairs = group * max(len(indices), 1) + index
    # the rows of a partition stand together as a rule
    begin = np.flatnonzero(np.diff(pairs, prepend=-1))
    _, first, of = np.unique(pairs[begin], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    rows = begin[first[order]]
    both = zip(group[rows].tolist(), index[rows].tolist(), strict=True)
    names = [f"{groups[g]}-{indices[i]}" for g, i in both]
    owner = np.repeat(rank[of], np.diff(begin, append=len(pairs)))
    if len({*names}) < len(names):  # a-1 with 2 is called as a with 1-2 is
        names, called = numbered(names)
        owner = called[owner]
    return Partitions(names, owner)


def _same(
    faults: FaultList,
    table: Table,
    names: Sequence[str],
    values: NDArray[Any],
    owner: NDArray[np.int64],
    heads: NDArray[np.int64],
) -> NDArray[Any]:
    """Return the values of the first row of each partition, which its other rows must repeat."""
    expected = values[heads][owner]
    same = (values == expected) | (np.isnan(values) & np.isnan(expected))
    for row, d in np.argwhere(~same)[:LISTED_FAULTS].tolist():
        at = table.at(int(heads[owner[row]]), names[d])
        message = f"differs from {at} of the same partition: give both one, such as the greatest"
        faults.add(table.at(row, names[d]), values[row, d].item(), message)
    return values[heads]


def _flags(faults: FaultList, table: Table) -> NDArray[np.int64]:
    flags = np.zeros(len(table), np.int64)
    if "pinned" in table.columns:
        known = {*TRUE, *FALSE}
        table.each(faults, "pinned", lambda c: c.lower() not in known, "must be true or false")
        pinned = [cell.lower() in TRUE for cell in table.columns["pinned"]]
        flags |= Flag.PINNED * np.array(pinned, np.int64)
    if "flags" in table.columns:

        def wrong(cell: str) -> bool:
            return any(word not in FLAGS for word in cell.lower().split())

        table.each(faults, "flags", wrong, f"names an unknown flag; known: {[*FLAGS]}")
        named = [
            sum({FLAGS[word] for word in cell.lower().split() if word in FLAGS})
            for cell in table.columns["flags"]
        ]
        flags |= np.array(named, np.int64)
    return flags


def _roles(
    faults: FaultList, table: Table, order: NDArray[np.int64], first: NDArray[np.int64]
) -> Arguments:
    """Return roles, and the slot that leads each partition."""
    if "role" not in table.columns:
        return {}
    cells = table.columns["role"]
    message = f"is not a role: {', '.join(filter(None, ROLES))}"
    table.each(faults, "role", lambda cell: cell.lower() not in ROLES, message)
    codes = {cell: int(ROLES.get(cell.lower(), Role.VOTER)) for cell in set(cells)}
    role = np.fromiter(map(codes.__getitem__, cells), np.int64, len(cells))[order]
    leading = {cell: cell.lower() in LEADING for cell in codes}
    leads = np.fromiter(map(leading.__getitem__, cells), np.bool_, len(cells))[order]
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    leader = np.full(len(first) - 1, -1)
    at = np.flatnonzero(leads)
    leader[owner[at]] = at - first[owner[at]]
    for k in np.flatnonzero(owner[at][1:] == owner[at][:-1])[:LISTED_FAULTS].tolist():
        before, row = (int(order[at[i]]) for i in (k, k + 1))
        alike = all(cells[before] == cells[row] for cells in table.columns.values())
        rest = f", in a row that this one repeats: {DISTINCT}" if alike else ""
        faults.add(
            table.at(row, "role"), cells[row], f"{table.at(before, 'role')} leads already{rest}"
        )
    return {"role": role, "leader": leader}


def _bound(faults: FaultList, found: Found, partitions: Partitions, given: Arguments) -> Arguments:
    """Return the rules, and which one binds each partition."""
    table = found.replicas[0]
    name, stated = found.rules or ("", Rules())
    bound: Arguments = {}
    if stated.bytes is not None:
        bound["bytes"] = stated.bytes
    elif measured := _in_bytes(found, given["dimensions"]):
        bound["bytes"] = measured
    if stated.transient:
        bound["transient"] = stated.transient
    by_name: dict[str, int] = {}
    for r, one in enumerate(stated.rule):
        if one.name is not None and by_name.setdefault(one.name, r) != r:
            faults.add(f"{name}: rule[{r}].name", quoted(one.name), "is the name of another rule")
        if one.name is not None and one.per == "group":
            message = "binds single partitions, by the column rule: a rule per group names groups"
            faults.add(f"{name}: rule[{r}].name", quoted(one.name), message)
    groups: Sequence[str] = given["group_names"]
    rule = _rule_of(faults, name, stated.rule, "partition", groups)[given["group"]]
    if "rule" in table.columns:
        known: Mapping[str, int] = {**by_name, "": -1}
        message = f"is not the name of a rule: {[*by_name]}"
        table.each(faults, "rule", lambda cell: cell not in known, message)
        for p, cell in zip(partitions.owner.tolist(), table.columns["rule"], strict=True):
            if cell:
                rule[p] = known.get(cell, -1)
    if not stated.rule:
        return bound
    bound |= {"rules": [one.rule() for one in stated.rule], "rule": rule}
    named = groups if "group" in table.columns else [""] * len(groups)
    whole = _rule_of(faults, name, stated.rule, "group", named)
    return bound | ({"group_rule": whole} if (whole >= 0).any() else {})


def _in_bytes(found: Found, dimensions: Sequence[str]) -> str:
    """Return the only dimension of which cells are in bytes, "" if there is none or several."""
    starts = (CAPACITY, *LOADS["load"])
    measured = [
        one for one in dimensions
        if any(
            AS_BYTES.fullmatch(cell) for table in (*found.nodes, *found.replicas)
            for start in starts for cell in table.first_cells(f"{start}{one.lower()}")
        )
    ]  # fmt: skip
    return measured[0] if len(measured) == 1 else ""


def _rule_of(
    faults: FaultList, name: str, entries: Sequence[RuleEntry], per: str, groups: Sequence[str]
) -> NDArray[np.int64]:
    """Return the rule of each group, -1 for none, among those that count its replicas alike."""
    number = {group: g for g, group in enumerate(groups)}
    rule_of = np.full(len(groups), -1)
    own = [(r, one) for r, one in enumerate(entries) if one.per == per]
    others = [r for r, one in own if one.groups is None and one.name is None]
    if len(others) > 1:
        message = f"names neither groups nor itself; nor does rule[{others[0]}]"
        faults.add(f"{name}: rule[{others[1]}]", None, message)
    for r, one in own:
        for group in one.groups or ():
            at = f"{name}: rule[{r}].groups"
            if group not in number:
                faults.add(at, quoted(group), "is not a group of the replicas")
            elif rule_of[number[group]] >= 0:
                message = f"is bound by rule[{rule_of[number[group]]}] already"
                faults.add(at, quoted(group), message)
            else:
                rule_of[number[group]] = r
    if others:
        free = rule_of < 0
        if per == "group":  # partitions of no group are not counted together
            free &= np.array([group != "" for group in groups], np.bool_)
        rule_of[free] = others[0]
    return rule_of


def read_newcomers(source: Source, cluster: Cluster) -> tuple[Cluster, Mapping[str, float]]:
    """Return a cluster with the nodes of a table added empty, and capacities that were assumed."""
    document = Document.load(source)
    faults = FaultList()
    table = read_table(faults, document)
    tiers = {tier.lower(): tier for tier in cluster.topology.tiers}
    table.check_columns(faults, {*of_nodes(cluster.dimensions), *tiers} - {"state"})
    if not table.titles.keys() & {*NODE}:
        faults.add(document.name, [*table.titles], f"needs a column of names, {NODE[0]}")
    alike: dict[str, float] = {}
    key = name_column(table)
    awaited = system_of(cluster).awaited(cluster)
    own = [awaited.get(name, {}) for name in table.cells(key)]
    known = dict[str, list[float]]()
    for d, dimension in enumerate(cluster.dimensions):
        if f"{CAPACITY}{dimension.lower()}" in table.columns:
            continue
        # what the system's files say, else what all present nodes have
        if own and all(dimension in one for one in own):
            known[dimension] = [one[dimension] for one in own]
            continue
        least, most = _range(cluster, d)
        if least == most:
            alike[dimension] = least
        else:
            message = f"is missing, and nodes differ: they have {least:g} to {most:g}"
            faults.add(f"{document.name}: {CAPACITY}{dimension}", None, message)
    faults.raise_if_any()
    moved = cluster.bytes_dimension
    of_bytes = cluster.dimensions[moved] if moved >= 0 else None
    given = node_columns(faults, table, cluster.dimensions, (), of_bytes)
    for name in table.columns:
        if name.startswith(CAPACITY):
            message = "is empty: write how much it has, inf for no limit, or leave the column out"
            table.each(faults, name, lambda cell: not cell, message)
    domains = {tiers[name.lower()]: column for name, column in given.get("domains", {}).items()}
    for tier in limited_tiers(cluster.rules, cluster.topology):
        labels = domains.get(tier, [""] * len(given["node_names"]))
        strays = [n for n, label in zip(given["node_names"], labels, strict=True) if not label]
        if strays:
            message = f"have none, and rules count replicas by {tier}: give each its own"
            faults.add(f"{document.name}: {tier}", strays, message)
    faults.raise_if_any()
    for dimension, capacity in (*alike.items(), *known.items()):
        given["capacity"][:, cluster.dimensions.index(dimension)] = capacity
    grown = cluster.add_nodes(
        given["capacity"],
        names=given["node_names"],
        domains=domains or None,
        tags=given.get("tags"),
        watermark=given.get("watermark"),
        weight=given.get("weight"),
        max_replicas=given.get("max_replicas"),
    )
    return grown, alike


def _range(cluster: Cluster, d: int) -> tuple[float, float]:
    """Return the least and the most that nodes which take replicas have of a dimension."""
    nodes = cluster.nodes
    open_to = nodes.alive & nodes.accepts & ~nodes.gone
    own = nodes.capacity[open_to if open_to.any() else np.ones(len(nodes), np.bool_), d]
    return float(own.min(initial=np.inf)), float(own.max(initial=0.0))


Headings = Mapping[str, str]  # title of a column in the table that was read, by its default title
KEY, UNCAPPED, GONE = "headings", "uncapped", "gone"
EMPTY = "empty"  # key of the numbers of empty cells, by capacity and load
UNDISKED = "undisked"  # key of nodes without disks of which replicas name some
# keys of the columns that are not read, of what is out of service, of whether there is no table of
# nodes, and of notes on rows
UNREAD, OUT, WITHOUT_NODES, ON_ROWS = "unread", "out", "without_nodes", "on_rows"

NOT_HEARD = "not heard of by their status: {}: such nodes keep what they hold and take nothing new"
FORMER = "several nodes that are called {}: those that are down, or down as well, do not count"

# key of the numbers of cells that had no value and were read as empty, or as usual
NULL_COUNTS = "nulls"

UNITLESS = "unitless"  # key of columns without units beside those of their dimension that have them
WITH_UNIT = re.compile(r"[0-9].*[A-Za-z]")
# amounts with a unit, and such without that are too small to be bytes beside these
BARE = re.compile(r"(?![0.,]*$)[0-9]{1,6}(?:[.,][0-9]*)?")

UNLIKELY = 1e-6  # share of a node that no replica of a dimension exceeds, or that all do as often
NAMED = 8  # nodes that are named one by one; the rest is counted


class OfTables(NamedTuple):
    """Headings of tables of nodes, replicas and disks; empty where nothing is known."""

    nodes: Headings
    replicas: Headings
    disks: Headings


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from tables of nodes and of replicas, and perhaps of disks, and rules."""
    found = tables_in(documents)
    nodes, gone = found.nodes[0], strangers_in(*found.nodes, *found.replicas)
    found.nodes = [with_rows(nodes, gone)]
    cluster = cluster_of(found, largest(documents))
    file, unknown = ("", []) if found.rules is None else (found.rules[0], found.rules[1].uncapped)
    for name in unknown:
        if name not in cluster.dimensions:
            message = f"is not a dimension; known: {[*cluster.dimensions]}"
            found.faults.add(f"{file}: {UNCAPPED}", quoted(name), message)
    found.faults.raise_if_any()
    if gone:
        lost = np.arange(len(cluster.nodes)) >= len(nodes)
        alive, accepts, keeps, leads = (
            getattr(cluster.nodes, one) & ~lost for one in NodeState._fields
        )
        cluster = cluster.replace(alive=alive, accepts=accepts, keeps=keeps, leads=leads)
    return with_headings(cluster, found, nodes, unknown, gone)


def with_headings(
    cluster: Cluster,
    found: Found,
    nodes: Table,
    unknown: Sequence[str] = (),
    gone: Sequence[str] = (),
) -> Cluster:
    """Return a cluster that remembers the headings of its tables, if they are unusual."""
    replicas = found.replicas[0]
    dimensions, tiers = cluster.dimensions, cluster.topology.tiers
    unknown = unknown if has_capacities(nodes) else dimensions
    of_disks = _of_disks(found.disks[0]) if found.disks else {}
    titles = OfTables(_of_nodes(nodes, dimensions), _of_replicas(replicas, dimensions), of_disks)
    # what is written in any case; what more there is depends on the cluster
    usual = {"node", *tiers, "state", *(f"{CAPACITY}{one}" for one in dimensions)}
    named = {"group", "node", "role", *(f"load_{one}" for one in dimensions)}
    names = {"index", "partition"} & titles.replicas.keys()
    as_usual = all(title == name for one in titles for name, title in one.items())
    if (
        as_usual
        and usual <= titles.nodes.keys()
        and named <= titles.replicas.keys()
        and (len(names) == 1 and "pinned" not in titles.replicas)
        and (not of_disks or "state" in of_disks)
    ):
        payload: dict[str, Any] = {}
    else:
        payload = {KEY: {name: dict(one) for name, one in titles._asdict().items() if one}}
    payload |= {UNCAPPED: [*unknown]} if unknown else {}
    payload |= {GONE: [*gone]} if gone else {}
    payload |= {UNDISKED: found.undisked} if found.undisked else {}
    payload |= {UNREAD: [*dict.fromkeys(found.unread)]} if found.unread else {}
    payload |= {OUT: found.out._asdict()} if found.out.replicas or found.out.nodes else {}
    payload |= {WITHOUT_NODES: True} if found.without_nodes else {}
    payload |= {ON_ROWS: found.on_rows} if found.on_rows else {}
    nulls = {one: count for one, count in found.nulls.items() if one not in found.unread}
    payload |= {NULL_COUNTS: nulls} if nulls else {}
    payload |= {UNITLESS: odd} if (odd := _unitless(cluster, nodes, replicas)) else {}
    payload |= _empty(nodes, replicas, dimensions)
    return cluster.replace(native=payload, native_format=NAME) if payload else cluster


def _empty(nodes: Table, replicas: Table, dimensions: Sequence[str]) -> dict[str, Any]:
    """Return which capacities and loads of tables were left empty though they have the column."""
    key = name_column(nodes)
    limits, loads = {}, {}
    for one in dimensions:
        title = f"{CAPACITY}{one.lower()}"
        none = np.flatnonzero(nodes.empty(title)).tolist() if title in nodes.columns else []
        if none:
            limits[one] = [nodes.columns[key][row] for row in none]
        for title in (f"{prefix}{one.lower()}" for prefix in LOADS["load"]):
            if title in replicas.columns and (count := int(replicas.empty(title).sum())):
                loads[one] = count
    found = {"capacities": limits, "loads": loads}
    return {EMPTY: {name: part for name, part in found.items() if part}} if limits or loads else {}


def _unitless(cluster: Cluster, nodes: Table, replicas: Table) -> dict[str, str]:
    """Return columns without units, by the one of their dimension with units, or by themselves."""
    found = {}
    starts = (CAPACITY, *LOADS["load"])
    for table in (nodes, replicas):
        of_texts = type(table) is Table  # frames have numbers
        for name in (one for one in table.columns if of_texts and one.startswith(starts)):
            cells = {*table.columns[name]}
            if not any(map(str.isalpha, {cell[-1:] for cell in cells})):
                continue
            if any(map(WITH_UNIT.fullmatch, cells)) and any(map(BARE.fullmatch, cells)):
                found[table.titles[name]] = f"cells of {table.titles[name]}"
    # only where numbers fit no node, or vanish in it: plain bytes beside ``2TB`` are usual
    for d, one in enumerate(cluster.dimensions):
        capacity = cluster.nodes.capacity[:, d]
        most = cluster.partitions.load.voter[:, d].max(initial=0.0)
        room = capacity[np.isfinite(capacity)].max(initial=0.0)
        share = most / room if most and room else 0.0
        limits = f"{CAPACITY}{one.lower()}"
        for title in (f"{prefix}{one.lower()}" for prefix in LOADS["load"]):
            if not {title, limits} <= replicas.columns.keys() | nodes.columns.keys() or (
                UNLIKELY <= share <= 1.0 / UNLIKELY
            ):
                continue
            by_unit = {
                any(cell[-1:].isalpha() for cell in table.columns[name] if cell != "inf"): (
                    table.titles[name]
                )
                for table, name in ((nodes, limits), (replicas, title))
            }
            if share and len(by_unit) > 1:
                found[by_unit[True]] = by_unit[False]
    return found


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions with assumed capacities."""
    found: Sequence[str] = cluster.native.get(UNCAPPED, ()) if _remembers(cluster) else ()
    return found


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing input and its effect."""
    unknown, titles = uncapped(cluster), headings_of(cluster).nodes
    if unknown and titles and not any(title.startswith(CAPACITY) for title in titles):
        yield (
            f"no capacities of {' and '.join(unknown)}: nodes count as alike, percentages are of "
            "the load of all together, and none counts as too full; give the nodes columns "
            f"{CAPACITY}NAME"
        )
    elif unknown:
        yield (
            f"no capacities of {' and '.join(unknown)}: those of the table are assumed, and "
            f"percentages are of them; write the true ones, and take {UNCAPPED} out of the rules"
        )
    yield from cluster.native.get(ON_ROWS, ()) if _remembers(cluster) else ()
    if gone := cluster.native.get(GONE, ()) if _remembers(cluster) else ():
        yield (
            f"no node {some_of(gone, printable, NAMED)}, which replicas are on: it counts as down, "
            "and what it holds is placed anew"
        )
    if bare := cluster.native.get(UNDISKED, ()) if _remembers(cluster) else ():
        yield (
            f"no disks of {some_of(bare, printable, NAMED)}, though replicas name some: theirs "
            "count as not known"
        )
    if _remembers(cluster) and cluster.native.get(WITHOUT_NODES):
        held = some_of(cluster.nodes.names, printable, NAMED)
        yield (
            f"no table of nodes: those that replicas are on count, {held}, all alive"
            f"{' but for those out of service' * (not cluster.nodes.alive.all())}; others are not "
            "known"
        )
    if out := cluster.native.get(OUT) if _remembers(cluster) else None:
        by = f"out of service by {some_of(out['titles'], printable, NAMED)}"
        if out["replicas"]:
            yield (
                f"{by}: {some_of(out['replicas'], printable, NAMED)}: such a replica counts as "
                "lost and is placed again, there or elsewhere; restored in place, it needs no move"
            )
        if out["nodes"]:
            yield (
                f"{by}: all replicas on {some_of(out['nodes'], printable, NAMED)}: such a node "
                "counts as down; a column state of the nodes says otherwise"
            )
    if unread := cluster.native.get(UNREAD, ()) if _remembers(cluster) else ():
        yield (
            f"nothing that is read in {some_of(unread, printable, NAMED)}: a column of sizes is "
            "read as size_NAME, one of loads as load_NAME, one of capacities as cap_NAME"
        )
    titles = headings_of(cluster).replicas
    if "node" in titles and "role" not in titles and (cluster.placement.leader >= 0).any():
        yield "no role of replicas: the first of each partition counts as its leader; add role"
    if tiers := _without_limits(cluster):
        yield (
            f"no rule that keeps replicas of a partition apart by {' or '.join(tiers)}: without "
            f"--spread {tiers[0]}=1 they may share one"
        )
    if alone := _apart_from_nothing(cluster):
        inside = "" if alone == [UNGROUPED] else f" in {some_of(alone, printable, NAMED)}"
        yield (
            f"no partition with several replicas{inside}, while a rule keeps those of a partition "
            'apart; per = "group" in the file of rules counts those of a group together'
        )
    if twice := _twice_on_a_node(cluster):
        yield (
            f"replicas of {some_of(twice, printable, NAMED)} more than once on a node: each row "
            f"counts as one; {DISTINCT}, if they are the same"
        )
    if titles and "replicas" not in titles and (shorter := _shorter(cluster)):
        yield (
            f"fewer replicas of {some_of(shorter, printable, NAMED)} than of most partitions of "
            "their group: as many are wanted as are listed, unless --replicas GROUP=N asks for more"
        )
    odd = cluster.native.get(UNITLESS, {}) if _remembers(cluster) else {}
    for with_units, without in odd.items():
        yield (
            f"no units in {quoted(without)}, though {quoted(with_units)} has some: its numbers "
            "count as they are, 120 as 120 and not as 120GB; write the unit that is meant"
        )
    empty = cluster.native.get(EMPTY, {}) if _remembers(cluster) else {}
    for name, nodes in empty.get("capacities", {}).items():
        if name not in cluster.dimensions:
            continue
        limitless = np.isinf(cluster.nodes.capacity[:, cluster.dimensions.index(name)])
        still = {one for one, inf in zip(cluster.nodes.names, limitless, strict=True) if inf}
        if left := [one for one in nodes if one in still]:
            yield (
                f"no capacity of {name} of nodes {some_of(left, str, NAMED)}: an empty cell is no "
                "limit, and no share of one counts; write how much there is, or inf"
            )
    for title, count in (
        cluster.native.get(NULL_COUNTS, {}) if _remembers(cluster) else {}
    ).items():
        yield (
            f"no value of {quoted(title)} in {counted(count, 'row')}: it is read as if the cell "
            "were empty or the column missing"
        )
    for name, count in empty.get("loads", {}).items():
        yield f"no load of {name} in {counted(count, 'row')} of replicas: it counts as 0"


def _without_limits(cluster: Cluster) -> list[str]:
    """Return the tiers that could keep replicas apart, where rules name none of them."""
    topology, nodes = cluster.topology, len(cluster.nodes)
    named = {limit.tier for rule in cluster.rules for limit in rule.limits()}
    if named & {*topology.tiers} or any(rule.place or rule.voters_place for rule in cluster.rules):
        return []
    if cluster.partitions.replicas.max(initial=0) < 2:
        return []
    counts = [len(np.unique(domain[domain >= 0])) for domain in topology.domain]
    pairs = zip(topology.tiers, counts, strict=True)
    return [printable(tier) for tier, count in pairs if 1 < count < nodes]


def _apart_from_nothing(cluster: Cluster) -> list[str]:
    """Return groups of single replicas whose partitions have a rule that spreads replicas."""
    partitions = cluster.partitions
    spreads = np.array([bool(rule.spread) for rule in cluster.rules] + [False], np.bool_)
    several = np.bincount(partitions.group, partitions.replicas > 1, len(partitions.group_names))
    count = np.bincount(partitions.group, minlength=len(several))
    held = (several == 0) & (count > 1) & (partitions.group_rule < 0)
    bound = np.zeros(len(several), np.bool_)
    bound[partitions.group[spreads[partitions.rule]]] = True
    return [partitions.group_names[g] for g in np.flatnonzero(held & bound).tolist()]


def _shorter(cluster: Cluster) -> list[str]:
    """Return partitions of fewer replicas than more than half of those of their group."""
    partitions = cluster.partitions
    group, most = partitions.group.astype(np.int64), int(partitions.replicas.max(initial=0)) + 1
    pair, count = np.unique(group * most + partitions.replicas, return_counts=True)
    usual = np.zeros(len(partitions.group_names), np.int64)
    many = 2 * count > np.bincount(group, minlength=len(usual))[pair // most]
    usual[pair[many] // most] = pair[many] % most
    return [
        partitions.names[p] for p in np.flatnonzero(partitions.replicas < usual[group]).tolist()
    ]


def _twice_on_a_node(cluster: Cluster) -> list[str]:
    """Return partitions with two replicas on a node, unless a rule lifts the limit of one."""
    placed, count = cluster.placement, len(cluster.nodes)
    pair = np.sort((placed.owner.astype(np.int64) * count + placed.node)[placed.node >= 0])
    twice = np.unique(pair[1:][pair[1:] == pair[:-1]] // max(count, 1)).tolist()
    lifted = any(rule.spread.get("node", 1) is None for rule in cluster.rules)
    return [] if lifted else [cluster.partitions.names[p] for p in twice]


def _remembers(cluster: Cluster) -> bool:
    return cluster.native_format == NAME and isinstance(cluster.native, dict)


class Payload(TypedDict, total=False):
    """What was read beside a cluster."""

    headings: dict[str, dict[str, str]]


def headings_of(cluster: Cluster) -> OfTables:
    """Return the headings that a cluster remembers."""
    if not _remembers(cluster):
        return OfTables({}, {}, {})
    known = payload_of(cluster, Payload, "was not read from tables").get(KEY, {})
    return OfTables(*(known.get(name, {}) for name in OfTables._fields))


def titled(columns: Mapping[str, Sequence[Any]], headings: Headings) -> dict[str, Sequence[Any]]:
    """Return columns by their titles, in the order in which they stood; others come after them."""
    order = [name for name in headings if name in columns]
    order += [name for name in columns if name not in headings]
    return {headings.get(name, name): columns[name] for name in order}


def _of_nodes(table: Table, dimensions: Sequence[str]) -> dict[str, str]:
    amounts = {
        f"{prefix}{one.lower()}": f"{prefix}{one}"
        for prefix in (CAPACITY, WATERMARK)
        for one in dimensions
    }
    key = name_column(table)
    known = {one: one for one in OF_NODES - {*NODE}} | amounts | {key: "node"}
    return {known.get(name, title): title for name, title in table.titles.items()}


def _of_replicas(table: Table, dimensions: Sequence[str]) -> dict[str, str]:
    loads = {
        f"{prefix}{one.lower()}": f"{argument}_{one}"
        for argument, prefixes in LOADS.items()
        for prefix in prefixes
        for one in dimensions
    }
    known = loads | dict.fromkeys(TITLES, "disk")
    return {known.get(name, name): title for name, title in table.titles.items()}


def _of_disks(table: Table) -> dict[str, str]:
    return {"disk" if name in TITLES else name: title for name, title in table.titles.items()}
