"""Find paths of one partition from start to target by search over its few states.

A state holds the slots and roles that have changed, the leader, and a replica on a third node. Each
step that the protocol allows leads to another one; those that break what both ends keep are none.
Uniform-cost search (Dijkstra 1959) over them finds the way of the fewest copies, then of the fewest
changes; where there is none, no order keeps the rules.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain, combinations, islice, permutations, product
from typing import NamedTuple, TypeVar

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import Flags, Rows, read_only
from evenkeel.planning.changes.actions import (
    Action,
    Actions,
    actions_in_order,
    never,
    partition_orders,
)
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.throttle import Protocol


def actions_of(
    cluster: Cluster,
    transitions: TransitionTable,
    protocol: Protocol,
    at_once: float,
    unfit: Flags | None = None,
    full: Collection[tuple[int, int]] = (),
    *,
    order: Rows | None = None,
    detours: bool = True,
    urged: bool = False,
) -> Actions:
    """Return the actions of every partition, up to ``at_once`` copies of it at a time."""
    # Slots change in an ``order (A, R)``, the usual one by default, or in one that keeps the rules.
    # Replicas that are ``unfit (K,)``, or that no election makes leaders, lead only what they lead
    # at an end; no partition detours by a node if both are among the ``full``. What is lost goes
    # first if ``urged``.
    safety = Safety(cluster, transitions, protocol)
    unfit = safety.unelected if unfit is None else safety.unelected | unfit
    orders = partition_orders(safety, unfit, order)
    actions = actions_in_order(safety, at_once, orders)
    if not actions.blocked.any():
        return actions
    blocked = np.isin(transitions.partition, actions.partition[actions.blocked]) & ~never(
        cluster, transitions
    )
    found: dict[int, list[Edge]] = {}
    for row in np.flatnonzero(blocked).tolist():
        turn = np.argsort(orders.order[row]).tolist()
        partition = Partition(safety, row, at_once, unfit, full, turn, urged=urged)
        way = partition.way()
        if way is None and detours and protocol.joint and not protocol.whole:
            partition.whole = True
            way = partition.way()
        if way is None and detours:
            way = partition.way(partition.thirds())
        if way is not None:
            found[row] = way
    if not found:
        return actions
    made = actions_along(
        transitions, [(row, edge.did) for row, way in found.items() for edge in way]
    )
    return actions.with_others(made, transitions.partition[[*found]])


def actions_along(
    transitions: TransitionTable, changes: Sequence[tuple[int, tuple["Did", ...]]]
) -> Actions:
    """Return the actions of changes of some rows of the ends, in their order."""
    rows = [(row, number, *one) for number, (row, did) in enumerate(changes) for one in did]
    row, change, *columns = np.array(rows, np.int64).reshape(len(rows), len(Did._fields) + 2).T
    of = dict(zip(Did._fields, columns, strict=True))
    whose = transitions.replica[row, np.maximum(of["next_leader"], 0)]
    return Actions(
        action=of["action"].astype(np.int8), partition=transitions.partition[row],
        replica=transitions.replica[row, of["slot"]].astype(np.int32),
        source=of["source"].astype(np.int32), target=of["target"].astype(np.int32),
        was=of["was"].astype(np.uint8), role=of["role"].astype(np.uint8),
        led=of["led"] != 0, leads=of["leads"] != 0,
        next_leader=np.where(of["next_leader"] >= 0, whose, -1).astype(np.int32),
        next_leader_node=of["next_leader_node"].astype(np.int32), change=change.astype(np.int32),
        blocked=np.zeros(len(rows), bool), recovers=np.zeros(len(rows), bool),
        left=np.ones(len(rows)), flying=np.zeros(len(rows), bool),
    )  # fmt: skip


FEW = 6  # slots of which any number may be exchanged at once; of more all that are left are
THIRDS = 64  # third nodes that are tried for each partition, the emptiest of every kind
STATES = 50_000  # states that are looked at: more than five replicas have


class State(NamedTuple):
    """Changed slots and roles as bits; the leading slot, -1 for none; the slot on a third node."""

    moved: int
    recast: int
    leader: int
    away: tuple[int, int] = (-1, -1)


class Did(NamedTuple):
    """One act of a change, by slots; what it took the lead from, and where that stood."""

    action: Action
    slot: int
    source: int
    target: int
    was: int
    role: int
    led: bool = False
    leads: bool = False
    next_leader: int = -1
    next_leader_node: int = -1

    @property
    def moves(self) -> bool:
        """Whether the slot comes to another node."""
        return self.action in (Action.MOVE, Action.ADD)


class Edge(NamedTuple):
    """A change: the state that it leads to, its actions, and what has to hold meanwhile."""

    after: State
    did: tuple[Did, ...]
    # of a voter that serves on two nodes for a while: what it was before, slot and other node
    twice: tuple[State, int, int] | None = None


Replicas = tuple[tuple[int, int], ...]  # nodes and roles of all slots
# where slots are, where they are copied to, and their roles, in whatever order of slots
Pairs = tuple[tuple[int, int, int], ...]

# replicas in their order, and which of them is the other one of the last; -1 for none
Asked = tuple[Replicas, int]


class Partition:
    """The states of one partition, a row of ``safety.transitions``, between start and target."""

    # ``turn`` has the places of slots in the order of their changes; if ``whole``, several slots
    # may be exchanged at one instant.

    def __init__(
        self,
        safety: Safety,
        row: int,
        at_once: float,
        unfit: Flags | None = None,
        full: Collection[tuple[int, int]] = (),
        turn: Sequence[int] = (),
        *,
        urged: bool = False,
    ) -> None:
        transitions = safety.transitions
        self.safety, self.row, self.at_once, self.full = safety, row, at_once, full
        self.turn, self.urged = turn or range(transitions.replica.shape[1]), urged
        self.whole = safety.protocol.whole
        self.slots = [s for s, k in enumerate(transitions.replica[row].tolist()) if k >= 0]
        count = len(self.slots)
        self.before: list[int] = transitions.before[row, :count].tolist()
        self.after: list[int] = transitions.after[row, :count].tolist()
        self.role: list[int] = transitions.role[row, :count].tolist()
        self.becomes: list[int] = transitions.becomes[row, :count].tolist()
        self.led, self.leads = int(transitions.led[row]), int(transitions.leads[row])
        replica = transitions.replica[row, :count]
        unfit = safety.unelected if unfit is None else unfit
        self.unfit = set(np.flatnonzero(unfit[replica]).tolist())
        self.live: list[bool] = safety.live.tolist()
        self.kept: dict[Asked, bool] = {}
        self.beside: dict[Pairs, bool] = {}
        self._settle()

    def _settle(self) -> None:
        """Note which slots change, and where the last leader is to be."""
        safety, row = self.safety, self.row
        self.moves = [s for s in self.slots if self.before[s] != self.after[s]]
        self.moves.sort(key=self.turn.__getitem__)  # of equal ways the one closest to that order
        first = safety.urgent if self.urged else safety.begun
        self.begun = {s for s in self.moves if first[row, s]}
        self.recasts = [s for s in self.slots if self.role[s] != self.becomes[s]]
        self.final = self.after[self.leads] if self.leads >= 0 else -1

    def traded(self, origin: list[int]) -> "Partition":
        """Return the partition with slots that take nodes and roles of others, as they start."""
        other = copy(self)
        other.after = [self.after[origin[s]] for s in self.slots]
        becomes = [self.becomes[origin[s]] for s in self.slots]
        # what only leaves keeps its role, and what only comes has that from the beginning
        other.becomes = [becomes[s] if other.after[s] >= 0 else self.role[s] for s in self.slots]
        other.role = [self.role[s] if self.before[s] >= 0 else becomes[s] for s in self.slots]
        other.leads = origin.index(self.leads) if self.leads >= 0 else self.leads
        other._settle()
        return other

    # what a state is -----------------------------------------------------------------------

    @property
    def begin(self) -> State:
        """Return the state at the beginning; who is dead leads nothing."""
        leads = self.led >= 0 and self.live[self.before[self.led]]
        return State(0, 0, self.led if leads else -1)

    def is_end(self, state: State) -> bool:
        """Whether everything has changed, and who is to lead does."""
        done = all(state.moved >> s & 1 for s in self.moves)
        done &= all(state.recast >> s & 1 for s in self.recasts)
        return done and (self.leads < 0 or state.leader == self.leads) and state.away[0] < 0

    def left(self, state: State) -> int:
        """Return how much is left to be done: 0 at the end."""
        now, then = self.replicas(state), [*zip(self.after, self.becomes, strict=True)]
        held, wanted = ({one for one in replicas if one[0] >= 0} for replicas in (now, then))
        leads = self.leads >= 0 and (
            state.leader < 0 or self.node(state, state.leader) != self.final
        )
        return len(held ^ wanted) + leads

    def node(self, state: State, slot: int) -> int:
        """Return where a slot stands."""
        if state.away[0] == slot:
            return state.away[1]
        return self.after[slot] if state.moved >> slot & 1 else self.before[slot]

    def role_of(self, state: State, slot: int) -> int:
        """Return what a slot is."""
        return self.becomes[slot] if state.recast >> slot & 1 else self.role[slot]

    def replicas(self, state: State) -> Replicas:
        """Return nodes and roles of all slots."""
        moved, recast, (away, third) = state.moved, state.recast, state.away
        found = [
            (self.after[s] if moved >> s & 1 else self.before[s],
             self.becomes[s] if recast >> s & 1 else self.role[s]) for s in self.slots
        ]  # fmt: skip
        if away >= 0:
            found[away] = third, found[away][1]
        return tuple(found)

    def may_lead(self, slot: int, node: int, role: int) -> bool:
        """Whether a slot may lead where it serves."""
        if node < 0 or role != Role.VOTER or not self.live[node]:
            return False
        if node == self.final and slot == self.leads:
            return True
        may = self.safety.may_lead[node]
        return may and (
            slot not in self.unfit or (slot == self.leads and node != self.before[slot])
        )

    # what leads from a state to others -----------------------------------------------------

    def edges(self, state: State, thirds: Collection[int] = ()) -> Iterator[Edge]:
        """Yield the changes that the protocol allows, whether rules do or not."""
        yield from self._hand_over(state)
        going = [s for s in self.begun if not state.moved >> s & 1]
        if not going and state.away[0] < 0:
            yield from self._recast(state)
        left = [s for s in self.moves if not state.moved >> s & 1]
        for s in left:
            if not going or s in going:
                yield from self._moved(state, s)
        if self.whole or (self.safety.protocol.joint and self.recasts):
            yield from self._together(state, left, going)
        if state.away[0] < 0 and not going:
            for s in left:
                for node in thirds if self.before[s] >= 0 and self.after[s] >= 0 else ():
                    yield from self._moved(state, s, node)

    def _hand_over(self, state: State) -> Iterator[Edge]:
        if self.leads < 0:
            return
        here = self.node(state, state.leader) if state.leader >= 0 else -1
        for s in self.slots:
            node, role = self.node(state, s), self.role_of(state, s)
            if s != state.leader and node != here and self.may_lead(s, node, role):
                did = Did(Action.LEAD, s, node, node, role, role, False, True, state.leader, here)
                yield Edge(state._replace(leader=s), (did,))

    def _moved(self, state: State, slot: int, to: int | None = None) -> Iterator[Edge]:
        """Yield the change of one slot, to a third node if one is given."""
        source, role = self.node(state, slot), self.role_of(state, slot)
        target = self.after[slot] if to is None else to
        leads = state.leader == slot
        held = {self.node(state, s) for s in self.slots if s != slot} - {-1}
        if target in held or (target >= 0 and not self.live[target]):
            return
        if leads and (self.leads < 0 or not self.may_lead(slot, target, role)):
            return
        action = Action.DROP if target < 0 else Action.ADD if source < 0 else Action.MOVE
        did = Did(action, slot, source, target, role, role, leads, leads)
        after = state._replace(moved=state.moved | 1 << slot, away=(-1, -1))
        if to is not None:
            after = state._replace(away=(slot, to))
        elif state.away[0] >= 0 and state.away[0] != slot:
            after = after._replace(away=state.away)
        serve = not self.safety.protocol.joint and action == Action.MOVE and role == Role.VOTER
        yield Edge(after, (did,), (state, slot, target) if serve else None)

    def _recast(self, state: State) -> Iterator[Edge]:
        """Yield changes of roles: all at once in joint consensus, else one by one."""
        left = [s for s in self.recasts if not state.recast >> s & 1]
        if not left:
            return
        ways = [left] if self.safety.protocol.joint else [[s] for s in left]
        for some in ways:
            yield from self._led_on(state, [], some)

    def _together(self, state: State, left: list[int], going: list[int]) -> Iterator[Edge]:
        """Yield exchanges of several slots at one instant."""
        roles = [s for s in self.recasts if not state.recast >> s & 1]
        if state.away[0] >= 0 or {*left} & {*roles}:
            return
        sizes = range(2, len(left) + 1) if len(left) <= FEW else [len(left)]
        if roles or not self.whole:
            sizes = [len(left)]
        ways = [
            [*some] for size in sizes for some in combinations(left, size)
            if {*going} <= {*some} and (size > 1 or roles)
        ]  # fmt: skip
        asked = [self._beside(state, some) for some in ways]
        self._admit([one for one in asked if one is not None and one not in self.beside])
        for some, one in zip(ways, asked, strict=True):
            if one is not None and self.beside[one]:
                yield from self._led_on(state, some, roles)

    def _beside(self, state: State, some: list[int]) -> Pairs | None:
        """Return where slots are while some are copied at once, None if they cannot be."""
        comes = [s for s in some if self.after[s] >= 0]
        now = [self.node(state, s) for s in self.slots]
        to = [self.after[s] for s in comes]
        held = [n for n in now if n >= 0]
        if len(comes) > self.at_once or len({*to}) < len(to) or {*to} & {*held}:
            return None
        if not all(self.live[n] for n in to):
            return None
        sources = [now[s] for s in comes if now[s] >= 0]
        lost = [s for s in comes if now[s] < 0 or not self.live[now[s]]]
        others = [s for s in self.slots if s not in some and now[s] >= 0 and self.live[now[s]]]
        if len({*sources}) < len(sources) or len(lost) > len(others):
            return None
        then = [self.after[s] if s in comes else now[s] for s in self.slots]
        return tuple(
            sorted(zip(now, then, [self.role_of(state, s) for s in self.slots], strict=True))
        )

    def _admit(self, asked: list[Pairs]) -> None:
        """Find out which learners rules admit beside all that is there."""
        if not asked:
            return
        asked = [*dict.fromkeys(asked)]
        table = np.array(asked, np.int32)
        before, after = (np.ascontiguousarray(table[:, :, i]) for i in (0, 1))
        rows = np.full(len(asked), self.row)
        role = table[:, :, 2].astype(np.uint8)
        admits = self.safety.admits_learners(rows, before, after, role)
        self.beside.update(zip(asked, admits.tolist(), strict=True))

    def _led_on(self, state: State, some: list[int], roles: list[int]) -> Iterator[Edge]:
        """Yield changes of slots and roles at one instant, one for each next leader."""
        moved, recast = state.moved, state.recast
        for s in some:
            moved |= 1 << s
        for s in roles:
            recast |= 1 << s
        after = State(moved, recast, state.leader)
        was = state.leader
        changes = {*some, *roles}
        for leader in sorted({was, *changes}, key=lambda s: s != was):
            if leader < 0:
                yield Edge(after, self._did(state, after, some, roles))
                continue
            node, role = self.node(after, leader), self.role_of(after, leader)
            stays = leader == was and leader not in changes
            # a leader without a vote goes on where it is
            if not stays and (self.leads < 0 or not self.may_lead(leader, node, role)):
                continue
            if leader != was and was < 0:
                continue
            then = after._replace(leader=leader)
            yield Edge(then, self._did(state, then, some, roles))

    def _did(
        self, state: State, after: State, some: list[int], roles: list[int]
    ) -> tuple[Did, ...]:
        """Return the actions of a change at one instant, the next leader before the last."""
        was, leader = state.leader, after.leader
        rises = [s for s in roles if self.becomes[s] == Role.VOTER]
        order = [*some, *rises, *(s for s in roles if s not in rises)]
        order.sort(key=lambda s: 0 if s == leader != was else 2 if s == was else 1)
        found = []
        for s in order:
            source, target = self.node(state, s), self.node(after, s)
            action = Action.DROP if target < 0 else Action.ADD if source < 0 else Action.MOVE
            takes = s == leader != was
            found.append(Did(
                Action.ROLE if s in roles else action, s, source, target, self.role_of(state, s),
                self.role_of(after, s), s == was and s == leader, s == leader,
                was if takes else -1, self.node(state, was) if takes and was >= 0 else -1,
            ))  # fmt: skip
        return tuple(found)

    # which of them keep the rules ----------------------------------------------------------

    def lawful(self, edges: list[Edge]) -> list[Edge]:
        """Return the changes whose states keep what both ends do."""
        asked: list[list[Asked]] = [
            [(tuple(sorted(self.replicas(one.after))), -1)] for one in edges
        ]
        for one, states in zip(edges, asked, strict=True):
            if one.twice is not None:
                before, slot, node = one.twice
                replicas, role = sorted(self.replicas(before)), self.role_of(before, slot)
                own = replicas.index((self.node(before, slot), role))
                states.append(((*replicas, (node, role)), own))
        self._judge([one for states in asked for one in states if one not in self.kept])
        return [
            edge for edge, states in zip(edges, asked, strict=True)
            if all(self.kept[one] for one in states)
        ]  # fmt: skip

    def _judge(self, asked: list[Asked]) -> None:
        for twin in (False, True):
            some = [*dict.fromkeys(one for one in asked if (one[1] >= 0) == twin)]
            if not some:
                continue
            table = np.array([replicas for replicas, _ in some], np.int32)
            slots = np.array([slot for _, slot in some], np.intp)
            kept = self.safety.keeps(
                np.full(len(some), self.row), np.ascontiguousarray(table[:, :, 0]),
                table[:, :, 1].astype(np.uint8), slots if twin else None,
            )  # fmt: skip
            self.kept.update(zip(some, kept.tolist(), strict=True))

    # the way through -----------------------------------------------------------------------

    def way(self, thirds: Collection[int] = ()) -> list[Edge] | None:
        """Return the changes that lead from the beginning to the end, None if no order does."""

        def edges(state: State, came: object) -> Iterator[tuple[Cost, State, Edge]]:
            for edge in self.lawful([*self.edges(state, thirds)]):
                yield (sum(one.moves for one in edge.did), 1), edge.after, edge

        found = cheapest(self.begin, edges, lambda state: not self.is_end(state), STATES)
        return None if found is None else _joined(found)

    def thirds(self) -> list[int]:
        """Return the nodes on which a replica may wait: the emptiest of every kind there is."""
        safety = self.safety
        cluster, p = safety.cluster, int(safety.transitions.partition[self.row])
        open_to = cluster.nodes.may_receive.copy()
        open_to[cluster.forbidden[cluster.forbidden[:, 0] == p, 1]] = False
        open_to[[n for q, n in self.full if q == p]] = False
        open_to[[n for n in (*self.before, *self.after) if n >= 0]] = False
        nodes = safety.by_room[open_to[safety.by_room]]
        _, first = np.unique(safety.kinds(self.row)[nodes], return_index=True)
        found: list[int] = nodes[np.sort(first)][:THIRDS].tolist()
        return found


Cost = tuple[float, int]  # what counts first, and what counts among ways that are equal in that
S = TypeVar("S", bound=Hashable)
E = TypeVar("E")


def cheapest(
    begin: S,
    edges: Callable[[S, tuple[S, E] | None], Iterable[tuple[Cost, S, E]]],
    left: Callable[[S], int],
    most: int,
) -> list[E] | None:
    """Return the edges of the cheapest way to a state with nothing left; None if none was found."""
    # ``edges`` takes a state, and the state and edge by which it was reached; ``most`` bounds the
    # states. Of equal costs the one with the least left goes first.
    best: dict[S, Cost] = {begin: (0, 0)}
    came: dict[S, tuple[S, E]] = {}
    heap = [(best[begin], left(begin), 0, begin)]
    serial = 0
    for _ in range(most):
        if not heap:
            return None
        cost, rest, _, state = heappop(heap)
        if rest == 0:
            way = []
            while state in came:
                state, edge = came[state]
                way.append(edge)
            return way[::-1]
        if best[state] < cost:
            continue
        for more, after, edge in edges(state, came.get(state)):
            total = cost[0] + more[0], cost[1] + more[1]
            if total < best.get(after, (np.inf, 0)):
                best[after], came[after] = total, (state, edge)
                serial += 1
                heappush(heap, (total, left(after), serial, after))
    return None


def _joined(way: list[Edge]) -> list[Edge]:
    """Let who has just come take the lead within the change that brought it."""
    found: list[Edge] = []
    for edge in way:
        both = taken_over(found[-1], edge) if found else None
        if both is None:
            found.append(edge)
        else:
            found[-1] = both
    return found


def taken_over(came: Edge, edge: Edge) -> Edge | None:
    """Return both changes as one if who comes by the first takes the lead by the other."""
    alone = edge.did[0]
    takes = [i for i, one in enumerate(came.did) if one.slot == alone.slot and one.moves]
    if alone.action != Action.LEAD or not takes or any(one.leads for one in came.did):
        return None
    if alone.next_leader in {one.slot for one in came.did}:
        return None
    did = list(came.did)
    did[takes[0]] = did[takes[0]]._replace(
        leads=True, next_leader=alone.next_leader, next_leader_node=alone.next_leader_node
    )
    return came._replace(after=edge.after, did=tuple(did))


WAYS = 120  # ways that are tried of each partition: all of five replicas


def rematched(
    cluster: Cluster,
    target: Placement,
    transitions: TransitionTable,
    actions: Actions,
    protocol: Protocol,
    at_once: float,
    *,
    urged: bool,
) -> tuple[Placement, TransitionTable, Actions]:
    """Return target, ends and actions with other ways for blocked partitions, where any is open."""
    # Replicas with the same role are alike, so they may trade their new nodes. The way of the
    # fewest actions is taken, the first of those; what is lost goes first if ``urged``.
    blocked = np.isin(transitions.partition, actions.partition[actions.blocked]) & ~never(
        cluster, transitions
    )
    safety = Safety(cluster, transitions, protocol)
    rows: list[int] = []
    origins: list[list[int]] = []
    changes: list[tuple[int, tuple[Did, ...]]] = []
    if not urged:  # all others have been tried
        blocked &= (safety.urgent != safety.begun).any(1)
    for row in np.flatnonzero(blocked & tradable(target, transitions)).tolist():
        partition = Partition(safety, row, at_once, urged=urged)
        best: list[Edge] | None = None
        fewest = len(partition.moves)
        ways = [ways_of(cluster, transitions, row)]
        if protocol.roles:
            ways.append(ways_across_roles(cluster, transitions, row))
        for origin in chain(*ways):
            way = partition.traded(origin).way()
            if way is not None and (best is None or _acts(way) < _acts(best)):
                best, taken = way, origin
                if _acts(way) <= fewest:
                    break
        if best is not None:
            rows.append(row)
            origins.append(taken)
            changes += [(row, edge.did) for edge in best]
    if not rows:
        return target, transitions, actions
    actions = actions.with_others(actions_along(transitions, changes), transitions.partition[rows])
    return *traded(target, transitions, np.array(rows), np.array(origins)), actions


def _acts(way: list[Edge]) -> int:
    """Return how many actions a way takes."""
    return sum(len(edge.did) for edge in way)


def tradable(target: Placement, transitions: TransitionTable) -> Flags:
    """Return the rows of which no slot waits for a node that is down, (A,), or leads unasked."""
    there = (
        (transitions.after == target.node[transitions.replica]) | (transitions.replica < 0)
    ).all(1)
    return np.asarray(
        there
        & ((transitions.leads < 0) | (transitions.leads == target.leader[transitions.partition]))
    )


def as_led(
    target: Placement, transitions: TransitionTable, actions: Actions
) -> tuple[Placement, TransitionTable]:
    """Return a target, and its ends, in which slots have the nodes that actions lead them to."""
    node = target.node.copy()
    goes = (actions.action == Action.MOVE) & ~actions.blocked
    # the last act of a replica is where it stays
    node[actions.replica[goes]] = actions.target[goes]
    there = np.where(transitions.replica >= 0, node[transitions.replica], transitions.after)
    rows = np.flatnonzero((there != transitions.after).any(1) & tradable(target, transitions))
    origin = np.argmax(transitions.after[rows][:, None, :] == there[rows][:, :, None], axis=2)
    return traded(target, transitions, rows, origin)


def ways_of(cluster: Cluster, transitions: TransitionTable, row: int) -> Iterator[list[int]]:
    """Yield from which slot each slot takes its node, in all ways but the usual one."""
    # slots take nodes only from slots whose roles are the same
    alike: dict[tuple[int, int], list[int]] = {}
    for slot, roles in _tradable(cluster, transitions, row).items():
        alike.setdefault(roles, []).append(slot)
    slots = [slot for group in alike.values() for slot in group]
    ways = product(*(islice(permutations(group), WAYS) for group in alike.values()))
    for way in islice(ways, 1, WAYS):
        yield _origin(transitions, slots, chain.from_iterable(way))


def ways_across_roles(
    cluster: Cluster, transitions: TransitionTable, row: int
) -> Iterator[list[int]]:
    """Yield from which slot each slot takes its node where some take those of other roles."""
    roles = _tradable(cluster, transitions, row)
    slots = [slot for slot, mine in roles.items() if max(mine) < Role.LEARNER]
    for way in islice(permutations(slots), WAYS):
        if any(roles[slot] != roles[other] for slot, other in zip(slots, way, strict=True)):
            yield _origin(transitions, slots, way)


def _origin(transitions: TransitionTable, slots: Iterable[int], others: Iterable[int]) -> list[int]:
    """Return from which slot each slot takes its node where some take those of others."""
    origin = list(range(transitions.replica.shape[1]))
    for slot, other in zip(slots, others, strict=True):
        origin[slot] = other
    return origin


def _tradable(
    cluster: Cluster, transitions: TransitionTable, row: int
) -> dict[int, tuple[int, int]]:
    """Return the slots that may take nodes of others, with the roles in which they are alike."""
    replica = transitions.replica[row]
    begun = (cluster.placement.flags[replica] & Flag.INCOMING) != 0
    free = transitions.moves[row] & ~transitions.recasts[row] & ~begun
    leads = int(transitions.leads[row])
    # what leads without a vote goes on, but no other takes that over
    free[leads] &= leads < 0 or transitions.becomes[row, leads] == Role.VOTER
    # where roles change in place anyway, another may come to be what one is to become
    recast = bool(transitions.recasts[row].any())
    role, becomes = transitions.role[row].tolist(), transitions.becomes[row].tolist()
    return {s: (role[s], -1 if recast else becomes[s]) for s in np.flatnonzero(free).tolist()}


def traded(
    target: Placement, transitions: TransitionTable, rows: Rows, origin: Rows
) -> tuple[Placement, TransitionTable]:
    """Return target and ends in which slots of some rows take the nodes and roles of others."""
    if len(rows) == 0:
        return target, transitions
    some = transitions.take(rows)
    leads = np.where(some.leads >= 0, np.argmax(origin == some.leads[:, None], axis=1), some.leads)
    after = np.take_along_axis(some.after, origin, 1)
    becomes = np.take_along_axis(some.becomes, origin, 1)
    # what only leaves keeps its role, and what only comes has that from the beginning
    becomes = np.where(after >= 0, becomes, some.role)
    role = np.where(some.before >= 0, some.role, becomes)
    some = replace(some, after=after, role=role, becomes=becomes, leads=leads)
    inside = some.replica >= 0
    node, role, leader = target.node.copy(), target.role.copy(), target.leader.copy()
    node[some.replica[inside]] = some.after[inside]
    role[some.replica[inside]] = some.becomes[inside]
    led = some.partition[some.leads >= 0]
    leader[led] = some.leads[some.leads >= 0]
    node, role, leader = read_only(node), read_only(role), read_only(leader)
    target = replace(target, node=node, role=role, leader=leader)
    changed = {}
    for name in ("after", "role", "becomes", "leads"):
        changed[name] = getattr(transitions, name).copy()
        changed[name][rows] = getattr(some, name)
    return target, replace(transitions, **changed).with_recasts()
