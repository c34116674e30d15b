"""Read clusters, and apply hypothetical changes, such as drained or added nodes."""

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from evenkeel.cli.arguments import read_options
from evenkeel.cli.output import complain
from evenkeel.cli.waiting import Waiting
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.printable import counted, some_of

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.rules import Rule


STDIN = "-"  # what stands for the standard input where files are read
_NAMES = re.compile(r"[a-z_]+(?:\[\d+\])?")  # paths that say no more than an option does


def changed(cluster: "Cluster", arguments: argparse.Namespace) -> "Cluster":
    """Return the cluster with the changes that the arguments ask for; all faults at once."""
    from evenkeel.model.cluster import Cluster

    faults = FaultList()
    asked: Sequence[tuple[str, Any, Callable[..., Cluster]]] = (
        ("--add-nodes", arguments.add_nodes, partial(_grown, quiet=arguments.quiet)),
        ("--soft", arguments.soft, softened),
        ("--replicas", arguments.replicas, _with_replicas),
        ("--grow", getattr(arguments, "growth", None), _with_larger_loads),
        ("--spread", arguments.spread, _spread),
        *(("--require", one, _required) for one in arguments.require or ()),
        ("--drain", arguments.drain, Cluster.drain),
        ("--exclude", arguments.exclude, Cluster.cordon),
        ("--pin", arguments.pin, Cluster.pin),
        ("--empty-disk", arguments.empty_disk, Cluster.empty_disks),
        ("--no-lead", arguments.no_lead, _not_leading),
    )
    for option, given, change in asked:
        if given is None or given == []:
            continue
        try:
            cluster = change(cluster, given)
        except InvalidInput as error:
            faults.faults += [
                replace(one, path=option if _NAMES.fullmatch(one.path) else f"{option} {one.path}")
                for one in error.faults
            ]
    faults.raise_if_any()
    if not arguments.quiet:
        for message in too_few_domains(cluster):
            complain(f"note: {message}")
    return cluster


