"""The interface through which plans run on a system: its commands, files and checks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.systems.folders.form import Command, Setting
from evenkeel.systems.registry import find, is_known, parts_for

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
    from evenkeel.systems.documents import Document


class Standing(NamedTuple):
    """Where one partition is seen: its nodes, who leads ("" for none), whether it is copied."""

    nodes: Sequence[str]
    leader: str
    copying: bool
    behind: Sequence[str] = ()  # nodes that live and are not in sync


class Observed(NamedTuple):
    """What is seen of a system: which of its nodes live, and where partitions stand."""

    alive: Mapping[str, bool]
    standing: Mapping[str, Standing]
    # labels of nodes by tier, where they are seen
    places: Mapping[str, Mapping[str, str]] = MappingProxyType({})


# ``observe(documents)``: what is seen of all partitions
Observing = Callable[["Sequence[Document]"], Observed]


def names_all_nodes(format: str, documents: "Sequence[Document]") -> bool:
    """Return whether dumps name every node of their system, so that any other is gone."""
    if not is_known(format):
        return False
    system = find(format)
    carrier = system.carrier
    # other dumps may leave out nodes that hold nothing
    return carrier is not None and carrier.lists_nodes(parts_for(system, documents))


def observed(live: Cluster) -> Observed:
    """Return what a cluster that was read shows of its partitions."""
    names = [*live.nodes.names]
    placement = live.placement
    first, node = placement.first.tolist(), placement.node.tolist()
    arriving = placement.flags & int(Flag.INCOMING) > 0
    synced = placement.flags & int(Flag.CAUGHT_UP) > 0
    reported = np.bincount(placement.owner[synced], minlength=len(placement)) > 0
    lagging = reported[placement.owner] & ~synced & ~arriving & live.nodes.alive[placement.node]
    incoming, behind = arriving.tolist(), lagging.tolist()
    leader = placement.leader_node.tolist()
    standing = {}
    for p, name in enumerate(live.partitions.names):
        held = [k for k in range(first[p], first[p + 1]) if node[k] >= 0]
        standing[name] = Standing(
            [names[node[k]] for k in held],
            names[leader[p]] if leader[p] >= 0 else "",
            any(incoming[k] for k in held),
            [names[node[k]] for k in held if behind[k]],
        )
    alive = dict(zip(names, live.nodes.alive.tolist(), strict=True))
    return Observed(alive, standing, places_of(live, range(len(names))))


def places_of(cluster: Cluster, nodes: Iterable[int]) -> dict[str, dict[str, str]]:
    """Return the labels that nodes have in each tier, by name."""
    topology, which = cluster.topology, [*nodes]
    rows = zip(topology.tiers, topology.label, topology.label_names, strict=True)
    return {
        tier: {cluster.nodes.names[n]: names[row[n]] for n in which if row[n] >= 0}
        for tier, row, names in rows
    }


class Change(NamedTuple):
    """What one wave does to a partition; nodes by index in the order of slots, -1 for none."""

    partition: int
    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    led: int  # the node that leads before, -1 for none
    leads: int  # the node that leads after
    # whether the partition is then as it was to begin with, before anything was planned
    restored: bool
    # the nodes that are new, in the order of their slots; all files of a folder ask for them
    joins: Sequence[int]
    # the disk of each node of it afterwards, where these are known; what stays keeps its own
    lies: Mapping[int, int] = MappingProxyType({})

    first: int = -1  # the node that becomes first in its list, where the leader stays; -1 elsewhere

    @property
    def leaves(self) -> list[int]:
        """The nodes that are gone, in the order of their slots."""
        return comers(self.after, self.before)


def comers(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the nodes that a partition has after, and has not before, in the order of slots."""
    return [n for n in after if n >= 0 and n not in before]


Wave = Sequence[Change]  # what may be handed out together, once the wave before has finished


class Answer(NamedTuple):
    """What a check finds in the output of a command."""

    done: bool
    message: str  # what is waited for or is wrong; of what is done a note, or the value of a hold


# ``check(output)``: whether a command has reached what it is run for
Check = Callable[[str], Answer]


def equals(wanted: str) -> Check:
    """Return the check for one answer."""

    def check(output: str) -> Answer:
        done = output.strip() == wanted
        return Answer(done, "" if done else f"the answer is {output.strip()[:200]!r}")

    return check


