"""Violations: kinds of broken rules, and the place of each violation."""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import read_only

Number = TypeVar("Number", bound=np.generic)


class Kind(NamedTuple):
    """One kind of violation."""

    hard: bool  # whether it must not be
    summed: bool  # whether a row counts for its amount (replicas, domains) and not for one
    meaning: str  # description for users


KINDS: dict[str, Kind] = {
    "unassigned": Kind(True, True, "replicas wanted that have no node"),
    "on_dead": Kind(True, True, "replicas on nodes that are dead or gone"),
    "not_kept": Kind(True, True, "replicas on live nodes that may keep none"),
    "not_accepted": Kind(True, True, "replicas that joined nodes which accept none"),
    "surplus": Kind(True, True, "replicas beyond those wanted"),
    "min_active": Kind(True, True, "live replicas short of the least a partition needs"),
    "leaderless": Kind(True, True, "partitions without a leader on any node"),
    "leader": Kind(True, True, "leaders on nodes that may not lead, or that are not voters"),
    "forbidden": Kind(True, True, "replicas on nodes where their partition is disabled"),
    "pinned": Kind(True, True, "pinned replicas that left their node"),
    "require": Kind(True, True, "replicas on nodes that a rule excludes"),
    "voters_require": Kind(True, True, "voters on nodes that a rule excludes for voters"),
    "place": Kind(True, True, "replicas short of those wanted on the nodes of an expression"),
    "voters_place": Kind(True, True, "voters short of those wanted on the nodes of an expression"),
    "same_node": Kind(True, True, "replicas too many on one node"),
    "spread": Kind(True, True, "replicas too many in one domain"),
    "min_domains": Kind(True, True, "domains short of the least number"),
    "max_domains": Kind(True, True, "domains beyond the greatest number"),
    "skew": Kind(True, True, "replicas by which domains differ too much"),
    "depends": Kind(True, True, "domains that lack a group which another one there needs"),
    "capacity": Kind(True, False, "nodes over capacity in a dimension"),
    "transient": Kind(True, False, "nodes over capacity in a dimension while replicas move"),
    "tier_capacity": Kind(True, False, "domains over their shared capacity in a dimension"),
    "max_replicas": Kind(True, True, "replicas beyond the most a node takes"),
    "soft_same_node": Kind(False, True, "as same_node, for a soft limit"),
    "soft_spread": Kind(False, True, "as spread, for a soft limit"),
    "soft_min_domains": Kind(False, True, "as min_domains, for a soft limit"),
    "soft_max_domains": Kind(False, True, "as max_domains, for a soft limit"),
    "soft_skew": Kind(False, True, "as skew, for a soft limit"),
    "lead": Kind(False, False, "leaders on a node less preferred than another replica's"),
}
"""Every kind, hard ones first; an audit counts all of them."""

AND = " and "
"""Between the expressions of a rule that fail together."""


class Violation(NamedTuple):
    """One row of an audit's table; "" where a column does not apply to this kind.

    Parameters
    ----------
    kind : str
        Key of ``KINDS``.
    hard : bool
        Whether it must not be.
    partition, group, node, tier, domain, dimension : str
        Names of what it concerns.
    amount : float
        Replicas, domains, ranks, or load above capacity in the dimension's unit.
    expression : str
        The expression of a rule that fails, as it was written; all that fail, joined by "and".
    asked : float or None
        The number that is not kept: of a count or a limit, or a capacity in the dimension's unit.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[2.0]] * 4, placement=[[0]] * 4)
    >>> first = ek.solve(c).audit_before.table()[0]
    >>> first.kind, first.node, first.dimension, first.amount
    ('capacity', 'n0', 'd0', 4.0)
    """

    kind: str
    hard: bool
    partition: str
    group: str
    node: str
    tier: str
    domain: str
    dimension: str
    amount: float
    expression: str = ""
    asked: float | None = None


