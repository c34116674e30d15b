"""Read and check loads, groups and wanted replicas of partitions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import MOST, Given, Sizes, length
from evenkeel.model.intake.placement import Wanted
from evenkeel.model.names import Names
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.reading.arrays import (
    as_array,
    check_amounts,
    check_range,
    column,
    node_or_none,
    read_only,
    shape_of,
)
from evenkeel.model.reading.keywords import meant_name
from evenkeel.model.rules import Rule

FREE_GROUPS = 1_000  # groups that may be numbered without names however few partitions there are
LOADS = ("load", "leader_load", "non_voter_load")

# one value per partition: its type and default
PARTITION_COLUMNS: Mapping[str, tuple[type[np.generic], Any]] = {
    "min_active": (np.int32, 0),
    "attached": (np.int32, -1),
    "move_cost": (np.float64, 1.0),
}


def read_partitions(
    faults: FaultList,
    given: Given,
    sizes: Sizes,
    wanted: Wanted,
    rules: Mapping[str, Rule],
    base: Partitions | None,
) -> Partitions:
    """Read given columns of partitions; others are the base's, or else defaults."""
    # ``wanted`` are the replicas and voters that came with the placement
    count = sizes.partitions
    read: dict[str, Any] = {}
    if base is None or wanted[0] is not base.replicas or wanted[1] is not base.voters:
        assert wanted[0] is not None
        assert wanted[1] is not None
        read |= {"replicas": read_only(wanted[0]), "voters": read_only(wanted[1])}
    if base is None or "partition_names" in given:
        names = given.get("partition_names")
        read["names"] = Names.read(faults, "partition_names", names, count, "p")
    if base is None or any(name in given for name in LOADS):
        read["load"] = _loads(faults, given, sizes, None if base is None else base.load)
    for name, (dtype, default) in PARTITION_COLUMNS.items():
        if base is None or name in given:
            read[name] = column(faults, count, name, given.get(name), dtype, default)
    if base is None or "group" in given or "group_names" in given:
        read["group"], read["group_names"] = _groups(faults, given, count, base)
    names = read["group_names"] if base is None else read.get("group_names", base.group_names)
    if base is None or "group_rule" in given or names is not base.group_names:
        if base is not None and "group_rule" not in given and (base.group_rule >= 0).any():
            faults.add("group_rule", len(names), "must be given for new groups")
        read["group_rule"] = _group_rules(faults, given.get("group_rule"), names)
    if base is None or "rule" in given or "spread" in given or _free(given, base):
        of_group = read["group_rule"] if "group_rule" in read or base is None else base.group_rule
        alone = len(rules) == 1 and given.get("rule") is None and not (of_group >= 0).any()
        default = 0 if alone else -1
        read["rule"] = column(faults, count, "rule", given.get("rule"), np.int32, default)
    if base is not None and not read:
        return base
    return Partitions(**read) if base is None else replace(base, **read)


def check_partitions(
    faults: FaultList, partitions: Partitions, nodes: int, rules: int | None
) -> None:
    """Note values that no partition can have; of rules only where their number is known."""
    for path, load in zip(
        LOADS, (partitions.load.voter, partitions.load.leader, partitions.load.non_voter),
        strict=True,
    ):  # fmt: skip
        if path == "load" or load is not partitions.load.voter:
            check_amounts(faults, path, load, infinite=False)
    check_amounts(faults, "move_cost", partitions.move_cost, infinite=False)
    for name in ("rule", "group_rule") if rules is not None else ():
        check_range(
            faults, name, getattr(partitions, name), -1, rules or 0,
            "must be the index of a rule or -1",
        )  # fmt: skip
    check_range(faults, "attached", partitions.attached, -1, nodes, node_or_none(nodes))
    check_range(faults, "min_active", partitions.min_active, 0, MOST, "must be 0 or more")


def _free(given: Given, base: Partitions) -> bool:
    """Return whether there are new rules, and old ones bind no partition."""
    return "rules" in given and not ((base.rule >= 0).any() or (base.group_rule >= 0).any())


