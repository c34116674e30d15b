"""Find regressions: rules that a placement breaks and the initial placement did not.

Judged one by one, for each partition, group, node and dimension: sums that net out hide nothing. A
rule that only a dead replica satisfied did not hold. A partition short of replicas or of a leader
is judged by live ones, since a replica that is given up and one on a dead node are equally lost.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import AND, KINDS, TOLERANCE, Audit, Violations, audit
from evenkeel.measure.loads import absent_keepers, has_leaders
from evenkeel.measure.rows import distinct_rows
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints64, Reals
from evenkeel.model.runtime.memoize import memoize

# kinds that are judged by the live replicas and leaders instead
BY_LIFE = {"unassigned", "min_active", "leaderless", "leader"}

# a node that evicts its excess does not count as newly too full
ONE_KIND = {"transient": "capacity"}

LED, UNFIT, LEADERLESS = 0, 1, 2  # how well a partition is led


@dataclass(frozen=True, eq=False)
class Regressions:
    """What became worse."""

    counts: dict[str, int]  # how many partitions, groups, nodes or domains are worse, by kind
    partitions: Flags  # (P,) partitions whose changes have to do with it

    @property
    def count(self) -> int:
        """How many things are worse."""
        return sum(self.counts.values())

    def __bool__(self) -> bool:
        return bool(self.counts)


def regressions(
    cluster: Cluster,
    after: Placement,
    audited: Audit,
    baselines: Callable[[], list[Audit]] | None = None,
) -> Regressions:
    """Compare an audited placement with the one that came in, rule by rule and place by place."""
    # ``baselines`` returns audits to compare with, by default those of `baselines_of`, and one of
    # the initial placement without the dead replicas that have left
    found = Regressions({}, np.zeros(len(after), bool))
    before = cluster.placement
    if after is before:
        return found
    if audited.ok and not absent_keepers(cluster).any():
        return found  # all that is wanted has a node, and every node that keeps something serves
    changed = _changed(before, after)
    if not changed.any():
        return found
    for kind, worse in (
        ("live replicas", _lost(cluster, after)),
        ("leader", _worse_led(cluster, after)),
    ):
        if worse.any():
            found.counts[kind] = int(worse.sum())
            found.partitions[:] |= worse
    hard = [one for one in audited.found if KINDS[one.kind].hard and one.kind not in BY_LIFE]
    if not hard:
        return found
    found_before = _baselines(cluster, after) if baselines is None else baselines()
    for kind, worse_rows in _worse_places(cluster, hard, found_before):
        found.counts[kind] = found.counts.get(kind, 0) + len(worse_rows)
        found.partitions[:] |= changed & _concerned(cluster, after, worse_rows)
    if "capacity" in found.counts:
        found.partitions[:] |= changed & _leaving(cluster, audited)
    return found


def breaks_more(cluster: Cluster, before: Audit, after: Audit, kinds: frozenset[str]) -> bool:
    """Return whether rules of some kinds are broken in a place, or by an amount, that is new.

    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 2, load=[[2.0]] * 2, placement=[[0], [-1]])
    >>> found = [audit(c, c.placement.replaced(np.array(nodes, np.int32), c.placement.leader))
    ...          for nodes in ([0, -1], [1, -1], [0, 0])]
    >>> [breaks_more(c, found[0], after, frozenset({"capacity"})) for after in found]
    [False, True, True]
    """
    # the two audited placements need not have the same slots
    broken = [one for one in after.found if one.kind in kinds]
    return any(True for _ in _worse_places(cluster, broken, [before]))


def _worse_places(
    cluster: Cluster, found: list[Violations], baselines: list[Audit]
) -> Iterator[tuple[str, Ints64]]:
    """Go through the rules that are broken; give the places where more is than in any baseline."""
    for rule in dict.fromkeys(rule for one in found for rule in _rules(one)):
        worse = _Rows.of(rule, found).worse_than(
            [_Rows.of(rule, each.found) for each in baselines], cluster
        )
        if len(worse):
            yield rule[0], worse


class _Rows(NamedTuple):
    """Where a kind of rule is broken, a row each, and how much."""

    where: Ints64
    amount: Reals

    @classmethod
    def of(cls, rule: tuple[str, str], found: list[Violations] | tuple[Violations, ...]) -> "_Rows":
        """Gather the rows of a rule; of a partition or a group, all nodes and domains are one."""
        tables, amounts = [np.zeros((0, len(PLACES)), np.int64)], [np.zeros(0)]
        for one in found:
            if rule not in _rules(one):
                continue
            table = np.column_stack([getattr(one, name) for name in PLACES]).astype(np.int64)
            member = (one.partition >= 0) | (one.group >= 0)
            for name in ("node", "domain"):
                table[member, PLACES.index(name)] = -1
            tables.append(table)
            amounts.append(one.amount)
        return cls(np.concatenate(tables), np.concatenate(amounts))

    def worse_than(self, baselines: "list[_Rows]", cluster: Cluster) -> Ints64:
        """Return the places where more is broken than in any of the baselines."""
        every = [self, *baselines]
        places, index = distinct_rows(np.concatenate([each.where for each in every]))
        ends = np.cumsum([len(each.where) for each in every])[:-1]
        now, *then = [
            np.bincount(at, each.amount, len(places))
            for at, each in zip(np.split(index, ends), every, strict=True)
        ]
        was = np.maximum.reduce(then)
        drift = TOLERANCE * (now + _capacity(cluster, places))
        worse: Ints64 = places[(now > 0.0) & ((was == 0.0) | (now > was + drift))]
        return worse


# columns that identify where a rule is broken
PLACES = ("partition", "group", "node", "tier", "domain", "dimension")


def _rules(found: Violations) -> list[tuple[str, str]]:
    """Return the kind of a rule with each expression that fails: what fails less is not worse."""
    kind = ONE_KIND.get(found.kind, found.kind)
    return [(kind, text) for text in found.expression.split(AND)]


def _capacity(cluster: Cluster, places: Ints64) -> Reals:
    """Return the capacity at some places, of which sums of loads may drift; 0 of what has none."""
    found = np.zeros(len(places))
    _, _, node, tier, domain, dimension = places.T
    of_node = (dimension >= 0) & (node >= 0)
    found[of_node] = cluster.nodes.capacity[node[of_node], dimension[of_node]]
    of_domain = (dimension >= 0) & (node < 0)
    for one in np.unique(tier[of_domain]).tolist():
        at = of_domain & (tier == one)
        capacity = cluster.topology.tier_capacity[cluster.topology.tiers[one]]
        found[at] = capacity[domain[at], dimension[at]]
    return found


def baselines_of(cluster: Cluster) -> list[Audit]:
    """Audit the initial placement, and the same without its dead replicas, once."""

    def audited() -> list[Audit]:
        before, dead = cluster.placement, _dead(cluster)
        return [audit(cluster, before), *([_audit_without(cluster, dead)] if dead.any() else [])]

    return memoize(cluster, "baselines", audited)


def _baselines(cluster: Cluster, after: Placement) -> list[Audit]:
    """Return `baselines_of` a cluster; if only some dead replicas left, one without them."""
    # what a dead replica that stays needs of another dead one did not hold before either
    dead = _dead(cluster)
    left = dead & (after.node != cluster.placement.node)
    more = [_audit_without(cluster, left)] if left.any() and (dead & ~left).any() else []
    return [*baselines_of(cluster), *more]


def _dead(cluster: Cluster) -> Flags:
    """Return which replicas of the initial placement stand on dead nodes, (K,) bool."""
    node = cluster.placement.node
    return np.asarray((node >= 0) & ~np.append(cluster.nodes.serves, False)[node])


def _audit_without(cluster: Cluster, which: Flags) -> Audit:
    """Audit the initial placement without some of its replicas (K,)."""
    before = cluster.placement
    node = np.where(which, np.int32(-1), before.node)
    return audit(cluster, before.replaced(node, before.leader))


def spread_excess(cluster: Cluster, audited: Audit) -> Ints64:
    """Count the replicas beyond hard spread limits, per tier and partition, (tiers, P)."""
    found = np.zeros((len(cluster.topology.domain_with_nodes), len(cluster.partitions)), np.int64)
    for one in audited.found:
        if one.kind == "spread":
            np.add.at(found, (one.tier, one.partition), one.amount.astype(np.int64))
    return found


def spread_excess_before(cluster: Cluster) -> Ints64:
    """Count how many replicas of each partition may stand beyond its limits: as many as came so."""

    def counted() -> Ints64:
        found = [spread_excess(cluster, audited) for audited in baselines_of(cluster)]
        excess: Ints64 = np.maximum.reduce(found)
        return excess

    return memoize(cluster, "spread excess before", counted)


def _lost(cluster: Cluster, after: Placement) -> Flags:
    """Return which partitions have fewer live replicas than they had, and than are wanted."""
    serves, wanted = cluster.nodes.serves, cluster.partitions.replicas
    was = PlacementCounts.of(cluster, cluster.placement).per_partition(serves)
    now = PlacementCounts.of(cluster, after).per_partition(serves)
    return np.asarray(now < np.minimum(was, wanted))


def _worse_led(cluster: Cluster, after: Placement) -> Flags:
    """Return which partitions have lost their leader, or are newly led by one that may not lead."""
    if not has_leaders(cluster):
        return np.zeros(len(after), bool)
    wanted = cluster.partitions.replicas > 0
    was, now = _led(cluster, cluster.placement), _led(cluster, after)
    unfit = (was == LEADERLESS) & (now == UNFIT)
    return np.asarray(wanted & ((now > was) | unfit))


def _led(cluster: Cluster, placement: Placement) -> NDArray[np.int8]:
    """Return the rank of each partition's leader; a dead leader counts as none."""
    at = placement.leader_node
    led = np.full(len(at), LED, np.int8)
    led[~np.append(cluster.nodes.may_lead, False)[at]] = UNFIT
    voter = placement.role[np.maximum(placement.leader_replica, 0)] == Role.VOTER
    led[~voter] = UNFIT
    led[~np.append(cluster.nodes.serves, False)[at]] = LEADERLESS
    return led


