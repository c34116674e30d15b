"""Find tables in printed text, and put tabs in place of what draws them.

Bars, boxes, borders and blanks part columns; a row may take several lines. Lines keep their
numbers.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple

from evenkeel.systems.documents import Document

HEAD = 65536  # bytes in which the header line has to end

DELIMITERS = "\t;,"  # tried in this order on the header line

# a line of a table that is drawn; dots in it stand for columns that were left out
DRAWN = re.compile(r"\s*+[|+]?(?:\s*+:?-[-.…]*+:?\s*+[|+])*\s*+:?-[-.…]*+:?\s*+[|+]?\s*+")

# what stands before a table that is drawn, such as the statement that printed it
STATEMENT = re.compile(
    rb"\A(?!\s*[|+]|[^\n]*\n[ \t]*-{3,})(?:[^\n]*\n){1,20}?"
    rb"(?=[ \t]*\+[-=+]{3,}\r?\n[ \t]*\||[ \t\r\f\v]*+[^\s:][^\n:]*+\n[ \t]*--[-+ \t]*\r?\n)"
)

# the title of a table on a line of its own, as InfluxDB prints it
UNDERLINED = re.compile(rb"\A\s*[^\n]+\n=+[ \t\r]*\n")

# titles of which one has to be in a table that blanks part
PARTED_BY = {b"node", b"host", b"hostname", b"server", b"broker", b"drain", b"secondaries"}

TITLES = (
    rb"(?=[^\n|\t,;]*(?<![\w.-])(?:%s)(?![\w.-]))"
    rb"[ \t]*[^\s|,;]+(?: [^\s|,;]+)*(?: {2,}[^\s|,;]+(?: [^\s|,;]+)*){2,}[ \t\r]*\n"
    % b"|".join(sorted(PARTED_BY))
)
# what stands above a table that blanks part, such as the command that printed it
ABOVE = re.compile(
    # atomic, since a line that matches in several ways would double the time of each above
    rb"\A(?!%s)(?>[^\n|\t,;]*\n|[^\n|\t]* = [^\n]*\n){1,99}?(?=%s)" % (TITLES, TITLES),
    re.IGNORECASE,
)

LIST = re.compile(rb"\[[^\]\s]*\]")  # a cell that lists several nodes

# lines of a table that SQL clients part by blanks, which are no rows
DASHES = re.compile(rb"[-\s]*-[-\s]*")
AFFECTED = re.compile(rb"\s*[(\[]?\d+ rows?\b[^\n]*")

# what is above each row of which psql, mysql or ClickHouse prints a cell per line
STACKED = re.compile(
    r"^([ \t]*(?:-\[ RECORD \d+ \][-+]*|\*{9,} *\d+\. row \*{9,}|Row \d+:\s*\n─+)\s*?\n)",
    re.MULTILINE,
)

# a title and its cell on a line of their own; a cell that goes on has no title
CELL = re.compile(r"^[ \t]*([^\s:|]*)[ \t]*[:|][ \t]?(.*)$", re.MULTILINE)

# a header of which pandas prints the other titles below the rows
FOLDED = re.compile(rb"\A\s*[^\n]*\bnode\b[^\n]*\\[ \t\r]*\n")

# what draws a table, in ASCII
BOX = str.maketrans(
    dict.fromkeys("│┃┆║", "|")
    | dict.fromkeys("─━═", "-")
    | dict.fromkeys("┌┬┐├┼┤└┴┘╭╮╰╯╞╪╡┏┳┓┣╋┫┗┻┛┡╇┩╔╦╗╠╬╣╚╩╝", "+")
)

# the border of a table, with its titles, as ClickHouse draws it
HEADED = re.compile(r"^[ \t]*┌─*([^─┬\s][^\n]*?)─*┐", re.MULTILINE)

COUNT = re.compile(r"^[ \t]*\d+\. (?=│)", re.MULTILINE)  # the number of a row before its cells

# the titles of a table, and the types of its columns below, as DuckDB and Polars print them
TYPES = re.compile(r"([┐╮]\n[ \t]*│[^\n]*)((?:\n[ \t]*│[^\n]*){1,2})(?=\n[ \t]*[├╞])")

CUT = {"…", "...", "·", ".."}  # cells of a row that stands for others

# the number of rows below a table
TAIL = re.compile(r"[^\w\n]*(?:SELECT )?([0-9]{1,9}) rows?\b", re.IGNORECASE)

ENDING = 4  # lines at the end of which one may have this number

# note on what was printed in part, by its places
LEFT_OUT = "rows that were left out at {}: they are not counted; print all of them"

# message on the last name of a text
HALF = "begins {}, and the file ends here: it is cut; if not, end its last line with a line break"

# note on what was not copied to its end, by files
CUT_OFF = "tables whose lower border is missing, in {}: the rows behind are not counted"


class Printed(NamedTuple):
    """A table in a text."""

    rows: list[list[str]]  # the titles, and the cells of each row
    lines: list[int]  # the line of each, counted from 1
    before: str  # the text above, up to the table before
    after: str  # the line that ends it
    cut: bool = False  # whether it is in a box whose lower border is missing


def tables_in(text: str, known: Callable[[frozenset[str]], object]) -> list[Printed]:
    r"""Return the tables with bars whose titles are known; a table ends at a line of other words.

    >>> text = "> SHOW IT\n id | size \n----+-----\n  7 |   9 \n(1 row)\n"
    >>> (table,) = tables_in(text, {"id", "size"}.issubset)
    >>> table.rows, table.lines, table.before, table.after
    ([['id', 'size'], ['7', '9']], [2, 4], '> SHOW IT', '(1 row)')
    """
    if STACKED.search(text[:HEAD]):
        stacked = _stacked(text)
        return [stacked] if known(_names(stacked.rows[0])) else []
    if not any(bar in text[:HEAD] for bar in "|│"):
        return []
    lines = [*_in_ascii(text).split("\n"), "."]
    found: list[Printed] = []
    start, done, ruled = -1, 0, False
    for number, line in enumerate(lines):
        begins = "|" in line and known(_names(cells_in(line)))
        drawn = DRAWN.fullmatch(line) is not None
        # a border below a border is that of the next table
        ends = (drawn and ruled) or not (drawn or "|" in line or line.strip() in {"", *CUT})
        ruled = drawn or (ruled and not line.strip())
        if start >= 0 and (begins or ends):
            if any(map(str.strip, lines[start + 1 : number])):  # else words with bars
                cut = is_cut(lines[start:number])
                own = Printed([], [], "\n".join(lines[done:start]), line.strip(), cut)
                _add_rows(own, start, lines[start:number])
                found.append(own)
                done = number
            start = -1
        start = number if begins else start
    return found


def is_cut(lines: Iterable[str]) -> bool:
    """Return whether lines begin with a table in a box, or its titles, that is not closed.

    >>> is_cut(["| id |", "+----+", "| 7  |", "$"]), is_cut([" id |", "----+", " 7  |"])
    (True, False)
    """
    begins = (line.strip().translate(BOX)[:1] for line in lines if line.strip())
    drawn = "".join(takewhile(lambda mark: mark in "|+", begins))
    return "+" in drawn and drawn[-1] != "+"


def half_name(text: str, names: Sequence[str], places: Sequence[str] = ()) -> str:
    r"""Return what the last of the names begins, in whose middle a text ends; "" if it does not.

    Names may have places, such as addresses. Where each name stands once, as in a list of nodes,
    none is judged.

    >>> text, names = "1 es-1\n2 es-2\n3 es-1\n4 e", ["es-1", "es-2", "es-1", "e"]
    >>> half_name(text, names), half_name(text + "\n", names)
    ('es-1', '')
    """
    *others, last = names or [""]
    if not last or not text.endswith(last) or last in others or len(others) == len({*others}):
        return ""
    at = places[-1] if places else ""
    beside = {name for i, name in enumerate(others) if not places or places[i] == at}
    found = sorted(name for name in beside if name.startswith(last))
    # n1 may be a name beside n10, unless it has the address of that alone
    numbers = last[-1].isdigit() and any(name[len(last)].isdigit() for name in found)
    return "" if not found or (numbers and (not at or len(beside) > 1)) else found[0]


def _names(titles: Iterable[str]) -> frozenset[str]:
    return frozenset(title.lower() for title in titles)


def _add_rows(table: Printed, start: int, lines: Iterable[str]) -> None:
    """Add the cells of lines to a table."""
    for number, cells in enumerate(_rows(lines), start + 1):
        filled = [i for i, cell in enumerate(cells) if cell]
        if filled and not cells[0] and len(table.rows) > 1 and len(cells) == len(table.rows[0]):
            above = table.rows[-1]
            for i in filled:
                above[i] = f"{above[i].removesuffix('+').rstrip()}\n{cells[i]}"
        elif filled:
            table.rows.append(cells)
            table.lines.append(number)


def cells_in(line: str, above: str = "", count: int = 0) -> list[str]:
    """Return the cells of a line, at the places of those ``above`` where it has too many."""
    parts = line.split("|")
    framed = (above or line).lstrip().startswith("|")
    if framed:
        parts = parts[1:] if not parts[0].strip() else parts
        if len(parts) > 1 and not parts[-1].strip():
            parts = parts[:-1]
    if count and len(parts) > count and not framed:
        starts = [0, *(at + 1 for at, mark in enumerate(above) if mark == "|")]
        ends = [*(start - 1 for start in starts[1:]), len(line)]
        fits = all(line[end : end + 1] == "|" for end in ends[:-1])
        parts = [line[a:b] for a, b in zip(starts, ends, strict=True)] if fits else parts
    return [part.strip() for part in parts]


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the cells of each line, the first of them titles; none of what only draws."""
    above, count = "", 0
    for line in lines:
        if "|" in line and not DRAWN.fullmatch(line):
            cells = cells_in(line, above, count)
            above, count = (above, count) if above else (line, len(cells))
            yield cells
        else:
            yield [line.strip()] * count if line.strip() in CUT else []


