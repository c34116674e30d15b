"""Certificates for the least number of moves, and their check by weak duality alone.

Prices turn a count of moves into a sum that splits by partition. Let T be the load that each node
may carry, a >= 0 the price of load (N, D), b >= 0 the price of losses (N,), and c the replicas that
each node must lose at least (N,). Every placement within T makes

    moves >= moves + sum a (load - T) + sum b (c - losses)

since load - T <= 0 and c - losses <= 0. The right side is a sum over partitions, and each term is
at least its minimum over all nodes that its partition may be on, whatever the others do. So the sum
of these minima, less sum a T, plus sum b c, is a bound. With one replica per zone, every node open,
and one leader each, that minimum takes ten lines to compute (``stood`` holds the nodes to stay on,
``T`` the target of ``Bounds``, ``c`` the count of the certificate's covers)::

    total = b @ c - (a * T).sum()
    for p, stood in enumerate(before):
        plain = np.ones(N) + a @ voter[p]               # joins a new node: one move
        plain[stood] += b[stood] - 1.0                  # stays: no move, and no loss
        lead = plain + a @ (leader[p] - voter[p])
        each, led = ([x[zone == z].min() for z in zones] for x in (plain, lead))
        ways = [led[z] + sum(sorted(each[:z] + each[z + 1:])[:replicas - 1]) for z in zones]
        total += min(ways) - b[stood].sum()
    assert moves <= np.ceil(total - 1e-6)

With a = 0 and b = 1 it is the number of forced moves plus the sum of c. Why a node must lose c
replicas is a ``Cover``, which is checked node by node in the same way.

Each partition is priced by itself, on the cheapest nodes it may be on, so that the sum over all of
them is below the cost of any placement. Limits on one level count; other rules are left out, which
only makes the sum smaller.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenkeel.measure.binding import NONE, Scope, partition_scope
from evenkeel.measure.bounds.moves import Keepable, keepable
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.room import piling
from evenkeel.measure.rows import replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import Ints64, Reals, Rows, read_only

SAFE = 1e-9  # relative error that sums of prices and loads are allowed, at the expense of the bound
BLOCK = 1 << 18  # entries of a table of partitions by nodes that are worked on at a time


def whole_moves(value: tuple[float, float]) -> int:
    """Round a bound up to the next whole number, on the safe side."""
    bound, size = value
    return max(0, int(np.ceil(bound - SAFE * (1.0 + size))))


def priced(
    cluster: Cluster, target: Reals, load_price: Reals, loss_price: Reals, count: Reals
) -> tuple[float, float]:
    """Return the bound that prices prove, and the sum of what was added up for it."""
    room = np.where(load_price > 0.0, target, 0.0) * (1.0 + SAFE)
    spent = float((load_price * room).sum())
    losses = float(loss_price @ count)
    total, size = losses - spent, abs(losses) + spent
    for block in price_blocks(cluster, load_price, loss_price):
        total += float(block.least.sum())
        size += float(np.abs(block.least).sum())
    return total, size


@dataclass(frozen=True, eq=False)
class PriceBlock:
    """What it costs some partitions to be on each node, and the least for each in all."""

    partition: Ints64  # (n,) which
    # (n, N) price of a replica on a node in its lightest role by price; ``inf`` where none may be
    follow: Reals
    lead: Reals | None  # (n, N) price of a leader there
    # (n,) least price of all wanted replicas, less that of the losses if none stayed
    least: Reals


def price_blocks(cluster: Cluster, load_price: Reals, loss_price: Reals) -> Iterator[PriceBlock]:
    """Price partitions by nodes, some partitions at a time; alike ones together."""
    placed = PlacementCounts.of(cluster, cluster.placement)
    scope = partition_scope(cluster)
    kept = keepable(placed)
    domain, cap = domains_and_caps(cluster)
    piles = piling(placed, scope)
    wanted = cluster.partitions.replicas
    kinds = np.stack([wanted, cap, piles], axis=1)[wanted > 0]
    at = np.flatnonzero(wanted > 0)
    counted = np.zeros(len(cluster.placement.node), np.intp)
    counted[_flat_order(placed)] = kept.node_row
    length = max(1, BLOCK // max(1, len(cluster.nodes)))
    members_of = domain_members(domain)
    for kind in np.unique(kinds, axis=0):
        members = at[(kinds == kind).all(1)]
        for start in range(0, len(members), length):
            some = members[start : start + length]
            follow, lead, credit = _tables(
                cluster, scope, some, counted, load_price, loss_price, piled=bool(kind[2])
            )
            replicas, most = int(kind[0]), int(kind[1])
            if kind[2]:
                least = replicas * follow.min(1, initial=np.inf)
                if lead is not None:
                    able = np.isfinite(follow)
                    extra = np.subtract(lead, follow, out=np.full_like(lead, np.inf), where=able)
                    least = least + extra.min(1, initial=np.inf)
            else:
                least = _cheapest(follow, lead, members_of, replicas, most)
            # what fits nowhere proves nothing, nor does it spoil what the others prove
            yield PriceBlock(some, follow, lead, np.where(np.isfinite(least), least, 0.0) - credit)


def _flat_order(placed: PlacementCounts) -> Ints64:
    """Return indices into the flat arrays of the placement, in the order of ``node_row``."""
    placement = placed.placement
    each = np.arange(len(placement.node))
    return each if placement.slots is None else each.reshape(-1, placement.slots).T.reshape(-1)


def domains_and_caps(cluster: Cluster) -> tuple[Ints64, Ints64]:
    """Return the domains that replicas are kept apart by, and how many each may hold."""
    cap = cluster.partitions.replicas.astype(np.int64)
    hard = [one for one in partition_scope(cluster).spreads if one.tier != "node"]
    if not hard:
        return np.full(len(cluster.nodes), -1), cap
    topology = cluster.topology
    binding = min(hard, key=lambda one: int(topology.domain_count[topology.tier_index(one.tier)]))
    bound = binding.amount != NONE
    cap[bound] = np.minimum(cap[bound], binding.amount[bound])
    domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
    return domain.astype(np.int64), cap


def domain_members(domain: Ints64) -> list[tuple[Rows, bool]]:
    """Return the nodes of each domain, and whether the number of replicas there is limited."""
    return [(np.flatnonzero(domain == one), bool(one >= 0)) for one in np.unique(domain)]


def _tables(
    cluster: Cluster,
    scope: Scope,
    some: Ints64,
    counted: Rows,
    load_price: Reals,
    loss_price: Reals,
    *,
    piled: bool,
) -> tuple[Reals, Reals | None, Reals]:
    """Return the prices of following and leading on each node, and the credit for all losses."""
    nodes, parts, placement = cluster.nodes, cluster.partitions, cluster.placement
    price = load_price.T
    follow = parts.load.voter[some] @ price
    if (parts.voters[some] < parts.replicas[some]).any():
        follow = np.minimum(follow, parts.load.non_voter[some] @ price)
    base = np.where(nodes.may_receive, 0.0 if piled else 1.0, np.inf) + np.zeros_like(follow)
    replica, row = replicas_of(placement, some)
    stood = placement.node[replica] >= 0
    replica, row = replica[stood], row[stood]
    at = placement.node[replica]
    base[row, at] = np.where(nodes.may_hold[at], 0.0, base[row, at])
    base[~scope.open[scope.rule[some]]] = np.inf
    place = np.full(len(parts), -1)
    place[some] = np.arange(len(some))
    banned = place[cluster.forbidden[:, 0]]
    base[banned[banned >= 0], cluster.forbidden[banned >= 0, 1]] = np.inf
    credit = np.zeros(len(some))
    node_rows = counted[replica] > 0
    np.add.at(credit, row[node_rows], loss_price[at[node_rows]])
    base[row[node_rows], at[node_rows]] += loss_price[at[node_rows]]
    lead = None
    if has_leaders(cluster):
        lead = parts.load.leader[some] @ price + base
    return follow + base, lead, credit


def _cheapest(
    follow: Reals, lead: Reals | None, members: Sequence[tuple[Rows, bool]], replicas: int, cap: int
) -> Reals:
    """Return the least price of distinct nodes, at most ``cap`` per domain, one of which leads."""
    # the cheapest followers first; a leader elsewhere displaces the dearest of those that make room
    # for it, as exchanges in a partition matroid do
    most = [cap if limited else replicas for _, limited in members]
    near = [
        np.sort(follow[:, nodes], axis=1)[:, :room]
        for (nodes, _), room in zip(members, most, strict=True)
    ]
    if not near:
        return np.full(len(follow), np.inf)
    chosen = np.sort(np.concatenate(near, axis=1), axis=1)[:, :replicas]
    if chosen.shape[1] < replicas:
        return np.full(len(follow), np.inf)
    least: Reals = chosen.sum(1)
    if lead is None:
        return least
    dearest = chosen[:, -1:]
    extra = np.full(len(follow), np.inf)
    for (nodes, _), taken, full in zip(members, near, most, strict=True):
        room = np.minimum(dearest, taken[:, -1:]) if taken.shape[1] == full else dearest
        place = np.minimum(follow[:, nodes], room)
        able = np.isfinite(lead[:, nodes])
        more = np.subtract(lead[:, nodes], place, out=np.full(able.shape, np.inf), where=able)
        extra = np.minimum(extra, more.min(1))
    least += extra
    return least


@dataclass(frozen=True, eq=False)
class Case:
    """One case of a cover: some replicas leave for certain, some stay for certain.

    Parameters
    ----------
    price : ndarray of float64, shape (D,)
        Weight of each dimension; all 0 where the number of replicas is too high.
    leaves, stays : tuple of int
        Partitions whose replica on the node is supposed to leave, and to stay.

    Examples
    --------
    >>> import numpy as np
    >>> case = Case(np.array([1.0]), leaves=(3,))
    >>> case.leaves, case.stays
    ((3,), ())
    """

    price: Reals
    leaves: tuple[int, ...] = ()
    stays: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Cover:
    """Proof that a node must lose so many replicas.

    With loads in the lightest role, the node exceeds its target by e (D,). No single replica takes
    away more than e. In each case the ``count`` - 1 largest replicas by ``price``, those that leave
    in that case among them and those that stay not, take away less than ``price @ e``. The cases
    exclude each other, and one that fixes k replicas is a share of 2^-k of all; these shares add up
    to 1, so no case is left out.

    Parameters
    ----------
    node : int
        The node.
    count : int
        Replicas that it must lose.
    cases : tuple of Case
        All ways to begin.

    Examples
    --------
    >>> import numpy as np
    >>> cover = Cover(0, 2, (Case(np.ones(1), leaves=(3,)), Case(np.ones(1), stays=(3,))))
    >>> cover.count, sum(2.0 ** -len(case.leaves + case.stays) for case in cover.cases)
    (2, 1.0)
    """

    node: int
    count: int
    cases: tuple[Case, ...]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that no placement reaches its goals with fewer moves. N nodes, D dimensions.

    Parameters
    ----------
    moves : int
        Moves that it proves.
    load_price : ndarray of float64, shape (N, D)
        Moves per unit of load on each node; 0 where the target is infinite.
    loss_price : ndarray of float64, shape (N,)
        Moves per replica that a node loses.
    covers : tuple of Cover
        Nodes that must lose some.

    Examples
    --------
    >>> import numpy as np
    >>> import evenkeel as ek
    >>> from evenkeel.measure.bounds.certificate import certified
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> cover = Cover(0, 2, (Case(np.ones(1)),))
    >>> proof = Certificate(2, np.zeros((2, 1)), np.ones(2), (cover,))
    >>> certified(c, np.full((2, 1), 2.0), proof)
    2
    """

    moves: int
    load_price: Reals
    loss_price: Reals
    covers: tuple[Cover, ...]

    @property
    def joint(self) -> bool:
        """Whether load has a price anywhere: the proof is about all nodes together."""
        return bool(self.load_price.any())


