"""The public machine-reassignment problem: its data, and an exact check of solutions.

Everything is an integer and stays one: loads are summed in 64 bits, and what a weight multiplies is
a Python integer. P processes, M machines, R resources, S services, E dependencies, B balance costs.

References
----------
ROADEF/EURO challenge 2012, problem statement: hard constraints (capacity, conflict, spread,
dependency, transient use) and the five parts of the objective.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

SHOWN_OFFENDERS = 5  # offenders of one constraint that a verdict names
SAFE_PRODUCT = 2**62  # products that could pass this are formed of Python integers
Constraint = Literal["capacity", "conflict", "spread", "dependency", "transient"]


@dataclass(frozen=True, eq=False)
class MoveDistance:
    """Cost of moving from machine to machine: three numbers, or a matrix."""

    # cost across neighbourhoods; across locations of one neighbourhood; inside one location of one
    # neighbourhood. Used where there is no matrix.
    by_class: tuple[int, int, int]
    matrix: NDArray[np.uint32] | None  # (M, M) cost per pair, where three numbers do not suffice

    def between(
        self,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        neighbourhood: NDArray[np.int64],
        location: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return the cost of each pair.

        >>> at = np.array([0, 0, 1])
        >>> MoveDistance((2, 1, 0), None).between(np.array([0, 0]), np.array([1, 2]), at, at)
        array([0, 2])
        """
        if self.matrix is not None:
            return self.matrix[source, target].astype(np.int64)
        far, near, same = self.by_class
        apart = np.where(location[source] != location[target], near, same)
        return np.where(neighbourhood[source] != neighbourhood[target], far, apart)


@dataclass(frozen=True, eq=False)
class RoadefModel:
    """The integers of a model file, and the machine that each process starts on."""

    transient: NDArray[np.bool_]  # (R,) resources that a moved process uses on both machines
    load_weight: NDArray[np.int64]  # (R,) cost of one unit above the safety capacity
    # neighbourhood, location: (M,) where each machine stands
    neighbourhood: NDArray[np.int64]
    location: NDArray[np.int64]
    # capacity, safety: (M, R) hard limit, and the use above which load costs
    capacity: NDArray[np.int64]
    safety: NDArray[np.int64]
    distance: MoveDistance  # cost of moving between two machines
    spread: NDArray[np.int64]  # (S,) distinct locations that each service needs
    needs: NDArray[np.int64]  # (E, 2) (service, service it depends on), by the first, in file order
    service: NDArray[np.int64]  # (P,) service of each process
    requirement: NDArray[np.int64]  # (P, R) what each process uses
    move_cost: NDArray[np.int64]  # (P,) cost of moving each process
    balance: NDArray[np.int64]  # (B, 4) first resource, second resource, target, weight
    # process_weight, service_weight, machine_weight: weights of the three move costs
    process_weight: int
    service_weight: int
    machine_weight: int
    initial: NDArray[np.int64]  # (P,) machine of each process before


@dataclass(frozen=True)
class Breach:
    """One constraint that an assignment breaks."""

    constraint: Constraint  # which
    # how often: (machine, resource) pairs, processes too many, locations missing, processes without
    # what they depend on
    count: int
    offenders: tuple[str, ...]  # the first few

    def __str__(self) -> str:
        return f"{self.constraint} broken {self.count} times: {', '.join(self.offenders)}"


