"""The answer does not depend on the unit of a dimension: a power of two changes no digit of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evenkeel as ek
from tests.judge.case import Case, build
from tests.judge.clusters import draw

FAMILY = ("plain", "rules", "extras", "budgets", "states", "from_below", "whole_loads", "readme")
FARTHEST = 400


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILY)
def test_a_power_of_two_of_the_unit_changes_nothing_in_balance(family, seed):
    _same_in_other_units(draw(family, seed), "balance", seed)


@pytest.mark.parametrize("family", ["role_weights_tight", "few_may_lead"])
def test_a_power_of_two_of_the_unit_changes_nothing_in_exact(family):
    for seed in range(3):
        _same_in_other_units(draw(family, seed), "exact", seed)


def test_equal_replicas_are_levelled_in_any_unit():
    rng = np.random.default_rng(1)
    rows = [rng.choice(7, 2, replace=False).tolist() for _ in range(19)] * 2
    said = set()
    for unit in (2.0**-400, 2.0**-100, 1.0, 2.0**100, 2.0**400):
        cluster = ek.Cluster.from_arrays(
            capacity=[[10.0 * unit]] * 15, load=[[unit]] * 38, placement=rows
        )
        result = ek.solve(cluster, goals=ek.Goals(level=0.05))
        said.add((result.status, result.comparison.moves, *result.placement.node.tolist()))
    assert len(said) == 1


def _same_in_other_units(case: Case, method: str, seed: int) -> None:
    """Solve a case in two units of each dimension, drawn apart, and compare the answers."""
    dimensions = len(case.cluster["capacity"][0])
    power = np.random.default_rng(seed).integers(-FARTHEST, FARTHEST + 1, dimensions)
    assert _answer(_scaled(case, power.tolist()), method) == _answer(case, method)


def _answer(case: Case, method: str) -> tuple[Any, ...]:
    cluster, goals, limits = build(case)
    found = ek.solve(cluster, method, goals=goals, limits=limits, seed=case.seed)
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
