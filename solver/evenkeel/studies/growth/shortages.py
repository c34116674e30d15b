"""Shortages: needs as rows of a covering program over kinds of nodes, and in words."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import Kind, Need
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.topology import NODE_TIER
from evenkeel.studies.growth.fewest_nodes import Rows

FURTHEST = 0.65
"""Share by which a need may be met and is kept, since more may be asked for than is needed."""


NEARLY = 1e-9
"""Share by which sums of loads may differ with their order."""

IN_DOMAINS = ("domains", "group")
"""Kinds of needs of which nodes have the room of their domain."""


class Shortage(NamedTuple):
    """What nodes must hold for everything to have its place, and what they hold.

    Parameters
    ----------
    loss : str
        What is lost; empty for nothing.
    kind : str
        ``"load"`` of a dimension, ``"leading"`` for what leaders load alone, ``"whole replicas"``
        of at least some size, ``"replicas of a node"``, the replicas of one partition in as many
        ``"nodes"`` or ``"domains"``, or those of a ``"group"`` that is bound as a whole.
    measure : str
        The dimension, or the tier of the domains; empty for nodes and replicas.
    where : str
        The nodes that must hold it, empty for all; or the group.
    needed, held : float
        What they must hold, and what they hold.

    Examples
    --------
    >>> short = Shortage("", "load", "disk", "zone a", needed=12.0, held=10.0)
    >>> short.full, short.reason
    ('disk', 'disk in zone a has room for 10 of the 12 needed')
    """

    loss: str
    kind: Kind
    measure: str
    where: str
    needed: float
    held: float

    @property
    def full(self) -> str:
        """What it is that is full, in a word or two."""
        if self.kind == "domains":
            return f"domains of {self.measure}"
        if self.kind == "group":
            return f"limit on each {self.measure}"
        return self.measure or ("nodes" if self.kind == "nodes" else "replicas")

    @property
    def reason(self) -> str:
        """All of it in a sentence."""
        when = f"after the {self.loss}, " if self.loss else ""
        where = f" in {self.where}" if self.where else ""
        needed, held = quantity(self.needed), quantity(self.held)
        if self.kind == "group":
            return (
                f"{when}{needed} replicas of {self.where} need places, of which its limit on each "
                f"{self.measure} leaves {held}"
            )
        if self.kind == "domains":
            return (
                f"{when}{needed} replicas of a partition need places in different domains of "
                f"{self.measure}, which have {held}"
            )
        if self.kind == "nodes":
            there = f"{where}, which has" if where else ", of which there are"
            return f"{when}{needed} replicas of a partition need places{there} {held}"
        if self.kind == "replicas of a node":
            return f"{when}{needed} replicas need places{where or ' on nodes'}, which have {held}"
        large = {"whole replicas": " large replicas", "leading": " of leaders"}.get(self.kind, "")
        sentence = f"{when}{self.measure}{where} has room for {held} of the {needed}{large} needed"
        lacking = self.needed - self.held
        # what is short by less than the digits that are written must not read as if it were not
        if held != needed:
            return sentence
        if lacking > NEARLY * self.needed:
            return f"{sentence}: {quantity(lacking)} too little"
        return f"{when}{self.measure}{where} is full: all its room, {held}{large}, is needed"


def rows_of(
    cluster: Cluster, needs: Iterable[Need], old: NDArray[np.intp], kinds: NDArray[np.intp]
) -> tuple[Rows, list[Shortage]]:
    """Return needs as rows, each with its words: ``old`` nodes stay, ``kinds`` stand for many."""
    needs = list(needs)
    spare = max((one.spare for one in needs), default=0)
    holds, lacking, spares, found = [], [], [], []
    seen: set[bytes] = set()
    for need in needs:
        held, each = held_by(cluster, need, old, kinds)
        smallest = np.sort(held)
        left = [
            need.amount - float(smallest[: max(len(held) - max(need.spare - lost, 0), 0)].sum())
            for lost in range(spare + 1)
        ]
        if max(left) <= -FURTHEST * need.amount:
            continue
        row = np.array([*each, *left, need.spare])
        if row.tobytes() in seen:
            continue
        seen.add(row.tobytes())
        holds.append(each)
        lacking.append(left)
        spares.append(need.spare)
        found.append(shortage_of(cluster, need, need.amount - left[0]))
    shape = len(holds), len(kinds)
    return Rows(
        np.array(holds, np.float64).reshape(shape),
        np.array(lacking, np.float64).reshape(len(holds), spare + 1),
        np.array(spares, np.int64),
    ), found


def held_by(
    cluster: Cluster, need: Need, old: NDArray[np.intp], kinds: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each ``old`` node holds, and a node of each kind; a domain counts once."""
    there, each = need.holds[old], need.holds[kinds]
    if need.kind not in IN_DOMAINS:
        return there, each
    domain = cluster.topology.domain_with_nodes[need.dimension]
    held = np.flatnonzero(there > 0.0)
    _, first = np.unique(domain[old[held]], return_index=True)
    once = np.zeros(len(old))
    once[held[first]] = there[held[first]]
    taken = np.isin(domain[kinds], domain[old[held]])
    return once, np.where(taken, 0.0, each)


def shortage_of(cluster: Cluster, need: Need, held: float) -> Shortage:
    """Return what is needed and held as one tells it."""
    tiers = (*cluster.topology.tiers, NODE_TIER)
    if need.kind in IN_DOMAINS:
        measure = tiers[need.dimension]
    else:
        measure = cluster.dimensions[need.dimension] if need.dimension >= 0 else ""
    return Shortage(need.case.name, need.kind, measure, need.where, need.amount, held)
