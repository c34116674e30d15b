"""Run scenarios with each method, and compare the checks that they meet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evenkeel.methods.registry import find
from evenkeel.simulate.controllers.method import Balancing, Solve, method_named
from evenkeel.simulate.controllers.range_by_range import RangeByRange
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.scenarios.cockroach import SCENARIOS
from evenkeel.simulate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Verdict:
    """What one check found of one method.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    method : str
        Who decided.
    check : str
        What was demanded.
    measured : float
        The worst value in its window.
    met : bool
        Whether the demand is met.
    beyond : bool
        Whether the system that the scenario comes from does not reach it itself.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> quiet = simulate.Scenario("quiet", c, 1.0, checks=[simulate.AtMost("moves", 9.0)])
    >>> first = simulate.verdicts_of(simulate.run(quiet, "balance"))[0]
    >>> first.method, first.check, first.met
    ('balance', 'moves <= 9', True)
    """

    scenario: str
    method: str
    check: str
    measured: float
    met: bool
    beyond: bool


def verdicts_of(history: History) -> list[Verdict]:
    """Return what all checks of a scenario found.

    Parameters
    ----------
    history : History
        What was measured.

    Returns
    -------
    list of Verdict
        The last one is that no replica came back to a node without an event in between.

    Examples
    --------
    >>> [history] = play_all(["balance"], names=["repair_add_voters"])
    >>> verdicts_of(history)[-1].check
    'thrash = 0'
    """
    scenario = history.scenario
    demanded = len(scenario.checks)
    found = [
        Verdict(scenario.name, history.method, one.what, one.measured, one.met, i >= demanded)
        for i, one in enumerate(history.check())
    ]
    thrash = history.total("thrash")
    found.append(Verdict(scenario.name, history.method, "thrash = 0", thrash, thrash == 0.0, False))
    return found


def play_all(
    methods: Sequence[str] = ("balance", "cockroach"),
    scenarios: Mapping[str, Callable[[], Scenario]] = SCENARIOS,
    names: Iterable[str] | None = None,
    seed: int = 0,
) -> list[History]:
    """Play scenarios with several methods.

    Parameters
    ----------
    methods : sequence of str
        Who decides.
    scenarios : mapping of str to callable
        Builders by name; those of CockroachDB's simulator by default.
    names : iterable of str, optional
        Which of them; all by default.
    seed : int
        All randomness comes from it.

    Returns
    -------
    list of History
        By scenario and method; ``verdicts_of`` returns the findings of their checks.

    Examples
    --------
    >>> found = play_all(["balance"], names=["repair_add_voters"])
    >>> [(one.check, one.met) for history in found for one in verdicts_of(history)]
    [('under 0, over 0, unavailable 0, violating 0', True), ('thrash = 0', True)]
    """
    return [
        run(scenarios[name](), method, seed)
        for name in (scenarios if names is None else names)
        for method in methods
    ]


def run(scenario: Scenario, method: str | Controller | Solve = "balance", seed: int = 0) -> History:
    """Play a scenario.

    Parameters
    ----------
    scenario : Scenario
        What is played.
    method : str, Controller or callable
        Who decides: a method's name; ``"cockroach"`` decides range by range as CockroachDB's queues
        do, every other method solves the whole cluster. Or a controller, or a callable that takes a
        cluster, goals and a seed and returns a placement.
    seed : int
        All randomness comes from it; the same seed gives the same bits.

    Returns
    -------
    History
        What was measured; ``history.check()`` holds the scenario's checks against it.

    Raises
    ------
    InvalidInput
        If there is no such method.

    Examples
    --------
    >>> from evenkeel import simulate
    >>> history = simulate.run(simulate.SCENARIOS["repair_add_voters"](), "cockroach")
    >>> [finding.met for finding in history.check()]
    [True]
    """
    if isinstance(method, str) and find(method).decider:
        return Stage(scenario, RangeByRange(method, scenario, seed), seed).play(method)
    if isinstance(method, str):
        return Stage(scenario, Balancing(method_named(method), seed=seed), seed).play(method)
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        return Stage(scenario, Balancing(method, seed=seed), seed).play(name)
    return Stage(scenario, method, seed).play(type(method).__name__)
