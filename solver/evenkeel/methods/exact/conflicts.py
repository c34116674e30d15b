"""Find a minimal set of contradictory rules and capacities of an infeasible cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenkeel.methods.exact.stages import bind, weigh
from evenkeel.methods.exact.variables import Reasons, Slack, add_variables
from evenkeel.methods.options import Exact
from evenkeel.methods.shared.size import check_size
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import require

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


@known_keywords
def conflicts(cluster: Cluster, options: Exact | None = None) -> tuple[str, ...] | None:
    """Find hard rules that cannot hold together while every replica wanted has a node.

    No smaller part of the set contradicts itself: each rule named would have to give way, or one
    of the others.

    Parameters
    ----------
    cluster : Cluster
        A small one; where its replicas are now matters for nodes that accept none.
    options : Exact, optional
        Size, threads and effort for each question.

    Returns
    -------
    tuple of str or None
        Each with the rule, its level and number, and the class of nodes it is about; empty if
        everything can hold; None if the effort did not suffice to decide.

    Raises
    ------
    InvalidInput
        If the cluster is larger than the options allow.

    Examples
    --------
    >>> from evenkeel.model.cluster import Cluster
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]], replicas=3,
    ...                         domains={"zone": ["a", "a", "b"]}, spread={"zone": 1})
    >>> conflicts(c)
    ('partition spread zone 1 (zone=a)', 'partition spread zone 1 (zone=b)')
    """
    options = Exact() if options is None else options
    faults = FaultList()
    require_cluster(cluster)
    require("options", options, Exact)
    check_size(faults, cluster, options)
    faults.raise_if_any()
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    switches: dict[str, Any] = {}
    variables = add_variables(
        cluster, model, Reasons(model, switches), Slack.none(cluster, model), may_miss=False
    )
    bind(variables)
    weigh(variables, None)
    core = sorted(switches)
    holds = _contradict(model, [switches[name] for name in core], options)
    if holds is not True:
        return () if holds is False else None
    for name in list(core):
        fewer = [other for other in core if other != name]
        if _contradict(model, [switches[other] for other in fewer], options) is True:
            core = fewer
    return tuple(core)


def _contradict(model: CpModel, switches: list[Any], options: Exact) -> bool | None:
    """Return whether constraints cannot hold together; None if that was not decided."""
    from ortools.sat.python import cp_model

    trial = model.clone()
    for switch in switches:
        trial.add(trial.get_bool_var_from_proto_index(switch.index) == 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = options.workers
    solver.parameters.catch_sigint_signal = False  # it would leave Python without its own handler
    solver.parameters.max_deterministic_time = options.effort
    status = solver.solve(trial)
    if status == cp_model.INFEASIBLE:
        return True
    return False if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
