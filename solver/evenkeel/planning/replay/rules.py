"""Check that rules kept at start and target hold throughout, of partitions and of groups.

Rules of partitions are checked in every state between start and target, those of groups at every
instant. Replicas of a group in domains are counts that go up and down; a rule asks for their
greatest, for how many are above 0, or for their difference. Replicas on dead nodes count nowhere. A
replica that serves on two nodes while it is exchanged counts where it is to stay, where too many
would break the rule.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import (
    NONE,
    Binding,
    eligible_domains,
    group_scope,
    nodes_of,
    nodes_that_meet,
    partition_scope,
)
from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import Columns, Flags, Ints, Ints32, Ints64, Rows
from evenkeel.model.rules import COUNTS, LIMITS, REQUIREMENTS, LimitKind, Term
from evenkeel.planning.replay.certificate import FoundBreaches
from evenkeel.planning.replay.trajectory import Trajectory
from evenkeel.planning.steps import StepKind

Counts = Ints64
CountedReplicas = Literal["serving", "present", "voting"]


@dataclass(frozen=True, eq=False)
class PartitionStates:
    """The replicas of partitions in n states, by column."""

    cluster: Cluster  # whose nodes they are on
    partition: Ints64  # (n,) partition of each state
    # node, slot: (W, n) node and slot of each column
    node: Ints32
    slot: Ints32
    # serving, present: (W, n) whether it serves, and whether it holds anything at all
    serving: Flags
    present: Flags
    votes: Flags  # (W, n) whether its replica votes

    @classmethod
    def of_course(cls, cluster: Cluster, trajectory: Trajectory) -> "PartitionStates":
        """Return all states of a trajectory."""
        return cls(
            cluster, trajectory.partition, trajectory.node, trajectory.slot, trajectory.serving,
            trajectory.present,
            trajectory.votes,
        )  # fmt: skip

    @classmethod
    def of_placement(
        cls, cluster: Cluster, placement: Placement, partition: Ints64
    ) -> "PartitionStates":
        """Return how some partitions stand in a placement."""
        first = placement.first[partition]
        width = placement.first[partition + 1] - first
        slot = np.arange(int(width.max(initial=0)), dtype=np.int32)[:, None]
        inside = slot < width
        replica = np.minimum(first + slot, max(len(placement.node) - 1, 0))
        node = np.where(inside, placement.node[replica], np.int32(-1))
        held = node >= 0
        votes = np.asarray(placement.role[replica] == Role.VOTER)
        slot = np.broadcast_to(slot, node.shape)
        return cls(cluster, partition, node, slot, held, held, votes)

    @cached_property
    def live(self) -> Flags:
        """ReplicaColumns that serve on a live node, (W, n)."""
        nodes = self.cluster.nodes
        return self.serving & at_node(nodes.serves, self.node)

    @cached_property
    def voting(self) -> Flags:
        """ReplicaColumns that serve and vote, (W, n)."""
        return self.serving & self.votes

    def domains(self, tier: int) -> Ints32:
        """Return the domain of each column on a tier, -1 for none and on dead nodes; (W, n)."""
        nodes, domain = self.cluster.nodes, self.cluster.topology.domain_with_nodes[tier]
        living = np.where(nodes.serves, domain, np.int32(-1))
        return np.append(living, np.int32(-1)).take(self.node)

    def live_serving(self) -> Counts:
        """Count the live replicas that serve, each once even while it serves on two nodes."""
        once = _firsts(self.live, self.slot)
        return np.asarray(once.sum(0))

    def quorum_margin(self, tier: int) -> Counts:
        """Return twice the voters that live whatever domain is lost, minus the voters."""
        domain, votes = self.domains(tier), self.voting
        lives = votes & self.live
        worst = _per_domain(lives & (domain >= 0), domain).max(0, initial=0)
        return np.asarray(2 * (lives.sum(0) - worst) - votes.sum(0))

    def survivors(self, tier: int) -> Counts:
        """Count the replicas that live whatever domain is lost."""
        domain = self.domains(tier)
        worst = _per_domain(self.live & (domain >= 0), domain).max(0, initial=0)
        return np.asarray(self.live.sum(0) - worst)

    def crowd(self, tier: int) -> Counts:
        """Return the most replicas that may meet in one domain, learners and leftovers included."""
        # a replica counts once in a domain, though it stands there twice while it moves
        domain = self.domains(tier)
        place = self.slot * np.int64(self.cluster.topology.domain_count[tier]) + domain
        alone = _firsts(self.present & (domain >= 0), place)
        return np.asarray(_per_domain(alone, domain).max(0, initial=0), np.int64)

    def distinct(self, tier: int, counted: Flags | None = None) -> Counts:
        """Count the domains in which some columns are; those that serve by default."""
        domain = self.domains(tier)
        chosen = self.serving if counted is None else counted
        return np.asarray(_firsts(chosen & (domain >= 0), domain).sum(0))

    def settled(self) -> tuple[Flags, Flags]:
        """Return the columns that serve, of a replica that does so on two nodes either one."""
        return _firsts(self.serving, self.slot), _firsts(self.serving[::-1], self.slot[::-1])[::-1]

    def widest(self, tier: int) -> Counts:
        """Count the domains that are served from, however a change that is under way ends."""
        one, other = self.settled()
        return np.maximum(self.distinct(tier, one), self.distinct(tier, other))

    def skew(self, tier: int, eligible: Flags, rule: Ints32) -> Counts:
        """Return the fullest domain minus the emptiest eligible one, however a change ends."""
        # ``eligible (Q, M)`` marks for each class of rules the domains with a node open to it;
        # ``rule`` is the class of each partition
        rule = rule[self.partition]
        domain = self.domains(tier)
        open_to = eligible.sum(1)[rule]
        nowhere = np.zeros((len(eligible), 1), bool)
        able = np.append(eligible, nowhere, axis=1)[rule, domain]
        found = np.zeros(len(self.partition), np.int64)
        for chosen in self.settled():
            counted = chosen & (domain >= 0)
            count = _per_domain(counted, domain).astype(np.int64)
            most = count.max(0, initial=0)
            inside = counted & able
            least = np.where(inside, count, most).min(0, initial=np.iinfo(np.int64).max)
            touched = _firsts(inside, domain).sum(0)
            least = np.where(touched < open_to, 0, np.minimum(least, most))
            np.maximum(found, np.where(open_to > 0, most - least, 0), out=found)
        return found

    def inside(self, mask: Flags, of: CountedReplicas) -> Counts:
        """Count the columns of some that are on the nodes of a mask which live."""
        chosen: Flags = getattr(self, of)
        living = self.cluster.nodes.serves
        return np.asarray((chosen & at_node(mask & living, self.node)).sum(0))


def _firsts(chosen: Flags, key: Ints) -> Flags:
    """Return those chosen in each column of which no earlier one has the same key."""
    alone = chosen.copy()
    for c in range(1, len(chosen)):
        for earlier in range(c):
            alone[c] &= ~(chosen[earlier] & (key[earlier] == key[c]))
    return alone


def _per_domain(counted: Flags, domain: Ints32) -> NDArray[np.int16]:
    """Return for each column that counts how many in its column share its domain; 0 for others."""
    # short numbers: no partition has so many columns
    count = counted.astype(np.int16)
    for c in range(1, len(counted)):
        for other in range(c):
            meet = counted[c] & counted[other] & (domain[c] == domain[other])
            count[c] += meet
            count[other] += meet
    return count


Measure = Callable[[PartitionStates], Counts]


@dataclass(frozen=True, eq=False)
class TrajectoryCheck:
    """The states of a trajectory beside those of the target."""

    found: FoundBreaches  # where breaches are noted
    trajectory: Trajectory  # its events
    states: PartitionStates  # of the trajectory, n columns
    target: PartitionStates | None  # of the trajectory's partitions in the target, Q columns
    judged: Flags  # (n,) states that are seen: those within a joint change are not

    def hold(self, kind: str, of: str, measure: Measure, amount: Ints, tier: int = -1) -> None:
        """Find states beyond the amount of their partition, (P,), that both ends keep to."""
        trajectory = self.trajectory
        sign = -1 if IS_MAXIMUM[kind] else 1
        asked = amount[trajectory.partition[trajectory.initial]]
        bound = asked != UNBOUND
        if not bound.any():
            return
        value = measure(self.states)
        keeps = bound & (sign * (value[trajectory.initial] - asked) >= 0)
        if self.target is not None:
            keeps &= sign * (measure(self.target) - asked) >= 0
        length = trajectory.final - trajectory.initial + 1
        kept = np.repeat(keeps, length) & self.judged
        limit = np.repeat(asked, length)
        margin = sign * (value - limit)
        worse = np.flatnonzero(kept & (margin < 0) & (trajectory.step >= 0))
        # a state that is no worse than the one before was reported with it
        worse = worse[(margin[worse] < margin[worse - 1]) | ~self.judged[worse - 1]]
        self.found.breach(
            kind, trajectory.step[worse], trajectory.rank[worse], -margin[worse],
            partition=trajectory.partition[worse], tier=tier,
        )  # fmt: skip
        seen = np.flatnonzero(kept)
        self.found.tight(
            kind, of, -margin[seen], value[seen], limit[seen], trajectory.step[seen],
            trajectory.rank[seen], partition=trajectory.partition[seen], tier=tier,
        )  # fmt: skip


UNBOUND = np.iinfo(np.int64).min  # amount of a partition that is not bound
IS_MAXIMUM: dict[str, bool] = {  # whether each kind is bounded from above, or from below
    **dict(LIMITS.items()), **dict.fromkeys(("same_node", *REQUIREMENTS), True),
    **dict.fromkeys((*COUNTS, "min_active", "quorum", "survivor"), False),
}  # fmt: skip


def check_survival(check: TrajectoryCheck) -> None:
    """Find states with too few live replicas."""
    cluster = check.states.cluster
    least = cluster.partitions.min_active.astype(np.int64)
    least = np.where(least > 0, least, UNBOUND)
    check.hold("min_active", "", PartitionStates.live_serving, least)


def check_quorum(check: TrajectoryCheck) -> None:
    """Find states of which the loss of a domain leaves no quorum of voters."""
    cluster = check.states.cluster
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        check.hold("quorum", name, partial(PartitionStates.quorum_margin, tier=tier), one, tier)


def check_survivors(check: TrajectoryCheck) -> None:
    """Find states of which the loss of a domain leaves no live replica."""
    cluster = check.states.cluster
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        check.hold("survivor", name, partial(PartitionStates.survivors, tier=tier), one, tier)


def check_limits(check: TrajectoryCheck) -> None:
    """Find states that break a hard limit on how a partition's replicas stand in domains."""
    cluster = check.states.cluster
    scope = partition_scope(cluster)
    for binding in scope.bindings:
        if not binding.hard:
            continue
        tier = cluster.topology.tier_index(binding.tier)
        bound = binding.amount != NONE
        if binding.kind == "min_domains":
            bound &= scope.wanted
        eligible = eligible_domains(cluster, scope, tier)
        measures: dict[str, Measure] = {
            "spread": partial(PartitionStates.crowd, tier=tier),
            "min_domains": partial(PartitionStates.distinct, tier=tier),
            "max_domains": partial(PartitionStates.widest, tier=tier),
            "skew": partial(PartitionStates.skew, tier=tier, eligible=eligible, rule=scope.rule),
        }
        # in 32 bits "unbound" would wrap to a limit of 0
        amount = np.where(bound, binding.amount.astype(np.int64), UNBOUND)
        check.hold(binding.violation, binding.tier, measures[binding.kind], amount, tier)


