"""The sweep: one scenario after another, what each does to the cluster, and what repairs it."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.levelness import share_of_fair
from evenkeel.measure.survival import Survival, survival
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.logs import tell
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle, check_throttle
from evenkeel.result import Result
from evenkeel.session.changes import Changes
from evenkeel.session.held import HeldCluster
from evenkeel.session.session import session_on
from evenkeel.solving import solve
from evenkeel.strategies.options import Options
from evenkeel.strategies.registry import Loss
from evenkeel.studies.fan_out import fan_out
from evenkeel.studies.outlook import (
    HEADING,
    NOBODY,
    TIMED,
    Outlook,
    Row,
    cells_of,
    harmlessness,
    unknown_outlook,
)
from evenkeel.studies.what_if import Change, WhatIf, changed, read_changes
from evenkeel.verdict import FEWEST_MOVES

logger = logging.getLogger("evenkeel.sweep")

SHOWN = 8
"""Scenarios that ``str`` spells out, worst first."""


class Asked(TypedDict, total=False):
    """What ``solve`` is asked for in every scenario.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> asked: Asked = {"goals": ek.Goals(level=0.5), "seed": 3}
    >>> ek.sweep(c, "node", **asked).asked["seed"]
    3
    """

    goals: Goals | Cost | None
    limits: Limits | None
    options: Options | None
    time_limit: float | None
    work_limit: int | None
    seed: int


class _Study(NamedTuple):
    """What every scenario is played with."""

    held: HeldCluster
    method: str
    asked: Asked
    recovery: Throttle | None = None
    protocol: str | Protocol = "plain"


@dataclass(frozen=True, eq=False)
class Sweep:
    """What comes of S scenarios, in the order in which they were given; D dimensions.

    Parameters
    ----------
    cluster : Cluster
        The snapshot.
    now : Outlook
        The same figures without any scenario.
    changes : tuple of Change
        What happens in each.
    outlooks : tuple of Outlook
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
    now: Outlook
    changes: tuple[Change, ...]
    outlooks: tuple[Outlook, ...]
    method: str
    asked: Asked

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each scenario."""
        return tuple(change.name for change in self.changes)

    @property
    def status(self) -> tuple[str, ...]:
        """Status of each repair, ``"failed"`` or ``"not run"``."""
        return tuple(one.status for one in self.outlooks)

    @property
    def complete(self) -> bool:
        """Whether every scenario was played to its end."""
        return all(one.known for one in self.outlooks)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether everything has its place after the repair, no hard rule broken, (S,) bool."""
        return read_only(np.array([one.fits for one in self.outlooks], bool))

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
        return read_only(np.array([one.bytes_moved for one in self.outlooks], np.float64))

    @property
    def recovery(self) -> NDArray[np.float64]:
        """Seconds that the plan of each repair takes, (S,) float64; NaN unless it was asked."""
        return read_only(np.array([one.recovery for one in self.outlooks], np.float64))

    @property
    def under_replicated(self) -> NDArray[np.float64]:
        """Seconds until no partition is short of live replicas, (S,) float64; inf for never."""
        return read_only(np.array([one.under_replicated for one in self.outlooks], np.float64))

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

    def outlook(self, scenario: str | int) -> Outlook:
        """Return what comes of one scenario.

        Parameters
        ----------
        scenario : str or int
            Its name, or its number from 0 on.

        Returns
        -------
        Outlook
            With the partitions in danger, by index.

        Raises
        ------
        InvalidInput
            If there is no such scenario.
        """
        return self.outlooks[self._at(scenario)]

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
        return tuple(names[p] for p in self.outlook(scenario).before.lost.tolist())

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
        return _repaired(held, self.method, self.asked, self.changes[self._at(scenario)])

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
            for change, one in zip(self.changes, self.outlooks, strict=True)
        ]  # fmt: skip

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

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page about the sweep, in a file that needs no other.

        It holds which scenario hurts how, a matrix where two are lost at once, how long repairs
        take if that was asked, what is lost, and a table that can be searched.

        Parameters
        ----------
        path : str or path
            The file; ``.html`` or ``.htm``.

        Returns
        -------
        Path
            The file that was written.

        Raises
        ------
        InvalidInput
            If the file has another suffix.
        OSError
            If it cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0]] * 4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = ek.sweep(c, "node").report(f"{folder}/out.html")
        ...     "3 scenarios" in page.read_text()
        True
        """
        from evenkeel.view.page.file import check_page, write_page
        from evenkeel.view.page.sweep import sweep_page

        check_page(path)
        return write_page(sweep_page(self), path)

    def __repr__(self) -> str:
        return f"<Sweep: {self._summary()}>"

    def __str__(self) -> str:
        worst = self.worst(SHOWN)
        lines = [self._summary()]
        if not worst:
            return lines[0]
        timed = any(one.recovery is not None for one in worst)
        heads = (*HEADING, *TIMED) if timed else HEADING
        cells = [heads, *(cells_of(one, heads) for one in worst)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for first, *rest in cells:
            numbers = (text.rjust(w) for text, w in zip(rest, widths[1:], strict=True))
            lines.append("  ".join([f"  {first.ljust(widths[0])}", *numbers]))
        left = len(self.outlooks) - len(worst)
        return "\n".join([*lines, *([f"  ... and {left:,} more"] if left else [])])

    def _summary(self) -> str:
        total, fits = len(self.outlooks), int(self.fits.sum())
        said = f"{total:,} scenario{'s' * (total != 1)}, {fits:,} of them fit"
        losing = int((self.lost[:, 0] > 0).sum())
        said += f"; {losing:,} lose partitions" if losing else "; none loses a partition"
        for status in ("failed", "not run"):
            count = self.status.count(status)
            said += f"; {count:,} {status}" if count else ""
        return said

    def _at(self, scenario: str | int) -> int:
        names = self.names
        if isinstance(scenario, str) and scenario in names:
            return names.index(scenario)
        if isinstance(scenario, int) and 0 <= scenario < len(names):
            return scenario
        message = f"unknown scenario of this sweep; there are {len(names):,}, by name or number"
        raise InvalidInput([Fault("scenario", scenario, message)])

    def _whole(self, name: str) -> NDArray[np.int64]:
        return read_only(np.array([getattr(one, name) for one in self.outlooks], np.int64))

    def _by_dimension(self, name: str) -> NDArray[np.float64]:
        rows = [getattr(one, name) for one in self.outlooks]
        return read_only(np.array(rows, np.float64).reshape(-1, len(self.cluster.dimensions)))

    def _endangered(self, name: str) -> NDArray[np.int64]:
        pairs = [
            [len(getattr(one, name)) for one in (each.before, each.after)] for each in self.outlooks
        ]
        return read_only(np.array(pairs, np.int64).reshape(-1, 2))


def sweep(
    cluster: Cluster,
    scenarios: str | WhatIf | Sequence[str | WhatIf],
    executor: Executor | None = None,
    *,
    method: str = "balance",
    callback: Callable[[int, int], object] | None = None,
    recovery: Throttle | None = None,
    protocol: str | Protocol = "plain",
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
    scenarios : str, WhatIf, or a sequence of them
        ``"node"`` loses each node, the name of a tier each of its domains, ``"node pairs"`` or
        ``"rack pairs"`` every two; a ``WhatIf`` is a scenario of one's own.
    executor : concurrent.futures.Executor, optional
        Who does it, the calling thread by default; answers and their order are the same whoever it
        is. Threads share the cluster, and wait for each other's Python only: most of what is solved
        for a small cluster, little else. A process reads the cluster once, and starts in a second;
        Dask's workers (``client.get_executor()``) are sent it once, each.
    method : str, optional
        Who repairs.
    callback : callable, optional
        Told how many scenarios are done, and of how many; raising StopIteration ends the sweep.
    recovery : Throttle, optional
        Under which each repair is planned too, for ``recovery`` and ``under_replicated``: how long
        it takes, and how long anything is short of live replicas.
    protocol : str or Protocol, optional
        What the system can do, for those plans.
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
    ...     print(ek.sweep(cluster, ["node", ek.WhatIf("Monday", load=2.0)], threads))
    4 scenarios, 3 of them fit; none loses a partition
      scenario      status  broken  lost  quorum  short   level  fullest  moves
      Monday    infeasible       2     0       0      0  1.1250   150.0%      0
      ...
    """
    faults = FaultList()
    if not isinstance(cluster, Cluster):
        faults.add("cluster", type(cluster).__name__, "must be a Cluster")
        faults.raise_if_any()
    changes = read_changes(faults, cluster, scenarios)
    if executor is not None and not isinstance(executor, Executor):
        faults.add("executor", executor, "must be a concurrent.futures.Executor")
    if callback is not None and not callable(callback):
        faults.add("callback", callback, "must be callable")
    held = _protocol(faults, protocol)
    if recovery is not None:
        check_throttle(faults, cluster, recovery)
    # what was counted of the caller's own placement need not travel
    own = cluster.with_placement(replace(cluster.placement))
    study = _Study(HeldCluster(own), method, asked, recovery, held)
    try:
        now = _outlook(
            study._replace(recovery=None) if faults else study, Change("now", NOBODY, NOBODY)
        )
    except InvalidInput as error:
        faults.faults += error.faults
    faults.raise_if_any()
    began = time.perf_counter()
    tell(logger, "sweeping", scenarios=len(changes), method=method, seed=asked.get("seed", 0))
    answers = fan_out(_outlook, study, changes, executor, callback)
    outlooks = tuple(
        unknown_outlook(cluster, one) if not isinstance(one, Outlook) else one for one in answers
    )
    found = Sweep(cluster, now, tuple(changes), outlooks, method, asked)
    tell(
        logger, "swept", scenarios=len(changes),
        done=sum(one.status != "not run" for one in outlooks),
        failed=sum(one.status == "failed" for one in outlooks), fit=int(found.fits.sum()),
        stop_reason="done" if found.complete else "interrupted",
        seconds=time.perf_counter() - began,
    )  # fmt: skip
    return found


