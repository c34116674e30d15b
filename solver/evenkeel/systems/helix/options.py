"""Options of Helix's methods."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.options import Options
from evenkeel.model.assignment import Assignment
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import entries_of, items_of
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import check_text, check_truth, check_whole, is_whole

# as many replicas as there are nodes that may hold them
ANY_LIVEINSTANCE: Literal["ANY_LIVEINSTANCE"] = "ANY_LIVEINSTANCE"


# from partitions, tree and replicas by state to nodes, as ``systems.helix.crush.crush``
Base = Callable[[Any, Any, Sequence[int]], NDArray[np.int32]]


# the states of Helix's model of that name
MASTER_SLAVE: Mapping[str, int | str] = {"MASTER": 1, "SLAVE": "R"}


@known_fields
@dataclass(frozen=True, kw_only=True)
class States(Options):
    """What Helix's methods have in common: in which states the replicas of a partition are.

    Parameters
    ----------
    states : mapping of str to int or str
        States by falling priority, each with how many replicas are in it: a number, ``"R"`` for
        those that are left, or ``"N"`` for one on every node. The column of a replica decides its
        state.
    replicas : "ANY_LIVEINSTANCE", optional
        A replica on every node that may hold one, whatever the partitions want.
    group_states : mapping of str to mapping, optional
        Groups with other ``states`` than those; by default the state models of the resources that
        a cluster was read from, unless ``states`` is given.

    Examples
    --------
    >>> import evenkeel as ek
    >>> isinstance(ek.options.Crushed(), States)
    True
    """

    states: Mapping[str, int | str] = field(default_factory=lambda: dict(MASTER_SLAVE))
    replicas: Literal["ANY_LIVEINSTANCE"] | None = None
    group_states: Mapping[str, Mapping[str, int | str]] | None = None

    def __post_init__(self) -> None:
        faults = FaultList()
        _check_states(faults, "options.states", self.states)
        groups = {} if self.group_states is None else self.group_states
        for name, states in entries_of(faults, "options.group_states", groups).items():
            _check_states(faults, f"options.group_states[{name!r}]", states)
        for name in ("repaired", "force_converge", "merge"):
            check_truth(faults, f"options.{name}", getattr(self, name, True))
        if (zone := getattr(self, "zone", None)) is not None:
            check_text(faults, "options.zone", zone)
        if self.replicas not in (None, ANY_LIVEINSTANCE):
            faults.add("options.replicas", self.replicas, f"must be {ANY_LIVEINSTANCE!r} or None")
        self._check(faults)
        faults.raise_if_any()

    def _check(self, faults: FaultList) -> None:
        """Note what is wrong with what a class adds."""


def _check_states(faults: FaultList, path: str, states: Mapping[str, int | str]) -> None:
    listed = entries_of(faults, path, states)
    if not listed and not faults.about(path):
        faults.add(path, states, "names no state")
    for name, count in listed.items():
        counted = is_whole(count) and int(count) >= 0
        if not counted and not (isinstance(count, str) and count in ("R", "N")):
            faults.add(f"{path}[{name!r}]", count, "must be a number, 'R' or 'N'")


@known_fields
@dataclass(frozen=True, kw_only=True)
class Crush(States):
    """Options of ``helix_crush``.

    Parameters
    ----------
    states : mapping of str to int or str
        States by falling priority, each with its number of replicas, ``"R"`` or ``"N"``.
    replicas : "ANY_LIVEINSTANCE", optional
        A replica on every node that may hold one.
    group_states : mapping of str to mapping, optional
        Groups with other ``states`` than those; by default the state models of the resources that
        a cluster was read from, unless ``states`` is given.
    zone : str, optional
        Tier of the fault zones; ``"node"`` where every node is one. By default the widest tier
        over which a partition's rule spreads its replicas.

    Examples
    --------
    >>> Crush(zone="rack").states
    {'MASTER': 1, 'SLAVE': 'R'}
    """

    zone: str | None = None


@known_fields
@dataclass(frozen=True, kw_only=True)
class MultiRound(Crush):
    """Options of ``helix_multiround``.

    Parameters
    ----------
    states : mapping of str to int or str
        States by falling priority, each with its number of replicas, ``"R"`` or ``"N"``.
    replicas : "ANY_LIVEINSTANCE", optional
        A replica on every node that may hold one.
    group_states : mapping of str to mapping, optional
        Groups with other ``states`` than those; by default the state models of the resources that
        a cluster was read from, unless ``states`` is given.
    zone : str, optional
        Tier of the fault zones; by default the widest over which the rule spreads replicas.
    repaired : bool
        Whether it also works without fault zones, and gives a group CRUSH's lists where there are
        too few of them; the original gives it none.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 4, load=[[1.0]] * 6, replicas=2, domains={"zone": [*"aabb"]}
    ... )
    >>> found = ek.solve(c, "helix_multiround", options=MultiRound(zone="zone"))
    >>> found.placement.node.reshape(6, 2)[:2].tolist()
    [[0, 2], [1, 3]]
    """

    repaired: bool = False


@known_fields
@dataclass(frozen=True, kw_only=True)
class Crushed(Crush):
    """Options of ``helix_crushed``.

    Parameters
    ----------
    states : mapping of str to int or str
        States by falling priority, each with its number of replicas, ``"R"`` or ``"N"``.
    replicas : "ANY_LIVEINSTANCE", optional
        A replica on every node that may hold one.
    group_states : mapping of str to mapping, optional
        Groups with other ``states`` than those; by default the state models of the resources that
        a cluster was read from, unless ``states`` is given.
    zone : str, optional
        Tier of the fault zones; by default the widest over which the rule spreads replicas.
    base : "crush", "multiround" or callable
        The strategy that is made even.
    repaired : bool
        Whether faults of the original are repaired: all groups are dealt as one, the ring
        begins again where it ends, and an unlucky partition does not send its whole group back to
        the base strategy. Nodes are then balanced over all groups, and no longer in each by itself.

    Examples
    --------
    >>> Crushed(repaired=True).base
    'crush'
    """

    base: Literal["crush", "multiround"] | Base = "crush"
    repaired: bool = False

    def _check(self, faults: FaultList) -> None:
        if self.base not in ("crush", "multiround") and not callable(self.base):
            faults.add("options.base", self.base, "must be 'crush', 'multiround' or callable")


@known_fields
@dataclass(frozen=True, kw_only=True)
class Auto(States):
    """Options of ``helix_auto``.

    Parameters
    ----------
    states : mapping of str to int or str
        States by falling priority, each with its number of replicas, ``"R"`` or ``"N"``.
    replicas : "ANY_LIVEINSTANCE", optional
        A replica on every node that may hold one.
    group_states : mapping of str to mapping, optional
        Groups with other ``states`` than those; by default the state models of the resources that
        a cluster was read from, unless ``states`` is given.
    most : int, optional
        Replicas of one group that a node may hold at most.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 6, replicas=2)
    >>> ek.solve(c, "helix_auto", options=Auto()).placement.node[:4].tolist()
    [0, 1, 1, 2]
    """

    most: int | None = None

    def _check(self, faults: FaultList) -> None:
        if self.most is not None:
            check_whole(faults, "options.most", self.most, 1)


@known_fields
@dataclass(frozen=True, kw_only=True)
class Waged(States):
    """Options of ``helix_waged``.

    Parameters
    ----------
    states : mapping of str to int or str
        States by falling priority, each with its number of replicas, ``"R"`` or ``"N"``.
    replicas : "ANY_LIVEINSTANCE", optional
        A replica on every node that may hold one, as far as the fault zones allow.
    group_states : mapping of str to mapping, optional
        Groups with other ``states`` than those; by default the state models of the resources that
        a cluster was read from, unless ``states`` is given.
    zone : str, optional
        Tier of the fault zones; ``"node"`` where every node is one. By default the widest tier
        over which the rules spread replicas.
    scope : "global", "partial", "emergency" or "overwrite"
        How much is placed anew. Global: a baseline on all nodes, dead ones too, that keeps what is
        valid except for ``changes``. Partial: where the current assignment differs
        from the baseline. Emergency: what is on nodes that will not be back in time. Overwrite:
        what partitions lack that have too few live replicas.
    current : Assignment or Placement, optional
        What to start from: the last baseline for a global run, else the best possible. Where the
        solve starts if not given.
    baseline : Assignment or Placement, optional
        What a partial run comes closer to.
    changes : collection of str
        For a global run what changed since the last baseline: ``"cluster"`` or ``"nodes"``, and
        everything is placed anew; ``"groups"``, and groups are.
    changed_groups : sequence of str, optional
        Which groups are; all if not given.
    evenness, less_movement : int
        Factors of what speaks for even nodes, and for staying: 0 to 1000.
    force_converge : bool
        Whether coming closer to the baseline goes before all else.
    scoring_keys : sequence of str
        Dimensions to be even in; all if there is none.
    max_per_group : int or mapping of str to int, optional
        Replicas of one group that a node may hold at most: of every group, or of those named.
    merge : bool
        Whether an overwrite is laid over the current assignment, and not given by itself.

    Examples
    --------
    >>> Waged(scope="emergency").evenness
    1
    """

    zone: str | None = None
    scope: Literal["global", "partial", "emergency", "overwrite"] = "global"
    current: Assignment | Placement | None = None
    baseline: Assignment | Placement | None = None
    changes: Collection[str] = ()
    changed_groups: Sequence[str] | None = None
    evenness: int = 1
    less_movement: int = 1
    force_converge: bool = False
    scoring_keys: Sequence[str] = ()
    max_per_group: int | Mapping[str, int] | None = None
    merge: bool = True

    def _check(self, faults: FaultList) -> None:
        scopes = ("global", "partial", "emergency", "overwrite")
        if self.scope not in scopes:
            faults.add("options.scope", self.scope, f"must be one of {', '.join(scopes)}")
        if self.scope == "partial" and self.baseline is None:
            faults.add("options.baseline", None, "a partial run needs one")
        for name in ("current", "baseline"):
            given = getattr(self, name)
            if not isinstance(given, Assignment | Placement | None):
                message = "must be an Assignment or a Placement"
                faults.add(f"options.{name}", type(given).__name__, message)
        for change in items_of(faults, "options.changes", self.changes):
            if change not in ("cluster", "nodes", "groups"):
                faults.add("options.changes", change, "must be 'cluster', 'nodes' or 'groups'")
        for name in ("evenness", "less_movement"):
            check_whole(faults, f"options.{name}", getattr(self, name), 0, 1000)
        for name, given in (
            ("changed_groups", self.changed_groups), ("scoring_keys", self.scoring_keys),
        ):  # fmt: skip
            for i, one in enumerate(() if given is None else items_of(
                faults, f"options.{name}", given
            )):  # fmt: skip
                check_text(faults, f"options.{name}[{i}]", one)
        limits = self.max_per_group
        for name, most in (limits if isinstance(limits, Mapping) else {"": limits}).items():
            path = f"options.max_per_group[{name!r}]" if name else "options.max_per_group"
            if most is not None:
                check_whole(faults, path, most)
