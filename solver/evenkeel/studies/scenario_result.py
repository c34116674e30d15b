"""The result of a scenario: what comes of it, as figures and as a row of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.survival import Survival
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.figures import amount, duration, number, percent
from evenkeel.model.runtime.table import Column, Table
from evenkeel.studies.fan_out import Failure
from evenkeel.verdict import Status

NO_PARTITIONS = read_only(np.zeros(0, np.int32))
NOTHING_KNOWN = Survival(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)

LEVELS, SURVIVALS = ("level", "fullest"), ("before", "after")
"""Fields of arrays, and fields of lists of partitions."""


def _flat(array: NDArray[Any], dtype: type[np.generic]) -> bytes | NDArray[Any]:
    """Return a short array as bytes: pickle takes longer for arrays than a scenario is long."""
    return array.tobytes() if array.dtype == dtype and array.ndim == 1 else array


def _unflat(given: bytes | NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return the array again, read-only where it travelled as bytes."""
    return np.frombuffer(given, dtype) if isinstance(given, bytes) else given


@dataclass(frozen=True, eq=False)
class ScenarioResult:
    """What comes of one scenario. D dimensions.

    Parameters
    ----------
    status : str
        That of the repair, as in ``Result``; ``"failed"`` if it raised, ``"not run"`` if the sweep
        ended before.
    message : str
        The status in a sentence, or the error.
    hard : int
        Hard rules still broken after the repair.
    level : ndarray of float64, shape (D,)
        Highest utilisation over the fair one, after the repair; NaN if it is not known.
    fullest : ndarray of float64, shape (D,)
        Highest utilisation of a live node, after the repair; NaN if it is not known.
    moves, moves_at_least : int
        Moves of the repair, and the proven least number to be level.
    leader_changes : int
        Partitions whose live leader handed over.
    bytes_moved : float
        Data that the repair moves, in the unit of the dimension that moves.
    before, after : Survival
        Partitions in danger before the repair and after it. A repair copies what lives, so what is
        lost before is lost after.
    recovery : float or None
        Seconds that the plan of the repair takes under the throttle; None unless it was asked.
    under_replicated : float or None
        Seconds until no partition is short of live replicas; inf if one stays short, None unless it
        was asked.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> found = ek.sweep(c, "node").scenario("node n0")
    >>> found.status, found.fits, found.moves, found.fullest.tolist()
    ('optimal', True, 2, [0.5])
    """

    status: Status | Literal["failed", "not run"]
    message: str
    hard: int
    level: NDArray[np.float64]
    fullest: NDArray[np.float64]
    moves: int
    moves_at_least: int
    leader_changes: int
    bytes_moved: float
    before: Survival
    after: Survival
    recovery: float | None = None
    under_replicated: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in LEVELS:
            state[name] = _flat(state[name], np.float64)
        for name in SURVIVALS:
            one = state[name]
            lists = one.lost, one.under_min_active, one.without_quorum
            state[name] = [_flat(each, np.int32) for each in lists]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in LEVELS:
            state[name] = _unflat(state[name], np.float64)
        for name in SURVIVALS:
            lists = [
                _unflat(each, np.int32) if len(each) else NO_PARTITIONS for each in state[name]
            ]
            state[name] = Survival(*lists)
        self.__dict__.update(state)

    @property
    def known(self) -> bool:
        """Whether the scenario was played to its end."""
        return self.status not in ("failed", "not run")

    @property
    def fits(self) -> bool:
        """Whether everything has its place after the repair, no hard rule broken."""
        return self.known and self.hard == 0


