"""Rules of the model as zone configurations."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import distinct_rows
from evenkeel.model.binding import BoundRule, bound_rules
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.rules import parse_expression
from evenkeel.systems.cockroach.allocator.zone_configs.documents import (
    Conjunction,
    Constraint,
    ZoneConfig,
)

HOST = "host"
"""Tier whose domains are CockroachDB's nodes; without it every node of the cluster is one."""


def zone_configs_of(cluster: Cluster) -> tuple[list[ZoneConfig], NDArray[np.int32]]:
    """Say what the partitions of a cluster want in CockroachDB's words.

    Requirements and places become constraints, leader preferences lease preferences. Limits per
    domain have no counterpart: diversity is what spreads replicas there.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[1.0]] * 3, load=[[0.1]] * 2, domains={"zone": ["a", "b", "c"]}, replicas=2,
    ...     rules=[ek.Rule(place={"zone=a": 1})],
    ... )
    >>> configs, config = zone_configs_of(cluster)
    >>> [(str(c.constraints[0]), c.replicas) for c in configs[0].constraints], config.tolist()
    ([('+zone=a', 1)], [0, 0])
    """
    rules, rule = bound_rules(cluster)
    partitions = cluster.partitions
    keys = np.stack([rule, partitions.replicas, partitions.voters], axis=1)
    if len(keys) == 0:
        return [], np.zeros(0, np.int32)
    distinct, config = distinct_rows(keys.astype(np.int64))
    read = [
        _config(cluster, rules[q], replicas, voters) for q, replicas, voters in distinct.tolist()
    ]
    return read, config.astype(np.int32)


def _config(cluster: Cluster, rule: BoundRule, replicas: int, voters: int) -> ZoneConfig:
    place, voters_place = [
        dict(chain.from_iterable(mapping.items() for mapping in listed))
        for listed in (
            [one.place for one in (rule.own, rule.shared) if one is not None],
            [one.voters_place for one in (rule.own, rule.shared) if one is not None],
        )
    ]
    return ZoneConfig(
        num_replicas=replicas,
        num_voters=voters,
        constraints=_conjunctions(cluster, rule.require, place, replicas),
        voter_constraints=_conjunctions(cluster, rule.voters_require, voters_place, voters),
        lease_preferences=[_constraints(cluster, [text]) for text in rule.lead],
    )


def _conjunctions(
    cluster: Cluster, require: Sequence[str], place: Mapping[str, int], total: int
) -> list[Conjunction]:
    """What all must meet goes into every conjunction, and into one for those nobody counts."""
    counted = [
        Conjunction(_constraints(cluster, [*require, text]), count) for text, count in place.items()
    ]
    if not require:
        return counted
    if not counted:
        return [Conjunction(_constraints(cluster, require))]
    rest = total - sum(place.values())
    return [*counted, Conjunction(_constraints(cluster, require), rest)] if rest > 0 else counted


def _constraints(cluster: Cluster, texts: Sequence[str]) -> tuple[Constraint, ...]:
    """Read expressions; labels that are no tier stand for attributes."""
    found = []
    for text in texts:
        for test in parse_expression(FaultList(), "", text):
            if test.value is None:
                found.append(Constraint(test.wanted, "", test.key))
            elif test.key in cluster.topology.tiers and test.key != HOST:
                found.append(Constraint(test.wanted, test.key, test.value))
            else:
                found.append(Constraint(test.wanted, "", f"{test.key}={test.value}"))
    return tuple(found)
