"""Findings of a replay: violations and tightest points, as arrays until they get names."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.planning.replay.certificate import Breach, Tightest
from evenkeel.planning.replay.timeline import Timeline

PLACES = ("partition", "node", "group", "tier", "domain", "dimension")
"""What a finding may concern, as indices; -1 for nothing."""


@dataclass(frozen=True, eq=False)
class Findings:
    """Collects what the checks find about the steps of one plan."""

    cluster: Cluster
    timeline: Timeline
    broken: list[tuple[str, NDArray[np.float64], NDArray[np.int64]]] = field(default_factory=list)
    closest: dict[tuple[str, str], tuple[float, float, float, NDArray[np.int64]]] = field(
        default_factory=dict
    )

    def breach(
        self,
        kind: str,
        step: NDArray[np.integer],
        rank: NDArray[np.integer],
        amount: ArrayLike = 1.0,
        /,
        **where: ArrayLike,
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
        closeness: NDArray[np.float64] | NDArray[np.integer],
        value: ArrayLike,
        limit: ArrayLike,
        step: NDArray[np.integer],
        rank: NDArray[np.integer],
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