def _with_replicas(cluster: "Cluster", asked: list[str]) -> "Cluster":
    """Return the cluster with other numbers of replicas wanted of the partitions of some groups."""
    import numpy as np

    from evenkeel.model.changes import Changes
    from evenkeel.model.reading.selection import read_groups
    from evenkeel.systems.registry import system_of

    faults = FaultList()
    replicas = cluster.partitions.replicas.copy()
    for one in asked:
        group, _, number = one.rpartition("=")
        if not (group and number.isascii() and number.isdigit() and int(number) > 0):
            faults.add("group", one, "must be GROUP=N, N being 1 or more")
            continue
        replicas[read_groups(faults, "group", cluster.partitions, group, one)] = int(number)
    faults.raise_if_any()
    changed = cluster.apply(Changes(replicas=replicas))
    least = cluster.partitions.min_active
    if system_of(cluster).majority:
        fewer = replicas < cluster.partitions.replicas
        changed = changed.replace(min_active=np.where(fewer, replicas // 2 + 1, least))
    elif some := np.flatnonzero(changed.partitions.min_active < least).tolist():
        names = some_of(some, lambda p: str(cluster.partitions.names[p]), 5)
        complain(
            f"note: {counted(len(some), 'partition')} ({names}) had to have more live replicas "
            "than --replicas gives (min.insync.replicas of Kafka): all of them must be live now"
        )
    for note in dict.fromkeys(_spread_anew(cluster, changed)):
        complain(f"note: {note}")
    return changed


def _with_larger_loads(cluster: "Cluster", factor: Any) -> "Cluster":
    """Return the cluster with its loads multiplied."""
    from evenkeel.model.changes import Changes

    return cluster.apply(Changes(load_factor=factor))


def _spread_anew(before: "Cluster", after: "Cluster") -> Iterator[str]:
    """Yield which limits of even spreads are others, since other numbers of replicas are wanted."""
    import numpy as np

    from evenkeel.model.rules import domains_left

    then, now = before.partitions.rule, after.partitions.rule
    rows = np.stack([then, now, after.partitions.replicas], 1)[then != now]
    for old, new, replicas in np.unique(rows, axis=0).tolist():
        for tier, amount in after.rules[new].spread.items():
            was = before.rules[old].spread[tier]
            count = len(domains_left(after.rules[new], after.nodes, after.topology, tier))
            if was != amount and count > 1:  # one holds all in any case
                yield (
                    f"{replicas} replicas are spread evenly over {count} {tier}s: at most "
                    f"{amount} of a partition in one, instead of {was}; --spread {tier}=N sets "
                    "another limit"
                )


def _is_there(path: str) -> bool:
    """Return whether a path exists; what is too long for one does not."""
    with contextlib.suppress(OSError):
        return Path(path).exists()
    return False


def _grown(cluster: "Cluster", given: str, *, quiet: bool) -> "Cluster":
    """Return the cluster with more nodes: a number of them, some by name, or those of a table."""
    from evenkeel.model.newcomers import more_alike
    from evenkeel.model.topology import with_labels
    from evenkeel.systems.tables.reading import read_newcomers

    number = given.isascii() and given.removeprefix("-").isdigit()
    if number or ("," in given and not _is_there(given)):
        names = [] if number else [name.strip() for name in given.split(",") if name.strip()]
        grown = more_alike(cluster, int(given) if number else len(names), names)
        if not quiet:
            added = range(len(cluster.nodes), len(grown.nodes))
            names = [with_labels(grown.topology, n, grown.nodes.names[n]) for n in added]
            complain(f"note: --add-nodes adds {some_of(names, str, 5)}")
        return grown
    if given != STDIN and not _is_there(given):
        message = f"must be a number of nodes, names with commas ({given},) or the file of a table"
        raise InvalidInput([Fault("nodes", given, message)])
    grown, alike = read_newcomers(given, cluster)
    if alike and not quiet:
        capacities = ", ".join(f"{quantity(most)} of {name}" for name, most in alike.items())
        complain(
            f"note: {given} gives no capacity for these: new nodes have what all have, {capacities}"
        )
    return grown


def _not_leading(cluster: "Cluster", which: Sequence[str]) -> "Cluster":
    """Return the cluster with nodes that lead nothing; note partitions without another leader."""
    import numpy as np

    from evenkeel.measure.elections import led_alone
    from evenkeel.model.intake.stranded import marked, with_left_alone
    from evenkeel.model.placement import Flag
    from evenkeel.model.reading.selection import find_nodes

    faults = FaultList()
    if marked(cluster.placement, Flag.ELECTED).any():
        message = "cannot be kept: only the system elects leaders (primaries), no order moves one"
        faults.add("node", [*which], f"{message}; --drain moves them with their data")
    nodes = cluster.nodes
    found = find_nodes(faults, "node", nodes, cluster.topology, which)
    faults.raise_if_any()
    which_nodes = np.zeros(len(nodes), np.bool_)
    which_nodes[found] = True
    alone = led_alone(cluster, which_nodes)
    if some := np.flatnonzero(alone).tolist():
        names = some_of(some, lambda p: str(cluster.partitions.names[p]), 5)
        complain(
            f"note: no replica elsewhere can lead {counted(len(some), 'partition')} ({names}), "
            "which stay and are led where they are; --drain moves replicas, too"
        )
    return with_left_alone(cluster.replace(leads=nodes.leads & ~which_nodes), alone)


def _spread(cluster: "Cluster", given: Sequence[str]) -> "Cluster":
    """Return the cluster in which every rule keeps replicas apart by tiers."""
    faults = FaultList()
    spread = {}
    for one in given:
        tier, _, number = one.rpartition("=")
        if tier not in (*cluster.topology.tiers, "node"):
            known = [*cluster.topology.tiers, "node"]
            faults.add(
                "tier", one, f"must be TIER=N, of a tier: {known}{did_you_mean(tier, known)}"
            )
        elif not (number.isdecimal() and int(number) > 0):
            faults.add("tier", one, "must be TIER=N, N being 1 or more")
        else:
            spread[tier] = int(number)
    faults.raise_if_any()
    every = range(len(cluster.partitions))
    return _with_rules(cluster, every, lambda rule: replace(rule, spread={**rule.spread, **spread}))


def _as_spread(cluster: "Cluster", given: Sequence[str]) -> "Cluster":
    """Return the same, for notes on rules; as it was where ``given`` is wrong."""
    with contextlib.suppress(InvalidInput):
        return _spread(cluster, given) if given else cluster
    return cluster


def _required(cluster: "Cluster", given: str) -> "Cluster":
    """Return the cluster in which replicas, of all partitions or of some, are on certain nodes."""
    from evenkeel.model.reading.selection import find_partitions, read_groups
    from evenkeel.model.rules import mask_of, parse_expression

    faults = FaultList()
    scope, colon, text = given.rpartition(":")
    which: Sequence[int] = range(len(cluster.partitions))
    if colon and scope in cluster.partitions.group_names:
        which = read_groups(faults, "partition", cluster.partitions, scope, scope)
    elif colon:
        which = find_partitions(faults, "partition", cluster.partitions, [scope]).tolist()
    tests = parse_expression(faults, "expression", text)
    mask_of(tests, cluster.nodes, cluster.topology, faults, "expression")
    faults.raise_if_any()
    return _with_rules(cluster, which, lambda rule: replace(rule, require=[*rule.require, text]))


def _with_rules(
    cluster: "Cluster", which: Sequence[int], change: "Callable[[Rule], Rule]"
) -> "Cluster":
    """Return the cluster with the rules of some partitions changed; others keep theirs."""
    import numpy as np

    from evenkeel.model.rules import Rule

    rules, rule = [*cluster.rules], cluster.partitions.rule.copy()
    at = np.asarray(which, np.intp)
    for r in np.unique(rule[at]).tolist():
        rule[at[cluster.partitions.rule[at] == r]] = len(rules)
        rules.append(change(cluster.rules[r] if r >= 0 else Rule()))
    return cluster.replace(rules=rules, rule=rule, group_rule=cluster.partitions.group_rule)


KINDS = ("spread", "min_domains", "skew")  # what keeps replicas apart


def softened(cluster: "Cluster", tiers: Sequence[str]) -> "Cluster":
    """Return a cluster in which the rules about some tiers are soft."""
    faults = FaultList()
    known = sorted({tier for rule in cluster.rules for tier in _hard(rule)})
    for tier in tiers:
        if tier not in known:
            message = (
                f"no hard rule is about it; those there are: {known}{did_you_mean(tier, known)}"
            )
            faults.add("tier", tier, message)
    faults.raise_if_any()
    rules = [replace(rule, **_yielding(rule, tiers)) for rule in cluster.rules]
    return cluster.replace(
        rules=rules, rule=cluster.partitions.rule, group_rule=cluster.partitions.group_rule
    )


def too_few_domains(cluster: "Cluster") -> Iterator[str]:
    """Yield by which tiers rules keep more replicas apart than there are domains that take any."""
    from evenkeel.model.rules import Rule, domains_left
    from evenkeel.model.topology import NODE_TIER
    from evenkeel.systems.registry import system_of

    named = set[str]()
    for r, rule in enumerate((Rule(), *cluster.rules), -1):
        wanted = int(cluster.partitions.replicas[cluster.partitions.rule == r].max(initial=0))
        for limit in rule.limits():
            tier, amount = limit.tier, limit.amount
            known = tier in named or (tier == NODE_TIER and named)
            if known or not limit.hard or limit.kind != "spread":
                continue
            left = len(domains_left(rule, cluster.nodes, cluster.topology, tier))
            if not left or amount * left >= wanted:
                continue
            named.add(tier)
            if tier == NODE_TIER:
                yield (
                    f"{wanted} replicas of a partition are wanted, {amount} on a node, and "
                    f"{counted(left, 'node')} {'takes' if left == 1 else 'take'} any: what has no "
                    "other place stays, until nodes are back or added, or fewer replicas wanted"
                )
                continue
            soft = f"; --soft {tier} lets the rule yield where it must"
            yield (
                f"a rule wants at most {amount} of {wanted} replicas in one {tier}, and nodes "
                f"that take any are left in {left} only: what has no other place stays"
                f"{soft * (not system_of(cluster).enforces)}"
            )


def _hard(rule: "Rule") -> Iterator[str]:
    """Yield the tiers by which a rule keeps replicas apart, come what may."""
    for kind in KINDS:
        yield from (tier for tier, amount in getattr(rule, kind).items() if isinstance(amount, int))


def _yielding(rule: "Rule", tiers: Sequence[str]) -> dict[str, Any]:
    """Return what keeps replicas apart by a rule, its limits on some tiers soft."""
    return {
        kind: {
            tier: (amount, "soft") if tier in tiers and isinstance(amount, int) else amount
            for tier, amount in getattr(rule, kind).items()
        }
        for kind in KINDS
    }


def read_cluster(
    arguments: argparse.Namespace, waiting: Waiting, files: Sequence[Any] = ()
) -> "Cluster":
    """Read files, those that the arguments name by default, as a cluster changed as they ask."""
    cluster = read_files(arguments, files or files_of(arguments, waiting))
    note_left_out(arguments, cluster)
    cluster = with_measured_loads(arguments, cluster)
    return changed(cluster, arguments) if "drain" in arguments else cluster


def read_files(arguments: argparse.Namespace, files: Sequence[Any]) -> "Cluster":
    """Read files as a cluster, in the format and with the options that the arguments name."""
    from evenkeel.systems.registry import read

    return read(*files, format=arguments.format, **read_options(arguments))


def with_measured_loads(arguments: argparse.Namespace, cluster: "Cluster") -> "Cluster":
    """Return the cluster with the loads of the files that the arguments name, and print notes."""
    from evenkeel.systems.loads import read_loads

    pairs = [one.partition("=") for text in arguments.label for one in text.split(",")]
    if wrong := [word for word, equals, label in pairs if not (word and equals and label)]:
        raise InvalidInput([Fault("--label", one, "must be WORD=LABEL") for one in wrong])
    labels = {word.strip(): label.strip() for word, _, label in pairs}
    for given in arguments.loads:
        name, equals, file = given.partition("=")
        if not equals or "/" in name or _is_there(given):
            name, file = "", given
        cluster, notes = read_loads(cluster, file, name, labels=labels, take=arguments.take)
        for note in () if arguments.quiet else notes:
            complain(f"note: {note}")
    return cluster


def note_left_out(arguments: argparse.Namespace, cluster: "Cluster") -> None:
    """Note what the files do not say, and how to recover unavailable partitions."""
    from evenkeel.model.intake.stranded import left_alone_message, stranded_names, unjudged
    from evenkeel.systems.registry import find, is_known

    if not arguments.quiet and is_known(cluster.native_format):
        of = find(cluster.native_format)
        for one in of.left_out(_as_spread(cluster, getattr(arguments, "spread", None) or [])):
            complain(f"note: {one}")
        loads = cluster.partitions.load
        idle = [
            name for d, name in enumerate(cluster.dimensions)
            if not any(each[:, d].any() for each in (loads.leader, loads.voter, loads.non_voter))
        ]  # fmt: skip
        if idle and len(cluster.partitions):
            complain(f"note: no loads of {', '.join(idle)}: their capacities limit nothing")
        if of.asks and not len(cluster.partitions):
            complain(f"note: the files hold nothing that is placed: it is in {of.asks}")
        if unjudged(cluster):
            complain(f"note: {left_alone_message(cluster)}")
        if count := len(stranded_names(cluster)):
            complain(f"note: nothing can repair {counted(count, 'partition')} now: {of.stranded}")


def files_of(arguments: argparse.Namespace, waiting: Waiting) -> list[str | BinaryIO]:
    """Return the files that the arguments name; ``-`` is the standard input."""
    waiting.doing(f"reading {', '.join(arguments.files)}")
    if arguments.files.count(STDIN) > 1:
        raise InvalidInput([Fault("FILE", STDIN, "is the standard input, and can be read once")])
    return [standard_input() if one == STDIN else one for one in arguments.files]


def standard_input() -> BinaryIO:
    """Return the standard input; ``InvalidInput`` where it is closed, as by ``<&-``."""
    if sys.stdin is None or sys.stdin.closed:
        raise InvalidInput([Fault("FILE", STDIN, "is the standard input, which is closed")])
    return sys.stdin.buffer
