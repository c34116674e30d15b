"""How far a placement may break rules: as far as the one that came in did, and no further.

So a model has an answer even where not all can be mended, and every answer of it is no worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit
from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.regressions import baselines_of
from evenkeel.model.cluster import Cluster

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

Place = tuple[str, str, int, str | int]
"""A kind of violation, whose it is, its number, and the expression, tier or dimension."""


@dataclass
class Leeway:
    """What was broken as things came, and what of it a model leaves broken.

    ``stays (N,)`` are nodes on which a replica that is there may stay though rules bar it.
    """

    model: CpModel
    came: Mapping[Place, int]
    stays: NDArray[np.bool_]
    broken: list[Any] = field(default_factory=list)

    @classmethod
    def none(cls, cluster: Cluster, model: CpModel) -> Leeway:
        """Let nothing be broken."""
        return cls(model, {}, np.zeros(len(cluster.nodes), bool))

    @classmethod
    def of(cls, cluster: Cluster, model: CpModel) -> Leeway:
        """Let be broken what came broken, with or without the replicas that do not live."""
        came: Counter[Place] = Counter()
        for audited in baselines_of(cluster):
            came |= _amounts(audited)
        return cls(model, came, cluster.nodes.serves)

    @property
    def mends(self) -> bool:
        """Whether what came broken may be mended in part."""
        return bool(self.stays.any())

    def slack(self, kind: str, whose: str, member: int, about: str | int) -> Any:
        """Return by how much a rule may be broken; all of it counts."""
        most = self.came.get((kind, whose, member, about), 0)
        if not most:
            return 0
        found = self.model.new_int_var(0, most, "")
        self.broken.append(found)
        return found

    def surplus(self, most: int) -> Any:
        """Return how many replicas beyond those wanted may stay, each of which counts."""
        if most <= 0 or not self.mends:
            return 0
        found = self.model.new_int_var(0, most, "")
        self.broken.append(found)
        return found

    def above(self, kind: str, whose: str, member: int, about: int) -> Any:
        """Return whether a node or domain stays above its room, if it came so; it counts."""
        if not self.came.get((kind, whose, member, about)):
            return 0
        found = self.model.new_bool_var("")
        self.broken.append(found)
        return found


def _amounts(audited: Audit) -> Counter[Place]:
    """Add up what is broken of each hard rule at each place."""
    found: Counter[Place] = Counter()
    for one in audited.found:
        if not KINDS[one.kind].hard:
            continue
        columns = one.partition, one.group, one.node, one.tier, one.domain, one.dimension
        rows = zip(*(column.tolist() for column in columns), one.amount.tolist(), strict=True)
        for partition, group, node, tier, domain, dimension, amount in rows:
            if partition >= 0 or group >= 0:
                whose, member = ("partition", partition) if partition >= 0 else ("group", group)
                place = one.kind, whose, member, one.expression or tier
            elif node >= 0:
                place = one.kind, "node", node, dimension
            else:
                place = one.kind, f"tier {tier}", domain, dimension
            # what is overloaded may stay so or not, by however much
            found[place] += 1 if dimension >= 0 else max(int(amount), 1)
    return found
