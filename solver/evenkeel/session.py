"""Session: keep a cluster compiled between changes, and solve it again incrementally."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from threading import Lock, RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, misplaced_in_rows
from evenkeel.measure.bounds import bounds, bounds_of_levels
from evenkeel.measure.compare import compare_losses
from evenkeel.measure.levelness import levelness
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import Loss, LossSeries, ReadyCluster, Request
from evenkeel.methods.options import Options
from evenkeel.methods.registry import Method, MethodName, find
from evenkeel.methods.run import checked
from evenkeel.methods.shared.stopping import LIMITS_REACHED, Callback, Progress, Watch
from evenkeel.model.changes import ARGUMENTS, STATES, Changes, listed
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.intake.consistency import vouch_for
from evenkeel.model.limits import Limits
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.selection import find_nodes
from evenkeel.result import Result
from evenkeel.solving import Stopwatch, log_solved, solve
from evenkeel.verdict import FEWEST_MOVES, GOALS_MET, Verdict, budgets_used_up, still_broken


class HeldCluster:
    """A cluster, and how each method that can holds it ready; threads may ask side by side."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ready: dict[str, ReadyCluster | None] = {}
        self._compiling = Lock()

    def changed(self, cluster: Cluster) -> HeldCluster:
        """Return another cluster, held ready by the methods that were asked about this one."""
        made = HeldCluster(cluster)
        for method in [*self._ready]:
            made.prepare(method)
        return made

    def prepare(self, method: str) -> None:
        """Compile now instead of at the first loss."""
        self._held_ready(method)

    def is_prepared(self, method: str) -> bool:
        """Return whether a loss, of no node even, is answered without compiling anything."""
        return self._ready.get(method) is not None

    def lose(
        self,
        method: str,
        nodes: NDArray[np.int32],
        goals: Goals | Cost,
        limits: Limits | None = None,
    ) -> Loss | None:
        """Lose nodes, each named once; None if the method has to solve the snapshot."""
        ready = self._held_ready(method)
        return None if ready is None else ready.lose(nodes, goals, limits)

    def lose_each(
        self, method: str, losses: Sequence[NDArray[np.int32]], goals: Goals | Cost
    ) -> LossSeries | None:
        """Find how the first of several losses end, as ``ReadyCluster.lose_each`` does."""
        ready = self._held_ready(method)
        return None if ready is None else ready.lose_each(losses, goals)

    def _held_ready(self, method: str) -> ReadyCluster | None:
        if method not in self._ready:
            with self._compiling:  # once, though several threads ask
                if method not in self._ready:
                    hold = find(method).holder()
                    self._ready[method] = (
                        None
                        if hold is None or self.cluster.disks is not None
                        else hold(self.cluster)
                    )
        return self._ready[method]

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldCluster, (self.cluster,)


