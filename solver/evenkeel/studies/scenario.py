"""Evaluate one scenario: its effect on a cluster, and the moves that repair it."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, takewhile
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import broken_limits
from evenkeel.measure.levelness import share_of_fair
from evenkeel.measure.rows import at_node, replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import LossSeries
from evenkeel.methods.options import Options
from evenkeel.methods.registry import MethodName
from evenkeel.model.changes import Changes, changed_parts, listed, parts_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import items_of, read_only
from evenkeel.model.reading.selection import find_nodes
from evenkeel.model.runtime.figures import amount, duration, number, percent
from evenkeel.model.runtime.table import Column, Table
from evenkeel.model.topology import NODE_TIER
from evenkeel.planning.throttle import Protocol, Throttle
from evenkeel.result import Result
from evenkeel.session import HeldCluster, session_on
from evenkeel.solving import solve
from evenkeel.studies.fan_out import Failure
from evenkeel.verdict import FEWEST_MOVES, GOALS_MET, Status

NO_PARTITIONS = read_only(np.zeros(0, np.int32))
# fields of arrays, and fields of lists of partitions
LEVELS, SURVIVALS = ("level", "fullest"), ("before", "after")


@dataclass(frozen=True, eq=False)
class Survival:
    """Partitions in danger, by index and ascending; every array is read-only.

    Partitions that want no replicas are in none.

    Parameters
    ----------
    lost : ndarray of int32, shape (n,)
        Partitions that have replicas, none of them on a live node.
    under_min_active : ndarray of int32, shape (n,)
        Partitions with fewer live replicas than ``min_active``, lost ones included.
    without_quorum : ndarray of int32, shape (n,)
        Partitions of whose voters no majority lives, lost ones included where they had voters.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> found = ek.sweep(c, "node").scenario("node n0").before
    >>> found.lost.tolist(), found.without_quorum.tolist()
    ([], [0, 1])
    """

    lost: NDArray[np.int32]
    under_min_active: NDArray[np.int32]
    without_quorum: NDArray[np.int32]


def survival(cluster: Cluster, placement: Placement) -> Survival:
    """Find the partitions that the state of the nodes puts in danger."""
    # a quorum is a majority of the voters that are placed, wherever they are; learners and
    # non-voters count for none
    lives = cluster.nodes.serves
    placed = PlacementCounts.of(cluster, placement)
    parts = cluster.partitions
    # whatever has no replica on a dead node lives as a whole
    hit = np.zeros(0, np.intp)
    if placed.replicas[~lives].any():
        hit = np.unique(placed.partition(placed.where(~lives)))
        hit = hit[parts.replicas[hit] > 0]
    replicas, which = replicas_of(placement, hit)
    node = placement.node[replicas]
    live, votes = at_node(lives, node), (placement.role[replicas] == Role.VOTER) & (node >= 0)
    having, voters, live_voters = (
        np.bincount(which[flag], minlength=len(hit)) for flag in (live, votes, live & votes)
    )
    short = hit[:0]
    if parts.min_active.any():
        lacking = placed.per_partition(lives) < parts.min_active
        short = np.flatnonzero(lacking & (parts.replicas > 0))
    return Survival(
        lost=read_only(hit[having == 0].astype(np.int32)),
        under_min_active=read_only(short.astype(np.int32)),
        without_quorum=read_only(hit[(voters > 0) & (2 * live_voters <= voters)].astype(np.int32)),
    )


NOTHING_KNOWN = Survival(NO_PARTITIONS, NO_PARTITIONS, NO_PARTITIONS)


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

SWEPT = {  # what the columns of scenarios are, by their short heads
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
        Column("max/mean", values("level"), number),
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


PAIRS = " pairs"  # what follows the name of a tier to lose two of its domains at once
# what a placement counts when it is first asked, whatever the state of the nodes
COUNTED_ONCE = ("slots", "owner", "leader_replica", "leader_node")

# what is counted by node, whatever the state of the nodes
STANDING_ONCE = ("node_row", "replicas", "leaders", "loads")

# changes that no scenario may make: partitions are compared with those of the cluster
COMPARED = ("drop", "partitions")


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


class Study(NamedTuple):
    """What every scenario is played with."""

    held: HeldCluster
    method: MethodName
    asked: Asked
    recovery: Throttle | None = None
    protocol: str | Protocol | None = None


def read_scenarios(
    faults: FaultList, cluster: Cluster, scenarios: str | Changes | Sequence[str | Changes]
) -> list[Changes]:
    """Return what happens in each scenario, with a name; nodes that are lost are numbers."""
    if isinstance(scenarios, str | Changes):
        scenarios = [scenarios]
    found: list[Changes] = []
    for i, one in enumerate(items_of(faults, "scenarios", scenarios)):
        path = f"scenarios[{i}]"
        if isinstance(one, str):
            found += _losses(faults, path, cluster, one)
        elif isinstance(one, Changes):
            found.append(_scenario(faults, path, cluster, one))
        else:
            faults.add(path, one, "must be evenkeel.Changes, or the name of a tier")
    seen: set[str] = set()
    for change in found:
        if change.name in seen:
            faults.add("scenarios", change.name, "is the name of two scenarios")
        seen.add(change.name)
    return found


def _scenario(faults: FaultList, path: str, cluster: Cluster, given: Changes) -> Changes:
    """Return a scenario with its name; note what is wrong with it."""
    inside, named, down = FaultList(), given.named, given.down
    for name in sorted(named.intersection(COMPARED)):
        inside.add(name, getattr(given, name), "is not for a scenario: partitions are compared")
    if named == {"down"} and isinstance(given.name, str):
        down = find_nodes(inside, "down", cluster.nodes, cluster.topology, listed(given.down))
    else:
        changed_parts(inside, parts_of(cluster), given)
    faults.take(inside, f"{path}.")
    return replace(given, name=path) if inside else replace(given, name=given.describe(), down=down)


def _losses(faults: FaultList, path: str, cluster: Cluster, text: str) -> Iterator[Changes]:
    """Yield losses of each domain of a tier, or of every two, without those that hold nothing."""
    topology = cluster.topology
    tiers = dict.fromkeys([*topology.tiers, NODE_TIER])
    tier = text if text in tiers else text.removesuffix(PAIRS)
    if tier not in tiers:
        faults.add(path, text, f"unknown tier; tiers, alone or with 'pairs', are {[*tiers]}")
        return
    row = topology.tier_index(tier)
    domain = np.where(cluster.nodes.carries, topology.domain_with_nodes[row], -1)
    names = cluster.nodes.names
    order = np.argsort(domain, kind="stable").astype(np.int32)
    found, start = np.unique(domain[order], return_index=True)
    members = {
        names[d] if row == len(topology) else topology.domain_name(row, d): held
        for d, held in zip(found.tolist(), np.split(order, start)[1:], strict=True)
        if d >= 0
    }
    for several in combinations(members, 1 if tier == text else 2):
        lost = np.concatenate([members[one] for one in several])
        yield Changes(name=f"{tier} {' + '.join(several)}", down=lost)


def changed(cluster: Cluster, change: Changes) -> Cluster:
    """Return the cluster that would be; what is counted whatever changes is counted once."""
    for name in COUNTED_ONCE:
        getattr(cluster.placement, name)
    standing = PlacementCounts.of(cluster, cluster.placement)
    for name in STANDING_ONCE:
        getattr(standing, name)
    broken_limits(standing)
    # a placement also keeps what was counted of it for one cluster, so that each needs its own
    return cluster.with_placement(copy.copy(cluster.placement)).apply(change)


def is_loss(asked: Asked, change: Changes) -> bool:
    """Whether nothing happens but that nodes are lost, and no budget is to be kept."""
    limits = asked.get("limits")
    free = limits is None or (isinstance(limits, Limits) and limits == Limits())
    return free and change.named == {"down"}


def repaired(held: HeldCluster, method: MethodName, asked: Asked, change: Changes) -> Result:
    """Return what the method makes of a changed cluster; losses alone are the session's."""
    if is_loss(asked, change):
        return session_on(held).apply(change).solve(method, **asked)
    return solve(changed(held.cluster, change), method, **asked)


