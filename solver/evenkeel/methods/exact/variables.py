"""Variables of the CP-SAT model: replicas of each partition on each node, and leaders.

Slack variables leave broken what came broken, so a model is feasible even where not everything can
be repaired, and none of its answers is worse than the initial placement. Symmetric partitions
(same loads, rules, slots and nodes) are ordered: the sum of the node numbers rises from each to the
next, which excludes permutations of one answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, Audit
from evenkeel.measure.binding import nodes_that_meet, partition_scope
from evenkeel.measure.elections import ANYWHERE, NOWHERE, electable
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import baselines_of
from evenkeel.methods.shared.answers import DEEPEST
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


# a kind of violation, its owner, the owner's number, and the expression, tier or dimension
Place = tuple[str, str, int, str | int]


@dataclass
class Slack:
    """What was broken as things came, and what of it a model leaves broken."""

    model: CpModel
    came: Mapping[Place, int]
    stays: NDArray[np.bool_]  # (N,): a replica that is there may stay though rules bar it
    broken: list[Any] = field(default_factory=list)

    @classmethod
    def none(cls, cluster: Cluster, model: CpModel) -> Slack:
        """Let nothing be broken."""
        return cls(model, {}, np.zeros(len(cluster.nodes), bool))

    @classmethod
    def of(cls, cluster: Cluster, model: CpModel) -> Slack:
        """Let be broken what came broken, with or without the replicas that do not live."""
        came: Counter[Place] = Counter()
        for audited in baselines_of(cluster):
            came |= _amounts(audited)
        return cls(model, came, cluster.nodes.serves)

    @property
    def repairs(self) -> bool:
        """Whether a rule that came broken may be repaired in part."""
        return bool(self.stays.any())

    def slack(self, kind: str, whose: str, member: int, about: str | int) -> Any:
        """Return by how much a rule may be broken; all of it counts."""
        most = self.came.get((kind, whose, member, about), 0)
        if not most:
            return 0
        found = self.model.new_int_var(0, most, "")
        self.broken.append(found)
        return found

    def surplus(self, most: int) -> Any:
        """Return how many replicas beyond those wanted may stay, each of which counts."""
        if most <= 0 or not self.repairs:
            return 0
        found = self.model.new_int_var(0, most, "")
        self.broken.append(found)
        return found

    def above(self, kind: str, whose: str, member: int, about: int) -> Any:
        """Return whether a node or domain stays above its room, if it came so; it counts."""
        if not self.came.get((kind, whose, member, about)):
            return 0
        found = self.model.new_bool_var("")
        self.broken.append(found)
        return found


def _amounts(audited: Audit) -> Counter[Place]:
    """Return the violation of each hard rule at each place."""
    found: Counter[Place] = Counter()
    for one in audited.found:
        if not KINDS[one.kind].hard:
            continue
        columns = one.partition, one.group, one.node, one.tier, one.domain, one.dimension
        rows = zip(*(column.tolist() for column in columns), one.amount.tolist(), strict=True)
        for partition, group, node, tier, domain, dimension, amount in rows:
            if partition >= 0 or group >= 0:
                whose, member = ("partition", partition) if partition >= 0 else ("group", group)
                place = one.kind, whose, member, one.expression or tier
            elif node >= 0:
                place = one.kind, "node", node, dimension
            else:
                place = one.kind, f"tier {tier}", domain, dimension
            # an overloaded node may stay so, by any amount
            found[place] += 1 if dimension >= 0 else max(int(amount), 1)
    return found


# resolution of weights as a part of the lightest, if they are no multiples of it; and the most that
# any weight counts
PARTS, HEAVIEST = 100, 10_000


class CutShort(Exception):
    """The time for a model is over before there is one."""


@dataclass
class Reasons:
    """Names of constraints, so that a set of contradicting ones can be reported."""

    model: CpModel
    switches: dict[str, Any] | None = None
    watch: Watch | None = None  # ends the making of a model that takes too long

    def look(self) -> None:
        """Ask the clock and the caller whether to go on; raise ``CutShort`` if not."""
        if self.watch is not None:
            self.watch.hear()
            if self.watch.reason is not None:
                raise CutShort

    def hold(self, constraint: Any, name: str) -> None:
        """Add a constraint under a name."""
        self.look()
        if isinstance(constraint, bool | np.bool_):
            constraint = self.model.new_constant(int(constraint)) >= 1
        added = self.model.add(constraint)
        if self.switches is not None:
            if name not in self.switches:
                self.switches[name] = self.model.new_bool_var(name)
            added.only_enforce_if(self.switches[name])


class SoftTerm(NamedTuple):
    """A term to minimise, below the placing of replicas and hard rules."""

    amount: Any
    most: int
    weight: float = 1.0


def in_parts(weights: list[float]) -> list[int]:
    """Return weights as whole numbers, in proportion but for one that is far above all others."""
    least = min(weights, default=1.0)
    ratios = [weight / least for weight in weights]
    parts = 1 if all(ratio == round(ratio) for ratio in ratios) else PARTS
    return [min(round(parts * ratio), HEAVIEST) for ratio in ratios]


@dataclass
class Variables:
    """The unknowns of a cluster. P partitions, N nodes."""

    cluster: Cluster
    model: CpModel
    reasons: Reasons
    slack: Slack
    voters: list[dict[int, Any]] = field(default_factory=list)
    others: list[dict[int, Any]] = field(default_factory=list)
    leads: list[dict[int, Any]] = field(default_factory=list)
    missing: list[Any] = field(default_factory=list)
    unled: list[Any] = field(default_factory=list)
    few: list[list[Any]] = field(default_factory=list)
    no_quorum: list[Any] = field(default_factory=list)
    swapped: list[SoftTerm] = field(default_factory=list)
    alike: list[list[int]] = field(default_factory=list)
    unelected: list[set[int]] = field(default_factory=list)
    _sums: dict[tuple[int, int, int], Any] = field(default_factory=dict, init=False)

    def together(self, alike: list[int], n: int, kind: int, of: list[dict[int, Any]]) -> Any:
        """Return how many replicas, or leaders, of some partitions a node holds, as one unknown."""
        # indistinguishable partitions are then counted before it is decided which of them are there
        if len(alike) == 1:
            return of[alike[0]][n]
        key = alike[0], n, kind
        if key not in self._sums:
            parts = [of[p][n] for p in alike]
            most = int(self.cluster.partitions.replicas[alike].sum())
            total = self.model.new_int_var(0, most, "")
            self.model.add(total == sum(parts))
            self._sums[key] = total
        return self._sums[key]

    def count(self, p: int, n: int) -> Any:
        """Return how many replicas of a partition a node holds."""
        return self.voters[p].get(n, 0) + self.others[p].get(n, 0)

    def nodes(self, p: int) -> list[int]:
        """Return the nodes that can hold a partition at all."""
        return sorted({*self.voters[p], *self.others[p]})

    def all(self) -> Iterator[tuple[int, int]]:
        """Go through the pairs of a partition and a node that can hold it."""
        for p in range(len(self.voters)):
            for n in self.nodes(p):
                yield p, n


def add_variables(
    cluster: Cluster, model: CpModel, reasons: Reasons, slack: Slack, *, may_miss: bool
) -> Variables:
    """Make the unknowns of a cluster, with what binds each partition by itself to single nodes."""
    variables = Variables(
        cluster, model, reasons, slack,
        alike=symmetric_partitions(cluster), unelected=_unelected(cluster),
    )  # fmt: skip
    standing = _Standing.of(cluster)
    scope = partition_scope(cluster)
    required = [(one.required(voters=False), one.required(voters=True)) for one in scope.demands]
    voters_open = [nodes_that_meet(cluster, of_voters) for _, of_voters in required]
    banned = {(int(p), int(n)) for p, n in cluster.forbidden}
    led, nodes = has_leaders(cluster), cluster.nodes
    may_receive, may_hold = nodes.may_receive.tolist(), nodes.may_hold.tolist()
    for p in range(len(cluster.partitions)):
        reasons.look()
        q = int(scope.rule[p])
        wanted = int(cluster.partitions.replicas[p])
        ballots = min(int(cluster.partitions.voters[p]), wanted)
        by_kind: list[dict[int, Any]] = []
        leaving = []
        for kind in (Role.VOTER, Role.NON_VOTER):
            slots = standing.slots.get((p, int(kind)), 0)
            number = slots if slack.repairs else min(slots, wanted)
            found: dict[int, Any] = {}
            for n in range(len(nodes)) if number else ():
                held, pinned = standing.of_kind(p, n, kind)
                # its replicas may exchange roles: none joins the node
                most = number if may_receive[n] else min(number, standing.on(p, n))
                barred = []
                if not may_hold[n] and pinned == 0:
                    barred.append("nodes that may hold nothing")
                elif most < number:
                    barred.append("nodes that accept nothing")
                if not scope.open[q, n]:
                    barred.append(f"require {_texts(required[q][0])}")
                    most = 0
                if kind == Role.VOTER and not voters_open[q][n]:
                    barred.append(f"voters_require {_texts(required[q][1])}")
                    most = 0
                if (p, n) in banned:
                    barred.append("forbidden")
                    most = 0
                if not may_hold[n]:
                    most = min(most, pinned)
                most = max(most, pinned)
                outstays = most < held and slack.stays[n]
                if most == 0 and not outstays and reasons.switches is None:
                    continue
                top = most if reasons.switches is None else number
                top = max(top, pinned, held if outstays else 0)
                found[n] = model.new_int_var(pinned, top, "")
                if outstays:
                    slack.broken.append(found[n])
                if outstays and not may_hold[n]:
                    leaving.append(found[n])
                if barred and reasons.switches is not None:
                    reasons.hold(found[n] <= most, f"{barred[0]} ({_class_of(cluster, n)})")
            model.add(sum(found.values()) <= slots)
            by_kind.append(found)
        _none_joins(cluster, standing, p, by_kind, reasons)
        counts = sum(by_kind[0].values()) + sum(by_kind[1].values())
        lacking = model.new_int_var(0, wanted if may_miss else 0, "")
        surplus = slack.surplus(standing.total(p) - wanted)
        if leaving:  # replicas beside one that has yet to leave are not too many
            beside = model.new_int_var(0, standing.total(p), "")
            model.add(beside <= sum(leaving))
            surplus = surplus + beside
        model.add(counts + lacking == wanted + surplus)
        variables.missing.append(lacking)
        swapped = model.new_int_var(0, wanted, "")
        model.add(sum(by_kind[0].values()) <= ballots + swapped)
        model.add(sum(by_kind[1].values()) <= wanted - ballots + swapped)
        variables.swapped.append(SoftTerm(swapped, wanted))
        variables.voters.append(by_kind[0])
        variables.others.append(by_kind[1])
        variables.leads.append(_leader(variables, p) if led and wanted else {})
    if may_miss:
        _endangered(variables)
    if slack.repairs:
        _keep_alive(variables)
    return variables


def _none_joins(
    cluster: Cluster, standing: _Standing, p: int, by_kind: list[dict[int, Any]], reasons: Reasons
) -> None:
    """Hold a partition on nodes that accept nothing to as many as stand there, whatever roles."""
    for n in sorted(by_kind[0].keys() & by_kind[1].keys()):
        if not cluster.nodes.may_receive[n]:
            both = by_kind[0][n] + by_kind[1][n] <= standing.on(p, n)
            reasons.hold(both, f"nodes that accept nothing ({_class_of(cluster, n)})")


def _keep_alive(variables: Variables) -> None:
    """Let no partition have fewer live replicas than it had, or wants."""
    cluster, placement = variables.cluster, variables.cluster.placement
    lives = cluster.nodes.serves
    holds = lives | cluster.nodes.may_hold
    counted = ~stuck(cluster)
    owner, node = placement.owner[counted], placement.node[counted]
    for mask in (lives, holds):
        had = np.bincount(owner[np.append(mask, False)[node]], minlength=len(placement))
        least = np.minimum(had, cluster.partitions.replicas).tolist()
        for p in np.flatnonzero(least).tolist():
            variables.model.add(
                sum(variables.count(p, n) for n in variables.nodes(p) if mask[n]) >= least[p]
            )


def _endangered(variables: Variables) -> None:
    """Count the partitions short of ``min_active``, by how far, and those without a live quorum."""
    cluster, model = variables.cluster, variables.model
    partitions = cluster.partitions
    lives = cluster.nodes.serves
    quorum = np.where(partitions.voters > 0, partitions.voters // 2 + 1, 0)
    variables.few = [[] for _ in range(min(int(partitions.min_active.max(initial=0)), DEEPEST))]
    for p in np.flatnonzero(partitions.replicas > 0).tolist():
        voters = sum(count for n, count in variables.voters[p].items() if lives[n])
        live = voters + sum(count for n, count in variables.others[p].items() if lives[n])
        for short, few in enumerate(variables.few):
            least = int(partitions.min_active[p]) - short
            if least > 0:
                few.append(model.new_bool_var(""))
                model.add(live + least * few[-1] >= least)
        if quorum[p] > 0:
            variables.no_quorum.append(model.new_bool_var(""))
            model.add(voters + int(quorum[p]) * variables.no_quorum[-1] >= int(quorum[p]))


def _unelected(cluster: Cluster) -> list[set[int]]:
    """Return for each partition the nodes with a replica that no election makes the leader."""
    found: list[set[int]] = [set() for _ in range(len(cluster.partitions))]
    placement = cluster.placement
    for k in np.flatnonzero(electable(cluster) != ANYWHERE).tolist():
        found[placement.owner[k]].add(int(placement.node[k]))
    return found


def _leader(variables: Variables, p: int) -> dict[int, Any]:
    """Let one voter lead that may, if there is one."""
    model, may_lead = variables.model, variables.cluster.nodes.may_lead
    voters, unelected = variables.voters[p], variables.unelected[p]
    leads = {n: model.new_bool_var("") for n in voters if may_lead[n] and n not in unelected}
    placement = variables.cluster.placement
    rows = slice(*placement.first[p : p + 2].tolist())
    was = int(placement.leader_node[p])
    # where no election is held, what comes leads only if the node that led has no replica any more
    leads_on = was >= 0 and (electable(variables.cluster)[rows] == NOWHERE).any()
    lacking = model.new_bool_var("")
    unfit: Any = 0
    if was >= 0 and variables.slack.stays[was]:
        votes = placement.role[placement.leader_replica[p]] == Role.VOTER
        stays = (voters if votes else variables.others[p]).get(was)
        if stays is not None and (was not in leads or not votes):
            unfit = model.new_bool_var("")
            model.add(unfit <= stays)
        if stays is not None:
            model.add(lacking == 0)
    for n, lead in leads.items():
        model.add(lead <= voters[n] + (unfit if n == was else 0))
        if leads_on and n not in placement.node[rows]:
            model.add(lead + variables.count(p, was) <= 1)
    if not isinstance(unfit, int):
        model.add(unfit <= leads.setdefault(was, unfit))
    model.add(sum(leads.values()) + lacking == 1)
    if variables.reasons.switches is None:
        variables.unled.append(lacking + unfit)
    return leads


def _texts(texts: list[str]) -> str:
    return " and ".join(repr(text) for text in texts)


def _class_of(cluster: Cluster, n: int) -> str:
    """Name a node's class: its domain of the widest tier, or itself."""
    topology = cluster.topology
    if len(topology) and topology.domain[0, n] >= 0:
        return f"{topology.tiers[0]}={topology.domain_name(0, int(topology.domain[0, n]))}"
    return f"node={cluster.nodes.names[n]}"


