"""Certificate: the violations and tightest points of a replay, first as arrays, then by name."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenkeel.measure.audit import KINDS
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import Ints, Ints64, Reals
from evenkeel.model.rules import COUNTS, LIMITS, REQUIREMENTS
from evenkeel.model.runtime.figures import quantity
from evenkeel.planning.replay.timeline import Timeline

BREACHES = {  # what a plan may break, by kind
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
    "order": "lists with another first replica than stated, with a dead node, or of what moves",
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
    **{kind: KINDS[kind].meaning for kind in ("same_node", *LIMITS, *REQUIREMENTS, *COUNTS)},
    "depends": "domains with a replica of a group, but none of a group that it needs there",
    "node_in": "copies into a node at a time",
    "node_out": "copies out of a node at a time",
    "domain_in": "copies into a domain at a time",
    "domain_out": "copies out of a domain at a time",
    "copies": "copies in all at a time",
    "recovery": "copies that begin while partitions still lack live replicas that they get later",
    "disk_capacity": "load beyond the capacity of a disk",
    "disk_moves": "moves between disks of a node at a time",
    "window": "steps that begin or end outside the windows of time",
    "bytes_in": "bytes per second into a node",
    "bytes_out": "bytes per second out of a node",
    "end": "replicas that end neither where they began nor where they were to go, or unsettled",
}

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


# what a finding may concern, as indices; -1 for nothing
PLACES = ("partition", "node", "group", "tier", "domain", "dimension")


@dataclass(frozen=True, eq=False)
class FoundBreaches:
    """Collects what the checks find about the steps of one plan."""

    cluster: Cluster
    timeline: Timeline
    broken: list[tuple[str, Reals, Ints64]] = field(default_factory=list)
    closest: dict[tuple[str, str], tuple[float, float, float, Ints64]] = field(default_factory=dict)

    def breach(
        self, kind: str, step: Ints, rank: Ints, amount: ArrayLike = 1.0, /, **where: ArrayLike
    ) -> None:
        """Note breaches of one kind, each by its step, the rank of its event and its amount."""
        if len(step):
            table = np.full((2 + len(PLACES), len(step)), -1, np.int64)
            table[0], table[1] = step, rank
            for name, value in where.items():
                table[2 + PLACES.index(name)] = value
            amounts = np.broadcast_to(np.asarray(amount, np.float64), len(step))
            self.broken.append((kind, amounts, table))

    def tight(
        self,
        kind: str,
        of: str,
        closeness: Reals | Ints,
        value: ArrayLike,
        limit: ArrayLike,
        step: Ints,
        rank: Ints,
        /,
        **where: ArrayLike,
    ) -> None:
        """Note the point of greatest closeness, if none of its kind so far was closer."""
        if len(closeness) == 0:
            return
        at = int(np.argmax(closeness))
        best = float(closeness[at])
        kept = self.closest.get((kind, of))
        if kept is not None and kept[0] >= best:
            return
        row = np.full(2 + len(PLACES), -1, np.int64)
        row[0], row[1] = step[at], rank[at]
        for name, given in where.items():
            row[2 + PLACES.index(name)] = np.broadcast_to(given, len(closeness))[at]
        reached, held = (float(np.broadcast_to(one, len(closeness))[at]) for one in (value, limit))
        self.closest[kind, of] = best, reached, held, row

    def breaches(self) -> tuple[Breach, ...]:
        """Return every breach with names, in the order of events."""
        if not self.broken:
            return ()
        kinds = [kind for kind, amount, _ in self.broken for _ in range(len(amount))]
        amounts = np.concatenate([amount for _, amount, _ in self.broken]).tolist()
        tables = np.concatenate([table for _, _, table in self.broken], axis=1)
        time = self.timeline.time_at(tables[0], tables[1]).tolist()
        order = np.lexsort((tables[0], tables[1])).tolist()
        rows = tables.T.tolist()
        return tuple(
            Breach(rows[i][0], time[i], kinds[i], self._where(rows[i][2:]), amounts[i])
            for i in order
        )

    def tightest(self) -> tuple[Tightest, ...]:
        """Return the tightest point per kind and dimension or tier, with names."""
        found = []
        for (kind, of), (_, value, limit, row) in sorted(self.closest.items()):
            time = float(self.timeline.time_at(row[:1], row[1:2])[0])
            where = self._where(row[2:].tolist())
            found.append(Tightest(kind, of, value, limit, int(row[0]), time, where))
        return tuple(found)

    def _where(self, row: list[int]) -> str:
        cluster = self.cluster
        place = dict(zip(PLACES, row, strict=True))
        tier, domain = place["tier"], place["domain"]
        if tier == len(cluster.topology):
            # the node itself
            place["node"], tier = max(place["node"], domain), -1
        words = []
        for name, names in (
            ("partition", cluster.partitions.names), ("group", cluster.partitions.group_names),
            ("node", cluster.nodes.names),
        ):  # fmt: skip
            if 0 <= place[name] < len(names):
                words.append(f"{name} {names[place[name]]}")
        if tier >= 0:
            inside = f" {cluster.topology.domain_name(tier, domain)}" if domain >= 0 else ""
            words.append(f"{cluster.topology.tiers[tier]}{inside}")
        if place["dimension"] >= 0:
            words.append(cluster.dimensions[place["dimension"]])
        return ", ".join(words)
