"""The sweep: one scenario after another, what each does to the cluster, and what repairs it."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.registry import MethodName, find
from evenkeel.model.changes import Changes
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.frames import Backend, Frame
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import check_whole
from evenkeel.model.runtime.logs import log_event
from evenkeel.model.runtime.printable import counted
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.model.runtime.table import Table
from evenkeel.planning.throttle import Protocol, Throttle, check_throttle
from evenkeel.result import Result
from evenkeel.session import HeldCluster
from evenkeel.studies.fan_out import Failure, fan_out
from evenkeel.studies.scenario import (
    Asked,
    Row,
    ScenarioResult,
    Study,
    harmlessness,
    loss_results,
    read_scenarios,
    repaired,
    result_now,
    result_of,
    scenario_table,
    unknown_result,
)

SHOWN = 8  # scenarios that ``str`` spells out, worst first
DANGERS = {  # what a scenario may leave partitions in
    "lost": "lost",
    "without_quorum": "without a majority of voters",
    "under_min_active": "short of min-active",
}


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
        """Return the partitions that a scenario leaves without a live replica, by name."""
        names = self.cluster.partitions.names
        return tuple(names[p] for p in self.scenario(scenario).before.lost.tolist())

    def result(self, scenario: str | int) -> Result:
        """Repair one scenario again, for the placement and all else that a sweep does not keep.

        A session gives the same bits as in the sweep, unless a time limit cut it short.
        """
        held = HeldCluster(self.cluster)
        return repaired(held, self.method, self.asked, self.changes[self._at(scenario)])

    def rows(self) -> list[Row]:
        """Return a row for each scenario, in their order, as a table takes them."""
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
        """How many scenarios fit with nothing lost, and the most partitions that one endangers."""
        known = np.array([one.known for one in self.results], bool)
        loses, fits = self.lost[:, 0] > 0, self.fits
        counts = [f"{int((fits & ~loses).sum()):,} fit with nothing lost"]
        for count, what in (
            (int(loses.sum()), "with partitions lost"),
            (int((known & ~fits & ~loses).sum()), "unfit with nothing lost"),
            *((self.status.count(status), status) for status in ("failed", "not run")),
        ):
            counts += [f"{count:,} {what}"] if count else []
        dangers = list[str]()
        for name, what in DANGERS.items():
            before = self._endangered(name)[:, 0]
            if most := int(before.max(initial=0)):
                many = f"{most:,}" if dangers else counted(most, "partition")
                dangers.append(f"{many} {what} ({self.names[int(before.argmax())]})")
        text = f"{counted(len(self.results), 'scenario')}: {', '.join(counts)}"
        return f"{text}; at worst {', '.join(dangers)}" if dangers else text

    @known_keywords
    def worst(self, count: int = 1) -> list[Row]:
        """Return the worst scenarios, the worst first.

        Failed ones come first, then those that lose most, break most, leave most without a quorum
        or short of replicas, fill a node most and take most moves; those not run come last.
        """
        faults = FaultList()
        check_whole(faults, "count", count)
        faults.raise_if_any()
        return sorted(self.rows(), key=harmlessness)[:count]

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


logger = logging.getLogger("evenkeel.sweep")


def sweep(
    cluster: Cluster,
    scenarios: str | Changes | Sequence[str | Changes],
    executor: Executor | None = None,
    *,
    method: MethodName = "balance",
    callback: Callable[[int, int], object] | None = None,
    recovery: Throttle | None = None,
    protocol: str | Protocol | None = None,
    **asked: Unpack[Asked],
) -> Sweep:
    """Ask of many scenarios what each would do to a cluster, and what would repair it.

    Every scenario starts from the cluster as it is; its repair is what a session answers, audited:
    where nodes are lost and nothing is wrong before, what they held goes elsewhere, if that is
    proven to be the best, and else the scenario is solved.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    scenarios : str, Changes, or a sequence of them
        ``"node"`` loses each node, the name of a tier each of its domains, ``"node pairs"`` or
        ``"rack pairs"`` every two; ``Changes`` are a scenario of one's own, of the same partitions.
    executor : concurrent.futures.Executor, optional
        Executor, the calling thread by default; answers and their order are the same whichever it
        is. Threads share the cluster, and wait for each other's Python only: little of a loss that
        takes no search, most of what is solved for a small cluster. A process reads the cluster
        once, and starts in a second; Dask's workers (``client.get_executor()``) receive it with
        every batch.
    method : str, optional
        Who repairs.
    callback : callable, optional
        Receives how many scenarios are done, and of how many; raising StopIteration ends the sweep.
    recovery : Throttle, optional
        Under which each repair is planned too, for ``recovery`` and ``under_replicated``: how long
        it takes, and how long anything is short of live replicas.
    protocol : str or Protocol, optional
        What the system can do, for those plans; by default that of the system that the cluster was
        read from.
    **asked : Asked
        ``goals``, ``limits``, ``options``, ``time_limit``, ``work_limit`` and ``seed`` as ``solve``
        takes them, for every scenario; the time limit is for each by itself.

    Returns
    -------
    Sweep
        Of all scenarios. One that cannot be solved is ``"failed"`` and says why; Ctrl-C and the
        callback leave the rest ``"not run"``.

    Raises
    ------
    InvalidInput
        If an argument cannot be used; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1], [1, 2], [2, 0], [0, 1]]
    ... )
    >>> with ThreadPoolExecutor(2) as threads:
    ...     print(ek.sweep(cluster, ["node", ek.Changes(load_factor=2.0)], threads))
    4 scenarios: 3 fit ...; at worst 3 partitions without a majority of voters (node n0)
      scenario  status      broken  lost  quorum  short  max/mean  fullest  moves
      load x 2  infeasible       2     0       0      0    1.1250   150.0%      0
      ...
    """
    require_cluster(cluster)
    find(method)
    faults = FaultList()
    changes = read_scenarios(faults, cluster, scenarios)
    if executor is not None and not isinstance(executor, Executor):
        faults.add("executor", executor, "must be a concurrent.futures.Executor")
    if callback is not None and not callable(callback):
        faults.add("callback", callback, "must be callable")
    held = _protocol(faults, protocol)
    if isinstance(recovery, Throttle):
        check_throttle(faults, cluster, recovery)
    elif recovery is not None:
        faults.add("recovery", recovery, "must be a Throttle")
    # what was counted of the caller's own placement need not travel
    own = cluster.with_placement(replace(cluster.placement))
    study = Study(HeldCluster(own), method, asked, recovery, held)
    try:
        now = result_now(study._replace(recovery=None) if faults else study, changes)
    except InvalidInput as error:
        faults.take(error, "")
    faults.raise_if_any()
    return replace(play(study, now, changes, executor, callback), cluster=cluster)


def play(
    study: Study,
    now: ScenarioResult,
    changes: Sequence[Changes],
    executor: Executor | None = None,
    callback: Callable[[int, int], object] | None = None,
    ends: Callable[[ScenarioResult | Failure | None], bool] = lambda _: False,
) -> Sweep:
    """Play one scenario after another, until one ``ends`` it."""
    cluster, method, asked = study.held.cluster, study.method, study.asked
    began = time.perf_counter()
    log_event(logger, "sweeping", scenarios=len(changes), method=method, seed=asked.get("seed", 0))
    answers = fan_out(result_of, study, changes, executor, callback, loss_results, ends)
    results = tuple(
        unknown_result(cluster, one) if not isinstance(one, ScenarioResult) else one
        for one in answers
    )
    found = Sweep(cluster, now, tuple(changes), results, method, asked)
    log_event(
        logger, "swept", scenarios=len(changes),
        done=sum(one.status != "not run" for one in results),
        failed=sum(one.status == "failed" for one in results), fit=int(found.fits.sum()),
        stop_reason="done" if found.complete else "interrupted",
        seconds=time.perf_counter() - began,
    )  # fmt: skip
    return found


def _protocol(faults: FaultList, given: str | Protocol | None) -> Protocol | None:
    try:
        return Protocol.named(given) if isinstance(given, str) else given
    except InvalidInput as error:
        faults.take(error, "")
        return None
