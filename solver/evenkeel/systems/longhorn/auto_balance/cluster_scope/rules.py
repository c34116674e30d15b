"""How a plan for all volumes spreads their replicas: by effort, by hard and soft anti-affinity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import distinct_rows
from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from evenkeel.systems.longhorn.auto_balance.system import BEST_EFFORT, System
from evenkeel.systems.longhorn.auto_balance.to_cluster import soft

MAY = "may"
"""Tag ``may:i`` of the disks that volumes under rule i may use, or are on all the same."""


class Likeness(NamedTuple):
    """What volumes of one class have in common."""

    wanted: int
    effort: int
    zone_soft: int
    host_soft: int
    disk_soft: int
    engine: int
    node_selector: int
    disk_selector: int


class Rules(NamedTuple):
    """Rules by class of volumes, and by their disks where these take no new replicas of them."""

    rules: list[Rule]
    rule: NDArray[np.int32]  # (P,)
    tags: dict[str, NDArray[np.bool_]]  # each (N,)
    may: NDArray[np.bool_]  # (classes, N) disks that new replicas may be put on
    like: NDArray[np.int64]  # (P,) class of each volume


def rules_of(
    system: System,
    settings: Settings,
    effort: NDArray[np.uint8],
    wanted: NDArray[np.int32],
    receives: NDArray[np.bool_],
    owner: NDArray[np.int32],
    node: NDArray[np.int32],
) -> Rules:
    """Return the rules of the volumes.

    Least effort asks for as many zones and hosts as can be had, best effort in addition for no more
    replicas in one than an even spread has. Where anti-affinity is hard, one per zone (host, disk)
    is asked for in any case, and nothing of the levels within, where it follows. Tags and engines
    are looked at when a replica is placed, and so are hosts that are closed: one that is there may
    stay, and counts.
    """
    volumes = system.volumes
    columns = np.stack(
        [
            wanted,
            effort,
            soft(volumes.zone_soft, settings.replica_zone_soft_anti_affinity),
            soft(volumes.node_soft, settings.replica_soft_anti_affinity),
            soft(volumes.disk_soft, settings.replica_disk_soft_anti_affinity),
            volumes.engine,
            volumes.node_selector,
            volumes.disk_selector,
        ],
        axis=1,
    ).astype(np.int64)
    if len(columns) == 0:
        none = np.zeros((0, len(system.disks)), np.bool_)
        return Rules([], np.zeros(0, np.int32), {}, none, np.zeros(0, np.int64))
    distinct, like = distinct_rows(columns)
    classes = [Likeness(*row) for row in distinct.tolist()]
    may = np.stack([usable(system, settings, one) for one in classes])
    there = np.flatnonzero(node >= 0)
    outside = there[~(may & receives)[like[owner[there]], node[there]]]
    rules: list[Rule] = []
    tags: dict[str, NDArray[np.bool_]] = {}
    kind: dict[tuple[int, bytes], int] = {}
    rule = np.zeros(len(like), np.int32)
    bare = np.bincount(owner[outside], minlength=len(like)) == 0
    first_bare = np.flatnonzero(bare)[np.unique(like[bare], return_index=True)[1]]
    for p, own in _by_volume(owner[outside], node[outside], np.append(owner[outside], first_bare)):
        key = (int(like[p]), own.tobytes())
        if key not in kind:
            kind[key] = len(rules)
            mask = np.isin(np.arange(len(receives)), own)
            tags[f"{MAY}:{len(rules)}"] = may[like[p]] | mask
            able = (may[like[p]] & receives) | mask
            rules.append(_rule(system, classes[like[p]], f"+{MAY}:{len(rules)}", able))
        rule[p] = kind[key]
    for p in first_bare.tolist():
        rule[bare & (like == like[p])] = rule[p]
    return Rules(rules, rule, tags, may, like)


def _by_volume(
    owner: NDArray[np.int32], node: NDArray[np.int32], volumes: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield some volumes, ascending, each with its own disks of those listed, sorted."""
    order = np.lexsort((node, owner))
    owner, node = owner[order], node[order]
    some = np.unique(volumes)
    begins, ends = np.searchsorted(owner, some), np.searchsorted(owner, some, side="right")
    for p, begin, end in zip(some.tolist(), begins.tolist(), ends.tolist(), strict=True):
        yield p, np.unique(node[begin:end])


