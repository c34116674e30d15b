"""Lower bound on leader changes: partitions that another node must lead.

In a given placement, a partition is led by one of its voters that may lead. Each node may lead only
so many, and carry only so much load. With prices a >= 0 for what a node has of each, every choice
of leaders within these targets makes

    changes >= changes + sum a (had - target)

since had - target <= 0. The right side is a sum over partitions, and each term is at least its
minimum over the voters of its partition, so the sum of these minima, less sum a (target - carried
by replicas that do not lead), is a bound for any prices; anybody can check it with them.
"""

from dataclasses import dataclass

import numpy as np

from evenkeel.measure.bounds.even import LEAST
from evenkeel.measure.rows import at_node
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints32, Ints64, Reals, Rows, read_only

BLOCK = 16_384  # partitions that are looked at together
TURNS = 40  # rounds in which the prices of loads are improved
PATIENCE = 4  # rounds without a better bound until steps are halved, from the best prices so far
# steps along ways between nodes that prices of numbers are worth; any prices give a bound
STEPS = 2_500

# nodes between which ways are listed; with more, numbers have no price to begin with
LARGEST_TABLE = 3_000

FAR = 1 << 30  # further than any way from node to node


@dataclass(frozen=True, eq=False)
class LeaderBound:
    """Proof of how many leaders must change. N nodes, D dimensions."""

    changes: int  # partitions that were led by a live node, and must be led by another one
    forced: int  # those among them whose leader holds no replica that could lead any more
    # (N, D + 1) changes per unit of load on each node, and, last, per partition that it leads
    price: Reals

    @property
    def term(self) -> str:
        """Which reason is the binding one."""
        if self.changes > self.forced:
            return "prices of leading"
        return "leaders that left" if self.forced else "nothing"


def leader_bound(
    cluster: Cluster, placement: Placement, target: Reals, leader_target: Reals
) -> LeaderBound:
    """Prove how many leaders must change for a placement to meet its targets, replicas staying."""
    # ``target (N, D)`` and ``leader_target (N,)`` limit load and leaders of each node, ``inf`` for
    # any. O(K + N^2) where leaders are counted; the fewest there, but for partitions with three or
    # more voters that could give way to each other, and beyond ``STEPS``. Primal-dual method for
    # flows at least cost: R. Ahuja, T. Magnanti, J. Orlin, Network Flows, 1993, section 9.8. Prices
    # of loads are improved by steps along a subgradient (B. Polyak, 1969), and are not the best.
    choice = _Choices.of(cluster, placement)
    room = _room(cluster, placement, target, leader_target)
    led = placement.leader_node[choice.partition]
    price = np.zeros(room.shape)
    price[:, -1] = _count_prices(choice, led, room[:, -1])
    forced = int(choice.forced.sum())
    if np.isfinite(room[:, :-1]).any() and choice.gain.any():
        stays = (choice.node == led) & (choice.node >= 0)
        price = _improved(choice, room, price, float(choice.cost[stays].sum()))
    least = _proven(choice, price, room)
    return LeaderBound(min(max(least, forced), len(choice.partition)), forced, read_only(price))


def _proven(choice: "_Choices", price: Reals, room: Reals) -> int:
    """Return the changes that prices prove, rounded up on the safe side."""
    least, _ = choice.cheapest(price)
    paid = _paid(price, room)
    size = float(np.abs(least).sum() + np.abs(paid).sum())
    return max(0, int(np.ceil(least.sum() - paid.sum() - ROUNDING * (1.0 + size))))