@dataclass(frozen=True)
class _Standing:
    """Replicas and slots of each kind as things stand, and how many are pinned."""

    held: dict[tuple[int, int, int], int]
    pinned: dict[tuple[int, int, int], int]
    slots: dict[tuple[int, int], int]
    placed: dict[int, int]

    @classmethod
    def of(cls, cluster: Cluster) -> _Standing:
        placement = cluster.placement
        held: dict[tuple[int, int, int], int] = {}
        pinned: dict[tuple[int, int, int], int] = {}
        slots: dict[tuple[int, int], int] = {}
        placed: dict[int, int] = {}
        voter, other = int(Role.VOTER), int(Role.NON_VOTER)
        counted = np.flatnonzero(~stuck(cluster)).tolist()
        owner, node = placement.owner.tolist(), placement.node.tolist()
        votes = (placement.role == voter).tolist()
        is_pinned = ((placement.flags & Flag.PINNED) != 0).tolist()
        for k in counted:
            row = owner[k], voter if votes[k] else other
            slots[row] = slots.get(row, 0) + 1
            if node[k] < 0:
                continue
            key = row[0], node[k], row[1]
            held[key] = held.get(key, 0) + 1
            placed[row[0]] = placed.get(row[0], 0) + 1
            if is_pinned[k]:
                pinned[key] = pinned.get(key, 0) + 1
        return cls(held, pinned, slots, placed)

    def total(self, p: int) -> int:
        """Replicas of a partition that have a node."""
        return self.placed.get(p, 0)

    def on(self, p: int, n: int) -> int:
        """Replicas of a partition on a node, whatever their roles."""
        return sum(self.held.get((p, n, int(kind)), 0) for kind in (Role.VOTER, Role.NON_VOTER))

    def of_kind(self, p: int, n: int, kind: Role) -> tuple[int, int]:
        key = p, n, int(kind)
        return self.held.get(key, 0), self.pinned.get(key, 0)