def _decoded(data: bytes) -> str:
    """Return text, of which what is not UTF-8 comes back as it was."""
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _in_ascii(text: str) -> str:
    """Return text with its lines drawn in ASCII, and the titles of a table in a line of its own."""
    if "│" not in text[:HEAD]:
        return text.translate(BOX)
    text = COUNT.sub("", text)
    if first := HEADED.search(text):
        below = HEADED.sub(lambda one: "" if one[1] == first[1] else one[0], text[first.end() :])
        titles = re.sub("─*┬─*", "|", first[1])
        text = "\n" * text.count("\n", 0, first.start()) + f"|{titles}|{below}"
    return TYPES.sub(lambda one: one[1] + "\n" * one[2].count("\n"), text).translate(BOX)


def _parted(document: Document, head: Sequence[bytes]) -> Document:
    """Return a table whose columns are parted by blanks with tabs; any other text as it is."""
    rows = [line.split() for line in head if not DASHES.fullmatch(line)]
    # rows that pandas prints begin with a cell of the index, which has no title
    widths = {len(row) - len(rows[0]) for row in rows[1:]}
    if PARTED_BY.isdisjoint(rows[0]) or widths not in ({0}, {1}):
        return document if PARTED_BY.isdisjoint(head[0].lower().split()) else _aligned(document)
    skipped, titles = widths.pop(), b"\t".join(rows[0])
    lines = (
        b"" if DASHES.fullmatch(line) or AFFECTED.fullmatch(line)
        else titles if line.split() == rows[0]
        else b"\t".join(line.split()[skipped:])
        for line in document.data.split(b"\n")
    )  # fmt: skip
    return Document(document.name, b"\n".join(lines), document.path)


