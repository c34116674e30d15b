"""Which of CockroachDB's documents a file is, and its tables, in whichever form they are."""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.cockroach.shell_text import read_shell_table, shell_names
from evenkeel.systems.csv_text import Table, header_of, read_table
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import note_syntax

Kind = Literal[
    "ranges", "node status", "store status", "zone SQL", "zone table", "zone YAML", ""
]  # fmt: skip

ZONES = frozenset({"raw_config_sql", "config_sql"})
"""Columns with the statements of zones; before 19.2 there was another."""

HEAD = 65536
ZONE_SQL = re.compile(rb"\bCONFIGURE\s+ZONE\s+(USING|DISCARD)\b", re.IGNORECASE)
ZONE_YAML = re.compile(
    rb"^[ \t]*[\"']?(num_replicas|num_voters|constraints|voter_constraints|lease_preferences)"
    rb"[\"']?\s*:",
    re.MULTILINE,
)
KEY = re.compile(rb'"(\w{1,60})"\s*:')


def kind_of(document: Document) -> Kind:
    r"""Tell which of CockroachDB's documents this is.

    Examples
    --------
    >>> kind_of(Document("r.tsv", b"range_id\treplicas\tlease_holder\n7\t{1,2,3}\t2\n"))
    'ranges'
    """
    head = document.data[:HEAD]
    if head.lstrip()[:1] in (b"{", b"["):
        names = frozenset(name.decode() for name in KEY.findall(head))
    else:
        names = shell_names(document) or header_of(document)
        if ZONE_SQL.search(head) and not names & ZONES:
            return "zone SQL"
    if names & ZONES:
        return "zone table"
    if "range_id" in names and names & {"replicas", "voting_replicas"}:
        return "ranges"
    if names >= {"store_id", "node_id"} and names & {"capacity", "attrs"}:
        return "store status"
    tells = {"is_live", "membership", "is_decommissioning", "decommissioning", "locality"}
    if names & {"id", "node_id"} and names & tells:
        return "node status"
    return "zone YAML" if ZONE_YAML.search(head) else ""


def table_of(faults: FaultList, document: Document) -> Table:
    """Read a table: CSV, TSV, what is printed for people, a list of objects or one per line."""
    data = document.data.lstrip()
    if data[:1] not in (b"{", b"["):
        read = read_shell_table if shell_names(document) else read_table
        return read(faults, document)
    try:
        if data[:1] == b"[":
            rows = msgspec.json.decode(document.data, type=list[dict[str, Any]])
        else:
            rows = msgspec.json.Decoder(dict[str, Any]).decode_lines(document.data)
    except msgspec.ValidationError as error:
        faults.add(document.name, quoted(document.data), f"is not a list of rows: {error}")
        rows = []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        note_syntax(faults, document, error)
        rows = []
    return _by_column(faults, document, rows)


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
        return "{" + ",".join(str(one)[:400] for one in value if not isinstance(one, list)) + "}"
    return value.strip() if isinstance(value, str) else str(value)[:400]
