"""Build a cluster from CockroachDB's documents: stores become nodes, ranges partitions.

Tables become groups, and zone configurations the rules of ranges. System ranges have zones with
names of their own (``RANGE meta``) or use the zones of the database ``system``, whose tables have
numbers below 100. Ranges are left alone if their zone configuration is unknown, or such that
CockroachDB would refuse it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import lead_ranks
from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.intake.stranded import with_left_alone, with_stranded
from evenkeel.model.placement import Role
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.model.rules import Amount
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.cockroach.allocator.intake import SETTINGS, Tables, cockroach_cluster
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Constraint,
    Tiers,
    ZoneConfig,
    check_config,
    parse_config,
)
from evenkeel.systems.cockroach.documents import (
    ZONE_SQL,
    kind_of,
    printed_tables,
    tables_of,
    without_tables,
)
from evenkeel.systems.cockroach.zones import (
    COUNTS,
    DEFAULT,
    Zones,
    read_zone_sql,
    read_zone_table,
    read_zone_yaml,
    span_key,
)
from evenkeel.systems.csv_text import BYTES, Table, number_lists
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.notes import Notes

BELONGS = ("database_name", "schema_name", "table_name", "index_name")
MOST_NAMED = 5  # ranges that a note names; the rest is counted
Config = dict[str, Any]


@dataclass
class Wanted:
    """The configurations there are, and which each range has, (P,)."""

    # Ranges ``alone (P,)`` are wanted as they are, and ``why`` has the reasons for what is left
    # out, each once. ``starts`` are start keys that identified partitions, ``lost`` are places that
    # constraints name and no store is in.

    configs: list[Config]
    config: NDArray[np.int32]
    alone: NDArray[np.bool_]
    starts: dict[int, str]
    lost: list[str]
    why: list[str]


Site = tuple[Tiers, Collection[str]]  # locality and attributes of a store


@dataclass
class RangeCounts:
    """How many replicas of each role every range has, (P,) each, and what ranges are called."""

    # ``sites`` returns where the voters of a range are, and where its non-voters

    voters: NDArray[np.int64]
    others: NDArray[np.int64]
    learners: NDArray[np.int64]
    names: Sequence[str]
    sites: Callable[[int], tuple[list[Site], list[Site]]]

    def named(self, which: NDArray[np.bool_]) -> str:
        """Name some ranges (P,): ``2 ranges (7, 9)``."""
        found = np.flatnonzero(which).tolist()
        shown = some_of(found, lambda p: printable(self.names[p]), MOST_NAMED)
        return f"{counted(len(found), 'range')} ({shown})"


class Known(NamedTuple):
    """Where stores are and what they carry, and whether files contain that, and leases, at all."""

    sites: Sequence[Site]
    places: bool
    attributes: bool
    leases: bool

    @property
    def carried(self) -> set[tuple[str, str]]:
        """Return what stores carry, (tier, value) and ("", attribute)."""
        return {pair for own, tags in self.sites for pair in (*own, *(("", tag) for tag in tags))}

    def knows(self, one: Constraint) -> bool:
        """Return whether the files show the stores that meet a constraint."""
        return self.places if one.key else self.attributes

    def lacks(self, one: Constraint) -> bool:
        """Whether no store carries what a constraint requires, nor its tier what it prohibits."""
        unheard = one.required or (one.key and one.key not in {key for key, _ in self.carried})
        return bool(unheard) and (one.key, one.value) not in self.carried


def wanted_of(
    zones: Zones,
    tables: Tables,
    keys: Sequence[str] | None,
    held: RangeCounts,
    known: Known,
    alone: Mapping[str, NDArray[np.bool_]],
) -> Wanted:
    """Find what is wanted of each range, by its tables, its start key and what it has."""
    # ``keys`` are the start keys of ranges, None where no file contains them; ``alone`` are ranges
    # (P,) that are left alone for other reasons
    book = _Book()
    config, unknown, unread, starts = _configured(book, zones, tables, keys)
    wanted = Wanted([], config, unknown | unread, starts, [], [])
    _judge_by_place(book, wanted, zones, tables, held, unknown)
    wanted.alone = unknown | unread
    for reason, which in alone.items():
        wanted.alone |= which
        if which.any():
            wanted.why.append(f"{reason}: {held.named(which)}, left alone")
    if unknown.any():
        hint = "add start_key" if keys is None else "no start key names one"
        wanted.why.append(
            f"no partition of {held.named(unknown)}, whose table has partitions with zones of "
            f"their own: left alone; {hint}"
        )
    wanted.why += zones.notes
    if unread.any():
        wanted.why.append(f"no zone of {held.named(unread)} that could be read: left alone")
    _judge_places(book, wanted, held, known)
    _fill_in(book, wanted, zones, held)
    if not zones.written:
        _judge_counts(book, wanted, held, known)
    _judge_together(book, wanted, held, known.sites)
    if (held.learners > 0).any():
        wanted.alone |= held.learners > 0
        wanted.why.append(
            f"changes under way: {held.named(held.learners > 0)} with learners or replicas that "
            "leave: left alone"
        )
    _as_they_are(book, wanted, held)
    used, of = np.unique(wanted.config, return_inverse=True)
    wanted.configs = [book.configs[q] for q in used.tolist()] or [{}]
    wanted.config = of.reshape(-1).astype(np.int32)
    return wanted


class _Book:
    """Distinct configurations, numbered as they come."""

    def __init__(self) -> None:
        self.configs: list[Config] = []
        self._seen: dict[str, int] = {}

    def number(self, own: Config) -> int:
        found = self._seen.setdefault(repr(sorted(own.items())), len(self.configs))
        if found == len(self.configs):
            self.configs.append(own)
        return found

    def read(self, q: int) -> tuple[ZoneConfig, FaultList]:
        faults = FaultList()
        return parse_config(faults, "", self.configs[q]), faults


def _named_rows(tables: Tables) -> list[list[str]]:
    """Return the names that ``BELONGS`` lists of each row of tables, "" where unknown."""
    names = []
    for row in tables.rows:
        known = dict.fromkeys(BELONGS, "") | dict(zip(tables.columns, row, strict=True))
        if "database_name" not in tables.columns or known["table_name"]:
            known["database_name"] = known["database_name"] or tables.database
        names.append([*known.values()])
    return names


def _configured(
    book: _Book, zones: Zones, tables: Tables, keys: Sequence[str] | None
) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.bool_], dict[int, str]]:
    """Return the configuration of each range, those of no known partition or zone, and keys."""
    names = _named_rows(tables)
    of_row = [zones.config_of(*row) for row in names]
    config = np.array([book.number(one) for one in of_row], np.int32)[tables.of]
    unread = np.array([zones.is_unread(*row) for row in names], np.bool_)[tables.of]
    unknown = np.zeros(len(config), np.bool_)
    starts: dict[int, str] = {}
    for t, row in enumerate(names):
        whole = zones.partitions_of(*row)
        divided = np.flatnonzero(tables.of == t).tolist() if whole else ()
        primary = _in_primary_index([] if keys is None else [keys[p] for p in divided])
        for p in divided:
            own_index = primary.get(keys[p]) if keys is not None else None
            partitions = zones.partitions_of(*row, primary=own_index) or whole
            value = first_value(keys[p]) if keys is not None else ""
            listed = bool(value) or (keys is not None and BESIDE.fullmatch(keys[p]) is not None)
            name = zones.partition_of(row[0], row[1], row[2], value) if listed else None
            # a partition without a zone of its own has that of its table
            own = partitions.get(value, []) if name is None else partitions.get(name, [{}])
            unknown[p] = not own or any(one != own[0] for one in own)
            if keys is not None:
                starts[p] = keys[p]
            if not unknown[p]:
                config[p] = book.number(of_row[t] | own[0])
    for p, start in tables.starts.items():
        span = span_of(start)
        config[p] = book.number(zones.of_span(span))
        unknown[p] = False
        key = span_key(span)
        unread[p] = bool(zones.unread & {DEFAULT, key})
    return config, unknown, unread, starts


def _in_primary_index(starts: Sequence[str]) -> dict[str, bool]:
    """Return whether ranges of a table are of its primary index, by their start keys."""
    # its number is the least, since an exchange of the primary key writes all other indexes anew
    numbers = {start: int(found[1]) for start in starts if (found := INDEX.match(start))}
    return {start: number == min(numbers.values()) for start, number in numbers.items()}


def _judge_by_place(
    book: _Book,
    wanted: Wanted,
    zones: Zones,
    tables: Tables,
    held: RangeCounts,
    unknown: NDArray[np.bool_],
) -> None:
    """Find the partition of ranges whose keys are no names of any by where their voters are."""
    # Where regions are values of an enumeration, keys show them as bytes. A range is of the one
    # partition whose constraints it meets; where none or several are met, it stays ``unknown``.
    names, found = _named_rows(tables), np.zeros(len(unknown), np.bool_)
    for t in np.unique(tables.of[unknown]).tolist():
        row = names[t]
        whole = zones.config_of(*row)
        ways = {
            book.number(whole | own)
            for listed in zones.partitions_of(*row).values()
            for own in listed
        }
        read = {q: book.read(q)[0] for q in sorted(ways)}
        for p in np.flatnonzero(unknown & (tables.of == t)).tolist():
            met = [q for q, one in read.items() if _is_met(one, *held.sites(p))]
            if len(met) == 1 and (read[met[0]].constraints or read[met[0]].voter_constraints):
                wanted.config[p], found[p], unknown[p] = met[0], True, False
    if found.any():
        wanted.why.append(
            f"no partition of {held.named(found)} but by where their voters are: each is taken for "
            "the one whose constraints it meets"
        )


def _is_met(config: ZoneConfig, voters: Sequence[Site], others: Sequence[Site]) -> bool:
    """Whether replicas that are there meet what a configuration asks."""
    for listed, sites in (
        (config.constraints, [*voters, *others]),
        (config.voter_constraints, voters),
    ):
        for one in listed:
            inside = sum(all(each.holds(*site) for each in one.constraints) for site in sites)
            if inside < (one.replicas or len(sites)):
                return False
    return True


def _judge_places(book: _Book, wanted: Wanted, held: RangeCounts, known: Known) -> None:
    """Find constraints of places that no store is in, or of which nothing is known."""
    blind = np.zeros(len(wanted.config), np.bool_)
    unled = np.zeros(len(wanted.config), np.bool_)
    lost: dict[str, str] = {}
    for q in np.unique(wanted.config).tolist():
        one, _ = book.read(q)
        bound = [each for c in (*one.constraints, *one.voter_constraints) for each in c.constraints]
        preferred = [each for listed in one.lease_preferences for each in listed]
        if not all(map(known.knows, bound)):
            blind |= wanted.config == q
        elif preferred and not (known.leases and all(map(known.knows, preferred))):
            unled |= wanted.config == q
            rest = {k: v for k, v in book.configs[q].items() if k != "lease_preferences"}
            wanted.config[wanted.config == q] = book.number(rest)
        else:
            gone = [each for each in (*bound, *preferred) if known.lacks(each)]
            lost |= {
                f"{each.key}={each.value}" if each.key else each.value: each.key for each in gone
            }
    wanted.lost = [name for name, key in lost.items() if key]
    if lost:
        named = some_of([*lost], printable, MOST_NAMED)
        wanted.why.append(f"no store in {named}, which zones name: what they ask there stays unmet")
    lacking = "" if known.places else "localities of nodes"
    if not known.attributes:
        lacking = f"{lacking} or " * bool(lacking) + "attributes of stores"
    advice = "add cockroach node status and crdb_internal.kv_store_status"
    if blind.any():
        wanted.alone |= blind
        wanted.why.append(
            f"no {lacking}: {held.named(blind)} that constraints bind, left alone; {advice}"
        )
    if unled.any() and known.leases:
        wanted.why.append(f"no {lacking}: lease preferences of {held.named(unled)} are passed over")


def _fill_in(book: _Book, wanted: Wanted, zones: Zones, held: RangeCounts) -> None:
    """Want the present number of replicas of a range where no zone has a number."""
    unknown = np.array(["num_replicas" not in one for one in book.configs], np.bool_)[wanted.config]
    rows = np.column_stack([wanted.config, held.voters, held.others])[unknown]
    if not len(rows):
        return
    distinct, of = np.unique(rows, axis=0, return_inverse=True)
    numbers = []
    for q, voters, others in distinct.tolist():
        one, _ = book.read(q)
        asked = sum(each.replicas for each in one.constraints)
        voting = max(voters, sum(each.replicas for each in one.voter_constraints), 1)
        whole = max(voting + others, asked)
        numbers.append(book.number(book.configs[q] | _counts(whole, voting)))
    wanted.config[unknown] = np.array(numbers, np.int32)[of.reshape(-1)]
    if not zones.of:
        wanted.why.append(
            "no zone configurations: as many replicas are wanted of each range as it has; add SHOW "
            "ALL ZONE CONFIGURATIONS"
        )
    else:
        wanted.why.append(
            f"no number of replicas of {held.named(unknown)}: as many are wanted as there are"
        )


def _judge_counts(book: _Book, wanted: Wanted, held: RangeCounts, known: Known) -> None:
    """Leave alone what is configured in a way that CockroachDB would refuse."""
    lost = {(key, value) for key, _, value in (one.partition("=") for one in wanted.lost)}
    for q in np.unique(wanted.config[~wanted.alone]).tolist():
        one, faults = book.read(q)
        check_config(faults, "", one, {*known.carried, *lost})
        if faults:
            theirs = wanted.config == q
            wanted.alone |= theirs
            wanted.why.append(
                f"a zone of {held.named(theirs)} that cannot hold: {faults.faults[0]}; left alone"
            )


def _judge_together(book: _Book, wanted: Wanted, held: RangeCounts, sites: Sequence[Site]) -> None:
    """Leave alone what is bound by constraints that stores meet one by one, and none together."""
    for q in np.unique(wanted.config[~wanted.alone]).tolist():
        if apart := _met_apart(book.read(q)[0], sites):
            theirs = wanted.config == q
            wanted.alone |= theirs
            named = ", ".join(printable(str(one)) for one in apart)
            wanted.why.append(
                f"no store that meets all of {named}, as zones ask of {held.named(theirs)}: left "
                "alone"
            )


def _met_apart(config: ZoneConfig, sites: Sequence[Site]) -> list[Constraint]:
    """Return constraints of one replica that are each met by a store, and by none all together."""
    every: list[Constraint] = []  # those of all replicas, then of all voters
    for listed in (config.constraints, config.voter_constraints):
        every += [each for one in listed if not one.replicas for each in one.constraints]
        for one in listed:
            whole = [*dict.fromkeys([*every, *one.constraints])]
            met = [[each.holds(*site) for each in whole] for site in sites]
            if all(map(any, zip(*met, strict=True))) and not any(map(all, met)):
                return whole
    return []


def _as_they_are(book: _Book, wanted: Wanted, held: RangeCounts) -> None:
    """Want of ranges that are left alone what they have, and nothing else."""
    for p in np.flatnonzero(wanted.alone).tolist():
        voters = max(int(held.voters[p]), 1)
        whole = voters + int(held.others[p]) + int(held.learners[p])
        wanted.config[p] = book.number(_counts(whole, voters))


def _counts(whole: int, voters: int) -> Config:
    """Return the numbers of a configuration; those of voters only where others are left."""
    return dict(zip(COUNTS, (whole, voters if voters < whole else 0), strict=True))


# start keys as they are printed, and their owners; the first match counts
START = re.compile(
    r"(?P<meta>/(?:Min|Meta[12]?)(?:/.*)?)"
    r"|(?P<liveness>/System/NodeLiveness(?:/.*)?)"
    r"|(?P<timeseries>/System/tsd(?:/.*)?)"
    r"|(?P<system>/System(?:/.*)?)"
    r"|(?P<tables>/(?:Table/(?:[0-9]{1,2}|SystemConfigSpan)|NamespaceTable)(?:/.*)?)"
    r"|(?P<tenants>/Tenant/.*)"
)

INNER = re.compile(r"/Tenant/[0-9]+(?=/)")  # what stands before the keys of a tenant


# a start key whose first column is a text, in whichever form ``SHOW RANGES`` prints it
FIRST = re.compile(
    r"(?:/Tenant/[0-9]+)?(?:/Table/[0-9]+/[0-9]+|\u2026(?:/[0-9]+)?|/[0-9]+)?"
    r"/\"(?P<value>(?:[^\"\\]|\\.)*)\"(?!/PrefixEnd$)(?:/.*)?",
    re.DOTALL,
)


# a start key before all values of the first column, or behind all rows of one of them
BESIDE = re.compile(
    r"(?:/Tenant/[0-9]+)?(?:/Table/[0-9]+(?:/[0-9]+)?|\u2026(?:/[0-9]+|/<TableMin>)?|/[0-9]+"
    r"|NULL|<before:[^>]*>|)(?:/\"(?:[^\"\\]|\\.)*\"/PrefixEnd)?",
    re.DOTALL,
)


# a start key that has the number of its index
INDEX = re.compile(r"(?:/Tenant/[0-9]+)?(?:/Table/[0-9]+|\u2026)/([0-9]+)(?=/|$)")


def first_value(start: str) -> str:
    """Return the first column of a start key; "" where it is no text, or the key after all of it.

    >>> [first_value(start) for start in ('/Table/106/1/"us-east1"/7', '/"a"', '/1/"a"/PrefixEnd')]
    ['us-east1', 'a', '']
    """
    found = FIRST.fullmatch(start)
    return "" if found is None else found["value"]


def span_of(start: str) -> str:
    """Return whose a range is that begins there; "" for users, and where nothing shows it.

    >>> [span_of(start) for start in ("/System/NodeLiveness", "/Table/42/1", "/Table/104", "NULL")]
    ['liveness', 'tables', '', '']
    """
    found = START.fullmatch(start)
    return "" if found is None else str(found.lastgroup)


def start_keys(table: Table) -> list[str] | None:
    """Return the start keys of all rows; None where the table lacks them."""
    return table.columns.get("start_pretty") or table.columns.get("start_key")


def starts_in(table: Table, rows: list[int]) -> dict[int, str]:
    """Return the start keys of ranges that are CockroachDB's own, by their place among rows."""
    # Zones of a known table are found by its name. Tenants are ranges of the whole cluster where it
    # is shown beside them, and have zones of one name; else theirs is all that there is to see.
    column = start_keys(table)
    if column is None:
        return {}
    named = table.columns.get("table_name", [""] * len(column))
    spans = {i: (column[row], span) for i, row in enumerate(rows) if (span := span_of(column[row]))}
    if all(span == "tenants" for _, span in spans.values()):
        inner = {i: INNER.sub("", start) for i, (start, _) in spans.items()}
        spans = {i: (start, span_of(start)) for i, start in inner.items()}
    return {
        i: start
        for i, (start, span) in spans.items()
        if span and (span != "tables" or named[rows[i]] in ("", "NULL"))
    }


