"""WAGED as a method of ``solve``, and as what a pipeline runs."""

import time
from dataclasses import replace

import numpy as np

from evenkeel.measure.wanted import has_leaders
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.stopping import Progress, StopReason
from evenkeel.model.assignment import Assignment
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import writable
from evenkeel.systems.helix.options import Waged
from evenkeel.systems.helix.waged.cluster import model_of, run_nodes
from evenkeel.systems.helix.waged.failures import NoResult, WagedFailure
from evenkeel.systems.helix.waged.fit import Preference
from evenkeel.systems.helix.waged.model import Model
from evenkeel.systems.helix.waged.rebalance import Run, rebalance
from evenkeel.systems.helix.waged.scopes import Scope, Task, merged
from evenkeel_kernels.helix.waged_rows import into_slots

COUNTED_ON = (
    "a baseline (scope='global', the default) counts on dead nodes to come back; "
    "options.Waged(scope='emergency') places anew what they hold, and a node that is gone for good "
    "should be marked gone"
)
"""What is said of replicas on dead nodes."""


def helix_waged(request: Request) -> Outcome:
    """Run WAGED in one of its scopes.

    References
    ----------
    Apache Helix, ``WagedRebalancer``.
    """
    begun = time.perf_counter()
    options = request.options
    assert isinstance(options, Waged)
    model = model_of(request.cluster, options)
    task = _task(request, options, model)
    preference = Preference(options.evenness, options.less_movement, options.force_converge)
    stopper = _Stopper(request, len(task.nodes))
    bound = time.perf_counter() - begun
    try:
        run = rebalance(model, task, preference, tuple(options.scoring_keys), stopper.asked)
    except NoResult as reason:
        return _unchanged(request, "exhausted", reason.failure)
    if run.assignment is None:
        return _unchanged(request, stopper.reason or "interrupted", None)
    assignment = run.assignment
    if task.scope is Scope.OVERWRITE and options.merge:
        assignment = merged(task.current, assignment)
    outcome = _outcome(request, run, task.scope, assignment)
    timings = {**run.timings, "model": run.timings["model"] + bound}
    return replace(outcome, work=run.placed * len(task.nodes), timings=timings)


class _Stopper:
    """Asks the watch of a request, and remembers what it said."""

    def __init__(self, request: Request, nodes: int) -> None:
        self._watch = request.watch
        self._nodes = nodes
        self.reason: StopReason | None = None

    def asked(self, placed: int) -> bool:
        """Whether to stop after so many replicas."""
        watch = self._watch
        told = Progress("fit", placed * self._nodes, watch.seconds, placed, 0.0)
        self.reason = watch.stop(told)
        return self.reason is not None


def _task(request: Request, options: Waged, model: Model) -> Task:
    """Bind the options to the cluster."""
    faults = FaultList()
    names = request.cluster.partitions.group_names
    changed = np.zeros(len(names), np.bool_)
    for name in options.changed_groups or ():
        if name in names:
            changed[names.index(name)] = True
        else:
            faults.add("options.changed_groups", name, "unknown group")
    for key in options.scoring_keys:
        if key not in model.keys:
            faults.add("options.scoring_keys", key, f"unknown dimension; known: {list(model.keys)}")
    start = request.start if options.current is None else options.current
    current = _assignment(faults, "options.current", start, model)
    baseline = None
    if options.baseline is not None:
        baseline = _assignment(faults, "options.baseline", options.baseline, model)
    faults.raise_if_any()
    anew = changed[model.group]
    everything = {"cluster", "nodes"} | ({"groups"} if options.changed_groups is None else set())
    if everything & set(options.changes):
        anew = np.ones(len(model.kind), np.bool_)
    scope = Scope(options.scope)
    nodes = run_nodes(request.cluster.nodes, scope)
    return Task(scope, nodes, current, baseline if scope is Scope.PARTIAL else None, anew)


def _assignment(
    faults: FaultList, path: str, given: Assignment | Placement, model: Model
) -> Assignment:
    """Take an assignment in, or a placement as one."""
    found = _once_per_node(given) if isinstance(given, Placement) else given
    if len(found) != len(model.kind):
        faults.add(path, len(found), f"must have {len(model.kind)} partitions")
    elif len(found.node):
        if found.node.min() < 0 or found.node.max() >= len(model.nodes):
            faults.add(path, int(found.node.max()), "names nodes that there are not")
        if found.state.max() >= model.states:
            faults.add(path, int(found.state.max()), f"must have states below {model.states}")
    return found


def _once_per_node(placement: Placement) -> Assignment:
    """Read a placement; of several replicas on one node the leader counts, or else one of them."""
    found = Assignment.of_placement(placement)
    pairs = found.owner.astype(np.int64) << 32 | found.node
    distinct, kept = np.unique(pairs, return_index=True)
    if len(distinct) == len(pairs):
        return found
    return Assignment.of_rows(len(found), found.owner[kept], found.node[kept], found.state[kept])


def _unchanged(request: Request, reason: StopReason, failure: WagedFailure | None) -> Outcome:
    """Leave everything as it came."""
    told = "" if failure is None else f"Everything stays as it is: {failure.message}."
    return Outcome(
        node=np.array(request.start.node),
        leader=np.array(request.start.leader),
        stop_reason=reason,
        message=told,
        warnings=(failure.message,) if failure is not None else (),
        native=failure,
    )


def _outcome(request: Request, run: Run, scope: Scope, assignment: Assignment) -> Outcome:
    """Put an assignment into the slots of the cluster."""
    start = request.start
    node = np.empty(len(start.node), np.int32)
    leader = np.empty(len(start), np.int16)
    spilled = into_slots(
        writable(start.first), writable(start.node), writable(start.leader),
        writable(assignment.first), writable(assignment.node), writable(assignment.state),
        node, leader,
    )  # fmt: skip
    if not has_leaders(request.cluster):
        leader[:] = -1
    warnings = [f"{spilled} replicas have no slot; native has them"] if spilled else []
    dead = ~request.cluster.nodes.may_hold[assignment.node]
    left = int(np.count_nonzero(dead)) if scope is Scope.GLOBAL else 0
    warnings += [COUNTED_ON] if left else []
    return Outcome(
        node=node,
        leader=leader,
        stop_reason="exhausted",
        message=f"{run.placed:,} replicas placed{f'; {left:,} are on dead nodes' if left else ''}.",
        warnings=tuple(warnings),
        native=assignment,
    )