@dataclass(frozen=True)
class Orders:
    """What carries a wave out."""

    commands: list[Command] = field(default_factory=list)
    # files that commands name, by their paths in the folder
    files: dict[str, bytes] = field(default_factory=dict)
    # commands that wait for what was ordered; they may be run at any time
    ends: list[Command] = field(default_factory=list)


def stem(number: int, waves: int) -> str:
    """Return how the files of a wave begin."""
    return f"waves/{numbered(number, waves)}."


def numbered(wave: int, waves: int) -> str:
    """Return the number of a wave as its files begin.

    >>> numbered(3, 12)
    '03'
    """
    return str(wave).zfill(len(str(waves)))


def anybody(change: Change) -> int:
    """Return -1: who leads is the system's own affair."""
    return -1


def all_nodes(documents: "Sequence[Document]") -> bool:
    """Return True: dumps name every node there is."""
    return True


def as_wanted(cluster: Cluster) -> NDArray[np.int32]:
    """Return the numbers of replicas that are wanted: no command changes what a system lists."""
    return cluster.partitions.replicas


@dataclass(frozen=True, eq=False, kw_only=True)
class Carrier:
    """How a system carries out a plan."""

    # ``orders(cluster, waves)``: what carries each wave out. A wave may be ordered twice.
    orders: Callable[[Cluster, Sequence[Wave]], Sequence[Orders]]
    look: "Callable[[Plan], Sequence[Command]]"  # ``look(plan)``: the commands that write a dump
    checks: Mapping[str, Check] = field(default_factory=dict)  # the checks that commands name
    settings: tuple[Setting, ...] = ()  # what commands use of the environment
    # what a person has to know before it is run, a sentence or two each
    notes: tuple[str, ...] = ()
    # run before the first wave; each records what gives back what it changes
    hold: tuple[Command, ...] = ()
    still: str = ""  # what the system is left with while something is held
    # ``leader(change)``: the node that leads after it, where the system can be held to that
    leader: Callable[[Change], int] = lambda change: change.leads
    # ``observe(documents)``: where partitions are seen, where that takes less than to read a
    # cluster
    observe: "Observing | None" = None
    # ``lists_nodes(documents)``: whether they name every node there is, so that one that they do
    # not name is gone
    lists_nodes: "Callable[[Sequence[Document]], bool]" = lambda documents: False
    # whether dumps list replicas on nodes that are down; else a partition is shown without them
    lists_down: bool = True
    # ``given(plan)``: the values of settings that the plan knows
    given: "Callable[[Plan], Mapping[str, str]]" = lambda plan: {}
    # ``stages(cluster, waves)``: the waves that the system needs for those of the plan
    stages: Callable[[Cluster, Sequence[Wave]], "Sequence[Wave]"] = lambda cluster, waves: waves
    # ``first(plan)``: what is run once, before anything is looked at
    first: "Callable[[Plan], Orders]" = lambda plan: Orders()
    # ``inside(plan)``: moves inside nodes, those before the first wave and those after the last
    inside: "Callable[[Plan], tuple[Orders, Orders]]" = lambda plan: (Orders(), Orders())
    # whether the commands hold copies to all the bytes per second that the plan allows
    keeps_pace: bool = False
    # where they do not: what does, in a sentence
    pace: str = "The system copies at the pace that it is set to."
    # how copies that are on their way and lead nowhere any more are dropped, in a sentence; ""
    # where the system does so by itself
    drops: str = ""
    # whether the system writes bytes in powers of 1,024
    binary: bool = False
    # ``shares(plan)``: what the system shows of nodes, and how much of it before and after
    shares: "Callable[[Plan], Sequence[tuple[str, float, float]]]" = lambda plan: ()
    # ``listed(cluster)``: how many replicas the system lists for each partition, (P,); None where
    # it lists no number beside the replicas themselves
    listed: Callable[[Cluster], NDArray[np.int32]] | None = None

    def gives_up(self, cluster: Cluster) -> NDArray[np.bool_]:
        """Return the partitions of which a replica that was added can be given up again, (P,)."""
        if self.listed is None:
            return np.ones(len(cluster.partitions), np.bool_)
        # replicas are given up where another number is wanted; others that were short of replicas
        # before stay as the plan leaves them, on the way back, too
        return np.not_equal(self.listed(cluster), cluster.partitions.replicas, dtype=np.bool_)