def stuck(cluster: Cluster) -> NDArray[np.bool_]:
    """Return the replicas pinned to nodes that may hold nothing, (K,): they stay, uncounted."""
    placement = cluster.placement
    pinned = (placement.flags & Flag.PINNED) != 0
    found: NDArray[np.bool_] = pinned & ~np.append(cluster.nodes.may_hold, True)[placement.node]
    return found


def class_names(cluster: Cluster) -> NDArray[np.object_]:
    """Name the class of every node: its domain of the widest tier, or itself."""
    return np.array([_class_of(cluster, n) for n in range(len(cluster.nodes))], object)


def symmetric_partitions(cluster: Cluster) -> list[list[int]]:
    """Return sets of indistinguishable partitions."""
    placement, partitions = cluster.placement, cluster.partitions
    banned: dict[int, list[int]] = {}
    for p, n in cluster.forbidden.tolist():
        banned.setdefault(p, []).append(n)
    found: dict[Any, list[int]] = {}
    for p in range(len(partitions)):
        rows = slice(placement.first[p], placement.first[p + 1])
        slots = zip(placement.node[rows], placement.role[rows], placement.flags[rows], strict=True)
        load = [
            part[p].tobytes()
            for part in (partitions.load.leader, partitions.load.voter, partitions.load.non_voter)
        ]
        columns = (partitions.replicas, partitions.voters, partitions.rule, partitions.group)
        key = (
            *load,
            *(int(column[p]) for column in columns),
            int(placement.leader_node[p]),
            tuple(sorted((int(n), int(role), int(flags)) for n, role, flags in slots)),
            tuple(banned.get(p, [])),
        )
        found.setdefault(key, []).append(p)
    return list(found.values())


