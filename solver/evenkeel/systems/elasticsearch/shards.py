"""Group the rows of ``_cat/shards``, one per shard copy, by index and shard number."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, TypedDict

from evenkeel.model.cluster import Cluster
from evenkeel.systems.documents import quoted
from evenkeel.systems.elasticsearch.documents import ElasticFindings, Row
from evenkeel.systems.payload import payload_of

RELOCATING = re.compile(r"(.*) -> (\S*) (\S*) (.*)", re.DOTALL)
KINDS = frozenset("prs")  # primary, replica, and a replica that only searches


class Shard(NamedTuple):
    """The copies of one shard by rows in the table, the primary first, search replicas last."""

    of: str  # its index
    number: int
    rows: list[int]


class Copy(TypedDict):
    """A row of ``_cat/shards``, as it was read."""

    index: str
    shard: str | int


class Payload(TypedDict):
    """What was read beside a cluster."""

    shards: list[Copy]
    enable: NotRequired[dict[str, str]]
    expanding: NotRequired[list[str]]


def native_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise where it is not of Elasticsearch."""
    message = "was not read from Elasticsearch: there are no shards to write"
    native: Mapping[str, Any] = payload_of(cluster, Payload, message)
    return native


def ends(row: Row) -> list[tuple[str, str, str]]:
    """Return name, id and address of the node that holds a shard, and of the one it moves to."""
    text, key, address = row.get("node") or "", row.get("id") or "", row.get("ip") or ""
    # a listing without a column of states has none
    moving = RELOCATING.fullmatch(text) if row.get("state") in (None, "RELOCATING") else None
    if moving is None:
        return [(text, key, address)]
    return [(moving[1], key, address), (moving[4], moving[3], moving[2])]


def shards_of(found: ElasticFindings) -> list[Shard]:
    """Return all shards by index and number, the primary of each first."""
    shards: dict[tuple[str, int], Shard] = {}
    for i, row in enumerate(found.shards):
        index, text, kind = row.get("index"), row.get("shard") or "", row.get("prirep")
        if not index:
            found.faults.add(f"{found.shard_at(i)}.index", None, "is missing")
        elif not (text.isascii() and text.isdecimal() and len(text) <= 9):
            message = "must be the number of a shard"
            found.faults.add(f"{found.shard_at(i)}.shard", quoted(text), message)
        elif kind not in KINDS:
            found.faults.add(f"{found.shard_at(i)}.prirep", quoted(kind), "must be p, r or s")
        else:
            key = (index, int(text))
            one = shards.get(key)
            if one is None:
                shards[key] = Shard(*key, [i])
            elif kind == "p" and found.shards[one.rows[0]]["prirep"] != "p":
                one.rows.insert(0, i)
            else:
                one.rows.append(i)
                if kind == "p":
                    first = found.shard_at(one.rows[0])
                    message = f"is a second primary: {first} is one already"
                    found.faults.add(f"{found.shard_at(i)}.prirep", "p", message)
    for one in shards.values():
        one.rows.sort(key=lambda i: found.shards[i]["prirep"] == "s")
    return [shards[key] for key in sorted(shards)]