BOOLEANS = {"true", "false", "t", "f", "", "null"}
LIST = re.compile(r"\{[0-9]{1,9}(,[0-9]{1,9})*\}|\{\}||NULL", re.IGNORECASE)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')
# a tier of a locality in JSON, and its value
PAIR = re.compile(r'(?:"key"\s*:\s*)?"([^"]*)"(?:\s*,\s*"value")?\s*:\s*"([^"]*)"')

# the usual order of tiers: an object of JSON has none, and a database sorts its keys
WIDEST_FIRST = {
    "cloud": 0, "provider": 0, "country": 1, "region": 2, "az": 3, "zone": 3,
    "availability-zone": 3, "dc": 4, "datacenter": 4, "rack": 5, "host": 6,
}  # fmt: skip

NO_NODE = ("", "0", "NULL")
# fields of a node in node status, and their defaults
STATES = {
    "is_live": "true", "is_available": "true", "is_draining": "false",
    "is_decommissioning": "false", "membership": "active", "locality": "", "attrs": "",
}  # fmt: skip

# columns of ``crdb_internal.gossip_nodes`` and ``gossip_liveness``
ALIASES = {"node_id": "id", "draining": "is_draining", "decommissioning": "is_decommissioning"}

# states of nodes whose stores may be gone from the store status
GOING = ("dead", "decommissioning", "decommissioned")

