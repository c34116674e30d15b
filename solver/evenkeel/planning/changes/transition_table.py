"""The transition table: partitions that differ between start and target, one row each."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import lying
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import NO_PLACEMENT, Placement, Role
from evenkeel.model.reading.arrays import Columns, Flags, Ints32, Ints64, Roles, read_only
from evenkeel.planning.throttle import Protocol


@dataclass(frozen=True, eq=False)
class TransitionTable(Columns):
    """The A partitions that change, with R slots each, at both ends; -1 for no node or no slot."""

    partition: Ints32  # (A,) which they are
    replica: Ints64  # (A, R) row of each slot in the placement
    # before, after: (A, R) node of each slot
    before: Ints32
    after: Ints32
    # role, becomes: (A, R) its role before, and after; of what is nowhere the same as at the other
    # end
    role: Roles
    becomes: Roles
    recasts: Flags  # (A, R) the slots that stand for a change of roles
    # led, leads: (A,) slot that leads before, and after
    led: Ints64
    leads: Ints64
    late: Flags  # (A,) whether roles are to change last where they can, else first

    @classmethod
    def of(cls, start: Placement, target: Placement) -> "TransitionTable":
        """Compare two placements with the same rows; leadership is only ever handed over."""
        differs = (start.leader != target.leader) & (target.leader >= 0)
        placed = (start.node >= 0) & (target.node >= 0)
        recast = placed & (start.role != target.role)
        differs[start.owner[(start.node != target.node) | recast]] = True
        transitions = cls.between(start, target, np.flatnonzero(differs).astype(np.int32))
        return transitions.with_recasts()

    @classmethod
    def between(cls, start: Placement, target: Placement, partition: Ints32) -> "TransitionTable":
        """Return what some partitions have in two placements."""
        first = start.first[partition]
        length = start.first[partition + 1] - first
        slots = np.arange(int(length.max(initial=0)))
        inside = slots < length[:, None]
        replica = np.where(inside, first[:, None] + slots, -1)

        before, after = (
            np.where(inside, one.node[replica], np.int32(-1)) for one in (start, target)
        )
        then = np.where(inside, target.role[replica], np.uint8(0))
        role = np.where(before >= 0, start.role[replica], then)
        return cls(
            partition, replica, before, after, role, np.where(after >= 0, then, role),
            np.zeros(before.shape, bool), _leading(start, partition), _leading(target, partition),
            np.zeros(len(partition), bool),
        )  # fmt: skip

    @property
    def differ(self) -> Flags:
        """Whether a partition stands, votes or is led otherwise in the end; (A,)."""
        moves = (self.before != self.after) | (self.role != self.becomes)
        return np.asarray(moves.any(1) | ((self.led != self.leads) & (self.leads >= 0)))

    def with_recasts(self) -> "TransitionTable":
        """Return the table in which a last slot stands for a change of roles, if any change."""
        changed = (self.role != self.becomes).any(1)[:, None]
        if self.recasts.any():
            last = self.recasts[:, -1:] | changed
            return replace(self, recasts=np.hstack([self.recasts[:, :-1], last]))
        if not changed.any():
            return self
        none = np.full(changed.shape, -1)
        voter = np.zeros(changed.shape, np.uint8)
        return replace(
            self, replica=np.hstack([self.replica, none]),
            before=np.hstack([self.before, none.astype(np.int32)]),
            after=np.hstack([self.after, none.astype(np.int32)]),
            role=np.hstack([self.role, voter]), becomes=np.hstack([self.becomes, voter]),
            recasts=np.hstack([self.recasts, changed]),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.partition)

    @cached_property
    def moves(self) -> Flags:
        """Slots that change at all, (A, R)."""
        return np.asarray((self.before != self.after) | self.recasts)

    @property
    def changes_roles(self) -> Flags:
        """Partitions of which roles change in place, (A,)."""
        return np.asarray(self.recasts.any(axis=1))

    @property
    def votes(self) -> Flags:
        """Slots that vote before and after, (A, R)."""
        return np.asarray((self.role == Role.VOTER) & (self.becomes == Role.VOTER))


def _leading(placement: Placement, partition: Ints32) -> Ints64:
    """Return the slot that leads each partition; -1 where it has no node."""
    placed = placement.leader_node[partition] >= 0
    return np.where(placed, placement.leader[partition], -1).astype(np.int64)


def check_target(
    faults: FaultList, cluster: Cluster, target: Placement, path: str = "target"
) -> None:
    """Note why a placement cannot be the target of a plan for a cluster."""
    start = cluster.placement
    if not isinstance(target, Placement):
        faults.add(path, type(target).__name__, NO_PLACEMENT)
    elif len(target) != len(start):
        faults.add(path, len(target), f"places other partitions: the cluster has {len(start)}")
    elif not np.array_equal(target.first, start.first):
        p = int(np.argmax(np.diff(target.first) != np.diff(start.first)))
        faults.add(
            f"{path}.first[{p + 1}]", int(target.first[p + 1]),
            f"needs the slots that the cluster has: {int(start.first[p + 1])}",
        )  # fmt: skip
    else:
        width = np.diff(start.first)
        for name, least, most, why in (
            ("node", -1, len(cluster.nodes) - 1, "is not a node of the cluster"),
            ("role", 0, max(Role), "is not a role"),
            ("leader", -1, width - 1, "is not a slot of the partition"),
        ):
            found = getattr(target, name)
            if found.dtype.kind not in "iu":
                faults.add(f"{path}.{name}", found.dtype.name, "must be whole numbers")
                continue
            for k in np.flatnonzero((found < least) | (found > most)).tolist():
                faults.add(f"{path}.{name}[{k}]", int(found[k]), why)


def check_roles(faults: FaultList, cluster: Cluster, target: Placement, protocol: Protocol) -> None:
    """Note roles of a target in the cluster's slots that no step makes of those there."""
    start = cluster.placement
    placed = (start.node >= 0) & (target.node >= 0)
    for k in np.flatnonzero(placed & (target.role != start.role)).tolist():
        before, after = Role(start.role[k]), Role(target.role[k])
        known = f"it is a {_word(before)}"
        if Role.LEARNER in (before, after):
            why = f"only voters and non-voters become one another: {known}"
        elif not protocol.roles:
            why = f"protocol {protocol.name} changes no role of a replica that is there: {known}"
        else:
            continue
        faults.add(f"target.role[{k}]", _word(after), why)


