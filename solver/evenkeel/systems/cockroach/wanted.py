"""Rules of each range from the zone configurations, and the ranges that are left alone.

System ranges have zones with names of their own (``RANGE meta``) or use the zones of the database
``system``, whose tables have numbers below 100.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.cockroach.allocator.compile import Tables
from evenkeel.systems.cockroach.allocator.equivalence_classes import Tiers
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Constraint,
    ZoneConfig,
    check_config,
    parse_config,
)
from evenkeel.systems.cockroach.zones import COUNTS, DEFAULT, Zones, span_key
from evenkeel.systems.csv_text import Table

BELONGS = ("database_name", "schema_name", "table_name", "index_name")
MOST_NAMED = 5
"""Ranges that a note names; the rest is counted."""

Config = dict[str, Any]


@dataclass
class Wanted:
    """The configurations there are, and which each range has, (P,).

    Ranges ``alone (P,)`` are wanted as they are, and ``why`` has the reasons for what is left out,
    each once. ``starts`` are start keys that identified partitions, ``lost`` are places
    that constraints name and no store is in.
    """

    configs: list[Config]
    config: NDArray[np.int32]
    alone: NDArray[np.bool_]
    starts: dict[int, str]
    lost: list[str]
    why: list[str]


Site = tuple[Tiers, Collection[str]]
"""Locality and attributes of a store."""


@dataclass
class Held:
    """How many replicas of each role every range has, (P,) each, and what ranges are called.

    ``sites`` returns where the voters of a range are, and where its non-voters.
    """

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
    """What stores carry, (tier, value) and ("", attribute), and whether files contain it at all."""

    carried: Collection[tuple[str, str]]
    places: bool
    attributes: bool

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
    held: Held,
    known: Known,
    alone: Mapping[str, NDArray[np.bool_]],
) -> Wanted:
    """Find what is wanted of each range, by its tables, its start key and what it has.

    ``keys`` are the start keys of ranges, None where no file contains them; ``alone`` are ranges
    (P,) that are left alone for other reasons.
    """
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
    if (held.learners > 0).any():
        wanted.alone |= held.learners > 0
        wanted.why.append(
            f"of changes under way: {held.named(held.learners > 0)} with learners or replicas that "
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
    usual = dict.fromkeys(BELONGS, "") | {"database_name": tables.database}
    return [
        [*(usual | dict(zip(tables.columns, row, strict=True))).values()] for row in tables.rows
    ]


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
        partitions = zones.partitions_of(*row)
        for p in np.flatnonzero(tables.of == t).tolist() if partitions else ():
            own = partitions.get(first_value(keys[p]), []) if keys is not None else []
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


def _judge_by_place(
    book: _Book,
    wanted: Wanted,
    zones: Zones,
    tables: Tables,
    held: Held,
    unknown: NDArray[np.bool_],
) -> None:
    """Find the partition of ranges whose keys are no names of any by where their voters are.

    As where regions are values of an enumeration, which keys show as bytes. A range is of the one
    partition whose constraints it meets; where none or several are met, it stays ``unknown (P,)``.
    """
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


def _judge_places(book: _Book, wanted: Wanted, held: Held, known: Known) -> None:
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
        elif not all(map(known.knows, preferred)):
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
    if unled.any():
        wanted.why.append(f"no {lacking}: lease preferences of {held.named(unled)} are passed over")


def _fill_in(book: _Book, wanted: Wanted, zones: Zones, held: Held) -> None:
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


def _judge_counts(book: _Book, wanted: Wanted, held: Held, known: Known) -> None:
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


def _as_they_are(book: _Book, wanted: Wanted, held: Held) -> None:
    """Want of ranges that are left alone what they have, and nothing else."""
    for p in np.flatnonzero(wanted.alone).tolist():
        voters = max(int(held.voters[p]), 1)
        whole = voters + int(held.others[p]) + int(held.learners[p])
        wanted.config[p] = book.number(_counts(whole, voters))


def _counts(whole: int, voters: int) -> Config:
    """Return the numbers of a configuration; those of voters only where others are left."""
    return dict(zip(COUNTS, (whole, voters if voters < whole else 0), strict=True))


START = re.compile(
    r"(?P<meta>/(?:Min|Meta[12]?)(?:/.*)?)"
    r"|(?P<liveness>/System/NodeLiveness(?:/.*)?)"
    r"|(?P<timeseries>/System/tsd(?:/.*)?)"
    r"|(?P<system>/System(?:/.*)?)"
    r"|(?P<tables>/(?:Table/(?:[0-9]{1,2}|SystemConfigSpan)|NamespaceTable)(?:/.*)?)"
    r"|(?P<tenants>/Tenant/.*)"
)
"""Start keys as they are printed, and their owners; the first match counts."""

INNER = re.compile(r"/Tenant/[0-9]+(?=/)")
"""What stands before the keys of a tenant."""


FIRST = re.compile(
    r"(?:/Tenant/[0-9]+)?(?:/Table/[0-9]+/[0-9]+|\u2026(?:/[0-9]+)?|/[0-9]+)?"
    r"/\"(?P<value>(?:[^\"\\]|\\.)*)\"(?!/PrefixEnd$)(?:/.*)?",
    re.DOTALL,
)
"""A start key whose first column is a text, in whichever form ``SHOW RANGES`` prints it."""


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
    """Return the start keys of ranges that are CockroachDB's own, by their place among rows.

    Zones of a known table are found by its name. Tenants are ranges of the whole cluster where
    it is shown beside them, and have zones of one name; else theirs is all that there is to see.
    """
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
