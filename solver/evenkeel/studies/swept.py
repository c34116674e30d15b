"""What a sweep found: each scenario's answer, by name, by column and as text."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.registry import MethodName
from evenkeel.model.changes import Changes
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.frames import (
    Backend,
    Frame,
)
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.runtime.printable import counted
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.model.runtime.table import Table
from evenkeel.result import Result
from evenkeel.session import HeldCluster
from evenkeel.studies.scenario import (
    Asked,
    Row,
    ScenarioResult,
    harmlessness,
    repaired,
    scenario_table,
)

SHOWN = 8
"""Scenarios that ``str`` spells out, worst first."""


@dataclass(frozen=True, eq=False)
class Sweep(Reported, Shown):
    """What comes of S scenarios, in the order in which they were given; D dimensions.

    Parameters
    ----------
    cluster : Cluster
        The snapshot.
    now : ScenarioResult
        The same figures without any scenario.
    changes : tuple of Changes
        What happens in each.
    results : tuple of ScenarioResult
        What comes of each.
    method : str
        Who repaired them.
    asked : Asked
        What ``solve`` was asked for.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 4, load=[[1.0]] * 6, placement=[[0], [0], [1], [1], [2], [3]],
    ...     domains={"zone": [*"aabb"]},
    ... )
    >>> found = ek.sweep(cluster, "zone")
    >>> found.names, found.fits.tolist(), found.moves.tolist()
    (('zone a', 'zone b'), [True, True], [4, 2])
    >>> found.lost.tolist(), found.lost_partitions("zone b")
    ([[4, 4], [2, 2]], ('p4', 'p5'))
    """

    cluster: Cluster
    now: ScenarioResult
    changes: tuple[Changes, ...]
    results: tuple[ScenarioResult, ...]
    method: MethodName
    asked: Asked

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each scenario."""
        return tuple(change.name for change in self.changes)

    @property
    def status(self) -> tuple[str, ...]:
        """Status of each repair, ``"failed"`` or ``"not run"``."""
        return tuple(one.status for one in self.results)

    @property
    def complete(self) -> bool:
        """Whether every scenario was played to its end."""
        return all(one.known for one in self.results)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether everything has its place after the repair, no hard rule broken, (S,) bool."""
        return read_only(np.array([one.fits for one in self.results], bool))

    @property
    def hard(self) -> NDArray[np.int64]:
        """Hard rules still broken after the repair, (S,) int64."""
        return self._whole("hard")

    @property
    def level(self) -> NDArray[np.float64]:
        """Highest utilisation over the fair one, after the repair, (S, D) float64."""
        return self._by_dimension("level")

    @property
    def fullest(self) -> NDArray[np.float64]:
        """Highest utilisation of a live node, after the repair, (S, D) float64."""
        return self._by_dimension("fullest")

    @property
    def moves(self) -> NDArray[np.int64]:
        """Moves of each repair, (S,) int64."""
        return self._whole("moves")

    @property
    def moves_at_least(self) -> NDArray[np.int64]:
        """The proven least number of moves to be level, (S,) int64."""
        return self._whole("moves_at_least")

    @property
    def leader_changes(self) -> NDArray[np.int64]:
        """Partitions whose live leader hands over, (S,) int64."""
        return self._whole("leader_changes")

    @property
    def bytes(self) -> NDArray[np.float64]:
        """Data that each repair moves, in the unit of the dimension that moves, (S,) float64."""
        return read_only(np.array([one.bytes_moved for one in self.results], np.float64))

    @property
    def recovery(self) -> NDArray[np.float64]:
        """Seconds that the plan of each repair takes, (S,) float64; NaN unless it was asked."""
        return read_only(np.array([one.recovery for one in self.results], np.float64))

    @property
    def under_replicated(self) -> NDArray[np.float64]:
        """Seconds until no partition is short of live replicas, (S,) float64; inf for never."""
        return read_only(np.array([one.under_replicated for one in self.results], np.float64))

    @property
    def lost(self) -> NDArray[np.int64]:
        """Partitions without a live replica, before the repair and after it, (S, 2) int64."""
        return self._endangered("lost")

    @property
    def without_quorum(self) -> NDArray[np.int64]:
        """Partitions without a majority of voters, before and after the repair, (S, 2) int64."""
        return self._endangered("without_quorum")

    @property
    def under_min_active(self) -> NDArray[np.int64]:
        """Partitions short of live replicas, before and after the repair, (S, 2) int64."""
        return self._endangered("under_min_active")

    def scenario(self, scenario: str | int) -> ScenarioResult:
        """Return what comes of one scenario.

        Parameters
        ----------
        scenario : str or int
            Its name, or its number from 0 on.

        Returns
        -------
        ScenarioResult
            With the partitions in danger, by index.

        Raises
        ------
        InvalidInput
            If there is no such scenario.
        """
        return self.results[self._at(scenario)]

    def lost_partitions(self, scenario: str | int) -> tuple[str, ...]:
        """Return the partitions that a scenario leaves without a live replica.

        Parameters
        ----------
        scenario : str or int
            Its name, or its number from 0 on.

        Returns
        -------
        tuple of str
            Their names, in order.

        Raises
        ------
        InvalidInput
            If there is no such scenario.
        """
        names = self.cluster.partitions.names
        return tuple(names[p] for p in self.scenario(scenario).before.lost.tolist())

    def result(self, scenario: str | int) -> Result:
        """Repair one scenario again, for the placement and all else that a sweep does not keep.

        Parameters
        ----------
        scenario : str or int
            Its name, or its number from 0 on.

        Returns
        -------
        Result
            Of a session: the same bits as in the sweep, unless a time limit cut it short.

        Raises
        ------
        InvalidInput
            If there is no such scenario.
        """
        held = HeldCluster(self.cluster)
        return repaired(held, self.method, self.asked, self.changes[self._at(scenario)])

    def rows(self) -> list[Row]:
        """Return a row for each scenario, as a table takes them.

        Returns
        -------
        list of Row
            In the order of the scenarios.
        """
        return [
            Row(
                change.name, one.status, one.fits, one.hard,
                len(one.before.lost), len(one.before.without_quorum),
                len(one.before.under_min_active),
                float(one.level.max(initial=0.0)), float(one.fullest.max(initial=0.0)),
                one.moves, one.leader_changes, one.bytes_moved, one.recovery,
                one.under_replicated,
            )
            for change, one in zip(self.changes, self.results, strict=True)
        ]  # fmt: skip

    @known_keywords
    def to_frame(self, backend: Backend | None = None) -> Frame:
        """Return the rows as a frame of pandas, polars or pyarrow.

        Parameters
        ----------
        backend : str, optional
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; the first of them that is installed.

        Returns
        -------
        frame
            The fields of ``rows`` by column.

        Raises
        ------
        InvalidInput
            If there is no such library, or narwhals is missing, which makes frames.
        """
        return Table.of_records(Row, self.rows()).frame(backend)

    @property
    def summary(self) -> str:
        """How many scenarios fit with nothing lost, and what becomes of the others."""
        known = np.array([one.known for one in self.results], bool)
        loses, fits = self.lost[:, 0] > 0, self.fits
        counts = [f"{int((fits & ~loses).sum()):,} fit with nothing lost"]
        for count, what in (
            (int(loses.sum()), "with partitions lost"),
            (int((known & ~fits & ~loses).sum()), "unfit with nothing lost"),
            *((self.status.count(status), status) for status in ("failed", "not run")),
        ):
            counts += [f"{count:,} {what}"] if count else []
        return f"{counted(len(self.results), 'scenario')}: {', '.join(counts)}"

    @known_keywords
    def worst(self, count: int = 1) -> list[Row]:
        """Return the worst scenarios.

        Failed ones come first, then those that lose most, break most, leave most without a quorum
        or short of replicas, fill a node most and take most moves; those not run come last.

        Parameters
        ----------
        count : int, optional
            How many.

        Returns
        -------
        list of Row
            Worst first; ties in the order of the scenarios.
        """
        return sorted(self.rows(), key=harmlessness)[: max(count, 0)]

    def __repr__(self) -> str:
        return f"<Sweep: {self.summary}>"

    def __str__(self) -> str:
        worst = self.worst(SHOWN)
        lines = [self.summary]
        if not worst:
            return lines[0]
        table = str(scenario_table(self.cluster, worst, len(self.results)))
        return "\n".join([*lines, *(f"  {line}" for line in table.splitlines())])

    def _at(self, scenario: str | int) -> int:
        names = self.names
        if isinstance(scenario, str) and scenario in names:
            return names.index(scenario)
        if isinstance(scenario, int) and 0 <= scenario < len(names):
            return scenario
        message = f"unknown scenario of this sweep; there are {len(names):,}, by name or number"
        raise InvalidInput([Fault("scenario", scenario, message)])

    def _whole(self, name: str) -> NDArray[np.int64]:
        return read_only(np.array([getattr(one, name) for one in self.results], np.int64))

    def _by_dimension(self, name: str) -> NDArray[np.float64]:
        rows = [getattr(one, name) for one in self.results]
        return read_only(np.array(rows, np.float64).reshape(-1, len(self.cluster.dimensions)))

    def _endangered(self, name: str) -> NDArray[np.int64]:
        pairs = [
            [len(getattr(one, name)) for one in (each.before, each.after)] for each in self.results
        ]
        return read_only(np.array(pairs, np.int64).reshape(-1, 2))
