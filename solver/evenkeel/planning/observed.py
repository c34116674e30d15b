"""Match observed replicas and copies in flight to the slots of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import Disks, lying
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import reassigned
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import Ints, Ints32, Reals, Rows, read_only
from evenkeel.model.reading.quantities import is_real
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.transition_table import check_target
from evenkeel.planning.steps import StepKind, Steps


def in_slots(
    cluster: Cluster, target: Placement, steps: Steps, observed: Cluster | Placement
) -> Placement:
    """Return the observed placement with every replica in the slot that a plan has it in."""
    # Systems order replicas as they like, and list one that is being copied beside the one that it
    # replaces. A slot holds the last node that is there of those that its steps lead to, else the
    # one that it comes from, else what no other slot accounts for. Where two are there it is
    # ``INCOMING``, even if all of it has arrived: what it replaces has still to go.
    faults = FaultList()
    if isinstance(observed, Cluster):
        observed = _on_disks_of(cluster, observed)
    now = observed.placement if isinstance(observed, Cluster) else observed
    if not isinstance(now, Placement):
        faults.add("observed", type(now).__name__, "must be a Cluster or a Placement")
    elif len(now) != len(cluster.placement):
        check_target(faults, cluster, now, path="observed")
    elif isinstance(observed, Cluster):
        _check_names(faults, cluster, observed)
    faults.raise_if_any()
    start = cluster.placement
    now = _flying(start, now)
    if (held := reassigned(now)).any():  # by this plan, which goes on with it
        flags = np.where(held[now.owner], now.flags & ~np.uint16(Flag.PINNED), now.flags)
        now = replace(now, flags=read_only(flags))
    rows = np.arange(len(start), dtype=np.int32)
    if np.array_equal(now.first, start.first):
        rows = np.unique(now.owner[(now.node != start.node) & (now.node != target.node)])
    if len(rows):
        now = _placed_anew(faults, _Routes(start, target, steps), now, rows)
    now = _recast(start, target, now)
    check_target(faults, cluster, now, path="observed")
    faults.raise_if_any()
    return now


def as_described(cluster: Cluster, observed: Cluster | Placement) -> Cluster:
    """Return the cluster a plan continues with: the observed one if its slots are the same."""
    if not isinstance(observed, Cluster):
        return cluster
    if np.array_equal(observed.placement.first, cluster.placement.first):
        return _on_disks_of(cluster, observed)
    # other slots count replicas on their way among those wanted: only who died is taken from there
    return replace(
        cluster.down(cluster.nodes.alive & ~observed.nodes.alive),
        native=observed.native, native_format=observed.native_format,
    )  # fmt: skip


def _on_disks_of(cluster: Cluster, observed: Cluster) -> Cluster:
    """Return the observed cluster on the disks of a plan; nodes that died list theirs no more."""
    disks, listed = cluster.disks, observed.disks
    if disks is None or listed is None or [*disks.names] == [*listed.names]:
        return observed
    number = {name: d for d, name in enumerate(disks.names)}
    # a replica on a disk that the plan does not have is on no known one
    place = np.array([number.get(name, -1) for name in listed.names] + [-1], np.int32)
    known = np.flatnonzero(place[:-1] >= 0)
    capacity, state = disks.capacity.copy(), disks.state.copy()
    capacity[place[known]], state[place[known]] = listed.capacity[known], listed.state[known]
    placement = observed.placement
    if placement.disk is not None:
        placement = replace(placement, disk=read_only(place[placement.disk]))
    same = Disks(disks.node, capacity, state, disks.names)
    return replace(observed, disks=same, placement=placement)


def _flying(start: Placement, now: Placement) -> Placement:
    """Return what is observed with learners flagged as incoming, where a partition had none."""
    learns = now.role == Role.LEARNER
    if not learns.any():
        return now
    had = np.zeros(len(start), bool)
    had[start.owner[start.role == Role.LEARNER]] = True
    flags = np.where(learns & ~had[now.owner], now.flags | Flag.INCOMING, now.flags)
    return replace(now, flags=read_only(flags.astype(np.uint16)))


def _recast(start: Placement, target: Placement, now: Placement) -> Placement:
    """Return what is observed with the plan's roles of what is still a learner on its way."""
    if not now.role.any() or not np.array_equal(now.first, start.first):
        return now
    comes = (now.role == Role.LEARNER) & ((now.flags & Flag.INCOMING) != 0)
    known = np.where(start.node >= 0, start.role, target.role)
    return replace(now, role=read_only(np.where(comes, known, now.role).astype(np.uint8)))