@dataclass(frozen=True)
class Verdict:
    """What an assignment costs, part by part, and which constraints it breaks."""

    # load, balance, process_move, service_move, machine_move: the five parts of the cost, weighted
    load: int
    balance: int
    process_move: int
    service_move: int
    machine_move: int
    breaches: tuple[Breach, ...]  # empty for a feasible assignment

    @property
    def cost(self) -> int:
        """Sum of the five parts."""
        return self.load + self.balance + self.process_move + self.service_move + self.machine_move

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds."""
        return not self.breaches

    def __str__(self) -> str:
        state = "feasible" if self.feasible else "; ".join(map(str, self.breaches))
        return (
            f"cost {self.cost} (load {self.load}, balance {self.balance}, moves "
            f"{self.process_move} + {self.service_move} + {self.machine_move}), {state}"
        )


def check(model: RoadefModel, assignment: NDArray[Any]) -> Verdict:
    """Judge an assignment: its exact cost, and every constraint it breaks."""
    at = np.asarray(assignment, np.int64)
    machines = len(model.capacity)
    if at.shape != model.service.shape:
        raise ValueError(f"needs one machine for each of {len(model.service)} processes")
    if at.size and (at.min() < 0 or at.max() >= machines):
        raise ValueError(f"needs machines from 0 to {machines - 1}")
    use = _use(at, model.requirement, machines)
    breaches = (
        *_capacity(model, at, use),
        *_conflict(model, at),
        *_spread(model, at),
        *_dependency(model, at),
    )
    moved = at != model.initial
    moved_of_service = np.bincount(model.service[moved], minlength=len(model.spread))
    over = np.maximum(use - model.safety, 0).sum(axis=0)
    travelled = model.distance.between(model.initial, at, model.neighbourhood, model.location)
    return Verdict(
        load=sum(w * u for w, u in zip(model.load_weight.tolist(), over.tolist(), strict=True)),
        balance=_balance(model, use),
        process_move=model.process_weight * int(model.move_cost[moved].sum()),
        service_move=model.service_weight * int(moved_of_service.max(initial=0)),
        machine_move=model.machine_weight * int(travelled.sum()),
        breaches=breaches,
    )


def _use(at: NDArray[np.int64], requirement: NDArray[np.int64], machines: int) -> NDArray[np.int64]:
    use = np.zeros((machines, requirement.shape[1]), np.int64)
    np.add.at(use, at, requirement)
    return use


def _balance(model: RoadefModel, use: NDArray[np.int64]) -> int:
    free = model.capacity - use
    cost = 0
    for a, b, target, weight in model.balance.tolist():
        one, other = free[:, a], free[:, b]
        if target * int(np.abs(one).max(initial=0)) >= SAFE_PRODUCT // max(1, len(free)):
            one = one.astype(object)
        cost += weight * int(np.maximum(target * one - other, 0).sum())
    return cost


def _capacity(model: RoadefModel, at: NDArray[np.int64], use: NDArray[np.int64]) -> list[Breach]:
    """Rule 1, and rule 5 in its place where a resource is transient."""
    moved = at != model.initial
    left = _use(model.initial[moved], model.requirement[moved], len(use))
    total = use + np.where(model.transient, left, 0)
    found = []
    kinds: tuple[tuple[Constraint, NDArray[np.bool_]], ...] = (
        ("capacity", ~model.transient),
        ("transient", model.transient),
    )
    for name, which in kinds:
        pairs = np.argwhere((total > model.capacity) & which)
        messages = [
            f"machine {m} resource {r}: {total[m, r]} > {model.capacity[m, r]}"
            for m, r in pairs[:SHOWN_OFFENDERS].tolist()
        ]
        found += _breach(name, len(pairs), messages)
    return found


def _conflict(model: RoadefModel, at: NDArray[np.int64]) -> list[Breach]:
    """Rule 2: processes of one service stand on different machines."""
    pair, count = np.unique(model.service * len(model.capacity) + at, return_counts=True)
    crowded = count > 1
    messages = [
        f"service {key // len(model.capacity)} machine {key % len(model.capacity)}"
        for key in pair[crowded][:SHOWN_OFFENDERS].tolist()
    ]
    return _breach("conflict", int((count[crowded] - 1).sum()), messages)


def _spread(model: RoadefModel, at: NDArray[np.int64]) -> list[Breach]:
    """Rule 3: each service touches enough locations."""
    places = int(model.location.max(initial=0)) + 1
    touched = np.unique(model.service * places + model.location[at]) // places
    reached = np.bincount(touched, minlength=len(model.spread))
    missing = np.maximum(model.spread - reached, 0)
    messages = [
        f"service {s}: {reached[s]} of {model.spread[s]} locations"
        for s in np.flatnonzero(missing)[:SHOWN_OFFENDERS].tolist()
    ]
    return _breach("spread", int(missing.sum()), messages)


def _dependency(model: RoadefModel, at: NDArray[np.int64]) -> list[Breach]:
    """Rule 4: whatever neighbourhood a service touches holds each service it depends on."""
    areas = int(model.neighbourhood.max(initial=0)) + 1
    present = np.zeros((len(model.spread), areas), np.int64)
    np.add.at(present, (model.service, model.neighbourhood[at]), 1)
    count = 0
    messages: list[str] = []
    for service, needed in model.needs.tolist():
        bare = (present[service] > 0) & (present[needed] == 0)
        count += int(present[service][bare].sum())
        messages += [
            f"service {service} without {needed} in neighbourhood {area}"
            for area in np.flatnonzero(bare).tolist()
        ]
    return _breach("dependency", count, messages[:SHOWN_OFFENDERS])


def _breach(constraint: Constraint, count: int, offenders: list[str]) -> list[Breach]:
    return [Breach(constraint, count, tuple(offenders))] if count else []
