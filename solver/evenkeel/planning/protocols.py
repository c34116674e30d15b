"""Protocols: what a system can do while a partition changes its replicas."""

from dataclasses import dataclass

from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.reading.keywords import did_you_mean, known_fields
from evenkeel.model.reading.quantities import check_text, check_truth


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
        Else they move one after another where rules admit it.
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
    def named(name: str) -> "Protocol":
        """Return what is known of a system.

        Parameters
        ----------
        name : str
            ``"plain"``, ``"kafka"`` (a reassignment exchanges the whole set, KIP-455),
            ``"cockroach"`` (learners, joint consensus, and roles that change in place), ``"ceph"``
            (a remapped placement group backfills, then its set is exchanged whole; the primary
            follows from the order; its pool states how many replicas it has),
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
        if name not in PRESETS:
            known = sorted(PRESETS)
            reason = f"unknown protocol; known: {known}{did_you_mean(str(name), known)}"
            raise InvalidInput([Fault("protocol", name, reason)])
        return PRESETS[name]


PRESETS = {
    one.name: one
    for one in (
        Protocol("plain"),
        Protocol("kafka", whole=True, roles=False, names_all=True),
        Protocol("cockroach"),
        Protocol("ceph", whole=True, roles=False, shrinks=False),
        Protocol("helix", joint=False, quorum=False, roles=False),
        Protocol("longhorn", joint=False, quorum=False, roles=False),
    )
}
"""The systems that are known, by name."""