def titles_above(document: Document) -> frozenset[str]:
    """Return the titles of a table that blanks part, whose cells do not begin below them."""
    if _aligned(document) is not document:
        return frozenset()
    head = _decoded(document.data[:HEAD]).lstrip()
    titles = re.split(" {2,}", head[: head.find("\n")].strip())
    return _names(titles) if len(titles) > 2 else frozenset()


def _aligned(document: Document) -> Document:
    """Return a table whose cells begin below their titles with tabs; any other text as it is."""
    lines = document.data.split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    # two blanks part titles, and cells may be empty
    begins = [one.start() for one in re.finditer(rb"(?:(?<=  )|^)\S", first)]
    if len(begins) < 3 or any(line[at - 1 : at].strip() for line in lines for at in begins[1:]):
        return document
    ends = [*begins[1:], None]
    cells = [
        [line[a:b].strip() for a, b in zip(begins, ends, strict=True)] if line.strip() else []
        for line in lines
    ]
    _, *rows = filter(None, cells)
    *above, last = rows or [[b"-"]]
    width = max((i for i, cell in enumerate(last, 1) if cell), default=len(last))
    several = sum(map(all, zip(*(row[width:] for row in above), strict=True))) > 1
    if several and not document.data.endswith(b"\n"):
        del last[width:]  # the text is cut where other rows have several cells more
    return Document(document.name, b"\n".join(map(b"\t".join, cells)), document.path)