def certified(cluster: Cluster, target: Reals, proof: Certificate) -> int:
    """Check a certificate for loads up to ``target (N, D)``; return the moves that it proves."""
    # by weak duality: A. M. Geoffrion, "Lagrangean relaxation for integer programming",
    # Mathematical Programming Study 2, 1974
    faults = FaultList()
    nodes = len(cluster.nodes)
    for name, price, shape in (
        ("load_price", proof.load_price, target.shape),
        ("loss_price", proof.loss_price, (nodes,)),
    ):
        if price.shape != shape or not (np.isfinite(price) & (price >= 0.0)).all():
            faults.add(name, price.shape, f"must be finite, 0 or more, and of shape {shape}")
    faults.raise_if_any()
    if (proof.load_price[np.isinf(target)] > 0.0).any():
        faults.add("load_price", "inf", "must be 0 where the target is infinite")
    placed = PlacementCounts.of(cluster, cluster.placement)
    kept = keepable(placed)
    losses = Losses(placed, kept, target)
    seen = set()
    for i, cover in enumerate(proof.covers):
        known = 0 <= cover.node < nodes and cover.node not in seen
        if not known or not losses.holds(cover):
            faults.add(f"covers[{i}]", (cover.node, cover.count), "does not hold")
        seen.add(cover.node)
    faults.raise_if_any()
    count = np.zeros(nodes)
    for cover in proof.covers:
        count[cover.node] = cover.count
    found = whole_moves(priced(cluster, target, proof.load_price, proof.loss_price, count))
    if found < proof.moves:
        faults.add("moves", proof.moves, f"is more than is proven, {found}")
    faults.raise_if_any()
    return found


