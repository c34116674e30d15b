"""What a method may be asked: a wrong question is answered at once, with what it takes."""

import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.methods.registry import METHODS

CLUSTER = ek.Cluster.from_arrays(
    capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, dimensions=["disk"], bytes="disk"
)


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