def _changed(before: Placement, after: Placement) -> Flags:
    """Return which partitions stand, or are led, elsewhere."""
    changed: Flags = before.leader != after.leader
    changed[after.owner[before.node != after.node]] = True
    return changed


def _concerned(cluster: Cluster, after: Placement, worse: Ints64) -> Flags:
    """Return which partitions have to do with the places where something is worse."""
    column = {name: worse[:, at] for at, name in enumerate(PLACES)}
    partition, group = column["partition"], column["group"]
    concerned = np.zeros(len(after), bool)
    concerned[partition[partition >= 0]] = True
    groups = np.zeros(len(cluster.partitions.group_names), bool)
    groups[group[group >= 0]] = True
    for one, needed in cluster.depends[:, :2].tolist():
        groups[needed] |= groups[one]
    concerned |= groups[cluster.partitions.group]
    nodes = np.zeros(len(cluster.nodes) + 1, bool)
    nodes[column["node"][column["node"] >= 0]] = True
    alone = (partition < 0) & (group < 0) & (column["domain"] >= 0)
    for tier, domain in zip(column[TIER][alone], column["domain"][alone], strict=True):
        nodes[:-1] |= cluster.topology.domain_with_nodes[tier] == domain
    concerned[after.owner[nodes[after.node]]] = True
    return concerned


def _leaving(cluster: Cluster, audited: Audit) -> Flags:
    """Return which partitions stood on nodes that are too full only until some have left."""
    before = cluster.placement
    nodes = np.zeros(len(cluster.nodes) + 1, bool)
    for one in audited.found:
        if one.kind == "transient":
            nodes[one.node] = True
    concerned = np.zeros(len(before), bool)
    concerned[before.owner[nodes[before.node]]] = True
    return concerned


TIER = "tier"  # the column of ``Violations`` that names a tier
