"""Play: simulate a cluster with events, or a scenario, and a controller that reacts."""

import operator
from collections.abc import Sequence

import numpy as np

from evenkeel.control.pipeline import Pipeline
from evenkeel.methods.contract import SimulatedState
from evenkeel.methods.options import Options
from evenkeel.methods.registry import METHODS, find
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.planning.plan import Plan
from evenkeel.simulate.controllers.method import Balancing, Solve, method_named
from evenkeel.simulate.controllers.pipeline import Publishing, check_pipeline
from evenkeel.simulate.controllers.plan import planned
from evenkeel.simulate.controllers.range_by_range import RangeByRange
from evenkeel.simulate.engine.environment import Environment
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.events import Event, above_zero, bound
from evenkeel.systems.helix.options import Waged

AFTERWARDS = 3600.0
"""Seconds that are played after the last event, by default."""


def play(
    cluster: Cluster,
    events: Sequence[Event] = (),
    method: str | Pipeline | Controller | Solve | Plan = "balance",
    *,
    until: float | None = None,
    every: float = 60.0,
    goals: Goals | None = None,
    options: Options | None = None,
    environment: Environment | None = None,
    seed: int = 0,
    name: str = "",
) -> History:
    """Simulate events on a cluster, and a controller that reacts to them.

    Parameters
    ----------
    cluster : Cluster
        The beginning; it is not changed.
    events : sequence of Event, optional
        What happens, in any order: ``Changes`` ``At`` a time, ``RollingUpgrade``, ``LoadDrift``,
        ``Growth`` and others.
    method : str, Pipeline, Plan, Controller or callable, optional
        Who decides. The name of a method, which solves the whole cluster after every event, what it
        reads of the cluster's payload brought up to date; a ``Pipeline`` of
        ``evenkeel.simulate.pipeline``, whose steps are carried out; a ``Plan``, which is carried
        out, and planned anew to the same target when something comes in between; a callable that
        takes a cluster, goals and a seed and returns a placement; or a controller, such as that of
        ``evenkeel.simulate.planned``, which carries out plans.
    until : float, optional
        Seconds that are played; an hour beyond the last event by default.
    every : float, optional
        Seconds between two samples.
    goals : Goals, optional
        What a method is asked for; ``Goals()`` by default.
    options : options.Options, optional
        The method's own options. Without any, ``helix_waged`` has ``scope="emergency"``, which
        repairs what nodes lost and balances nothing; a pipeline runs its other scopes, too.
    environment : Environment, optional
        How fast changes are carried out, how often is decided, how data grows, and whether changes
        need a majority; ``Environment()`` by default.
    seed : int, optional
        For the method; events have seeds of their own. The same seeds give the same bits.
    name : str, optional
        What the history calls it.

    Returns
    -------
    History
        What was measured.

    Raises
    ------
    InvalidInput
        If an argument or an event makes no sense; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[30.0]] * 6, load=[[1.0]] * 20, domains={"zone": ["a", "b", "c"] * 2},
    ...     placement=[[0, 1, 2], [3, 4, 5]] * 10, min_active=2, spread={"zone": 1},
    ... )
    >>> events = [
    ...     simulate.At(60.0, ek.Changes(down="n0"), dead_after=300.0),
    ...     simulate.At(1200.0, ek.Changes(load_factor={"p1": 8.0}, name="p1 hot")),
    ... ]
    >>> history = simulate.play(cluster, events, until=3600.0)
    >>> history.total("moves") >= 10, history.total("below_min_active")
    (True, 0.0)
    >>> history.events
    ((60.0, 'n0 down'), (360.0, 'n0 dead'), (1200.0, 'p1 hot'))
    """
    require_cluster(cluster)
    faults = FaultList()
    whole, happens = bound(faults, cluster, events)
    last = max((event.at for event in happens if isinstance(event.at, int | float)), default=0.0)
    end = last + AFTERWARDS if until is None else until
    for what, value in (("until", end), ("every", every)):
        above_zero(faults, what, value)
    if not faults.about("until", "events"):
        for i, event in enumerate(events):
            if event.at > end:
                faults.add(f"events[{i}].at", event.at, f"is after the end, {end:g}")
    if goals is not None and not isinstance(goals, Goals):
        faults.add("goals", goals, "must be Goals")
    surroundings = Environment() if environment is None else environment
    if not isinstance(surroundings, Environment):
        faults.add("environment", surroundings, "must be an Environment")
    elif (growth := surroundings.growth) is not None and np.shape(growth) != (
        len(cluster.partitions),
    ):
        faults.add("environment.growth", np.shape(growth), "needs one value for each partition")
    try:
        seed = operator.index(seed)
    except TypeError:
        faults.add("seed", seed, "must be an integer")
    controller, who = _controller(faults, method, options, seed)
    decides = method.name if isinstance(method, Pipeline) else method
    if isinstance(decides, str) and decides in METHODS:
        _check_payload(faults, decides, cluster, whole, events)
    faults.raise_if_any()
    assert controller is not None
    scenario = Scenario(
        name=name or who,
        cluster=whole,
        minutes=end / 60.0,
        events=happens,
        goals=goals or Goals(),
        environment=surroundings,
        every=every,
    )
    stage = Stage(scenario, controller, seed)
    if last > end:
        stage.recorder.warn(
            f"{sum(event.at > end for event in happens)} things that follow from events come after "
            f"the end, the last of them at {last:g} seconds"
        )
    return stage.play(who)