def _check_names(faults: FaultList, cluster: Cluster, observed: Cluster) -> None:
    """Note the first node and partition that another cluster has in the place of a plan's."""
    for what in ("nodes", "partitions"):
        ours, theirs = getattr(cluster, what).names, getattr(observed, what).names
        if len(ours) != len(theirs):
            faults.add(f"observed.{what}", len(theirs), f"is of another cluster than {len(ours)}")
        else:
            for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                if one != other:
                    path = f"observed.{what}[{i}]"
                    faults.add(path, other, f"is of another cluster: the plan has {one!r} there")
                    break


class _Routes:
    """The nodes that slots go through: where they were, where they wait, where they are to be."""

    def __init__(self, start: Placement, target: Placement, steps: Steps) -> None:
        self.start = start
        self.target = target
        self.stops: dict[int, list[int]] = {}
        copies = steps.kind == StepKind.COPY
        away = np.flatnonzero(copies & (steps.target != target.node[steps.replica]))
        for k, n in zip(steps.replica[away].tolist(), steps.target[away].tolist(), strict=True):
            self.stops.setdefault(k, []).append(n)

    def of(self, partition: int) -> list[list[int]]:
        """Return the nodes of each slot of a partition, in their order."""
        first = self.start.first
        slots = range(int(first[partition]), int(first[partition + 1]))
        before, wanted = self.start.node, self.target.node
        return [[int(before[k]), *self.stops.get(k, ()), int(wanted[k])] for k in slots]


def _placed_anew(faults: FaultList, routes: _Routes, now: Placement, rows: Ints32) -> Placement:
    """Return what is observed in the slots of a plan, some rows being placed anew."""
    start = routes.start
    node, flags = start.node.copy(), start.flags.copy()
    leader, role = now.leader.copy(), start.role.copy()
    if np.array_equal(now.first, start.first):
        node, flags, role = now.node.copy(), now.flags.copy(), now.role.copy()
    for p in rows.tolist():
        mine = slice(int(start.first[p]), int(start.first[p + 1]))
        theirs = slice(int(now.first[p]), int(now.first[p + 1]))
        seen = now.node[theirs].tolist()
        some, roles = now.flags[theirs].tolist(), now.role[theirs].tolist()
        place = {n: i for i, n in reversed([*enumerate(seen)]) if n >= 0}
        coming = {n for n, i in place.items() if some[i] & Flag.INCOMING}
        ways, before = routes.of(p), start.node[mine].tolist()
        row = [_furthest(way, place, coming, before) for way in ways]
        held = [n for n in row if n >= 0]
        if len({*held}) < len(held):  # slots that trade nodes via a third: the order seen decides
            row = seen if len(seen) == len(row) else _each_once(ways, place)
        # what a copy replaces is where its slot was, and is not another replica
        known = {*row, *(was for n, way in zip(row, ways, strict=True) for was in _past(way, n))}
        rest = [n for n in place if n not in known]
        for slot, n in enumerate(row):
            if n < 0 and rest:
                row[slot] = rest.pop(0)
        for n in rest:
            faults.add(f"observed.partitions[{p}]", n, "is a node too many for the plan's slots")
        node[mine] = row
        for slot, (n, home) in enumerate(zip(row, _left(row, ways, place, coming), strict=True)):
            i, k = place.get(n, -1), int(start.first[p]) + slot
            beside = n not in before and home >= 0
            flags[k] = some[i] | Flag.INCOMING * beside if i >= 0 else 0
            # a copy on its way has the role of its source
            source = place.get(home, i) if i >= 0 and some[i] & Flag.INCOMING else i
            role[k] = roles[source] if source >= 0 else start.role[k]
        led = seen[leader[p]] if 0 <= leader[p] < len(seen) else -1
        if led in row:
            leader[p] = row.index(led)
        else:  # the leader is being replaced, in the slot that it had
            leader[p] = before.index(led) if led in before else -1
    found = Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader)
    )
    return replace(found, disk=lying(found, now))


def _furthest(way: list[int], place: Mapping[int, int], coming: set[int], before: list[int]) -> int:
    """Return the last node of a slot's way that is there, -1 for none."""
    was, *stops, wanted = way
    if wanted in place:
        return wanted
    for n in reversed(stops):
        if n in place and (was not in place or n in coming or n not in before):
            return n
    return was if was in place else -1


