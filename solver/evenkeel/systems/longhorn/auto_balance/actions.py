"""The actions of auto-balance in order: compact in arrays, as texts on request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.systems.longhorn.auto_balance.compile import BARRED, ReplicaNames, system_of
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn
from evenkeel_kernels.longhorn import auto_balance as kernel
from evenkeel_kernels.longhorn import delete_replica as leave
from evenkeel_kernels.longhorn import place_replica as place

KINDS = {0: "nothing", kernel.ADD: "add", kernel.DELETE: "delete", kernel.DROP: "drop"}
"""Kinds of action. A dropped replica had failed, and has been replaced."""

REASONS: Mapping[int, str] = {
    place.NOTHING: "",
    place.ZONE_LEAST: "zones without a replica could hold one (least-effort, zones)",
    place.HOST_LEAST: "hosts without a replica could hold one (least-effort, nodes)",
    place.HOST_BEST: "some hosts hold two or more replicas more than others (best-effort, nodes)",
    place.ZONE_BEST: "some zones hold two or more replicas more than others (best-effort, zones)",
    place.PRESSURE: "replicas stand on disks under pressure (best-effort, disk pressure)",
    place.REPLENISH: "replicas are missing (replenishment)",
    leave.EVICTED: "it is under eviction",
    leave.NOT_LOCAL: "it is not where the volume is attached, and another one is (data locality)",
    leave.DOWN: "its host is down or not ready",
    leave.UNSTABLE: "its host is unstable, and it was healthy before that host became ready",
    leave.OFF_UNSTABLE: "its host holds more than the unstable one",
    leave.FULL_HOST: "its host holds most (best-effort)",
    leave.FULL_ZONE: "its zone holds most (best-effort)",
    leave.RELIEVED: "its disk is under pressure (best-effort)",
    leave.SAME_DISK: "it is among most replicas that share a disk",
    leave.SAME_HOST: "it is among most replicas that share a host",
    leave.SAME_ZONE: "it is among most replicas that share a zone",
    leave.ANY: "no replicas share anything",
    kernel.DROPPED: "it has failed, and all replicas that are wanted are there",
}
"""What asks for an action, by code."""

TIERS: Mapping[int, str] = {
    0: "",
    place.UNUSED: "1: unused hosts in unused zones",
    place.FREED: "2: hosts and zones that evictions free",
    place.UNUSED_HOST: "unused hosts in used zones",
    place.FREED_HOST: "3: hosts that evictions free",
    place.USED_HOST: "4: used hosts",
}
"""Tiers of hosts, by code. Unused hosts in used zones are in tiers 3 and 4 of Longhorn."""

VERDICTS: Mapping[int, str] = dict(enumerate(BARRED)) | {
    place.MINIMAL: "too little would stay free on it",
    place.PROMISED: "too much would be promised on it",
    place.ELSEWHERE: "another host is asked for",
    place.STRAINED: "it is, or would be, under pressure",
    place.APART: "anti-affinity keeps the volume's replicas apart",
    place.LATER: "an earlier tier has a disk",
    place.HOLDS: "it holds a replica of the volume",
    place.SMALL: "its usable space is less than the volume's size",
}
"""Why a disk is no candidate, by code."""


@dataclass(frozen=True)
class Action:
    """One action, with what led to it.

    Parameters
    ----------
    kind : {"add", "delete", "drop", "nothing"}
        What is done.
    volume : str
        Its name.
    replica : str or None
        The replica that comes or goes.
    disk : str or None
        Where it comes to, or goes from, as ``host/disk``.
    why : str
        What asks for it; of nothing, why nothing is done.
    asked : int
        How many replicas the volume is off; of a deletion, of how many one was chosen.
    tier : str
        Tier of the hosts among which the disk was chosen.
    candidates : tuple of str
        Disks, or replicas to delete, among which was chosen.
    kept_out : mapping of str to int
        Disks that were no candidates, by what kept them out.
    scores : mapping of str to float
        Balance score of each host on which the replica fits: lowest wins.
    on_hosts : mapping of str to int
        Replicas of the volume by host, before.

    Examples
    --------
    >>> from evenkeel.systems.longhorn import auto_balance as longhorn
    >>> hosts = [longhorn.Host(name="a", disks=[longhorn.Disk(name="d", maximum=1000)])]
    >>> held = [longhorn.Replica(name="r", host="a", disk="d")]
    >>> cluster = longhorn.cluster_of(hosts, [longhorn.Volume(name="v", size=10, replicas=held)])
    >>> action = longhorn.next_action(cluster, "v")
    >>> action.kind, action.why, dict(action.on_hosts)
    ('nothing', 'the volume is detached', {'a': 1})
    """

    kind: str
    volume: str
    replica: str | None
    disk: str | None
    why: str
    asked: int
    tier: str
    candidates: tuple[str, ...]
    kept_out: Mapping[str, int]
    scores: Mapping[str, float]
    on_hosts: Mapping[str, int]

    def __str__(self) -> str:
        held = ", ".join(f"{host} {count}" for host, count in self.on_hosts.items()) or "none"
        lines = [f"{self.volume} ({held}): {self._describe()}"]
        if self.tier:
            lines.append(f"  tier {self.tier}")
        if self.candidates:
            lines.append(f"  chosen among {', '.join(self.candidates)}")
        if self.scores:
            listed = ", ".join(f"{host} {score:.6f}" for host, score in self.scores.items())
            lines.append(f"  scores {listed}")
        lines += [f"  {count} disks: {reason}" for reason, count in self.kept_out.items()]
        return "\n".join(lines)

    def _describe(self) -> str:
        if self.kind == "nothing":
            return f"nothing to do: {self.why}"
        if self.kind == "add":
            return f"add {self.replica} on {self.disk}, for {self.why}: {self.asked}"
        return f"{self.kind} {self.replica} from {self.disk}, for {self.why}"


@dataclass(frozen=True, eq=False)
class ActionLog:
    """Everything that was done, in order.

    Parameters
    ----------
    cluster : Cluster
        Where it began.
    options : Longhorn
        Of the run.
    entries : ndarray of int64, shape (n, 8)
        Per action: kind, volume, slot of the run, disk, code of what asked for it, how many were
        asked for (or could have gone), tier, rank of the replica.

    Examples
    --------
    >>> from evenkeel.systems.longhorn.auto_balance.intake import cluster_of
    >>> log = ActionLog(cluster_of([], []), Longhorn(), np.zeros((0, 8), np.int64))
    >>> len(log)
    0
    """

    cluster: Cluster
    options: Longhorn
    entries: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def kind(self) -> NDArray[np.int64]:
        """Kind of each action: 1 add, 2 delete, 3 drop; (n,) int64."""
        return self.entries[:, 0]

    @property
    def volume(self) -> NDArray[np.int64]:
        """Volume of each action, (n,) int64."""
        return self.entries[:, 1]

    @property
    def disk(self) -> NDArray[np.int64]:
        """Disk of each action, (n,) int64: a node of the cluster."""
        return self.entries[:, 3]

    @property
    def reason(self) -> NDArray[np.int64]:
        """Code in ``REASONS`` of each action, (n,) int64."""
        return self.entries[:, 4]

    @cached_property
    def names(self) -> ReplicaNames:
        """Names of all replicas, new ones included."""
        return ReplicaNames(system_of(self.cluster).replicas.names, self.cluster.partitions.names)

    @property
    def replica(self) -> NDArray[np.int64]:
        """Slot in the cluster's placement of each replica that goes, (n,) int64; -1 for new ones.

        A replica that came on the way is new, and stays so when it goes.
        """
        return self.names.slot(self.entries[:, 7])

    def explain(self, i: int) -> Action:
        """Explain one action: go there from the beginning, and decide again.

        Parameters
        ----------
        i : int
            Number of the action.

        Returns
        -------
        Action
            With what led to it.
        """
        from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance

        work = AutoBalance(self.cluster, self.options)
        work.again(replace(self, entries=self.entries[:i]))
        return work.next_action(int(self.volume[i]))

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield the actions in words.

        Yields
        ------
        tuple of (str, str, str, str, str)
            Kind, volume, replica, disk, reason.
        """
        volumes, nodes = self.cluster.partitions.names, self.cluster.nodes.names
        for entry in self.entries.tolist():
            kind, volume, _, disk, reason, _, _, rank = entry
            name = self.names.name(volume, rank)
            yield KINDS[kind], volumes[volume], name, nodes[disk], REASONS[reason]