def check_terms(check: TrajectoryCheck) -> None:
    """Find states with replicas on excluded nodes, or too few on wanted ones."""
    cluster = check.states.cluster
    scope = partition_scope(cluster)
    for q, demands in enumerate(scope.demands):
        mine = scope.rule == q
        if not mine[check.trajectory.partition[check.trajectory.initial]].any():
            continue
        # each rule is kept or broken by itself, whatever another one excludes
        for rule in demands.written:
            for kind, voters in REQUIREMENTS.items():
                texts = getattr(rule, kind)
                if texts:
                    out = ~nodes_that_meet(cluster, texts)
                    of: CountedReplicas = "voting" if voters else "present"
                    measure = partial(PartitionStates.inside, mask=out, of=of)
                    check.hold(kind, "", measure, np.where(mine, 0, UNBOUND))
        for term in demands.counted:
            mask = nodes_of(cluster, term)
            of = "voting" if term.voters else "serving"
            measure = partial(PartitionStates.inside, mask=mask, of=of)
            least = np.where(mine & scope.wanted, term.least, UNBOUND)
            check.hold(term.kind, term.text, measure, least)


CELLS = 2_000_000  # entries of a table of counts, events by domains, at a time


@dataclass(frozen=True, eq=False)
class Flow(Columns):
    """Replicas that come to nodes and leave them: step, rank and replica, node, and +1 or -1."""

    step: Ints64
    rank: Ints64
    replica: Ints64
    node: Ints64
    sign: Ints64


