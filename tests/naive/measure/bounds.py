"""The best that any placement of a tiny cluster can do, by looking at all of them."""

import itertools
from typing import NamedTuple

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Rule
from tests.naive.measure.audit import can_lead, meets, wanted_on

SLACK = 1 + 1e-9


class Everything(NamedTuple):
    """All valid placements; the first axis counts them."""

    load: np.ndarray  # (V, N, D)
    leaders: np.ndarray  # (V, N)
    moves: np.ndarray  # (V,)


def every_placement(cluster: Cluster) -> Everything:
    """Combine all ways to place each partition, and keep what fits on the nodes."""
    nodes, dimensions = cluster.nodes.capacity.shape
    load, count = np.zeros((1, nodes, dimensions)), np.zeros((1, nodes), int)
    leaders, moves = np.zeros((1, nodes), int), np.zeros(1, int)
    for p in range(len(cluster.partitions)):
        ways = [describe(cluster, p, row) for row in rows(cluster, p)]
        if not ways:
            return Everything(load[:0], leaders[:0], moves[:0])
        parts = [np.array(part) for part in zip(*ways, strict=True)]
        load, count, leaders, moves = (
            (one[:, None] + more[None]).reshape(-1, *one.shape[1:])
            for one, more in zip((load, count, leaders, moves), parts, strict=True)
        )
    most = cluster.nodes.max_replicas
    fits = (load <= cluster.nodes.capacity * SLACK).all((1, 2))
    fits &= ((most < 0) | (count <= most)).all(1)
    return Everything(load[fits], leaders[fits], moves[fits])


def before(cluster, p):
    """The nodes that a partition stands on."""
    placement = cluster.placement
    row = placement.node[placement.first[p] : placement.first[p + 1]]
    return {int(n) for n in row if n >= 0}


def rows(cluster, p):
    """Every valid row of nodes: the leader first, then the voters, then the others."""
    nodes, parts = cluster.nodes, cluster.partitions
    rule = cluster.rules[parts.rule[p]] if parts.rule[p] >= 0 else Rule()
    stood = before(cluster, p)
    forbidden = {int(n) for q, n in cluster.forbidden if q == p}
    able = [
        n
        for n in range(len(nodes))
        if (nodes.may_hold[n] if n in stood else nodes.may_receive[n])
        and n not in forbidden
        and all(meets(cluster, text, n) for text in rule.require)
    ]
    hard = [limit for limit in rule.limits() if limit.hard and limit.kind == "spread"]
    for row in itertools.product(able, repeat=int(parts.replicas[p])):
        if row and leads(cluster) and not can_lead(nodes, row[0]):
            continue
        voters = row[: int(parts.voters[p])]
        if not all(
            placed_as_asked(cluster, term, voters if term.voters else row) for term in rule.terms()
        ):
            continue
        if all(within(cluster, limit, row) for limit in hard):
            yield row


def placed_as_asked(cluster, term, row):
    return not row or sum(wanted_on(cluster, term, n) for n in row) >= term.least


def leads(cluster):
    return bool((cluster.placement.leader >= 0).any())


def within(cluster, limit, row):
    domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(limit.tier)]
    at = [int(domain[n]) for n in row if domain[n] >= 0]
    return all(at.count(one) <= limit.amount for one in at)


def describe(cluster, p, row):
    """Load, replicas and leaders per node, and moves, of one row."""
    parts = cluster.partitions
    load = np.zeros(cluster.nodes.capacity.shape)
    count, led = np.zeros(len(load), int), np.zeros(len(load), int)
    for slot, n in enumerate(row):
        by_role = parts.load.non_voter if slot >= parts.voters[p] else parts.load.voter
        if slot == 0 and leads(cluster):
            by_role = parts.load.leader
            led[n] += 1
        load[n] += by_role[p]
        count[n] += 1
    return load, count, led, sum(n not in before(cluster, p) for n in row)
