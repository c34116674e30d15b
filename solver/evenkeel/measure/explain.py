"""Explain why a replica is on its node: what blocks each other node, or how full it would be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, assert_never

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import Scope, eligible_domains, group_scope, nodes_of, partition_scope
from evenkeel.measure.spending import Spent
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints64, Reals, read_only
from evenkeel.model.runtime.memoize import memoize
from evenkeel.model.runtime.printable import counted, printable


@dataclass(frozen=True)
class NodeVerdict:
    """What speaks for or against one node.

    Parameters
    ----------
    node : str
        Its name.
    blocked_by : str
        The first rule that forbids it; empty if none does.
    utilisation : float
        Fullest dimension with the replica on it, as a share of capacity.
    dimension : str
        That dimension.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> best = result.explain("p0").replicas[0].nodes[0]
    >>> best.node, best.blocked_by, best.utilisation
    ('n1', '', 0.5)
    """

    node: str
    blocked_by: str
    utilisation: float
    dimension: str


@dataclass(frozen=True)
class ReplicaExplanation:
    """One replica of a partition: where it is, why there, and what the others would have been.

    Parameters
    ----------
    slot : int
        Its slot.
    role : str
        "leader", "voter", "non-voter" or "learner".
    before, now : str or None
        Its nodes; None for none.
    why : str
        One sentence.
    runner_up : NodeVerdict or None
        The best node that it could be on instead.
    nodes : tuple of NodeVerdict
        Every node: those it could be on first, emptiest first.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> [one] = result.explain("p0").replicas
    >>> one.slot, one.before, one.now, len(one.nodes)
    (0, 'n0', 'n1', 2)
    """

    slot: int
    role: str
    before: str | None
    now: str | None
    why: str
    runner_up: NodeVerdict | None
    nodes: tuple[NodeVerdict, ...]


@dataclass(frozen=True)
class Explanation:
    """All replicas of one partition explained.

    Parameters
    ----------
    partition : str
        Its name.
    replicas : tuple of ReplicaExplanation
        One per slot.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> found = result.explain("p0")
    >>> found.partition, len(found.replicas)
    ('p0', 1)
    """

    partition: str
    replicas: tuple[ReplicaExplanation, ...]

    def __str__(self) -> str:
        lines = [self.partition]
        for one in self.replicas:
            lines.append(f"  slot {one.slot} ({one.role}): {one.why}")
            classes: dict[str, list[str]] = {}
            for verdict in one.nodes:
                classes.setdefault(verdict.blocked_by, []).append(verdict.node)
            for reason, nodes in classes.items():
                shown = ", ".join(nodes[:4]) + (", ..." if len(nodes) > 4 else "")
                label = reason or "could hold it, emptiest first"
                lines.append(f"    {len(nodes):>5} {label}: {shown}")
        return "\n".join(map(printable, lines))


# text for nodes that no rule forbids; all replicas together may still not fit there
OPEN = "open to it by itself"


def _closed_to_all(cluster: Cluster) -> Flags:
    """Return the nodes, (N,), that are forbidden to all partitions but those that they hold."""

    def found() -> Flags:
        count, held = len(cluster.nodes), cluster.placement
        there = np.flatnonzero(held.node >= 0)
        own = held.owner[there].astype(np.int64) * count + held.node[there]
        shut = cluster.forbidden[:, 0].astype(np.int64) * count + cluster.forbidden[:, 1]
        pairs = np.bincount(np.union1d(own, shut) % count, minlength=count)
        return read_only(pairs == len(cluster.partitions))

    return memoize(cluster, "closed to all", found)


def blocked_nodes(
    cluster: Cluster,
    placement: Placement,
    node_load: Reals,
    replica: int,
    spent: Spent | None = None,
) -> tuple[NDArray[np.int16], list[str]]:
    """Return for each node the rule that keeps a replica off it while the others stay."""
    # where no rule does, a budget that is ``spent`` may, if the replica is not served where it is
    nodes, topology = cluster.nodes, cluster.topology
    partition = int(placement.owner[replica])
    here = int(placement.node[replica])
    start, end = placement.first[partition], placement.first[partition + 1]
    reasons: list[str] = []
    verdict = np.full(len(nodes), -1, np.int16)

    def mark(bad: Flags, reason: str) -> None:
        hit = bad & (verdict < 0)
        if hit.any():
            verdict[hit] = len(reasons)
            reasons.append(reason)

    stays = np.arange(len(nodes)) == here
    flags = int(cluster.placement.flags[replica])
    keeps = here >= 0 and here == int(cluster.placement.node[replica])
    if flags & Flag.STRANDED:
        mark(~stays, "stranded: no live replica surely has all its data")
    elif flags & Flag.PINNED and keeps:
        mark(~stays, "pinned elsewhere")
    mark(nodes.gone, "gone")
    mark(~nodes.alive, "not alive")
    mark(~nodes.accepts & ~stays, "accepts no replicas")
    mark(~nodes.keeps, "must be emptied")
    banned = cluster.forbidden[cluster.forbidden[:, 0] == partition, 1]
    closed = np.isin(np.arange(len(nodes)), banned)
    mark(closed & _closed_to_all(cluster), "takes no more replicas")
    mark(closed, "this partition may not come there")
    scope = partition_scope(cluster)
    group = int(cluster.partitions.group[partition])
    of_group = cluster.partitions.group[placement.owner] == group
    bound = [
        _Bound(scope, partition, np.arange(start, end), ""),
        _Bound(group_scope(cluster), group, np.flatnonzero(of_group), " of its group"),
    ]
    voter = placement.role[replica] == Role.VOTER
    for term in scope.demands[scope.rule[partition]].terms:
        if term.for_all and (voter or not term.voters):
            mark(~nodes_of(cluster, term), str(term))
    for one in bound:
        _mark_limits(cluster, placement, one, replica, mark, hard=True)
    for one in bound:
        _mark_terms(cluster, placement, one, replica, mark)
    limit_of = nodes.max_replicas
    held = np.bincount(placement.node[placement.node >= 0], minlength=len(nodes))
    mark((limit_of >= 0) & (held - stays >= limit_of), "most replicas per node")
    after = node_load + _own_load(cluster, placement, replica) * ~stays[:, None]
    for d, name in enumerate(cluster.dimensions):
        mark(after[:, d] > nodes.capacity[:, d] * (1 + 1e-11), f"capacity {name}")
    for tier, capacity in topology.tier_capacity.items():
        row = topology.tier_index(tier)
        domain = topology.domain[row]
        total = np.zeros(capacity.shape)
        np.add.at(total, domain[domain >= 0], node_load[domain >= 0])
        own = _own_load(cluster, placement, replica)
        inside = domain == domain[here] if here >= 0 else np.zeros(len(nodes), bool)
        full = np.any(total + own > capacity * (1 + 1e-11), axis=1)
        mark(np.append(full, False)[domain] & ~inside, f"capacity of its {tier}")
    if spent is not None and not np.append(nodes.serves, False)[here]:
        at = cluster.bytes_dimension
        size = float(_own_load(cluster, placement, replica)[at]) if at >= 0 else 0.0
        for reason, closed in spent.closes(cluster, size):
            mark(closed & ~stays, reason)
    for one in bound:  # they give way, so whatever else keeps a replica off is the reason
        _mark_limits(cluster, placement, one, replica, mark, hard=False)
    return verdict, reasons


class _Bound(NamedTuple):
    """A partition or group whose demands bind a replica."""

    scope: Scope
    member: int
    replicas: Ints64  # all that they count
    note: str  # what a reason ends with


def _mark_limits(
    cluster: Cluster,
    placement: Placement,
    bound: _Bound,
    replica: int,
    mark: Callable[[Flags, str], None],
    *,
    hard: bool,
) -> None:
    """Mark nodes in domains where a limit permits no other replica."""
    scope, topology = bound.scope, cluster.topology
    held = placement.node[bound.replicas]
    other_nodes = held[(bound.replicas != replica) & (held >= 0)]
    here = int(placement.node[replica])
    for limit in scope.demands[scope.rule[bound.member]].limits:
        if limit.hard != hard:
            continue
        row = topology.tier_index(limit.tier)
        domain = topology.domain_with_nodes[row]
        taken = domain[other_nodes]
        taken = taken[taken >= 0]
        width = int(topology.domain_count[row])
        count = np.bincount(taken, minlength=width)
        reason = f"{limit.kind} {limit.tier} {limit.amount}{bound.note}{'' if hard else ' (soft)'}"
        at = np.append(count, 0)[domain]  # a node in no domain finds none there
        if limit.kind == "spread":
            mark((domain >= 0) & (at >= limit.amount), reason)
        elif limit.kind == "max_domains":
            mark((at == 0) & ((count > 0).sum() >= limit.amount), reason)
        elif limit.kind == "min_domains":
            reached = (count > 0).sum() + (at == 0)
            missing = int((held < 0).sum()) - int(here < 0)
            mark(reached + missing < limit.amount, reason)
        elif limit.kind == "skew":
            eligible = eligible_domains(cluster, scope, row)[scope.rule[bound.member]]
            least = count[eligible].min() if eligible.any() else 0
            mark(at + 1 - least > limit.amount, reason)
        else:
            assert_never(limit.kind)


def _mark_terms(
    cluster: Cluster,
    placement: Placement,
    bound: _Bound,
    replica: int,
    mark: Callable[[Flags, str], None],
) -> None:
    """Mark nodes outside a mask that still needs this replica inside."""
    voter = placement.role == Role.VOTER
    others = bound.replicas[bound.replicas != replica]
    others = others[placement.node[others] >= 0]
    for term in bound.scope.demands[bound.scope.rule[bound.member]].counted:
        if term.voters and not voter[replica]:
            continue
        mask = nodes_of(cluster, term)
        counted = others[voter[others]] if term.voters else others
        if mask[placement.node[counted]].sum() < term.least:
            mark(~mask, f"{term}{bound.note}")


def _own_load(cluster: Cluster, placement: Placement, replica: int) -> Reals:
    partition = int(placement.owner[replica])
    loads = cluster.partitions.load
    in_role = loads.voter
    if replica == placement.leader_replica[partition]:
        in_role = loads.leader
    elif placement.role[replica] == Role.NON_VOTER:
        in_role = loads.non_voter
    own: Reals = in_role[partition]
    return own


def explain(
    cluster: Cluster,
    placement: Placement,
    node_load: Reals,
    partition: int,
    spent: Spent | None = None,
) -> Explanation:
    """Explain every replica of a partition, node by node."""
    names = cluster.nodes.names
    found = []
    for k in range(int(placement.first[partition]), int(placement.first[partition + 1])):
        verdict, reasons = blocked_nodes(cluster, placement, node_load, k, spent)
        now, before = int(placement.node[k]), int(cluster.placement.node[k])
        stays = np.arange(len(names)) == now
        after = node_load + _own_load(cluster, placement, k) * ~stays[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(after / cluster.nodes.capacity, nan=0.0, posinf=np.inf)
        worst = share.argmax(axis=1) if share.shape[1] else np.zeros(len(names), np.intp)
        fullest = share.max(axis=1, initial=0.0)
        # open nodes first, emptiest first, ties by index; then the closed ones by reason
        order = np.lexsort((np.arange(len(names)), fullest, verdict))
        rows = tuple(
            NodeVerdict(
                names[int(n)],
                reasons[verdict[n]] if verdict[n] >= 0 else "",
                float(fullest[n]),
                cluster.dimensions[worst[n]] if cluster.dimensions else "",
            )
            for n in order
        )
        free = [row for row in rows if not row.blocked_by and (now < 0 or row.node != names[now])]
        runner_up = free[0] if free else None
        found.append(
            ReplicaExplanation(
                slot=k - int(placement.first[partition]),
                role=_role_name(placement, k, partition),
                before=names[before] if before >= 0 else None,
                now=names[now] if now >= 0 else None,
                why=_why(cluster, before, now, verdict, reasons, fullest, runner_up),
                runner_up=runner_up,
                nodes=rows,
            )
        )
    return Explanation(cluster.partitions.names[partition], tuple(found))


def _role_name(placement: Placement, replica: int, partition: int) -> str:
    if replica == placement.leader_replica[partition]:
        return "leader"
    return {Role.VOTER: "voter", Role.NON_VOTER: "non-voter"}.get(
        Role(int(placement.role[replica])), "learner"
    )


def _why(
    cluster: Cluster,
    before: int,
    now: int,
    verdict: NDArray[np.int16],
    reasons: list[str],
    fullest: Reals,
    runner_up: NodeVerdict | None,
) -> str:
    names = cluster.nodes.names
    if now < 0:
        return "has no node: " + _blockers(verdict, reasons)
    share = f"{names[now]} ({fullest[now]:.1%} full)"
    if verdict[now] >= 0:
        reason = reasons[verdict[now]]
        instead = "no other node is open to it"
        if runner_up is not None:
            instead = f"{runner_up.node} is open to it by itself"
        return (
            f"{'stands' if now == before else 'is'} on {share}, which {reason!r} forbids: {instead}"
        )
    other = (
        f"; the runner-up {runner_up.node} would be {runner_up.utilisation:.1%} full"
        if (runner_up)
        else "; no other node is open to it"
    )
    if now == before:
        return f"stays on {share}: nothing asks it to move{other}"
    came = f"from {names[before]}" if before >= 0 else "from nowhere"
    cause = "to level the cluster"
    if before < 0:
        cause = "it had no node"
    elif verdict[before] >= 0:
        cause = f"{names[before]} is forbidden: {reasons[verdict[before]]}"
    return f"moved {came} to {share}: {cause}{other}"


def _blockers(verdict: NDArray[np.int16], reasons: list[str]) -> str:
    count = np.bincount(verdict[verdict >= 0], minlength=len(reasons))
    parts = [
        f"{counted(int(n), 'node')}: {reason}" for reason, n in zip(reasons, count, strict=True)
    ]
    left = int((verdict < 0).sum())
    if left:
        parts.append(f"{counted(left, 'node is', 'nodes are')} {OPEN}")
    return "; ".join(parts) or "there is no node"
