"""Options of Ceph's methods."""

from dataclasses import dataclass

from evenkeel.methods.options import Options
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import check_number, check_truth


@known_fields
@dataclass(frozen=True, kw_only=True)
class CephCrush(Options):
    """Options of ``ceph_crush``.

    Parameters
    ----------
    upmaps : bool
        Whether the pairs that are in force in the map are applied to the result of CRUSH.

    Examples
    --------
    >>> CephCrush(upmaps=False).upmaps
    False
    """

    upmaps: bool = True

    def __post_init__(self) -> None:
        faults = FaultList()
        check_truth(faults, "options.upmaps", self.upmaps)
        faults.raise_if_any()


@known_fields
@dataclass(frozen=True, kw_only=True)
class Upmap(Options):
    """Options of ``ceph_upmap``.

    Parameters
    ----------
    deviation : float
        How many replicas a device may be off its share, at least 0.5.
    spare : float
        Where failure domains are so tight that shares cannot be had: further moves, as a part of
        those needed, that go into lifting the emptiest devices.
    primaries : bool
        Whether reads are balanced too: who is primary in each replicated pool.

    Examples
    --------
    >>> Upmap(deviation=2.0).spare
    0.08
    """

    deviation: float = 1.0
    spare: float = 0.08
    primaries: bool = False

    def __post_init__(self) -> None:
        faults = FaultList()
        check_number(faults, "options.deviation", self.deviation, 0.5)
        check_number(faults, "options.spare", self.spare)
        check_truth(faults, "options.primaries", self.primaries)
        faults.raise_if_any()
