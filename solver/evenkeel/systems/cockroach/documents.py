"""Recognise the documents of CockroachDB and read their tables.

The tables come as CSV, TSV, JSON or boxes of the SQL shell. A line of a box that continues a cell,
such as a statement of several lines, fills only that cell.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.systems.cockroach.zones import PARTITIONS, target_in
from evenkeel.systems.csv_text import CUT, LEFT_OUT, Table, header_of, read_table
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json, note_syntax

RULE = re.compile(r"(?m)^[ \t|+:]*--[-+|: ]*$")
"""The line below the names, and in old releases also above them: ``-----+------``."""

RECORD = re.compile(r"(?m)^[ \t]*-\[ RECORD [0-9]+ \][-+]*[ \t\r]*$")
TAIL = re.compile(r"[(#] ?(?P<rows>[0-9]{1,9}) rows?\b|Time: .*", re.IGNORECASE)
LINES = str.maketrans("│┃║─━═┌┬┐├┼┤└┴┘╞╪╡╔╦╗╠╬╣╚╩╝", "|||---" + "+" * 21)
"""Lines of boxes in Unicode, and those in ASCII."""

MARKUP = re.compile(rb"<t[hd]>|INSERT INTO results VALUES|^# row 1\s*$", re.MULTILINE)
"""What the shell prints with ``--format`` ``html``, ``sql`` or ``raw``."""

HEADLESS = re.compile(rb"\d+\t.*\t(?:active|decommission(?:ing|ed))\t(?:true|false)\r?\n")
"""A first row of node status, where a header should stand."""

ONLY_NODES = re.compile(rb"\s*id\s*\n(?:\s*-+\s*\n)?(?:\s*\d+\s*\n)+(?:\(\d+ rows?\)\s*)?")
"""What ``cockroach node ls`` prints."""

UNRULED = re.compile(r"(?m)^id \| is_live \| .*$")
"""A line of names that had tabs, which has no line of dashes below."""

TABBED = re.compile(r"^(?:id\tis_live|[0-9]+\t(?:true|false))\t.*$", re.MULTILINE)
"""A line of what ``cockroach node decommission`` prints into a file, with other words around."""

REPORT = re.compile(rb'^\s*[\[{].*"(?:rangeInfos|internalReplicas|internal_replicas)"', re.DOTALL)
"""How descriptors of ranges begin in reports of a node and in a debug zip."""


WORD = r"(?:\"(?:[^\"]|\"\")+\"|[\w$]+)"
STATEMENT = re.compile(r"\b(?:SHOW|SELECT)\s[^;]*", re.IGNORECASE)
REQUEST = re.compile(
    r"\bSHOW\s+(?:EXPERIMENTAL_)?RANGES\s+FROM\s+(?P<kind>TABLE|INDEX|DATABASE)\s+"
    rf"(?P<name>{WORD}(?:\.{WORD}){{0,2}})(?:@(?P<index>{WORD}))?",
    re.IGNORECASE,
)
"""What a session asks for above a table of ranges, which need not have a column for it."""

PROMPT = re.compile(r"(?m)^\S*@\S*/([\w-]+)>")
"""A prompt of the shell, and the database that it names."""


class Header(NamedTuple):
    """Where a line of names stands, and where the line of dashes below it ends.

    ``above`` is where the text before it begins, below another line of names.
    """

    start: int
    end: int
    below: int
    above: int = 0


TWICE = "more than one state of ranges: the last counts"


class _Block(NamedTuple):
    """The rows of a table in a session, their lines, and the text above its header."""

    rows: list[list[str]]
    lines: list[int]
    before: str
    notes: list[tuple[str, str]]

    @property
    def request(self) -> str:
        """The last statement above; "" if there is none."""
        return " ".join(([*STATEMENT.findall(self.before)] or [""])[-1].split())


def shell_names(document: Document) -> frozenset[str]:
    r"""Return the names of the columns, in lower case; none of what is no such table.

    >>> sorted(shell_names(Document("a.txt", b"  id | name\n-----+------\n   1 | x\n(1 row)\n")))
    ['id', 'name']
    """
    text = _as_printed(document.data[:HEAD].decode("utf-8", "replace"))
    if RECORD.search(text):
        first = RECORD.split(text)[1].splitlines()
        return frozenset(line.partition("|")[0].strip().lower() for line in first if "|" in line)
    return _names(text, known[0]) if (known := _known_headers(text)) else frozenset()


def shell_hint(document: Document) -> str:
    """Return which form is read of what the shell prints in another one; "" for what it does not.

    >>> shell_hint(Document("a.html", b"<table><thead><tr><th>row</th><th>range_id</th>"))[:20]
    'looks like what the '
    """
    if MARKUP.search(document.data[:HEAD]):
        return "looks like what the shell of CockroachDB prints: print it with --format=csv"
    names = {name.replace(" ", "_") for name in shell_names(document) or header_of(document)}
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


def read_shell_tables(faults: FaultList, document: Document) -> list[Table]:
    """Read such tables, those with the same columns as one; other text is passed over.

    Of tables with the state of nodes the last counts.
    """
    text = _as_printed(document.text(faults))
    if RECORD.search(text):
        return [_from_records(document, text)]
    alike: dict[tuple[str, ...], list[Header]] = {}
    for header in _known_headers(text):
        alike.setdefault(tuple(_cells(_line(text, header))), []).append(header)
    return [_of_headers(faults, document, text, *one) for one in alike.items()]


def _of_headers(
    faults: FaultList, document: Document, text: str, titles: Sequence[str], alike: list[Header]
) -> Table:
    """Read the rows below headers with the same titles."""
    kind = _kind_of_names(_names(text, alike[0]))
    state = kind in ("node status", "store status")
    blocks: list[_Block] = []
    ragged = 0
    # the status of nodes that is printed again is that of a later time
    for header in alike[-1:] if state else alike:
        above, before = _line(text, header), text[header.above : header.start]
        own = _Block([], [], before, [])
        blocks.append(own)
        for number, line in _body(text, header):
            cells = _cells(line, above, len(titles))
            tail = TAIL.match(line.strip())
            if tail or CUT.issuperset(cells):
                if not tail or int(tail["rows"]) > len(own.rows):
                    own.notes.append((LEFT_OUT, f"{document.name}:{number}"))
                continue
            if len(cells) != len(titles):
                ragged += 1
                if ragged <= LISTED_FAULTS:
                    message = f"has {len(cells)} cells, the header {len(titles)}"
                    faults.add(f"{document.name}:{number}", quoted(line.strip()), message)
                continue
            filled = [i for i, cell in enumerate(cells) if cell]
            goes_on = len(titles) > 1 and (len(filled) == 1 or kind == "zone table")
            if own.rows and not cells[0] and goes_on:
                for i in filled:
                    own.rows[-1][i] += f"\n{cells[i]}"
            elif filled:
                own.rows.append(cells)
                own.lines.append(number)
    if kind == "ranges":
        blocks = _last_printed(blocks, [title.lower() for title in titles].index("range_id"))
    asked = [_asked_for(own.before) for own in blocks for _ in own.rows]
    more = [*dict.fromkeys(name for one in asked for name in one if name not in titles)]
    rows = [
        row + [one.get(name, "") for name in more]
        for row, one in zip((row for own in blocks for row in own.rows), asked, strict=True)
    ]
    lines = [line for own in blocks for line in own.lines]
    notes = [note for own in blocks for note in own.notes]
    return replace(_table(document, [*titles, *more], rows, lines), notes=notes)


def _last_printed(blocks: Sequence[_Block], key: int) -> list[_Block]:
    """Return tables of ranges without those that the same statement prints again, unlike before."""
    held: list[_Block] = []
    for own in reversed(blocks):
        rows = {row[key]: row for row in own.rows}
        for later in held:
            if later.request == own.request and any(
                rows.get(row[key], row) != row for row in later.rows
            ):
                later.notes.append((TWICE, ""))
                break
        else:
            held.insert(0, own)
    return held


def _asked_for(text: str) -> dict[str, str]:
    """Return the database, table and index whose ranges the last statement shows.

    The database of a table is that of the statement, or else of the prompt; ``public`` is a schema.

    >>> _asked_for("> SHOW RANGES FROM INDEX movr.public.users@by_city;")["index_name"]
    'by_city'
    >>> _asked_for("root@:26257/movr> SHOW RANGES FROM TABLE users;")["database_name"]
    'movr'
    """
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
    text = document.data.decode("utf-8", "replace")
    shown, lines = text.translate(LINES), text.split("\n")
    for header in _headers(shown):
        if _kind_of_names(_names(shown, header)):
            first = shown.count("\n", 0, header.start)
            last = max([first + 1, *(number - 1 for number, _ in _body(shown, header))])
            lines[first : last + 1] = [";"] * (last + 1 - first)
    return Document(document.name, "\n".join(lines).encode(), document.path)


def _as_printed(text: str) -> str:
    """Return tables as the shell prints them, in ASCII, with bars where there are tabs."""
    return TABBED.sub(lambda line: line[0].replace("\t", " | "), text.translate(LINES))


def _headers(text: str) -> list[Header]:
    """Return the lines of names, which stand above lines of dashes."""
    found = [Header(one.start(), one.end(), one.end()) for one in UNRULED.finditer(text)]
    for rule in RULE.finditer(text):
        end = len(text[: rule.start()].rstrip("\r\n"))
        start = text.rfind("\n", 0, end) + 1
        above = text[start:end]
        if "|" in above and ("+" in rule[0] or "|" in rule[0]) and not RULE.match(above):
            found.append(Header(start, end, rule.end(), found[-1].below if found else 0))
    return found


def _known_headers(text: str) -> list[Header]:
    """Return the lines of names of tables that are read; the first line of names if none is."""
    headers = _headers(text)
    return [one for one in headers if _kind_of_names(_names(text, one))] or headers[:1]


def _line(text: str, header: Header) -> str:
    return text[header.start : header.end]


def _names(text: str, header: Header) -> frozenset[str]:
    """Return the names of the columns, in lower case."""
    return frozenset(name.lower() for name in _cells(_line(text, header)))


def _body(text: str, header: Header) -> Iterator[tuple[int, str]]:
    """Yield the lines below the names, each with its number, up to the number of rows."""
    first = text.count("\n", 0, header.below) + 2
    for number, line in enumerate(text[header.below :].splitlines()[1:], first):
        if RULE.match(line) or not line.strip():
            continue
        tail = TAIL.match(line.strip())
        if tail is None and ("|" in line or line.strip() in CUT):
            yield number, line
            continue
        if tail and tail["rows"]:
            yield number, line
        return


def _cells(line: str, above: str = "", count: int = 0) -> list[str]:
    """Return the cells of a line, at the places of those ``above`` where it has too many."""
    parts = line.split("|")
    framed = line.lstrip().startswith("|") and (above or line).lstrip().startswith("|")
    if framed:
        parts = parts[1:]
        if len(parts) > 1 and not parts[-1].strip():
            parts = parts[:-1]
    if count and len(parts) > count and not framed:
        starts = [0, *(at + 1 for at, mark in enumerate(above) if mark == "|")]
        ends = [*(start - 1 for start in starts[1:]), len(line)]
        fits = all(line[end : end + 1] == "|" for end in ends[:-1])
        parts = [line[a:b] for a, b in zip(starts, ends, strict=True)] if fits else parts
    return [_cell(part) for part in parts]


def _cell(text: str) -> str:
    """Return a cell without blanks around it, and without the + of psql where it goes on."""
    return text.strip().removesuffix("+").rstrip()


def _from_records(document: Document, text: str) -> Table:
    """Read ``-[ RECORD 1 ]`` and the lines ``name | cell`` below it."""
    titles: dict[str, None] = {}
    rows: list[dict[str, str]] = []
    lines: list[int] = []
    parts = RECORD.split(text)
    ends = accumulate(part.count("\n") for part in parts)
    for part, number in zip(parts[1:], ends, strict=False):
        row: dict[str, str] = {}
        name = ""
        for line in part.splitlines():
            key, mark, cell = line.partition("|")
            if not mark:
                continue
            name = key.strip() or name
            goes_on = not key.strip() and name in row
            row[name] = f"{row[name]}\n{_cell(cell)}" if goes_on else _cell(cell)
        titles |= dict.fromkeys(row)
        rows.append(row)
        lines.append(number + 1)
    return _table(
        document, [*titles], [[row.get(name, "") for name in titles] for row in rows], lines
    )


def _table(
    document: Document, titles: Sequence[str], rows: Sequence[list[str]], lines: list[int]
) -> Table:
    names = [title.lower() for title in titles]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Table(document.name, columns, lines, dict(zip(names, titles, strict=True)))


Kind = Literal[
    "ranges", "node status", "store status", "zone SQL", "zone table", "zone YAML", ""
]  # fmt: skip

ZONES = frozenset({"raw_config_sql", "config_sql"})
"""Columns with the statements of zones; before 19.2 there was another."""

HEAD = 65536
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
        names = shell_names(document) or header_of(document)
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
    elif shell_names(document):
        tables = read_shell_tables(faults, document)
    else:
        tables = [read_table(faults, document)]
    kinds = [_kind_of_names(frozenset(one.columns)) for one in tables]
    return [
        (kind, _as_now(one) if kind == "ranges" else one)
        for kind, one in zip(kinds, tables, strict=True)
    ]


ARRAY = re.compile(
    r"[\[{]\s*((?P<mark>[\"']?)\d+(?P=mark)(?:\s*,\s*(?P=mark)\d+(?P=mark))*)?\s*[\]}]"
)
"""An array of numbers as CockroachDB or a driver of another language prints it."""


def _as_now(ranges: Table) -> Table:
    """Name the columns of ranges as since 2.1, and print arrays of stores as ``{1,2,3}``.

    The columns were ``database``, ``table`` and ``index`` before.
    """
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


LIVENESS = (
    "UNKNOWN", "DEAD", "UNAVAILABLE", "LIVE", "DECOMMISSIONING", "DECOMMISSIONED", "DRAINING",
)  # fmt: skip
"""States of nodes by their numbers in that answer."""


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