def _left(
    row: list[int], ways: list[list[int]], place: Mapping[int, int], coming: set[int]
) -> list[int]:
    """Return the node that each slot leaves and that is still there, -1 for none."""
    homes = [next((was for was in reversed(_past(way, n)) if was in place), -1)
             for n, way in zip(row, ways, strict=True)]  # fmt: skip
    taken = {*row}
    for slot in sorted(
        range(len(row)), key=lambda i: (row[i] not in coming, homes[i] == ways[i][0])
    ):
        if homes[slot] in taken:
            homes[slot] = -1
        taken.add(homes[slot])
    return homes


def _past(way: list[int], n: int) -> list[int]:
    """Return the nodes of a way before one of them; all of those that are left for another."""
    return way[: len(way) - 1 - way[::-1].index(n)] if n in way else way[:-1]


def _each_once(ways: list[list[int]], place: Mapping[int, int]) -> list[int]:
    """Return the node of each slot, none twice: the last of its way that is left, or -1."""
    row, free = [-1] * len(ways), {*place}
    for back in range(1, max(len(way) for way in ways) + 1):
        for slot, way in enumerate(ways):
            if row[slot] < 0 and back <= len(way) and way[-back] in free:
                row[slot] = way[-back]
                free.remove(way[-back])
    return row


# names of a partition and of the node that it is copied to; share that is there, 0 to 1
Arrived = Mapping[tuple[str, str], float]


@dataclass(frozen=True, eq=False)
class Flights:
    """The nodes that K replicas are on or on their way to, and the share that is still to come."""

    node: Ints32
    coming: Reals

    @classmethod
    def of(cls, cluster: Cluster, now: Placement, arrived: Arrived | None) -> "Flights":
        """Read the arrived share of replicas flagged as incoming: all, where that is seen."""
        faults = FaultList()
        if arrived is not None and not isinstance(arrived, Mapping):
            faults.add("arrived", arrived, "must map (partition, node) to a share")
            faults.raise_if_any()
        coming = np.where((now.flags & (Flag.HEALTHY | Flag.CAUGHT_UP)) != 0, 0.0, 1.0)
        rows: dict[tuple[str, str], int] = {}
        names, nodes = cluster.partitions.names, cluster.nodes.names
        if arrived:
            for k in np.flatnonzero((now.flags & Flag.INCOMING) != 0).tolist():
                rows[names[int(now.owner[k])], nodes[int(now.node[k])]] = k
        for key, share in (arrived or {}).items():
            if not is_real(share) or not 0.0 <= share <= 1.0:
                faults.add(f"arrived[{key!r}]", share, "must be a share, 0 to 1")
            elif key not in rows:
                faults.add("arrived", key, "is not a partition and node of a copy in flight")
            else:
                coming[rows[key]] = 1.0 - share
        faults.raise_if_any()
        return cls(now.node, coming)

    def left(self, replica: Ints, target: Ints) -> Reals:
        """Return the share of copies of replicas to nodes that has not arrived yet."""
        return np.where(self.node[replica] == target, self.coming[replica], 1.0)

    def of_actions(self, actions: Actions, begin: Placement) -> Actions:
        """Return actions with the share left to copy, and which copies are in flight."""
        left = self.left(actions.replica, actions.target)
        flying = (self.node[actions.replica] == actions.target) & (
            begin.node[actions.replica] != actions.target
        )
        flying &= (actions.action == Action.MOVE) | (actions.action == Action.ADD)
        return replace(actions, left=left, flying=flying)


@dataclass(frozen=True)
class Cancelled:
    """A copy in flight that is no longer wanted: what has arrived of it is to be dropped first.

    Parameters
    ----------
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    node : str
        Name of the node that it was copied to.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> plan = result.plan()
    >>> plan.resume(c.placement).cancelled
    ()
    """

    partition: str
    slot: int
    node: str