def _stacked(text: str) -> Printed:
    """Return rows of which each cell has a line of its own."""
    above, *parts = STACKED.split(text)
    rows: list[dict[str, str]] = []
    for part in parts[1::2]:
        name, row = "", dict[str, str]()
        for title, cell in CELL.findall(part):
            goes_on, name = not title and name in row, title or name
            before = f"{row[name].removesuffix('+').rstrip()}\n" if goes_on else ""
            row[name] = f"{before}{cell.strip()}"
        rows.append(row)
    titles = [*dict.fromkeys(title for row in rows for title in row)]
    ends = [*accumulate(part.count("\n") for part in [above, *parts])]
    cells = [[row.get(title, "") for title in titles] for row in rows]
    return Printed([titles, *cells], [end + 1 for end in (ends[0], *ends[1::2])], above, "")


def _unfolded(data: bytes) -> bytes:
    """Return a table of which pandas prints some columns below the others as it is without."""
    blocks = (one.splitlines() for one in re.split(rb"\n\s*\n", data.strip()) if one[:1] != b"[")
    first, *others = ([line.strip(b" \\\t\r") for line in one] for one in blocks)
    if any(len(one) != len(first) for one in others):
        return data
    rest = [[own[0], *(line.split(None, 1)[-1] for line in own[1:])] for own in others]
    return b"\n".join(map(b" ".join, zip(first, *rest, strict=True)))


def undrawn(document: Document) -> Document:
    r"""Return a table that is drawn with lines, as psql, mysql and Markdown have it, with tabs.

    >>> undrawn(Document("a.txt", b" id | size \n----+------\n n1 |    9 \n(1 row)\n")).data
    b'id\tsize\n\nn1\t9\n\n'
    """
    name, data, path = document.name, document.data, document.path
    if STACKED.search(_decoded(data[:HEAD])):
        table = _stacked(_decoded(data))
        rows = (" ".join("\t".join(cells).split("\n")) for cells in table.rows)
        gaps = (after - before - 1 for before, after in pairwise([0, *table.lines]))
        flat = "".join("\n" * gap + row + "\n" for gap, row in zip(gaps, rows, strict=True))
        return Document(name, _encoded(flat), path)
    if FOLDED.match(data[:HEAD]):
        document = Document(name, _unfolded(data), path)
    if title := UNDERLINED.match(data[:HEAD]):
        return _aligned(document.part(title.end(), len(data)))
    boxed = "│".encode() in data[:HEAD]
    if boxed:
        document = Document(name, _encoded(_in_ascii(_decoded(data))), path)
    if before := STATEMENT.match(document.data[:HEAD]):
        document = document.part(before.end(), len(document.data))
    elif above := ABOVE.match(document.data[:HEAD]):
        document = document.part(above.end(), len(document.data))
    head = document.data[:HEAD].lstrip().splitlines()[:3]
    bare = LIST.sub(b"", b"\n".join(head[:2]))
    if head and not any(mark.encode() in bare for mark in f"{DELIMITERS}|"):
        return _parted(document, head)
    drawn = any(map(DRAWN.fullmatch, map(_decoded, head)))
    if b"|" not in b"".join(head[:2]) or not (boxed or drawn):
        return document
    # lines that draw become blank, so that the others keep their numbers
    tabbed = map("\t".join, _rows(_decoded(document.data).split("\n")))
    return Document(name, _encoded("\n".join(tabbed)), path)
