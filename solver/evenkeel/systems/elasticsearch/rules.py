"""Rules from settings: the nodes that copies may use, and their spread."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.rules import Amount, Rule, word
from evenkeel.model.runtime.printable import printable
from evenkeel.systems.elasticsearch.documents import Findings
from evenkeel.systems.elasticsearch.settings import (
    DataNode,
    Settings,
    filtered,
    is_everywhere,
    is_true,
    of_kind,
    whole,
    words,
)
from evenkeel.systems.elasticsearch.shards import Shard, ends

AWARE = "cluster.routing.allocation.awareness."
SAME_HOST = "cluster.routing.allocation.same_shard.host"


class Aware(NamedTuple):
    """An awareness attribute, over which copies are spread."""

    tier: str
    labels: list[str]
    forced: list[str]
    """Values of forced awareness, which count even if no node has them."""


class Kind(NamedTuple):
    """Shards with the same rule."""

    tag: str
    """That of the nodes for copies that may lead; empty for all nodes."""

    copies: int
    search: str = ""
    """The tag of the nodes for search replicas, where some nodes are for these alone."""

    searching: int = 0
    everywhere: bool = False


def rules_of(
    found: Findings,
    shards: Sequence[Shard],
    indices: Sequence[str],
    nodes: Sequence[DataNode],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return a rule for each set of nodes that an index may use and each number of copies."""
    attributes = _awareness(found, nodes)
    searches = np.array([node.searches for node in nodes], np.bool_)
    tags: dict[str, NDArray[np.bool_]] = {}
    elsewhere = _standing_elsewhere(found, shards, nodes)
    tag_of = {}
    for index in indices:
        settings = found.indices.get(index, {})
        mask, closing = _filtered(settings, nodes, attributes)
        kind = of_kind(settings, nodes, default=index not in elsewhere)
        if (mask & ~kind).any():
            closing = [*closing, "roles of nodes"]
        tag_of[index] = _tag(tags, mask & kind, closing)
    keys: dict[Kind, int] = {}
    rule = []
    for shard in shards:
        settings = found.indices.get(shard.of, {})
        key = Kind(tag_of[shard.of], len(shard.rows))
        extra = sum(found.shards[i]["prirep"] == "s" for i in shard.rows)
        if extra and searches.any():
            mask, closing = _filtered(settings, nodes, attributes)
            tag = _tag(tags, searches & mask, [*closing, "nodes with the role search"])
            key = Kind(key.tag, key.copies - extra, tag, extra)
        key = key._replace(everywhere=is_everywhere(settings))
        rule.append(keys.setdefault(key, len(keys)))
    domains = {one.tier: one.labels for one in attributes}
    if any(key.searching for key in keys):
        for one in attributes:
            domains |= {name: own.labels for name, own in _in_two(one, searches).items()}
    same_host = spread is None and is_true(found.cluster, SAME_HOST, False)
    if same_host:
        domains["host"] = [node.host or node.ip for node in nodes]
    rules = []
    for key in keys:
        apart = dict(spread) if spread is not None else _apart(key, attributes, searches)
        if same_host and not key.everywhere:
            apart["host"] = 1
        rules.append(_rule(key, apart))
    name = "index.routing.allocation.total_shards_per_node"
    most = [whole(found.faults, found.indices.get(index, {}), name) for index in indices]
    group_rule = np.full(len(indices), -1)
    for limit in sorted({one for one in most if one > 0}):
        group_rule[np.array(most) == limit] = len(rules)
        rules.append(Rule(spread={"node": limit}))
    return {
        "domains": domains, "crossing": _crossing(domains), "tags": tags, "rules": rules,
        "group_rule": group_rule, "rule": np.array(rule, np.int64),
    }  # fmt: skip


