"""Bind rules to partitions and groups: limits and terms by class, as arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import Flags, Ints32, Reals, Rows
from evenkeel.model.rules import COUNTS, REQUIREMENTS, Limit, LimitKind, Rule, Term, nodes_meeting
from evenkeel.model.runtime.memoize import memoize

NONE = -1  # amount of a limit that does not bind


@dataclass(frozen=True)
class Demands:
    """What rules demand of one partition, or of one group as a whole."""

    terms: tuple[Term, ...] = ()  # where replicas must be; requirements of all of them first
    lead: tuple[str, ...] = ()  # where the leader should be, first choice first
    limits: tuple[Limit, ...] = ()  # how replicas may stand in the domains of a tier
    # the rules that ask it of each replica: a partition's own, and its group's
    written: tuple[Rule, ...] = ()

    @property
    def counted(self) -> list[Term]:
        """Terms that ask for a number of replicas."""
        return [term for term in self.terms if not term.for_all]

    def required(self, *, voters: bool) -> list[str]:
        """Return the expressions that the node of every replica, or of every voter, must meet."""
        return [one.text for one in self.terms if one.for_all and one.voters == voters]


@dataclass(frozen=True, eq=False)
class Scope:
    """Demands on E members, which are partitions or groups, in Q classes. N nodes."""

    column: str  # "partition" or "group"
    demands: tuple[Demands, ...]  # those of each class
    rule: Ints32  # (E,) class of each member
    wanted: Flags  # (E,) members of which at least one replica is wanted
    open: Flags  # (Q, N) nodes that meet all that each class requires of every replica

    @cached_property
    def bindings(self) -> "tuple[Binding, ...]":
        """What binds the members, one kind of limit on one tier at a time."""
        amounts: dict[tuple[str, LimitKind, bool], Ints32] = {}
        weights: dict[tuple[str, LimitKind, bool], Reals] = {}
        for q, demands in enumerate(self.demands):
            for limit in demands.limits:
                key = (limit.tier, limit.kind, limit.hard)
                none = np.full(len(self.demands), NONE, np.int32)
                amounts.setdefault(key, none)[q] = limit.amount
                weights.setdefault(key, np.zeros(len(self.demands)))[q] = limit.weight
        return tuple(
            Binding(*key, amount.take(self.rule), self.rule, weights[key])
            for key, amount in amounts.items()
        )

    @property
    def spreads(self) -> "list[Binding]":
        """Hard limits on the replicas in a domain."""
        return [one for one in self.bindings if one.kind == "spread" and one.hard]


@dataclass(frozen=True, eq=False)
class Binding:
    """One kind of limit on one tier, for all members of a scope."""

    tier: str  # tier, or "node"
    kind: LimitKind  # as in ``Limit``
    hard: bool  # as in ``Limit``
    # (E,) the number that each member is held to; -1 where it is not bound
    amount: Ints32
    rule: Ints32  # (E,) class of each member
    # (Q,) what each unit beyond it costs a member of each class where it is soft; 0 for no limit
    weight_of: Reals

    @property
    def weight(self) -> Reals:
        """What each unit beyond it costs each member, (E,) float64; 0 where it is not bound."""
        return self.weight_of.take(self.rule)

    @property
    def violation(self) -> str:
        """The kind of violation that breaking it is."""
        kind = "same_node" if (self.tier, self.kind) == ("node", "spread") else self.kind
        return kind if self.hard else f"soft_{kind}"


def partition_scope(cluster: Cluster) -> Scope:
    """Return the rules that bind each partition: its own, and the terms of its group's for each."""
    return memoize(
        cluster.partitions,
        "audited partition scope",
        lambda: _of_partitions(cluster),
        *read_from(cluster),
    )


def scope_without_forbidden(cluster: Cluster, most: int) -> Scope:
    """Return the scope with nodes closed to partitions forbidden there; each set is a class."""
    scope, forbidden = partition_scope(cluster), cluster.forbidden
    if not len(forbidden):
        return scope
    # the scope itself where that is more than ``most`` classes
    return memoize(scope, f"without forbidden {most}", lambda: _narrowed(scope, forbidden, most),
                   forbidden)  # fmt: skip


