"""A plan as controller: steps start once those that they depend on have ended."""

from dataclasses import replace

import numpy as np

from evenkeel.methods.contract import RefreshPayload
from evenkeel.methods.options import Options
from evenkeel.methods.registry import find
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Placement, Role
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import plan
from evenkeel.planning.steps import StepKind, roles_of
from evenkeel.planning.throttle import Protocol, Throttle
from evenkeel.simulate.controllers.method import Balancing, Solve, method_named
from evenkeel.simulate.engine.stage import Stage
from evenkeel.simulate.engine.world import Change, World


def planned(
    method: str | Solve | Plan = "balance",
    *,
    throttle: Throttle | None = None,
    protocol: str | Protocol = "plain",
    options: Options | None = None,
    seed: int = 0,
) -> "Planned":
    """Return a controller that carries plans out instead of bare placements.

    Each change is asked for when those that it waits for in the plan have ended, so that a plan
    stays safe however long its copies take. What happens in the middle, or a change that fails, has
    the rest planned anew from where everything is then, with what is under way.

    Parameters
    ----------
    method : str, callable or Plan
        The source of targets: a method, a callable that takes a cluster, goals and a
        seed and returns a placement, or a plan, which is carried out and keeps its target whatever
        happens.
    throttle : Throttle, optional
        How much may be under way at once; a plan brings its own.
    protocol : str or Protocol, optional
        What the system can do; a plan brings its own.
    options : options.Options, optional
        The method's own options.
    seed : int, optional
        For the method.

    Returns
    -------
    Planned
        For one run, as ``play`` takes it.

    Raises
    ------
    InvalidInput
        If there is no such method or protocol, or the options are not its own.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, bytes="d0")
    >>> carrying = simulate.planned("balance", throttle=ek.Throttle(copies=1))
    >>> history = simulate.play(cluster, [], carrying, until=600.0)
    >>> history.total("moves"), len(carrying.plans)
    (4.0, 1)
    """
    held = Protocol.named(protocol) if isinstance(protocol, str) else protocol
    if isinstance(method, Plan):
        wanted = method.target

        def towards(cluster: Cluster, goals: Goals, seed: int) -> Placement:
            return wanted

        return Planned(towards, method.throttle, method.protocol, given=method)
    solve, refresh = method, None
    if isinstance(method, str):
        solve, refresh = method_named(method, options), find(method).refresher()
    assert callable(solve)
    return Planned(solve, throttle or Throttle(), held, seed=seed, refresh=refresh)