def _crossing(domains: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the tiers with a value in several domains of those before: it is one value for all."""
    found: list[str] = []
    paths: list[tuple[str, ...]] = []
    for tier, labels in domains.items():
        paths = paths or [()] * len(labels)
        inner = [(*path, label) for path, label in zip(paths, labels, strict=True)]
        if len({*inner}) > len({*labels}):
            found.append(tier)
        else:
            paths = inner
    return found


def _rule(key: Kind, apart: Mapping[str, Amount]) -> Rule:
    """Return the rule of shards of a kind."""
    require = [f"+{key.tag}"] if key.tag else []
    if not key.searching:
        return Rule(require=require, spread=apart)
    place = {f"+{key.search}": key.searching} if key.search else {}
    return Rule(voters_require=require, place=place, spread=apart)


def _apart(
    key: Kind, attributes: Sequence[Aware], searches: NDArray[np.bool_]
) -> dict[str, Amount]:
    """Return how many copies a value of each attribute may have, search replicas on their own."""
    if key.everywhere:
        return {}
    found: dict[str, Amount] = {}
    for one in attributes:
        other, search = _in_two(one, searches).items()
        parts = [(other, key.copies), (search, key.searching)]
        for (name, own), copies in parts if key.searching else parts[:1]:
            count = len({*own.labels, *own.forced} - {""})
            found[name if key.searching else one.tier] = -(-copies // max(count, 1))
    return found


def _in_two(one: Aware, searches: NDArray[np.bool_]) -> dict[str, Aware]:
    """Return an attribute as nodes have it that are not for search replicas, and that are."""
    here = list(zip(one.labels, searches.tolist(), strict=True))
    return {
        f"{one.tier} of other nodes": one._replace(labels=["" if s else own for own, s in here]),
        f"{one.tier} of search nodes": one._replace(labels=[own if s else "" for own, s in here]),
    }


def _tag(
    tags: dict[str, NDArray[np.bool_]], mask: NDArray[np.bool_], closing: Sequence[str]
) -> str:
    """Return the tag of nodes that some settings leave open, named after these; "" for all."""
    if mask.all():
        return ""
    name = word(" and ".join(closing))
    same = (f"{name} ({i})" if i else name for i in range(len(tags) + 1))
    tag = next(tag for tag in same if tag not in tags or np.array_equal(tags[tag], mask))
    tags[tag] = mask
    return tag


def _filtered(
    settings: Settings, nodes: Sequence[DataNode], attributes: Sequence[Aware]
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return the nodes that filters and awareness leave to an index, (N,), and what closes any."""
    mask, closing = filtered(settings, "index.routing.allocation.", nodes)
    if not is_everywhere(settings):
        for one in attributes:
            labelled = np.array([bool(label) for label in one.labels], np.bool_)
            if not labelled.all():
                closing = [*closing, f"{AWARE}attributes: {one.tier}"]
            mask = mask & labelled
    return mask, closing


def _standing_elsewhere(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode]
) -> set[str]:
    """Return the indices that have a copy on a node that is for any of them, or have none."""
    alone = {node.name for node in nodes if node.only_frozen or node.only_remote}
    homes: dict[str, set[str]] = {}
    for shard in shards:
        rows = [found.shards[i] for i in shard.rows]
        named = {name for row in rows if row["prirep"] != "s" for name, _, _ in ends(row)}
        homes.setdefault(shard.of, set()).update(named)
    return {index for index, named in homes.items() if not named or named - alone}


def _awareness(found: Findings, nodes: Sequence[DataNode]) -> list[Aware]:
    """Return the awareness attributes."""
    attributes = []
    _, named = found.cluster.get(f"{AWARE}attributes", ("", ""))
    for attribute in dict.fromkeys(words(named)):
        labels = [next(iter(node.values(attribute)), "") for node in nodes]
        if not any(labels):
            add = "" if found.nodes else "; add _nodes"
            found.notes.add(
                f"that {AWARE}attributes names {printable(attribute)}, which no node has: it is "
                f"not kept, and Elasticsearch allocates nothing by it{add}"
            )
            continue
        tier = f"{attribute} attribute" if attribute in ("node", "host") else attribute
        forced = words(found.cluster.get(f"{AWARE}force.{attribute}.values", ("", ""))[1])
        attributes.append(Aware(tier, labels, forced))
    return attributes
