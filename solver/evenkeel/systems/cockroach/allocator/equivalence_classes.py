"""Stores that are alike: the same locality, and the same answers to every constraint."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.cockroach.allocator.zone_configs import Constraint, ZoneConfig
from evenkeel_kernels.cockroach.tables import Configs, Localities

Tiers = tuple[tuple[str, str], ...]
"""Keys and values of a locality, widest first."""


@dataclass(frozen=True)
class Site:
    """What never changes about a store."""

    host: int
    locality: Tiers = ()
    attributes: frozenset[str] = frozenset()

    @property
    def values(self) -> tuple[str, ...]:
        """Values of its tiers; the last tier is the host itself."""
        return (*(value for _, value in self.locality), str(self.host))


def diversity(a: Sequence[str], b: Sequence[str]) -> float:
    """Return how far apart two localities are.

    CockroachDB, ``pkg/roachpb/metadata.go``, ``Locality.DiversityScore``.
    """
    least = min(len(a), len(b))
    for i in range(least):
        if a[i] != b[i]:
            return (least - i) / least
    return 0.0 if len(a) == len(b) else 1.0 / (least + 1)


def localities_of(
    sites: Sequence[Site], conjunctions: Sequence[tuple[Constraint, ...]]
) -> Localities:
    """Sort stores into classes, and work out what concerns classes once for all."""
    taken = {value for site in sites for _, value in site.locality}
    answers: dict[tuple[Tiers, frozenset[str]], tuple[bool, ...]] = {}
    number: dict[Hashable, int] = {}
    firsts: list[int] = []
    alike = np.zeros(len(sites), np.int64)
    for s, site in enumerate(sites):
        kind = (site.locality, site.attributes)
        if kind not in answers:
            answers[kind] = tuple(
                all(one.holds(site.locality, site.attributes) for one in conjunction)
                for conjunction in conjunctions
            )
        # a host's id counts by itself where it could be taken for another tier's value
        own = str(site.host) if str(site.host) in taken else ""
        key = (site.values[:-1], answers[kind], own)
        if key not in number:
            number[key] = len(number)
            firsts.append(s)
        alike[s] = number[key]
    matches = np.zeros((len(conjunctions), len(firsts)), np.bool_)
    for a, s in enumerate(firsts):
        matches[:, a] = answers[(sites[s].locality, sites[s].attributes)]
    ids = np.array([site.host for site in sites], np.int64)
    host = np.unique(ids, return_inverse=True)[1].astype(np.int64)
    return Localities(
        host,
        *_listed(host),
        alike,
        *_listed(alike),
        _pairs([sites[s].values for s in firsts]),
        matches,
    )


def _listed(label: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the stores of each label begin, and these stores."""
    count = np.bincount(label, minlength=1)
    first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return first, np.argsort(label, kind="stable").astype(np.int64)


def _pairs(values: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
    """Diversity of two stores of each pair of classes, on different hosts."""
    classes = len(values)
    deepest = max(map(len, values), default=0)
    code: dict[Hashable, int] = {}
    table = np.full((classes, deepest), -1, np.int64)
    for a, row in enumerate(values):
        for i, value in enumerate(row[:-1]):
            table[a, i] = code.setdefault(value, len(code))
    for a, row in enumerate(values):
        # no class shares its hosts, unless an id happens to be the value of a tier
        table[a, len(row) - 1] = code.get(row[-1], -2 - a)
    depth = np.array([len(row) for row in values], np.int64)
    least = np.minimum(depth[:, None], depth)
    same = np.ones((classes, classes), bool)
    pair = np.where(depth[:, None] == depth, 0.0, 1.0 / (least + 1))
    for i in range(deepest):
        differs = same & (table[:, None, i] != table[:, i]) & (i < least)
        pair[differs] = ((least - i) / least)[differs]
        same &= ~differs
    np.fill_diagonal(pair, 1.0 / depth)
    return np.ascontiguousarray(pair)


def configs_of(
    wanted: Sequence[ZoneConfig],
) -> tuple[Configs, list[tuple[Constraint, ...]]]:
    """Lay configurations out for kernels."""
    number: dict[tuple[Constraint, ...], int] = {}

    def row_of(constraints: tuple[Constraint, ...]) -> int:
        return number.setdefault(constraints, len(number))

    every = [[(row_of(one.constraints), one.replicas) for one in c.constraints] for c in wanted]
    voters = [
        [(row_of(one.constraints), one.replicas) for one in c.voter_constraints] for c in wanted
    ]
    lead = [[(row_of(one), 0) for one in c.lease_preferences] for c in wanted]
    replicas = np.array([c.num_replicas for c in wanted], np.int32)
    voting = np.array([c.voters for c in wanted], np.int32)
    first, row, count = _flat(every)
    voter_first, voter_row, voter_count = _flat(voters)
    lead_first, lead_row, _ = _flat(lead)
    configs = Configs(
        replicas, voting, replicas.copy(), voting.copy(), first, row, count,
        voter_first, voter_row, voter_count, lead_first, lead_row,
    )  # fmt: skip
    return configs, list(number)


def _flat(
    rows: Sequence[Sequence[tuple[int, int]]],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = np.array([pair for row in rows for pair in row], np.int32).reshape(-1, 2)
    return first, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
