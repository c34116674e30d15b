"""Machine-reassignment instances made from a seed, in the shapes of the ROADEF challenge's set B.

The services that share machines are dealt out first, to distinct machines by attraction; what must
hold at the start (spread, dependencies, capacities) is then asked only as far as it does. Processes
are log-uniform in size over three decades and more, machines are filled unevenly, and most of them
are full in some resource.

References
----------
ROADEF/EURO challenge 2012, problem statement, for what an instance is and its limits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.systems.roadef.reassignment import MoveDistance, RoadefModel

LARGEST = 2**32 - 1  # no integer of a model file is greater

# least requirement and decades, resource by resource and around
SIZES = ((900.0, 3.0), (450.0, 3.3), (130.0, 4.5), (15.0, 5.5))

# part of a size's logarithm that the first half of the resources have in common, and around
COMMON = (1.0, 0.95, 0.85, 0.9)

ATTRACTION = 0.5  # standard deviation of the logarithm of a machine's attraction

# shape of the gamma distribution of free capacity; the less, the more machines are full
HEADROOM_SHAPE = 0.7

# part of an average machine's use that is added to each before its headroom is drawn
EMPTY_USE = 0.1

LESS_USED = 0.05  # resources are used less than the fullest one by up to this part

SAFETY = (0.70, 0.95)  # safety capacity as a part of capacity

SERVICE_SPAN = 20.0  # large services against small ones, before all of them have two processes

LOAD_WEIGHT, BALANCE_TARGET, BALANCE_WEIGHT = 10, 2, 10
PROCESS_WEIGHT, SERVICE_WEIGHT, MACHINE_WEIGHT = 1, 10, 100


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How large an instance is, and how full."""

    processes: int
    machines: int
    resources: int
    transient: int
    services: int
    shared: int
    spread: int
    neighbourhoods: int
    locations: int
    dependencies: int
    balances: int
    utilisation: float


def _shape(*figures: int, utilisation: float) -> Shape:
    names = list(Shape.__dataclass_fields__)[:-1]
    return Shape(**dict(zip(names, figures, strict=True)), utilisation=utilisation)


# shapes of the challenge's set B; another shape: ``dataclasses.replace`` one of them
SHAPES = {
    "b_1": _shape(5_000, 100, 12, 4, 2_512, 500, 269, 5, 10, 4_412, 0, utilisation=0.883),
    "b_2": _shape(5_000, 100, 12, 0, 2_462, 500, 280, 5, 10, 3_617, 1, utilisation=0.886),
    "b_3": _shape(20_000, 100, 6, 2, 15_025, 1_000, 551, 5, 10, 16_560, 0, utilisation=0.837),
    "b_4": _shape(20_000, 500, 6, 0, 1_732, 1_000, 718, 5, 50, 40_485, 1, utilisation=0.836),
    "b_5": _shape(40_000, 100, 6, 2, 35_082, 1_000, 561, 5, 10, 14_515, 0, utilisation=0.836),
    "b_6": _shape(40_000, 200, 6, 0, 14_680, 1_000, 860, 5, 50, 42_081, 1, utilisation=0.835),
    "b_8": _shape(50_000, 100, 3, 1, 45_030, 1_000, 586, 5, 10, 15_145, 0, utilisation=0.839),
    "b_9": _shape(50_000, 1_000, 3, 0, 4_609, 1_000, 888, 5, 100, 43_437, 1, utilisation=0.912),
}