def binds_groups(cluster: Cluster) -> bool:
    """Whether anything binds groups as a whole."""
    return bool((cluster.partitions.group_rule >= 0).any() or len(cluster.depends))


def check_groups(
    found: FoundBreaches, serving: Flow, present: Flow, voting: Flow, target: Placement | None
) -> None:
    """Find events after which a group breaks a hard rule that both ends keep."""
    cluster = found.cluster
    ends = [cluster.placement] if target is None else [cluster.placement, target]
    if (cluster.partitions.group_rule >= 0).any():
        scope = group_scope(cluster)
        for binding in scope.bindings:
            if binding.hard:
                _check_binding(found, binding, serving, present, ends)
        for q, demands in enumerate(scope.demands):
            mine = (scope.rule == q) & scope.wanted
            for term in demands.counted:
                _check_term(found, term, mine, voting if term.voters else serving, ends)
    if len(cluster.depends):
        _check_depends(found, serving, ends)


def flow_of(cluster: Cluster, trajectory: Trajectory, holds: Flags, shown: Rows) -> Flow:
    """Return where columns begin to hold something, and where they cease to, (W, n)."""
    # an event that is not seen by itself counts with the state ``shown (n,)`` for it
    parts = []
    # a step that names one column twice changes it once
    once = np.where(trajectory.joined == trajectory.vacated, -1, trajectory.joined)
    for column in (once, trajectory.vacated):
        event = np.flatnonzero(column >= 0)
        at, col = trajectory.at[event], column[event]
        sign = holds[col, at].astype(np.int64) - holds[col, at - 1]
        event = np.flatnonzero(sign)
        at, col = at[event], col[event]
        replica = cluster.placement.first[trajectory.partition[at]] + trajectory.slot[col, at]
        node = trajectory.node[col, at].astype(np.int64)
        seen = shown[at]
        parts.append(Flow(trajectory.step[seen], trajectory.rank[seen], replica, node, sign[event]))
    return joined_flows(parts)