def _narrowed(scope: Scope, forbidden: Ints32, most: int) -> Scope:
    """Close nodes to the partitions of forbidden pairs, (F, 2)."""
    banned: dict[int, list[int]] = {}
    for p, n in forbidden.tolist():
        banned.setdefault(p, []).append(n)
    known: dict[tuple[int, ...], int] = {}
    rule = scope.rule.copy()
    for p, nodes in banned.items():
        key = int(scope.rule[p]), *sorted(nodes)
        rule[p] = known.setdefault(key, len(scope.open) + len(known))
    if len(scope.open) + len(known) > most:
        return scope
    of = [*range(len(scope.open)), *(key[0] for key in known)]
    is_open = scope.open[of]
    for q, (_, *nodes) in enumerate(known, len(scope.open)):
        is_open[q, nodes] = False
    demands = tuple(scope.demands[q] for q in of)
    return replace(scope, demands=demands, rule=rule, open=is_open)


def group_scope(cluster: Cluster) -> Scope:
    """Return the rules that bind each group as a whole."""
    return memoize(
        cluster.partitions, "audited group scope", lambda: _of_groups(cluster), *read_from(cluster)
    )


def read_from(cluster: Cluster) -> tuple[object, ...]:
    """Return all that demands are read from; the state of the nodes is not among it."""
    nodes = cluster.nodes
    return cluster.rules, cluster.topology, nodes.names, nodes.tags, nodes.attributes


def nodes_that_meet(cluster: Cluster, texts: Iterable[str]) -> Flags:
    """Return the nodes on which every condition of every expression holds, (N,)."""
    return nodes_meeting(texts, cluster.nodes, cluster.topology)


def nodes_of(cluster: Cluster, term: Term) -> Flags:
    """Return the nodes on which a term wants replicas, (N,)."""
    return nodes_that_meet(cluster, [term.text])


def lead_ranks(cluster: Cluster, lead: Sequence[str]) -> Rows:
    """Return the first of some choices that each node meets, (N,); their number for none."""
    rank = np.full(len(cluster.nodes), len(lead))
    for choice, text in reversed([*enumerate(lead)]):
        rank[nodes_that_meet(cluster, [text])] = choice
    return rank


def eligible_domains(cluster: Cluster, scope: Scope, tier: int) -> Flags:
    """Return the domains of a tier that a skew of each class counts, (Q, M)."""
    domain = cluster.topology.domain_with_nodes[tier]
    usable = cluster.nodes.may_hold & (domain >= 0)
    eligible = np.zeros((len(scope.open), int(cluster.topology.domain_count[tier])), bool)
    for q, is_open in enumerate(scope.open):
        eligible[q, domain[is_open & usable]] = True
    return eligible


def _of_partitions(cluster: Cluster) -> Scope:
    parts = cluster.partitions
    shared = parts.group_rule.take(parts.group) if (parts.group_rule >= 0).any() else None
    pair = parts.rule.astype(np.int64)
    if shared is not None:
        # both count from -1, for no rule
        pair = (pair + 1) * (len(cluster.rules) + 1) + shared
    if len(pair) and pair.min() == pair.max():
        first, rule = np.zeros(1, np.intp), np.zeros(len(pair), np.int32)
    else:
        _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
        rule = inverse.astype(np.int32)
    rules = [*cluster.rules, Rule()]  # -1 is the last
    demands = [
        _demands(rules[parts.rule[p]], None if shared is None else rules[shared[p]])
        for p in first.tolist()
    ] or [_demands(Rule(), None)]
    return _scope(cluster, "partition", demands, rule, parts.replicas > 0)


def _of_groups(cluster: Cluster) -> Scope:
    parts = cluster.partitions
    groups = len(parts.group_names)
    demands = [
        Demands(terms=tuple(rule.terms()), limits=tuple(rule.limits(per_node=False)))
        for rule in (*cluster.rules, Rule())
    ]
    rule = np.where(parts.group_rule < 0, len(cluster.rules), parts.group_rule)
    wanted = np.bincount(parts.group, parts.replicas > 0, groups) > 0
    return _scope(cluster, "group", demands, rule, wanted)


def _demands(own: Rule, shared: Rule | None) -> Demands:
    """Return the demands on a partition of its own rule and of its group's, if any."""
    shared = shared or Rule()
    terms = [*own.terms(), *(term for term in shared.terms() if term.for_all)]
    order = [*REQUIREMENTS, *COUNTS]
    return Demands(
        terms=tuple(sorted(terms, key=lambda term: order.index(term.kind))),
        lead=tuple(own.lead or shared.lead),
        limits=tuple(own.limits()),
        written=(own, shared),
    )


def _scope(
    cluster: Cluster, column: str, demands: list[Demands], rule: Ints32, wanted: Flags
) -> Scope:
    is_open = np.array([nodes_that_meet(cluster, one.required(voters=False)) for one in demands])
    return Scope(column, tuple(demands), rule, wanted, is_open)