class Row(NamedTuple):
    """One scenario as a row of a table; partitions are counted before the repair.

    Parameters
    ----------
    scenario, status : str
        Its name, and what became of it.
    fits : bool
        Whether the repair breaks no hard rule.
    hard : int
        Hard rules that it still breaks.
    lost, without_quorum, under_min_active : int
        Partitions in danger.
    level, fullest : float
        Of the worst dimension, after the repair.
    moves, leader_changes : int
        What the repair takes.
    bytes_moved : float
        Data that it moves.
    recovery, under_replicated : float or None
        Seconds that its plan takes, and until no partition is short of live replicas; None unless
        the sweep was asked.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> worst = ek.sweep(c, "node").worst()[0]
    >>> worst.scenario, worst.fits, worst.moves
    ('node n0', True, 2)
    """

    scenario: str
    status: str
    fits: bool
    hard: int
    lost: int
    without_quorum: int
    under_min_active: int
    level: float
    fullest: float
    moves: int
    leader_changes: int
    bytes_moved: float
    recovery: float | None
    under_replicated: float | None


def unknown_result(cluster: Cluster, answer: Failure | None) -> ScenarioResult:
    """Say that nothing is known of a scenario, and why."""
    unknown = read_only(np.full(len(cluster.dimensions), np.nan))
    return ScenarioResult(
        status="not run" if answer is None else "failed",
        message="The sweep was ended before." if answer is None else answer.message,
        hard=0, level=unknown, fullest=unknown, moves=0, moves_at_least=0, leader_changes=0,
        bytes_moved=0.0, before=NOTHING_KNOWN, after=NOTHING_KNOWN,
    )  # fmt: skip


def harmlessness(row: Row) -> tuple[float, ...]:
    """Return what sorts rows: the least is the worst."""
    return (
        row.status != "failed", row.status == "not run", -row.lost, -row.hard,
        -row.without_quorum, -row.under_min_active, -np.nan_to_num(row.fullest), -row.moves,
    )  # fmt: skip


UNKNOWN = ("failed", "not run")

SWEPT = {
    "status": "of the repair, as of a solve",
    "broken": "hard rules broken after it",
    "lost": "partitions that the loss leaves without a live replica",
    "quorum": "partitions that it leaves without a majority of voters",
    "short": "partitions that it leaves with fewer live replicas than min-active",
    "max/mean": "fullest node over the mean after the repair, in the dimension furthest from it",
    "fullest": "share of its capacity that the fullest node carries then",
    "moves": "replicas that the repair moves",
    "recovery": "how long the plan of the repair takes",
    "short for": "until no partition is short of live replicas",
}
"""What the columns of scenarios are, by their short heads."""


def scenario_table(cluster: Cluster, rows: Sequence[Row], count: int) -> Table:
    """Lay out the worst of so many scenarios of a sweep; nothing is known of some."""
    known = [row.status not in UNKNOWN for row in rows]

    def values(name: str) -> list[Any]:
        return [getattr(row, name) if k else "-" for row, k in zip(rows, known, strict=True)]

    whole = "{:,}".format
    columns = [
        Column("scenario", [row.scenario for row in rows]),
        Column("status", [row.status for row in rows]),
        Column("fits", ["-" if not k else "✓" if row.fits else "✗"
                        for row, k in zip(rows, known, strict=True)], spare=True),
        Column("still broken", values("hard"), whole, "broken"),
        Column("lost", values("lost"), whole),
        Column("without quorum", values("without_quorum"), whole, "quorum"),
        Column("short", values("under_min_active"), whole),
        Column("fullest ÷ mean", values("level"), number, "max/mean"),
        Column("fullest node", values("fullest"), percent, "fullest"),
        Column("moves", values("moves"), whole),
        Column("leader changes", values("leader_changes"), whole, spare=True),
    ]  # fmt: skip
    if cluster.bytes_dimension >= 0:
        name = cluster.dimensions[cluster.bytes_dimension]
        columns.append(Column(name, values("bytes_moved"), amount, spare=True))
    if any(row.recovery is not None for row in rows):
        columns += [
            Column("recovery", values("recovery"), _time),
            Column("all live after", values("under_replicated"), _time, "short for"),
        ]
    return Table(
        columns,
        "The worst first. Partitions in danger are counted before the repair, the rest after.",
        f"Scenarios ({count:,})", count - len(rows), "scenarios, which are less bad,",
    )  # fmt: skip


def _time(seconds: float) -> str:
    return duration(seconds) if np.isfinite(seconds) else "never"
