"""Tables: named columns of values, and the text of each value.

One table has many forms: CSV, JSON and frames here, text for terminals and HTML in the view.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.reading.frames import Backend, Frame, frame_of

NAME_LETTERS = 48  # letters of a name in a page, whose lines do not break


class Pair(NamedTuple):
    """A value before and after."""

    before: Any
    after: Any


class Spread(NamedTuple):
    """Values that are drawn as a histogram from 0 to ``top``."""

    values: NDArray[np.float64]
    top: float


@dataclass(frozen=True)
class Column:
    """A column: words on the left if it has no ``form``, else figures on the right."""

    name: str
    values: Sequence[Any] | NDArray[Any]
    form: Callable[[Any], str] | None = None  # of values; texts stay as they are, and None is empty
    short: str = ""  # the head where room is short
    bars: Sequence[float | Pair] | None = None  # shares of a whole that are drawn beside the values
    shades: Sequence[float] | None = None  # shares that colour the values
    letters: int = NAME_LETTERS  # the longest word in a page (0: any)
    faint: bool = False  # explains others
    spare: bool = False  # in pages only

    @property
    def words(self) -> bool:
        """Whether it stands on the left."""
        return self.form is None

    @property
    def drawn(self) -> bool:
        """Whether its values are histograms."""
        return any(isinstance(_after(value), Spread) for value in self.values)

    def written(self, value: Any) -> str:
        """Write one value, or one side of a pair."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return str(value) if self.form is None else self.form(value)


@dataclass(frozen=True)
class Table:
    """Columns of the same length, a caption, and how many more rows of a kind were left out."""

    columns: Sequence[Column]
    caption: str = ""
    title: str = ""  # in a page, the table is folded away under it
    left: int = 0
    what: str = "rows"

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __str__(self) -> str:
        cells = [
            [one.short or one.name, *map(one.written, one.values)]
            for one in self.columns
            if not one.spare
        ]
        widths = [max(map(len, column)) for column in cells]
        left = [one.words for one in self.columns if not one.spare]
        lines = (
            "  ".join(
                f"{cell:<{width}}" if words else f"{cell:>{width}}"
                for cell, width, words in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        )
        more = [f"... and {self.left:,} more"] if self.left > 0 else []
        return "\n".join([*lines, *more])

    @classmethod
    def of(cls, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
        """Make a table of rows of plain values."""
        listed = [*rows]
        columns = zip(*listed, strict=True) if listed else ([] for _ in names)
        return cls([*map(Column, names, columns)])

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> "Table":
        """Make a table of plain values by column."""
        return cls([Column(name, values) for name, values in columns.items()])

    @classmethod
    def of_records(cls, kind: type, rows: Sequence[Any]) -> "Table":
        """Make a table of rows of one kind, of the types of its fields; NaN for no number.

        >>> from typing import NamedTuple
        >>> Size = NamedTuple("Size", [("name", str), ("size", float | None)])
        >>> [one.values for one in Table.of_records(Size, [Size("a", None)]).columns]
        [['a'], array([nan])]
        """
        found = []
        for name, shape in get_type_hints(kind).items():
            values = [getattr(row, name) for row in rows]
            plain = {*get_args(shape)} - {type(None)} or {shape}
            number = next((one for one in (float, int, bool) if one in plain), None)
            found.append(Column(name, values if number is None else np.array(values, number)))
        return cls(found)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the values row by row."""
        return [*zip(*(_plain(one.values) for one in self.columns), strict=True)]

    def csv(self) -> str:
        """Write the values as CSV; None is empty."""
        out = io.StringIO()
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow([one.name for one in self.columns])
        lines.writerows(self.rows())
        return out.getvalue()

    def json(self) -> str:
        """Write the values as a list of JSON objects, null for None."""
        names = [one.name for one in self.columns]
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in self.rows())
        return "[\n" + ",\n".join(lines) + "\n]\n"

    def frame(self, backend: Backend | None = None) -> Frame:
        """Make a frame of the values: arrays of numbers, and lists of texts."""
        return frame_of({one.name: one.values for one in self.columns}, backend)


# how a table is written, by the suffix of its file
WRITTEN: dict[str, Callable[[Table], str]] = {".csv": Table.csv, ".json": Table.json}


def _plain(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _after(value: Any) -> Any:
    return value.after if isinstance(value, Pair) else value