def result_of(study: Study, change: Changes) -> ScenarioResult:
    """Play one scenario that ``loss_results`` has no answer to."""
    if study.recovery is None:
        result = solve(changed(study.held.cluster, change), study.method, **study.asked)
    else:
        result = repaired(study.held, study.method, study.asked, change)
    return _result_of(study, result)


def result_now(study: Study, changes: Sequence[Changes]) -> ScenarioResult:
    """Tell of the cluster as it is, before any of ``changes``."""
    if any(is_loss(study.asked, change) for change in changes):
        study.held.prepare(study.method)
    return _result_of(study, session_on(study.held).solve(study.method, **study.asked))


def _result_of(study: Study, result: Result) -> ScenarioResult:
    """Tell what comes of a scenario by its repair, planned if the study says how fast it may be."""
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt  # the method ended early and well, but the sweep is to end too
    before = survival(result.cluster, result.cluster.placement)
    after = survival(result.cluster, result.placement)
    way = None
    if study.recovery is not None:
        way = result.plan(throttle=study.recovery, protocol=study.protocol)
    return ScenarioResult(
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


def loss_results(study: Study, changes: Sequence[Changes]) -> list[ScenarioResult | None]:
    """Play the first scenarios, one at least, that do no more than lose nodes, all in one go."""
    # None stands for what takes a search, or is no loss
    losses: list[Changes] = []
    if study.recovery is None:
        losses = [*takewhile(partial(is_loss, study.asked), changes)]
    if not losses:
        return [None]
    goals = study.asked.get("goals") or Goals()
    series = study.held.lose_each(
        study.method, [np.asarray(one.down, np.int32) for one in losses], goals
    )
    if series is None:
        return [None] * len(losses)
    return _after_losses(study.held.cluster, series)


def _after_losses(cluster: Cluster, series: LossSeries) -> list[ScenarioResult | None]:
    """Tell how losses end that took no search: all has its place, and no rule is broken."""
    bytes_at = cluster.bytes_dimension
    level = read_only(share_of_fair(series.most, series.fair))
    fullest, endangered = read_only(series.most), read_only(series.endangered)
    bytes_moved = series.moved[:, bytes_at].tolist() if bytes_at >= 0 else [0.0] * len(level)
    results: list[ScenarioResult | None] = []
    begin = 0
    for i, (moves, gave_way, ends) in enumerate(
        zip(series.moves.tolist(), series.gave_way.tolist(), series.ends.tolist(), strict=True)
    ):
        if moves < 0:
            results.append(None)
            continue
        lists = []
        for end in ends:
            lists.append(endangered[begin:end] if end > begin else NO_PARTITIONS)
            begin = end
        before = Survival(*lists)
        results.append(
            ScenarioResult(
                status="feasible" if gave_way else "optimal",
                message=GOALS_MET if gave_way else FEWEST_MOVES,
                hard=0,
                level=level[i],
                fullest=fullest[i],
                moves=moves,
                moves_at_least=moves - gave_way,
                leader_changes=0,
                bytes_moved=bytes_moved[i],
                before=before,
                after=Survival(before.lost, NO_PARTITIONS, NO_PARTITIONS),
            )
        )
    return results
