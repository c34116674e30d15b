"""Deadlines: whenever time is up a solve ends soon, and leaves nothing worse than it came.

The clock is one that counts how often it is read, so that nothing here depends on how fast a
machine is. How well limits are kept in seconds is for ``python -m bench.deadlines`` to say.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import evenkeel as ek
from bench.deadlines import CASES, Case
from evenkeel.measure.regressions import regressions
from evenkeel.methods.registry import METHODS
from evenkeel.methods.run import MethodRun, run_method
from evenkeel.methods.shared.stopping import Progress, Watch
from evenkeel.systems.ceph.crush import placement as crush_slices
from evenkeel.systems.longhorn.auto_balance import method as volume_slices
from evenkeel_kernels.ceph import upmap as upmap_slices
from evenkeel_kernels.levelling import slices
from evenkeel_kernels.levelling.leaders import moves as leader_slices
from evenkeel_kernels.levelling.leaders import transport as transport_slices
from tests.support.effort import mostly_long

PARTITIONS = 300

SETTLING = 30  # readings of the clock that phases may take to see that time is up, each for itself
MANY, FEW = 400, 12
"""Readings up to which time is up; few where a search has no end but that of its time."""

BRIEF = ("balance level 0.04", "balance 1,000 moves", "ceph_upmap ", "longhorn cluster")
"""Cases that every run of the suite tries."""


def named(case: Case) -> str:
    return f"{case.method} {case.name}"


BY_NAME = {named(case): case for case in CASES}


class Strikes:
    """A clock that stands still, and after so many readings is far beyond any limit."""

    def __init__(self, after: int) -> None:
        self.after, self.read = after, 0

    def __call__(self) -> float:
        self.read += 1
        return 0.0 if self.read <= self.after else 1e9


def solved(case: Case, after: int, **more: Any) -> tuple[MethodRun, Strikes]:
    """Solve with time that is up after so many readings of the clock."""
    clock = Strikes(after)
    watch = Watch(1.0, None, None, clock=clock)
    run = run_method(case.method, case.cluster(PARTITIONS), watch=watch, **case.asked, **more)
    return run, clock


@pytest.mark.parametrize("name", mostly_long(BY_NAME, BRIEF))
def test_once_time_is_up_nothing_more_is_begun_and_nothing_is_worse(name: str) -> None:
    case = BY_NAME[name]
    never_worse = METHODS[case.method].never_worse or case.method == "cockroach"
    after, reached_its_end = 1, False
    while not reached_its_end and after < (FEW if case.name == "a cost" else MANY):
        run, clock = solved(case, after)
        reached_its_end = clock.read <= after
        assert clock.read - after <= SETTLING, after
        if never_worse:
            assert not regressions(run.request.cluster, run.placement, run.audit), after
        if after == 1:
            # or all was done before the clock was read again
            done = ("time", "optimum", "exhausted")
            assert run.outcome.stop_reason in done, run.outcome.message
        after = after + 1 + after // 3


@contextmanager
def thin_slices() -> Iterator[None]:
    """Let slices be so thin that a small cluster takes as many as a large one does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "LOOKS", 40_000)
        patch.setattr(slices, "PAIRS", 5_000)
        for module in (leader_slices, transport_slices):
            patch.setattr(module, "PARTITIONS", 20)
        patch.setattr(crush_slices, "SLICE", 16)
        patch.setattr(upmap_slices, "LOOKS", 2_000)
        patch.setattr(volume_slices, "BUDGET", 2_000)
        yield


def looks(case: Case) -> list[str]:
    """The phases that the caller hears of."""
    told: list[str] = []
    run_method(
        case.method, case.cluster(PARTITIONS),
        watch=Watch(None, None, lambda progress: told.append(progress.phase)), **case.asked,
    )  # fmt: skip
    return told


SLICED = {
    "balance level 0.04": {"level": 15},
    "balance repair": {"level": 3},
    "balance 1,000 moves": {"place": 3},
    "ceph_crush ": {"ceph_crush": 10},
    "ceph_upmap ": {"ceph_upmap": 13},
    "longhorn volume by volume": {"longhorn": 5},
}
"""Cases, and how many looks their long phases take at least in thin slices."""


@pytest.mark.parametrize("name", SLICED)
def test_long_phases_are_cut(name: str) -> None:
    case = BY_NAME[name]
    with thin_slices():
        told = looks(case)
    for phase, least in SLICED[name].items():
        assert told.count(phase) >= least, phase


def test_stopped_between_thin_slices_nothing_is_worse() -> None:
    case = BY_NAME["balance level 0.04"]
    with thin_slices():
        for after in range(1, 120, 7):
            run, _ = solved(case, after)
            assert not regressions(run.request.cluster, run.placement, run.audit), after


def test_a_caller_that_stops_between_thin_slices_gets_what_was_levelled_until_then() -> None:
    case = BY_NAME["ceph_upmap "]
    cluster = case.cluster(PARTITIONS)

    def stop(progress: Progress) -> None:
        if progress.moves > 0:
            raise StopIteration

    with thin_slices():
        result = ek.solve(cluster, case.method, callback=stop, **case.asked)
    assert result.stop_reason == "interrupted"
    ((_, found),) = result.native.levelled.items()
    assert found.moves > 0
    assert found.after.spread < found.before.spread
    whole = ek.solve(cluster, case.method, **case.asked)
    assert found.moves < whole.native.levelled[1].moves


@pytest.mark.parametrize("name", ["balance level 0.04", "longhorn cluster", "leaders by load"])
def test_what_there_is_no_time_to_begin_stays_as_it_came(name: str) -> None:
    case = BY_NAME[name]
    result = ek.solve(case.cluster(PARTITIONS), case.method, time_limit=0.0, **case.asked)
    assert result.stop_reason == "time"
    assert result.comparison.moves == result.comparison.leader_changes == 0
    assert "no time" in result.message


def test_without_time_to_prove_nothing_is_claimed_of_moves_and_levels_are_as_ever() -> None:
    cluster = BY_NAME["balance level 0.04"].cluster(PARTITIONS)
    goals = ek.Goals(level=0.04, floor=0.1)
    hurried = ek.solve(cluster, goals=goals, time_limit=0.0)
    usual = ek.solve(cluster, goals=goals)
    assert any("no time to prove" in warning for warning in hurried.warnings)
    assert not any("no time to prove" in warning for warning in usual.warnings)
    assert hurried.bounds.moves_level == 0 < usual.bounds.moves_level
    for name in ("level", "target", "floor", "leader_target"):
        assert (getattr(hurried.bounds, name) == getattr(usual.bounds, name)).all()
    assert hurried.status == "partial" or not hurried.goals_met
    assert hurried.comparison.moves == 0


@pytest.mark.parametrize("after", [1, 2, 3, 5, 8])
def test_passes_that_end_within_a_slice_are_stopped_between_passes(after: int) -> None:
    asked = 0

    def stop(_: Progress) -> None:
        nonlocal asked
        asked += 1
        if asked >= after:
            raise StopIteration

    cluster = BY_NAME["cockroach "].cluster(1_000)
    result = ek.solve(cluster, "cockroach", goals=ek.Goals(level=0.04), callback=stop)
    assert (asked, result.stop_reason) == (after, "interrupted")