def joined_flows(parts: list[Flow]) -> Flow:
    """Return all of some flows, in the order of ranks."""
    flow = Flow.joined(parts)
    return flow.take(np.argsort(flow.rank, kind="stable"))


def _exchanged(found: FoundBreaches, serving: Flow) -> Flow:
    """Let a replica that is promoted elsewhere cease to serve at that instant."""
    by_replica = np.lexsort((serving.rank, serving.replica))
    flow = serving.take(by_replica)
    kind = found.timeline.steps.kind[flow.step]
    follows = np.zeros(len(kind), bool)
    follows[1:] = (
        (flow.replica[1:] == flow.replica[:-1])
        & (kind[1:] == StepKind.DEMOTE) & (kind[:-1] == StepKind.PROMOTE)
    )  # fmt: skip
    at = np.flatnonzero(follows)
    rank, step = flow.rank.copy(), flow.step.copy()
    rank[at], step[at] = flow.rank[at - 1], flow.step[at - 1]
    moved = Flow(step, rank, flow.replica, flow.node, flow.sign)
    return moved.take(np.argsort(rank, kind="stable"))


def _once_per_domain(cluster: Cluster, flow: Flow, domain: Ints32, domains: int) -> Flow:
    """Keep where a replica enters a domain and leaves it, not where it moves within."""
    where = domain[flow.node].astype(np.int64)
    inside = np.flatnonzero(where >= 0)
    flow, where = flow.take(inside), where[inside]
    key = flow.replica * domains + where
    order = np.lexsort((flow.rank, key))
    flow, key = flow.take(order), key[order]
    home = np.append(domain, np.int32(-1))[cluster.placement.node[flow.replica]]
    total = _running(key, flow.sign, (home == where[order]).astype(np.int64))
    before = total - flow.sign
    kept = flow.take(np.flatnonzero((total > 0) != (before > 0)))
    return kept.take(np.argsort(kept.rank, kind="stable"))


