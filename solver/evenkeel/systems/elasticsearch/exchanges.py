"""Find the nodes that lose and gain copies of a shard, and the reroute commands for that."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel.systems.elasticsearch.shards import ends, native_of

Command = dict[str, dict[str, Any]]


class Exchange(NamedTuple):
    """The nodes that lose and that gain copies of one role, in the order of slots."""

    leaves: list[int]
    joins: list[int]


def exchanges(roles: Sequence[int], before: Sequence[int], after: Sequence[int]) -> list[Exchange]:
    """Return the exchange of each role, given the roles and nodes of slots, -1 for none."""
    found = []
    more = max(len(before), len(after)) - len(roles)
    all_roles = [*roles, *[int(Role.VOTER)] * more]
    for role in sorted({*all_roles}):
        old = [n for own, n in zip(all_roles, before, strict=False) if own == role and n >= 0]
        new = [n for own, n in zip(all_roles, after, strict=False) if own == role and n >= 0]
        leaves = [n for n in old if n not in after]
        found.append(Exchange(leaves, [n for n in new if n not in before]))
    return found


def under_way(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return the copies in progress by partition: their sources by target, "" for new copies."""
    # only a started copy can be moved; others are cancelled first
    found: dict[str, dict[str, str]] = {}
    for row in native_of(cluster)["shards"]:
        there = ends(row)
        if len(there) > 1 or row.get("state") == "INITIALIZING":
            origin = there[0][0] if len(there) > 1 else ""
            found.setdefault(f"{row['index']}/{int(row['shard'])}", {})[there[-1][0]] = origin
    return found


def orders(
    own: Mapping[str, Any],
    exchanged: Sequence[Exchange],
    names: Sequence[str],
    coming: Mapping[str, str],
    primary: int = -1,
) -> list[list[Command]]:
    """Return the commands for one shard: cancels, moves and new copies."""
    # ``own`` names the shard; ``coming`` has the source of each copy in progress, by target. Copies
    # that leave for nowhere are cancelled; of the ``primary``, another copy takes the place.
    cancels: list[Command] = []
    moves: list[Command] = []
    copies: list[Command] = []
    for one in exchanged:
        leaving, joining = ([names[n] for n in nodes] for nodes in one)
        for target in [name for name in leaving if name in coming]:
            cancels.append({"cancel": {**own, "node": target, "allow_primary": False}})
            leaving.remove(target)
            if coming[target] in joining:  # it stays at its source
                joining.remove(coming[target])
            elif coming[target]:
                leaving.append(coming[target])
        for source, target in zip(leaving, joining, strict=False):
            moves.append({"move": {**own, "from_node": source, "to_node": target}})
        cancels += [
            {
                "cancel": {
                    **own,
                    "node": name,
                    "allow_primary": primary >= 0 and name == names[primary],
                }
            }
            for name in leaving[len(joining) :]
        ]
        copies += [
            {"allocate_replica": {**own, "node": target}} for target in joining[len(leaving) :]
        ]
    # the primary last: then another copy is promoted that stays
    cancels.sort(key=lambda one: one["cancel"]["allow_primary"])
    return [cancels, moves, copies]


def goes_where_one_leaves(command: Command, coming: Mapping[str, str], cancelled: set[str]) -> bool:
    """Return whether a command puts a copy on a node that another copy of its shard is leaving.

    >>> move = {"move": {"index": "i", "shard": 0, "from_node": "c", "to_node": "a"}}
    >>> goes_where_one_leaves(move, {"b": "a"}, set()), goes_where_one_leaves(move, {}, set())
    (True, False)
    """
    # Elasticsearch refuses that until the other has left. ``coming`` has the source of each copy in
    # progress, by target; those to ``cancelled`` targets stay at their source.
    [(kind, of)] = command.items()
    if kind == "cancel":
        return False
    leaving = {source for target, source in coming.items() if target not in cancelled}
    return (of.get("to_node") or of["node"]) in leaving
