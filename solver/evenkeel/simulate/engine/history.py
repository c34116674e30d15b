"""History: measurements of a simulation over time, as arrays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.simulate.engine.world import KINDS, Change

if TYPE_CHECKING:
    from evenkeel.simulate.engine.checks import Finding
    from evenkeel.simulate.engine.scenario import Scenario

TOTALS = (  # what is added up from the beginning
    "moves", "bytes", "leader_changes", "thrash", "failed", "expired", "failovers",
    "below_min_active",
)  # fmt: skip


class Entry(NamedTuple):
    """A change that has ended."""

    seconds: float
    change: Change
    outcome: Literal["made", "failed", "expired"]


@dataclass(frozen=True, eq=False)
class History(Reported, Shown):
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
    totals : ndarray of float64, shape (T, 8)
        Each of ``TOTALS`` so far: replicas that moved, their bytes, changes of leader that moved no
        replica, replicas that came back to a node which they had left since the last event, changes
        that no longer fitted when they were due, changes that took too long, leaders that another
        one followed since their node no longer answered, and seconds for which partitions were
        below their min-active, added up over partitions.
    alive, accepts, leads : ndarray of bool, shape (T, N)
        Whether it served, might be given replicas, and might lead.
    below_min_active : ndarray of float64, shape (P,)
        Seconds for which each partition was below its min-active; exact, not by samples.
    partitions : tuple of str
        Names of the partitions that there were at the end.
    log : tuple of Entry
        All changes, in the order in which they ended.
    events : tuple of (float, str)
        When something happened from outside, and what.
    warnings : tuple of str
        What a person should look into.
    interrupted : bool
        Whether it was broken off.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> lost = simulate.At(0.0, ek.Changes(down="n0"))
    >>> history = simulate.play(c, [lost], until=600.0, every=300.0)
    >>> history.astray("under").tolist(), history.total("moves"), history.events
    ([0, 4, 0], 6.0, ((0.0, 'n0 down'), (300.0, 'n0 dead')))
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
    alive: NDArray[np.bool_]
    accepts: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    below_min_active: NDArray[np.float64]
    partitions: tuple[str, ...]
    log: tuple[Entry, ...] = ()
    events: tuple[tuple[float, str], ...] = ()
    warnings: tuple[str, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        return (
            f"<History: {', '.join(dict.fromkeys((self.scenario.name, self.method)))}, "
            f"{len(self.seconds)} samples, "
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
        """Return one of ``TOTALS`` at the end."""
        return float(self.totals[-1, TOTALS.index(name)])

    def astray(self, kind: str) -> NDArray[np.int64]:
        """Return how many partitions were of one of ``KINDS``, over time, (T,) int64."""
        return self.conformance[:, KINDS.index(kind)]

    @property
    def level(self) -> NDArray[np.float64]:
        """Fullest node that serves over what is fair, by sample and dimension, (T, D) float64.

        What is fair is the load on nodes that serve, over the capacity of those that accept:
        ``measure.levelness`` at each sample.
        """
        use = utilisation(self.load, self.capacity)
        most = np.where(self.alive[:, :, None], use, 0.0).max(1, initial=0.0)
        carried = np.where(self.alive[:, :, None], self.load, 0.0).sum(1)
        room = np.where((self.alive & self.accepts)[:, :, None], self.capacity, 0.0).sum(1)
        return _ratio(most, utilisation(carried, room))

    @property
    def leader_level(self) -> NDArray[np.float64]:
        """Most leaders of a node over its share by lead weight, by sample, (T,) float64."""
        given = self.scenario.cluster.nodes.lead_weight
        weight = np.where(self.alive & self.leads, given, 0.0)
        whole = np.maximum(weight.sum(1, keepdims=True), 1e-300)
        share = weight * (self.leaders.sum(1, keepdims=True) / whole)
        due = np.maximum((share > 0.0).sum(1, keepdims=True), 1)
        share = np.where(share > 0.0, share, share.sum(1, keepdims=True) / due)
        ratio = _ratio(self.leaders.astype(np.float64), share).max(1, initial=0.0)
        return np.asarray(np.where(self.leaders.any(1), ratio, 1.0), np.float64)

    def uneven(self, stat: str) -> NDArray[np.float64]:
        """Return the greatest value of a node over the mean, over time, (T,) float64.

        The mean is over the nodes that are part of the cluster; 1 where all have nothing.
        """
        series = np.where(self.present, self.series(stat), 0.0)
        mean = series.sum(1) / np.maximum(self.present.sum(1), 1)
        even = np.ones(len(mean))
        np.divide(series.max(1, initial=0.0), mean, out=even, where=mean > 0.0)
        return even

    def returns(self, window: float = np.inf) -> NDArray[np.int64]:
        """Return how many replicas came back to a node that they had left, (T,) int64.

        So many up to each sample, within ``window`` seconds, whatever happened in between.
        """
        left: dict[tuple[int, int], float] = {}
        came = []
        for seconds, change, outcome in self.log:
            if outcome == "made":
                for node, _ in change.add:
                    gone = left.get((change.partition, node))
                    if gone is not None and seconds - gone <= window:
                        came.append(seconds)
                left |= {(change.partition, node): seconds for node in change.drop}
        return np.searchsorted(np.array(came), self.seconds, side="right")

    def table(self, window: float = 3600.0) -> dict[str, NDArray[np.float64]]:
        """Return the figures over time, as columns.

        Parameters
        ----------
        window : float
            Seconds within which the return of a replica to a node counts.

        Returns
        -------
        dict of str to ndarray of float64, shape (T,)
            Time, levelness of each dimension (``level_cpu``) and of leaders, partitions that were
            not as they should be, each of ``TOTALS`` but thrash so far, and returns so far. What a
            data frame is made of.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
        >>> history = ek.simulate.play(c, until=60.0, every=60.0)
        >>> found = history.table()
        >>> found["level_d0"].tolist(), found["moves"].tolist()
        ([2.0, 1.0], [0.0, 2.0])
        """
        columns: dict[str, NDArray[np.float64]] = {"seconds": self.seconds}
        for d, name in enumerate(self.scenario.cluster.dimensions):
            columns[f"level_{name}"] = self.level[:, d]
        columns["level_leaders"] = self.leader_level
        for kind in KINDS:
            columns[kind] = self.astray(kind).astype(np.float64)
        for i, name in enumerate(TOTALS):
            if name == "below_min_active":
                columns["seconds_below_min_active"] = self.totals[:, i]
            elif name != "thrash":
                columns[name] = self.totals[:, i]
        columns["returns"] = self.returns(window).astype(np.float64)
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the figures of each node, as a document.

        Numbers, texts, lists and mappings only: as JSON has them, but that an infinite or missing
        figure stays one.
        """
        names = self.scenario.cluster.nodes.names
        return {
            "scenario": self.scenario.name,
            "method": self.method,
            "interrupted": self.interrupted,
            "table": {name: column.tolist() for name, column in self.table().items()},
            "totals": {name: self.total(name) for name in TOTALS},
            "below_min_active": {
                self.partitions[p]: float(self.below_min_active[p])
                for p in np.flatnonzero(self.below_min_active).tolist()
            },
            "events": [{"seconds": seconds, "what": what} for seconds, what in self.events],
            "changes": [
                {
                    "seconds": one.seconds,
                    "partition": self.partitions[one.change.partition],
                    "add": [names[node] for node, _ in one.change.add],
                    "drop": [names[node] for node in one.change.drop],
                    "lead": names[one.change.lead] if one.change.lead >= 0 else None,
                    "reason": one.change.reason,
                    "outcome": one.outcome,
                }
                for one in self.log
            ],
            "warnings": list(self.warnings),
        }

    def thrash_percent(self, stat: str) -> NDArray[np.float64]:
        """Return how much each node's figure went up and down for nothing, (N,) float64.

        In percent of the range of the values of all nodes.
        """
        series = self.series(stat)
        return thrash_percent(series, float(np.ptp(series)))

    def check(self) -> "tuple[Finding, ...]":
        """Hold the scenario's checks against what was measured, in their order."""
        return tuple(check.of(self) for check in (*self.scenario.checks, *self.scenario.beyond))


def _ratio(most: NDArray[np.float64], fair: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide what is by what would be fair: 0 of 0 is 1, anything else of 0 infinite."""
    ratio = np.where(most > 0.0, np.inf, 1.0)
    with np.errstate(over="ignore"):
        return np.divide(most, fair, out=ratio, where=(fair > 0.0) & np.isfinite(fair))


def thrash_percent(series: NDArray[np.float64], spread: float | None = None) -> NDArray[np.float64]:
    """Measure variation that cancels itself out, in percent."""
    if len(series) < 2:
        return np.zeros(series.shape[1:])
    steps = np.diff(series, axis=0)
    # CockroachDB, simulator, history (thrashing): with u and d the sums of rises and of falls, what
    # counts is 0 if either is, else a (u + d) + (1 - a) min(u, d), a = (min / max) ** 0.8
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
