"""Running a scenario with whoever decides."""

from evenkeel.methods.registry import find
from evenkeel.simulate.controllers.method import Balancing, Solve, method_named
from evenkeel.simulate.controllers.range_by_range import RangeByRange
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.scenarios.scenario import Scenario


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
