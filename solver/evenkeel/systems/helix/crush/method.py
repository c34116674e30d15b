"""The methods of Helix's CRUSH strategies, MultiRoundCRUSH and legacy auto-rebalance.

Each resource is placed on the tree of the nodes that it may use. While nodes are down within their
delay window, a resource is placed twice: on the active nodes (the live nodes and those within their
delay window) and on the live nodes alone. Each preference list combines the two results. A list
fills the slots of its partition from the first; a short list leaves the others empty.

References
----------
Apache Helix, ``DelayedAutoRebalancer``.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.wanted import has_leaders
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.stopping import Progress, StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.helix.crush import crushed, repaired
from evenkeel.systems.helix.crush.legacy_auto import legacy_auto
from evenkeel.systems.helix.crush.resources import Resource, Site, sites
from evenkeel.systems.helix.crush.tree import (
    Base,
    HelixError,
    NotEnoughZones,
    OutOfTime,
    Tree,
    crush,
    multiround,
)
from evenkeel.systems.helix.options import Auto, Crush, Crushed, MultiRound, States


class Answer(NamedTuple):
    """The result of a strategy for one resource."""

    # (P, R) places of nodes in the site, -1 at the end of short lists; None if it gives no answer
    placed: NDArray[np.int32] | None
    note: str  # what a person should know, "" for nothing


STOPPED = Answer(None, "")
"""Answer for a resource skipped after the time limit; one warning counts them."""

Place = Callable[[Site, Tree], Sequence[Answer]]
"""Places the resources of a site on its nodes, of which the tree marks the live ones."""


class Clock:
    """Asks the watch of a request before each group, and keeps its reason to stop."""

    def __init__(self, request: Request) -> None:
        self._watch = request.watch
        self._asked = 0
        self.reason: StopReason | None = None

    def ask(self) -> None:
        """Raise ``OutOfTime`` if there is a reason to stop."""
        if self.reason is None:
            progress = Progress("place", self._asked, self._watch.seconds, 0, 0.0)
            self.reason = self._watch.look(progress)
            self._asked += 1
        if self.reason is not None:
            raise OutOfTime

    def before(self, strategy: Base) -> Base:
        """Let a strategy be asked for only while there is time."""

        def asked(*given: Any) -> NDArray[np.int32]:
            self.ask()
            return strategy(*given)

        return asked


def helix_crush(request: Request) -> Outcome:
    """Place every group by CRUSH."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, Crush)
    return _outcome(request, options, clock, options.zone, _one_by_one(_as_is(clock.before(crush))))


def helix_multiround(request: Request) -> Outcome:
    """Place every group by MultiRoundCRUSH."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, MultiRound)
    if options.repaired:

        def repaired_one(resource: Resource, tree: Tree) -> Answer:
            clock.ask()
            return _repaired_multiround(resource, tree)

        return _outcome(request, options, clock, options.zone, _one_by_one(repaired_one))
    place = _one_by_one(_as_is(clock.before(multiround)))
    return _outcome(request, options, clock, options.zone, place, zoned=True)


def helix_crushed(request: Request) -> Outcome:
    """Place every group by CRUSH-ed."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, Crushed)
    bases: dict[object, Base] = {
        "crush": crush,
        "multiround": repaired.multiround_anywhere if options.repaired else multiround,
    }
    base = bases[options.base] if isinstance(options.base, str) else options.base
    if options.repaired:
        place = _all_together(clock.before(base))
        return _outcome(request, options, clock, options.zone, place)

    def one(resource: Resource, tree: Tree) -> Answer:
        clock.ask()
        found = crushed.crushed(resource.partitions, tree, resource.states, resource.name, base)
        note = f"fell back to the base strategy: {found.fell_back}" if found.fell_back else ""
        return Answer(found.placed, note)

    return _outcome(request, options, clock, options.zone, _one_by_one(one))