def _protocol(faults: FaultList, given: str | Protocol) -> Protocol:
    try:
        return given if isinstance(given, Protocol) else Protocol.named(given)
    except InvalidInput as error:
        faults.faults += error.faults
        return Protocol("plain")


def _is_loss(asked: Asked, change: Change) -> bool:
    """Whether nothing happens but that nodes are lost, and no budget is to be kept."""
    alone = len(change.lost) > 0 and len(change.back) == 0 and change.factor is None
    return alone and asked.get("limits") in (None, Limits())


def _repaired(held: HeldCluster, method: str, asked: Asked, change: Change) -> Result:
    if _is_loss(asked, change):
        return session_on(held).apply(Changes(down=change.lost)).solve(method, **asked)
    return solve(changed(held.cluster, change), method, **asked)


def _outlook(study: _Study, change: Change) -> Outlook:
    """Play one scenario."""
    if study.recovery is None and _is_loss(study.asked, change):
        goals = study.asked.get("goals") or Goals()
        loss = study.held.lose(study.method, change.lost, goals)
        if loss is not None:
            return _after_loss(study.held.cluster, loss)
        result = solve(changed(study.held.cluster, change), study.method, **study.asked)
    else:
        result = _repaired(study.held, study.method, study.asked, change)
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt  # the method ended early and well, but the sweep is to end too
    before = survival(result.cluster, result.cluster.placement)
    after = survival(result.cluster, result.placement)
    way = None
    if study.recovery is not None:
        way = result.plan(throttle=study.recovery, protocol=study.protocol)
    return Outlook(
        status=result.status,
        message=result.message,
        hard=result.audit.hard,
        level=result.levelness.ratio,
        fullest=result.levelness.most,
        moves=result.comparison.moves,
        moves_at_least=result.bounds.moves_level,
        leader_changes=result.comparison.leader_changes,
        bytes_moved=result.comparison.bytes_moved,
        before=before,
        after=replace(after, lost=np.union1d(before.lost, after.lost)),
        recovery=None if way is None else way.makespan,
        under_replicated=None if way is None else way.short_for,
    )


def _after_loss(cluster: Cluster, loss: Loss) -> Outlook:
    """Tell what becomes of a loss that took no search: all has its place, and no rule is broken."""
    before = Survival(*map(read_only, (loss.lost, loss.under_min_active, loss.without_quorum)))
    moved, at = len(loss.replica), cluster.bytes_dimension
    return Outlook(
        status="optimal",
        message=FEWEST_MOVES,
        hard=0,
        level=read_only(share_of_fair(loss.most, loss.fair)),
        fullest=read_only(loss.most),
        moves=moved,
        moves_at_least=moved,
        leader_changes=0,
        bytes_moved=float(loss.moved[at]) if at >= 0 else 0.0,
        before=before,
        after=Survival(before.lost, NOBODY, NOBODY),
    )
