"""The tables that kubectl prints for people, as rows."""

import re
from collections.abc import Sequence

from evenkeel.systems.notes import Notes

TITLES = re.compile(r"(?:\S{1,99}[#$>%] +)?((?:NAMESPACE +)?NAME(?: +\S+)+)\s*")
COMMAND = re.compile(r"(?:^|[#$>%] ?)(?:sudo )?(?:kubectl|oc)\b(.*)|^[^\s|<]*[#$>%]\s*$")
SPACE = re.compile(r"[ \t](?:-n|--namespace)[ =]?([a-z0-9][-a-z0-9.]*)")
"""A line of titles, and a command or prompt, which ends a table and may name a namespace."""

GAP, WORD = re.compile(r"\s{2,}"), re.compile(r"\S+(?: \([^)]*\))?")
"""What parts the cells of a row, and a cell without blanks such as ``2 (3m ago)``."""

TWICE = "more than one state of the same rows: the last table counts"
STRANGE = "rows of tables that do not fit their titles: {}: they are not counted"


def rows_of(
    notes: Notes, text: str, bare: re.Pattern[str], usual: Sequence[str]
) -> list[dict[str, str]]:
    """Return the rows of all tables in a text, by title, each with the namespace of its command.

    Rows without titles, as ``grep`` leaves them, are those that match ``bare``, and have the
    ``usual`` columns, the first of them only where it has a group. Of tables with a row of the same
    name and namespace, the last counts.
    """
    titles: list[str] = []
    starts: list[int] = []
    tables: list[dict[tuple[str, ...], dict[str, str]]] = [{}]
    space = ""
    for line in text.expandtabs(8).splitlines():
        if command := COMMAND.search(line):
            titles, named = [], SPACE.search(command[1] or "")
            space = named[1] if named else ""
        elif found := TITLES.fullmatch(line):
            marks = [*re.finditer(r"\S+(?: \S+)*", found[1])]
            titles = [one[0] for one in marks]
            starts = [found.start(1) + one.start() for one in marks]
            tables.append({})
        elif not line.strip():
            titles = []
        elif (row := bare.match(line)) or titles:
            columns = titles or usual[row is None or not row[1] :]
            cells = _cells(line, starts if titles else [], len(columns))
            if not cells:
                notes.add(STRANGE, line.split()[0])
                continue
            values = {"NAMESPACE": space} | dict(zip(columns, cells, strict=False))
            tables[-1][values["NAMESPACE"], values["NAME"], columns[-1]] = values
    for later, table in enumerate(tables):
        for before in tables[:later]:
            if before.keys() & table.keys():
                notes.add(TWICE)
                before.clear()
    return [row for table in tables for row in table.values()]


def _cells(line: str, starts: list[int], count: int) -> list[str]:
    """Return the cells of a row; none where they cannot be distinguished."""
    ends = [*starts[1:], len(line)]
    if starts and len(line) > starts[-1] and all(line[at - 1] == " " for at in starts[1:]):
        return [line[at:to].strip() for at, to in zip(starts, ends, strict=True)]
    forms = GAP.split(line.strip()), WORD.findall(line)
    fits = (one for one in forms if len(one) == count or (not starts and len(one) > count))
    return next(fits, [])
