"""Changes to a cluster before a command looks at it: as if nodes were closed, drained or added."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from evenkeel.cli.output import complain
from evenkeel.cli.settings.softened import softened, too_few_domains
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.runtime.figures import quantity

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster

NODES = "by name, or those of an expression such as zone=a or +ssd; may be given several times"


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Add what is to be different from what the files say."""
    group = parser.add_argument_group("changes to the cluster, before anything else")
    group.add_argument(
        "--add-nodes", metavar="N|FILE",
        help="more nodes, empty and up: so many like those there are, where domains have fewest; "
        "or those of a table, as nodes.csv of the format tables, with the capacities of all where "
        "it tells none and these are alike",
    )  # fmt: skip
    group.add_argument(
        "--soft", action="append", metavar="TIER",
        help="let the rules that keep replicas apart by a tier, such as rack, yield where they "
        "must, as little as they must; may be given several times",
    )  # fmt: skip
    for name, meaning in (
        ("drain", f"nodes that have to give all their replicas away, {NODES}"),
        (
            "exclude",
            f"nodes that take no more replicas, and give theirs only for rules and goals, {NODES}",
        ),
    ):
        group.add_argument(f"--{name}", action="append", metavar="NODE", help=meaning)
    group.add_argument(
        "--pin", action="append", metavar="PARTITION",
        help="partitions whose replicas stay, though leaders may change, by name, or group=NAME; "
        "may be given several times",
    )  # fmt: skip
    group.add_argument(
        "--replicas", action="append", metavar="GROUP=N",
        help="how many replicas each partition of a group, such as a topic, is to have; may be "
        "given several times",
    )  # fmt: skip


def changed(cluster: "Cluster", arguments: argparse.Namespace) -> "Cluster":
    """Return the cluster with the changes that the arguments ask for; all faults at once."""
    faults = FaultList()
    changes: list[tuple[str, Callable[[Cluster], Cluster]]] = []
    if arguments.add_nodes is not None:
        quiet = arguments.quiet
        changes.append(("--add-nodes", lambda one: _grown(one, arguments.add_nodes, quiet=quiet)))
    if arguments.soft:
        changes.append(("--soft", lambda one: softened(one, arguments.soft)))
    if arguments.replicas:
        changes.append(("--replicas", lambda one: _with_replicas(one, arguments.replicas)))
    for option, which, change in (
        ("--drain", arguments.drain, "drain"),
        ("--exclude", arguments.exclude, "cordon"),
        ("--pin", arguments.pin, "pin"),
    ):
        if which:
            changes.append((option, lambda one, c=change, w=which: getattr(one, c)(w)))  # type: ignore[misc]
    for option, make in changes:
        try:
            cluster = make(cluster)
        except InvalidInput as error:
            for fault in error.faults:
                faults.add(f"{option} {fault.path}", fault.value, fault.message)
    faults.raise_if_any()
    if not arguments.quiet:
        for message in too_few_domains(cluster):
            complain(f"note: {message}")
    return cluster


def _with_replicas(cluster: "Cluster", asked: list[str]) -> "Cluster":
    """Return the cluster with other numbers of replicas wanted of the partitions of some groups."""
    from evenkeel.model.reading.selection import read_groups

    faults = FaultList()
    replicas = cluster.partitions.replicas.copy()
    for one in asked:
        group, _, number = one.rpartition("=")
        if not (group and number.isascii() and number.isdigit() and int(number) > 0):
            faults.add("group", one, "must be GROUP=N, N being 1 or more")
            continue
        replicas[read_groups(faults, "group", cluster.partitions, group, one)] = int(number)
    faults.raise_if_any()
    return cluster.replace(replicas=replicas)


def _grown(cluster: "Cluster", given: str, *, quiet: bool) -> "Cluster":
    """Return the cluster with more nodes, as many as a number says or as a table lists."""
    from evenkeel.model.newcomers import more_alike
    from evenkeel.systems.tables.newcomers import read_newcomers

    if given.isascii() and given.removeprefix("-").isdigit():
        return more_alike(cluster, int(given))
    grown, alike = read_newcomers(given, cluster)
    if alike and not quiet:
        capacities = ", ".join(f"{quantity(most)} of {name}" for name, most in alike.items())
        complain(
            f"note: {given} gives no capacity for these: new nodes have what all have, {capacities}"
        )
    return grown