def twins(variables: Variables) -> list[list[int]]:
    """Return the sets of two or more indistinguishable partitions."""
    return [alike for alike in variables.alike if len(alike) > 1]


def order_symmetric(variables: Variables) -> None:
    """Look at one order of each set of twins only."""
    for alike in twins(variables):
        variables.reasons.look()
        sums = [sum((n + 1) * variables.count(p, n) for n in variables.nodes(p)) for p in alike]
        for one, other in pairwise(sums):
            if not isinstance(one, int) and not isinstance(other, int):
                variables.model.add(one <= other)


def in_order(variables: Variables, hint: Placement) -> Placement:
    """Give twins each other's places, so that a hint keeps the order that was chosen."""
    node, leader, first = hint.node.copy(), hint.leader.copy(), hint.first
    for alike in twins(variables):
        size = int(first[alike[0] + 1] - first[alike[0]])
        role = [tuple(hint.role[first[p] : first[p] + size].tolist()) for p in alike]
        if len(set(role)) > 1:  # their slots stand in another order: leave the hint as it is
            continue
        rows = np.array([hint.node[first[p] : first[p] + size] for p in alike]).reshape(
            len(alike), size
        )
        order = np.argsort((rows + 1).sum(axis=1), kind="stable")
        for p, other in zip(alike, order.tolist(), strict=True):
            node[first[p] : first[p] + size] = rows[other]
            leader[p] = hint.leader[alike[other]]
    return hint.replaced(node, leader)
