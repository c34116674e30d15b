"""Checks that a scenario makes on the history of a simulation."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.world import KINDS


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Parameters
    ----------
    what : str
        What was demanded.
    measured : float
        The worst value in its window.
    met : bool
        Whether the demand is met.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> found = simulate.AtMost("moves", 0.0).of(history)
    >>> found.what, found.measured, found.met
    ('moves <= 0', 2.0, False)
    """

    what: str
    measured: float
    met: bool


@dataclass(frozen=True)
class Check(ABC):
    """A demand on the last samples of a history.

    Parameters
    ----------
    last : int
        How many samples it looks at.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> checks = [simulate.AtMost("moves", 9.0), simulate.Conforms(under=0)]
    >>> all(check.of(history).met for check in checks)
    True
    """

    last: int = field(default=6, kw_only=True)

    @abstractmethod
    def of(self, history: History) -> Finding:
        """Hold it against a history."""

    def _window(self, history: History, stat: str) -> NDArray[np.float64]:
        """Return the last samples of the nodes that are part of the cluster at the end."""
        window: NDArray[np.float64] = history.series(stat)[-self.last :, history.present[-1]]
        return window


@dataclass(frozen=True)
class Balance(Check):
    """The greatest value of a node is at most so many times the mean.

    Parameters
    ----------
    stat : str
        As ``History.series`` takes it.
    at_most : float
        Times the mean, at each sample.
    nodes : sequence of int, optional
        Which nodes; all that are part of the cluster by default.
    last : int
        How many samples it looks at.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> found = simulate.Balance("replicas", at_most=1.5, last=1).of(history)
    >>> found.what, found.measured, found.met
    ('max/mean replicas <= 1.5, last 1', 1.125, True)
    """

    stat: str
    at_most: float
    nodes: Sequence[int] | None = None

    def of(self, history: History) -> Finding:
        """Hold it against a history."""
        if self.nodes is None:
            window = self._window(history, self.stat)
        else:
            window = history.series(self.stat)[-self.last :, list(self.nodes)]
        mean = window.mean(1)
        ratio = np.divide(window.max(1), mean, out=np.ones(len(mean)), where=mean > 0.0)
        worst = float(ratio.max())
        where = "" if self.nodes is None else f" of {_names(history, self.nodes)}"
        met = worst <= self.at_most * (1.0 + ROUNDING)
        what = f"max/mean {self.stat}{where} <= {self.at_most}, last {self.last}"
        return Finding(what, worst, met)


@dataclass(frozen=True)
class Steady(Check):
    """No node's value strays from its own mean by more than a share.

    Parameters
    ----------
    stat : str
        As ``History.series`` takes it.
    at_most : float
        Share of the mean.
    last : int
        How many samples it looks at.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> found = simulate.Steady("d0", at_most=0.5).of(history)
    >>> found.what, found.met
    ('|d0/its mean - 1| <= 0.5', False)
    """

    stat: str
    at_most: float

    def of(self, history: History) -> Finding:
        """Hold it against a history."""
        window = self._window(history, self.stat)
        mean = window.mean(0)
        share = np.zeros(window.shape)
        np.divide(np.abs(window - mean), mean, out=share, where=mean > 0.0)
        worst = float(share.max(initial=0.0))
        what = f"|{self.stat}/its mean - 1| <= {self.at_most}"
        return Finding(what, worst, worst <= self.at_most + ROUNDING)