def reassignment(shape: Shape = SHAPES["b_1"], seed: int = 1) -> RoadefModel:
    """Make a machine-reassignment instance; its initial assignment keeps all five constraints.

    >>> from evenkeel.systems.roadef.reassignment import check
    >>> model = reassignment(SHAPES["b_1"], seed=7)
    >>> model.requirement.shape, check(model, model.initial).feasible
    ((5000, 12), True)
    """
    _validate(shape, seed)
    # every draw below stands in this order for good: another order makes another instance
    rng = np.random.default_rng(np.random.PCG64(seed))
    machines = np.arange(shape.machines)
    location = machines * shape.locations // shape.machines
    neighbourhood = location * shape.neighbourhoods // shape.locations
    attraction = np.exp(ATTRACTION * rng.standard_normal(shape.machines))
    service = np.repeat(np.arange(shape.services), _service_sizes(rng, shape))
    spreading = np.sort(rng.choice(shape.shared, shape.spread, replace=False))
    initial = _initial(rng, shape, service, attraction, location, spreading)
    reached = _touched(service, location[initial], shape.shared, shape.locations).sum(axis=1)
    spread = np.ones(shape.services, np.int64)
    spread[spreading] = rng.integers(2, reached[spreading], endpoint=True)
    near = _touched(service, neighbourhood[initial], shape.shared, shape.neighbourhoods)
    needs = _needs(rng, near, shape.dependencies)
    requirement, capacity = _loads(rng, shape, initial)
    least, most = SAFETY
    safety = np.floor(capacity * rng.uniform(least, most, capacity.shape)).astype(np.int64)
    transient = np.zeros(shape.resources, bool)
    transient[np.sort(rng.choice(shape.resources, shape.transient, replace=False))] = True
    # who stands where in the file tells nothing of how it was made
    named = rng.permutation(shape.services)
    needs = named[needs]
    shown = rng.permutation(shape.processes)
    pairs = np.arange(shape.balances)
    return RoadefModel(
        transient=transient,
        load_weight=np.full(shape.resources, LOAD_WEIGHT),
        neighbourhood=neighbourhood,
        location=location,
        capacity=capacity,
        safety=safety,
        distance=MoveDistance(
            (2 * int(shape.neighbourhoods > 1), int(shape.locations > shape.neighbourhoods), 0),
            None,
        ),
        spread=spread[np.argsort(named)],
        needs=needs[np.lexsort((needs[:, 1], needs[:, 0]))],
        service=named[service][shown],
        requirement=requirement[shown],
        move_cost=np.ones(shape.processes, np.int64),
        balance=np.stack(
            [pairs, pairs + 1, 0 * pairs + BALANCE_TARGET, 0 * pairs + BALANCE_WEIGHT], axis=1
        ),
        process_weight=PROCESS_WEIGHT,
        service_weight=SERVICE_WEIGHT,
        machine_weight=MACHINE_WEIGHT,
        initial=initial[shown],
    )


def _validate(shape: Shape, seed: int) -> None:
    """Raise all that is wrong with a shape together."""
    faults = FaultList()
    least = {"processes": 1, "machines": 1, "resources": 1, "services": 1}
    least |= {"neighbourhoods": 1, "locations": 1}
    for name in list(Shape.__dataclass_fields__)[:-1]:
        if getattr(shape, name) < least.get(name, 0):
            faults.add(name, getattr(shape, name), f"must be {least.get(name, 0)} or more")
    if seed < 0:
        faults.add("seed", seed, "must be 0 or more")
    if not 0.0 < shape.utilisation <= 1.0:
        faults.add("utilisation", shape.utilisation, "must be above 0, and 1 at most")
    for name, other in (
        ("transient", "resources"), ("shared", "services"), ("spread", "shared"),
        ("neighbourhoods", "locations"), ("locations", "machines"),
    ):  # fmt: skip
        if getattr(shape, name) > getattr(shape, other):
            faults.add(name, getattr(shape, name), f"must be at most {other}")
    if shape.balances >= max(shape.resources, 1):
        faults.add("balances", shape.balances, "needs one resource more than balance costs")
    if shape.spread > 0 and shape.locations < 2:
        faults.add("spread", shape.spread, "needs two locations")
    if shape.shared > 0 and shape.machines < 2:
        faults.add("shared", shape.shared, "needs two machines")
    alone = shape.services - shape.shared
    fewest = alone + 2 * shape.shared
    largest = alone + shape.machines * shape.shared
    if not fewest <= shape.processes <= largest:
        faults.add(
            "processes", shape.processes, f"must be {fewest} to {largest} for these services"
        )
    faults.raise_if_any()


def _service_sizes(rng: Generator, shape: Shape) -> NDArray[np.int64]:
    """Processes of each service, shared ones first: few large services and many small ones."""
    weight = np.exp(rng.random(shape.shared) * np.log(SERVICE_SPAN)) - 1.0
    extra = shape.processes - shape.services - shape.shared
    most = max(shape.machines - 2, 0)
    low, high = 0.0, 1.0
    while np.minimum(np.floor(weight * high), most).sum() < extra:
        high *= 2.0
        if high > 1e18:  # weights of about 0 keep some of them small, whatever the factor
            break
    for _ in range(100):
        middle = (low + high) / 2.0
        if np.minimum(np.floor(weight * middle), most).sum() <= extra:
            low = middle
        else:
            high = middle
    more = np.minimum(np.floor(weight * low), most).astype(np.int64)
    while (left := extra - int(more.sum())) > 0:
        more[np.flatnonzero(more < most)[:left]] += 1
    return np.concatenate([2 + more, np.ones(shape.services - shape.shared, np.int64)])