def _running(key: Ints64, change: Ints64, begin: Ints64) -> Ints64:
    """Add up the changes of equal keys, which lie together, from what each begins with."""
    opens = np.flatnonzero(np.diff(key, prepend=-1) != 0)
    length = np.diff(np.append(opens, len(key)))
    total = np.cumsum(change)
    base = begin[opens] - (total[opens] - change[opens])
    running: Ints64 = total + np.repeat(base, length)
    return running


def _lasts(key: Ints64, rank: Ints64) -> Flags:
    """Return which events are the last of their key at their moment."""
    last = np.ones(len(key), bool)
    last[:-1] = (key[1:] != key[:-1]) | ((rank[1:] >> 1) != (rank[:-1] >> 1))
    return last


def _living_domains(cluster: Cluster, tier: int) -> Ints32:
    """Return the domain of each node, (N,); -1 for none, and of nodes that are dead."""
    domain = cluster.topology.domain_with_nodes[tier]
    return np.where(cluster.nodes.serves, domain, np.int32(-1))


def _counts(cluster: Cluster, placement: Placement, domain: Ints32, domains: int) -> Ints64:
    """Count the replicas of each group in each domain, (G, M)."""
    groups = len(cluster.partitions.group_names)
    where = np.append(domain, np.int32(-1))[placement.node]
    inside = np.flatnonzero(where >= 0)
    group = cluster.partitions.group[placement.owner[inside]].astype(np.int64)
    key = group * domains + where[inside]
    counts: Ints64 = np.bincount(key, minlength=groups * domains).reshape(groups, domains)
    return counts


def _check_binding(
    found: FoundBreaches, binding: Binding, serving: Flow, present: Flow, ends: list[Placement]
) -> None:
    """Check one kind of limit on one tier, for all groups."""
    cluster = found.cluster
    tier = cluster.topology.tier_index(binding.tier)
    domains = int(cluster.topology.domain_count[tier])
    domain = _living_domains(cluster, tier)
    scope = group_scope(cluster)
    amount = binding.amount.astype(np.int64)
    bound = amount != NONE
    if binding.kind == "min_domains":
        bound &= scope.wanted
    tables = [_counts(cluster, end, domain, domains) for end in ends]
    eligible = eligible_domains(cluster, scope, tier)[scope.rule]
    sign = -1 if IS_MAXIMUM[binding.kind] else 1
    for table in tables:
        bound &= sign * _value(binding.kind, table, eligible) >= sign * amount
    if binding.kind == "spread":
        flow = _once_per_domain(cluster, present, domain, domains)
    else:
        flow = serving if sign > 0 else _exchanged(found, serving)
    owner = _owner(cluster, flow)
    where = domain[flow.node].astype(np.int64)
    mine = np.flatnonzero(bound[owner] & (where >= 0))
    flow, owner, where = flow.take(mine), owner[mine], where[mine]
    if binding.kind == "skew":
        for part in _by_group(owner):
            _check_skew(found, binding, flow.take(part), owner[part], where[part], tables[0],
                        eligible, tier)  # fmt: skip
        return
    key = owner * domains + where
    order = np.lexsort((flow.rank, key))
    flow, key = flow.take(order), key[order]
    total = _running(key, flow.sign, tables[0].reshape(-1)[key])
    group = key // domains
    last = _lasts(key, flow.rank)
    flow, key, total, group = flow.take(np.flatnonzero(last)), key[last], total[last], group[last]
    before = np.where(np.diff(key, prepend=-1) == 0, np.roll(total, 1), tables[0].reshape(-1)[key])
    if binding.kind == "spread":
        _tell(found, binding.violation, binding.tier, flow, group, -total, -amount[group], -before,
              tier, key % domains)  # fmt: skip
        return
    changes = (total > 0).astype(np.int64) - (before > 0)
    _check_total(found, binding.violation, binding.tier, flow, group, changes,
                 (tables[0] > 0).sum(1), amount, sign, tier)  # fmt: skip


