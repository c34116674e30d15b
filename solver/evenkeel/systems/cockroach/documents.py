"""Recognise CockroachDB's documents and read their tables: CSV, TSV, JSON, boxes of the shell."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.cockroach.zones import PARTITIONS, target_in
from evenkeel.systems.csv_text import Table, header_of, read_table, table_of
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json, note_syntax
from evenkeel.systems.printed import HEAD, TAIL, Printed, tables_in

# what the shell prints with ``--format`` ``html``, ``sql`` or ``raw``
MARKUP = re.compile(rb"<t[hd]>|INSERT INTO results VALUES|^# row 1\s*$", re.MULTILINE)

# a first row of node status, where a header should stand
HEADLESS = re.compile(rb"\d+\t.*\t(?:active|decommission(?:ing|ed))\t(?:true|false)\r?\n")

# what ``cockroach node ls`` prints
ONLY_NODES = re.compile(rb"\s*id\s*\n(?:\s*-+\s*\n)?(?:\s*\d+\s*\n)+(?:\(\d+ rows?\)\s*)?")

# a line of what ``cockroach node decommission`` prints into a file, with other words around
TABBED = re.compile(r"^(?:id\tis_live|[0-9]+\t(?:true|false))\t.*$", re.MULTILINE)

# how descriptors of ranges begin in reports of a node and in a debug zip
REPORT = re.compile(rb'^\s*[\[{].*"(?:rangeInfos|internalReplicas|internal_replicas)"', re.DOTALL)


WORD = r"(?:\"(?:[^\"]|\"\")+\"|[\w$]+)"
STATEMENT = re.compile(r"\b(?:SHOW|SELECT)\s[^;]*", re.IGNORECASE)
# what a session asks for above a table of ranges, which need not have a column for it
REQUEST = re.compile(
    r"\bSHOW\s+(?:EXPERIMENTAL_)?RANGES?\s+FROM\s+(?P<kind>TABLE|INDEX|DATABASE)\s+"
    rf"(?P<name>{WORD}(?:\.{WORD}){{0,2}})(?:@(?P<index>{WORD}))?",
    re.IGNORECASE,
)

# a prompt of the shell, and the database that it names
PROMPT = re.compile(r"(?m)^\S*@\S*/([\w-]+)>")


# what is above a table whose statement ran together with that of the table before
AT_ONCE = re.compile(r"\s*(?:\(\d+ rows?\)\s*)?(?:Time: [^\n]*\s*)*")

TWICE = "more than one state of ranges: the last counts"


Shown = tuple[Table, str]  # a table in a session, and the text above it


def printed_tables(document: Document) -> list[Printed]:
    r"""Return the tables that the shell prints for people.

    >>> session = Document("a.txt", b"  id | is_live\n-----+--------\n   1 | true\n(1 row)\n")
    >>> [one.rows for one in printed_tables(session)]
    [[['id', 'is_live'], ['1', 'true']]]
    """
    text = document.data.decode("utf-8", "replace")
    return tables_in(TABBED.sub(lambda line: line[0].replace("\t", " | "), text), _kind_of_names)


def shell_hint(document: Document) -> str:
    """Return which form is read of what the shell prints in another one; "" for what it does not.

    >>> shell_hint(Document("a.html", b"<table><thead><tr><th>row</th><th>range_id</th>"))[:20]
    'looks like what the '
    """
    if MARKUP.search(document.data[:HEAD]):
        return "looks like what the shell of CockroachDB prints: print it with --format=csv"
    names = {name.replace(" ", "_") for name in header_of(document)}
    if names >= {"region", "zones"} or names >= {"zone_id", "subzone_id", "report_id"}:
        return (
            "lists no range, and neither a node nor a zone configuration: print SELECT * FROM "
            "crdb_internal.ranges, cockroach node status --all and SHOW ALL ZONE CONFIGURATIONS"
        )
    if HEADLESS.match(document.data[:HEAD]):
        return (
            "seems to be node status without its header: print cockroach node status --all "
            "--format=csv, all of it"
        )
    if ONLY_NODES.fullmatch(document.data[:HEAD]):
        return "lists numbers of nodes only: print cockroach node status --all --format=csv"
    if names >= {"start_key", "replicas"} or REPORT.search(document.data[:HEAD]):
        return (
            "seems to be of CockroachDB's ranges, without range_id and replicas in columns: print "
            "SELECT * FROM crdb_internal.ranges"
        )
    return ""


def _of_sessions(faults: FaultList, name: str, parts: Sequence[Printed]) -> Iterator[Table]:
    """Yield tables, those with the same columns as one; of the state of nodes the last counts."""
    alike: dict[tuple[str, ...], list[Shown]] = {}
    for part in _below_their_own(parts):
        table = table_of(faults, name, part)
        before = alike.setdefault(tuple(table.titles.values()), [])
        if _kind_of_names(frozenset(table.columns)) in ("node status", "store status"):
            before.clear()  # what is printed again is of a later time
        before.append((table, part.before))
    for several in alike.values():
        first, _ = several[0]
        held = _last_printed(several) if "range_id" in first.columns else several
        asked = [_asked_for(above) for table, above in held for _ in table.lines]
        names = {name: name for one in asked for name in one}
        columns = {name: [one.get(name, "") for one in asked] for name in names} | {
            name: [cell for table, _ in held for cell in table.columns[name]]
            for name in first.columns
        }
        lines = [line for table, _ in held for line in table.lines]
        notes = [note for table, _ in held for note in table.notes]
        notes += [(TWICE, "")] * (len(held) < len(several))
        yield Table(first.name, columns, lines, {**names, **first.titles}, notes=notes)


def _below_their_own(parts: Sequence[Printed]) -> Iterator[Printed]:
    """Yield tables, those of statements that ran together each below its own."""
    begins = [i for i, part in enumerate(parts) if i == 0 or not AT_ONCE.fullmatch(part.before)]
    for a, b in pairwise([*begins, len(parts)]):
        text = parts[a].before
        ends = [one.end() for one in REQUEST.finditer(text)][a - b :]
        several = 1 < len(ends) == b - a
        for part, end in zip(parts[a:b], ends if several else [len(text)] * (b - a), strict=True):
            yield part._replace(before=text[:end]) if several else part


def _last_printed(tables: Sequence[Shown]) -> list[Shown]:
    """Return tables of ranges without those that the same statement prints again, unlike before."""
    held: list[Shown] = []
    for own, above in reversed(tables):
        rows = _by_range(own)
        again = (_by_range(later) for later, asked in held if _last(asked) == _last(above))
        if not any(rows.get(i, row) != row for one in again for i, row in one.items()):
            held.insert(0, (own, above))
    return held


def _last(text: str) -> str:
    """Return the last statement of a text; "" if there is none."""
    return " ".join(([*STATEMENT.findall(text)] or [""])[-1].split())


def _by_range(table: Table) -> dict[str, tuple[str, ...]]:
    return dict(
        zip(table.columns["range_id"], zip(*table.columns.values(), strict=True), strict=True)
    )


def _asked_for(text: str) -> dict[str, str]:
    """Return the database, table and index whose ranges the last statement shows.

    >>> _asked_for("> SHOW RANGES FROM INDEX movr.public.users@by_city;")["index_name"]
    'by_city'
    >>> _asked_for("root@:26257/movr> SHOW RANGE FROM TABLE users FOR ROW (7);")["database_name"]
    'movr'
    """
    # the database of a table is that of the statement, else of the prompt; ``public`` is a schema
    last = next(reversed([*REQUEST.finditer(text)]), None)
    if last is None:
        return {}
    *above, table = target_in(last["name"])
    if last["kind"].upper() == "DATABASE":
        return {"database_name": table}
    above = [one for one in above if one != "public"] or PROMPT.findall(text, 0, last.start())[-1:]
    found = {"table_name": table} | dict(zip(("database_name", "schema_name"), above, strict=False))
    return found | ({"index_name": target_in(last["index"])[0]} if last["index"] else {})


def without_tables(document: Document) -> Document:
    """Return the rest of a session, with a semicolon in each line of a table that is read."""
    lines = document.data.decode("utf-8", "replace").split("\n")
    for part in printed_tables(document):
        first = part.lines[0] - 1
        ends = (n for n in range(part.lines[-1], len(lines)) if lines[n].strip() == part.after)
        last = next(ends, len(lines)) + bool(TAIL.match(part.after))
        lines[first:last] = [";"] * (last - first)
    return Document(document.name, "\n".join(lines).encode(), document.path)


Kind = Literal[
    "ranges", "node status", "store status", "zone SQL", "zone table", "zone YAML", ""
]  # fmt: skip

# columns with the statements of zones; before 19.2 there was another
ZONES = frozenset({"raw_config_sql", "config_sql"})

ZONE_SQL = re.compile(rb"\bCONFIGURE\s+ZONE\s+(USING|DISCARD)\b", re.IGNORECASE)
ZONE_YAML = re.compile(
    rb"^[ \t]*'?(?:num_replicas|num_voters|constraints|voter_constraints|lease_preferences)'?\s*:",
    re.MULTILINE,
)
KEY = re.compile(rb'"(\w{1,60})"\s*:')


def kind_of(document: Document) -> Kind:
    r"""Tell which of CockroachDB's documents this is.

    >>> kind_of(Document("r.tsv", b"range_id\treplicas\tlease_holder\n7\t{1,2,3}\t2\n"))
    'ranges'
    """
    head = document.data[:HEAD]
    if document.is_json:
        names = frozenset(name.decode() for name in KEY.findall(head))
        if names >= {"desc", "nodeId", "buildInfo"}:
            return "node status"  # of the endpoint _status/nodes
    else:
        tables = printed_tables(replace(document, data=head))
        titles = tables[0].rows[0] if tables else header_of(document)
        names = frozenset(title.lower() for title in titles)
        if ZONE_SQL.search(head) and not names & ZONES:
            return "zone SQL"
    return _kind_of_names(names) or ("zone YAML" if ZONE_YAML.search(head) else "")


def _kind_of_names(names: frozenset[str]) -> Kind:
    """Return what a table is by the names of its columns."""
    if names & ZONES or names >= PARTITIONS:
        return "zone table"
    if "range_id" in names and names & {"replicas", "voting_replicas"}:
        return "ranges"
    if names >= {"store_id", "node_id"} and names & {"capacity", "attrs"}:
        return "store status"
    state_columns = {"is_live", "membership", "is_decommissioning", "decommissioning", "locality"}
    if names & {"id", "node_id"} and (names & state_columns or names >= {"address", "build"}):
        return "node status"
    return ""


def tables_of(faults: FaultList, document: Document) -> list[tuple[Kind, Table]]:
    """Read tables: CSV, TSV, those printed for people, a list of objects or one per line."""
    if document.is_json:
        tables = _from_json(faults, document)
    elif parts := printed_tables(document):
        document.text(faults)
        tables = [*_of_sessions(faults, document.name, parts)]
    else:
        tables = [read_table(faults, document)]
    kinds = [_kind_of_names(frozenset(one.columns)) for one in tables]
    return [
        (kind, _as_now(one) if kind == "ranges" else one)
        for kind, one in zip(kinds, tables, strict=True)
    ]


# an array of numbers as CockroachDB or a driver of another language prints it
ARRAY = re.compile(
    r"[\[{]\s*((?P<mark>[\"']?)\d+(?P=mark)(?:\s*,\s*(?P=mark)\d+(?P=mark))*)?\s*[\]}]"
)


def _as_now(ranges: Table) -> Table:
    """Name the columns of ranges as since 2.1, and print arrays of stores as ``{1,2,3}``."""
    now = {
        name: f"{name}_name"
        for name in ("database", "table", "index")
        if f"{name}_name" not in ranges.columns
    }
    return replace(
        ranges,
        columns={
            now.get(name, name): [*map(_array, cells)] if name.endswith("replicas") else cells
            for name, cells in ranges.columns.items()
        },
        titles={now.get(name, name): title for name, title in ranges.titles.items()},
    )


def _array(cell: str) -> str:
    """Return an array of numbers as CockroachDB prints it; any other cell as it is."""
    if cell[:1] not in "[{" or not (known := ARRAY.fullmatch(cell)):
        return cell
    return "{" + re.sub(r"[\s\"']", "", known[1] or "") + "}"


def _from_json(faults: FaultList, document: Document) -> list[Table]:
    try:
        if document.data.lstrip().startswith(b"["):
            rows = msgspec.json.decode(document.data, type=list[dict[str, Any]])
        else:
            rows = msgspec.json.Decoder(dict[str, Any]).decode_lines(document.data)
    except msgspec.ValidationError as error:
        faults.add(document.name, quoted(document.data), f"is not a list of rows: {error}")
        rows = []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        note_syntax(faults, document, error)
        rows = []
    if len(rows) == 1 and "nodes" in rows[0]:
        return [_by_column(faults, document, part) for part in _of_status(faults, document)]
    return [_by_column(faults, document, rows)]


class _Described(msgspec.Struct, rename="camel"):
    """What a node, or a store, says of itself."""

    node_id: int = 0
    store_id: int = 0
    locality: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    capacity: dict[str, Any] = {}


class _Status(msgspec.Struct, rename="camel"):
    desc: _Described
    store_statuses: list["_Status"] = []


class _Answer(msgspec.Struct, rename="camel"):
    """What the endpoint ``_status/nodes`` answers."""

    nodes: list[_Status]
    liveness_by_node_id: dict[str, int | str] = {}


# states of nodes by their numbers in that answer
LIVENESS = (
    "UNKNOWN", "DEAD", "UNAVAILABLE", "LIVE", "DECOMMISSIONING", "DECOMMISSIONED", "DRAINING",
)  # fmt: skip


def _of_status(faults: FaultList, document: Document) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of node status and of store status behind an answer of ``_status/nodes``."""
    answer = decode_json(faults, document, _Answer) or _Answer([])
    nodes, stores = [], []
    for desc, own in ((one.desc, one.store_statuses) for one in answer.nodes):
        stated = answer.liveness_by_node_id.get(str(desc.node_id), 0)
        known = isinstance(stated, int) and 0 <= stated < len(LIVENESS)
        state = LIVENESS[int(stated)] if known else str(stated).removeprefix("NODE_STATUS_")
        nodes.append({
            "id": desc.node_id, "locality": desc.locality, "attrs": desc.attrs,
            "is_live": state not in ("DEAD", "DECOMMISSIONED"), "membership": state.lower(),
            "is_available": state != "UNAVAILABLE", "is_draining": state == "DRAINING",
        })  # fmt: skip
        stores += [
            {"node_id": desc.node_id, "store_id": one.desc.store_id, "attrs": one.desc.attrs}
            | {name: one.desc.capacity.get(name) for name in ("capacity", "available", "used")}
            for one in own
        ]
    yield nodes
    if stores:
        yield stores


def _by_column(faults: FaultList, document: Document, rows: Sequence[dict[str, Any]]) -> Table:
    names = list(rows[0]) if rows else []
    kept = [row for row in rows if row.keys() == set(names)]
    if len(kept) < len(rows):
        i = next(i for i, row in enumerate(rows) if row.keys() != set(names))
        faults.add(f"{document.name}: [{i}]", quoted(str(sorted(rows[i]))), "has other columns")
    columns = {name.lower(): [_text(row[name]) for row in kept] for name in names}
    return Table(
        document.name, columns, range(1, len(kept) + 1), {name.lower(): name for name in names}
    )


def _text(value: Any) -> str:
    """Return a value of JSON as its CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "{" + ",".join(_quoted(_text(one)) for one in value if type(one) is not list) + "}"
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return value.strip() if isinstance(value, str) else str(value)[:400]


def _quoted(text: str) -> str:
    """Return an element of an array, in quotes where it has marks of arrays within."""
    return '"' + text.replace('"', '\\"') + '"' if re.search(r'[,"{}]', text) else text[:400]
