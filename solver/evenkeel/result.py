"""The result of a solve: its placement, violations, moves and distance to the bounds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, Violation, audit
from evenkeel.measure.bounds import Bounds, goals_reached
from evenkeel.measure.bounds.leaders import LeaderBound, leader_bound
from evenkeel.measure.compare import Comparison, relocations
from evenkeel.measure.costs import CostParts, cost_of
from evenkeel.measure.disks import DiskReport, disk_report, least_price, price_of_moves
from evenkeel.measure.explain import Explanation, explain
from evenkeel.measure.levelness import Levelness, leaders_note, levelness, mean_note
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import regressions
from evenkeel.measure.spending import Spent
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.reading.frames import Backend, Frame
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.selection import partition_index
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.planning.plan import Plan
from evenkeel.planning.throttle import Protocol, Throttle
from evenkeel.result_rows import (
    DiskMove,
    LeaderChange,
    Move,
    Unplaced,
    disk_moves_of,
    leader_changes_of,
    led_elsewhere,
    lost_message,
    lost_partitions,
    moves_of,
    unplaced_of,
    unplaced_replicas,
    waiting_replicas,
)
from evenkeel.verdict import FEWEST_MOVES, Status, target_texts

# other moves, as many of them, might spare some of the leader changes
REPLICAS_STAY = "for where replicas stay"


@dataclass(frozen=True)
class Gap:
    """How far a result may be from the best, as a share of the proven bound; 0 is proven best.

    Bounds are proven of placements that place every replica and break no hard rule, and of
    ``moves`` of those that meet the goals, too. Of other results they prove nothing: that is
    ``inf`` then. ``leaders`` is of the most leaders on a node; ``leader_changes`` of the fewest
    changes for where replicas stay, None unless the goals were reached; ``floor`` is the greatest
    part of its floor that a node lacks.
    """

    moves: float
    level: float
    leaders: float
    cost: float | None = None
    floor: float = 0.0
    fewest_changes: Callable[[], float | None] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def leader_changes(self) -> float | None:
        """Worked out when asked for: it takes longer than the other figures together."""
        return None if self.fewest_changes is None else self.fewest_changes()


@dataclass(frozen=True)
class Proven:
    """A figure of a result beside what is proven of it: of all placements, or of some, if given."""

    name: str
    value: float
    least: float
    gap: float
    term: str
    given: str = ""

    @property
    def reason(self) -> str:
        """By what it is proven, and of which placements, where not of all."""
        return f"{self.term}, {self.given}" if self.given else self.term

    @property
    def figures(self) -> tuple[str, str, str]:
        """What was reached, what is proven, and the gap, as they are written."""
        whole = self.name in ("moves", "cost", "leaders", "leader changes")
        value, least = (f"{x:,.0f}" if whole else f"{x:.4f}" for x in (self.value, self.least))
        known = np.isfinite(self.gap) and not (whole and self.least == 0.0 < self.value)
        return value, least, f"{self.gap:.2%}" if known else "unknown"

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return f"{self.name}: endless capacity leaves no mean to compare with"
        value, least, gap = self.figures
        return f"{self.name} {value} (at least {least} by {self.reason}; gap {gap})"


def gap_of(result: "Result") -> Gap:
    """Work out how far from the proven bounds a result is."""
    bounds, levelness = result.bounds, result.levelness
    above = np.inf
    if result.audit.ok and result.goals_reached:
        above = _over(result.comparison.moves, bounds.moves_level)
    elif result.status == "optimal" and not result.comparison.moves:
        above = 0.0
    cost = None
    if result.cost is not None and bounds.cost is not None:
        cost = _share_above(result.cost.total, bounds.cost.total)
    if not result.audit.ok:
        return Gap(above, np.inf, np.inf, None if cost is None else np.inf, np.inf)
    pairs = zip(levelness.most.tolist(), bounds.level.tolist(), strict=True)
    leaders = int(levelness.leaders.max(initial=0))
    return Gap(
        moves=above,
        level=max((_share_above(most, least) for most, least in pairs), default=0.0),
        leaders=max(0.0, leaders / max(bounds.leaders, 1) - 1.0),
        cost=cost,
        floor=float(_below_floor(result).max(initial=0.0)),
        fewest_changes=partial(_leader_gap, result),
    )


def proven_of(result: "Result", gap: Gap) -> Iterator[Proven]:
    """Yield what a result that breaks no hard rule has reached beside what is proven."""
    bounds, levelness = result.bounds, result.levelness
    if result.cost is not None and bounds.cost is not None and gap.cost is not None:
        least = bounds.cost
        yield Proven("cost", result.cost.total, least.total, gap.cost, least.term)
    elif result.goals_reached and result.goals_asked:
        moves, fewest = result.comparison.moves, bounds.moves_level
        yield Proven("moves", moves, fewest, gap.moves, bounds.moves_term)
        if result.cluster.disks is not None and isinstance(result.goals, Goals):
            price = price_of_moves(result.cluster, result.goals, result.placement)
            least_of_all = least_price(result.cluster, result.goals, fewest)
            term = bounds.moves_term if least_of_all == fewest else "disks to empty"
            gap_here = _share_above(price, least_of_all)
            yield Proven("cost of moves", price, least_of_all, gap_here, term)
    is_known = result.goals_asked and result.comparison.leader_changes > 0
    is_known &= not (result.cluster.placement.flags & Flag.PREFERRED).any()
    if is_known and result.leader_bound is not None:
        changes, fewest = result.comparison.leader_changes, result.leader_bound.changes
        term = result.leader_bound.term
        gap_here = _over(changes, fewest)
        yield Proven("leader changes", changes, fewest, gap_here, term, REPLICAS_STAY)
    for name, loads, value, ratio, term in zip(
        result.cluster.dimensions, levelness.loads.T, levelness.ratio.tolist(),
        bounds.ratio.tolist(), bounds.level_term, strict=True,
    ):  # fmt: skip
        if loads.any():
            yield Proven(f"max/mean of {name}", value, ratio, _share_above(value, ratio), term)
    if bounds.leaders:
        most = int(levelness.leaders.max(initial=0))
        limited = result.limits.leader_changes is not None and most > bounds.leaders
        given = "without the limit on leader changes" if limited else ""
        yield Proven("leaders", most, bounds.leaders, gap.leaders, bounds.leaders_term, given)


def _leader_gap(result: "Result") -> float | None:
    """Return by what share leader changes are above the fewest; None if these are not known."""
    if result.leader_bound is None:
        return None
    return _over(result.comparison.leader_changes, result.leader_bound.changes)


def _below_floor(result: "Result") -> NDArray[np.float64]:
    """Return the part of its floor that each node lacks, (N, D)."""
    floor = result.bounds.floor
    lacks = np.maximum(floor - result.levelness.loads, 0.0)
    return np.divide(lacks, floor, out=np.zeros_like(lacks), where=lacks > ROUNDING * floor)


def _over(count: int, least: int) -> float:
    """Return how many more there are than the fewest, as a share of these."""
    return (count - least) / max(least, 1)


def _share_above(value: float, least: float) -> float:
    """How far a figure is above its bound, as a share of it."""
    if value <= least:
        return 0.0
    return value / least - 1.0 if least > 1e-300 else np.inf


NO_LIMITS = Limits()

# the tables of a result that ``to_frame`` makes frames of
ResultTable = Literal[
    "moves", "disk_moves", "leader_changes", "replicas", "nodes", "unplaced", "violations"
]


@dataclass(frozen=True, eq=False)
class Result(Reported, Shown):
    """What ``solve`` returns, the same for every method.

    Parameters
    ----------
    cluster : Cluster
        The snapshot that came in.
    placement : Placement
        Where replicas should be; ``result.placement.nodes`` is (P, R) int32, by slot.
    method : str
        Name of the method.
    goals : Goals or Cost
        What was asked for.
    status : str
        One of ``STATUS_MEANING``.
    message : str
        The status in a sentence.
    stop_reason : str
        Why the method stopped.
    warnings : tuple of str
        What a person should look into.
    audit : Audit
        Rules that the placement breaks, counted without the strategy's code.
    levelness : Levelness
        Utilisation under the placement.
    comparison : Comparison
        Moves against the placement that came in.
    bounds : Bounds
        Proven lower bounds.
    timings : mapping of str to float
        Seconds per phase: ``bounds``, the method, its parts as ``method.phase``, and ``audit``.
        ``method.load`` is the import of the method and its kernels, which the first solve does.
    work : int
        Candidates looked at.
    seed : int
        The seed.
    native : object
        What only this method returns.
    limits : Limits
        The budgets of moves.
    goals_asked : bool
        Whether the goals bind: they were given, or the method works towards those by default.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> result.status, result.success, result.comparison.moves, result.gap.moves
    ('optimal', True, 2, 0.0)
    """

    cluster: Cluster
    placement: Placement
    method: str
    goals: Goals | Cost
    status: Status
    message: str
    stop_reason: StopReason
    warnings: tuple[str, ...]
    audit: Audit
    levelness: Levelness
    comparison: Comparison
    bounds: Bounds
    timings: Mapping[str, float]
    work: int
    seed: int
    native: Any = None
    limits: Limits = NO_LIMITS
    goals_asked: bool = True

    @property
    def seconds(self) -> float:
        """Seconds in all; those of ``method.phase`` are in the method's already."""
        return float(sum(took for name, took in self.timings.items() if "." not in name))

    @property
    def success(self) -> bool:
        """Whether every replica is placed, every hard rule holds, and the goals are met."""
        return self.status in ("optimal", "feasible")

    @cached_property
    def regressions(self) -> Mapping[str, int]:
        """What the placement breaks that the one that came in did not, by kind.

        A rule that only replicas on dead nodes satisfied did not hold: what is placed elsewhere in
        their stead may break it, as ``place`` or ``min_domains`` where a zone is lost, and is among
        the ``violations`` and not here. Always empty for methods that promise to make nothing
        worse. Those that answer bit for bit as another system does return what that returns, and
        this says what it costs.
        """
        return dict(regressions(self.cluster, self.placement, self.audit).counts)

    @cached_property
    def audit_before(self) -> Audit:
        """Rules that the placement that came in breaks."""
        return audit(self.cluster, self.cluster.placement)

    @cached_property
    def levelness_before(self) -> Levelness:
        """Utilisation under the placement that came in."""
        return levelness(self.cluster, self.cluster.placement)

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Every move against the placement that came in, in order of partition and slot."""
        return moves_of(self.cluster, self.placement, np.flatnonzero(self.comparison.joined))

    @cached_property
    def disk_moves(self) -> tuple[DiskMove, ...]:
        """Every replica that changes its disk on its node, in order of partition and slot."""
        return disk_moves_of(self.cluster, self.placement)

    @cached_property
    def leader_changes(self) -> tuple[LeaderChange, ...]:
        """Every partition that another node leads now."""
        changed = led_elsewhere(self.cluster, self.placement)
        return leader_changes_of(self.cluster, self.placement, changed)

    @cached_property
    def unplaced_replicas(self) -> NDArray[np.int64]:
        """Indices of replicas that are wanted and stand nowhere, or on a node that is not alive.

        As many of each partition as it lacks, although its row may have more slots.
        """
        return unplaced_replicas(self.cluster, self.placement)

    @property
    def lost(self) -> tuple[str, ...]:
        """Partitions of which no replica lived as the cluster came in: placed anew, but empty."""
        names = self.cluster.partitions.names
        return tuple(names[p] for p in lost_partitions(self.cluster).tolist())

    @cached_property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """Every unplaced replica with the rule that keeps it off each class of nodes."""
        loads = self.levelness.loads
        return unplaced_of(self.cluster, self.placement, self.unplaced_replicas, loads, self.spent)

    @property
    def spent(self) -> Spent:
        """The budgets that moves had, and what they took of them."""
        return Spent(self.limits, self.comparison)

    @property
    def violations(self) -> list[Violation]:
        """Rules that the placement breaks, row by row."""
        return self.audit.table()

    @cached_property
    def goals_reached(self) -> bool:
        """Whether every node is within what the goals ask of it; so it is with a ``Cost``."""
        return goals_reached(self.cluster, self.goals, self.placement, self.levelness, self.bounds)

    @property
    def targets(self) -> tuple[str, ...]:
        """What each tolerance of the goals comes to, and what it is counted from, in words.

        Nothing where no goals were asked for.
        """
        asked = self.goals if self.goals_asked else Goals(level=None)
        return tuple(target_texts(self.cluster, asked, self.bounds))

    @property
    def leaders_note(self) -> str:
        """How much less even leaders became, where no goal asks for even ones; else empty."""
        if not self.goals_asked:
            return ""
        return leaders_note(self.levelness_before, self.levelness, self.goals)

    @cached_property
    def disks(self) -> DiskReport | None:
        """What moves inside nodes, and what their disks hold; None for nodes without disks."""
        if self.cluster.disks is None:
            return None
        tolerance = self.goals.disks if isinstance(self.goals, Goals) else None
        return disk_report(self.cluster, self.placement, tolerance)

    @cached_property
    def cost(self) -> CostParts | None:
        """What the placement costs, part by part; None if there is no ``Cost`` to minimise."""
        if not isinstance(self.goals, Cost):
            return None
        return cost_of(self.cluster, self.placement, self.goals)

    @cached_property
    def gap(self) -> Gap:
        """How far from the proven bounds the result is."""
        return gap_of(self)

    @cached_property
    def leader_bound(self) -> LeaderBound | None:
        """Proof of the fewest leader changes that reach the goals where replicas stay as placed.

        None where they were not reached, no leaders are known, or a ``Cost`` was minimised.
        """
        if not (self.audit.ok and self.goals_reached and self.cost is None):
            return None
        if not has_leaders(self.cluster):
            return None
        bound = self.bounds
        return leader_bound(self.cluster, self.placement, bound.target, bound.leader_target)

    @cached_property
    def proven(self) -> tuple[Proven, ...]:
        """What was reached beside what is proven, with the gap and the term that binds.

        Cost first, if there is one; else moves, if the goals were reached; then each dimension; and
        leaders, where some replicas lead. Nothing unless every replica is placed and no hard rule
        broken: what is proven is proven of such placements.
        """
        return tuple(proven_of(self, self.gap)) if self.audit.ok else ()

    @cached_property
    def metrics(self) -> Mapping[str, Any]:
        """The figures of the result by name, plain numbers and tuples only."""
        per_dimension = zip(
            self.cluster.dimensions, self.levelness.most, self.levelness.ratio, strict=True
        )
        return {
            "moves": self.comparison.moves,
            "forced_moves": self.comparison.forced,
            "leader_changes": self.comparison.leader_changes,
            "bytes_moved": self.comparison.bytes_moved,
            "moves_at_least": self.bounds.moves_level,
            "goals_reached": self.goals_reached,
            **({} if self.cost is None else {"cost": self.cost.total}),
            **(
                {}
                if self.disks is None
                else {
                    "disk_moves": self.disks.moves,
                    "disk_moves_at_least": self.disks.moves_at_least,
                    "disk_level": self.disks.level,
                    "disks_over_target": len(self.disks.over_target),
                    "disk_replicas_to_leave": len(self.disks.to_empty),
                    "disks_broken": self.disks.broken,
                }
            ),
            "proven": {
                one.name: {
                    "value": one.value,
                    "at_least": one.least,
                    "gap": one.gap,
                    "term": one.term,
                    **({"given": one.given} if one.given else {}),
                }
                for one in self.proven
            },
            "hard_violations": self.audit.hard,
            "unplaced": len(self.unplaced_replicas),
            "level": {name: float(ratio) for name, _, ratio in per_dimension},
            "most_leaders": int(self.levelness.leaders.max(initial=0)),
            "seconds": self.seconds,
            "work": self.work,
        }

    @known_keywords
    def proved(self, time_limit: float | None = 60.0) -> "Result":
        """Return the same result with bounds lifted as far as a relaxation can; it takes seconds.

        Parameters
        ----------
        time_limit : float or None
            Seconds; None for as long as it takes.

        Returns
        -------
        Result
            With the lifted ``bounds``, their ``certificate``, and the gap to them; its status is
            ``"optimal"`` if they prove it.

        Raises
        ------
        InvalidInput
            If ``time_limit`` is not a number of seconds.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(
        ...     capacity=[[9.0]] * 3, load=[[1.0]] * 9, placement=[[0]] * 5 + [[1]] * 3 + [[2]],
        ...     tags={"x": [True, True, False], "y": [False, True, True]},
        ...     rules=[ek.Rule(require=["+x"]), ek.Rule(require=["+y"])], rule=[0] * 5 + [1] * 4)
        >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
        >>> result.bounds.moves_level, result.proved().bounds.moves_level
        (2, 4)
        """
        from evenkeel.methods.relaxation import relaxation

        lifted = relaxation(self.cluster, self.goals, proven=self.bounds, time_limit=time_limit)
        fewest = self.comparison.moves <= lifted.moves_level
        if (
            self.status == "feasible" and isinstance(self.goals, Goals)
            and self.goals_asked and self.goals_reached and fewest
        ):  # fmt: skip
            return replace(self, bounds=lifted, status="optimal", message=FEWEST_MOVES)
        return replace(self, bounds=lifted)

    @known_keywords
    def plan(
        self, *, throttle: Throttle | None = None, protocol: str | Protocol | None = None
    ) -> Plan:
        """Return the steps that lead from the cluster's placement to this one, safe at every one.

        Parameters
        ----------
        throttle : Throttle, optional
            How much may be under way at once.
        protocol : str or Protocol, optional
            What the system can do; by default that of the system that the cluster was read from.

        Returns
        -------
        Plan
            As ``evenkeel.plan`` makes it.

        Raises
        ------
        InvalidInput
            If the throttle names unknown tiers, or there is no such protocol.
        """
        from evenkeel.planning.planner import plan

        return plan(self.cluster, self, throttle=throttle, protocol=protocol)

    @known_keywords
    def to_frame(self, table: ResultTable = "moves", backend: Backend | None = None) -> Frame:
        """Return one of the tables of this result as a frame.

        Parameters
        ----------
        table : str, optional
            ``"moves"``, ``"disk_moves"`` (inside nodes), ``"leader_changes"``, ``"replicas"``
            (where each is and was), ``"nodes"`` (domains, capacities, loads before and after,
            replicas, leaders), ``"unplaced"`` (what keeps each replica off how many nodes) or
            ``"violations"``.
        backend : str, optional
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; the first of them that is installed.

        Returns
        -------
        frame
            Of that library. Numbers are not copied where it takes arrays as they are.

        Raises
        ------
        InvalidInput
            If there is no such table or library, or narwhals is missing, which makes frames:
            ``pip install 'evenkeel[frames]'``.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
        >>> ek.solve(c, goals=ek.Goals(level=0.0)).to_frame("nodes", "pandas").load_d0.tolist()
        [2.0, 2.0]
        """
        from evenkeel.result_rows import result_frame

        return result_frame(self, table, backend)

    def explain(self, partition: str | int) -> Explanation:
        """Explain one partition: node by node the rule that forbids it, or how full it would be.

        How its replicas get there, and what each step waits for, says
        ``result.plan().explain(partition)``.

        Parameters
        ----------
        partition : str or int
            Its name or index.

        Returns
        -------
        Explanation
            One entry per replica; ``str`` of it is meant to be read.

        Raises
        ------
        InvalidInput
            If there is no such partition.
        """
        partition = partition_index(self.cluster.partitions.names, partition)
        return explain(self.cluster, self.placement, self.levelness.loads, partition, self.spent)

    def __repr__(self) -> str:
        return f"<Result: {self.status}, {self.message}>"

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.status}. {self.message}"]
        compared = self.comparison
        changes = f"{compared.forced:,} forced, leader changes {compared.leader_changes:,}"
        short = "" if self.audit.ok else "; rules are still broken"
        if self.cost is None and self.goals_asked and not (self.goals_reached and self.audit.ok):
            short = short or "; the goals were not reached"
            short += (
                f": the goals take at least {self.bounds.moves_level:,} by {self.bounds.moves_term}"
            )
        inside = f", inside nodes {self.disks.moves:,}" if self.disks is not None else ""
        if beside := relocations(self.cluster.placement, self.placement) - compared.moves:
            inside += f", {beside:,} moved beside another of their partition"
        lines.append(f"  moves {compared.moves:,}{inside}, {changes}{short}")
        before = dict(
            zip(
                (f"max/mean of {name}" for name in self.cluster.dimensions),
                self.levelness_before.ratio,
                strict=True,
            )
        )
        for one in self.proven:
            ratio = before.get(one.name, np.nan)
            was = f", was {ratio:.4f}" if np.isfinite(ratio) else ""
            lines.append(f"  {one}{was}")
        if not self.audit.ok:
            after = zip(before, self.levelness.ratio, strict=True)
            lines += [
                f"  {name} {ratio:.4f}, was {before[name]:.4f}"
                for name, ratio in after
                if np.isfinite(ratio)
            ]
        notes = [mean_note(self.cluster), self.leaders_note]
        lines += [f"  {text}" for text in notes if text]
        lines.extend(f"  goal: {text}" for text in self.targets)
        waiting = waiting_replicas(self.cluster, self.placement)
        broken = self.audit_before.soft, self.audit.soft
        soft = f"soft {broken[0]:,} -> {broken[1]:,}, " if any(broken) else ""
        lines.append(
            f"  hard violations {self.audit_before.hard:,} -> {self.audit.hard:,}, "
            f"{soft}unplaced {len(self.unplaced_replicas):,}"
            + (f", {waiting:,} wait on nodes that are down" if waiting else "")
        )
        lines.extend(f"  {text}" for text in [lost_message(self.cluster)] if text)
        lines.extend(f"  warning: {text}" for text in self.warnings)
        return "\n".join(lines)
