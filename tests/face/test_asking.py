"""What a method may be asked: a wrong question is answered at once, with what it takes."""

from dataclasses import fields

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.methods.registry import METHODS

CLUSTER = ek.Cluster.from_arrays(
    capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, dimensions=["disk"], bytes="disk"
)


KINDS = [getattr(ek.options, name) for name in ek.options.__all__]
"""The classes of options of methods."""


def faults(**asked):
    """The faults of a question."""
    with pytest.raises(ek.InvalidInput) as refused:
        ek.solve(CLUSTER, **asked)
    return [str(fault) for fault in refused.value.faults]


@pytest.mark.parametrize("options", [{"a": 1}, "x", 3, ek.options.Crush()])
def test_options_of_another_kind_are_refused(options):
    (fault,) = faults(options=options)
    assert fault.startswith("options: balance takes none")
    (fault,) = faults(method="leaders", options=options)
    assert "leaders takes evenkeel.options.Leaders" in fault


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, one.name) for kind in KINDS for one in fields(kind)]
)
def test_every_option_is_checked(kind, name):
    refused = [object(), "yes", 1] if isinstance(getattr(kind(), name), bool) else [object()]
    for given in refused:
        with pytest.raises(ek.InvalidInput) as told:
            kind(**{name: given})
        assert [one.path.partition("[")[0] for one in told.value.faults] == [f"options.{name}"]


def test_a_subclass_is_another_methods_options():
    (fault,) = faults(method="helix_crush", options=ek.options.MultiRound())
    assert "helix_crush takes evenkeel.options.Crush" in fault


@pytest.mark.parametrize("method", [one for one in METHODS if not METHODS[one].limits])
def test_limits_that_a_method_cannot_keep_are_refused(method):
    (fault,) = faults(method=method, limits=ek.Limits(moves=3))
    assert fault.startswith(f"limits.moves: {method} cannot keep this; it keeps no limits")


@pytest.mark.parametrize("method", [one for one in METHODS if not METHODS[one].minimises])
def test_a_cost_is_refused_by_who_cannot_minimise_it(method):
    assert any("balance minimises a Cost" in one for one in faults(method=method, goals=ek.Cost()))


@pytest.mark.parametrize("method", [one for one in METHODS if not METHODS[one].starts])
def test_another_start_is_refused_by_who_has_none(method):
    other = CLUSTER.placement.replaced(CLUSTER.placement.node + 1, CLUSTER.placement.leader)
    assert any("begins where" in one for one in faults(method=method, start=other))


def test_every_problem_is_named_at_once():
    found = faults(time_limit="1", work_limit=-1, seed=1.5, start=[1], callback=3, options="x")
    assert [one.partition(":")[0] for one in found] == [
        "start", "options", "time_limit", "work_limit", "seed", "callback",
    ]  # fmt: skip


def test_the_simulator_asks_the_same_questions():
    with pytest.raises(ek.InvalidInput, match="balance takes none"):
        simulate.play(CLUSTER, method="balance", options=ek.options.Crush(), until=60.0)


SOLVED = ek.solve(CLUSTER)
WRONG = [None, 3, -1, 1.5, [1], {"a": 1}, object(), np.zeros((2, 2)), True, float("nan"), b"x"]
DOORS = {
    "solve": (ek.solve, {"cluster": CLUSTER}, ("method", "goals", "limits", "start", "seed")),
    "plan": (ek.plan, {"cluster": CLUSTER, "target": SOLVED}, ("throttle", "protocol")),
    "sweep": (
        ek.sweep, {"cluster": CLUSTER, "scenarios": "node"}, ("scenarios", "method", "goals"),
    ),
    "frontier": (ek.frontier, {"cluster": CLUSTER, "points": 2}, ("goals", "points", "seed")),
    "headroom": (ek.headroom, {"cluster": CLUSTER}, ("survive", "grows", "at_most", "recover")),
    "size": (ek.size, {"cluster": CLUSTER, "forecast": 1.0}, ("survive", "node_types", "goals")),
    "Session": (ek.Session, {"cluster": CLUSTER}, ()),
    "conflicts": (ek.conflicts, {"cluster": CLUSTER}, ()),
    "relaxation": (ek.relaxation, {"cluster": CLUSTER}, ("goals",)),
    "solve_in_parts": (ek.solve_in_parts, {"cluster": CLUSTER, "parts": 2}, ("parts", "executor")),
    "read": (ek.read, {}, ("source",)),
    "to_frame": (SOLVED.to_frame, {}, ("table", "backend")),
    "Limits": (ek.Limits, {}, ("moves", "bytes", "node_in", "domain_in")),
    "Throttle": (ek.Throttle, {}, ("node_in", "node_bandwidth", "windows")),
    "Goals": (ek.Goals, {}, ("level", "leaders", "floor")),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_what_is_of_the_wrong_kind_is_named_and_never_an_error_within(door):
    enter, given, arguments = DOORS[door]
    told = []
    for name in [one for one in ("cluster", *arguments) if one in given or one != "cluster"]:
        for value in WRONG:
            try:
                enter(**{**given, name: value})
            except ek.InvalidInput as refused:
                told.append((name, str(refused)))
    assert len(told) > 3
    assert [one for one in told if "got" not in one[1]] == []
    assert [
        one for one in told if one[0].rstrip("s") not in one[1] and "<bytes>" not in one[1]
    ] == []


def test_messages_say_what_is_meant():
    ask = ek.Cluster.from_arrays
    for make, said in (
        (lambda: ek.solve([1]), "cluster: must be a Cluster"),
        (lambda: ask(capacity=[1.0] * 3, load=[[1.0]], placement=[[0]]), "a row for each node"),
        (lambda: ask(capacity=[[1.0]] * 3, load=[1.0], placement=[[0]]), "a row for each part"),
        (lambda: ask(capacity=[[1.0]] * 3, load=[[1.0]], placement=[[4]]), "a node, 0 to 2, or -1"),
        (lambda: ask(capacity=[["a"]], load=[[1.0]], placement=[[0]]), "an array of numbers"),
        (lambda: CLUSTER.down("n9"), "neither a node nor an expression"),
        (lambda: CLUSTER.pin("q"), "neither a partition nor a group"),
    ):
        with pytest.raises(ek.InvalidInput, match=said):
            make()


def test_columns_that_are_almost_capacities_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"node": ["a", "b"], "capacity_disk": [9.0, 9.0]})
    replicas = pandas.DataFrame({"partition": ["p"], "node": ["a"], "load_disk": [1.0]})
    with pytest.raises(ek.InvalidInput) as refused:
        ek.Cluster.from_frames(nodes, replicas)
    assert str(refused.value).count("'cap_disk'") == 1