def _initial(
    rng: Generator,
    shape: Shape,
    service: NDArray[np.int64],
    attraction: NDArray[np.float64],
    location: NDArray[np.int64],
    spreading: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw the machine of each process: distinct ones for a service, by attraction."""
    size = np.bincount(service, minlength=shape.services)
    first = np.cumsum(size) - size
    # the largest of log-weights with Gumbel noise are a draw by weight without replacement
    noisy = np.log(attraction) + rng.gumbel(size=(shape.shared, shape.machines))
    chosen = np.argsort(-noisy, axis=1, kind="stable")
    together = int(size[: shape.shared].sum())
    slot = np.arange(together) - np.repeat(first[: shape.shared], size[: shape.shared])
    reach = np.cumsum(attraction) / attraction.sum()
    alone = np.searchsorted(reach, rng.random(shape.processes - together))
    initial = np.concatenate(
        [chosen[service[:together], slot], np.minimum(alone, shape.machines - 1)]
    )
    touched = _touched(service, location[initial], shape.shared, shape.locations)
    # services of ``spreading`` reach two locations at least
    narrow = spreading[touched[spreading].sum(axis=1) < 2]
    # their first process goes to any machine elsewhere, where none of the service is
    here = location[initial[first[narrow]]]
    start = np.searchsorted(location, here)
    inside = np.searchsorted(location, here, side="right") - start
    step = np.floor(rng.random(len(narrow)) * (shape.machines - inside)).astype(np.int64)
    initial[first[narrow]] = (start + inside + step) % shape.machines
    return initial


def _touched(
    service: NDArray[np.int64], place: NDArray[np.int64], services: int, places: int
) -> NDArray[np.bool_]:
    """Whether each of the first ``services`` has a process in each place: (services, places)."""
    touched = np.zeros((services, places), bool)
    among = service < services
    touched[service[among], place[among]] = True
    return touched


def _needs(rng: Generator, near: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Draw pairs of services the second of which is wherever the first one is: (count, 2)."""
    missing = near.astype(np.float32) @ (~near).astype(np.float32).T
    np.fill_diagonal(missing, 1.0)
    able = np.flatnonzero(missing == 0.0)
    faults = FaultList()
    if count > len(able):
        faults.add("dependencies", count, f"only {len(able)} pairs of shared services allow it")
    faults.raise_if_any()
    pair = np.sort(rng.choice(able, count, replace=False))
    return np.stack([pair // max(len(near), 1), pair % max(len(near), 1)], axis=1)


def _loads(
    rng: Generator, shape: Shape, initial: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw what processes require, (P, R), and fit the machines' capacities around it, (M, R)."""
    resources = np.arange(shape.resources)
    low, decades = np.array(SIZES)[resources % len(SIZES)].T
    common = np.array(COMMON)[resources % len(COMMON)]
    common = np.where(resources < (shape.resources + 1) // 2, common, 0.0)
    size = rng.random((shape.processes, 1)) * common
    size += rng.random((shape.processes, shape.resources)) * (1.0 - common)
    drawn = low * 10.0 ** (decades * size)
    headroom = rng.gamma(HEADROOM_SHAPE, size=(shape.machines, shape.resources))
    share = shape.utilisation * (1.0 - LESS_USED * rng.random(shape.resources))
    share[rng.integers(shape.resources)] = shape.utilisation

    def fitted(requirement: NDArray[np.float64]) -> NDArray[np.float64]:
        use = _use(initial, requirement, shape.machines)
        total = use.sum(axis=0)
        free = headroom * (use + EMPTY_USE * total / shape.machines)
        found: NDArray[np.float64] = use + free * (total * (1.0 / share - 1.0) / free.sum(axis=0))
        return found

    scale = np.minimum(1.0, 0.9 * LARGEST / fitted(drawn).max(axis=0))
    requirement = np.maximum(1.0, np.floor(drawn * scale))
    capacity = np.minimum(np.round(fitted(requirement)), LARGEST)
    capacity = np.maximum(capacity, _use(initial, requirement, shape.machines))
    return requirement.astype(np.int64), capacity.astype(np.int64)


def _use(
    at: NDArray[np.int64], requirement: NDArray[np.float64], machines: int
) -> NDArray[np.float64]:
    """Sum requirements per machine: (M, R)."""
    each = [np.bincount(at, column, machines) for column in requirement.T]
    use: NDArray[np.float64] = np.stack(each, axis=1)
    return use
