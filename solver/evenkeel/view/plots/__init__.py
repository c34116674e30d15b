"""Plots: each takes matplotlib axes, or makes a figure of its own, and returns the axes.

They need matplotlib (``pip install evenkeel[plots]``). No window opens, no global state changes,
and whatever colour says a hatch, a marker or a line style says too.

>>> import evenkeel as ek
>>> from evenkeel.view import plots
>>> cluster = ek.Cluster.from_arrays(capacity=[[8.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6)
>>> plots.utilisation(ek.solve(cluster)).get_xlabel()
'node'
"""

from evenkeel.view.plots.moves import Flows, flows, flows_between
from evenkeel.view.plots.nodes import heat_map, leaders, utilisation
from evenkeel.view.plots.plans import frontier, gantt
from evenkeel.view.plots.series import bars, compared, course, evenness, ranges, trace

__all__ = [
    "Flows",
    "bars",
    "compared",
    "course",
    "evenness",
    "flows",
    "flows_between",
    "frontier",
    "gantt",
    "heat_map",
    "leaders",
    "ranges",
    "trace",
    "utilisation",
]
