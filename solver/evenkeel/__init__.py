"""Evenkeel decides where replicas live: arrays in, a provably good placement out.

>>> import evenkeel as ek
>>> cluster = ek.Cluster.from_arrays(
...     capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6
... )
>>> result = ek.solve(cluster, goals=ek.Goals(level=0.0))
>>> result.success
True
"""

from evenkeel.formats.registry import read, write
from evenkeel.frontier import Frontier, frontier
from evenkeel.installation import versions, warmup
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost, Goals, Proportion
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.rules import Rule
from evenkeel.result import Result
from evenkeel.showing import show_snapshots
from evenkeel.solve import solve
from evenkeel.strategies import options
from evenkeel.strategies.cockroach.hottest import hottest
from evenkeel.strategies.exact.conflicts import conflicts
from evenkeel.sweep import Sweep, sweep
from evenkeel.what_if import WhatIf

__version__ = "0.1.0"

show_snapshots()

__all__ = [
    "Cluster",
    "Cost",
    "Fault",
    "Flag",
    "Frontier",
    "Goals",
    "InvalidInput",
    "Limits",
    "Placement",
    "Proportion",
    "Result",
    "Role",
    "Rule",
    "Sweep",
    "WhatIf",
    "conflicts",
    "frontier",
    "hottest",
    "options",
    "read",
    "solve",
    "sweep",
    "versions",
    "warmup",
    "write",
]
