"""Verdicts: what the checks of a scenario find of a method."""

from dataclasses import dataclass

from evenkeel.simulate.engine.history import History


@dataclass(frozen=True)
class Verdict:
    """What one check found of one method.

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
    check: str  # what was demanded
    measured: float  # the worst value in its window
    met: bool
    beyond: bool  # whether the system that the scenario comes from does not reach it itself


def verdicts_of(history: History) -> list[Verdict]:
    """Return what all checks of a scenario found, the last that no replica came back to a node."""
    scenario = history.scenario
    demanded = len(scenario.checks)
    found = [
        Verdict(scenario.name, history.method, one.what, one.measured, one.met, i >= demanded)
        for i, one in enumerate(history.check())
    ]
    # thrash: a replica came back without an event in between
    thrash = history.total("thrash")
    found.append(Verdict(scenario.name, history.method, "thrash = 0", thrash, thrash == 0.0, False))
    return found