def _word(role: Role) -> str:
    return role.name.lower().replace("_", "-")


def in_place(cluster: Cluster, target: Placement, protocol: Protocol) -> tuple[Placement, Ints64]:
    """Return a target in which nodes of a partition keep their slots, and its leaders, (P,)."""
    # Replicas are alike: two that trade nodes need no copy, and if their roles differ, these change
    # where a protocol can. Leaders are slots, (P,), -1 for none needed: where the target names no
    # voter, the present leader if it stays, else another.
    start = cluster.placement
    differs = (start.leader != target.leader).copy()
    differs[start.owner[(start.node != target.node) | (start.role != target.role)]] = True
    transitions = TransitionTable.between(start, target, np.flatnonzero(differs).astype(np.int32))
    proposed = np.full(len(start), -1)
    if len(transitions) == 0:
        return target, proposed
    node, role, leader = target.node.copy(), target.role.copy(), target.leader.copy()
    where, becomes, leads = _unpermuted(transitions, protocol)
    inside = transitions.replica >= 0
    node[transitions.replica[inside]] = where[inside]
    # what leaves keeps the role it had
    becomes = np.where((where < 0) & (transitions.before >= 0), transitions.role, becomes)
    role[transitions.replica[inside]] = becomes[inside]
    rows = np.arange(len(transitions))
    votes = (where >= 0) & (becomes == Role.VOTER)
    if where.shape[1]:
        leads[~votes[rows, leads]] = -1
        # slots on one node are one leader
        same = (transitions.led >= 0) & (leads >= 0) & votes[rows, transitions.led]
        same &= where[rows, transitions.led] == where[rows, leads]
        leads[same] = transitions.led[same]
    named = leads.copy()
    if where.shape[1]:
        stays = np.flatnonzero((leads < 0) & (transitions.led >= 0))
        led = transitions.led[stays]
        # a leader without a vote stays leader, unless that is new
        fit = (becomes[stays, led] == Role.VOTER) | (transitions.role[stays, led] != Role.VOTER)
        stays = stays[(where[stays, led] >= 0) & fit]
        leads[stays] = transitions.led[stays]
    lost = (leads < 0) & (transitions.led >= 0) & votes.any(1)
    leads[lost] = np.argmax(votes[lost], axis=1)
    leader[transitions.partition] = named
    proposed[transitions.partition] = np.where(named < 0, leads, -1)
    node, role, leader = read_only(node), read_only(role), read_only(leader)
    found = Placement(start.first, node, role, target.flags, leader)
    return replace(found, disk=lying(found, target)), proposed


def _unpermuted(transitions: TransitionTable, protocol: Protocol) -> tuple[Ints32, Roles, Ints64]:
    """Return nodes, roles and leading slots after, nodes that stay being where they were."""
    where, becomes, leads = transitions.after, transitions.becomes, transitions.leads.copy()
    if where.size == 0:
        return where, becomes, leads
    slots = where.shape[1]
    same = (transitions.before[:, :, None] == where[:, None, :]) & (where >= 0)[:, None, :]
    alike = transitions.role[:, :, None] == becomes[:, None, :]
    if protocol.roles:
        alike |= (transitions.role < Role.LEARNER)[:, :, None] & (becomes < Role.LEARNER)[
            :, None, :
        ]
    same &= alike
    off = ~np.eye(slots, dtype=bool)
    other = (where >= 0) & (transitions.before >= 0) & (transitions.role != becomes)
    rows = np.flatnonzero((same & off).any((1, 2)) | other.any(1))
    same = same[rows]
    once = (same.sum(1) <= 1).all(1) & (same.sum(2) <= 1).all(1)
    rows, match = rows[once], same[once].copy()
    where, becomes = where.copy(), becomes.copy()
    placed = (transitions.before[rows] >= 0)[:, :, None] & (where[rows] >= 0)[:, None, :]
    alike = placed & (transitions.role[rows][:, :, None] == becomes[rows][:, None, :])
    alike &= np.max(transitions.role[rows] | becomes[rows], axis=1, initial=0)[:, None, None] > 0
    for fits in (alike, np.ones_like(alike)):
        for slot in range(match.shape[1]):
            open_to = fits[:, slot] & ~match.any(1) & ~match[:, slot].any(1)[:, None]
            some = np.flatnonzero(open_to.any(1))
            match[some, slot, np.argmax(open_to[some], axis=1)] = True
    # the slot that each slot takes its node from
    origin = np.argmax(match, axis=2)
    where[rows] = np.take_along_axis(where[rows], origin, 1)
    becomes[rows] = np.take_along_axis(becomes[rows], origin, 1)
    led = leads[rows]
    leads[rows] = np.where(led >= 0, np.argmax(origin == led[:, None], axis=1), led)
    return where, becomes, leads
