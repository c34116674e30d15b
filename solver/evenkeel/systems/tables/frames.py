"""Read the tables of nodes and replicas from frames of pandas, polars or pyarrow."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.model.reading.frames import (
    Frame,
    lists_of,
    narwhals,
    numbered_texts,
    numbers_of,
    series_of,
    texts_of,
)
from evenkeel.model.rules import Rule
from evenkeel.systems.csv_text import BYTES, FIRST, MOST_NUMBER, Table, numbered
from evenkeel.systems.documents import quoted
from evenkeel.systems.tables.lists import lists_in
from evenkeel.systems.tables.other_headings import by_id_or_name, completed, in_our_words, titles_in
from evenkeel.systems.tables.other_nodes import NAMES, named_as
from evenkeel.systems.tables.reading import (
    NODE,
    Found,
    RuleEntry,
    Rules,
    cluster_of,
    is_ours,
    name_column,
    with_headings,
)


class FrameTable(Table):
    """A frame read like a table; numbers are taken as they are, texts when they are asked for."""

    def __init__(
        self,
        faults: FaultList,
        name: str,
        series: Mapping[str, Any],
        rows: Sequence[int] | None = None,
        *,
        listed: bool = False,
    ) -> None:
        titles: dict[str, str] = {}
        for title in series:
            if titles.setdefault(str(title).lower(), str(title)) != str(title):
                faults.add(f"{name}[{title!r}]", title, "is the name of another column")
        by_name = {str(title).lower(): one for title, one in series.items()}
        if listed and "node" not in titles and "nodes" in titles:
            titles["node"], by_name["node"] = titles.pop("nodes"), by_name.pop("nodes")
        lines = rows if rows is not None else range(len(next(iter(series.values()), ())))
        super().__init__(name, _Texts(by_name), lines, titles)
        object.__setattr__(self, "_series", by_name)

    def at(self, row: int, column: str) -> str:
        """Return where a cell stands."""
        return f"{self.name}[{self.titles.get(column, column)!r}][{self.lines[row]}]"

    def first_cells(self, column: str) -> list[str]:
        """Return the first cells of a column as texts, none where the frame does not have it."""
        series = self._series.get(column)  # type: ignore[attr-defined]
        return [] if series is None else texts_of(series[:FIRST])

    def amounts(
        self,
        faults: FaultList,
        column: str,
        default: float,
        *,
        infinite: bool = False,
        unit: str = BYTES,
    ) -> NDArray[np.float64]:
        """Return a column of amounts; an empty cell is the default."""
        found = numbers_of(self._series[column])  # type: ignore[attr-defined]
        if found is None:
            return super().amounts(faults, column, default, infinite=infinite, unit=unit)
        none = np.isnan(found)
        most = np.inf if infinite else MOST_NUMBER
        bad = np.flatnonzero(~none & ~((found >= 0.0) & (found <= most)))
        self._note(faults, column, bad, found, "must be a number from 0 on")
        return np.where(none, default, found) if none.any() or len(bad) else found

    def empty(self, column: str) -> NDArray[np.bool_]:
        """Return which cells of a column are empty: null or NaN."""
        found = numbers_of(self._series[column])  # type: ignore[attr-defined]
        return super().empty(column) if found is None else np.isnan(found)

    def wholes(self, faults: FaultList, column: str, most: int) -> NDArray[np.int64]:
        """Return a column of whole numbers from 0 on."""
        found = numbers_of(self._series[column])  # type: ignore[attr-defined]
        if found is None:
            return super().wholes(faults, column, most)
        fine = (found >= 0.0) & (found <= most) & (found == np.floor(found))
        bad = np.flatnonzero(~fine)
        self._note(faults, column, bad, found, f"must be a whole number, at most {most}")
        return np.where(fine, found, 0.0).astype(np.int64)

    def numbered(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return what stands in a column, by the first row, and which of it each row has."""
        found = numbered_texts(self._series[column])  # type: ignore[attr-defined]
        if found is None:
            return super().numbered(column)
        coded, codes = found
        texts, number = numbered(coded)
        return texts, codes if len(texts) == len(coded) else number[codes]

    def _note(
        self,
        faults: FaultList,
        column: str,
        rows: NDArray[np.intp],
        found: NDArray[np.float64],
        message: str,
    ) -> None:
        """Note cells that are wrong, the first of them one by one."""
        for row in rows[:LISTED_FAULTS].tolist():
            faults.add(self.at(row, column), quoted(found[row].item()), message)
        if len(rows) > LISTED_FAULTS:
            faults.add(f"{self.name}[{column!r}]", len(rows) - LISTED_FAULTS, f"more: {message}")


