"""Test the comparison with the best in cases where the best is known."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.levelness import levelness
from tests.judge.beside import Beside, Repairs, beside_the_best
from tests.judge.case import Case, build
from tests.judge.cpsat import Model
from tests.judge.figures import TARGETS, figures, table
from tests.judge.verdict import standing_of
from tests.judge.world import Standing, World

NAMES = list(TARGETS)


def tried(goals: dict, rows: list[list[int]], limits: dict | None = None, **given) -> Beside:
    """Put a placement beside the best, as if a solve had answered it."""
    case = Case("by hand", 0, given, goals, limits or {})
    cluster, aims, budgets = build(case)
    world = World(case)
    result = ek.solve(cluster, goals=aims, limits=budgets)
    leader = [0 if row[0] >= 0 else -1 for row in rows]
    flat = np.array([n for row in rows for n in row], np.int32)
    placement = cluster.placement.replaced(flat, np.array(leader, np.int16))
    level = levelness(cluster, placement)
    answer = replace(result, placement=placement, levelness=level)
    return beside_the_best(world, standing_of(placement), answer)


THREE = {"capacity": [[9.0]] * 3, "load": [[1.0]] * 6, "placement": [[0]] * 6}


def test_moves_above_the_fewest_are_counted():
    rows = [[0], [0], [1], [1], [2], [2]]
    assert tried({"level": 0.0}, rows, **THREE).above == 0
    rows = [[1], [1], [0], [0], [2], [2]]
    assert tried({"level": 0.0}, rows, **THREE).above == 0
    rows = [[1], [1], [2], [2], [0], [1]]
    assert tried({"level": 0.5}, rows, **THREE).above == 2


# each partition is short of a replica; only the second needs it
SHORT = {
    "capacity": [[9.0]] * 4, "load": [[1.0]] * 2, "replicas": 2, "min_active": [1, 2],
    "alive": [True, True, True, False], "placement": [[0, 3], [1, 3]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "own", "inverted"),
    [([[0, -1], [1, 2]], 1, False), ([[0, 2], [1, -1]], 1, True), ([[0, -1], [1, -1]], 0, False)],
)
def test_repairs_are_compared_the_most_endangered_first(rows, own, inverted):
    found = tried({"level": None}, rows, {"moves": 1}, **SHORT)
    assert found.repairs == Repairs(best=1, own=own, limited=True, inverted=inverted)


def test_what_cannot_be_is_not_counted():
    found = tried({"level": 0.0}, [[0], [0]], capacity=[[9.0], [9.0]], load=[[1.0]] * 2,
                  placement=[[0], [0]], flags=[[1], [1]])  # fmt: skip
    assert (found.reached, found.above, found.findings) == (None, None, [])


def test_who_leads_and_may_not_goes_on_leading_and_takes_the_room_of_a_leader():
    """Where no other may lead, nobody would: the room for a replica would cost a leader."""
    given = {
        "capacity": [[4.0]] * 2, "load": [[1.0]] * 2, "leader_load": [[4.0]] * 2,
        "leads": [False, True], "placement": [[0], [1, -1]], "replicas": [1, 2],
    }  # fmt: skip
    beside = tried({"level": None}, [[0], [1, -1]], **given)
    assert beside.repairs == Repairs(0, 0, False, False)
    assert beside.findings == []


@pytest.mark.parametrize(
    ("limits", "least"),
    [({}, 1), ({"partition_moves": 0}, None), ({"domain_in": {"zone": 0}}, None),
     ({"domain_out": {"zone": 0}}, 1), ({"domain_in": {"zone": 1}}, 1),
     ({"leader_changes": 0}, 1)],
)  # fmt: skip
def test_finer_budgets_bind_the_model(limits, least):
    given = {
        "capacity": [[9.0]] * 3, "load": [[1.0]], "replicas": 2, "placement": [[0, 2]],
        "alive": [True, True, False], "domains": {"zone": ["a", "b", "c"]},
    }  # fmt: skip
    model = Model(World(Case("by hand", 0, given, {}, limits)))
    model.hold_budgets()
    assert model.least(model.moves) == least


@pytest.mark.parametrize(
    ("rule", "rows", "wishes"),
    [
        ({"spread": {"zone": (1, "soft")}}, [[0, 1, 2]], 1),
        ({"min_domains": {"zone": (3, "soft")}}, [[0, 1, 2]], 1),
        ({"max_domains": {"zone": (1, "soft")}}, [[0, 1, 2]], 1),
        ({"skew": {"zone": (0, "soft")}}, [[0, 1, 2]], 1),
        ({"lead": ["zone=b"]}, [[0, 1, 2]], 1),
        ({"lead": ["zone=c", "zone=b", "zone=a"]}, [[0, 1, 2]], 1),
        ({"lead": ["zone=a"]}, [[0, 1, 2]], 0),
    ],
)
def test_the_model_counts_wishes_as_the_verdict_does(rule, rows, wishes):
    given = {
        "capacity": [[9.0]] * 3, "load": [[1.0]], "placement": rows, "rules": [rule],
        "domains": {"zone": [*"aab"]},
    }  # fmt: skip
    model = Model(World(Case("by hand", 0, given)))
    model.cp.add(model.leads[0][0] == 1)
    assert model.least(model.wishes) == wishes


def test_figures_are_of_what_could_be_compared():
    found = figures([
        Beside(mended=True, reached=True, above=2), Beside(mended=True, reached=True, above=0),
        Beside(mended=False), Beside(mended=True, reached=False), Beside(undecided=["goals"]),
        Beside(repairs=Repairs(4, 3, True, False)), Beside(repairs=Repairs(2, 2, False, False)),
    ])  # fmt: skip
    assert [found[name] for name in NAMES] == [
        (1.0, 2), (2, 2), (2 / 3, 3), (1 / 4, 4), (0.0, 1), (0.75, 1), (0, 1),
    ]  # fmt: skip


def test_the_table_says_what_was_not_decided():
    lines = list(table([Beside(undecided=["goals"]), Beside()]))
    assert len(lines) == 1 + len(NAMES) + 3
    assert [line.split()[-1] for line in lines[-3:]] == ["0", "1", "0"]
    assert list(table([]))[1].split()[-4:] == ["-", "<=", "0.05", "0"]


def test_hints_are_a_placement_in_the_model():
    world = World(Case("by hand", 0, {**THREE, "placement": [[0]] * 6}))
    model = Model(world)
    model.hint(Standing([[0]] * 6, [0] * 6))
    assert model.least(model.moves) == 0


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-40, 1e-3, 0.1, 1.0, 2.0**40, 2.0**400])
def test_loads_of_any_size_are_counted(unit):
    given = THREE | {"load": [[unit]] * 6, "capacity": [[9.0 * unit]] * 3}
    found = tried({"level": 0.5}, [[1], [1], [2], [2], [0], [1]], **given)
    assert (found.mended, found.reached, found.above, found.undecided) == (True, True, 2, [])
    missed = tried({"level": 0.0}, [[0], [0], [0], [1], [2], [2]], **given)
    assert [finding.kind for finding in missed.findings] == ["goals reachable but missed"]
    tight = given | {"capacity": [[2.0 * unit]] * 3}
    assert tried({"level": 0.0}, [[0]] * 6, **tight).mended is False


def test_loads_too_fine_to_count_are_left_undecided():
    given = THREE | {"load": [[1.0], [1e-7 / 3], *[[1.0]] * 4]}
    found = tried({"level": 0.5}, [[1], [1], [2], [2], [0], [1]], **given)
    assert found.undecided == ["mending", "goals"]
