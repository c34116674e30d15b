"""Simulation: scenarios to try methods on, and the history of clusters over time.

>>> from evenkeel import simulate
>>> history = simulate.run(simulate.SCENARIOS["repair_add_voters"](), "balance")
>>> [finding.met for finding in history.check()]
[True]
"""

from evenkeel.simulate.controllers.pipeline import pipeline
from evenkeel.simulate.controllers.plan import Planned, planned
from evenkeel.simulate.engine.checks import AtMost, Balance, Check, Conforms, Steady, Thrash, Within
from evenkeel.simulate.engine.environment import Environment
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.engine.world import Change, Health
from evenkeel.simulate.events import (
    DomainLost,
    Event,
    Growth,
    HotSpot,
    LoadBecomes,
    LoadDrift,
    NodesAdded,
    NodesBack,
    NodesBecome,
    NodesDown,
    NodesDrained,
    NodesGone,
    Overloaded,
    Rewrite,
    RollingUpgrade,
    Split,
    SplitBusy,
)
from evenkeel.simulate.play import play
from evenkeel.simulate.run import Verdict, play_all, run, verdicts_of
from evenkeel.simulate.scenarios.cockroach import SCENARIOS
from evenkeel.simulate.scenarios.layouts import Ranges, Stores, cluster_of
from evenkeel.simulate.scenarios.scenario import Scenario

__all__ = [
    "SCENARIOS",
    "AtMost",
    "Balance",
    "Change",
    "Check",
    "Conforms",
    "Controller",
    "DomainLost",
    "Environment",
    "Event",
    "Growth",
    "Health",
    "History",
    "HotSpot",
    "LoadBecomes",
    "LoadDrift",
    "NodesAdded",
    "NodesBack",
    "NodesBecome",
    "NodesDown",
    "NodesDrained",
    "NodesGone",
    "Overloaded",
    "Planned",
    "Ranges",
    "Rewrite",
    "RollingUpgrade",
    "Scenario",
    "Split",
    "SplitBusy",
    "Stage",
    "Steady",
    "Stores",
    "Thrash",
    "Verdict",
    "Within",
    "cluster_of",
    "pipeline",
    "planned",
    "play",
    "play_all",
    "run",
    "verdicts_of",
]