def usable(system: System, settings: Settings, like: Likeness) -> NDArray[np.bool_]:
    """Return the disks that a class of volumes may use, by engine and tags."""
    hosts, disks = system.hosts, system.disks
    by_host = _tagged(
        hosts.tags, len(hosts), system.selectors[like.node_selector],
        settings.allow_empty_node_selector_volume,
    )  # fmt: skip
    by_disk = _tagged(
        disks.tags, len(disks), system.selectors[like.disk_selector],
        settings.allow_empty_disk_selector_volume,
    )  # fmt: skip
    runs = system.hosts.engines[like.engine] & by_host
    kind = disks.block == system.engine_block[like.engine]
    return np.asarray(runs[disks.host] & by_disk & kind, np.bool_)


def _tagged(
    tags: Mapping[str, NDArray[np.bool_]], count: int, asked: Sequence[str], empty_takes_all: bool
) -> NDArray[np.bool_]:
    """Return what carries all tags asked for; if none is, all, or all that carry none."""
    found = np.ones(count, np.bool_)
    for tag in asked:
        found &= tags.get(tag, np.zeros(count, np.bool_))
    if not asked and not empty_takes_all:
        for carried in tags.values():
            found &= ~carried
    return found


def _rule(system: System, like: Likeness, require: str, able: NDArray[np.bool_]) -> Rule:
    """Return the rule of a class whose volumes may be given the ``able`` disks."""
    on = system.disks.host[able]
    hosts, disks = np.unique(on, return_counts=True)
    zones = system.hosts.zone[hosts]
    on_disk = np.full(len(on), like.wanted if like.disk_soft else 1)
    on_host = np.full(len(hosts), like.wanted) if like.disk_soft else disks
    if not like.host_soft:
        on_host = np.minimum(on_host, 1)
    in_zone = np.bincount(zones, on_host)[np.unique(zones)].astype(np.int64)
    if not like.zone_soft:
        in_zone = np.minimum(in_zone, 1)
    spread: dict[str, Amount] = {"node": None}
    least: dict[str, Amount] = {}
    for level, room, is_soft in (
        ("zone", in_zone, like.zone_soft),
        ("host", on_host, like.host_soft),
        ("node", on_disk, like.disk_soft),
    ):
        if not is_soft:
            # one alone in its zone is alone on its host: nothing is asked for below, or a move
            # within a zone would mend a host, which no scheduler makes while the zone is shared
            spread[level] = 1
            break
        if len(room) > 0:
            least[level] = (min(like.wanted, len(room)), "soft")
            if like.effort == BEST_EFFORT:
                spread[level] = (even(room, like.wanted), "soft")
    return Rule(require=[require], spread=spread, min_domains=least)


def hard_only(rule: Rule) -> Rule:
    """Return what of a rule must hold.

    Examples
    --------
    >>> hard_only(Rule(spread={"node": (1, "soft"), "host": 1})).spread
    {'node': None, 'host': 1}
    """
    # None and not left out, which for nodes would mean one each
    spread = {
        level: None if isinstance(amount, tuple) else amount
        for level, amount in rule.spread.items()
    }
    return replace(rule, spread=spread, min_domains={})


def zones_first(rule: Rule) -> Rule:
    """Return what of a rule is mended first: zones, and whatever is hard.

    A replica that goes to another zone is on another host by that; done the other way round, it
    could take two moves.

    Examples
    --------
    >>> zones_first(Rule(spread={"zone": (1, "soft"), "host": (1, "soft")})).spread
    {'zone': (1, 'soft'), 'host': None}
    """

    def kept(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
        return {
            level: amount if level == "zone" or not isinstance(amount, tuple) else None
            for level, amount in amounts.items()
        }

    return replace(rule, spread=kept(rule.spread), min_domains=kept(rule.min_domains))


def even(room: NDArray[np.integer], wanted: int) -> int:
    """Return how many replicas the fullest domain has in an even spread.

    Examples
    --------
    >>> even(np.array([4, 4, 1]), 4), even(np.array([1, 1]), 3)
    (2, 3)
    """
    for most in range(1, wanted + 1):
        if np.minimum(room, most).sum() >= wanted:
            return most
    return max(wanted, 1)
