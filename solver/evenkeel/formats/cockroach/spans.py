"""Spans of CockroachDB's own: which ranges belong to no user, as their start keys tell.

Zones of such ranges have names of their own (``RANGE meta``), or are those of the database
``system``, whose tables have the numbers below 100.
"""

import re

from evenkeel.formats.csv_text import Table

STARTS = (
    ("meta", re.compile(r"/(?:Min|Meta[12]?)(?:/.*)?")),
    ("liveness", re.compile(r"/System/NodeLiveness(?:/.*)?")),
    ("timeseries", re.compile(r"/System/tsd(?:/.*)?")),
    ("system", re.compile(r"/System(?:/.*)?")),
    ("tables", re.compile(r"/(?:Table/(?:[0-9]{1,2}|SystemConfigSpan)|NamespaceTable)(?:/.*)?")),
    ("tenants", re.compile(r"/Tenant/.*")),
)
"""Start keys as they are printed, and whose they are; the first that fits tells."""

INNER = re.compile(r"/Tenant/[0-9]+(?=/)")
"""What stands before the keys of a tenant."""


def span_of(start: str) -> str:
    """Return whose a range is that begins there; "" for users, and where nothing shows it.

    Examples
    --------
    >>> [span_of(start) for start in ("/System/NodeLiveness", "/Table/42/1", "/Table/104", "NULL")]
    ['liveness', 'tables', '', '']
    """
    if not start.startswith("/"):
        return ""
    return next((name for name, form in STARTS if form.fullmatch(start)), "")


def starts_in(table: Table, rows: list[int]) -> dict[int, str]:
    """Return the start keys of ranges that are CockroachDB's own, by their place among rows.

    Where a table is told, its zones go by its name. Tenants are ranges of the whole cluster where
    it is shown beside them, and have zones of one name; else theirs is all that there is to see.
    """
    column = table.columns.get("start_pretty") or table.columns.get("start_key")
    if column is None:
        return {}
    named = table.columns.get("table_name", [""] * len(column))
    starts = {i: column[row] for i, row in enumerate(rows)}
    if not any(span_of(start) not in ("", "tenants") for start in starts.values()):
        starts = {i: INNER.sub("", start) for i, start in starts.items()}
    found = {}
    for i, row in enumerate(rows):
        span = span_of(starts[i])
        if span and (span != "tables" or named[row] in ("", "NULL")):
            found[i] = starts[i]
    return found
