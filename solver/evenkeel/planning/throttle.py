"""Throttles and protocols: limits on copies in flight, and the abilities of a system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.limits import NO_BYTES
from evenkeel.model.reading.arrays import Flags, Reals
from evenkeel.model.reading.keywords import did_you_mean, known_arguments, known_fields, meant_name
from evenkeel.model.reading.quantities import (
    check_text,
    check_truth,
    is_real,
    read_bytes,
    read_count,
    read_tier_counts,
)


@known_fields
@dataclass(frozen=True, init=False)
class Windows:
    """Spans of time in which copies run; outside of them they pause, and nothing begins.

    Parameters
    ----------
    spans : sequence of (float, float)
        Beginning and end of each span, in seconds from the beginning of the plan, ascending.
    every : float, optional
        Seconds after which the spans come again, such as 86,400. Without it the last one must not
        end.

    Raises
    ------
    InvalidInput
        If there is no span, one is empty or begins before the last has ended, or they end.

    Examples
    --------
    >>> Windows([(0, 10)], every=60).closing(np.array([10.0, 15.0])).tolist()
    [10.0, 65.0]
    """

    spans: tuple[tuple[float, float], ...]
    every: float | None

    def __init__(self, spans: Sequence[tuple[float, float]], every: float | None = None) -> None:
        found, faults = _read_spans(spans)
        if every is not None and not is_real(every):
            faults.append(Fault("windows.every", every, "must be a number of seconds"))
        if faults:
            raise InvalidInput(faults)
        if not found:
            faults.append(Fault("windows.spans", spans, "would never let anything move"))
        last = 0.0
        for i, (begin, end) in enumerate(found):
            if not last <= begin < end:
                wanted = "must begin where the last has ended or later, and end later"
                faults.append(Fault(f"windows.spans[{i}]", (begin, end), wanted))
            last = end
        if every is None and found and np.isfinite(last):
            faults.append(Fault("windows.spans", last, "must not end, or come again: give every"))
        if every is not None and not last <= every < np.inf:
            faults.append(Fault("windows.every", every, f"must be finite and at least {last:g}"))
        if faults:
            raise InvalidInput(faults)
        object.__setattr__(self, "spans", found)
        object.__setattr__(self, "every", every)

    def opening(self, ran: Reals) -> Reals:
        """Return when what begins after so many seconds of running does so."""
        return self._clock(ran, "right")

    def closing(self, ran: Reals) -> Reals:
        """Return when what ends after so many seconds of running does so."""
        return self._clock(ran, "left")

    def is_open(self, time: Reals) -> Flags:
        """Return whether each time is within a span, its ends included."""
        if self.every is not None:
            turn = np.floor(time / self.every)
            inside = self._within(time - turn * self.every)
            # the end of a span may be the end of the turn
            inside |= self._within(np.full_like(time, self.every)) & (time % self.every == 0.0)
            return inside
        return self._within(time)

    def _within(self, time: Reals) -> Flags:
        slack = 1e-9 * np.maximum(np.abs(time), 1.0)
        inside = np.zeros(time.shape, bool)
        for begin, end in self.spans:
            inside |= (time >= begin - slack) & (time <= end + slack)
        return inside

    def _clock(self, ran: Reals, side: "str") -> Reals:
        begin = np.array([one for one, _ in self.spans])
        length = np.array([end - one for one, end in self.spans])
        before = np.append(0.0, np.cumsum(length)[:-1])
        whole, turn = float(length.sum()), np.zeros(len(ran))
        if self.every is not None:
            turn = np.floor(ran / whole)
            if side == "left":
                turn = np.where((ran == turn * whole) & (turn > 0.0), turn - 1.0, turn)
            ran = ran - turn * whole
        at = np.searchsorted(before, ran, side="right" if side == "right" else "left") - 1
        at = np.maximum(at, 0)
        shift = 0.0 if self.every is None else turn * self.every
        return np.asarray(begin[at] + (ran - before[at]) + shift)


def _read_spans(spans: object) -> tuple[tuple[tuple[float, float], ...], list[Fault]]:
    """Read pairs of numbers, and note what are none."""
    if not isinstance(spans, Sequence) or isinstance(spans, str):
        return (), [Fault("windows.spans", spans, "must be pairs of seconds, such as [(0, 3600)]")]
    found, faults = [], []
    for i, span in enumerate(spans):
        pair = tuple(span) if isinstance(span, Sequence) and not isinstance(span, str) else ()
        if len(pair) == 2 and all(is_real(one) for one in pair):
            found.append((float(pair[0]), float(pair[1])))
        else:
            faults.append(Fault(f"windows.spans[{i}]", span, "must be a pair of seconds"))
    return tuple(found), faults


# throttles that are one whole number each, 1 or more
COUNTS = ("node_in", "node_out", "copies", "disk_moves")

BY_TIER = ("domain_in", "domain_out")  # throttles that are a whole number for each tier
RATES = ("node_bandwidth",)  # throttles in bytes per second


@dataclass(frozen=True, init=False)
class Throttle:
    """How many copies may be in flight at once, and how many bytes per second they may take.

    Parameters
    ----------
    node_in, node_out : int, optional
        Most copies that enter, or leave, a node at once.
    domain_in, domain_out : mapping of str to int, optional
        Most copies that enter, or leave, a domain of a tier at once, by the tier's name. A copy
        within a domain neither enters nor leaves it.
    copies : int, optional
        Most copies in flight at once.
    node_bandwidth : float or str, optional
        Most bytes per second that a node receives, and that it sends, in the unit of the cluster's
        ``bytes`` dimension; a text such as ``"100MB"`` is for clusters whose unit is the byte.
    priority : mapping of str to float, optional
        Groups whose copies go first, the higher the sooner; 0 for those not named. What lacks
        replicas goes before all of them.
    windows : Windows, optional
        When copies may run; they pause outside. Always by default.
    recovery_first : bool, optional
        Whether nothing else begins before all partitions that lack live replicas have them, but for
        those whose repair waits for room that others make, or finds none: nothing is blocked for
        it. By default they only go first among what may begin, and a few wait where the whole ends
        sooner for it.
    disk_moves : int, optional
        Most moves between the disks of a node at once.

    Raises
    ------
    InvalidInput
        If a number is negative, no number, 0, or a count is not whole.

    Examples
    --------
    >>> Throttle(node_in=2, node_bandwidth="100MB").node_bandwidth
    100000000.0
    """

    node_in: int | None
    node_out: int | None
    domain_in: Mapping[str, int] = field(hash=False)
    domain_out: Mapping[str, int] = field(hash=False)
    copies: int | None
    disk_moves: int | None
    node_bandwidth: float | None
    priority: Mapping[str, float] = field(hash=False)
    windows: Windows | None
    recovery_first: bool

    @known_arguments
    def __init__(
        self,
        node_in: int | None = None,
        node_out: int | None = None,
        domain_in: Mapping[str, int] | None = None,
        domain_out: Mapping[str, int] | None = None,
        copies: int | None = None,
        node_bandwidth: float | str | None = None,
        priority: Mapping[str, float] | None = None,
        windows: Windows | None = None,
        recovery_first: bool = False,
        disk_moves: int | None = None,
    ) -> None:
        given = {
            "node_in": node_in, "node_out": node_out, "copies": copies,
            "disk_moves": disk_moves, "domain_in": domain_in, "domain_out": domain_out,
            "node_bandwidth": node_bandwidth,
        }  # fmt: skip
        faults = FaultList()
        for name in COUNTS:
            object.__setattr__(self, name, read_count(faults, f"throttle.{name}", given[name]))
        for name in RATES:
            object.__setattr__(self, name, read_bytes(faults, f"throttle.{name}", given[name]))
        for name in BY_TIER:
            object.__setattr__(
                self, name, read_tier_counts(faults, f"throttle.{name}", given[name])
            )
        object.__setattr__(self, "priority", _priorities(faults, priority))
        object.__setattr__(self, "windows", windows)
        object.__setattr__(self, "recovery_first", recovery_first)
        if not isinstance(windows, Windows | None):
            faults.add("throttle.windows", windows, "must be a Windows, or None")
        check_truth(faults, "throttle.recovery_first", recovery_first)
        for name in (*COUNTS, *RATES):
            if getattr(self, name) == 0:
                faults.add(f"throttle.{name}", 0, "would never let anything move")
        for name in BY_TIER:
            for tier, most in getattr(self, name).items():
                if most == 0:
                    faults.add(f"throttle.{name}[{tier!r}]", 0, "would never let anything move")
        faults.raise_if_any()

    @property
    def at_once(self) -> float:
        """Copies that can always be under way together if their nodes differ; ``inf`` for any."""
        counts = (self.copies, *self.domain_in.values(), *self.domain_out.values())
        return min((float(one) for one in counts if one is not None), default=float("inf"))

    @property
    def paces(self) -> bool:
        """Whether bytes per second are limited, so that copies take as long as they are large."""
        return self.node_bandwidth is not None

    @property
    def limits_copies(self) -> bool:
        """Whether anything limits copies, so that their order decides how long they take."""
        free = replace(self, priority={}, windows=None, recovery_first=False, disk_moves=None)
        return free != Throttle()


def check_throttle(faults: FaultList, cluster: Cluster, throttle: Throttle) -> None:
    """Note what a throttle names that the cluster does not have."""
    for name in RATES:
        if getattr(throttle, name) is not None and cluster.bytes_dimension < 0:
            faults.add(f"throttle.{name}", getattr(throttle, name), NO_BYTES)
    groups = cluster.partitions.group_names
    for group in throttle.priority:
        if group not in groups:
            hint = meant_name(faults, group, groups)
            faults.add("throttle.priority", group, f"unknown group{hint}")
    tiers = list(cluster.topology.tiers)
    for name in BY_TIER:
        for tier in getattr(throttle, name):
            if tier not in tiers:
                faults.add(f"throttle.{name}", tier, f"unknown tier; known: {tiers}")


def _priorities(faults: FaultList, given: Mapping[str, float] | None) -> dict[str, float]:
    """Read priorities by group."""
    if given is not None and not isinstance(given, Mapping):
        faults.add("throttle.priority", given, "must be a mapping of a group to a number")
        return {}
    found = dict(given or {})
    for group, one in found.items():
        if not is_real(one) or one != one:
            faults.add(f"throttle.priority[{group!r}]", one, "must be a number")
    return found


@known_fields
@dataclass(frozen=True)
class Protocol:
    """What a system can do to the replicas of a partition.

    Parameters
    ----------
    name : str
        Name of the system.
    joint : bool
        Whether a voter is exchanged for another at one instant (``SWAP``); else the new one is
        promoted first, and the old one demoted after it.
    whole : bool
        Whether all replicas of a partition that move are copied at once, and exchanged together.
        Else they move one after another where rules admit it; where they do not, several move at
        one instant if the protocol is ``joint``.
    quorum : bool
        Whether voters decide by majority, so that one has to survive the loss of any domain at
        every instant, if it does at both ends. Where they do not, one live replica has to.
    roles : bool
        Whether a replica can become a voter or a non-voter where it is. Else two replicas whose
        roles trade nodes are copied crosswise, and a target with another number of voters is none.
    names_all : bool
        Whether a change lists all replicas of a partition, and is refused if it lists one on a node
        that is down. A partition that would still list one stays as it is.
    shrinks : bool
        Whether a replica on a node that is down can be taken off a partition that lacks some, with
        none in its place, if a live one is left. Else it stays listed until another does.

    Examples
    --------
    >>> Protocol.named("kafka").whole
    True
    """

    name: str
    joint: bool = True
    whole: bool = False
    quorum: bool = True
    roles: bool = True
    names_all: bool = False
    shrinks: bool = True

    def __post_init__(self) -> None:
        faults = FaultList()
        check_text(faults, "protocol.name", self.name)
        for name in ("joint", "whole", "quorum", "roles", "names_all", "shrinks"):
            check_truth(faults, f"protocol.{name}", getattr(self, name))
        faults.raise_if_any()

    @staticmethod
    def of(cluster: Cluster) -> "Protocol":
        """Return the protocol of the system that a cluster was read from, else ``"plain"``."""
        return PRESETS.get(cluster.native_format, PRESETS["plain"])

    @staticmethod
    def named(name: str) -> "Protocol":
        """Return what is known of a system.

        Parameters
        ----------
        name : str
            ``"plain"``, ``"kafka"`` (a reassignment exchanges the whole set, KIP-455),
            ``"cockroach"`` (learners and joint consensus), ``"ceph"`` (a remapped placement group
            backfills, then its set is exchanged whole; the primary follows from the order; its pool
            states how many replicas it has),
            ``"helix"`` (states of a replica: one more serves before one less does) or
            ``"longhorn"`` (a replica is added, rebuilt, and another deleted after it).

        Returns
        -------
        Protocol
            Its preset.

        Raises
        ------
        InvalidInput
            If there is none.
        """
        if not isinstance(name, str) or name not in PRESETS:
            known = sorted(PRESETS)
            reason = f"unknown protocol; known: {known}{did_you_mean(str(name), known)}"
            raise InvalidInput([Fault("protocol", name, reason)])
        return PRESETS[name]


PRESETS = {  # the systems that are known, by name
    one.name: one
    for one in (
        Protocol("plain"),
        Protocol("kafka", whole=True, names_all=True),
        Protocol("cockroach"),
        Protocol("ceph", whole=True, shrinks=False),
        Protocol("helix", joint=False, quorum=False),
        Protocol("longhorn", joint=False, quorum=False),
    )
}
