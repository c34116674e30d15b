"""Evenkeel decides where replicas live: arrays in, a provably good placement out.

==============================  ====================================================================
``Cluster.from_arrays, read``   a snapshot, from arrays or files; ``write`` writes what came of it
``read_loads``                  loads measured elsewhere, such as a query result of Prometheus
``solve``                       a placement: no hard rule broken, level, few moves, with bounds
``solve_in_parts``              the same for millions of partitions, a part of them at a time
``Goals, Cost, Limits, Rule``   how level is level enough, or what costs what; budgets; rules
``Disks``                       the disks inside nodes, levelled in the same solve
``options``                     a class of options for each method
``Session, Changes``            a cluster held ready: changes in, answers out in milliseconds
``plan``                        steps that carry it out, safe at every instant
``sweep, frontier``             what if nodes are lost or loads grow; levelness against moves
``size, headroom``              the cheapest nodes for a forecast; how far loads may grow
``free_units``                  the most free units of a size, within a budget of moves
``relaxation, conflicts``       better bounds; which demands cannot hold together
``cockroach_cluster, hottest``  stores and ranges as CockroachDB speaks of them; what loads a node
``warmup, versions``            compile ahead; what belongs in a bug report
``control, simulate``           rooms: pipelines for controllers; clusters over time
``evenkeel.view.plots``         pictures, with matplotlib
==============================  ====================================================================

``help(evenkeel.solve)`` and the like say the rest.

>>> import evenkeel as ek
>>> cluster = ek.Cluster.from_arrays(
...     capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6
... )
>>> result = ek.solve(cluster, goals=ek.Goals(level=0.0))
>>> result.success
True
"""

import typing as _typing

from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import GroupTable, NodeTable
from evenkeel.model.disks import Disks, DiskState
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost, Goals, Proportion
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.later import on_first_use as _on_first_use
from evenkeel.model.runtime.logs import be_silent as _be_silent
from evenkeel.showing import read_frames as _read_frames
from evenkeel.showing import show_snapshots as _show_snapshots
from evenkeel.systems import register_methods as _register_methods

if _typing.TYPE_CHECKING:
    from evenkeel import control as control
    from evenkeel import options
    from evenkeel import simulate as simulate
    from evenkeel.install.diagnostics import versions, warmup
    from evenkeel.methods.exact.conflicts import conflicts
    from evenkeel.methods.relaxation import relaxation
    from evenkeel.model.changes import Changes
    from evenkeel.planning.plan import Plan
    from evenkeel.planning.planner import plan
    from evenkeel.planning.throttle import Protocol, Throttle, Windows
    from evenkeel.result import Result
    from evenkeel.session import Session
    from evenkeel.solving import solve
    from evenkeel.studies.frontier import Frontier, frontier
    from evenkeel.studies.growth.forecast import Forecast
    from evenkeel.studies.growth.headroom import Headroom, headroom
    from evenkeel.studies.growth.node_types import NodeType
    from evenkeel.studies.growth.packing import free_units
    from evenkeel.studies.growth.sizing import Sizing, size
    from evenkeel.studies.parts import solve_in_parts
    from evenkeel.studies.sweep import Sweep, sweep
    from evenkeel.systems.cockroach.allocator.hottest import hottest
    from evenkeel.systems.cockroach.allocator.intake import cockroach_cluster
    from evenkeel.systems.folders.writing import write_plan_folder
    from evenkeel.systems.loads import MeasuredLoads, read_loads
    from evenkeel.systems.plans.reading import read_plan
    from evenkeel.systems.plans.writing import write_plan
    from evenkeel.systems.registry import read, usual, write

__version__ = "0.1.0"

_register_methods()
_show_snapshots()
_read_frames()
_be_silent()

__all__ = [
    "Changes", "Cluster", "Cost", "DiskState", "Disks", "Fault", "Flag", "Forecast", "Frontier",
    "Goals", "GroupTable", "Headroom", "InvalidInput", "Limits", "MeasuredLoads", "NodeTable",
    "NodeType", "Placement", "Plan", "Proportion", "Protocol", "Result", "Role", "Rule",
    "Session", "Sizing", "Sweep", "Throttle", "Windows", "cockroach_cluster", "conflicts",
    "free_units", "frontier", "headroom", "hottest", "options", "plan", "read", "read_loads",
    "read_plan", "relaxation", "size", "solve", "solve_in_parts", "sweep", "usual", "versions",
    "warmup", "write", "write_plan", "write_plan_folder",
]  # fmt: skip

__getattr__, __dir__ = _on_first_use(__name__, {
    "evenkeel.control": "",
    "evenkeel.install.diagnostics": "versions warmup",
    "evenkeel.methods.exact.conflicts": "conflicts",
    "evenkeel.methods.relaxation": "relaxation",
    "evenkeel.model.changes": "Changes",
    "evenkeel.options": "",
    "evenkeel.planning.plan": "Plan",
    "evenkeel.planning.planner": "plan",
    "evenkeel.planning.throttle": "Protocol Throttle Windows",
    "evenkeel.result": "Result",
    "evenkeel.session": "Session",
    "evenkeel.simulate": "",
    "evenkeel.solving": "solve",
    "evenkeel.studies.frontier": "Frontier frontier",
    "evenkeel.studies.growth.forecast": "Forecast",
    "evenkeel.studies.growth.headroom": "Headroom headroom",
    "evenkeel.studies.growth.node_types": "NodeType",
    "evenkeel.studies.growth.packing": "free_units",
    "evenkeel.studies.growth.sizing": "Sizing size",
    "evenkeel.studies.parts": "solve_in_parts",
    "evenkeel.studies.sweep": "Sweep sweep",
    "evenkeel.systems.cockroach.allocator.hottest": "hottest",
    "evenkeel.systems.cockroach.allocator.intake": "cockroach_cluster",
    "evenkeel.systems.folders.writing": "write_plan_folder",
    "evenkeel.systems.loads": "MeasuredLoads read_loads",
    "evenkeel.systems.plans.reading": "read_plan",
    "evenkeel.systems.plans.writing": "write_plan",
    "evenkeel.systems.registry": "read usual write",
})  # fmt: skip