def _check_total(
    found: FoundBreaches,
    kind: str,
    of: str,
    flow: Flow,
    group: Ints64,
    changes: Ints64,
    begin: Ints64,
    amount: Ints64,
    sign: int,
    tier: int,
) -> None:
    """Check a number of each group that events change."""
    order = np.lexsort((flow.rank, group))
    flow, group = flow.take(order), group[order]
    total = _running(group, changes[order], begin[group])
    last = np.flatnonzero(_lasts(group, flow.rank))
    flow, group, total = flow.take(last), group[last], total[last]
    before = np.where(np.diff(group, prepend=-1) == 0, np.roll(total, 1), begin[group])
    _tell(found, kind, of, flow, group, sign * total, sign * amount[group], sign * before, tier)


def _tell(
    found: FoundBreaches,
    kind: str,
    of: str,
    flow: Flow,
    group: Ints64,
    value: Ints64,
    least: Ints64,
    before: Ints64,
    tier: int,
    domain: Ints64 | int = -1,
) -> None:
    """Note the events that leave less than the least, and less than before."""
    bad = np.flatnonzero((value < least) & (value < before))
    domain = np.broadcast_to(domain, len(value))
    found.breach(kind, flow.step[bad], flow.rank[bad], (least - value)[bad], group=group[bad],
                 tier=tier, domain=domain[bad])  # fmt: skip
    sign = -1 if IS_MAXIMUM[kind] else 1
    found.tight(kind, f"{of} of groups", least - value, sign * value, sign * least, flow.step,
                flow.rank, group=group, tier=tier, domain=domain)  # fmt: skip


def _owner(cluster: Cluster, flow: Flow) -> Ints64:
    """Return the group of each replica that comes or leaves."""
    partition = np.searchsorted(cluster.placement.first, flow.replica, side="right") - 1
    return cluster.partitions.group[partition].astype(np.int64)


def _value(kind: LimitKind, table: Ints64, eligible: Flags) -> Ints64:
    """Return what a kind of limit asks of counts in domains, (G, M)."""
    match kind:
        case "spread":
            return np.asarray(table.max(1, initial=0))
        case "min_domains" | "max_domains":
            return np.asarray((table > 0).sum(1))
        case "skew":
            most = table.max(1, initial=0)
            none = np.iinfo(np.int64).max
            least = np.where(eligible, table, most[:, None]).min(1, initial=none)
            return np.where(eligible.any(1), most - least, 0)
    assert_never(kind)


def _by_group(owner: Ints64) -> Iterator[Rows]:
    """Yield the events of one group after another."""
    order = np.argsort(owner, kind="stable")
    opens = np.flatnonzero(np.diff(owner[order], prepend=-1) != 0)
    yield from np.split(order, opens[1:]) if len(order) else ()


