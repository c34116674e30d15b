"""Find the most units of a size that fit on nodes, within a budget of moves."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.compare import relocations
from evenkeel.measure.loads import node_loads
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.reading.arrays import ROUNDING, read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import is_real
from evenkeel.result import Result
from evenkeel.solving import solve
from evenkeel.studies.growth.fitting import filled_to, read_terms
from evenkeel.studies.growth.forecast import Factor

AGAIN = 8  # other nodes on which one unit more is tried in the end, on a small cluster
MOST = 100_000  # units that are looked for at most


@dataclass(frozen=True, eq=False)
class Units:
    """How many units of a size fit beside what there is.

    Parameters
    ----------
    now : int
        Without a move.
    count, at_most : int
        After the moves; and what is proven: no placement has room for more, of those that so many
        moves reach.
    moves : int
        Replicas that leave their nodes, also for one where their partition stands.
    cluster : Cluster
        With everything where these moves bring it.
    result : Result or None
        Of the solve, with the room of the units taken off capacities; None if nothing moves.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     dimensions=["memory"], capacity=[[8.0]] * 3, load=[[3.0]] * 3,
    ...     placement=[[0], [1], [2]])
    >>> found = ek.free_units(cluster, {"memory": 8.0})
    >>> found.now, found.count, found.at_most, found.moves
    (0, 1, 1, 1)
    """

    now: int
    count: int
    at_most: int
    moves: int
    cluster: Cluster
    result: Result | None


@known_keywords
def free_units(
    cluster: Cluster,
    unit: Mapping[str, float] | ArrayLike,
    *,
    limits: Limits | None = None,
    at_most: Factor = 1.0,
    time_limit: float | None = None,
    seed: int = 0,
) -> Units:
    """Find the most units of a size that fit on nodes, within a budget of moves.

    A node holds as many whole units as it has room for in every dimension. Room is reserved where
    one unit more takes the fewest moves, and what stands in its way is moved within all rules; the
    number is doubled until it does not fit, and then halved back.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    unit : mapping of str to float, or array_like of float64, shape (D,)
        What a unit takes, by dimension; nothing in those that a mapping leaves out.
    limits : Limits, optional
        Budgets of moves and bytes; 0 moves for what is free now.
    at_most : float or mapping of str to float, optional
        Share of its capacity that a node is filled to at most.
    time_limit : float, optional
        Seconds for each solve.
    seed : int, optional
        All randomness comes from it.

    Returns
    -------
    Units
        How many, proven and found, and the moves.

    Raises
    ------
    InvalidInput
        Naming every problem, with its path and value.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     dimensions=["memory"], capacity=[[8.0]] * 4, load=[[3.0]] * 4,
    ...     placement=[[0], [1], [2], [3]])
    >>> ek.free_units(cluster, {"memory": 8.0}, limits=ek.Limits(moves=1)).count
    1
    """
    require_cluster(cluster)
    faults = FaultList()
    terms = read_terms(
        faults, cluster, survive=(), recover=True, at_most=at_most, after_loss=1.0, goals=None,
        time_limit=time_limit, seed=seed, decided=0, limits=limits,
    )  # fmt: skip
    row = _read_unit(faults, cluster, unit)
    faults.raise_if_any()
    assert terms is not None
    filled = filled_to(cluster, terms.at_most)
    budget = Limits() if limits is None else limits
    broken = audit(filled, filled.placement).hard
    held = _whole(_free(filled), row)
    room = np.where(cluster.nodes.may_receive[:, None], filled.nodes.capacity, 0.0)
    if (most := float(_fitting(room, row).sum())) > MOST:
        faults.add("unit", unit, f"is too small: {most:.4g} fit, and {MOST:,} are counted at most")
    faults.raise_if_any()
    now, bound = int(held.sum()), _bound(filled, row, held, budget.moves)
    order = _easiest(filled, row, held, bound - now)
    best = Units(now, now, bound, 0, cluster, None)

    def fits(more: NDArray[np.intp]) -> bool:
        """Whether one unit more on each of some nodes does; keep the best that was found."""
        nonlocal best
        reserved = (held + np.bincount(more, minlength=len(held)))[:, None] * row
        result = solve(
            _less(filled, reserved), goals=Goals(level=None), limits=limits, seed=seed,
            time_limit=time_limit,
        )  # fmt: skip
        moves = relocations(cluster.placement, result.placement)
        if result.audit.hard > broken or (budget.moves is not None and moves > budget.moves):
            return False
        placed = cluster.with_placement(replace(result.placement))
        count = int(_whole(_free(filled_to(placed, terms.at_most)), row).sum())
        if (count, -moves) > (best.count, -best.moves):
            best = Units(now, count, bound, moves, placed, result)
        return True

    low, high, step = 0, min(bound - now, len(order)), 1
    while low < high:
        if fits(order[: min(low + step, high)]):
            low, step = min(low + step, high), 2 * step
        else:
            high = min(low + step, high) - 1
        step = max(1, min(step, (high - low + 1) // 2))
    small = size_of(filled) <= SMALL and bound > now
    for kept in (low - 1, low) if small else ():
        for other in dict.fromkeys(order[max(kept, 0) + 1 :].tolist()[:AGAIN]):
            fits(np.append(order[: max(kept, 0)], other))
    return best


def _easiest(
    cluster: Cluster, row: NDArray[np.float64], held: NDArray[np.int64], most: int
) -> NDArray[np.intp]:
    """Return the nodes on which one unit more takes the fewest moves, one entry for each unit."""
    loads = node_loads(cluster, cluster.placement)
    stands = np.bincount(cluster.placement.node[cluster.placement.node >= 0], minlength=len(loads))
    free, asked = _free(cluster), row > 0.0
    each = np.maximum(loads[:, asked] / np.maximum(stands, 1)[:, None], 1e-300)
    room = _whole(np.where(cluster.nodes.may_receive[:, None], cluster.nodes.capacity, 0.0), row)
    nodes, costs = [], []
    for more in range(1, min(int((room - held).max(initial=0)), most) + 1):
        able = np.flatnonzero(room - held >= more)
        lacking = (held[able] + more)[:, None] * row[asked] - free[able][:, asked]
        nodes.append(able)
        costs.append((lacking / each[able]).max(1))
    if not nodes:
        return np.zeros(0, np.intp)
    order = np.argsort(np.concatenate(costs), kind="stable")
    return np.concatenate(nodes)[order]


def _less(cluster: Cluster, reserved: NDArray[np.float64]) -> Cluster:
    """Return a cluster with less capacity on each node, (N, D)."""
    capacity = read_only(np.ascontiguousarray(cluster.nodes.capacity - reserved))
    nodes = replace(cluster.nodes, capacity=capacity)
    return replace(cluster, nodes=nodes, placement=replace(cluster.placement))


def _read_unit(
    faults: FaultList, cluster: Cluster, unit: Mapping[str, float] | ArrayLike
) -> NDArray[np.float64]:
    """Read what a unit takes, (D,)."""
    known = cluster.dimensions
    if isinstance(unit, Mapping):
        for name in unit:
            if name not in known:
                faults.add("unit", name, f"unknown dimension; known: {[*known]}")
        unit = [unit.get(name, 0.0) for name in known]
    row = np.zeros(len(known))
    given = [*unit] if isinstance(unit, list | tuple | np.ndarray) else []
    if len(given) != len(known) or not all(is_real(one) and one >= 0.0 for one in given):
        faults.add("unit", unit, f"must be {len(known)} numbers, 0 or more, or a mapping")
    elif not any(one > 0.0 for one in given):
        faults.add("unit", unit, "must take something")
    else:
        row[:] = given
    return row


def _free(cluster: Cluster) -> NDArray[np.float64]:
    """Return what is free on nodes that accept replicas, (N, D); nothing on others."""
    free = cluster.nodes.capacity - node_loads(cluster, cluster.placement)
    return np.where(cluster.nodes.may_receive[:, None], np.maximum(free, 0.0), 0.0)


def _whole(free: NDArray[np.float64], row: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many units fit into what is free, for each row."""
    return np.minimum(_fitting(free, row), MOST).astype(np.int64)


def _fitting(free: NDArray[np.float64], row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many units fit into what is free, for each row, however many that are."""
    asked = row > 0.0
    with np.errstate(over="ignore"):
        fits: NDArray[np.float64] = np.floor(free[:, asked] / row[asked] * (1.0 + ROUNDING)).min(1)
    return fits


def _bound(
    cluster: Cluster, row: NDArray[np.float64], held: NDArray[np.int64], moves: int | None
) -> int:
    """Return how many units fit at most: by all that is free, and by what moves can free."""
    free = _free(cluster)
    at_most = min(
        int(_whole(free.sum(0)[None], row)[0]),
        int(_whole(np.where(cluster.nodes.may_receive[:, None], cluster.nodes.capacity, 0.0),
                   row).sum()),
    )  # fmt: skip
    if moves is not None:
        heaviest = PlacementCounts.of(cluster, cluster.placement).heaviest
        asked = row > 0.0
        gain = np.ceil(heaviest[:, asked] / row[asked] * (1.0 - ROUNDING)).max(1)
        of_each = np.sort(np.repeat(gain, np.diff(cluster.placement.first)))[::-1]
        at_most = min(at_most, int(held.sum() + of_each[:moves].sum()))
    return min(at_most, MOST)
