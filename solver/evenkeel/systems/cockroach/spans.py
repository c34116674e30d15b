"""Spans of CockroachDB's own: which ranges belong to no user, as their start keys tell.

Zones of such ranges have names of their own (``RANGE meta``), or are those of the database
``system``, whose tables have the numbers below 100.
"""

import re

from evenkeel.systems.csv_text import Table

START = re.compile(
    r"(?P<meta>/(?:Min|Meta[12]?)(?:/.*)?)"
    r"|(?P<liveness>/System/NodeLiveness(?:/.*)?)"
    r"|(?P<timeseries>/System/tsd(?:/.*)?)"
    r"|(?P<system>/System(?:/.*)?)"
    r"|(?P<tables>/(?:Table/(?:[0-9]{1,2}|SystemConfigSpan)|NamespaceTable)(?:/.*)?)"
    r"|(?P<tenants>/Tenant/.*)"
)
"""Start keys as they are printed, and whose they are; the first that fits tells."""

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

    Examples
    --------
    >>> [first_value(start) for start in ('/Table/106/1/"us-east1"/7', '/"a"', '/1/"a"/PrefixEnd')]
    ['us-east1', 'a', '']
    """
    found = FIRST.fullmatch(start)
    return "" if found is None else found["value"]


def span_of(start: str) -> str:
    """Return whose a range is that begins there; "" for users, and where nothing shows it.

    Examples
    --------
    >>> [span_of(start) for start in ("/System/NodeLiveness", "/Table/42/1", "/Table/104", "NULL")]
    ['liveness', 'tables', '', '']
    """
    found = START.fullmatch(start)
    return "" if found is None else str(found.lastgroup)


def start_keys(table: Table) -> list[str] | None:
    """Return the start keys of all rows; None where the table does not tell them."""
    return table.columns.get("start_pretty") or table.columns.get("start_key")


def starts_in(table: Table, rows: list[int]) -> dict[int, str]:
    """Return the start keys of ranges that are CockroachDB's own, by their place among rows.

    Where a table is told, its zones go by its name. Tenants are ranges of the whole cluster where
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
