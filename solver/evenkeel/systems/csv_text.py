"""Read and write tables by column: CSV, tab-separated text, and JSON rows."""

import csv
import io
import math
import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.reading.quantities import (
    decimal_marks,
    milli_or_mega,
    read_bytes,
    read_number,
    two_readings,
)
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.printed import (
    CUT,
    DELIMITERS,
    ENDING,
    HALF,
    HEAD,
    LEFT_OUT,
    TAIL,
    Printed,
    half_name,
    undrawn,
)

# how lines begin that are no rows: comments, also of SQL, and the mark of Excel
ASIDE = ("#", "-- ", "sep=")

FIRST = 8  # cells that are looked at to know what a column has
MOST_DIGITS = 9  # of a number that is read at once

# titles of columns of names, or lists of names, of nodes
OF_NODES = re.compile("node|host|server|broker")
NAME = re.compile(r"[^\s,;{}()\[\]]+")


def whole_numbers(text: bytes) -> NDArray[np.int64]:
    """Return the numbers of a text, divided by commas, that is known to hold nothing else."""
    return np.fromstring(text.decode(), np.int64, sep=",")


def number_lists(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return how many numbers each list has, and all of them; None if some are no lists."""
    width = np.zeros(len(texts), np.int64)
    some = np.fromiter(map(bool, texts), np.bool_, len(texts))
    joined = b";".join(filter(None, texts) if not some.all() else texts) + b";"
    if len(joined) == 1:
        return width, np.zeros(0, np.int64)
    codes = np.frombuffer(joined, np.uint8)
    ends, lasts = (
        np.flatnonzero((codes < ord("0")) | (codes > ord("9"))),
        np.flatnonzero(codes == ord(";")),
    )
    digits = np.diff(ends, prepend=-1) - 1
    if digits.min() < 1 or digits.max() > MOST_DIGITS:
        return None
    width[some] = np.diff(np.searchsorted(ends, lasts), prepend=-1)
    return width, whole_numbers(joined[:-1].replace(b";", b","))


QUOTE = '"'
SPECIAL = re.compile(r'[",;\t\r\n]')  # what a cell is quoted for
# a cell with a point that may stand between thousands
POINTS = re.compile(r"^[1-9]\d{0,2}\.\d{3}(?:\s*[A-Za-z]+)?$", re.MULTILINE)

# Units of a column: bytes with any of their units, or an unknown unit. Any other name is a unit of
# its own, and cells may have no unit beside it.
BYTES, ANYTHING = "bytes", ""

MOST_NUMBER = 1e18  # above everything that is counted or measured


@dataclass(frozen=True)
class Table:
    r"""A table, by column."""

    name: str  # what messages call it
    columns: Mapping[str, list[str]]  # the cells of each column, without surrounding blanks
    lines: Sequence[int]  # line of each row, counted from 1
    titles: Mapping[str, str]  # the name of each column as it was written
    delimiter: str = ","  # what parts the cells of a row
    notes: Sequence[tuple[str, str]] = ()  # on what was printed, each with the name in its gap

    def __len__(self) -> int:
        return len(self.lines)

    def at(self, row: int, column: str) -> str:
        """Return where a cell stands."""
        return f"{self.name}:{self.lines[row]}: {column}"

    def cells(self, column: str, default: str = "") -> list[str]:
        """Return the cells of a column, or as many defaults where the table does not have it."""
        return self.columns.get(column) or [default] * len(self)

    def first_cells(self, column: str) -> list[str]:
        """Return the first cells of a column, none where the table does not have it."""
        return self.columns.get(column, [])[:FIRST]

    def numbered(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return what stands in a column, by the first row, and which of it each row has."""
        return numbered(self.columns[column])

    def check_columns(self, faults: FaultList, known: Collection[str]) -> None:
        """Note columns of a title that is not among those known, with the closest that is."""
        for name, title in self.titles.items():
            if name and name not in known:
                message = f"is not a column of this table{did_you_mean(name, known)}"
                faults.add(f"{self.name}: {quoted(title)}", quoted(title), message)

    def each(
        self,
        faults: FaultList,
        column: str,
        wrong: Callable[[str], bool],
        message: str,
        instead: Callable[[str], str] = lambda cell: "",
    ) -> None:
        """Report wrong cells of a column, the first ones alone; ``instead`` may say more of one."""
        cells = self.columns[column]
        bad = {cell for cell in set(cells) if wrong(cell)}
        if not bad:
            return
        rows = [row for row, cell in enumerate(cells) if cell in bad]
        for row in rows[:LISTED_FAULTS]:
            faults.add(self.at(row, column), quoted(cells[row]), instead(cells[row]) or message)
        if len(rows) > LISTED_FAULTS:
            faults.add(f"{self.name}: {column}", len(rows) - LISTED_FAULTS, f"more: {message}")

    def wholes(self, faults: FaultList, column: str, most: int) -> NDArray[np.int64]:
        """Return a column of whole numbers from 0 on; 0 where a cell is none, which is a fault."""
        digits = len(str(most))

        def wrong(cell: str) -> bool:
            plain = cell.isascii() and cell.isdecimal() and len(cell) <= digits
            return not plain or int(cell) > most

        cells = self.columns[column]
        joined = "".join(cells)
        plain = joined.isascii() and joined.isdecimal() and min(map(len, cells)) > 0
        if not plain or max(map(len, cells)) >= digits:
            self.each(faults, column, wrong, f"must be a whole number, at most {most}")
            cells = ["0" if wrong(cell) else cell for cell in cells]
        return np.fromiter(map(int, cells), np.int64, len(cells))

    def amounts(
        self,
        faults: FaultList,
        column: str,
        default: float,
        *,
        infinite: bool = False,
        unit: str = BYTES,
    ) -> NDArray[np.float64]:
        """Return a column of amounts, 9 or ``3TB``; an empty cell is the default."""
        cells = self.columns[column]
        mark = self._decimal_mark(cells)

        def wrong(cell: str) -> bool:
            amount = _amount(cell, unit, mark) if cell else 0.0
            return not (0.0 <= amount <= MOST_NUMBER or (infinite and amount == math.inf))

        try:
            if mark is not None:
                raise ValueError
            found = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            parsed = [_amount(cell, unit, mark) if cell else default for cell in cells]
            found = np.array(parsed, np.float64)
        fine = (found >= 0.0) & ((found <= MOST_NUMBER) | (infinite & (found == math.inf)))
        if not fine.all():
            message = "must be a number from 0 on, or an amount like 3TB"
            if unit not in (BYTES, ANYTHING):
                message = f"must be a number from 0 on, of {unit}; no other unit may stand here"

            def instead(cell: str) -> str:
                number = _without_unit(cell)
                if len(decimal_marks(number)) > 1 and not number.isdecimal():
                    return two_readings(number)
                return milli_or_mega(cell) if unit == ANYTHING else ""

            self.each(faults, column, wrong, message, instead)
            empty = np.fromiter((not cell for cell in cells), np.bool_, len(cells))
            found = np.where(fine | empty, found, 0.0)
        return found

    def _decimal_mark(self, cells: Sequence[str]) -> str | None:
        """Return the decimal mark of a column; "" if points may divide thousands, else None."""
        joined = "\n".join(cells)
        has_comma = "," in joined
        if not has_comma and not POINTS.search(joined):
            return None
        # what cells of the column do not tell, those of the others do
        sure = _sure_marks(cells) or _sure_marks(
            cell for one in self.columns.values() for cell in one
        )
        if sure:
            return "," if sure == {","} else "." if sure == {"."} and has_comma else None
        # a column of a program has a point in each cell, or other numbers of digits behind one
        whole = any(cell.isdecimal() and cell != "0" for cell in cells)
        return "" if not has_comma and (whole or self.delimiter == ";") else None

    def empty(self, column: str) -> NDArray[np.bool_]:
        """Return which cells of a column are empty."""
        cells = self.columns[column]
        if "" not in cells:
            return np.zeros(len(cells), np.bool_)
        return np.fromiter((not cell for cell in cells), np.bool_, len(cells))


def numbered(cells: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return different texts in the order in which they come, and which of them each is.

    >>> numbered(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    place = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    return [*place], np.fromiter(map(place.__getitem__, cells), np.int64, len(cells))


def _without_unit(cell: str) -> str:
    """Return a cell without the letters at its end, in time that grows with its length alone."""
    return cell.rstrip().rstrip(string.ascii_letters).rstrip()


def _sure_marks(cells: Iterable[str]) -> set[str]:
    """Return the decimal marks of numbers that can have no other."""
    marks = (decimal_marks(_without_unit(cell)) for cell in set(cells) if cell)
    return {one for one in marks if len(one) == 1}


def _amount(cell: str, unit: str, mark: str | None) -> float:
    """Return an amount; NaN for what is none, and for what has two readings."""
    number = _without_unit(cell)
    if mark == "" and POINTS.match(number):
        return math.nan
    if mark and (known := read_number(number, mark)) is not None:
        cell = f"{known!r}{cell[len(number) :]}"
    elif (known := read_number(cell)) is not None:
        return known
    try:
        return float(cell)
    except ValueError:
        if unit not in (BYTES, ANYTHING) or (unit == ANYTHING and milli_or_mega(cell)):
            return math.nan
        found = read_bytes(FaultList(), "", cell)
        return math.nan if found is None else found


# the first row of a table as JSON
FIRST_ROW = re.compile(rb"\s*\[\s*(\{(?:[^{}\[\]]|\[[^{}\[\]]*\])*\})")

Cell = str | int | float | bool | None | list[str | int | None]


def header_of(document: Document) -> frozenset[str]:
    r"""Return the names in the first line with content, if it may be the header of a table.

    >>> sorted(header_of(Document("a.csv", b"# from here\nID,Zone\n7,a\n")))
    ['id', 'zone']
    """
    if first := FIRST_ROW.match(document.data[:HEAD]):
        try:
            return frozenset(map(str.lower, msgspec.json.decode(first[1], type=dict[str, Cell])))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return frozenset()
    line = _header_line(undrawn(document).data[:HEAD].decode("utf-8", "replace"))
    return frozenset(name.lower() for name in _titles(line))


def _header_line(text: str) -> str:
    """Return the first line with content; Excel's ``sep=;`` before it is none."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith(ASIDE))
    return next(lines, "")


def _delimiter(line: str) -> str:
    return next((mark for mark in DELIMITERS if mark in line), ",")


def _titles(line: str) -> list[str]:
    return [name.strip().strip('"').strip() for name in line.split(_delimiter(line))]


def read_table(faults: FaultList, document: Document) -> Table:
    """Read a table; its names in lower case, lines that are blank or start with # left out."""
    if FIRST_ROW.match(document.data[:HEAD]):
        return _rows_of_json(faults, document)
    below = document.data[-HEAD:].decode("utf-8", "replace").splitlines()[-ENDING:]
    document = undrawn(document)
    text = document.text(faults)
    line = _header_line(text[:HEAD])
    titles = _titles(line)
    names = [title.lower() for title in titles]
    lines: Sequence[int]
    plain = _plain_columns(document.data, text, _delimiter(line), len(names))
    if plain is not None:
        columns, lines = plain, range(2, len(plain[0]) + 2)
    else:
        rows, lines = _row_by_row(faults, document, text, names)
        columns = [list(map(str.strip, column)) for column in zip(*rows, strict=True)]
        columns = columns or [[] for _ in names]
    if not CUT.isdisjoint(columns[0]):
        for line_of, cells in zip(lines, zip(*columns, strict=True), strict=True):
            if CUT.issuperset(cells):
                message = "stands for rows that were left out: print all of them"
                faults.add(f"{document.name}:{line_of}", cells[0], message)
    if OF_NODES.search(names[-1]):
        nodes = NAME.findall("\n".join(columns[-1]))
        if whole_name := half_name(text, nodes):
            faults.add(f"{document.name}:{lines[-1]}", nodes[-1], HALF.format(whole_name))
    if titles[0] == "" and columns[0] == [*map(str, range(len(lines)))]:
        del titles[0], names[0], columns[0]  # the index of a frame, which numbers the rows
    for i in reversed(range(len(names))):
        if not names[i] and not any(columns[i]):  # as spreadsheets have them on the right
            del titles[i], names[i], columns[i]
    for name in sorted({name for name in names if names.count(name) > 1})[:LISTED_FAULTS]:
        faults.add(f"{document.name}: {quoted(name)}", quoted(name), "names two columns")
    by_name = dict(zip(names, titles, strict=True))
    columns_of = dict(zip(names, columns, strict=True))
    announced = max((int(found[1]) for one in below if (found := TAIL.match(one))), default=0)
    cut = [(LEFT_OUT, document.name)] if announced > len(lines) else []
    return Table(document.name, columns_of, lines, by_name, _delimiter(line), cut)


def _rows_of_json(faults: FaultList, document: Document) -> Table:
    """Read an array of objects, each a row; a value that is missing or null is an empty cell."""
    rows = decode_json(faults, document, list[dict[str, Cell]]) or []
    titles = [*dict.fromkeys(title.strip() for row in rows for title in row)]
    by_name = {title.lower(): title for title in titles}
    if len(by_name) < len(titles):
        faults.add(document.name, titles[:8], "name a column twice")
    columns = {name: [_text(row.get(title)) for row in rows] for name, title in by_name.items()}
    cut = [(LEFT_OUT, document.name)] if document.cut else []
    return Table(document.name, columns, range(1, len(rows) + 1), by_name, notes=cut)


def _text(value: Cell) -> str:
    """Return a value of JSON as a cell."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return msgspec.json.encode([*map(str, value)]).decode()
    return "" if value is None else str(value).strip()


def _plain_columns(data: bytes, text: str, delimiter: str, count: int) -> list[list[str]] | None:
    """Return the columns below the header; None if anything is quoted, left out or ragged."""
    if '"' in text or text.count("\r") != text.count("\r\n"):
        return None
    codes = np.frombuffer(data.rstrip(b"\r\n") + b"\n", np.uint8)
    marks = codes[(codes == ord(delimiter)) | (codes == ord("\n"))]
    if len(marks) % count:
        return None
    ends = marks.reshape(-1, count) == ord("\n")
    if ends[:, :-1].any() or not ends[:, -1].all():
        return None
    cells = text.rstrip("\r\n").replace("\n", delimiter).split(delimiter)
    if any(cell[:1] in ("", "#") for cell in cells[::count]):
        return None
    return [list(map(str.strip, cells[count + i :: count])) for i in range(count)]


def _row_by_row(
    faults: FaultList, document: Document, text: str, names: Sequence[str]
) -> tuple[list[list[str]], list[int]]:
    """Return the rows that fit the header, each with its line, noting those that do not."""
    rows: list[list[str]] = []
    lines: list[int] = []
    ragged: list[tuple[int, list[str]]] = []
    delimiter = _delimiter(_header_line(text[:HEAD]))
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    begin, seen = 1, False
    try:
        for row in reader:
            at, begin = begin, reader.line_num + 1
            if not any(row) or row[0].startswith(ASIDE):
                continue
            if not seen:
                seen = True
            elif len(row) == len(names):
                rows.append(row)
                lines.append(at)
            else:
                ragged.append((at, row))
    except csv.Error as error:
        faults.add(f"{document.name}:{begin}", None, f"is not a row of a table: {error}")
    _note_ragged(faults, document.name, ragged, len(names))
    return rows, lines


def _note_ragged(
    faults: FaultList, name: str, ragged: Sequence[tuple[int, list[str]]], count: int
) -> None:
    """Note rows that do not fit the header, the first of them one by one."""
    for at, row in ragged[:LISTED_FAULTS]:
        message = f"has {len(row)} cells, the header {count}"
        faults.add(f"{name}:{at}", quoted(row[0]), message)
    if len(ragged) > LISTED_FAULTS:
        message = f"more rows do not have the header's {count} cells"
        faults.add(name, len(ragged) - LISTED_FAULTS, message)


def table_of(faults: FaultList, name: str, printed: Printed) -> Table:
    """Return a table that was printed, without rows that stand for others, which are noted."""
    titles, *rows = printed.rows
    fits = [len(row) == len(titles) and not CUT.issuperset(row) for row in rows]
    numbered_rows = zip(printed.lines[1:], rows, strict=True)
    others = [one for one, fit in zip(numbered_rows, fits, strict=True) if not fit]
    cut = [at for at, row in others if CUT.issuperset(row)]
    announced = TAIL.match(printed.after)
    if announced and int(announced[1]) > len(rows) - len(cut):
        cut.append(printed.lines[-1] + 1)
    _note_ragged(faults, name, [one for one in others if one[0] not in cut], len(titles))
    kept = [*compress(rows, fits)]
    return Table(
        name,
        {title.lower(): [row[i] for row in kept] for i, title in enumerate(titles)},
        [*compress(printed.lines[1:], fits)],
        {title.lower(): title for title in titles},
        notes=[(LEFT_OUT, f"{name}:{at}") for at in cut],
    )


def _cell(value: object) -> str:
    text = str(value)
    return f'"{text.replace(QUOTE, 2 * QUOTE)}"' if SPECIAL.search(text) else text


def encode_table(columns: Mapping[str, Sequence[object]], delimiter: str = ",") -> bytes:
    r"""Return a table as CSV; what could be taken for another cell or row is quoted.

    >>> encode_table({"id": ["a,b", "c"], "n": [1, 2]})
    b'id,n\n"a,b",1\nc,2\n'
    """
    rows = [columns.keys(), *zip(*columns.values(), strict=True)]
    try:
        return "".join(f"{delimiter.join(map(_cell, row))}\n" for row in rows).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            [Fault("cluster", quoted(error.object), "cannot be written as UTF-8")]
        ) from None
