"""Options of the core's methods: one frozen class for each method."""

from dataclasses import dataclass
from typing import Literal

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import check_whole, is_real


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a method; each method that takes any has a class of its own.

    Examples
    --------
    >>> import evenkeel as ek
    >>> isinstance(ek.options.Upmap(deviation=2.0), Options)
    True
    """

    def kept_of(self, limits: tuple[str, ...]) -> tuple[str, ...]:
        """Return those limits that the method keeps with these options, of all that it can keep."""
        return limits


@known_fields
@dataclass(frozen=True, kw_only=True)
class Exact(Options):
    """Options of ``exact``.

    Parameters
    ----------
    largest : int
        Replicas times nodes beyond which a cluster is refused.
    workers : int
        Threads; with more than one, equally good answers may differ from run to run.
    effort : float
        Deterministic seconds to spend, which are the same on every machine.

    Examples
    --------
    >>> Exact(largest=5000).workers
    1
    """

    largest: int = 2000
    workers: int = 1
    effort: float = 10.0

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("largest", "workers"):
            check_whole(faults, f"options.{name}", getattr(self, name), 1)
        if not is_real(self.effort) or not self.effort > 0.0:
            faults.add("options.effort", self.effort, "must be a number above 0")
        faults.raise_if_any()


@known_fields
@dataclass(frozen=True, kw_only=True)
class Leaders(Options):
    """Options of ``leaders``.

    Parameters
    ----------
    by : str
        The balanced quantity: "number" of leaders, to their proven least on the fullest node; or
        "load", where leading adds any, to a proven bound.

    Examples
    --------
    >>> Leaders(by="load").by
    'load'
    """

    by: Literal["number", "load"] = "number"

    def __post_init__(self) -> None:
        faults = FaultList()
        if self.by not in ("number", "load"):
            faults.add("options.by", self.by, "must be 'number' or 'load'")
        faults.raise_if_any()