class _Texts(Mapping[str, list[str]]):
    """The columns of a frame as texts, each made when it is first asked for."""

    def __init__(self, series: Mapping[str, Any]) -> None:
        self._series = series
        self._made: dict[str, list[str]] = {}

    def __getitem__(self, name: str) -> list[str]:
        if name not in self._made:
            self._made[name] = texts_of(self._series[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._series

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)


def read_frames(
    nodes: Frame,
    replicas: Frame,
    *,
    rules: Rule | Mapping[str, Rule] | None = None,
    group_rules: Rule | Mapping[str, Rule] | None = None,
    tiers: Sequence[str] | None = None,
    bytes: str | None = None,
    transient: Sequence[str] | None = None,
) -> Cluster:
    """Read a cluster from two frames, for ``Cluster.from_frames``."""
    found = Found()
    faults = found.faults
    known = FrameTable(faults, "nodes", series_of("nodes", nodes))
    key = name_column(known) or next((one for one in NAMES if one in known.columns), "")
    held = {*known.columns[key]} if key else set[str]()
    series, rows = _row_by_replica(series_of("replicas", replicas), held)
    found.nodes = [known]
    found.replicas = [FrameTable(faults, "replicas", series, rows, listed=True)]
    if not key:
        message = f"needs a column {NODE[0]!r}{_indexed(nodes)}"
        faults.add("nodes", [*found.nodes[0].titles.values()], message)
    table: Table = found.replicas[0]
    if not is_ours(table.columns) and not titles_in(table.columns.keys()):
        table = by_id_or_name(table, replicas=True) or table
    if not is_ours(table.columns) and titles_in(table.columns.keys()):
        table, found.unread = in_our_words(faults, table)
    if key:
        found.nodes[0], of_nodes = named_as(known, {*table.cells("node")}, NODE)
        found.unread += of_nodes
    table, unread = completed(faults, table, found.nodes[0])
    found.replicas, found.unread = [table], found.unread + unread
    names = table.columns.keys()
    if "node" not in names or not ("partition" in names or {"group", "index"} <= names):
        message = "needs the columns 'node' and 'partition', or 'node', 'group' and 'index'"
        titles = [*found.replicas[0].titles.values()]
        faults.add("replicas", titles, f"{message}{_indexed(replicas)}")
    faults.raise_if_any()
    entries = [
        *_entries(faults, "rules", rules, by_name="rule" in names),
        *_entries(faults, "group_rules", group_rules, per="group"),
    ]
    stated = Rules(entries, bytes, list(transient or ()), list(tiers or ()))
    found.rules = ("arguments", stated)
    return with_headings(cluster_of(found), found, found.nodes[0])


def _row_by_replica(
    series: Mapping[str, Any], nodes: Collection[str]
) -> tuple[Mapping[str, Any], Sequence[int] | None]:
    """Return columns with a row for each node of a cell that lists several, and where each was."""
    lower = {str(title).lower(): title for title in series}
    title = lower.get("node", lower.get("nodes"))
    if title is None:
        return series, None
    column = series[title]
    if column.dtype.is_numeric():
        listed = []
    elif (coded := numbered_texts(column)) is not None:
        several = lists_in(coded[0], nodes)
        listed = [several.get(coded[0][code], [coded[0][code]]) for code in coded[1] if several]
    else:
        listed = lists_of(column)
    if not listed:
        return series, None
    rows = [row for row, own in enumerate(listed) for _ in own]
    names = narwhals().new_series(
        "node", [name for own in listed for name in own], backend=column.implementation
    )
    return {one: names if one == title else held[rows] for one, held in series.items()}, rows


def _indexed(frame: Frame) -> str:
    """Return what to do with an index of pandas that has names, to end a message with."""
    names = [*filter(None, getattr(getattr(frame, "index", None), "names", None) or ())]
    return f"; its index {names} is no column: call reset_index() first" if names else ""


def _entries(
    faults: FaultList,
    path: str,
    rules: Rule | Mapping[str, Rule] | None,
    *,
    by_name: bool = False,
    per: Literal["partition", "group"] = "partition",
) -> Iterator[RuleEntry]:
    """Yield the rules: one for all, or one for each group, or for each name of a column."""
    if isinstance(rules, Rule):
        rules = {"": rules}
    elif not isinstance(rules, Mapping):
        if rules is not None:
            message = "must be a Rule, or a mapping of groups to rules"
            faults.add(path, type(rules).__name__, message)
        return
    for name, rule in rules.items():
        if not isinstance(rule, Rule):
            faults.add(f"{path}[{name!r}]", type(rule).__name__, "must be a Rule")
            continue
        bound = {} if not name else {"name": name} if by_name else {"groups": [name]}
        yield RuleEntry.of(rule, **bound, per=per)
