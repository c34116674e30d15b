"""Compile a cluster into arrays for kernels: names and rules become indices and masks."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import broken_limits
from evenkeel.measure.binding import (
    Scope,
    eligible_domains,
    group_scope,
    lead_ranks,
    nodes_of,
    partition_scope,
    read_from,
)
from evenkeel.measure.elections import electable, led_from, ready
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import GroupTable, NodeTable
from evenkeel.model.goals import Cost
from evenkeel.model.limits import Limits, node_counts
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import writable
from evenkeel.model.rules import Limit, Term
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.memoize import memoize
from evenkeel_kernels.core import problem as kernel
from evenkeel_kernels.core.problem import FEWEST, MOST, SKEW, UNLIMITED, WIDEST
from evenkeel_kernels.core.state import settle

NO_LIMIT = np.int32(2**31 - 1)
LIMIT_COLUMN = {"spread": MOST, "min_domains": FEWEST, "max_domains": WIDEST, "skew": SKEW}
# stands for 1 / 0: any load on a node without capacity is out of reach, and 0 times it is 0
HUGE = 1e300


def compile_problem(
    cluster: Cluster,
    watermark: NDArray[np.float64],
    weight: NDArray[np.float64],
    *,
    cost: Cost | None = None,
    soft_from: float = 0.0,
    limits: Limits | None = None,
) -> kernel.Problem:
    """Turn a cluster into the arrays that every search shares."""
    # soft limits bind where they weigh ``soft_from`` or more
    scope = partition_scope(cluster)
    topology, dimensions = cluster.topology, cluster.dimensions
    alone = _spreads_hold(cluster)
    beat()
    shared = (cluster.depends, soft_from, alone, *read_from(cluster))
    return kernel.Problem(
        nodes=_nodes(cluster, watermark, weight, cost or Cost()),
        partitions=_partitions(cluster, scope.rule),
        domains=memoize(topology, "domain arrays", lambda: _domains(cluster), dimensions),
        rules=_open_to(
            cluster,
            _rules(cluster, scope, soft_from, alone, cost)
            if cost is not None
            else memoize(
                cluster.partitions,
                "rule arrays",
                lambda: _rules(cluster, scope, soft_from, alone, Cost()),
                *shared,
            ),
        ),
        moves=_moves(cluster, cost or Cost()),
        budgets=budget_arrays(cluster, limits or Limits()),
    )


def compile_state(
    cluster: Cluster,
    problem: kernel.Problem,
    start: Placement | None = None,
    stays: NDArray[np.bool_] | None = None,
) -> kernel.State:
    """Return the incremental state of a placement, settled."""
    # replicas on nodes other than those that ``stays (N,)`` names, by default those that may hold
    # them, are nowhere, and lead no more
    placement = start or cluster.placement
    dimensions, nodes = problem.nodes.capacity.shape
    groups = len(problem.rules.group_limit_first) - 1
    node = placement.node.copy()
    stands = np.append(cluster.nodes.may_hold if stays is None else stays, False)
    node[~stands.take(node) & problem.partitions.movable] = -1
    beat()
    leader = placement.leader.copy()
    led = np.flatnonzero(leader >= 0)
    leader[led[node[placement.first[led] + leader[led]] < 0]] = -1
    replicas, near = len(node), _near_length(problem)
    binds = problem.budgets.binds
    domains = len(problem.domains.member_first) - 1
    state = kernel.State(
        node=node,
        role=placement.role.copy(),
        leader=leader,
        load=np.zeros((dimensions, nodes)),
        held=np.zeros((dimensions, nodes)),
        replicas=np.zeros(nodes, np.int32),
        leaders=np.zeros(nodes, np.int32),
        domain_load=np.zeros(problem.domains.tier_capacity.shape),
        group_count=np.zeros(_count_length(problem), np.int32),
        group_domains=np.zeros(len(problem.rules.group_limit), np.int32),
        group_inside=np.zeros(len(problem.rules.group_term), np.int32),
        near_count=np.zeros(near, np.int32),
        near_absent=np.zeros(near, np.int32),
        near_relying=np.zeros(near, np.int32),
        moved=np.zeros(groups, np.int32),
        moved_histogram=np.zeros(replicas + 2, np.int32),
        moved_most=np.zeros(1, np.int32),
        spent=np.zeros(3),
        moved_of=np.zeros(len(leader) * binds, np.int64),
        came=np.zeros(domains * binds, np.int64),
        went=np.zeros(domains * binds, np.int64),
    )
    beat()
    settle(problem, state)
    beat()
    return state


def _nodes(
    cluster: Cluster, watermark: NDArray[np.float64], weight: NDArray[np.float64], cost: Cost
) -> kernel.NodeArrays:
    nodes = cluster.nodes
    # copies, since a frozen view that is contiguous already would compile kernels a second time
    capacity = np.array(nodes.capacity.T, order="C")
    with np.errstate(divide="ignore"):
        inverse = np.minimum(1.0 / capacity, HUGE)
    capacity[:, ~nodes.carries] = np.inf  # a lost node has no limit
    most = np.where(nodes.max_replicas < 0, NO_LIMIT, nodes.max_replicas).astype(np.int32)
    pairs = [
        (cluster.dimensions.index(one.of), cluster.dimensions.index(one.to))
        for one in cost.proportion
    ]
    ratios = [(one.ratio, one.weight) for one in cost.proportion]
    hinges = [
        (cluster.dimensions.index(table.dimension), one)
        for table in cost.tables
        if isinstance(table, NodeTable)
        for one in table.hinges(len(nodes))
    ]
    return kernel.NodeArrays(
        capacity=capacity,
        inverse=inverse,
        watermark=np.array(watermark, order="C"),
        weight=np.array(weight, order="C"),
        transient=writable(cluster.transient),
        accepts=nodes.may_receive,
        leads=nodes.may_lead,
        max_replicas=most,
        proportion_of=np.array(pairs, np.int32).reshape(-1, 2),
        proportion=np.array(ratios, np.float64).reshape(-1, 2),
        hinge_of=np.array([d for d, _ in hinges], np.int32),
        hinge=np.array([one[:2] for _, one in hinges], np.float64).reshape(-1, 2),
        hinge_at=np.array([one.at for _, one in hinges]).reshape(len(hinges), len(nodes)),
    )


def _partitions(cluster: Cluster, rule_of: NDArray[np.int32]) -> kernel.PartitionArrays:
    partitions, placement = cluster.partitions, cluster.placement
    banned = cluster.forbidden
    forbidden_first = np.zeros(len(partitions) + 1, np.int64)
    if len(banned):
        np.cumsum(np.bincount(banned[:, 0], minlength=len(partitions)), out=forbidden_first[1:])
    return kernel.PartitionArrays(
        first=writable(placement.first),
        owner=writable(placement.owner),
        # a replica pinned without a node may have any
        movable=((placement.flags & Flag.PINNED) == 0) | (placement.node < 0),
        home=writable(placement.node),
        ready=ready(cluster),
        led_from=led_from(cluster),
        electable=electable(cluster),
        leader_load=writable(partitions.load.leader),
        voter_load=writable(partitions.load.voter),
        non_voter_load=writable(partitions.load.non_voter),
        group=writable(partitions.group),
        rule=rule_of,
        mask=rule_of,
        forbidden_first=forbidden_first,
        forbidden=np.array(banned[:, 1], order="C"),
    )


def _domains(cluster: Cluster) -> kernel.DomainArrays:
    topology = cluster.topology
    nodes = len(cluster.nodes)
    local = topology.domain_with_nodes
    offset = np.concatenate([[0], np.cumsum(topology.domain_count)]).astype(np.int64)
    domain = np.where(local >= 0, local + offset[:-1, None], -1).astype(np.int32)
    flat = domain.ravel()
    # stable: members of a domain stay in ascending order of node
    order = np.argsort(flat, kind="stable")
    order = order[int(np.count_nonzero(flat < 0)) :]
    member_first = np.zeros(offset[-1] + 1, np.int64)
    np.cumsum(np.bincount(flat[order], minlength=int(offset[-1])), out=member_first[1:])
    capacity = np.full((len(cluster.dimensions), int(offset[-1])), np.inf)
    limited = []
    for tier, shared in topology.tier_capacity.items():
        row = topology.tier_index(tier)
        capacity[:, offset[row] : offset[row + 1]] = shared.T
        limited.append(row)
    return kernel.DomainArrays(
        domain=domain,
        domain_offset=offset,
        member_first=member_first,
        member=(order % max(nodes, 1)).astype(np.int32),
        limited=np.array(limited, np.int32),
        tier_capacity=capacity,
    )


def _limit_rows(
    cluster: Cluster, limits: Iterable[Limit], soft_from: float, *, alone: bool
) -> list[list[int]]:
    """One kernel row per tier; ``alone`` leaves out limits per node that another one implies."""
    rows: dict[int, list[int]] = {}
    domain = cluster.topology.domain
    node_tier = len(cluster.topology)
    implied = False
    for limit in limits:
        if limit.hard or limit.weight >= soft_from:
            tier = cluster.topology.tier_index(limit.tier)
            row = rows.setdefault(tier, [tier, -1, -1, -1, -1])
            row[LIMIT_COLUMN[limit.kind]] = limit.amount
            if alone and limit.hard and row[MOST] == 1 and tier < node_tier:
                implied |= bool((domain[tier] >= 0).all())
    per_node = rows.get(node_tier, [])
    if implied and per_node[2:] == [-1, -1, -1] and per_node[1] >= 1:
        del rows[node_tier]  # one replica per domain is one per node
    return [rows[tier] for tier in sorted(rows)]


def _rules(
    cluster: Cluster, scope: Scope, soft_from: float, alone: bool, cost: Cost
) -> kernel.RuleArrays:
    nodes, rules = len(cluster.nodes), scope.demands
    masks: list[NDArray[np.bool_]] = []
    limits: list[list[list[int]]] = []
    terms: list[list[list[int]]] = []
    ranks = np.zeros((len(rules), nodes), np.uint8)
    for i, rule in enumerate(rules):
        limits.append(_limit_rows(cluster, rule.limits, soft_from, alone=alone))
        # what every replica requires closes nodes
        asked = [term for term in rule.terms if term.voters or not term.for_all]
        terms.append(_term_rows(cluster, asked, masks))
        ranks[i] = lead_ranks(cluster, rule.lead)
    groups = len(cluster.partitions.group_names)
    tables = [table for table in cost.tables if isinstance(table, GroupTable)]
    prices, price_of_table = _prices(tables)
    group_first, group_limit, group_base, table_of = _group_limits(
        cluster, groups, soft_from, tables
    )
    group_term_first, group_term = _group_terms(cluster, groups, masks)
    needs_first, needs = _neighbours(cluster.depends, 0, 1, groups)
    needed_first, needed = _neighbours(cluster.depends, 1, 0, groups)
    term_mask = np.array(masks, bool).reshape(len(masks), nodes)
    return kernel.RuleArrays(
        allowed=scope.open.copy(),
        limit_first=_row_starts(limits),
        limit=np.array([row for rows in limits for row in rows], np.int32).reshape(-1, 5),
        term_first=_row_starts(terms),
        term=np.array([row for rows in terms for row in rows], np.int32).reshape(-1, 3),
        term_mask=term_mask,
        lead_rank=ranks,
        group_limit_first=group_first,
        group_limit=group_limit,
        group_base=group_base,
        price_of=price_of_table[table_of],
        price=prices,
        group_term_first=group_term_first,
        group_term=group_term,
        needs_first=needs_first,
        needs=needs,
        needed_first=needed_first,
        needed=needed,
        near_base=_near_base(cluster, groups),
        group_open=np.zeros(0, bool),
    )


def _spreads_hold(cluster: Cluster) -> bool:
    """Return whether no partition has more replicas in a domain than its rule allows there."""
    found = broken_limits(PlacementCounts.of(cluster, cluster.placement))
    return not any(one.count for one in found if one.kind in ("same_node", "spread", "soft_spread"))


def _open_to(cluster: Cluster, rules: kernel.RuleArrays) -> kernel.RuleArrays:
    """Close nodes that may hold nothing, and return the domains that group skews count."""
    holds = cluster.nodes.may_hold
    if not holds.all():
        rules = rules._replace(allowed=rules.allowed & holds)
    skewed = np.flatnonzero(rules.group_limit[:, 4] >= 0)
    if len(skewed) == 0:
        return rules
    scope, tier = group_scope(cluster), rules.group_limit[:, 0]
    last = int(cluster.topology.domain_count[tier[-1]])
    is_open = np.zeros(int(rules.group_base[-1]) + last, bool)
    class_of = np.repeat(scope.rule, np.diff(rules.group_limit_first))
    eligible = {t: eligible_domains(cluster, scope, t) for t in np.unique(tier[skewed]).tolist()}
    for i in skewed.tolist():
        counted = eligible[tier[i]][class_of[i]]
        is_open[rules.group_base[i] : rules.group_base[i] + len(counted)] = counted
    return rules._replace(group_open=is_open)


def budget_arrays(cluster: Cluster, limits: Limits) -> kernel.BudgetArrays:
    """Return the budgets of nodes and domains by global domain."""
    topology, nodes = cluster.topology, cluster.nodes
    offset = np.concatenate([[0], np.cumsum(topology.domain_count)]).astype(np.int64)
    binds = limits != Limits()
    into = np.full(int(offset[-1]) * binds, UNLIMITED, np.int64)
    out_of = into.copy()
    tiers = set()
    last = len(topology)
    for most, of_node, by_tier in (
        (into, limits.node_in, limits.domain_in), (out_of, limits.node_out, limits.domain_out),
    ):  # fmt: skip
        if of_node is not None:
            most[offset[last] : offset[last + 1]] = node_counts(cluster, of_node)
            tiers.add(last)
        for name, amount in by_tier.items():
            tier = topology.tier_index(name)
            most[offset[tier] : offset[tier + 1]] = amount
            tiers.add(tier)
    return kernel.BudgetArrays(
        binds=binds,
        moves=UNLIMITED if limits.moves is None else limits.moves,
        data=np.inf if limits.bytes is None else float(limits.bytes),
        data_dimension=-1 if limits.bytes is None else cluster.bytes_dimension,
        of_partition=UNLIMITED if limits.partition_moves is None else limits.partition_moves,
        leader_changes=UNLIMITED if limits.leader_changes is None else limits.leader_changes,
        tiers=np.array(sorted(tiers), np.int32),
        into=into,
        out_of=out_of,
        source=nodes.serves,
    )


def _row_starts(rows: list[list[list[int]]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)


def _term_rows(
    cluster: Cluster, terms: Iterable[Term], masks: list[NDArray[np.bool_]]
) -> list[list[int]]:
    """Rows (least, voters only, mask) of some terms; new masks are added to ``masks``."""
    rows = []
    for term in terms:
        rows.append([term.least, int(term.voters), len(masks)])
        masks.append(nodes_of(cluster, term))
    return rows


def _group_limits(
    cluster: Cluster, groups: int, soft_from: float, tables: list[GroupTable]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Limits of each group as a whole, leaving out those that a group is too small to break."""
    # a table of costs is a row that limits nothing, so that its counts are kept; the last array
    # holds which table a row is of, -1 for none
    partitions = cluster.partitions
    found: list[tuple[NDArray[np.int64], list[int], int]] = []
    ruled = bool((partitions.group_rule >= 0).any())
    if ruled:
        size = np.bincount(partitions.group, partitions.replicas, groups).astype(np.int64)
    for i, rule in enumerate(cluster.rules if ruled else ()):
        bound = np.flatnonzero(partitions.group_rule == i)
        if len(bound) == 0:
            continue
        for row in _limit_rows(cluster, rule.limits(per_node=False), soft_from, alone=False):
            alone = row[2] <= 1 and row[3] < 0 and row[4] < 0
            members = bound[size[bound] > row[1]] if alone and row[1] >= 0 else bound
            found.append((members, row, -1))
    for i, table in enumerate(tables):
        tier = cluster.topology.tier_index(table.tier)
        found.append((table.members(cluster), [tier, -1, -1, -1, -1], i))
    if not found:
        none = np.zeros(0, np.int64)
        return np.zeros(groups + 1, np.int64), np.zeros((0, 5), np.int32), none, none
    owner = np.concatenate([members for members, _, _ in found])
    lengths = [len(members) for members, _, _ in found]
    limit = np.repeat(np.array([row for _, row, _ in found], np.int32), lengths, axis=0)
    table_of = np.repeat(np.array([i for _, _, i in found], np.int64), lengths)
    order = np.argsort(owner, kind="stable")
    owner, limit = owner[order], np.ascontiguousarray(limit[order])
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=groups))])
    length = cluster.topology.domain_count[limit[:, 0]]
    base = np.concatenate([[0], np.cumsum(length)[:-1]]).astype(np.int64)
    return first.astype(np.int64), limit, base, table_of[order]


