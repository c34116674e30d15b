"""Simulation: events, controllers and the history of clusters over time.

>>> from evenkeel import simulate
>>> import evenkeel as ek
>>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
>>> simulate.play(c, [simulate.At(0.0, ek.Changes(down="n0"))], until=600.0).total("moves")
6.0
"""

from evenkeel.simulate.controllers.pipeline import pipeline
from evenkeel.simulate.controllers.plan import Planned, planned
from evenkeel.simulate.engine.checks import AtMost, Balance, Check, Conforms, Steady, Thrash, Within
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.engine.world import Change, Environment, Health
from evenkeel.simulate.events import (
    At,
    Event,
    Growth,
    LoadDrift,
    NodesBecome,
    Overloaded,
    RollingUpgrade,
    Split,
    SplitBusy,
)
from evenkeel.simulate.play import play, run

__all__ = [
    "At",
    "AtMost",
    "Balance",
    "Change",
    "Check",
    "Conforms",
    "Controller",
    "Environment",
    "Event",
    "Growth",
    "Health",
    "History",
    "LoadDrift",
    "NodesBecome",
    "Overloaded",
    "Planned",
    "RollingUpgrade",
    "Scenario",
    "Split",
    "SplitBusy",
    "Stage",
    "Steady",
    "Thrash",
    "Within",
    "pipeline",
    "planned",
    "play",
    "run",
]
