"""Partitions that join a cluster and leave it, as parts of another cluster."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.partitions import COLUMNS, check_partitions, read_partitions
from evenkeel.model.intake.placement import read_placement
from evenkeel.model.intake.sizes import Given, Sizes, length
from evenkeel.model.names import Names
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import column, read_only
from evenkeel.model.reading.containers import items_of

COUNTED_BY = ("load", "leader_load", "non_voter_load", "names", "placement", "replicas")
"""Arguments that say how many partitions join, the first that is given."""


def without_partitions(parts: Mapping[str, Any], which: NDArray[np.int64]) -> dict[str, Any]:
    """Return the parts of a cluster without some partitions and all that they hold."""
    old, placement = parts["partitions"], parts["placement"]
    stays = np.ones(len(old), bool)
    stays[which] = False
    place = np.cumsum(stays) - 1
    rows = stays[placement.owner]
    names = [name for name, kept in zip(old.names, stays.tolist(), strict=True) if kept]
    banned = parts["forbidden"]
    banned = banned[stays[banned[:, 0]]]
    return {
        **parts,
        "partitions": replace(
            old,
            names=Names(names, len(names), ""),
            load=Loads(*_shared(old.load, lambda load: load[stays])),
            **{name: read_only(getattr(old, name)[stays]) for name in PER_PARTITION},
        ),
        "placement": Placement(
            first=read_only(_starts(np.diff(placement.first)[stays])),
            leader=read_only(placement.leader[stays]),
            **{name: read_only(getattr(placement, name)[rows]) for name in PER_REPLICA},
        ),
        "forbidden": read_only(np.stack([place[banned[:, 0]], banned[:, 1]], 1).astype(np.int32)),
    }  # fmt: skip


def with_partitions(faults: FaultList, parts: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """Return the parts of a cluster with more partitions after those it has."""
    old, placement, nodes = parts["partitions"], parts["placement"], parts["nodes"]
    more = length([given.get(name) for name in COUNTED_BY])
    sizes = Sizes(len(nodes), more, len(parts["dimensions"]))
    rules = {f"rules[{i}]": rule for i, rule in enumerate(parts["rules"])}
    leaderless = len(old) > 0 and not (placement.leader >= 0).any()
    told = {name: value for name, value in given.items() if name not in ("names", "group")}
    if leaderless:
        told.setdefault("leader", np.full(more, -1, np.int16))
    told.setdefault("rule", np.full(more, _usual_rule(old, len(rules)), np.int32))
    seats, wanted = read_placement(faults, told, sizes, nodes.names, None)
    new = read_partitions(faults, told, sizes, wanted, rules, None)
    group, group_names = _groups(faults, old.group_names, given.get("group"), more)
    names = _joined_names(faults, old.names, given.get("names"), more)
    check_partitions(faults, new, sizes.nodes, len(rules))
    new = replace(new, group=group)
    return {
        **parts,
        "partitions": Partitions(
            names=names,
            load=Loads(*_shared(old.load, lambda load: load, new.load)),
            group_names=group_names,
            group_rule=_padded(old.group_rule, len(group_names)),
            **{
                name: read_only(np.concatenate([getattr(old, name), getattr(new, name)]))
                for name in PER_PARTITION
            },
        ),
        "placement": Placement(
            first=read_only(np.concatenate([placement.first[:-1],
                                            placement.first[-1] + seats.first])),
            leader=read_only(np.concatenate([placement.leader, seats.leader])),
            **{
                name: read_only(np.concatenate([getattr(placement, name), getattr(seats, name)]))
                for name in PER_REPLICA
            },
        ),
    }  # fmt: skip


PER_PARTITION = ("replicas", "voters", "group", "rule", *COLUMNS)
PER_REPLICA = ("node", "role", "flags")


def _shared(
    load: Loads, taken: Any, more: Loads | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Make the loads of each role, of which those that were one array stay one."""
    made: dict[tuple[int, int], NDArray[np.float64]] = {}
    roles = []
    for name in ("leader", "voter", "non_voter"):
        one = getattr(load, name)
        other = None if more is None else getattr(more, name)
        key = id(one), id(other)
        if key not in made:
            rows = taken(one)
            made[key] = read_only(rows if other is None else np.concatenate([rows, other]))
        roles.append(made[key])
    return roles[0], roles[1], roles[2]


def _usual_rule(old: Partitions, rules: int) -> int:
    """Return the rule that binds all partitions there are; -1 if there is no such rule."""
    if len(old) == 0:
        return 0 if rules == 1 and not (old.group_rule >= 0).any() else -1
    return int(old.rule[0]) if (old.rule == old.rule[0]).all() else -1


def _groups(
    faults: FaultList, names: Names, given: ArrayLike | None, more: int
) -> tuple[NDArray[np.int32], Names]:
    """Return the group of each partition that joins; groups told by names may be new."""
    if len(names) == 0:
        names = names.counted_to(1)
    if given is None or not any(isinstance(one, str) for one in np.ravel(given).tolist()):
        numbers = column(faults, more, "group", given, np.int32, 0)
        for i in np.flatnonzero((numbers < 0) | (numbers >= len(names))).tolist():
            faults.add(f"group[{i}]", int(numbers[i]), f"must be a group, 0 to {len(names) - 1}")
        return numbers, names
    told = items_of(faults, "group", given)
    if len(told) != more:
        faults.add("group", len(told), f"needs {more} groups")
        return np.zeros(more, np.int32), names
    listed = list(dict.fromkeys([*names, *(str(one) for one in told)]))
    wider = names if len(listed) == len(names) else Names(listed, len(listed), "")
    return read_only(np.array([wider.index(str(one)) for one in told], np.int32)), wider


def _joined_names(faults: FaultList, old: Names, given: Any, more: int) -> Names:
    """Return the names of all partitions; new ones are counted on where none are given."""
    count = len(old) + more
    if given is None and old.counted:
        return old.counted_to(count)
    new = [f"p{i}" for i in range(len(old), count)] if given is None else items_of(
        faults, "names", given
    )  # fmt: skip
    if len(new) != more:
        faults.add("names", len(new), f"needs {more} names")
        return old.counted_to(count)
    return Names.read(faults, "names", [*old, *new], count, "p")


def _padded(group_rule: NDArray[np.int32], groups: int) -> NDArray[np.int32]:
    """Give groups that are new no rule."""
    new = np.full(groups - len(group_rule), -1, np.int32)
    return read_only(np.concatenate([group_rule, new]))


def _starts(width: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows of these widths start, and the end."""
    return np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
