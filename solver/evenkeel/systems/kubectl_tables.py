"""The tables that kubectl prints for people, as rows."""

import re
import zlib
from collections.abc import Callable, Sequence

from evenkeel.systems.documents import Document
from evenkeel.systems.notes import Notes, last_answers

# a line of titles, and a command or prompt, which ends a table and may name a namespace
TITLES = re.compile(
    r"(?:\S{1,99}[#$>%] +)?((?:[A-Z]{2,} +)+(?:NAME|POD|REPLICA)\b(?: +\S+)*|"
    r"(?:NAME|POD|REPLICA)(?: +\S+)+|"
    r"(?=.*\bVOLUME\b)(?:(?:VOLUME|NODE|DISK|STATE|SIZE)\b *){3,})\s*"
)
COMMAND = re.compile(
    r"(?:^|[#$>%] ?)(?:sudo )?(?:(?:microk8s|k3s|rke2|minikube)[ .])?(?:kubectl|oc|k|"
    r"(?<=[#$>%] )k[a-z]{1,2})(?:\.exe)?"
    r"(?= [-\\a-z]|\s*$)(.*)|^(?:[^\s|<]*|\[[^]]*\])[#$>%]\s*$"
)
SPACE = re.compile(r"[ \t](?:-n|--namespace)[ =]?([a-z0-9][-a-z0-9.]*)")

# a title among those that one blank parts: few have blanks themselves
TITLE = re.compile(r"(?:NOMINATED|READINESS|DATA|ACCESS|RECLAIM|NODE(?= SELECTOR)) \S+|\S+")

# what parts the cells of a row, and a cell without blanks such as ``2 (3m ago)``
GAP, WORD = re.compile(r"\s{2,}"), re.compile(r"\S+(?: \([^()]*\))?")

OWN_NAMES = {"POD", "REPLICA"}  # titles of the names in tables without the title NAME

AGAIN = "more than one state of {}: the last counts"
LATER = (
    "{} rows of tables come again: the last state of each counts, and the other rows of earlier "
    "tables stay"
)
STRANGE = "rows of tables that do not fit their titles: {}: they are not counted"

Key = tuple[str, str, str]


def answers_of(
    notes: Notes,
    documents: Sequence[Document],
    is_table: Callable[[Document, int], bool],
    size: int,
) -> list[Document]:
    """Return the last answers, JSON apart from texts that have a table in their first bytes."""
    parts = [part for one in documents for part in (one.apart() if is_table(one, size) else (one,))]
    return last_answers(notes, parts)


def rows_of(
    notes: Notes, text: str, bare: re.Pattern[str], usual: Sequence[str]
) -> list[dict[str, str]]:
    """Return the rows of all tables in a text, by title, each with the namespace of its command."""
    # ``usual`` are the columns of rows without titles, as ``grep`` leaves them, that match
    # ``bare``; the first of them only where it has a group
    titles: list[str] = []
    starts: list[int] = []
    rows: dict[Key, dict[str, str]] = {}
    later: set[Key] = set()
    asked: dict[str, list[Key]] = {}
    space, request = "", ""
    own, earlier = list[Key](), list[Key]()
    for line in text.expandtabs(8).splitlines():
        if command := COMMAND.search(line):
            titles, named = [], SPACE.search(command[1] or "")
            space, request = named[1] if named else "", " ".join((command[1] or "").split())
            earlier, own = asked.pop(request, []) if request else [], []
            if request:
                asked[request] = own
        elif found := TITLES.fullmatch(line):
            marks = [*re.finditer(r"\S+(?: \S+)*", found[1])]
            titles = [one[0] for one in marks]
            starts = [found.start(1) + one.start() for one in marks]
            if titles[0] == found[1]:  # one blank parts them
                titles, starts = TITLE.findall(found[1]), []
            if "NAME" not in titles:  # of columns that were chosen
                titles = ["NAME" if one in OWN_NAMES else one for one in titles]
            if earlier:
                notes.add(AGAIN, request)
            # the tables of a command replace all earlier rows of the same command
            for key in earlier:
                rows.pop(key, None)
            earlier = []
        elif not line.strip():
            titles = []
        elif (row := bare.match(line)) or titles:
            columns = titles or usual[row is None or not row[1] :]
            count = len(columns)
            cells = _cells(line, starts if titles else [], count, count if titles else len(line))
            if not cells:
                notes.add(STRANGE, line.split()[0])
                continue
            values = {"NAMESPACE": space} | dict(zip(columns, cells, strict=False))
            # a replica of Longhorn without its name differs from others of its volume by its row
            row_id = f"{values.get('VOLUME', '')}-r-{zlib.crc32(line.encode()):08x}"
            # kinds come before names
            values["NAME"] = values.get("NAME", row_id).rpartition("/")[2]
            kind = "NODE" if "NODE" in columns else [*columns, ""][columns.index("NAME") + 1]
            key = values["NAMESPACE"] or "default", values["NAME"], kind
            if key in rows:
                later.add(key)
            # a row replaces an earlier one of its namespace and name, cell by cell
            rows[key] = rows.get(key, {}) | values
            own.append(key)
            if values.get("EVENT") == "DELETED":
                del rows[key]
    if later:
        notes.add(LATER.format(len(later)))
    return [*rows.values()]


def _cells(line: str, starts: list[int], least: int, most: int) -> list[str]:
    """Return the cells of a row; none where they cannot be distinguished.

    >>> _cells("a-0   n1", [0, 6, 11], 3, 3)  # the last one is empty
    ['a-0', 'n1', '']
    """
    aligned: list[str] = []
    if starts and all(line[at - 1 : at] in ("", " ") for at in starts[1:]):
        ends = [*starts[1:], len(line)]
        aligned = [line[at:to].strip() for at, to in zip(starts, ends, strict=True)]
        if len(line) > starts[-1]:
            return aligned
    forms = GAP.split(line.strip()), WORD.findall(line)
    fits = (one for one in forms if least <= len(one) <= most)
    # lines that are short by more than the last cell are no rows
    return next(fits, aligned if any(aligned[-2:]) else [])