class Session:
    """A cluster held ready: changes go in, audited answers come out.

    ``solve`` answers what ``evenkeel.solve`` answers of the same snapshot, with the same promises:
    every rule audited, bounds that hold, and no more moves than a solve makes from there. What
    follows from the cluster alone is worked out once. Where nodes are lost from a cluster in which
    nothing is wrong, ``balance`` looks at nothing but what stood on them, as long as that gives an
    answer that is proven to be the best; else, and for all other changes and methods, the snapshot
    is solved.

    An answer is a proposal: the session keeps its placement until ``apply`` reports that replicas
    have moved, by ``Changes(placement=result.placement)``.

    Threads may share a session: changes are made one after the other, none is lost, and each answer
    is of the cluster as it was between two of them, when ``solve`` was called.

    Parameters
    ----------
    cluster : Cluster
        To begin with; it is not changed.

    Raises
    ------
    InvalidInput
        If it is no cluster.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 4, load=[[1.0]] * 6, placement=[[0, 1], [1, 2], [2, 3]] * 2
    ... )
    >>> session = ek.Session(cluster)
    >>> result = session.apply(ek.Changes(down="n0")).solve(goals=ek.Goals(level=0.5))
    >>> result.status, result.comparison.moves, result.audit.hard
    ('optimal', 2, 0)
    >>> bool(session.cluster.nodes.alive[0]), bool(cluster.nodes.alive[0])
    (False, True)
    """

    def __init__(self, cluster: Cluster) -> None:
        require_cluster(cluster)
        self._begin(HeldCluster(cluster), np.zeros(0, np.int32), cluster)

    def _begin(self, held: HeldCluster, lost: NDArray[np.int32], now: Cluster | None) -> None:
        """Be on a cluster of which some nodes are lost; ``now`` is made of it when asked for."""
        self._held, self._lost, self._now = held, lost, now
        self._changing = RLock()

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is now: a snapshot that ``evenkeel.solve`` takes."""
        with self._changing:
            if self._now is None:
                self._now = _without(self._held.cluster, self._lost)
            return self._now

    def apply(self, changes: Changes) -> Session:
        """Let something happen to the cluster.

        Once nodes were lost, this makes ready for the next loss, so that no answer waits for it.

        Parameters
        ----------
        changes : Changes
            All that happens at once.

        Returns
        -------
        Session
            This one.

        Raises
        ------
        InvalidInput
            Naming every problem, with its path and value; the session is as it was then.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=2)
        >>> session = ek.Session(c)
        >>> session.apply(ek.Changes(down=["n7"], up=["+ssd"]))
        Traceback (most recent call last):
        evenkeel.model.errors.InvalidInput: 2 problems with the input:
          down[0]: is neither a node nor an expression such as 'rack=r7'... (got 'n7')
          up[0]: no node carries the tag 'ssd'; known: none (got '+ssd')
        """
        if not isinstance(changes, Changes):
            kind = type(changes).__name__
            raise InvalidInput([Fault("changes", kind, "must be evenkeel.Changes")])
        with self._changing:
            held, more, named = self._held, np.zeros(0, np.int32), changes.named
            apart = "down" in named and named <= {"down", "load_factor", *ARGUMENTS}
            if apart:
                faults, at = FaultList(), held.cluster
                more = find_nodes(faults, "down", at.nodes, at.topology, listed(changes.down))
                if faults:
                    self.cluster.apply(changes)  # for all that is wrong
                    faults.raise_if_any()
            if named == {"down"}:
                more = np.union1d(self._lost, more).astype(np.int32)
            elif named:
                rest = replace(changes, down=()) if apart else changes
                held = held.changed(self.cluster.apply(rest))
            else:
                return self
            self._held, self._lost, self._now = held, more, None
        return self

    @known_keywords
    def solve(
        self,
        method: MethodName = "balance",
        *,
        goals: Goals | Cost | None = None,
        limits: Limits | None = None,
        options: Options | None = None,
        time_limit: float | None = None,
        work_limit: int | None = None,
        seed: int = 0,
        callback: Callback | None = None,
    ) -> Result:
        """Decide where replicas live, now.

        Parameters
        ----------
        method, goals, limits, options, time_limit, work_limit, seed
            As ``evenkeel.solve`` takes them.
        callback : callable, optional
            Called with the ``Progress`` between slices of work, and at the beginning and the end of
            what takes no search; raising StopIteration stops, as with ``evenkeel.solve``.

        Returns
        -------
        Result
            As ``evenkeel.solve`` returns it. Where nodes were lost and nothing else happened, its
            audit judges each row that lost a replica, and every node, anew, and takes over that all
            other rows are sound; ``evenkeel.measure.audit.audit`` counts the same of the result.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, as with ``evenkeel.solve``.
        """
        with self._changing:
            held, lost, cluster = self._held, self._lost, self.cluster
        if len(lost) or held.is_prepared(method):
            clock, chosen = Stopwatch(), find(method)
            watch = Watch(time_limit, work_limit, callback)
            request = checked(
                chosen, cluster, goals=goals, limits=limits, options=options, watch=watch, seed=seed
            )
            with watch.in_phase(PHASE):
                stop = watch.look()
            if stop == "interrupted":
                callback = _stop_at_once
            elif loss := held.lose(method, lost, request.goals, request.limits):
                return answered(chosen, request, loss, clock)
        return solve(
            cluster, method, goals=goals, limits=limits, options=options,
            time_limit=time_limit, work_limit=work_limit, seed=seed, callback=callback,
        )  # fmt: skip

    def fork(self) -> Session:
        """Return a session that is where this one is, and goes its own way from here.

        Both share all that neither has changed; forks may be used side by side in threads.
        """
        other = object.__new__(Session)
        with self._changing:
            other._begin(self._held, self._lost, self._now)
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self._changing:
            return {"cluster": self._held.cluster, "lost": self._lost}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(HeldCluster(state["cluster"]), state["lost"], None)

    def __repr__(self) -> str:
        return f"<Session: {self.cluster!r}>"


def session_on(held: HeldCluster) -> Session:
    """Return a session at its beginning on a cluster that others hold, too."""
    made = object.__new__(Session)
    made._begin(held, np.zeros(0, np.int32), held.cluster)
    return made


def _stop_at_once(progress: Progress) -> None:
    """Stop a search that was asked to stop before it began."""
    raise StopIteration


def _without(cluster: Cluster, lost: NDArray[np.int32]) -> Cluster:
    """Return a cluster of which some nodes are dead; all that is counted by rows is shared."""
    if len(lost) == 0:
        return cluster
    stays = np.ones(len(cluster.nodes), bool)
    stays[lost] = False
    placement = copy.copy(cluster.placement)
    flags: dict[str, Any] = {
        name: read_only(getattr(cluster.nodes, name) & stays) for name in STATES["down"]
    }
    nodes = replace(cluster.nodes, **flags)
    parts = {**cluster.__dict__, "nodes": nodes, "placement": placement}
    vouch_for(parts)
    return replace(cluster, nodes=nodes, placement=placement)


PHASE = "losses"  # that callbacks receive


class ResultOfLoss(Result):
    """A result that computes its measures on first use; the verdict needs none."""

    _measures: Mapping[str, Callable[[], Any]]

    def __getattr__(self, name: str) -> Any:
        measures = self.__dict__.get("_measures", {})
        if name not in measures:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__[name] = found = measures[name]()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, tuple(getattr(self, one.name) for one in fields(Result))


def answered(chosen: Method, request: Request, loss: Loss, clock: Stopwatch) -> Result:
    """Hand out where the replicas of lost nodes go."""
    cluster, goals, before = request.cluster, request.goals, request.cluster.placement
    assert isinstance(goals, Goals)
    lost = len(loss.replica) - loss.gave_way
    node, leader = before.node.copy(), before.leader.copy()
    node[loss.replica] = loss.node
    leader[before.owner[loss.replica]] = loss.slot
    placement = before.replaced(node, leader)
    PlacementCounts.of(cluster, placement).take_over(loss.loads, loss.replicas, loss.leaders)
    went, broken = loss.replica, Audit(cluster, ())
    if loss.waits:
        stays = loss.node == before.node[went]
        broken = Audit(cluster, tuple(misplaced_in_rows(cluster, placement, went[stays])))
        went = went[~stays]
    measures: dict[str, Callable[[], Any]] = {
        "levelness": partial(levelness, cluster, placement),
        "comparison": partial(compare_losses, cluster, placement, went, loss.moved, lost),
        "bounds": partial(bounds_of_levels, cluster, goals, lost),
    }
    if loss.waits:
        measures["bounds"] = partial(bounds, cluster, goals)
        proven = None if loss.fits else bounds_of_levels(cluster, goals)
        compared = measures["comparison"]()
        measures["comparison"] = lambda: compared
        used_up = budgets_used_up(cluster, request.limits, compared, placement.node)
        judgement = still_broken(cluster, proven, broken, LIMITS_REACHED, "limits", used_up)
    elif loss.gave_way:
        judgement = Verdict("feasible", GOALS_MET, "tolerance")
    else:
        judgement = Verdict("optimal", FEWEST_MOVES, "tolerance")
    clock.lap(chosen.name)
    moves, watch = len(went), request.watch
    with watch.in_phase(PHASE):
        stop = watch.look(moves, moves)
    if stop == "interrupted":
        judgement = judgement._replace(stop_reason="interrupted")
    log_solved(chosen, judgement, clock, moves=moves, leader_changes=0, work=moves)
    made = object.__new__(ResultOfLoss)
    made.__dict__.update(
        **judgement._asdict(),
        cluster=cluster,
        placement=placement,
        method=chosen.name,
        goals=goals,
        warnings=(),
        audit=broken,
        timings=clock.laps,
        work=moves,
        seed=request.seed,
        limits=request.limits,
        _measures=measures,
    )
    return made
