"""History: what a simulation measured over time, as arrays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.simulate.changes import Change
from evenkeel.simulate.conformance import KINDS

if TYPE_CHECKING:
    from evenkeel.simulate.checks import Finding
    from evenkeel.simulate.scenario import Scenario

TOTALS = ("moves", "bytes", "leader_changes", "thrash", "failed", "expired")
"""What is added up from the beginning."""


class Entry(NamedTuple):
    """A change that has ended.

    Parameters
    ----------
    seconds : float
        When it ended.
    change : Change
        What it was, who asked for it and why.
    outcome : {"made", "failed", "expired"}
        Whether it was made, no longer fitted, or took too long.
    """

    seconds: float
    change: Change
    outcome: Literal["made", "failed", "expired"]


@dataclass(frozen=True, eq=False)
class History:
    """What was measured. T samples, N nodes, D dimensions.

    Parameters
    ----------
    scenario : Scenario
        What was played.
    method : str
        Who decided.
    seconds : ndarray of float64, shape (T,)
        Time of each sample.
    load : ndarray of float64, shape (T, N, D)
        What each node carried.
    capacity : ndarray of float64, shape (T, N, D)
        What it could.
    replicas, leaders, moves : ndarray of int64, shape (T, N)
        What each node had and led, and how many replicas had joined or left it so far.
    present : ndarray of bool, shape (T, N)
        Whether it was part of the cluster.
    conformance : ndarray of int64, shape (T, 7)
        Partitions of each of ``conformance.KINDS``.
    totals : ndarray of float64, shape (T, 6)
        Each of ``TOTALS`` so far: replicas that moved, their bytes, changes of leader that moved no
        replica, replicas that came back to a node which they had left since the last event, changes
        that no longer fitted when they were due, and changes that took too long.
    log : tuple of Entry
        All changes, in the order in which they ended.
    events : tuple of (float, str)
        When something happened from outside, and what.
    warnings : tuple of str
        What a person should look into.
    interrupted : bool
        Whether it was broken off.
    """

    scenario: "Scenario"
    method: str
    seconds: NDArray[np.float64]
    load: NDArray[np.float64]
    capacity: NDArray[np.float64]
    replicas: NDArray[np.int64]
    leaders: NDArray[np.int64]
    moves: NDArray[np.int64]
    present: NDArray[np.bool_]
    conformance: NDArray[np.int64]
    totals: NDArray[np.float64]
    log: tuple[Entry, ...] = ()
    events: tuple[tuple[float, str], ...] = ()
    warnings: tuple[str, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        return (
            f"<History: {self.scenario.name}, {self.method}, {len(self.seconds)} samples, "
            f"{self.total('moves'):.0f} moves, {self.total('leader_changes'):.0f} leader changes>"
        )

    def series(self, stat: str) -> NDArray[np.float64]:
        """Return a figure of every node over time.

        Parameters
        ----------
        stat : str
            A dimension, its name and ``_share`` for the part of the capacity, ``replicas``,
            ``leaders`` or ``moves``.

        Returns
        -------
        ndarray of float64, shape (T, N)
            In the dimension's unit.
        """
        if stat in ("replicas", "leaders", "moves"):
            return np.asarray(getattr(self, stat), np.float64)
        dimensions = self.scenario.cluster.dimensions
        name = stat.removesuffix("_share")
        at = dimensions.index(name)
        if name == stat:
            return self.load[:, :, at]
        share = np.zeros(self.load.shape[:2])
        room = self.capacity[:, :, at]
        return np.divide(self.load[:, :, at], room, out=share, where=room > 0.0)

    def total(self, name: str) -> float:
        """Return one of ``TOTALS`` at the end.

        Parameters
        ----------
        name : str
            Which one.

        Returns
        -------
        float
            The sum.
        """
        return float(self.totals[-1, TOTALS.index(name)])

    def astray(self, kind: str) -> NDArray[np.int64]:
        """Return how many partitions were not as they should be, over time.

        Parameters
        ----------
        kind : str
            One of ``conformance.KINDS``.

        Returns
        -------
        ndarray of int64, shape (T,)
            Partitions.
        """
        return self.conformance[:, KINDS.index(kind)]

    def thrash_percent(self, stat: str) -> NDArray[np.float64]:
        """Return how much each node's figure went up and down for nothing.

        Parameters
        ----------
        stat : str
            As ``series`` takes it.

        Returns
        -------
        ndarray of float64, shape (N,)
            Percent of the range of the values of all nodes.
        """
        series = self.series(stat)
        return thrash_percent(series, float(np.ptp(series)))

    def check(self) -> "tuple[Finding, ...]":
        """Hold the scenario's checks against what was measured.

        Returns
        -------
        tuple of Finding
            One for each, in their order, those beyond what others reach last.
        """
        return tuple(check.of(self) for check in (*self.scenario.checks, *self.scenario.beyond))


def thrash_percent(series: NDArray[np.float64], spread: float | None = None) -> NDArray[np.float64]:
    """Measure variation that cancels itself out.

    With u and d the sums of all rises and of all falls, what counts is nothing where either is 0,
    else a (u + d) + (1 - a) min(u, d) with a = (min / max) ** 0.8.

    Parameters
    ----------
    series : ndarray of float64, shape (T, ...)
        Values over time.
    spread : float, optional
        What a change is measured against; by default the range of each series of its own.

    Returns
    -------
    ndarray of float64, shape (...)
        Percent; 0 where nothing ever changes.

    References
    ----------
    CockroachDB, simulator, history: thrashing.

    Examples
    --------
    >>> thrash_percent(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])).tolist()
    [0.0, 200.0]
    """
    if len(series) < 2:
        return np.zeros(series.shape[1:])
    steps = np.diff(series, axis=0)
    up, down = np.maximum(steps, 0.0).sum(0), np.maximum(-steps, 0.0).sum(0)
    less, more = np.minimum(up, down), np.maximum(up, down)
    share = np.zeros(less.shape)
    np.divide(less, more, out=share, where=more > 0.0)
    weight = share**0.8
    counted = np.where(less > 0.0, weight * (up + down) + (1.0 - weight) * less, 0.0)
    against = np.ptp(series, axis=0) if spread is None else np.full(less.shape, spread)
    percent = np.zeros(less.shape)
    np.divide(100.0 * counted, against, out=percent, where=against > 0.0)
    return percent
