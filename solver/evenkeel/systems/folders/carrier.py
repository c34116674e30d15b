"""What a system's room says about carrying a plan out: its files, its commands, its words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evenkeel.model.cluster import Cluster

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
    from evenkeel.systems.documents import Document
    from evenkeel.systems.folders.observing import Observing


class Change(NamedTuple):
    """What one wave does to a partition; nodes by index in the order of slots, -1 for none."""

    partition: int
    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    led: int
    """The node that leads before, -1 for none."""

    leads: int
    """The node that leads after."""

    restored: bool
    """Whether the partition is then as it was to begin with, before anything was planned."""

    joins: Sequence[int]
    """The nodes that are new, in the order of their slots; all files of a folder ask for them."""

    @property
    def leaves(self) -> list[int]:
        """The nodes that are gone, in the order of their slots."""
        return comers(self.after, self.before)


def comers(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the nodes that a partition has after, and has not before, in the order of slots."""
    return [n for n in after if n >= 0 and n not in before]


Wave = Sequence[Change]
"""What may be handed out together, once the wave before has finished."""


class Setting(NamedTuple):
    """A variable of the environment that ``run.sh`` heeds."""

    name: str
    default: str
    meaning: str


def as_planned(change: Change) -> int:
    """Return who leads after a change where a system does as it is told."""
    return change.leads


def anybody(change: Change) -> int:
    """Return -1: who leads is the system's own affair."""
    return -1


def nothing_known(plan: "Plan") -> Mapping[str, str]:
    """Return no values: all settings are the operator's."""
    return {}


def own_pace(plan: "Plan") -> bool:
    """Return False: the system copies at its own pace."""
    return False


def at_once(wave: Wave) -> "Sequence[Wave]":
    """Return a wave as the only one: what it does is ordered together."""
    return [wave]


def some_nodes(documents: "Sequence[Document]") -> bool:
    """Return False: a node that dumps do not name may be there and hold nothing."""
    return False


def all_nodes(documents: "Sequence[Document]") -> bool:
    """Return True: dumps name every node there is."""
    return True


def nothing_beside(plan: "Plan") -> Mapping[str, bytes]:
    """Return no files."""
    return {}


@dataclass(frozen=True)
class Carrier:
    """How a system carries out a plan.

    Parameters
    ----------
    files : callable
        ``files(cluster, waves)``: of each wave its files, by what stands behind its number.
    shell : str
        Functions for ``run.sh``: ``take`` writes what guards read into the folder ``$dump``;
        ``apply FILE`` orders a wave, whose files begin with ``FILE``, and may be called twice;
        ``settle FILE`` waits until the system says that it has ended, where it says so; and where
        something is to be held while a plan is carried out, ``hold`` keeps in ``$held`` what was
        set, and ``release`` gives it back; ``still`` says what is held. What these change may be
        changed twice, and ``$held`` may be copied into another folder.
    settings : tuple of Setting
        What the functions ask of the environment.
    notes : tuple of str
        What a person has to know before it is run, a sentence or two each.
    leader : callable
        ``leader(change)``: the node that leads after it, where the system can be held to that.
    observe : callable, optional
        ``observe(documents)``: where partitions are seen, where that takes less than to read
        a cluster.
    lists_nodes : callable
        ``lists_nodes(documents)``: whether they name every node there is, so that one that they do
        not name is gone.
    lists_down : bool
        Whether dumps list replicas on nodes that are down; else a partition is shown without them.
    given : callable
        ``given(plan)``: the values of settings that the plan knows.
    stages : callable
        ``stages(wave)``: the waves that the system needs for one wave of the plan.
    beside : callable
        ``beside(plan)``: files beside the waves, which the functions read.
    keeps_pace : callable
        ``keeps_pace(plan)``: whether the functions hold copies to all the bytes per second that
        the plan allows.
    pace : str
        Where they do not: what does, in a sentence.
    drops : str
        How copies that are on their way and lead nowhere any more are dropped, in a sentence;
        "" where the system does so by itself.
    gives_up : bool
        Whether a replica that was added can be given up again; else what was short of replicas
        before the plan stays as the plan leaves it, on the way back, too.
    """

    files: Callable[[Cluster, Sequence[Wave]], Sequence[Mapping[str, bytes]]]
    shell: str
    settings: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()
    leader: Callable[[Change], int] = as_planned
    observe: "Observing | None" = None
    lists_nodes: "Callable[[Sequence[Document]], bool]" = some_nodes
    lists_down: bool = True
    given: "Callable[[Plan], Mapping[str, str]]" = nothing_known
    stages: Callable[[Wave], "Sequence[Wave]"] = at_once
    beside: "Callable[[Plan], Mapping[str, bytes]]" = nothing_beside
    keeps_pace: "Callable[[Plan], bool]" = own_pace
    pace: str = "The system copies at the pace that it is set to."
    drops: str = ""
    gives_up: bool = True