class Planned(Balancing):
    """Makes a plan of what differs, and asks for a change once those that it waits for have ended.

    Parameters
    ----------
    solve : callable
        The source of targets.
    throttle : Throttle
        How much may be under way at once.
    protocol : Protocol
        What the system can do.
    seed : int, optional
        For ``solve``.
    refresh : callable, optional
        Brings the payload of a cluster up to date.
    given : Plan, optional
        The first plan, where everything is still as it was made for.

    Attributes
    ----------
    plans : list of Plan
        Every plan that was made, the first one first.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> carrying = simulate.planned("balance", throttle=ek.Throttle(copies=1))
    >>> history = simulate.play(c, [], carrying, until=600.0)
    >>> [plan.copies for plan in carrying.plans]
    [2]
    """

    def __init__(
        self,
        solve: Solve,
        throttle: Throttle,
        protocol: Protocol,
        *,
        seed: int = 0,
        refresh: RefreshPayload | None = None,
        given: Plan | None = None,
    ) -> None:
        super().__init__(solve, seed=seed, full=1.0, refresh=refresh)
        self.plans: list[Plan] = []
        self._throttle = throttle
        self._protocol = protocol
        self._given = given
        self._ahead: list[set[int]] = []
        self._next_ahead: list[set[int]] = []
        self._waiting: list[int] = []
        self._asked: dict[int, int] = {}
        self._settling: list[Change] = []

    def wake(self, stage: Stage) -> float:
        """Decide where something happened, and ask for what waits for nothing any more."""
        again = super().wake(stage)
        self._ask(stage)
        return again

    def ended(self, number: int, change: Change, made: bool) -> None:
        """Hear that a change has ended; what waited for it may go."""
        super().ended(number, change, made)
        done = self._asked.pop(number, -1)
        if made and done >= 0:
            for ahead in self._ahead:
                ahead.discard(done)

    def _changes(self, world: World, before: Cluster, after: Placement) -> list[Change]:
        """Plan the way, and return its changes; each waits for those before it in ``_ahead``."""
        found = self._plan_to(before, after)
        self.plans.append(found)
        changes, self._next_ahead = changes_of(found, led=world.led)
        return changes

    def _plan_to(self, before: Cluster, after: Placement) -> Plan:
        given, self._given = self._given, None
        if given is not None and np.array_equal(
            given.cluster.placement.node, before.placement.node
        ):
            return given
        start = before.placement
        learns = (start.role == Role.LEARNER) | (after.role == Role.LEARNER)
        kept = (start.node >= 0) & (learns | (not self._protocol.roles))
        role = np.where(kept, start.role, after.role)
        wanted = replace(after, role=role.astype(np.uint8))
        return plan(before, wanted, throttle=self._throttle, protocol=self._protocol)

    def _carry_out(self, stage: Stage) -> None:
        """Begin the plan that was made; what is under way counts as done, and is waited for."""
        self._plan_at = -1.0
        stage.traffic.withdraw(lambda change: True)
        self._asked = {}
        self._ahead = self._next_ahead
        self._waiting = list(range(len(self._plan)))
        self._settling = stage.traffic.under_way()

    def _ask(self, stage: Stage) -> None:
        """Ask for every change that waits for nothing any more."""
        if self._plan_at >= 0.0:
            return  # what is known by now is for the next plan
        if self._settling:
            flying = stage.traffic.under_way()
            self._settling = [one for one in self._settling if any(one is f for f in flying)]
            if self._settling:
                return
        left = []
        for i in self._waiting:
            number = -1 if self._ahead[i] else stage.submit(self._plan[i])
            if number < 0:
                left.append(i)
            else:
                self._asked[number] = i
        self._waiting = left


def changes_of(plan: Plan, *, led: bool) -> tuple[list[Change], list[set[int]]]:
    """Return what a partition goes through at once as one change each, and what each waits for."""
    steps = plan.steps
    # changes are counted in the order of their first steps
    _, opens, number = np.unique(plan.change, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(opens))[number]
    role = roles_of(plan.cluster.placement, steps, plan.target)
    recast = steps.in_place.tolist()
    kinds = steps.kind.tolist()
    count = int(number.max(initial=-1)) + 1
    add: list[list[tuple[int, Role]]] = [[] for _ in range(count)]
    drop: list[list[int]] = [[] for _ in range(count)]
    becomes: list[list[tuple[int, Role]]] = [[] for _ in range(count)]
    lead, partition = [-1] * count, [0] * count
    ahead: list[set[int]] = [set() for _ in range(count)]
    first, before = steps.first.tolist(), steps.before.tolist()
    of, source, target = number.tolist(), steps.source.tolist(), steps.target.tolist()
    for i, c in enumerate(of):
        partition[c] = int(steps.partition[i])
        if recast[i]:
            rises = kinds[i] == StepKind.PROMOTE
            becomes[c].append((target[i], Role.VOTER if rises else Role.NON_VOTER))
        elif kinds[i] == StepKind.COPY:
            add[c].append((target[i], Role(int(role[i]))))
        elif kinds[i] == StepKind.REMOVE:
            drop[c].append(source[i])
        elif kinds[i] in (StepKind.LEAD, StepKind.ORDER) and led:
            lead[c] = target[i]
        ahead[c].update(of[k] for k in before[first[i] : first[i + 1]])
        ahead[c].discard(c)
    changes = [
        Change(
            partition[c], tuple(add[c]), tuple(drop[c]), tuple(becomes[c]), lead[c], reason="plan"
        )
        for c in range(count)
    ]
    return changes, ahead