BUILD = re.compile(r"v([0-9]{1,4})\.([0-9]{1,4})")
RELOCATES = (22, 1)
OLDER = "nodes of {}, which do not know ALTER RANGE ... RELOCATE: it is new in v22.1"

MOST = 2**31 - 1
MOST_NODE = 2**20
MEGABYTE = 1e6
# replicas of a range: more than anybody configures, so that one long row does not widen all
MOST_REPLICAS = 64


@dataclass
class _Found:
    """The documents read so far."""

    faults: FaultList = field(default_factory=FaultList)
    ranges: list[Table] = field(default_factory=list)
    nodes: list[Table] = field(default_factory=list)
    stores: list[Table] = field(default_factory=list)
    zones: Zones = field(default_factory=Zones)
    notes: Notes = field(default_factory=Notes)
    # stores whose liveness no file contains, and the missing file
    foreign: dict[int, str] = field(default_factory=dict)

    @property
    def lists_nodes(self) -> bool:
        """Whether a file lists all nodes; ``cockroach node decommission`` lists those it names."""
        counts = {"replicas", "gossiped_replicas"}
        return any("address" in one.columns or not counts & {*one.columns} for one in self.nodes)


@dataclass
class _Store:
    """A store: its node, and what is known of both."""

    host: int
    locality: str
    status: str = "available"
    attributes: Sequence[str] = ()
    capacity: float = np.inf
    used: float = np.nan


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from ranges, and what there is of node status, store status and zones."""
    found = _Found()
    for document in documents:
        _read_document(found, document)
    faults = found.faults
    if len({"table_name" in one.columns for one in found.ranges}) != 1 and not faults:
        names = [document.name for document in documents]
        faults.add(
            "source",
            names,
            "needs tables of ranges, all or none with table_name, such as SELECT * FROM "
            f"crdb_internal.ranges; there are {len(found.ranges)}",
        )
    faults.raise_if_any()
    table = _joined(found.ranges)
    rows = _first_rows(faults, table)
    held = _held(faults, table, rows)
    stores = _stores(found, table, held)
    place = {store: s for s, store in enumerate(stores)}
    replicas, roles = _rows_of(faults, rows, held, place)
    lease = _leases(found, table, rows, place)
    sizes = _sizes(faults, table)[rows]
    tables = _tables(table, rows)
    tables = replace(
        tables,
        database=_database(found, table.name, tables),
        starts=starts_in(table, rows.tolist()),
    )
    tables = replace(tables, unapplied=tuple(found.zones.unapplied(_named_rows(tables))))
    faults.raise_if_any()
    known = [*stores.values()]
    names = [table.columns["range_id"][row] for row in rows.tolist()]
    none = np.zeros(len(rows), np.int64)
    voters, others, learners = (held[role][0] if role in held else none for role in Role)
    keys = start_keys(table)

    def sites(p: int) -> tuple[list[Site], list[Site]]:
        by_role = [
            [(_places(known[s]), known[s].attributes) for s in replicas[p][own].tolist()]
            for own in ((roles[p] == role) & (replicas[p] >= 0) for role in SERVING)
        ]
        return by_role[0], by_role[1]

    wanted = wanted_of(
        found.zones,
        tables,
        None if keys is None else [keys[row] for row in rows.tolist()],
        RangeCounts(voters, others, learners, names, sites),
        Known(
            [(_places(one), one.attributes) for one in known],
            places=_tells_places(found, table),
            attributes=any("attrs" in one.columns for one in (*found.stores, *found.nodes)),
            leases=bool((lease != -1).any()),
        ),
        _left_alone(found, tables, stores, replicas, roles, lease),
    )
    tables = replace(tables, starts={**wanted.starts, **tables.starts})
    try:
        cluster = cockroach_cluster(
            localities=[one.locality for one in known],
            replicas=replicas,
            configs=wanted.configs,
            config=wanted.config,
            lost=wanted.lost,
            roles=roles,
            leaseholder=lease,
            hosts=[one.host for one in known],
            attributes=[one.attributes for one in known],
            status=[one.status for one in known],
            capacity=[one.capacity for one in known],
            used=[one.used for one in known],
            size=sizes,
            spread=[_diverse(known, _wanted_by(one)) for one in wanted.configs],
            store_names=[str(store) for store in stores],
            range_names=names,
        )
    except InvalidInput as error:
        for fault in error.faults:
            at = _located(found, table, rows, fault.path)
            faults.add(at, quoted(fault.value), fault.message)
        raise InvalidInput(faults.faults) from None
    if any("capacity" in one.columns for one in found.stores) and not any(
        {"used", "available"} & {*one.columns} for one in found.stores
    ):
        found.notes.add("no used bytes of stores: disks count as if only ranges filled them")
    if not found.lists_nodes:
        found.notes.add(
            "no node status: stores count as live, and those without replicas are not known; add "
            "cockroach node status --all"
        )
    elif not any({"is_live", "is_available"} & {*one.columns} for one in found.nodes):
        found.notes.add(
            "no liveness of nodes: those listed count as live; add cockroach node status --all"
        )
    for build in (build for one in found.nodes for build in one.columns.get("build", ())):
        release = BUILD.match(build)
        if release and (int(release[1]), int(release[2])) < RELOCATES:
            found.notes.add(OLDER, build)
    beside = (*_about_disks(cluster), *_about_voters(cluster), *_about_leases(cluster))
    notes = (*found.notes, *wanted.why, *beside)
    cluster = cluster.replace(native=replace(cluster.native, tables=tables, notes=notes))
    free = cluster.replace(rule=np.where(wanted.alone, -1, cluster.partitions.rule))
    return with_stranded(with_left_alone(_grouped(free), wanted.alone), _without_quorum(cluster))


SERVING = (Role.VOTER, Role.NON_VOTER)


def _places(store: _Store) -> Tiers:
    """Return the places that a store is in."""
    parts = (part.partition("=") for part in store.locality.split(",") if part.strip())
    return tuple((tier.strip(), value.strip()) for tier, _, value in parts)


def _tells_places(found: _Found, table: Table) -> bool:
    """Whether some file has the localities of stores."""
    return any("locality" in one.columns for one in found.nodes) or (
        "replica_localities" in table.columns
    )


def _left_alone(
    found: _Found,
    tables: Tables,
    stores: Mapping[int, _Store],
    replicas: NDArray[np.int32],
    roles: NDArray[np.uint8],
    lease: NDArray[np.int32],
) -> dict[str, NDArray[np.bool_]]:
    """Return the ranges (P,) that a dump describes too little, by the missing part."""
    # ranges whose lease no voter holds are in the middle of a change: they lose that lease
    found_of: dict[str, NDArray[np.bool_]] = {}
    names = [*stores]
    for message in dict.fromkeys(found.foreign.values()):
        theirs = [store for store, why in found.foreign.items() if why == message]
        stated = f"{some_of(theirs, str, MOST_NAMED)} as {message}"
        held = np.isin(replicas, [names.index(store) for store in theirs])
        found_of[f"{'stores' if len(theirs) > 1 else 'store'} {stated}"] = np.any(held, axis=1)
    if "table_name" not in tables.columns and (divided := found.zones.partitioned()):
        named = some_of(divided, printable, MOST_NAMED)
        users = np.isin(np.arange(len(lease)), [*tables.starts], invert=True)
        found_of[f"no table_name, and partitions of {named} have zones of their own"] = users
    votes = (replicas == lease[:, None]) & (roles == Role.VOTER)
    odd = (lease != -1) & ~votes.any(axis=1)
    lease[odd] = -1
    found_of["no voter as holder of the lease"] = odd
    return found_of


def _about_disks(cluster: Cluster) -> Iterator[str]:
    """Say which stores take nothing, since their disks are nearly full."""
    full = cluster.native.is_full(cluster)
    if full.any():
        names = [cluster.nodes.names[n] for n in np.flatnonzero(full).tolist()]
        yield (
            f"{counted(len(names), 'store')} with disks at least {SETTINGS.disk_rebalance:.1%} "
            f"full ({some_of(names, str, MOST_NAMED)}): replicas only leave them"
        )


def _about_voters(cluster: Cluster) -> Iterator[str]:
    """Say which ranges have all replicas, but not as many voters among them as zones want."""
    placement, parts = cluster.placement, cluster.partitions
    some = placement.node >= 0
    whole, voters = (
        np.bincount(placement.owner[which], minlength=len(parts))
        for which in (some, some & (placement.role == Role.VOTER))
    )
    if len(other := np.flatnonzero((whole == parts.replicas) & (voters != parts.voters))):
        named = [f"{parts.names[p]}: {voters[p]}, not {parts.voters[p]}" for p in other.tolist()]
        yield (
            f"other numbers of voters than zones want of {counted(len(other), 'range')} "
            f"({some_of(named, str, MOST_NAMED)}): CockroachDB changes which replicas vote by "
            "itself; no rule counts it"
        )


def _about_leases(cluster: Cluster) -> Iterator[str]:
    """Say which ranges have no voter where leases are preferred, and no rule that asks for one."""
    placement, parts = cluster.placement, cluster.partitions
    for r, rule in enumerate(cluster.rules):
        if not rule.lead or {*rule.lead} & {term.text for term in rule.terms()}:
            continue
        near = at_node(lead_ranks(cluster, rule.lead) < len(rule.lead), placement.node)
        voters = near & (placement.role == Role.VOTER)
        apart = np.bincount(placement.owner[voters], minlength=len(parts)) == 0
        if len(found := np.flatnonzero(apart & (parts.rule == r))):
            named = some_of([parts.names[p] for p in found.tolist()], str, MOST_NAMED)
            yield (
                f"no voter in {' or '.join(map(printable, rule.lead))}, where leases are "
                f"preferred, of {counted(len(found), 'range')} ({named}): none moves for a "
                "preference; a constraint brings one there"
            )


def _wanted_by(config: Mapping[str, Any]) -> int:
    """Return the number of replicas of a zone; invalid ones are reported by the check of zones."""
    stated = config.get("num_replicas", 3)
    return stated if type(stated) is int else 3


def _diverse(stores: Sequence[_Store], replicas: int) -> dict[str, Amount]:
    """Say how many replicas of a range had better be in one locality, tier by tier."""
    # CockroachDB always prefers stores that are farther apart, but ranks this below constraints
    found: dict[str, set[Tiers]] = {}
    for places in map(_places, stores):
        for i, (tier, _) in enumerate(places, 1):
            found.setdefault(tier, set()).add(places[:i])  # a zone "1" of each region is its own
    return {
        tier: (-(-replicas // len(domains)), "soft")
        for tier, domains in found.items()
        if len(domains) > 1
    }


def _without_quorum(cluster: Cluster) -> NDArray[np.bool_]:
    """Tell which ranges have no majority of their voters on stores that live, (P,)."""
    placement, count = cluster.placement, len(cluster.partitions)
    votes = (placement.node >= 0) & (placement.role == Role.VOTER)
    live = votes & at_node(cluster.nodes.serves, placement.node)
    voters, left = (np.bincount(placement.owner[rows], minlength=count) for rows in (votes, live))
    return np.asarray((voters > 0) & (2 * left <= voters))


def _read_document(found: _Found, document: Document) -> None:
    kind = kind_of(document)
    if kind == "zone YAML":
        read_zone_yaml(found.faults, document, found.zones)
    elif not kind:
        message = (
            "is not a table of ranges, nodes or stores nor a zone configuration of CockroachDB"
        )
        found.faults.add(document.name, document.data[:40], message)
    elif kind == "zone SQL" and ZONE_SQL.search((rest := without_tables(document)).data):
        read_zone_sql(found.faults, rest, found.zones)
        found.zones.written = True
    if kind in ("zone YAML", "") or (kind == "zone SQL" and not printed_tables(document)):
        return
    for kind, table in tables_of(found.faults, document):
        for sentence, name in table.notes:
            found.notes.add(sentence, *filter(None, [name]))
        if kind == "ranges":
            found.ranges.append(table)
        elif kind == "node status":
            found.nodes.append(table)
        elif kind == "store status":
            found.stores.append(table)
        elif kind == "zone table":
            read_zone_table(found.faults, table, found.zones)


def _joined(tables: Sequence[Table]) -> Table:
    """Return tables of ranges as one; other rows of a range have the cells that its own lacks."""
    first, *others = tables
    if not others:
        return first
    columns: dict[str, list[str]] = {}
    of = [one for table in tables for one in table.cells("range_id")]
    for name in dict.fromkeys(name for one in tables for name in one.columns):
        known = {
            own: cell
            for one in tables
            if name in one.columns
            for own, cell in zip(one.columns["range_id"], one.columns[name], strict=True)
        }
        if name == "lease_holder" and not known.keys() >= {*of}:
            continue  # the lease of some is not known, which is not that they have none
        columns[name] = [
            cell
            for one in tables
            for cell in one.columns.get(name)
            or [
                known.get(own, replicas if name == "voting_replicas" else "")
                for own, replicas in zip(one.cells("range_id"), one.cells("replicas"), strict=True)
            ]
        ]
    return replace(
        first,
        name=", ".join(dict.fromkeys(one.name for one in tables)),
        columns=columns,
        lines=[line for one in tables for line in one.lines],
        titles={name: title for one in tables for name, title in one.titles.items()},
    )


def _first_rows(faults: FaultList, table: Table) -> NDArray[np.int64]:
    """Return the first row of each range; one that spans several tables has a row for each."""
    ids = table.wholes(faults, "range_id", MOST)
    _, first, of = np.unique(ids, return_index=True, return_inverse=True)
    for name in ("replicas", "voting_replicas", "lease_holder"):
        if name in table.columns:
            cells = np.array(table.columns[name], object)
            for row in np.flatnonzero(cells != cells[first][of])[:LISTED_FAULTS].tolist():
                message = f"differs from {table.at(int(first[of[row]]), name)}, of the same range"
                faults.add(table.at(row, name), quoted(cells[row]), message)
    order: NDArray[np.int64] = np.sort(first)
    return order


# how many numbers each row has, and all of them
Lists = tuple[NDArray[np.int64], NDArray[np.int64]]


def _held(faults: FaultList, table: Table, rows: NDArray[np.int64]) -> dict[Role, Lists]:
    """Return the stores of each role; without their columns all replicas vote."""
    # in the middle of a change some that are on their way out have no role: they count as learners
    columns = {
        Role.VOTER: "voting_replicas",
        Role.NON_VOTER: "non_voting_replicas",
        Role.LEARNER: "learner_replicas",
    }
    if "voting_replicas" not in table.columns:
        columns = {Role.VOTER: "replicas"}
    found = {}
    for role, name in columns.items():
        if name in table.columns:
            found[role] = _lists(faults, table, name, rows)
    if "replicas" in table.columns and Role.VOTER in found and len(columns) > 1:
        width, every = _lists(faults, table, "replicas", rows)
        roles = sum((own for own, _ in found.values()), np.zeros(len(rows), np.int64))
        if (width > roles).any():
            found[Role.LEARNER] = _with_leaving(found, width, every)
    return found


def _with_leaving(
    held: Mapping[Role, Lists], width: NDArray[np.int64], every: NDArray[np.int64]
) -> Lists:
    """Return the learners, and all of the replicas ``every`` row has that are in no role."""
    parts = {role: np.split(listed, np.cumsum(own)[:-1]) for role, (own, listed) in held.items()}
    found: list[list[int]] = []
    for p, replicas in enumerate(np.split(every, np.cumsum(width)[:-1])):
        roles = {int(store) for own in parts.values() for store in own[p]}
        learns = parts[Role.LEARNER][p].tolist() if Role.LEARNER in parts else []
        found.append([*learns, *(store for store in replicas.tolist() if store not in roles)])
    stores = [store for one in found for store in one]
    return np.array([*map(len, found)], np.int64), np.array(stores, np.int64)


def _lists(faults: FaultList, table: Table, name: str, rows: NDArray[np.int64]) -> Lists:
    """Return arrays as CockroachDB prints them, ``{1,2,3}``."""
    column = table.columns[name]
    if not all(map(LIST.fullmatch, column)):
        table.each(faults, name, lambda c: not LIST.fullmatch(c), "must be an array: {1,2,3}")
        return np.zeros(len(rows), np.int64), np.zeros(0, np.int64)
    texts = [column[row][1:-1].encode() if column[row][:1] == "{" else b"" for row in rows.tolist()]
    lists = number_lists(texts)
    assert lists is not None, "an array of numbers was none"
    if lists[0].max(initial=0) > MOST_REPLICAS:
        row = int(rows[int(lists[0].argmax())])
        message = f"has more than {MOST_REPLICAS} replicas"
        faults.add(table.at(row, name), int(lists[0].max()), message)
    return lists


def _stores(found: _Found, table: Table, held: Mapping[Role, Lists]) -> dict[int, _Store]:
    """Return all stores by id; without their own table a store has the id of its node."""
    faults = found.faults
    used = sorted({int(one) for _, ids in held.values() for one in np.unique(ids)})
    leads = {int(one) for one in table.cells("lease_holder") if one.isdecimal() and len(one) < 10}
    hosts = _hosts(found, table)
    if not found.stores:
        known = {store: hosts.get(store, _Store(store, "")) for store in sorted({*hosts, *used})}
        if found.lists_nodes:
            message = "no node of node status"
            for store in _strangers(faults, table, used, hosts, message):
                known[store].status = "suspect"
                found.foreign[store] = f"{message}; add crdb_internal.kv_store_status"
        return known
    stores: dict[int, _Store] = {}
    for status in found.stores:
        ids = status.wholes(faults, "store_id", MOST).tolist()
        nodes = status.wholes(faults, "node_id", MOST).tolist()
        disks = _disks(faults, status)
        # without node status, what is known of places stands beside replicas, by store
        places = {} if found.lists_nodes else {
            node: hosts[store].locality for store, node in zip(ids, nodes, strict=True)
            if store in hosts
        }  # fmt: skip
        for row, (store, node) in enumerate(zip(ids, nodes, strict=True)):
            if store in stores:
                faults.add(status.at(row, "store_id"), store, "is already there")
            host = hosts.get(node if found.lists_nodes else store, _Store(node, ""))
            state = host.status
            if found.lists_nodes and node not in hosts:
                # a node that is decommissioned is listed only on demand; one that leads is not
                state = "suspect" if store in leads else "decommissioned"
                message = f"of node {node}, which is no node of node status"
                if state == "suspect":
                    found.foreign[store] = message
                else:
                    found.notes.add(f"store {store} {message}: it counts as decommissioned")
            attributes = [*host.attributes, *_listed(status.cells("attrs")[row])]
            place = host.locality or places.get(node, "")
            stores[store] = _Store(node, place, state, attributes, *disks[row])
    message = "no store of store status"
    for store in _strangers(faults, table, used, stores, message):
        spare = max([MOST_NODE, *(one.host for one in stores.values())]) + 1
        lost = [n for n, one in hosts.items() if one.status in GOING]
        empty = {*lost} - {one.host for one in stores.values()}
        gone = bool(empty) and store not in leads
        node = empty.pop() if gone else spare
        stores[store] = _Store(
            node, hosts[node].locality if gone else "", "dead" if gone else "suspect"
        )
        if gone:
            found.notes.add(
                f"store {store} as {message}, and nodes that are down: it counts as dead"
            )
        else:
            found.foreign[store] = message
    return dict(sorted(stores.items()))


def _disks(faults: FaultList, status: Table) -> list[tuple[float, float]]:
    """Return how large each disk is and how much of it is used; infinite and NaN if unknown."""
    whole = _amounts(faults, status, "capacity", np.nan, infinite=True)
    free, used = (_amounts(faults, status, name, np.nan) for name in ("available", "used"))
    # where both are known CockroachDB uses them: other programs may use the disk, too
    by_use = used + free
    whole = np.where(used > 0.0, np.where(np.isnan(by_use), whole, by_use), whole)
    used = np.where(np.isnan(used), whole - free, used)
    unknown = ~(whole > 0.0) | np.isinf(whole)
    return [*zip(np.where(unknown, np.inf, whole).tolist(),
                 np.where(unknown, np.nan, used).tolist(), strict=True)]  # fmt: skip


def _amounts(
    faults: FaultList,
    table: Table,
    name: str,
    default: float,
    *,
    infinite: bool = False,
    unit: str = BYTES,
) -> NDArray[np.float64]:
    """Return a column of amounts, the default where it, or a cell of it, is not there."""
    if name not in table.columns:
        return np.full(len(table), default)
    cells = ["" if cell.upper() == "NULL" else cell for cell in table.columns[name]]
    stated = Table(table.name, {name: cells}, table.lines, table.titles)
    return stated.amounts(faults, name, default, infinite=infinite, unit=unit)


def _strangers(
    faults: FaultList, table: Table, used: Sequence[int], known: Collection[int], message: str
) -> list[int]:
    """Return the stores that hold replicas and are not known; where none is known, refuse them."""
    strange = [store for store in used if store not in known]
    if len(strange) < len(used):
        return strange
    for store in strange[:LISTED_FAULTS]:
        faults.add(f"{table.name}: replicas", store, f"is {message}")
    return []


def _hosts(found: _Found, table: Table) -> dict[int, _Store]:
    """Return nodes by id from their status, or from the localities beside replicas."""
    known: dict[int, dict[str, str]] = {}
    for status in map(_as_node_status, found.nodes):
        ids = status.wholes(found.faults, "id", MOST).tolist()
        cells = {name: status.columns[name] for name in STATES if name in status.columns}
        for name in cells:
            if name.startswith("is_"):
                message = "must be true or false"
                status.each(found.faults, name, lambda c: c.lower() not in BOOLEANS, message)
        seen: set[int] = set()
        for row, node in enumerate(ids):
            if node in seen:
                found.faults.add(status.at(row, "id"), node, "is already there")
            seen.add(node)
            known.setdefault(node, {}).update({name: own[row] for name, own in cells.items()})
    mapped = [own.get("locality", "") for own in known.values()]
    tiers = {tier for one in mapped if one.startswith("{") and '"tiers"' not in one
             for tier, _ in PAIR.findall(one)}  # fmt: skip
    if len(tiers) > 1 and (unknown := sorted(tiers - {*WIDEST_FIRST})):
        found.notes.add(
            "localities as objects of JSON, which have no order: their tiers count widest first as "
            f"listed, since it is not known how wide {some_of(unknown, printable, MOST_NAMED)} is"
        )
    hosts = {
        node: _Store(
            node,
            _locality(own.get("locality", "")),
            _status_of(STATES | {name: cell.lower() for name, cell in own.items()}),
            _listed(own.get("attrs", "")),
        )
        for node, own in known.items()
    }
    stated = any("locality" in status.columns for status in found.nodes)
    others: dict[int, str] = {}
    if "replica_localities" in table.columns and "replicas" in table.columns:
        for ids, text in zip(
            table.columns["replicas"], table.columns["replica_localities"], strict=True
        ):
            parts = [a.replace("\\", "") or b for a, b in QUOTED.findall(text)]
            listed = ids.strip("{}").split(",")
            for store, locality in zip(listed, parts, strict=False):
                if not (store.isdecimal() and len(store) < 10):
                    continue
                if not found.lists_nodes:
                    hosts.setdefault(int(store), _Store(int(store), ""))
                if (host := hosts.get(int(store))) is None:
                    continue
                place = _locality(locality.strip())
                if not stated:
                    host.locality = place
                elif host.locality and host.locality != place and not found.stores:
                    others[int(store)] = f"{store} ({place}, not {host.locality})"
    if others:
        found.notes.add(
            "other localities beside replicas than in node status, which counts: "
            f"{some_of([*others.values()], printable, MOST_NAMED)}"
        )
    return hosts


def _locality(cell: str) -> str:
    """Return a locality as ``region=us,az=b``, also where JSON lists its tiers or maps them."""
    if cell.startswith("{"):
        pairs = PAIR.findall(cell)
        if '"tiers"' not in cell and all(tier in WIDEST_FIRST for tier, _ in pairs):
            pairs.sort(key=lambda pair: WIDEST_FIRST[pair[0]])
        return ",".join(f"{tier}={value}" for tier, value in pairs)
    return "" if cell.upper() == "NULL" else cell


def _listed(cell: str) -> list[str]:
    """Return attributes as they are listed, ``["ssd","nvme"]``, perhaps within an object."""
    listed = cell.rpartition("[")[2].strip("]{}")
    return [one.strip(' "') for one in listed.split(",") if one.strip(' "')]


def _as_node_status(table: Table) -> Table:
    """Return a table of nodes with the names that node status has for its columns."""
    columns = {ALIASES.get(name, name): cells for name, cells in table.columns.items()}
    return Table(table.name, columns, table.lines, table.titles)


def _status_of(own: Mapping[str, str]) -> str:
    """Return the state of a node's stores from its status."""
    if own["membership"] == "decommissioned":
        return "decommissioned"
    leaves = own["membership"] == "decommissioning" or own["is_decommissioning"] in ("true", "t")
    if own["is_live"] in ("false", "f"):
        # before 20.2 nothing else marks a decommissioned node
        return "decommissioned" if leaves else "dead"
    if leaves:
        return "decommissioning"
    if own["is_draining"] in ("true", "t"):
        return "draining"
    return "suspect" if own["is_available"] in ("false", "f") else "available"


