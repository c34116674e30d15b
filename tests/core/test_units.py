"""The answer does not depend on the unit of a dimension: a power of two changes no digit of it."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import evenkeel as ek
from tests.judge.case import Case, build
from tests.judge.clusters import draw
from tests.support.effort import mostly_long

FAMILY = ("plain", "rules", "extras", "budgets", "states", "from_below", "whole_loads", "readme")
FARTHEST = 500


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILY)
def test_a_power_of_two_of_the_unit_changes_nothing_in_balance(family, seed):
    _same_in_other_units(family, seed, "balance")


@pytest.mark.parametrize("family", ["role_weights_tight", "few_may_lead"])
def test_a_power_of_two_of_the_unit_changes_nothing_in_exact(family):
    for seed in range(3):
        _same_in_other_units(family, seed, "exact")


@pytest.mark.parametrize(("power", "seed"), [(-940, 0), (-700, 1), (700, 1), (940, 0)])
@pytest.mark.parametrize("family", FAMILY)
def test_amounts_whose_squares_vanish_or_overflow_change_nothing(family, power, seed):
    assert _answer(_drawn(family, seed, power), "balance") == _own(family, seed, "balance")


def test_equal_replicas_are_levelled_in_any_unit():
    rng = np.random.default_rng(1)
    rows = [rng.choice(7, 2, replace=False).tolist() for _ in range(19)] * 2
    said = set()
    for power in (-980, -660, -531, -500, -100, 0, 100, 500, 660, 940):
        unit = 2.0**power
        cluster = ek.Cluster.from_arrays(
            capacity=[[10.0 * unit]] * 15, load=[[unit]] * 38, placement=rows
        )
        result = ek.solve(cluster, goals=ek.Goals(level=0.05))
        said.add((result.status, result.comparison.moves, *result.placement.node.tolist()))
    assert len(said) == 1


@pytest.mark.parametrize("power", [-940, -531, 400, 940])
def test_what_a_system_has_in_its_own_units_changes_nothing_in_balance(power):
    cluster, *_ = build(draw("plain", 1))
    other, *_ = build(_scaled(draw("plain", 1), [power] * len(cluster.dimensions)))
    found = [ek.solve(replace(one, native=object())) for one in (cluster, other)]
    assert _told(found[0]) == _told(found[1])


POWERS = mostly_long([-940, -531, -500, -120, -31, 31, 61, 120, 450, 940], [-940, -531, 450])


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("family", ["plain", "whole_loads", "zones", "from_below"])
def test_a_power_of_two_of_the_unit_changes_nothing_in_a_session(family, power):
    seed = _seed_for(power)
    assert _of_session(family, seed, power) == _of_session(family, seed, 0)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("protocol", ["plain", "kafka", "ceph"])
def test_a_power_of_two_of_the_unit_changes_nothing_in_a_plan(protocol, power):
    seed = _seed_for(power)
    for family in ("plain", "tight", "zones", "extras"):
        assert _of_plan(family, seed, power, protocol) == _of_plan(family, seed, 0, protocol)


@pytest.mark.parametrize("power", POWERS)
def test_a_power_of_two_of_the_unit_changes_nothing_under_a_cost(power):
    for family in ("plain", "tight", "zones"):
        for seed in range(2):
            assert _of_cost(family, seed, power) == _of_cost(family, seed, 0)


def _seed_for(power: int) -> int:
    """Return one of three seeds, another for each of the powers of every run."""
    return abs(power) // 10 % 3


def _drawn(family: str, seed: int, power: int) -> Case:
    """Return a case with a power of two as the unit of all its dimensions."""
    case = draw(family, seed)
    return _scaled(case, [power] * len(case.cluster["capacity"][0])) if power else case


@cache
def _of_session(family: str, seed: int, power: int) -> list[tuple[Any, ...]]:
    """Return the answers of a session: first, after two deaths, and after new loads."""
    cluster, goals, limits = build(_drawn(family, seed, power))
    session = ek.Session(cluster)
    found = [session.solve(goals=goals, limits=limits)]
    for name in cluster.nodes.names[: min(2, len(cluster.nodes) - 1)]:
        session.apply(ek.Changes(down=[name]))
        found.append(session.solve(goals=goals, limits=limits))
    load = cluster.partitions.load.voter
    if cluster.partitions.load.leader is load is cluster.partitions.load.non_voter:
        session.apply(ek.Changes(load={cluster.partitions.names[0]: (2.0 * load[0]).tolist()}))
        found.append(session.solve(goals=goals, limits=limits))
    return [_told(one) for one in found]


@cache
def _solved(family: str, seed: int, power: int) -> tuple[ek.Cluster, ek.Result]:
    cluster, goals, limits = build(_drawn(family, seed, power))
    return cluster, ek.solve(cluster, goals=goals, limits=limits)


@cache
def _of_plan(family: str, seed: int, power: int, protocol: str) -> tuple[Any, ...]:
    cluster, result = _solved(family, seed, power)
    throttle = ek.Throttle(node_in=2)
    plan = ek.plan(cluster, result, protocol=protocol, throttle=throttle)
    bytes_and_seconds = {"size", "start", "finish"}
    names = [one.name for one in fields(plan.steps) if one.name not in bytes_and_seconds]
    steps = [getattr(plan.steps, name).tolist() for name in names]
    return steps, len(plan.blocked), plan.check().ok


@cache
def _of_cost(family: str, seed: int, power: int) -> tuple[Any, ...]:
    cluster, *_ = build(_drawn(family, seed, power))
    price = 2.0**-power
    first, last = cluster.dimensions[0], cluster.dimensions[-1]
    most = float(cluster.nodes.capacity[:, -1].max())
    cost = ek.Cost(
        watermark={first: 3.0 * price},
        proportion=[ek.Proportion(first, last, ratio=2.0, weight=price)],
        tables=[ek.NodeTable(last, at=[0.2 * most, 0.5 * most], slope=[price, 4.0 * price])],
        moves=0.1,
    )
    found = ek.solve(cluster, goals=cost, seed=3, work_limit=5_000)
    return _told(found)


def _same_in_other_units(family: str, seed: int, method: str) -> None:
    """Solve a case in two units of each dimension, drawn apart, and compare the answers."""
    case = draw(family, seed)
    dimensions = len(case.cluster["capacity"][0])
    power = np.random.default_rng(seed).integers(-FARTHEST, FARTHEST + 1, dimensions)
    assert _answer(_scaled(case, power.tolist()), method) == _own(family, seed, method)


@cache
def _own(family: str, seed: int, method: str) -> tuple[Any, ...]:
    """Return the answer in the units in which a case was drawn."""
    return _answer(draw(family, seed), method)


def _answer(case: Case, method: str) -> tuple[Any, ...]:
    cluster, goals, limits = build(case)
    return _told(ek.solve(cluster, method, goals=goals, limits=limits, seed=case.seed))


def _told(found: ek.Result) -> tuple[Any, ...]:
    return (
        found.placement.node.tolist(), found.placement.leader.tolist(), found.status,
        found.stop_reason, found.comparison.moves, found.bounds.moves_level,
        found.bounds.moves_feasible, found.bounds.level_term, found.bounds.leaders,
    )  # fmt: skip


def _scaled(case: Case, power: list[int]) -> Case:
    """Return a case with every load and capacity times a power of two, by dimension."""
    given, limits = dict(case.cluster), dict(case.limits)
    for name in ("capacity", "load", "leader_load", "non_voter_load"):
        if name in given:
            given[name] = np.ldexp(given[name], power).tolist()
    if "tier_capacity" in given:
        given["tier_capacity"] = {
            tier: np.ldexp(amount, power).tolist()
            for tier, amount in given["tier_capacity"].items()
        }
    if "bytes" in limits:
        limits["bytes"] = float(
            np.ldexp(limits["bytes"], power[given["dimensions"].index(given["bytes"])])
        )
    return replace(case, cluster=given, limits=limits)