def _check_skew(
    found: FoundBreaches,
    binding: Binding,
    flow: Flow,
    owner: Ints64,
    where: Ints64,
    table: Ints64,
    eligible: Flags,
    tier: int,
) -> None:
    """Check the skew of one group, some events at a time."""
    group = int(owner[0])
    now = table[group].copy()
    seen = _value("skew", now[None], eligible[group][None])[0]
    size = max(CELLS // max(len(now), 1), 1)
    opens = np.flatnonzero(np.append(True, _lasts(owner, flow.rank)[:-1]))
    for begin in range(0, len(opens), size):
        stop = opens[begin + size] if begin + size < len(opens) else len(owner)
        these = np.arange(opens[begin], stop)
        change = np.zeros((len(these), len(now)), np.int64)
        change[np.arange(len(these)), where[these]] = flow.sign[these]
        counts = now + np.cumsum(change, axis=0)
        now = counts[-1]
        last = np.flatnonzero(_lasts(owner[these], flow.rank[these]))
        value = _value("skew", counts[last], np.broadcast_to(eligible[group], counts[last].shape))
        before = np.concatenate([[seen], value[:-1]])
        seen = value[-1]
        amount = np.full(len(last), binding.amount[group], np.int64)
        _tell(found, binding.violation, binding.tier, flow.take(these[last]), owner[these][last],
              -value, -amount, -before, tier)  # fmt: skip


def _check_term(
    found: FoundBreaches, term: Term, mine: Flags, held: Flow, ends: list[Placement]
) -> None:
    """Check that some groups keep replicas, or voters, on the nodes of an expression."""
    cluster = found.cluster
    if not mine.any():
        return
    living = cluster.nodes.serves
    mask = np.append(nodes_of(cluster, term) & living, False)
    totals = []
    for end in ends:
        inside = mask[end.node]
        if term.voters:
            inside = inside & (end.role == Role.VOTER)
        group = cluster.partitions.group[end.owner[inside]]
        totals.append(np.bincount(group, minlength=len(mine)))
    kept = mine & np.logical_and.reduce([total >= term.least for total in totals])
    owner = _owner(cluster, held)
    which = np.flatnonzero(mask[held.node] & kept[owner])
    flow = held.take(which)
    amount = np.full(len(mine), term.least, np.int64)
    _check_total(
        found, term.kind, term.text, flow, owner[which], flow.sign, totals[0], amount, 1, -1
    )


def _check_depends(found: FoundBreaches, serving: Flow, ends: list[Placement]) -> None:
    """Find domains that are left with a replica of a group, but with none of one that it needs."""
    cluster = found.cluster
    owner = _owner(cluster, serving)
    for tier in np.unique(cluster.depends[:, 2]).tolist():
        pairs = np.unique(cluster.depends[cluster.depends[:, 2] == tier, :2], axis=0)
        domains = int(cluster.topology.domain_count[tier])
        domain = _living_domains(cluster, tier)
        tables = [_counts(cluster, end, domain, domains) for end in ends]
        where = domain[serving.node].astype(np.int64)
        for one, other in pairs.tolist():
            kept = np.logical_and.reduce(
                [(table[one] == 0) | (table[other] > 0) for table in tables]
            )
            mine = ((owner == one) | (owner == other)) & (where >= 0)
            which = np.flatnonzero(mine)
            which = which[kept[where[which]]]
            order = which[np.lexsort((serving.rank[which], where[which]))]
            flow, key = serving.take(order), where[order]
            has = _running(key, flow.sign * (owner[order] == one), tables[0][one][key])
            needs = _running(key, flow.sign * (owner[order] == other), tables[0][other][key])
            lacks = (has > 0) & (needs <= 0)
            last = np.flatnonzero(_lasts(key, flow.rank))
            lacks, key, flow = lacks[last], key[last], flow.take(last)
            lacked = np.where(np.diff(key, prepend=-1) == 0, np.roll(lacks, 1), False)
            bad = np.flatnonzero(lacks & ~lacked)
            found.breach("depends", flow.step[bad], flow.rank[bad], group=one, tier=tier,
                         domain=key[bad])  # fmt: skip
