"""Read zone configurations from SQL, printed tables or YAML, and find the zone of a range.

A zone inherits the fields that it leaves out: an index from its table, a table from its database, a
database from the default range, a partition from its index or table. Fields that do not place
replicas are skipped. In a table that the system printed, an unreadable row is noted and its ranges
are left alone; a file written by people is refused.

Constraints inside SQL and tables are YAML on one line: ``[+ssd, -region=eu]``,
``{"+region=us": 2}``, ``[[+zone=a], [+zone=b]]``. `parse_flow` reads this part of YAML itself, so
that SQL needs no optional package and values such as ``on`` or ``1.10`` stay texts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import printable
from evenkeel.systems.cockroach.allocator.zone_configs import FIELDS, parse_config
from evenkeel.systems.csv_text import Table
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.notes import Notes
from evenkeel.systems.yaml_text import load_yaml

# Database, schema, table and index from the right: () is the default, ("t",) a table. Of a
# partition its own name goes before those of its table or index.
Target = tuple[str, ...]

# what is configured: its kind, such as ``TABLE`` or ``PARTITION OF INDEX``, and which
Key = tuple[str, Target]

OTHERS = {
    "range_min_bytes", "range_max_bytes", "gc.ttlseconds", "gc", "global_reads",
    "num_voters_per_region",
}  # fmt: skip
NAME = r"(?:\"(?:[^\"]|\"\")+\"|[^\s\".;@]+)"
TARGET = (
    rf"(?P<kind>RANGE|DATABASE|TABLE|INDEX|PARTITION\s+(?P<part>{NAME})\s+OF\s+(?:TABLE|INDEX))"
    rf"\s+(?P<name>{NAME}(?:\.{NAME}){{0,2}}(?:@{NAME})?)"
)
STATEMENT = re.compile(
    rf"\s*ALTER\s+{TARGET}\s+CONFIGURE\s+ZONE\s+(?P<what>USING|DISCARD)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
# a table that is divided by the values of one column
LISTED = re.compile(
    rf"\s*ALTER\s+TABLE\s+(?P<name>{NAME}(?:\.{NAME}){{0,2}})\s+PARTITION\s+BY\s+LIST\s*"
    r"\(\s*(?:\"[^\"]+\"|[^\s\",()]+)\s*\)\s*\((?P<parts>.*)\)\s*",
    re.IGNORECASE | re.DOTALL,
)

# a partition and its values, which ``SHOW CREATE TABLE`` prints in brackets, each
LISTED_PART = re.compile(
    rf"PARTITION\s+(?P<name>{NAME})\s+VALUES\s+IN\s*"
    r"\((?P<values>(?:'(?:[^']|'')*'|\((?:'(?:[^']|'')*'|[^'()])*\)|[^'()])*)\)",
    re.IGNORECASE,
)

SETTING = re.compile(
    r"\s*(?P<name>[\w.]+)\s*=\s*(?:e?'(?P<text>(?:[^']|'')*)'|(?P<word>[^\s,;']+)"
    r"|COPY\s+FROM\s+PARENT)\s*(?P<end>,|;?\s*$)",
    re.IGNORECASE,
)
NO_FIELD = "is not a field of a zone configuration"


@dataclass
class Zones:
    """What is configured, by kind and target, with its place."""

    of: dict[Key, dict[str, Any]] = field(default_factory=dict)
    at: dict[Key, str] = field(default_factory=dict)
    # the partition of each value of a table that is divided by the values of a column, and that of
    # all others (``DEFAULT``) as that of ""
    lists: dict[Target, dict[str, str]] = field(default_factory=dict)
    # what is configured in a way that could not be read
    unread: set[Key] = field(default_factory=set)
    notes: Notes = field(default_factory=Notes)
    # whether people wrote some of it and can correct it; else a system printed all of it
    written: bool = False

    def add(self, faults: FaultList, at: str, key: Key, config: dict[str, Any]) -> None:
        """Take in a configuration; one target has one."""
        if key in self.at and config != self.of[key]:
            faults.add(at, ".".join(key[1]), f"is configured otherwise at {self.at[key]}")
        self.of.setdefault(key, {}).update(config)
        self.at.setdefault(key, at)

    def databases_of(self, tables: Iterable[tuple[str, str]]) -> set[str]:
        """Return the databases that ranges of these tables, (schema, name), may be of."""
        # One that has the zone of such a table goes before those that only have a zone. Of a name
        # in two parts the first is the database, unless it is a schema. Every cluster has zones of
        # ``system``, whose ranges are rarely read: its own table shows it.
        theirs = {*tables}
        schemas, named = {"public", *(one for one, _ in theirs)}, {table for _, table in theirs}
        whole, owning = set[str](), set[str]()
        for kind, target in map(_whole, self.of):
            if target[0] == "system" and "descriptor" not in named:
                continue
            if kind == "DATABASE":
                whole.add(target[0])
            elif kind in ("TABLE", "INDEX"):
                name = target[: len(target) - (kind == "INDEX")]
                two = len(name) == 2 and name[0] not in schemas and name[1] in named
                if two or (len(name) == 3 and not {name[1:], ("", name[2])}.isdisjoint(theirs)):
                    owning.add(name[0])
        return owning or whole

    def of_span(self, span: str) -> dict[str, Any]:
        """Return what holds for a range of CockroachDB's own, by its span."""
        # every cluster has configurations of those in ``OWN``, with numbers of their own: where one
        # is left out, the numbers of the default are not theirs
        key = span_key(span)
        config = self.of.get(DEFAULT, {}) | self.of.get(key, {})
        if span in OWN and key not in self.of:
            config = {name: config[name] for name in config if name not in COUNTS}
        return config

    def unapplied(self, rows: Iterable[Sequence[str]]) -> list[str]:
        """Return the tables and indexes whose zones hold for none of the rows, save ``system``."""
        # each row names database, schema, table and index
        held = {key for row in rows for key in _keys(*row)}
        found: dict[str, None] = {}
        for key in self.of:
            kind, target = _whole(key)
            if key[0] == "PARTITION OF INDEX":  # found by the table
                kind, target = "TABLE", target[:-1]
            if kind in ("TABLE", "INDEX") and target[0] != "system" and (kind, target) not in held:
                found[".".join(target)] = None
        return [*found]

    def partitioned(self) -> list[str]:
        """Return the tables and indexes of which partitions have zones."""
        return [*dict.fromkeys(".".join(of) for (kind, (_, *of)), config in self.of.items()
                               if kind.startswith("PARTITION") and config)]  # fmt: skip

    def config_of(self, database: str, schema: str, table: str, index: str) -> dict[str, Any]:
        """Return the zone of a range of a table; the schema is ``public`` by default."""
        config: dict[str, Any] = {}
        for key in _keys(database, schema, table, index):
            config |= self.of.get(key, {})
        return config

    def is_unread(self, database: str, schema: str, table: str, index: str) -> bool:
        """Whether something that may hold for a range of a table could not be read."""
        keys = {*_keys(database, schema, table, index)}
        for kind, target in map(_whole, self.unread):
            if kind == "INDEX" and not index:
                kind, target = "TABLE", target[:-1]
            if (kind, target) in keys:
                return True
        return False

    def partitions_of(
        self, database: str, schema: str, table: str, index: str, *, primary: bool | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """Return what is configured for the partitions of a table, or of its index, by name."""
        # Those of the table are its primary index's. Where neither the name of the index is known
        # nor whether it is that one, all of them count.
        first = {"primary", f"{table}_pkey"}
        named = {target for kind, target in _keys(database, schema, table, "") if kind == "TABLE"}
        own: dict[str, list[dict[str, Any]]] = {}
        others: dict[str, list[dict[str, Any]]] = {}
        for (kind, (name, *of)), config in self.of.items():
            if kind == "PARTITION OF TABLE" and tuple(of) in named:
                if index or primary is not False:
                    others.setdefault(name, []).append(config)
            elif kind == "PARTITION OF INDEX" and tuple(of[:-1]) in named:
                if index and of[-1] == index:
                    own.setdefault(name, []).append(config)
                elif of[-1] == "*" or (not index and primary in (None, of[-1] in first)):
                    others.setdefault(name, []).append(config)
        return own or others

    def partition_of(self, database: str, schema: str, table: str, value: str) -> str | None:
        """Return the partition of a value of the first column; None where no list is known."""
        for kind, target in _keys(database, schema, table, ""):
            if kind == "TABLE" and target in self.lists:
                listed = self.lists[target]
                return listed.get(value) or listed.get("", "default")
        return None


DEFAULT: Key = ("RANGE", ("default",))


def span_key(span: str) -> Key:
    """Return what is configured for a range of CockroachDB's own, by its span."""
    return ("DATABASE", ("system",)) if span == "tables" else ("RANGE", (span,))


OWN = ("meta", "liveness", "system", "tables")
COUNTS = ("num_replicas", "num_voters")


def _whole(key: Key) -> Key:
    """Return what a partition is one of; anything else as it is."""
    kind, target = key
    return (kind.split()[-1], target[1:]) if kind.startswith("PARTITION") else key


def _keys(database: str, schema: str, table: str, index: str) -> list[Key]:
    """Return where the configuration of a range may stand, what it inherits from first."""
    schema = schema or "public"
    tables: list[Key] = [
        ("TABLE", name)
        for name in ((table,), (schema, table), (database, table), (database, schema, table))
        if table
    ]
    indexes: list[Key] = [("INDEX", (*name, index)) for _, name in tables if index]
    return [DEFAULT, ("DATABASE", (database,)), *tables, *indexes]


# the target before a statement, the rest of the line, and the end of the last of such rows, whose
# header is lost
LEFT_CELL = re.compile(
    r"^[ \t]*((?:PARTITION|RANGE|DATABASE|TABLE|INDEX|TENANT)\b[^|'\n]*|)\|(.*?)\+?[ \t]*$"
    r"(\n(?![^\n]*\|))?",
    re.IGNORECASE | re.MULTILINE,
)


# a prompt of a shell, that of a line that goes on, and what the shell answers
SHELL = re.compile(
    r"^(?:[^\s@'\"]*@[^\s'\"]*[>#$]|[$>]|[ \t]*->)(?=\s)"
    r"|^[ \t]*(?:CONFIGURE ZONE \d+|\(\d+ rows?\)|Time: [^\n]*)[ \t\r]*$",
    re.IGNORECASE | re.MULTILINE,
)

# a statement among the options of ``cockroach sql``, and what stands before it on its line
OPTION = re.compile(
    r"(?:^|(?<=\"))[^\n\"]*(?<!\S)(?:-e|--execute)[ =]\"((?:[^\"\\]|\\.)*)\"",
    re.DOTALL | re.MULTILINE,
)


def _without_targets(text: str) -> str:
    """Return rows of ``SHOW ZONE CONFIGURATIONS`` without header as statements, in their places."""
    # a prompt and an answer of the shell end a statement that has no semicolon
    text = OPTION.sub(
        lambda one: ";".ljust(one.start(1) - one.start()) + one[1].replace('\\"', ' "') + ";", text
    )
    text = SHELL.sub(lambda one: (" " if one[0].endswith("->") else ";").ljust(len(one[0])), text)
    return LEFT_CELL.sub(
        lambda row: (
            (";" if row[1] else " ").ljust(row.start(2) - row.start()) + row[2] + ";" * bool(row[3])
        ),
        text,
    )


def read_zone_sql(faults: FaultList, document: Document, zones: Zones) -> None:
    """Read ``ALTER ... CONFIGURE ZONE`` statements."""
    for statement, offset in _statements(_without_targets(document.text(faults))):
        at = f"{document.name}:{document.line_at(offset)}"
        if listed := LISTED.fullmatch(statement):
            zones.lists[target_in(listed["name"])] = {
                value: target_in(part["name"])[0]
                for part in LISTED_PART.finditer(listed["parts"])
                for value in _values(part["values"])
            }
        if not re.search(r"\bCONFIGURE\s+ZONE\b", statement, re.IGNORECASE):
            continue
        found = STATEMENT.fullmatch(statement)
        if found is None:
            message = "is not ALTER RANGE, DATABASE, TABLE, INDEX ... CONFIGURE ZONE USING"
            faults.add(at, quoted(statement.strip()), message)
            continue
        if found["what"].upper() == "DISCARD":
            continue
        config = _settings(faults, at, found["rest"])
        zones.add(faults, at, _key(found), config)


def read_zone_table(faults: FaultList, table: Table, zones: Zones) -> None:
    """Read what ``SHOW ZONE CONFIGURATIONS`` prints: a statement in each row."""
    if table.columns.keys() >= PARTITIONS:
        _read_partitions(faults, table, zones)
        return
    name = "raw_config_sql" if "raw_config_sql" in table.columns else "config_sql"
    targets = table.columns.get("target") or table.cells("zone_name")
    for row, text in enumerate(table.columns[name]):
        if text.upper() in ("", "NULL"):
            continue
        at, own, read = table.at(row, name), FaultList(), Zones()
        read_zone_sql(own, Document(at, text.encode("utf-8", "replace")), read)
        for config in read.of.values():
            parse_config(own, at, config)
        wrong = [one for one in own.faults if one.message != NO_FIELD]
        for key, config in read.of.items():
            if not wrong:
                zones.add(faults, at, key, config)
        which = printable(targets[row] or " ".join(text.split())[:60])
        for one in own.faults:
            zones.notes.add(f"passed over in the zone of {which}, since it {one.message}"
                               f": {one.value} ({one.path})")  # fmt: skip
        if wrong or not read.of:
            words = targets[row] or " ".join(text.split()[1:])
            if found := re.match(TARGET, words, re.IGNORECASE):
                zones.unread.add(_key(found))


# columns of what ``SHOW PARTITIONS`` prints
PARTITIONS = frozenset({"partition_name", "partition_value", "index_name", "full_zone_config"})


def _read_partitions(faults: FaultList, table: Table, zones: Zones) -> None:
    """Read the zone of each partition, and its values where these are of one column."""
    columns = ("database_name", "table_name", "index_name", "partition_name", "partition_value")
    cells = [table.cells(name) for name in (*columns, "column_names", "full_zone_config")]
    for row, (database, of, index, name, values, by, zone) in enumerate(zip(*cells, strict=True)):
        target = (database, "public", of)
        config = _settings(faults, table.at(row, "full_zone_config"), zone)
        key = ("PARTITION OF INDEX", (name, *target, index.rpartition("@")[2]))
        zones.add(faults, table.at(row, "partition_name"), key, config)
        if "," not in by:
            listed = zones.lists.setdefault(target, {})
            listed |= dict.fromkeys(_values(values), name)


def _values(text: str) -> list[str]:
    """Return the values of a partition, "" for ``DEFAULT``."""
    if re.fullmatch(r"[\s()]*DEFAULT[\s()]*", text, re.IGNORECASE):
        return [""]
    return [value.replace("''", "'") for value in re.findall(r"'((?:[^']|'')*)'", text)]


# a text of SQL, and no apostrophe within a word of a sentence around it
TEXT = r"(?<!\w\w)'(?:[^']|'')*'"


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Yield statements with the bytes before them; comments are blanked, texts kept whole."""
    blank = re.sub(
        rf"{TEXT}|\"(?:[^\"]|\"\")*\"|--[^\n]*",
        lambda found: " " * len(found[0]) if found[0].startswith("--") else found[0],
        text,
    )
    for found in re.finditer(rf"(?:{TEXT}|\"(?:[^\"]|\"\")*\"|[^;'\"]|['\"])+", blank):
        stripped = found[0].lstrip()
        if stripped:
            start = found.end() - len(stripped)
            yield stripped.rstrip(), len(text[:start].encode("utf-8", "replace"))


def _key(found: re.Match[str]) -> Key:
    """Return what a match of ``TARGET`` names."""
    kind, target = found["kind"].upper(), target_in(found["name"])
    if found["part"] is None:
        return kind, target
    return f"PARTITION OF {kind.split()[-1]}", (*target_in(found["part"]), *target)


def target_in(name: str) -> Target:
    """Return the parts of a name, without quotes."""
    parts = re.findall(NAME, name)
    return tuple(
        part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in parts
    )


def _settings(faults: FaultList, at: str, text: str) -> dict[str, Any]:
    config: dict[str, Any] = {}
    begin = 0
    while begin < len(text):
        found = SETTING.match(text, begin)
        if found is None:
            faults.add(at, quoted(text[begin:].strip()), "is not `name = value`")
            break
        begin = found.end()
        value = found["text"].replace("''", "'") if found["text"] is not None else found["word"]
        if value is None:
            continue  # COPY FROM PARENT
        _set(faults, at, config, found["name"].lower(), value)
        if not found["end"].startswith(","):
            break
    return config


def _set(faults: FaultList, at: str, config: dict[str, Any], name: str, value: str) -> None:
    if name in FIELDS:
        try:
            config[name] = parse_flow(value)
        except ValueError as error:
            faults.add(f"{at}: {name}", quoted(value), f"is not a value of a zone: {error}")
    elif name not in OTHERS:
        faults.add(f"{at}: {quoted(name)}", quoted(value), NO_FIELD)


# what ``cockroach zone get`` prints (until 19.2): a target, and below it its fields
GOT = re.compile(
    rb"^(?:[^\n]*[$#>] [^\n]*zone get [^\n]*\n)?(\.?[\w-]+(?:\.[\w-]+){0,2})[ \t\r]*\n"
    rb"((?:(?!\.?[\w.-]+[ \t\r]*$)[^\n$]*(?:\n|\Z))+)",
    re.MULTILINE,
)


def _with_target(found: re.Match[bytes]) -> bytes:
    """Return a configuration below its target as an entry of a mapping from targets."""
    target = found[1].decode()
    first, *rest = target.split(".")
    if not first:
        name = f"RANGE {rest[0]}"
    else:  # no release that prints this has other schemas
        name = f"TABLE {first}.public.{rest[0]}" if rest else f"DATABASE {first}"
        name = f"PARTITION {rest[1]} OF {name}" if len(rest) == 2 else name
    return f'"{name}":\n'.encode() + re.sub(rb"(?m)^(?=.)", b"  ", found[2])


def read_zone_yaml(faults: FaultList, document: Document, zones: Zones) -> None:
    """Read one configuration, which then is the default, or a mapping from targets to them."""
    if GOT.match(document.data.lstrip()):
        data = GOT.sub(_with_target, document.data)
        document = replace(document, data=re.sub(rb"(?m)^[^\n:]*[$#>][ \t\r]*$", b"", data))
    loaded = load_yaml(faults, document, "hand in SQL")
    zones.written = True
    if loaded is None:
        return
    if not isinstance(loaded, Mapping):
        message = "must be a zone configuration, or a mapping from targets to them"
        faults.add(document.name, type(loaded).__name__, message)
        return
    single = any(name in FIELDS for name in loaded)
    for name, given in ({"RANGE default": loaded} if single else loaded).items():
        at, text = f"{document.name}: {quoted(str(name))}", str(name)
        if len(text.split()) == 1:
            text = "RANGE default" if text.lower() == "default" else f"TABLE {text}"
        found = re.fullmatch(TARGET, text, re.IGNORECASE)
        if found is None:
            message = "is not a RANGE, DATABASE, TABLE, INDEX or PARTITION OF one and its name"
            faults.add(at, quoted(str(name)), message)
        elif not isinstance(given, Mapping):
            faults.add(at, type(given).__name__, "must be a mapping")
        else:
            _add_yaml(faults, at, zones, _key(found), given)


def _add_yaml(faults: FaultList, at: str, zones: Zones, key: Key, given: Mapping[Any, Any]) -> None:
    config = {}
    for given_name, value in given.items():
        name = str(given_name).removeprefix("experimental_")
        if name in FIELDS:
            if value is not None:
                config[name] = value
        elif name not in OTHERS:
            faults.add(f"{at}.{quoted(str(name))}", type(value).__name__, NO_FIELD)
    zones.add(faults, at, key, config)


TOKEN = re.compile(
    r"\s*(?:\"([^\"\\]*)\"|'([^']*)'|([^\s\[\]{},:\"'][^\[\]{},:\"']*)|([\[\]{},:]))"
)
DEEPEST_FLOW = 4


def parse_flow(text: str) -> Any:
    """Return lists, mappings, texts and whole numbers."""
    tokens: list[tuple[str, bool]] = []
    at = 0
    text = text.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"what is {text[at : at + 20]!r}?")
        mark = found[4] is not None
        word = next(part for part in found.groups() if part is not None)
        tokens.append((word if mark or found[3] is None else word.strip(), mark))
        at = found.end()
    value, end = _value(tokens, 0, 0)
    if end != len(tokens):
        raise ValueError(f"what is {tokens[end][0]!r} at the end?")
    return value


def _value(tokens: list[tuple[str, bool]], at: int, depth: int) -> tuple[Any, int]:
    if at >= len(tokens) or depth > DEEPEST_FLOW:
        raise ValueError("it ends too soon" if at >= len(tokens) else "it is nested too deeply")
    word, mark = tokens[at]
    if not mark:
        plain = word.isascii() and word.isdecimal() and len(word) < 10
        return (int(word) if plain else word), at + 1
    if word not in "[{":
        raise ValueError(f"{word!r} is not expected")
    close = "]" if word == "[" else "}"
    listed: list[Any] = []
    mapped: dict[str, Any] = {}
    at += 1
    while tokens[at : at + 1] != [(close, True)]:
        value, at = _value(tokens, at, depth + 1)
        if close == "}":
            if tokens[at : at + 1] != [(":", True)] or not isinstance(value, str):
                raise ValueError(f"a text and a colon are expected, not {str(value)[:40]!r}")
            if value in mapped:
                raise ValueError(f"{value[:40]!r} stands there twice")
            mapped[value], at = _value(tokens, at + 1, depth + 1)
        else:
            listed.append(value)
        if tokens[at : at + 1] == [(",", True)]:
            at += 1
        elif tokens[at : at + 1] != [(close, True)]:
            raise ValueError("a comma or an end is expected")
    return (listed if close == "]" else mapped), at + 1