@dataclass(frozen=True, eq=False)
class _Choices:
    """Possible leaders of M partitions: up to S eligible voters of each, at least one."""

    partition: Rows
    node: Rows  # (S, M), -1 for none
    cost: Reals  # (S, M), 1 where that is a change, ``inf`` for none
    gain: Reals  # (D, M), what leading adds to the load of a voter
    forced: Flags  # (M,), whether every choice is a change

    @classmethod
    def of(cls, cluster: Cluster, placement: Placement) -> "_Choices":
        able = placement.node
        if not cluster.nodes.may_lead.all():
            able = np.where(at_node(cluster.nodes.may_lead, able), able, np.int32(-1))
        if placement.role.any():
            able = np.where(placement.role == Role.VOTER, able, np.int32(-1))
        if placement.slots is not None:
            node = able.reshape(len(placement), placement.slots).T.astype(np.intp, order="C")
        else:
            length = np.diff(placement.first)
            node = np.full((int(length.max(initial=0)), len(placement)), -1, np.intp)
            slot = np.arange(len(able)) - placement.first[placement.owner]
            node[slot, placement.owner] = able
        partition = np.flatnonzero((node >= 0).any(0))
        came, load = cluster.placement.leader_node, cluster.partitions.load
        gain = np.subtract(load.leader.T, load.voter.T, order="C")
        if len(partition) < len(placement):
            node, came, gain = node[:, partition], came[partition], gain[:, partition]
        led = at_node(cluster.nodes.alive, came)
        away = node != came
        cost = np.where(node >= 0, away & led, np.inf)
        return cls(partition, node, cost, gain, led & away.all(0))

    def cheapest(self, price: Reals) -> tuple[Reals, Reals]:
        """Return the least cost of each partition, (M,), and the sums of nodes at it, (N, .)."""
        count = len(self.partition)
        least, node = np.empty(count), np.zeros(count, np.intp)
        ways = [(price[:, -1], None), *zip(price.T, self.gain, strict=False)]
        ways = [(column.copy(), gain) for column, gain in ways if column.any()]
        worth = np.empty(min(BLOCK, count))
        for begin in range(0, count, BLOCK):  # as many as a core keeps at hand
            part = slice(begin, begin + BLOCK)
            cheapest, chosen = least[part], node[part]
            cheapest[:] = np.inf
            for there, cost in zip(self.node[:, part], self.cost[:, part], strict=True):
                total, priced = cost.copy(), worth[: len(cost)]
                for column, gain in ways:
                    column.take(there, out=priced, mode="clip")  # a missing node costs inf
                    if gain is not None:
                        priced *= gain[part]
                    total += priced
                chosen += (there - chosen) * (total < cheapest)  # in a mask, branches cost more
                np.minimum(cheapest, total, out=cheapest)
        had = np.zeros(price.shape)
        for d, gain in enumerate((*self.gain, None)):
            if gain is None or gain.any():
                had[:, d] = np.bincount(node, gain, len(price))
        return least, had


def _paid(price: Reals, room: Reals) -> Reals:
    """Multiply prices by room; what costs nothing may be had without end."""
    return np.multiply(price, room, out=np.zeros_like(price), where=price > 0.0)


def _room(cluster: Cluster, placement: Placement, target: Reals, leader_target: Reals) -> Reals:
    """Return the headroom of each node above its replicas as followers, (N, D + 1)."""
    room = np.column_stack([target, leader_target])
    if np.isinf(target).all():
        return room
    load = cluster.partitions.load
    carried = np.array(PlacementCounts.of(cluster, placement).loads)
    led = np.flatnonzero(placement.leader_node >= 0)
    replica = placement.leader_replica[led]
    light = placement.role[replica] == Role.NON_VOTER
    for d in range(carried.shape[1]):
        bare = np.where(light, load.non_voter[led, d], load.voter[led, d])
        carried[:, d] -= np.bincount(
            placement.node[replica], load.leader[led, d] - bare, len(carried)
        )
    room[:, :-1] += ROUNDING * (target + np.abs(carried)) - carried
    return room


def _count_prices(choice: _Choices, led: Ints32, room: Reals) -> Reals:
    """Return the price of leading on each node where leaders are only counted, (N,)."""
    nodes, everyone = len(room), np.arange(len(choice.partition))
    price = np.zeros(nodes, np.int64)
    if len(everyone) == 0 or not np.isfinite(room).any() or nodes > LARGEST_TABLE:
        return price.astype(np.float64)
    slot = (choice.cost - 0.5 * (choice.node == led)).argmin(0)  # of equals, the present leader
    at, cost = choice.node[slot, everyone], choice.cost[slot, everyone]
    # how many can be passed on from node to node at no change, at one, and back at one less
    ways, some = np.nonzero((choice.node >= 0) & (choice.node != at))
    extra = (choice.cost[ways, some] - cost[some]).astype(np.intp)
    key = (extra * nodes + at[some]) * nodes + choice.node[ways, some]
    passes = np.bincount(key, minlength=3 * nodes * nodes).reshape(3, nodes, nodes)
    most = np.where(np.isfinite(room), np.floor(room + ROUNDING), len(everyone))
    spare = most.astype(np.int64) - np.bincount(at, minlength=nodes)
    left = STEPS
    while (spare < 0).any() and left > 0:
        distance = _distances(passes, spare)
        short = np.flatnonzero(spare < 0)
        nearest = int(distance[short].min())
        if nearest >= FAR:
            break
        price = np.minimum(distance, nearest)
        lacking = int(np.minimum(spare, 0).sum())
        closed = np.zeros(nodes, bool)
        for start in short[distance[short] == nearest].tolist():
            left = _pass_on(passes, spare, distance, closed, start, left)
        if np.minimum(spare, 0).sum() == lacking:
            break
    return price.astype(np.float64)