def _check_payload(
    faults: FaultList, method: str, cluster: Cluster, whole: Cluster, events: Sequence[Event]
) -> None:
    """Note events that a method cannot see: it reads more of a cluster than the model holds."""
    refresh = None if faults else find(method).refresher()
    if refresh is None:
        return
    why = f"{method} reads the cluster's payload, which covers only what it was read with"
    fixed = find(method).fixed_membership
    if fixed and len(whole.nodes) > len(cluster.nodes):
        added = [whole.nodes.names[n] for n in range(len(cluster.nodes), len(whole.nodes))]
        faults.add("events", added, f"{why}: have these nodes down from the start, and up later")
    for i, event in enumerate(events):
        if fixed and event.grows:
            faults.add(f"events[{i}]", type(event).__name__, f"{why}: it cannot add partitions")
    if not faults:
        try:  # over no time at all, so that missing input is reported at once
            nodes, partitions = len(whole.nodes), len(whole.partitions)
            refresh(SimulatedState(whole, whole, np.arange(partitions), 0.0, np.zeros(nodes)))
        except InvalidInput as unfit:
            faults.faults.extend(unfit.faults)


def _controller(
    faults: FaultList,
    method: str | Pipeline | Controller | Solve | Plan,
    options: Options | None,
    seed: int,
) -> tuple[Controller | None, str]:
    """Return who decides, and what they are called."""
    if isinstance(method, str):
        if method == "helix_waged" and options is None:
            options = Waged(scope="emergency")
        try:
            solve, refresh = method_named(method, options), find(method).refresher()
        except InvalidInput as unfit:
            faults.faults.extend(unfit.faults)
            return None, method
        return Balancing(solve, seed=seed, full=1.0, refresh=refresh), method
    if options is not None:
        faults.add("options", options, "go with the name of a method")
    if isinstance(method, Pipeline):
        check_pipeline(faults, "method", method)
        return Publishing(method) if not faults else None, f"pipeline, {method.name}"
    if isinstance(method, Plan):
        return planned(method), "plan"
    if isinstance(method, Controller):
        return method, type(method).__name__
    if callable(method):
        who = getattr(method, "__name__", type(method).__name__)
        return Balancing(method, seed=seed, full=1.0), who
    faults.add("method", method, "must be a method, a Pipeline, a Plan, a Controller or a callable")
    return None, ""


def run(scenario: Scenario, method: str | Controller | Solve = "balance", seed: int = 0) -> History:
    """Play a scenario.

    Parameters
    ----------
    scenario : Scenario
        What is played.
    method : str, Controller or callable
        Who decides: a method's name; ``"cockroach"`` decides range by range as CockroachDB's queues
        do, every other method solves the whole cluster. Or a controller, or a callable that takes a
        cluster, goals and a seed and returns a placement.
    seed : int
        All randomness comes from it; the same seed gives the same bits.

    Returns
    -------
    History
        What was measured; ``history.check()`` holds the scenario's checks against it.

    Raises
    ------
    InvalidInput
        If there is no such method.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> quiet = simulate.Scenario("quiet", c, 1.0, checks=[simulate.AtMost("moves", 9.0)])
    >>> [finding.met for finding in simulate.run(quiet).check()]
    [True]
    """
    if isinstance(method, str) and find(method).decider:
        return Stage(scenario, RangeByRange(method, scenario, seed), seed).play(method)
    if isinstance(method, str):
        return Stage(scenario, Balancing(method_named(method), seed=seed), seed).play(method)
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        return Stage(scenario, Balancing(method, seed=seed), seed).play(name)
    return Stage(scenario, method, seed).play(type(method).__name__)