class Losses:
    """What nodes above ``target (N, D)`` could lose: replicas that count, and the excess."""

    def __init__(self, placed: PlacementCounts, kept: Keepable, target: Reals) -> None:
        self.excess = np.maximum(kept.load - target * (1.0 + SAFE), 0.0)
        self.crowd = kept.crowd(placed)
        at = np.flatnonzero(kept.node_row)
        order = at[np.argsort(kept.node_row[at], kind="stable")]
        self._partition = placed.partition(order)
        self._first = np.concatenate([[0], np.cumsum(kept.replicas)])
        self._least = kept.least

    def replicas(self, node: int) -> tuple[Rows, Reals]:
        """Return the replicas on a node whose loss costs a move, and what each takes away."""
        partition = self._partition[self._first[node] : self._first[node + 1]]
        return partition, np.minimum(self._least[:, partition].T, self.excess[node])

    def holds(self, cover: Cover) -> bool:
        """Return whether a cover proves its number of moves."""
        if cover.count <= self.crowd[cover.node]:
            return True
        partition, weight = self.replicas(cover.node)
        place = {int(p): i for i, p in enumerate(partition)}
        return complete(cover.cases, set(place)) and all(
            self._holds_in(case, cover, place, weight) for case in cover.cases
        )

    def _holds_in(self, case: Case, cover: Cover, place: dict[int, int], weight: Reals) -> bool:
        """Return whether one case proves that one replica fewer than in the cover is too few."""
        if (
            case.price.shape != weight.shape[1:]
            or not (np.isfinite(case.price) & (case.price >= 0.0)).all()
        ):
            return False
        spare = cover.count - 1 - len(case.leaves)
        if spare < 0:
            return True
        value = weight @ case.price
        leaves = value[[place[p] for p in case.leaves]].sum()
        free = np.delete(value, [place[p] for p in (*case.leaves, *case.stays)])
        largest = np.sort(free)[::-1][:spare].sum()
        return bool(leaves + largest < (1.0 - SAFE) * (case.price @ self.excess[cover.node]))


def complete(cases: Sequence[Case], replicas: set[int]) -> bool:
    """Return whether cases exclude each other and leave nothing out."""
    fixed = [(set(case.leaves), set(case.stays)) for case in cases]
    for leaves, stays in fixed:
        if leaves & stays or not leaves | stays <= replicas:
            return False
    apart = all(a[0] & b[1] or a[1] & b[0] for a, b in combinations(fixed, 2))
    share = sum(0.5 ** len(leaves | stays) for leaves, stays in fixed)
    return apart and share == 1.0


def frozen_certificate(
    moves: int, load_price: Reals, loss_price: Reals, covers: Sequence[Cover]
) -> Certificate:
    """Return a certificate with read-only arrays."""
    return Certificate(moves, read_only(load_price), read_only(loss_price), tuple(covers))
