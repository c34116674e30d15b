"""Certificate: the violations and tightest points that a replay found."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from evenkeel.model.runtime.figures import quantity

BREACHES = {
    "index": "steps that name what there is not, or lack the node that their kind needs",
    "time": "times that are none, or a finish before the start",
    "size": "sizes that are none, less than the replica has, or of a step that copies nothing",
    "dependency": "steps that start before one that they wait for has finished, or that do not"
    " wait for one that they build on",
    "wave": "steps in an earlier wave than one that they wait for",
    "precondition": "steps that do not find what they need on their target or source",
    "source": "copies from a node that has nothing to read, or stops having it",
    "role": "promotions and demotions of replicas in the wrong role",
    "leader": "leaders that go before they hand over, and hand-overs to or from the wrong replica",
    "change": "membership changes while others of the partition are unsettled",
    "in_flight": "copies under way that nothing goes on with, or that other changes come before",
    "min_active": "fewer live replicas than a partition needs",
    "quorum": "voters that the loss of one domain leaves without a majority",
    "survivor": "partitions that the loss of one domain leaves without a live replica, where none"
    " is decided by majority",
    "capacity": "load beyond the capacity of a node",
    "tier_capacity": "load beyond the capacity that a domain shares",
    "max_replicas": "replicas beyond the most a node takes",
    "room": "steps that take room which no step gives that they wait for: at another pace of the"
    " copies the place overflows",
    "not_accepted": "copies to nodes that are dead, or that receive nothing and are not the target",
    "forbidden": "copies to nodes where the partition is disabled",
    "pinned": "pinned replicas that leave their nodes",
    "same_node": "replicas of a partition beyond those allowed on one node",
    "spread": "replicas of a partition or group beyond those allowed in one domain",
    "min_domains": "domains short of those wanted",
    "max_domains": "domains beyond those allowed",
    "skew": "difference between the fullest and the emptiest domain beyond the one allowed",
    "require": "replicas on nodes that a rule excludes",
    "voters_require": "voters on nodes that a rule excludes for voters",
    "place": "replicas short of those wanted on the nodes of an expression",
    "voters_place": "voters short of those wanted on the nodes of an expression",
    "depends": "domains with a replica of a group, but none of a group that it needs there",
    "node_in": "copies into a node at a time",
    "node_out": "copies out of a node at a time",
    "domain_in": "copies into a domain at a time",
    "domain_out": "copies out of a domain at a time",
    "copies": "copies in all at a time",
    "recovery": "copies that begin while partitions still lack live replicas that they get later",
    "window": "steps that begin or end outside the windows of time",
    "bytes_in": "bytes per second into a node",
    "bytes_out": "bytes per second out of a node",
    "end": "replicas that end neither where they began nor where they were to go, or unsettled",
}
"""What a plan may break, by kind."""

End = Literal["target", "prefix", "other", "open"]


@dataclass(frozen=True)
class Breach:
    """Something that a step breaks.

    Parameters
    ----------
    step : int
        Index of the step; -1 where it lies in no step, but in what is left at the end.
    time : float
        Seconds from the beginning of the plan.
    kind : str
        Key of ``BREACHES``.
    where : str
        Names of what it concerns: partition, node, domain, dimension.
    amount : float
        How much of it: load beyond a limit in the dimension's unit, replicas or voters short,
        copies too many, seconds too early; 1 where there is nothing to measure.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> from dataclasses import replace
    >>> hurried = replace(result.plan(), throttle=ek.Throttle(node_in=1))
    >>> print(hurried.check().breach)
    step 5, 0 s: node_in at node n1 by 1
    """

    step: int
    time: float
    kind: str
    where: str
    amount: float

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        at = f"step {self.step}, {quantity(self.time)} s"
        return f"{at}: {self.kind}{place} by {quantity(self.amount)}"


@dataclass(frozen=True)
class Tightest:
    """The point at which a plan comes closest to breaking a rule.

    Parameters
    ----------
    kind : str
        Key of ``BREACHES``.
    of : str
        Dimension, tier or expression; empty where the kind has none.
    value, limit : float
        What was reached, and the number that it was held to.
    step : int
        Step that led there; -1 for the beginning.
    time : float
        Seconds from the beginning of the plan.
    where : str
        Names of what it concerns.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> found = result.plan(throttle=ek.Throttle(node_in=1)).check()
    >>> [(one.kind, one.value, one.limit) for one in found.tightest if one.kind == "node_in"]
    [('node_in', 1.0, 1.0)]
    """

    kind: str
    of: str
    value: float
    limit: float
    step: int
    time: float
    where: str

    def __str__(self) -> str:
        name = f"{self.kind} {self.of}".strip()
        reached = f"{quantity(self.value)} of {quantity(self.limit)}"
        return f"{name}: {reached} at {quantity(self.time)} s, {self.where}"


@dataclass(frozen=True)
class Certificate:
    """What a replay of a plan found at every instant.

    Parameters
    ----------
    breaches : tuple of Breach
        Everything that is broken, in the order of time; empty of a plan that is safe.
    tightest : tuple of Tightest
        Per kind of rule, and dimension or tier, the point that comes closest to breaking it. Empty
        where steps cannot be replayed at all.
    end : {"target", "prefix", "other", "open"}
        Whether the last state is the target; or one on the way, in which every replica stands where
        it stood or where it is to be; or another. "open" where no target was given.
    steps : int
        How many steps were replayed.

    Examples
    --------
    >>> print(Certificate((), (), "target", 0))
    safe: 0 steps end at the target
    """

    breaches: tuple[Breach, ...]
    tightest: tuple[Tightest, ...]
    end: End
    steps: int

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return not self.breaches

    @property
    def breach(self) -> Breach | None:
        """The first thing that is broken; None where nothing is."""
        return self.breaches[0] if self.breaches else None

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many breaches there are of each kind, those that there are."""
        counts: dict[str, int] = {}
        for one in self.breaches:
            counts[one.kind] = counts.get(one.kind, 0) + 1
        return counts

    def __str__(self) -> str:
        ends = {
            "target": "end at the target", "prefix": "end on the way to the target",
            "other": "end elsewhere", "open": "leave nothing unsettled",
        }  # fmt: skip
        if self.ok:
            return "\n  ".join(
                [f"safe: {self.steps} steps {ends[self.end]}", *map(str, self.tightest)]
            )
        return f"unsafe: {self.breach}; {len(self.breaches)} breaches in all: {self.counts}"