def _prices(tables: list[GroupTable]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Rows of all tables, made as long as the longest; and (first row, step) of each, then none."""
    longest = max((table.rows.shape[1] for table in tables), default=2)
    rows = [np.zeros((0, longest))]
    where = []
    start = 0
    for table in tables:
        count = np.broadcast_to(np.arange(longest), (len(table.rows), longest))
        rows.append(table.of(count, np.arange(len(table.rows))[:, None] + 0 * count))
        where.append((start, int(len(table.rows) > 1)))
        start += len(table.rows)
    return np.concatenate(rows), np.array([*where, (-1, 0)], np.int32)


def _group_terms(
    cluster: Cluster, groups: int, masks: list[NDArray[np.bool_]]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Least numbers of a group's replicas on the nodes of a mask; new masks join ``masks``."""
    scope = group_scope(cluster)
    of_rule = {
        q: _term_rows(cluster, scope.demands[q].counted, masks)
        for q in np.unique(scope.rule).tolist()
    }
    if not any(of_rule.values()):
        return np.zeros(groups + 1, np.int64), np.zeros((0, 3), np.int32)
    rows = [of_rule[q] for q in scope.rule.tolist()]
    flat = np.array([row for one in rows for row in one], np.int32).reshape(-1, 3)
    return _row_starts(rows), flat


def _neighbours(
    depends: NDArray[np.int32], key: int, other: int, groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows (other group, tier) per group, in order of the group in column ``key``."""
    order = np.argsort(depends[:, key], kind="stable")
    first = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(depends[:, key], minlength=groups), out=first[1:])
    return first, np.array(depends[order][:, [other, 2]], order="C")


def _near_base(cluster: Cluster, groups: int) -> NDArray[np.int64]:
    base = np.full((groups, len(cluster.topology) + 1), -1, np.int64)
    start = 0
    for tier in np.unique(cluster.depends[:, 2]):
        pairs = cluster.depends[cluster.depends[:, 2] == tier]
        tied = np.unique(pairs[:, :2])
        length = int(cluster.topology.domain_count[tier])
        base[tied, tier] = start + np.arange(len(tied)) * length
        start += len(tied) * length
    return base


def _count_length(problem: kernel.Problem) -> int:
    """Entries of ``State.group_count``: one run of domains per group limit."""
    if len(problem.rules.group_limit) == 0:
        return 0
    tier = problem.rules.group_limit[-1, 0]
    offset = problem.domains.domain_offset
    return int(problem.rules.group_base[-1] + offset[tier + 1] - offset[tier])


def _near_length(problem: kernel.Problem) -> int:
    """Entries of ``State.near_count``: one run of domains per tied group and tier."""
    base = problem.rules.near_base
    if len(problem.rules.needs) == 0 or base.max() < 0:
        return 0
    tier = int(np.unravel_index(int(base.argmax()), base.shape)[1])
    offset = problem.domains.domain_offset
    return int(base.max() + offset[tier + 1] - offset[tier])


def _moves(cluster: Cluster, cost: Cost) -> kernel.MoveArrays:
    given = cluster.topology.tier_distance
    by_level = given if given.ndim == 1 else np.zeros(len(cluster.topology) + 1)
    matrix = given if given.ndim == 2 else np.zeros((0, 0))
    return kernel.MoveArrays(
        move_cost=cluster.partitions.move_cost * cost.moves,
        group_weight=float(cost.group_moves),
        distance_weight=float(cost.distance),
        tier_distance=writable(by_level),
        distance=writable(matrix),
    )