def helix_auto(request: Request) -> Outcome:
    """Deal every group from where it is, blind to fault zones and weights."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, Auto)
    start = request.start

    def place(site: Site, tree: Tree) -> Sequence[Answer]:
        at = np.full(len(request.cluster.nodes) + 1, -1)
        # instances that are gone have no states
        there = site.nodes[request.cluster.nodes.alive[site.nodes]]
        at[there] = np.flatnonzero(request.cluster.nodes.alive[site.nodes])
        local = at[start.node]

        def one(resource: Resource, tree: Tree) -> Answer:
            clock.ask()
            current = [local[start.first[p] : start.first[p + 1]] for p in resource.rows]
            held = [row[row >= 0].tolist() for row in current]
            placed = legacy_auto(
                resource.partitions, tree.names, tree.live, resource.states, held, options.most
            )
            return Answer(placed, "")

        return _one_by_one(one)(site, tree)

    return _outcome(request, options, clock, "node", place)


def _as_is(strategy: Base) -> Callable[[Resource, Tree], Answer]:
    """Let a strategy answer for one resource."""

    def one(resource: Resource, tree: Tree) -> Answer:
        return Answer(strategy(resource.partitions, tree, resource.states), "")

    return one


def _repaired_multiround(resource: Resource, tree: Tree) -> Answer:
    try:
        placed = repaired.multiround_anywhere(resource.partitions, tree, resource.states)
    except NotEnoughZones as reason:
        placed = crush(resource.partitions, tree, resource.states)
        return Answer(placed, f"fell back to CRUSH: {reason}")
    return Answer(placed, "")


def _one_by_one(one: Callable[[Resource, Tree], Answer]) -> Place:
    """Place the resources of a site by themselves; one that is refused does not stop the others."""

    def place(site: Site, tree: Tree) -> list[Answer]:
        answers = []
        for resource in site.resources:
            try:
                answers.append(one(resource, tree))
            except OutOfTime:
                answers.append(STOPPED)
            except HelixError as reason:
                answers.append(Answer(None, f"stays as it is: {reason}"))
        return answers

    return place


def _all_together(base: Base) -> Place:
    """Deal the resources of a site as one."""

    def place(site: Site, tree: Tree) -> list[Answer]:
        groups = [repaired.Group(r.name, r.partitions, r.states) for r in site.resources]
        try:
            placed = repaired.crushed_together(groups, tree, base).placed
        except OutOfTime:
            return [STOPPED] * len(groups)
        except HelixError as reason:
            return [Answer(None, f"stays as it is: {reason}")] * len(groups)
        return [Answer(rows, "") for rows in placed]

    return place


def _outcome(
    request: Request,
    options: States,
    clock: Clock,
    zone: str | None,
    place: Place,
    *,
    zoned: bool = False,
) -> Outcome:
    """Place all sites of a cluster, and put the lists into its slots."""
    cluster = request.cluster
    found = sites(cluster, options, zone)
    _check(found, zoned)
    first, start = cluster.placement.first, request.start
    node = np.full(len(start.node), -1, np.int32)
    stays = np.zeros(len(cluster.partitions), np.bool_)
    notes = []
    for site in found:
        answers = _with_delay(cluster, site, place)
        for resource, (placed, note) in zip(site.resources, answers, strict=True):
            if placed is None:
                stays[resource.rows] = True
            else:
                slots = first[resource.rows, None] + np.arange(placed.shape[1])
                node[slots] = crushed.renumbered(placed, site.nodes)
                short = int(np.count_nonzero((placed < 0).any(axis=1)))
                note = note or (f"{short} short lists" if short else "")
            if note:
                notes.append(f"group {resource.name!r} {note}.")
    if clock.reason is not None:
        notes.append(f"Stopped early: {int(stays.sum()):,} partitions stay as they are.")
    beat()
    node = np.where(stays[start.owner], start.node, node)
    leader = np.where(stays, start.leader, leaders(cluster, node)).astype(np.int16)
    node, leader = request.keep_pinned(node, leader)
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=clock.reason or "exhausted",
        message=" ".join(notes),
        warnings=_disabled_warning(cluster, node),
    )


def _check(found: list[Site], zoned: bool) -> None:
    """Refuse a lack of fault zones that are needed."""
    faults = FaultList()
    for site in found:
        if zoned and site.tree.zone_names is None:
            name = site.resources[0].name
            faults.add(f"group[{name!r}]", "node", "needs a tier of fault zones above the nodes")
    faults.raise_if_any()


def _with_delay(cluster: Cluster, site: Site, place: Place) -> Sequence[Answer]:
    """Place on the live nodes and, where others keep their places, on the active ones too."""
    on_live = place(site, site.with_live(site.live))
    if np.array_equal(site.live, site.active):
        return on_live
    answers = []
    on_active = place(site, site.with_live(site.active))
    for resource, now, kept in zip(site.resources, on_live, on_active, strict=True):
        if now is STOPPED or kept is STOPPED:
            answers.append(STOPPED)
            continue
        if now.placed is None or kept.placed is None:
            answers.append(kept if now.placed is None else now)
            continue
        least = cluster.partitions.min_active[resource.rows]
        lists = with_places_kept(kept.placed, now.placed, site.live, least)
        answers.append(Answer(lists, now.note or kept.note))
    return answers


def leaders(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int16]:
    """Let the first replica of each list lead whose node is live and not disabled for it."""
    placement, nodes = cluster.placement, cluster.nodes
    leader = np.full(len(placement), -1, np.int16)
    if not has_leaders(cluster):
        return leader
    may = np.append(nodes.may_receive & nodes.may_lead, False)[node]
    beat()
    may &= (placement.role == Role.VOTER) & ~disabled(cluster, node)
    beat()
    able = np.flatnonzero(may)[::-1]  # of several writes to one place the last one stays
    owner = placement.owner[able]
    leader[owner] = able - placement.first[owner]
    return leader


def disabled(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which replicas stand on a node that is disabled for their partition."""
    if len(cluster.forbidden) == 0:
        return np.zeros(len(node), np.bool_)
    count = len(cluster.nodes)
    pairs = cluster.forbidden[:, 0].astype(np.int64) * count + cluster.forbidden[:, 1]
    own = cluster.placement.owner.astype(np.int64) * count + node
    return np.asarray((node >= 0) & np.isin(own, pairs))


def _disabled_warning(cluster: Cluster, node: NDArray[np.int32]) -> tuple[str, ...]:
    count = int(np.count_nonzero(disabled(cluster, node)))
    if count == 0:
        return ()
    return (f"{count} replicas stay offline on nodes where their partition is disabled",)


def with_places_kept(
    active: NDArray[np.int32],
    on_live: NDArray[np.int32],
    live: NDArray[np.bool_],
    min_active: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Keep the lists on active nodes where enough of each list is live, and top up the others."""
    replicas = active.shape[1]
    alive = (active >= 0) & live[active]
    short = np.count_nonzero(alive, axis=1) < min_active
    kept = active.copy()
    everything = min_active >= replicas
    kept[everything] = on_live[everything]
    for p in np.flatnonzero(short & ~everything):
        row = active[p, alive[p]].tolist()
        fresh = [node for node in on_live[p].tolist() if node >= 0 and node not in active[p]]
        row += fresh[: min_active[p] - len(row)]
        kept[p] = row + [-1] * (replicas - len(row))
    return kept