def _distances(passes: Ints64, spare: Ints64) -> Ints64:
    """Return the fewest changes on a way from each node to one that leads too few, (N,)."""
    ways = [(cost, passes[cost] > 0) for cost in (0, 1, -1)]
    ways = [(cost, open_ways) for cost, open_ways in ways if open_ways.any()]
    distance = np.where(spare > 0, 0, FAR)
    for _ in range(len(spare)):
        best = distance
        for cost, open_ways in ways:
            for far in np.unique(distance[distance < FAR]).tolist():
                reached = open_ways[:, distance == far].any(1)
                best = np.where(reached, np.minimum(best, max(far + cost, 0)), best)
        if (best == distance).all():
            break
        distance = best
    return distance


def _pass_on(
    passes: Ints64, spare: Ints64, distance: Ints64, closed: Flags, start: int, left: int
) -> int:
    """Pass leads of a node with too many on, by shortest ways; return how many steps are left."""
    # ways do not lead through nodes that are ``closed``
    path: list[int] = [start]
    steps: list[int] = []
    while path and spare[start] < 0 and left > 0:
        left -= 1
        here = path[-1]
        if spare[here] > 0:
            ways = list(zip(steps, path, path[1:], strict=False))
            count = min(-spare[start], spare[here], *(passes[way] for way in ways))
            for cost, one, other in ways:
                passes[cost, one, other] -= count
                passes[-cost, other, one] += count
            spare[start] += count
            spare[here] -= count
            closed[path] = False
            path, steps = [start], []
            continue
        closed[here] = True
        for cost in (1, 0, -1):
            ahead = (passes[cost, here] > 0) & (distance == distance[here] - cost) & ~closed
            if len(path) == 1 and cost == distance[here]:
                _pass_many(passes[:, here], passes[:, :, here], cost, spare, ahead, here)
                if spare[start] >= 0:
                    closed[start] = False
                    return left
                ahead &= passes[cost, here] > 0
            if ahead.any():
                path.append(int(ahead.argmax()))
                steps.append(cost)
                break
        else:
            path.pop()
            if steps:
                steps.pop()
    return left


def _pass_many(
    onward: Ints64, back: Ints64, cost: int, spare: Ints64, ahead: Flags, here: int
) -> None:
    """Pass on to all nodes straight ahead that lead too few, at once."""
    to = np.flatnonzero(ahead & (spare > 0))
    count = np.minimum(onward[cost, to], spare[to])
    before = np.cumsum(count) - count
    count = np.clip(-spare[here] - before, 0, count)
    onward[cost, to] -= count
    back[-cost, to] += count
    spare[to] -= count
    spare[here] += count.sum()


def _improved(choice: _Choices, room: Reals, price: Reals, most: float) -> Reals:
    """Return prices of loads as well, improved step by step towards so many changes."""
    unit = np.append(np.abs(choice.gain).mean(1), 1.0)
    unit[unit < LEAST] = 1.0
    best, value, eagerness, idle = price, -np.inf, 1.0, 0
    for _ in range(TURNS):
        least, had = choice.cheapest(price)
        now = float(least.sum() - _paid(price, room).sum())
        idle += 1
        if now > value:
            best, value, idle = price, now, 0
        elif idle > PATIENCE:
            price, eagerness, idle = best, 0.5 * eagerness, 0
            continue
        excess = np.where(np.isfinite(room), had - room, 0.0) / unit
        excess[(price <= 0.0) & (excess < 0.0)] = 0.0
        length = float((excess**2).sum())
        if length == 0.0 or value > most - 1.0:
            break
        step = eagerness * max(most - now, 0.0) / length
        price = np.maximum(price + step * excess / unit, 0.0)
    return best
