"""Clusters that never were: scenarios to try strategies on, and what happens to them over time.

>>> from evenkeel import simulate
>>> history = simulate.run(simulate.SCENARIOS["repair_add_voters"](), "balance")
>>> [finding.met for finding in history.check()]
[True]
"""

from evenkeel.simulate.changes import Change, Rates
from evenkeel.simulate.cockroach_scenarios import SCENARIOS
from evenkeel.simulate.history import History
from evenkeel.simulate.running import run
from evenkeel.simulate.scenario import Scenario
from evenkeel.simulate.verdicts import Verdict, play_all
from evenkeel.simulate.world import Health

__all__ = [
    "SCENARIOS",
    "Change",
    "Health",
    "History",
    "Rates",
    "Scenario",
    "Verdict",
    "play_all",
    "run",
]
