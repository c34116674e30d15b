"""Compare a result with the best that CP-SAT finds for the same small cluster."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from tests.judge.broken import everything, is_hard, wishes
from tests.judge.cpsat import Model, Sum, Undecided
from tests.judge.even import group_goals
from tests.judge.verdict import Finding, exceeded, way
from tests.judge.world import COUNTS, Standing, World

MOST_CELLS = 400  # partitions times nodes up to which a case is small
TOO_MANY_MOVES = 2  # moves above the fewest that are still no finding
AT_MOST = frozenset({"spread", "max_domains"})
# what may be broken in a case whose repairs are compared by endangerment
OF_LIFE = frozenset({"on_dead", "not_kept", "unassigned", "min_active", "leader", "leaderless"})


@dataclass
class Repairs:
    """What was repaired, beside the most that can be with the most endangered first."""

    best: int
    own: int
    limited: bool
    # as much was repaired, but something more endangered was left for something less
    inverted: bool


@dataclass
class Beside:
    """A result beside the best. None where there is nothing to compare."""

    # ``mended``: no hard rule is broken, of those that can be mended. ``reached``: the goals, of
    # those that can be. ``above``: moves above the fewest with which they are.

    findings: list[Finding] = field(default_factory=list)
    mended: bool | None = None
    reached: bool | None = None
    above: int | None = None
    repairs: Repairs | None = None
    undecided: list[str] = field(default_factory=list)

    def find(self, kind: str, where: str) -> None:
        """Note something wrong."""
        self.findings.append(Finding(kind, where))


def is_small(world: World) -> bool:
    """Whether CP-SAT, which knows no disks, is asked about a case."""
    finite = all(c != inf for at in world.capacity for c in at)
    return finite and not world.disks and world.partitions * world.nodes <= MOST_CELLS


def beside_the_best(world: World, after: Standing, result: Any) -> Beside:
    """Compare a result with what CP-SAT does, and what it says with what that disproves."""
    beside = Beside()
    if not is_small(world):
        return beside
    for name, compare in (
        ("mending", _mending), ("wishes", _wishing), ("goals", _levelling), ("repairs", _repairs),
    ):  # fmt: skip
        try:
            compare(beside, world, after, result)
        except Undecided:
            beside.undecided.append(name)
    return beside


def _is_valid(world: World, standing: Standing) -> bool:
    return not any(is_hard(kind) for kind, *_ in everything(world, standing))


def _soft_yield(world: World) -> bool:
    """Whether soft rules yield to goals."""
    return bool(world.case.goals.get("soft_yield"))


def _is_cut_short(result: Any) -> bool:
    return result.stop_reason in ("time", "work", "interrupted")


def _within_budgets(world: World, after: Standing) -> Model:
    model = Model(world)
    model.hold_budgets()
    model.hint(after)
    return model


def _mending(beside: Beside, world: World, after: Standing, result: Any) -> None:
    valid = _is_valid(world, after)
    fewest = Model(world)
    fewest.hint(after)
    least = fewest.least(fewest.moves)
    if valid and least is None:
        raise AssertionError("the judge's model forbids a placement that its verdict allows")
    if least is None:
        return
    proven = result.bounds.moves_feasible
    if proven > least:
        beside.find("bound on mending moves disproved", f"{proven}: {least}")
    if valid:
        beside.mended = True
    elif not _is_cut_short(result) and _is_mendable(world, after):
        beside.mended = False
        beside.find("mendable but unmended", f"in {least} moves; {result.message!r}")


def _is_mendable(world: World, after: Standing) -> bool:
    """Whether no rule need be broken, within budgets, and nothing more in danger for it."""
    model = _within_budgets(world, after)
    for _, of_model, of_result in _dangers(world):
        model.cp.add(of_model(model) <= of_result(after))
    return model.least() is not None


def _levelling(beside: Beside, world: World, after: Standing, result: Any) -> None:
    if not _is_valid(world, after) or _is_cut_short(result):
        return
    asked = group_goals(world)
    if asked is None:
        return
    level = _within_budgets(world, after)
    level.within(result.bounds)
    level.within_groups(asked)
    own, yields = wishes(world, everything(world, after)), _soft_yield(world)
    if not yields:
        level.cp.add(level.wishes <= own)
    level.hold_voters(after)
    for _, of_model, of_result in _dangers(world)[:-1]:  # moved at any cost
        level.cp.add(of_model(level) <= of_result(after))
    fewest = level.least(level.moves)
    if yields and fewest is not None and result.goals_reached:
        least = level.least(level.wishes)
        if least is not None and least < own:
            beside.find("soft rules above the least within goals", f"{own}, at least {least}")
        level.cp.add(level.wishes <= own)
        fewest = level.least(level.moves)
    if fewest is None:
        if result.goals_reached:
            raise AssertionError("the judge's model forbids goals that a result reaches")
        return
    if result.bounds.moves_level > fewest:
        beside.find("bound on moves disproved", f"{result.bounds.moves_level}: {fewest}")
    beside.reached = bool(result.goals_reached)
    if not beside.reached:
        beside.find("goals reachable but missed", f"in {fewest} moves; {result.message!r}")
        return
    moves = len(way(world, after).joined)
    beside.above = moves - fewest
    if beside.above > TOO_MANY_MOVES:
        beside.find("moves far above the fewest", f"{moves} of {fewest}")
    if beside.above > 0 and result.status == "optimal":
        beside.find("optimal with more moves than needed", f"{moves} of {fewest}")


def _wishing(beside: Beside, world: World, after: Standing, result: Any) -> None:
    """Compare what soft rules are short of with the least that they can be, whatever the goals."""
    own = wishes(world, everything(world, after))
    led = any(rule.get("lead") for rule in world.rules)
    if not own or led or _soft_yield(world) or not _is_valid(world, after) or _is_cut_short(result):
        return
    model = _within_budgets(world, after)
    model.hold_voters(after)
    for _, of_model, of_result in _dangers(world)[:-1]:
        model.cp.add(of_model(model) <= of_result(after))
    least = model.least(model.wishes)
    if least is not None and least < own:
        beside.find("soft rules above the least", f"{own}, at least {least}")


def _repairs(beside: Beside, world: World, after: Standing, result: Any) -> None:
    """Compare what a result leaves in danger, within budgets, with the least that CP-SAT can."""
    limited = any(amount is not None for amount in world.case.limits.values())
    if not (limited or not result.success) or not _comparable(world) or any(exceeded(world, after)):
        return
    model = Model(world, partly=True)
    model.hold_budgets()
    model.hint(after)
    best = own = 0
    at: str | None = None
    for name, of_model, of_result in _dangers(world):
        objective = of_model(model)
        least, own = model.least(objective), of_result(after)
        if least is None or (at is None and least > own):
            return  # the result is better than this model allows: it is worse in another way
        if at is None and least < own:
            at = name
            beside.find(f"more {name} than need be", f"{own}, at least {least}")
        best = least
        model.cp.add(objective <= least)
    came = _missing(world, world.came)
    beside.repairs = Repairs(
        came - best, came - own, limited, at is not None and own <= best and came > best
    )


def _comparable(world: World) -> bool:
    broken = everything(world, world.came)
    bounds = [b for q in (*world.rule, -1) for b in world.bounds[q]]
    return (
        all(not is_hard(kind) or kind in OF_LIFE for kind, *_ in broken)
        and all(b.kind in AT_MOST for b in bounds if b.hard)
        and not any(rule.get(kind) for rule in world.rules for kind in COUNTS)
        and all(q < 0 for q in world.group_rule)
        and not any(world.pinned)
        and all(world.serves[n] or not world.may_hold[n] for n in range(world.nodes))
    )


def _missing(world: World, standing: Standing) -> int:
    every = range(world.partitions)
    return sum(max(0, world.wanted[p] - world.live(standing.rows[p])) for p in every)


# a name, and how to count it in a model and in a result
Danger = tuple[str, Callable[[Model], Sum], Callable[[Standing], int]]


def _dangers(world: World) -> list[Danger]:
    """Return measures of danger, worst first; the last is how many replicas are missing."""
    found: list[Danger] = []
    every = [p for p in range(world.partitions) if world.wanted[p]]

    def fewer(name: str, least: dict[int, int]) -> Danger:
        def of_model(model: Model) -> Sum:
            total: Sum = 0
            for p, want in least.items():
                if want > 0:
                    short = model.cp.new_bool_var("")
                    model.cp.add(model.live(p) + want * short >= want)
                    total += short
            return total

        def of_result(after: Standing) -> int:
            return sum(world.live(after.rows[p]) < want for p, want in least.items())

        return name, of_model, of_result

    for deficit in range(max(world.min_active, default=0), 0, -1):
        least = {p: world.min_active[p] - deficit + 1 for p in every}
        found.append(fewer(f"partitions {deficit} below min_active", least))
    quorum = {p: world.voters[p] // 2 + 1 for p in every if world.voters[p] == world.wanted[p]}
    found.append(fewer("partitions without quorum", quorum))
    found.append((
        "replicas missing",
        lambda model: sum(world.wanted[p] - model.live(p) for p in every),
        lambda after: _missing(world, after),
    ))  # fmt: skip
    return found