def _loads(faults: FaultList, given: Given, sizes: Sizes, base: Loads | None) -> Loads:
    shape = (sizes.partitions, sizes.dimensions)

    def read(path: str) -> NDArray[np.float64]:
        return read_only(as_array(faults, path, given[path], np.float64, shape))

    voter = base.voter if base is not None and "load" not in given else read("load")
    roles = []
    for path, own in zip(LOADS[1:], ("leader", "non_voter"), strict=True):
        if given.get(path) is not None:
            roles.append(read(path))
        elif base is None or path in given or getattr(base, own) is base.voter:
            roles.append(voter)
        else:
            roles.append(getattr(base, own))
    return Loads(leader=roles[0], voter=voter, non_voter=roles[1])


def _groups(
    faults: FaultList, given: Given, count: int, base: Partitions | None
) -> tuple[NDArray[np.int32], Names]:
    """Return the group of each partition, given by number or by name, and the names of groups."""
    group, names = given.get("group"), given.get("group_names")
    if base is not None and "group" not in given:
        group = base.group
    named = _are_names(group)
    if base is not None and "group_names" not in given:
        stated = () if group is None else group
        stay = all(one in base.group_names for one in stated) if named else group is not None
        names = base.group_names if stay else None
    if named:
        return _named_groups(faults, group, names, count)
    numbers = column(faults, count, "group", group, np.int32, 0)
    groups = _count_groups(faults, numbers, names, given.get("group_rule"))
    return numbers, Names.read(faults, "group_names", names, groups, "g")


def _are_names(group: Any) -> bool:
    """Return whether groups are given by name: the first entry says so for all."""
    if isinstance(group, np.ndarray) and group.dtype.kind in "biuf":
        return False
    return len(shape_of(group)) == 1 and any(isinstance(one, str) for one in group)


def _named_groups(
    faults: FaultList, group: Any, names: Any, count: int
) -> tuple[NDArray[np.int32], Names]:
    """Return numbers for names: in the order of ``group_names``, or sorted where there is none."""
    stated = list(group)
    if len(stated) != count:
        faults.add("group", (len(stated),), f"needs shape ({count},)")
        stated = []
    for i, one in enumerate(stated):
        if not isinstance(one, str) or not one:
            faults.add(f"group[{i}]", one, "must be the name of a group, as the others are")
    read = names
    if names is None:
        read = sorted({one for one in stated if isinstance(one, str)})
    known = Names.read(faults, "group_names", read, length([read]), "g")
    place = {name: i for i, name in enumerate(known)}
    if names is not None:
        for i, one in enumerate(stated):
            if isinstance(one, str) and one not in place:
                faults.add(f"group[{i}]", one, "is not among group_names")
    numbers = np.zeros(count, np.int32)
    if stated and not faults.about("group", "group_names"):
        numbers[:] = [place[one] for one in stated]
    return read_only(numbers), known


def _count_groups(faults: FaultList, group: NDArray[np.int32], names: Any, rule: Any) -> int:
    """Return how many groups there are; as many as have rules where partitions name none."""
    if names is not None:
        named = length((names,))
        check_range(faults, "group", group, 0, max(named, 1), "must be a group")
        return named
    # a stray number would otherwise make as many groups, at their cost in time and memory
    most = max(len(group), FREE_GROUPS)
    check_range(faults, "group", group, 0, most, f"must be below {most} without group_names")
    if faults.about("group"):
        return length((rule,)) or most
    return int(group.max(initial=-1)) + 1


def _group_rules(faults: FaultList, given: Any, names: Names) -> NDArray[np.int32]:
    """Return the rule of each group, given by group or as a mapping of a group's name to it."""
    if not isinstance(given, Mapping):
        return column(faults, len(names), "group_rule", given, np.int32, -1)
    rules = np.full(len(names), -1, np.int64)
    for name, rule in given.items():
        path = f"group_rule[{name!r}]"
        if name not in names:
            faults.add(path, name, f"unknown group{meant_name(faults, name, names)}")
        elif not isinstance(rule, int | np.integer) or isinstance(rule, bool):
            faults.add(path, rule, "must be the index of a rule or -1")
        else:
            rules[names.index(name)] = rule
    return column(faults, len(names), "group_rule", rules, np.int32, -1)