def _rows_of(
    faults: FaultList, rows: NDArray[np.int64], held: Mapping[Role, Lists], place: Mapping[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return stores and roles by slot, voters first."""
    total = sum((width for width, _ in held.values()), np.zeros(len(rows), np.int64))
    shape = (len(rows), min(int(total.max(initial=1)), 3 * MOST_REPLICAS))
    stores, roles = np.full(shape, -1, np.int32), np.zeros(shape, np.uint8)
    used = np.zeros(len(rows), np.int64)
    if faults:
        return stores, roles
    ids = np.array([*place], np.int64)
    for role, (width, listed) in held.items():
        row = np.repeat(np.arange(len(rows)), width)
        start = np.cumsum(width) - width
        slot = np.arange(len(listed)) - np.repeat(start, width) + used[row]
        stores[row, slot] = np.searchsorted(ids, listed)
        roles[row, slot] = role
        used += width
    return stores, roles


def _leases(
    found: _Found, table: Table, rows: NDArray[np.int64], place: Mapping[int, int]
) -> NDArray[np.int32]:
    """Return the store of each lease, -1 for none or where none is given, -2 for an unknown one."""
    cells = table.columns.get("lease_holder", ())
    if all(cell.upper() in NO_NODE for cell in cells):
        found.notes.add(
            "no lease_holder of the ranges: no lease is counted, and lease preferences are passed "
            "over; add it, as crdb_internal.ranges or SHOW RANGES ... WITH DETAILS has it"
        )
        return np.full(len(rows), -1, np.int32)

    def wrong(cell: str) -> bool:
        plain = cell.isascii() and cell.isdecimal() and len(cell) < 10
        return cell.upper() not in NO_NODE and not plain

    table.each(found.faults, "lease_holder", wrong, "must be a store, or empty")
    at = {
        cell: -1 if cell.upper() in NO_NODE or wrong(cell) else place.get(int(cell), -2)
        for cell in set(cells)
    }
    return np.array([at[cells[row]] for row in rows.tolist()], np.int32)


def _sizes(faults: FaultList, table: Table) -> NDArray[np.float64]:
    """Return the bytes of each row's range."""
    if "range_size" in table.columns:
        return _amounts(faults, table, "range_size", 0.0)
    if "range_size_mb" in table.columns:
        return _amounts(faults, table, "range_size_mb", 0.0, unit="MB") * MEGABYTE
    return np.zeros(len(table))


def _tables(table: Table, rows: NDArray[np.int64]) -> Tables:
    """Return the tables and indexes of the ranges, as far as the columns contain them."""
    columns = tuple(name for name in BELONGS if name in table.columns)
    numbers: dict[tuple[str, ...], int] = {}
    if not columns:
        return Tables((), ((),), np.zeros(len(rows), np.int32))
    cells = [table.columns[name] for name in columns]
    listed = zip(*([own[row] for row in rows.tolist()] for own in cells), strict=True)
    of = [numbers.setdefault(one, len(numbers)) for one in listed]
    return Tables(columns, tuple(numbers), np.array(of, np.int32))


def _database(found: _Found, name: str, tables: Tables) -> str:
    """Return the database of ranges without a column for it, from the zones; "" if unknown."""
    belongs = [
        one
        for one in (dict(zip(tables.columns, row, strict=True)) for row in tables.rows)
        if "database_name" not in one or (one.get("table_name") and not one["database_name"])
    ]
    if not belongs:
        return ""
    databases = found.zones.databases_of(
        (one.get("schema_name", ""), one.get("table_name", "")) for one in belongs
    )
    if len(databases) > 1:
        message = "are databases of their own, and the ranges have no database_name"
        found.faults.add(f"{name}: database_name", sorted(databases), message)
    return min(databases, default="")


def _located(found: _Found, table: Table, rows: NDArray[np.int64], path: str) -> str:
    """Return where in the files an argument of the model stands."""
    if path.startswith("configs"):
        at = next(iter(found.zones.at.values()), table.name)
        return f"{at.split(':')[0] if found.zones.at else at}: {path}"
    entry = re.match(r"(replicas|leaseholder|size)\[(\d+)", path)
    if entry and int(entry[2]) < len(rows):
        return f"{table.name}:{table.lines[int(rows[int(entry[2])])]}: {path}"
    nodes = path.startswith(("localities", "status", "hosts", "attributes", "capacity"))
    others = [*found.nodes, *found.stores]
    return f"{others[0].name if nodes and others else table.name}: {path}"


def _grouped(cluster: Cluster) -> Cluster:
    """Return the cluster with tables as groups, where the ranges have them."""
    tables = cluster.native.tables
    if "table_name" not in tables.columns or not len(tables.of):
        return cluster
    shown = [i for i, name in enumerate(tables.columns) if name != "index_name"]
    named = [[row[i] for i in shown if row[i] not in ("", "NULL")] for row in tables.rows]
    labels = [".".join(names) or "-" for names in named]
    groups = {label: g for g, label in enumerate(dict.fromkeys(labels))}
    group = np.array([groups[label] for label in labels], np.int64)
    return cluster.replace(group=group[tables.of], group_names=list(groups))