@dataclass(frozen=True, eq=False)
class Violations:
    """All violations of one kind that one check found; every array is read-only.

    Parameters
    ----------
    kind : str
        Key of ``KINDS``.
    amount : ndarray of float64, shape (n,)
        How much of it.
    partition, group, node, tier, domain, dimension : ndarray of int32, shape (n,)
        Indices of what each concerns; -1 for nothing. A tier is a row of ``domain_with_nodes``.
    asked : ndarray of float64, shape (n,)
        The number that is not kept; NaN where it is none.
    expression : str
        The expression that fails, the same for all; empty where it is none.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[2.0]] * 4, placement=[[0]] * 4)
    >>> found = ek.solve(c).audit_before.found[0]
    >>> found.kind, found.node.tolist(), found.amount.tolist()
    ('capacity', [0], [4.0])
    """

    kind: str
    amount: NDArray[np.float64]
    partition: NDArray[np.int32]
    group: NDArray[np.int32]
    node: NDArray[np.int32]
    tier: NDArray[np.int32]
    domain: NDArray[np.int32]
    dimension: NDArray[np.int32]
    asked: NDArray[np.float64]
    expression: str = ""

    @property
    def count(self) -> int:
        """What they add to the count of their kind."""
        return int(self.amount.sum()) if KINDS[self.kind].summed else len(self.amount)

    def take(self, which: NDArray[np.integer]) -> "Violations":
        """Return some of them, by their indices."""
        return Violations(
            self.kind,
            read_only(self.amount[which]),
            read_only(self.partition[which]),
            read_only(self.group[which]),
            read_only(self.node[which]),
            read_only(self.tier[which]),
            read_only(self.domain[which]),
            read_only(self.dimension[which]),
            read_only(self.asked[which]),
            self.expression,
        )

    def rows(self, cluster: Cluster) -> list[Violation]:
        """Return them with names.

        Parameters
        ----------
        cluster : Cluster
            The cluster with the names.

        Returns
        -------
        list of Violation
            One per row.
        """
        hard = KINDS[self.kind].hard
        names = (cluster.partitions.names, cluster.partitions.group_names, cluster.nodes.names)
        tiers = [*cluster.topology.tiers, "node"]
        found = []
        for i, (amount, asked) in enumerate(
            zip(self.amount.tolist(), self.asked.tolist(), strict=True)
        ):
            tier, domain = int(self.tier[i]), int(self.domain[i])
            at_node = tier == len(cluster.topology)
            node = domain if at_node else int(self.node[i])
            domain_name = ""
            if domain >= 0 and not at_node:
                domain_name = cluster.topology.domain_name(tier, domain)
            indices = (int(self.partition[i]), int(self.group[i]), node)
            partition, group, holder = (
                one[at] if at >= 0 else "" for one, at in zip(names, indices, strict=True)
            )
            dimension = int(self.dimension[i])
            found.append(
                Violation(
                    self.kind, hard, partition, group, holder,
                    tiers[tier] if tier >= 0 else "", domain_name,
                    cluster.dimensions[dimension] if dimension >= 0 else "", amount,
                    self.expression, None if np.isnan(asked) else asked,
                )
            )  # fmt: skip
        return found


def violations(
    kind: str,
    amount: ArrayLike,
    expression: str = "",
    /,
    *,
    asked: ArrayLike = np.nan,
    partition: ArrayLike = -1,
    group: ArrayLike = -1,
    node: ArrayLike = -1,
    tier: ArrayLike = -1,
    domain: ArrayLike = -1,
    dimension: ArrayLike = -1,
) -> list[Violations]:
    """Gather what a check found, with indices of what it concerns; an empty list for nothing."""
    amounts = np.asarray(amount, np.float64)
    if len(amounts) == 0:
        return []

    def column(index: ArrayLike) -> NDArray[np.int32]:
        return _of_length(index, np.int32, len(amounts))

    return [
        Violations(
            kind, read_only(amounts), column(partition), column(group), column(node),
            column(tier), column(domain), column(dimension),
            _of_length(asked, np.float64, len(amounts)), expression,
        )
    ]  # fmt: skip


def _of_length(value: ArrayLike, kind: type[Number], length: int) -> NDArray[Number]:
    """Give a single value to every row, or take an array as it is."""
    return read_only(np.asarray(value, kind) if np.ndim(value) else np.full(length, value, kind))