@dataclass(frozen=True, eq=False)
class Settled:
    """An observed state with its copies in flight sorted out, before a plan goes on from it."""

    # where the replicas serve. Those of which a copy goes on are flagged ``INCOMING``.
    begin: Placement
    # the copies that go on, in the slots whose replicas they become, and what is still to come
    flights: Flights
    cancelled: tuple[Cancelled, ...]  # those that are no use

    def forgotten(self, steps: Steps) -> Rows:
        """Return the replicas whose copies are under way though no step goes on with them."""
        coming = self.flights.node != self.begin.node
        copies = np.flatnonzero(steps.kind == StepKind.COPY)
        on = copies[self.flights.node[steps.replica[copies]] == steps.target[copies]]
        coming[steps.replica[on]] = False
        return np.flatnonzero(coming)

    def without(self, replicas: Rows, cluster: Cluster) -> "Settled":
        """Return the state in which copies of some replicas are cancelled, itself if of none."""
        if len(replicas) == 0:
            return self
        flags, node = self.begin.flags.copy(), self.flights.node.copy()
        coming = self.flights.coming.copy()
        flags[replicas] &= ~np.uint16(Flag.INCOMING)
        names, nodes, first = cluster.partitions.names, cluster.nodes.names, self.begin.first
        more = [
            Cancelled(names[p], k - int(first[p]), nodes[n])
            for k, p, n in zip(replicas.tolist(), self.begin.owner[replicas].tolist(),
                               node[replicas].tolist(), strict=True)
        ]  # fmt: skip
        node[replicas], coming[replicas] = self.begin.node[replicas], 1.0
        begin = replace(self.begin, flags=read_only(flags))
        flights = Flights(read_only(node), read_only(coming))
        return Settled(begin, flights, (*self.cancelled, *more))

    def first_to_arrive(self, steps: Steps) -> bool:
        """Whether what goes on is the first copy of its replica, wherever that is copied at all."""
        goes_on = (self.begin.flags & Flag.INCOMING) != 0
        copies = np.flatnonzero(steps.kind == StepKind.COPY)
        replica, first = np.unique(steps.replica[copies], return_index=True)
        astray = steps.target[copies[first]] != self.flights.node[replica]
        return not bool((goes_on[replica] & astray).any())


def serving(start: Placement, steps: Steps, now: Placement) -> Placement:
    """Return where the replicas of an observed placement serve; itself if none is on its way."""
    # a replica that is ``INCOMING`` serves where the steps, or else ``start``, had it before
    coming = np.flatnonzero((now.flags & Flag.INCOMING) != 0)
    if len(coming) == 0:
        return now
    node, flags = now.node.copy(), now.flags.copy()
    node[coming] = _homes(start, steps, coming, now.node)[coming]
    flags[coming] &= ~np.uint16(Flag.INCOMING)
    found = Placement(now.first, read_only(node), now.role, read_only(flags), now.leader)
    return replace(found, disk=lying(found, now))


def settled(
    cluster: Cluster,
    at_home: Placement,
    flights: Flights,
    wanted: Placement,
    continued: Steps | None = None,
) -> Settled:
    """Return which copies to replicas of an observed cluster continue from where these serve."""
    # one continues if a slot of its partition is to have its node as ``wanted``, or is copied there
    # first by the steps ``continued``
    now = cluster.placement
    home, flags = at_home.node, at_home.flags.copy()
    going = _first_copies(continued, now)
    node, left = home.copy(), np.ones(len(now.node))
    cancelled = []
    names, nodes = cluster.partitions.names, cluster.nodes.names
    for k in np.flatnonzero(now.node != home).tolist():
        p, n = int(now.owner[k]), int(now.node[k])
        mine = np.arange(now.first[p], now.first[p + 1])
        free = mine[((wanted.node[mine] == n) | (going[mine] == n)) & (node[mine] == home[mine])]
        if len(free) and cluster.nodes.serves[n] and not (home[mine] == n).any():
            j = k if k in free else int(free[0])
            node[j], left[j] = n, flights.coming[k]
            flags[j] |= np.uint16(Flag.INCOMING)
        else:
            cancelled.append(Cancelled(names[p], k - int(now.first[p]), nodes[n]))
    begin = replace(at_home, flags=read_only(flags))
    return Settled(begin, Flights(read_only(node), read_only(left)), tuple(cancelled))


def _first_copies(steps: Steps | None, now: Placement) -> Ints32:
    """Return where some steps copy each replica first, (K,); -1 where they do not."""
    found = np.full(len(now.node), -1, np.int32)
    if steps is not None:
        copies = np.flatnonzero(steps.kind == StepKind.COPY)[::-1]
        found[steps.replica[copies]] = steps.target[copies]
    return found


def _homes(start: Placement, steps: Steps, replicas: Rows, node: Ints32) -> Ints32:
    """Return where replicas, (K,), were before they were copied to their nodes."""
    home = start.node.copy()
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    copies = copies[np.isin(steps.replica[copies], replicas)]
    found: set[int] = set()
    # a replica that goes by a spare node is copied twice
    for k, n in zip(steps.replica[copies].tolist(), steps.target[copies].tolist(), strict=True):
        if n == node[k]:
            found.add(k)
        elif k not in found:
            home[k] = n
    astray = np.setdiff1d(replicas, np.array(sorted(found), np.int64))
    home[astray] = start.node[astray]
    return home