@dataclass(frozen=True)
class Within(Check):
    """The values of some nodes stay between two bounds.

    Parameters
    ----------
    stat : str
        As ``History.series`` takes it.
    nodes : sequence of int
        Which nodes.
    at_least, at_most : float
        The bounds; the same for an exact value.
    last : int
        How many samples it looks at.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> found = simulate.Within("replicas", nodes=[2], at_least=1.0, last=1).of(history)
    >>> found.what, found.measured, found.met
    ('replicas of n2 >= 1', 2.0, True)
    """

    stat: str
    nodes: Sequence[int]
    at_least: float = -np.inf
    at_most: float = np.inf

    def of(self, history: History) -> Finding:
        """Hold it against a history."""
        window = history.series(self.stat)[-self.last :, list(self.nodes)]
        low, high = float(window.min()), float(window.max())
        slack = ROUNDING * max(abs(low), abs(high))
        met = self.at_least <= low + slack and high <= self.at_most + slack
        if self.at_least == self.at_most:
            wanted = f"= {self.at_least:g}"
        elif np.isinf(self.at_most):
            wanted = f">= {self.at_least:g}"
        elif np.isinf(self.at_least):
            wanted = f"<= {self.at_most:g}"
        else:
            wanted = f"in {self.at_least:g} to {self.at_most:g}"
        worst = high if high - self.at_most > self.at_least - low else low
        return Finding(f"{self.stat} of {_names(history, self.nodes)} {wanted}", worst, met)


@dataclass(frozen=True)
class Thrash(Check):
    """A figure does not go up and down for nothing.

    Parameters
    ----------
    stat : str
        As ``History.series`` takes it.
    at_most : float
        Percent, added up over all nodes.
    last : int
        Of no use here: the whole run is looked at.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> found = simulate.Thrash("replicas", at_most=100.0).of(history)
    >>> found.what, found.measured, found.met
    ('thrash of replicas <= 100 %', 0.0, True)
    """

    stat: str
    at_most: float

    def of(self, history: History) -> Finding:
        """Hold it against a history."""
        total = float(history.thrash_percent(self.stat).sum())
        return Finding(f"thrash of {self.stat} <= {self.at_most:g} %", total, total <= self.at_most)


@dataclass(frozen=True)
class Conforms(Check):
    """So many partitions are not as they should be, and no more or fewer.

    Parameters
    ----------
    under, over, unavailable, in_danger : int, optional
        Partitions of that kind; those left out are not looked at.
    violating, lead_violating, lead_less_preferred : int, optional
        Likewise.
    last : int
        How many samples it looks at.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> lost = simulate.At(0.0, ek.Changes(down="n0"))
    >>> history = simulate.play(c, [lost], until=60.0, every=60.0)
    >>> found = simulate.Conforms(under=4).of(history)
    >>> found.what, found.measured, found.met
    ('under 4', 4.0, False)
    """

    under: int | None = None
    over: int | None = None
    unavailable: int | None = None
    in_danger: int | None = None
    violating: int | None = None
    lead_violating: int | None = None
    lead_less_preferred: int | None = None
    last: int = field(default=1, kw_only=True)

    def of(self, history: History) -> Finding:
        """Hold it against a history."""
        wanted = {kind: getattr(self, kind) for kind in KINDS if getattr(self, kind) is not None}
        off = sum(
            int(np.abs(history.astray(kind)[-self.last :] - count).max())
            for kind, count in wanted.items()
        )
        what = ", ".join(f"{kind} {count}" for kind, count in wanted.items())
        return Finding(what, float(off), off == 0)


@dataclass(frozen=True)
class AtMost(Check):
    """A total stays within a bound.

    Parameters
    ----------
    name : str
        One of ``history.TOTALS``.
    bound : float
        The most.
    last : int
        Of no use here: totals are of the whole run.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, until=60.0, every=60.0)
    >>> found = simulate.AtMost("moves", 1.0).of(history)
    >>> found.what, found.measured, found.met
    ('moves <= 1', 2.0, False)
    """

    name: str
    bound: float

    def of(self, history: History) -> Finding:
        """Hold it against a history."""
        total = history.total(self.name)
        return Finding(f"{self.name} <= {self.bound:g}", total, total <= self.bound)


def _names(history: History, nodes: Sequence[int]) -> str:
    """Name nodes, those that follow each other by the first and the last."""
    names = history.scenario.cluster.nodes.names
    if len(nodes) > 3 and list(nodes) == list(range(nodes[0], nodes[-1] + 1)):
        return f"{names[nodes[0]]}-{names[nodes[-1]]}"
    return ",".join(names[node] for node in nodes)
