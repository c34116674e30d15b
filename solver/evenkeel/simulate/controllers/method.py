"""Controller that runs a method on the whole cluster and moves the replicas that differ."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import RefreshPayload, SimulatedState
from evenkeel.methods.options import Options
from evenkeel.methods.registry import find
from evenkeel.methods.run import run_method
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.engine.world import Change, Demands, World, demands_of

# takes a cluster, goals and a seed, and returns a placement
Solve = Callable[[Cluster, Goals, int], Placement]


def method_named(name: str, options: Options | None = None) -> Solve:
    """Return a method as a controller calls it: what ``solve`` would answer, and nothing else."""
    find(name)

    def solve(cluster: Cluster, goals: Goals, seed: int) -> Placement:
        run = run_method(name, cluster, goals=goals, options=options, seed=seed)
        if run.outcome.stop_reason == "interrupted":
            raise KeyboardInterrupt  # the strategy has caught it to keep its best so far
        return run.placement

    return solve


DRIFT = 1.01  # how much less level, times, is worth another solve
# disks are not filled further than this, so that they stay below 0.95 until the next look
FULL = 0.94


class Balancing(Controller):
    """Solves the cluster anew after every event, and where replicas grow every so often."""

    def __init__(
        self,
        solve: Solve,
        seed: int = 0,
        *,
        full: float = FULL,
        refresh: RefreshPayload | None = None,
    ) -> None:
        self._solve = solve
        self._refresh = refresh
        self._full = full
        self._seed = seed
        self._solved = -1
        self._failed = False
        self._postponed = False
        self._next = 0.0
        self._level: NDArray[np.float64] | None = None
        self._plan: list[Change] = []
        self._plan_at = -1.0

    def wake(self, stage: Stage) -> float:
        """Decide, where something happened since the last time."""
        world = stage.world
        if 0.0 <= self._plan_at <= world.seconds:
            self._carry_out(stage)
        if world.seconds >= self._next and self._plan_at < 0.0:
            self._next = world.seconds + stage.scenario.environment.pace
            if (
                world.version != self._solved
                or self._failed
                or (stage.traffic.idle and (self._postponed or self._drifted(stage)))
            ):
                self._decide(stage)
                if self._plan_at <= world.seconds:
                    self._carry_out(stage)
        if self._plan_at >= 0.0:
            return self._plan_at
        quiet = stage.traffic.idle and not world.growth.any()
        return math.inf if quiet and world.version == self._solved else self._next

    def ended(self, number: int, change: Change, made: bool) -> None:
        """Hear that a change has ended; one that was not made is decided anew."""
        self._failed = self._failed or not made

    def _decide(self, stage: Stage) -> None:
        world = stage.world
        self._solved = world.version
        self._failed = self._postponed = False
        self._level = None
        under_way = stage.traffic.under_way()
        forbidden = np.array(stage.recorder.all_left(), np.int32).reshape(-1, 2)
        cluster = with_room(world.snapshot(under_way, forbidden), self._full)
        exchanged = cluster.with_placement(with_roles_exchanged(cluster))
        if self._refresh is not None:
            exchanged = self._refresh(
                SimulatedState(
                    world.cluster, exchanged, world.origin, world.seconds, world.health_since
                )
            )
        after = self._solve(exchanged, stage.scenario.goals, self._seed)
        self._plan = self._changes(world, cluster, after)
        self._plan_at = world.seconds + stage.scenario.environment.gossip_delay

    def _changes(self, world: World, before: Cluster, after: Placement) -> list[Change]:
        """Return what is to be asked for, of the partitions that can change."""
        found = steps(world, before.placement, after)
        return [change for change in found if world.can_change(change.partition)]

    def _carry_out(self, stage: Stage) -> None:
        """Ask for what was decided as soon as the figures that it rests on could be known."""
        self._plan_at = -1.0
        stage.traffic.withdraw(lambda change: True)
        for change in self._plan:
            if not stage.traffic.busy(change.partition):
                stage.submit(change)
            else:
                self._postponed = True

    def _drifted(self, stage: Stage) -> bool:
        """Whether growth has filled a disk, or has upset what was level after the last moves."""
        world = stage.world
        if not world.growth.any():
            return False
        goals, dimensions = stage.scenario.goals, world.cluster.dimensions
        level = np.zeros(len(dimensions))
        accepts = world.accepts()
        for d, name in enumerate(dimensions):
            if goals.tolerance(name) is not None:
                room = np.maximum(world.capacity[accepts, d], 1e-300)
                load = world.load[accepts, d]
                level[d] = (load / room).max() * room.sum() / max(load.sum(), 1e-300)
        before, self._level = self._level, level if self._level is None else self._level
        full = world.load[:, world.disk] > self._full * world.capacity[:, world.disk]
        worse = before is not None and bool((level > DRIFT * before).any())
        return worse or bool((full & world.serves()).any())


def with_room(cluster: Cluster, full: float = FULL) -> Cluster:
    """Return a cluster whose disks may be filled only so far."""
    if cluster.bytes_dimension < 0 or full == 1.0:
        return cluster
    capacity = cluster.nodes.capacity.copy()
    capacity[:, cluster.bytes_dimension] *= full
    return replace(cluster, nodes=replace(cluster.nodes, capacity=capacity))


def steps(world: World, before: Placement, after: Placement) -> list[Change]:
    """Return what turns one placement into another, one change for each partition that differs."""
    width = before.slots or 1
    was, wanted = before.node.reshape(-1, width), after.node.reshape(-1, width)
    role, then = before.role.reshape(-1, width), after.role.reshape(-1, width)
    moved = (was != wanted).any(1) | ((role != then) & (was >= 0)).any(1)
    led = before.leader_node != after.leader_node
    found = []
    for partition in np.flatnonzero(moved | led).tolist():
        leads = int(after.leader_node[partition])
        if not moved[partition]:
            found.append(Change(partition, lead=leads, reason="leadership", urgency=1.0))
            continue
        rows = (was[partition], role[partition], wanted[partition], then[partition])
        found.append(_step(partition, *rows, leads, world))
    return found


def _step(
    partition: int,
    was: NDArray[np.int32],
    role: NDArray[np.uint8],
    wanted: NDArray[np.int32],
    next_role: NDArray[np.uint8],
    leads: int,
    world: World,
) -> Change:
    """Return the change of one partition; what repairs is more urgent than what levels."""
    now = {int(node): Role(r) for node, r in zip(was, role, strict=True) if node >= 0}
    then = {int(node): Role(r) for node, r in zip(wanted, next_role, strict=True) if node >= 0}
    lost = tuple(node for node in now if node not in then)
    repairs = len(now) != int(world.wanted[partition]) or not world.serves()[list(lost)].all()
    return Change(
        partition,
        add=tuple((node, r) for node, r in then.items() if node not in now),
        drop=lost,
        role=tuple((node, r) for node, r in then.items() if now.get(node, r) != r),
        lead=leads,
        reason="repair" if repairs else "level",
        urgency=2.0 if repairs else 0.0,
    )


def with_roles_exchanged(cluster: Cluster) -> Placement:
    """Return the placement with other voters where that alone meets a rule which is broken."""
    # CockroachDB #106559: voters and non-voters that hold each other in place
    placement = cluster.placement
    if not placement.role.any() or placement.slots is None:
        return placement
    node = placement.nodes
    held = node >= 0
    role = placement.role.reshape(node.shape).copy()
    for number, demands in enumerate(demands_of(cluster)):
        mine = np.flatnonzero(cluster.partitions.rule == number)
        votes = held & (role == Role.VOTER)
        for p in mine[demands.broken(node[mine], held[mine], votes[mine])].tolist():
            _exchange(demands, node[p], role[p], int(placement.leader[p]))
    return Placement(
        placement.first,
        placement.node,
        read_only(role.reshape(-1)),
        placement.flags,
        placement.leader,
        placement.disk,
    )


def _exchange(
    demands: Demands, node: NDArray[np.int32], role: NDArray[np.uint8], leader: int
) -> None:
    """Give one row other voters, as few as possible, its leader among them if that can be."""
    slots = np.flatnonzero(node >= 0).tolist()
    voters = [slot for slot in slots if role[slot] == Role.VOTER]

    def cost(chosen: tuple[int, ...]) -> tuple[int, int]:
        return len(set(voters) - set(chosen)), int(leader in voters and leader not in chosen)

    held = (node >= 0)[None]
    for chosen in sorted(combinations(slots, len(voters)), key=cost):
        votes = np.zeros((1, len(node)), bool)
        votes[0, list(chosen)] = True
        if not demands.broken(node[None], held, votes)[0]:
            role[slots] = Role.NON_VOTER
            role[list(chosen)] = Role.VOTER
            return
