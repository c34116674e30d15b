"""Verdicts: what the checks of a scenario find of a method."""

from dataclasses import dataclass

from evenkeel.simulate.engine.history import History


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
    >>> first = verdicts_of(simulate.run(quiet, "balance"))[0]
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
