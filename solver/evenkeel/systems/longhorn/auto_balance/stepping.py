"""Run auto-balance step by step until convergence, with a reason for each action."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import joined
from evenkeel.methods.shared.stopping import Clock
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.longhorn.auto_balance.compile import (
    BARRED,
    IDLE,
    MAY_RETURN,
    Bundle,
    ReplicaNames,
    bundle,
    system_of,
)
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn
from evenkeel_kernels.longhorn import auto_balance as kernel
from evenkeel_kernels.longhorn import place_replica as place
from evenkeel_kernels.longhorn import stages as leave
from evenkeel_kernels.longhorn import state as marks
from evenkeel_kernels.longhorn.place_replica import NOTHING

# Kinds of action. A dropped replica had failed, and has been replaced.
KINDS = {0: "nothing", kernel.ADD: "add", kernel.DELETE: "delete", kernel.DROP: "drop"}

# what asks for an action, by code
REASONS: Mapping[int, str] = {
    place.NOTHING: "",
    place.ZONE_LEAST: "zones without a replica could hold one (least-effort, zones)",
    place.HOST_LEAST: "hosts without a replica could hold one (least-effort, nodes)",
    place.HOST_BEST: "some hosts hold two or more replicas more than others (best-effort, nodes)",
    place.ZONE_BEST: "some zones hold two or more replicas more than others (best-effort, zones)",
    place.PRESSURE: "replicas stand on disks under pressure (best-effort, disk pressure)",
    place.REPLENISH: "replicas are missing or to leave (replenishment)",
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

# Tiers of hosts, by code. Unused hosts in used zones are in tiers 3 and 4 of Longhorn.
TIERS: Mapping[int, str] = {
    0: "",
    place.UNUSED: "1: unused hosts in unused zones",
    place.FREED: "2: hosts and zones that evictions free",
    place.UNUSED_HOST: "unused hosts in used zones",
    place.FREED_HOST: "3: hosts that evictions free",
    place.USED_HOST: "4: used hosts",
}

# why a disk is no candidate, by code
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


LOGGED = 1024  # actions that one slice of a run may log: they take some hundredths of a second
BUDGET = 500_000  # candidates that one slice of a run may look at, which takes as long


class AutoBalance:
    """A Longhorn system at work on its replicas.

    Parameters
    ----------
    cluster : Cluster
        With a Longhorn system; it stays as it is.
    options : Longhorn, optional
        Settings that win over the stored ones, and the order of stages.

    Raises
    ------
    InvalidInput
        If the cluster has no Longhorn system.

    Examples
    --------
    >>> from evenkeel.systems.longhorn.auto_balance.intake import cluster_of
    >>> from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume
    >>> hosts = [Host(name=n, disks=[Disk(name="d", maximum=1000)]) for n in ("a", "b")]
    >>> held = [Replica(name=f"r{i}", host="a", disk="d") for i in range(2)]
    >>> volume = Volume(name="v", size=10, replicas=held, number_of_replicas=2, attached_to="a")
    >>> options = Longhorn(replica_auto_balance="least-effort", replica_soft_anti_affinity=True)
    >>> work = AutoBalance(cluster_of(hosts, [volume]), options)
    >>> first = work.step("v")
    >>> first.kind, first.disk, first.why
    ('add', 'b/d', 'hosts without a replica could hold one (least-effort, nodes)')
    >>> work.step("v").replica, work.step("v").why
    ('r0', 'it is balanced')
    """

    def __init__(self, cluster: Cluster, options: Longhorn | None = None) -> None:
        self.cluster = cluster
        self.options = Longhorn() if options is None else options
        self.settings = system_of(cluster).settings.overridden(self.options)
        self._bundle = bundle(cluster, self.options)
        self._entries: list[NDArray[np.int64]] = []
        self._cursor = np.zeros(2, np.int64)

    @property
    def bundle(self) -> Bundle:
        """The arrays as they stand now."""
        return self._bundle

    @property
    def log(self) -> ActionLog:
        """What was done so far."""
        entries = [np.zeros((0, kernel.FIELDS), np.int64), *self._entries]
        return ActionLog(self.cluster, self.options, np.concatenate(entries))

    @property
    def work(self) -> int:
        """Candidates looked at so far."""
        return int(self._bundle.state.work[0])

    def again(self, log: ActionLog) -> None:
        """Apply a log that began at the same cluster.

        Parameters
        ----------
        log : ActionLog
            Done without deciding anything.
        """
        made, entries = self._bundle, log.entries.copy()
        kernel.replay(made.problem, made.state, entries)
        self._entries.append(entries)

    def next_action(self, volume: str | int) -> Action:
        """Find what would be done next to a volume, and do not do it.

        Parameters
        ----------
        volume : str or int
            Its name or number.

        Returns
        -------
        Action
            With what led to it; of the kind "nothing" where the volume is at rest.

        Raises
        ------
        InvalidInput
            If there is no such volume.
        """
        return self._action(self._decided(self._number(volume)))

    def step(self, volume: str | int) -> Action:
        """Do what is to be done next to a volume.

        Parameters
        ----------
        volume : str or int
            Its name or number.

        Returns
        -------
        Action
            What was done.

        Raises
        ------
        InvalidInput
            If there is no such volume.
        """
        entry = self._decided(self._number(volume))
        action = self._action(entry)
        if entry[0]:
            made = self._bundle
            kernel.act(made.problem, made.state, entry)
            self._entries.append(entry[None, :])
        return action

    def slice(self, budget: int = BUDGET, most: int = LOGGED) -> bool:
        """Go on, volume after volume, a pass each, until all is at rest or the slice is over.

        Parameters
        ----------
        budget : int
            Most candidates that are evaluated.
        most : int
            Actions to take.

        Returns
        -------
        bool
            Whether all is at rest.
        """
        made = self._bundle
        log = np.zeros((most, kernel.FIELDS), np.int64)
        done, rests = kernel.run(made.problem, made.state, made.room, log, self._cursor, budget)
        self._entries.append(log[:done])
        return bool(rests)

    def run(self) -> ActionLog:
        """Go on until nothing more happens.

        Returns
        -------
        ActionLog
            All that was done.
        """
        while not self.slice():
            pass
        return self.log

    def _number(self, volume: str | int) -> int:
        names = self.cluster.partitions.names
        faults = FaultList()
        if isinstance(volume, str):
            if volume not in names:
                faults.add("volume", volume, "unknown volume")
            faults.raise_if_any()
            return names.index(volume)
        if not 0 <= volume < len(names):
            faults.add("volume", volume, f"must be 0 to {len(names) - 1}")
        faults.raise_if_any()
        return volume

    def _decided(self, v: int) -> NDArray[np.int64]:
        made = self._bundle
        entry = np.zeros(kernel.FIELDS, np.int64)
        kernel.next_action(made.problem, made.state, v, made.room, entry)
        return entry

    def _action(self, entry: NDArray[np.int64]) -> Action:
        """Put a decision into words, while the working space still shows how it was made."""
        kind, v, _, disk, reason, asked, tier = (int(field) for field in entry[:7])
        nodes = self.cluster.nodes.names
        placing = kind == kernel.ADD or (kind == 0 and reason != NOTHING)
        return Action(
            kind=KINDS[kind],
            volume=self.cluster.partitions.names[v],
            replica=self._bundle.names.name(v, int(entry[7])) if kind else None,
            disk=nodes[disk] if kind else None,
            why=REASONS[reason] if kind else self._at_rest(v, reason, disk),
            asked=asked,
            tier=TIERS[tier],
            candidates=self._candidates(v, kind, placing),
            kept_out=self._kept_out() if placing else {},
            scores=self._scores(v) if kind == kernel.ADD else {},
            on_hosts=self._on_hosts(v),
        )

    def _candidates(self, v: int, kind: int, placing: bool) -> tuple[str, ...]:
        made, nodes = self._bundle, self.cluster.nodes.names
        if placing:
            fit = np.flatnonzero(made.room.verdict == 0)
            return tuple(nodes[d] for d in fit.tolist())
        if kind != kernel.DELETE:
            return ()
        first = int(made.state.first[v])
        listed = first + np.flatnonzero(made.room.listed[: int(made.state.first[v + 1]) - first])
        return tuple(self._bundle.names.name(v, rank) for rank in made.state.rank[listed].tolist())

    def _kept_out(self) -> dict[str, int]:
        verdict = self._bundle.room.verdict
        count = Counter(VERDICTS[code] for code in verdict[verdict > 0].tolist())
        return dict(count.most_common())

    def _scores(self, v: int) -> dict[str, float]:
        made = self._bundle
        hosts = system_of(self.cluster).hosts.names
        scores = host_scores(made.room.host_total, made.room.host_spread, made.problem.size[v])
        return {hosts[h]: scores[h] for h in np.flatnonzero(made.room.host_fit).tolist()}

    def _on_hosts(self, v: int) -> dict[str, int]:
        made, hosts = self._bundle, system_of(self.cluster).hosts.names
        row = slice(int(made.state.first[v]), int(made.state.first[v + 1]))
        serving = made.state.marks[row] & (marks.FAILED | marks.EVICTING) == 0
        held = made.state.node[row][serving & (made.state.node[row] >= 0)]
        count = np.bincount(made.problem.host[held], minlength=len(hosts))
        return {hosts[h]: int(count[h]) for h in np.flatnonzero(count).tolist()}

    def _at_rest(self, v: int, reason: int, disk: int) -> str:
        """Say why nothing is done to a volume; ``reason`` asks in vain for a replica on a disk."""
        made, problem = self._bundle, self._bundle.problem
        if made.idle[v]:
            return IDLE[made.idle[v]]
        if reason and disk >= 0:
            return f"nothing would be gained, though {REASONS[reason]}"
        if reason:
            return f"no disk may take another replica, though {REASONS[reason]}"
        row = slice(int(made.state.first[v]), int(made.state.first[v + 1]))
        there = made.state.marks[row][made.state.node[row] >= 0]
        usable = int(np.count_nonzero(there & (marks.FAILED | marks.EVICTING) == 0))
        if usable < problem.wanted[v]:
            if not problem.rebuilds:
                return "rebuilds are switched off"
            waits = bool((there & marks.WAITING).any())
            return MAY_RETURN if waits else "no healthy replica to copy from"
        if usable > problem.wanted[v]:
            return "it has more replicas than are wanted, and none that should go"
        if problem.effort[v] == marks.DISABLED:
            return "auto-balance is disabled"
        if not problem.whole[v]:
            return "the volume is not healthy"
        return "it is balanced"


def host_scores(total: NDArray[np.int64], spread: NDArray[np.int64], size: int) -> dict[int, float]:
    """Return the balance score of every group that fits: (max - min) / mean after placing there."""
    there = total[total >= 0]
    left = int(there.sum()) - int(size)
    return {
        g: int(spread[g]) * len(there) / left if left > 0 else float("inf")
        for g in np.flatnonzero(spread >= 0).tolist()
    }


def next_action(cluster: Cluster, volume: str | int, options: Longhorn | None = None) -> Action:
    """Find what Longhorn would do next to a volume.

    Parameters
    ----------
    cluster : Cluster
        With a Longhorn system.
    volume : str or int
        Name or number of the volume.
    options : Longhorn, optional
        Settings that win over the stored ones, and the order of stages.

    Returns
    -------
    Action
        With what led to it.

    Raises
    ------
    InvalidInput
        If the cluster has no Longhorn system, or no such volume.

    Examples
    --------
    >>> from evenkeel.systems.longhorn.auto_balance import Disk, Host, Replica, Volume, cluster_of
    >>> hosts = [Host(name="a", disks=[Disk(name="d", maximum=1000)])]
    >>> held = [Replica(name="r", host="a", disk="d")]
    >>> cluster = cluster_of(hosts, [Volume(name="v", size=10, replicas=held)])
    >>> next_action(cluster, "v").kind
    'nothing'
    """
    return AutoBalance(cluster, options).next_action(volume)


def nodes_in_slots(work: AutoBalance) -> tuple[NDArray[np.int32], int]:
    """Put what stands at the end of a run into the slots of its cluster."""
    made, first = work.bundle, work.cluster.placement.first
    node = made.state.node[made.slot].copy()
    beyond = made.state.node.copy()
    beyond[made.slot] = -1
    extra, free = np.flatnonzero(beyond >= 0), np.flatnonzero(node < 0)
    extra_owner, free_owner = made.state.owner[extra], work.cluster.placement.owner[free]
    extra_turn, free_turn = _turns(extra_owner), _turns(free_owner)
    width = np.int64(max(int(np.diff(made.state.first).max(initial=0)), 1))
    wanted, open_to = extra_owner * width + extra_turn, free_owner * width + free_turn
    place = np.searchsorted(open_to, wanted)
    found = place < len(open_to)
    found[found] = open_to[place[found]] == wanted[found]
    node[free[place[found]]] = beyond[extra[found]]
    assert len(node) == first[-1]
    return node, int(np.count_nonzero(~found))


def one_by_one(cluster: Cluster, options: Longhorn, clock: Clock) -> float:
    """Return the bytes that Longhorn's own rule copies, volume by volume; asks the clock."""
    work = AutoBalance(cluster, replace(options, scope="volume"))
    clock.ask()
    while not work.slice():
        clock.ask()
    node, _ = nodes_in_slots(work)
    before = cluster.placement
    moved = np.flatnonzero(joined(before, before.replaced(node, before.leader)))
    data = cluster.partitions.load.voter[:, cluster.bytes_dimension]
    return float(data[before.owner[moved]].sum())


def _turns(owner: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count up within each run of equal owners, which are sorted."""
    at = np.arange(len(owner))
    return at - np.searchsorted(owner, owner)
