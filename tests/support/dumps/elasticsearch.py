"""Random clusters of Elasticsearch: shards in any state, with or without other answers."""

import json
import random
from typing import Any

Row = dict[str, str | None]
INDICES = ("orders", "logs-2026", ".kibana", "ü", "a'b", "$(x)", "{y}", "[z]")


def dump(draw: random.Random) -> tuple[list[Row], list[bytes]]:
    """Return rows of ``_cat/shards``, and the answers beside them."""
    count = draw.randint(2, 6)
    nodes = [f"es {n}" if draw.random() < 0.1 else f"es-{n}" for n in range(count)]
    indices = draw.sample(INDICES, draw.randint(1, 3))
    sized = draw.random() < 0.7
    rows = [
        row
        for index in indices
        for number in range(draw.randint(1, 3))
        for row in shard(draw, index, number, nodes, sized)
    ]
    draw.shuffle(rows)
    beside = []
    if draw.random() < 0.6:
        beside.append(
            json.dumps(
                {
                    "cluster_name": "c",
                    "nodes": {f"Id{n}": node(draw, nodes[n]) for n in range(count)},
                }
            )
        )
    if draw.random() < 0.5:
        beside.append(json.dumps([disk(draw, one) for one in nodes]))
    if draw.random() < 0.5:
        told = {"cluster.routing.allocation.exclude._name": draw.choice(nodes)}
        if draw.random() < 0.3:
            told["cluster.routing.allocation.same_shard.host"] = "true"
        beside.append(json.dumps({"persistent": told, "transient": {}}))
    if draw.random() < 0.5:
        own = {"index.routing.allocation.total_shards_per_node": str(draw.randint(1, 4))}
        beside.append(json.dumps({index: {"settings": own} for index in indices}))
    return rows, [one.encode() for one in beside]


def shard(draw: random.Random, index: str, number: int, nodes: list[str], sized: bool) -> list[Row]:
    """Return the copies of one shard: on their nodes, on their way, or nowhere."""
    held = draw.sample(nodes, draw.randint(1, len(nodes)))
    found = []
    for i in range(draw.randint(1, len(held))):
        row: Row = {"index": index, "shard": str(number), "prirep": "r" if i else "p"}
        others = [one for one in nodes if one not in held]
        state = draw.choice(["STARTED"] * 4 + ["INITIALIZING", "RELOCATING", "UNASSIGNED"])
        if state == "UNASSIGNED":
            row |= {"state": state, "node": None, "ip": None, "id": None}
        elif state == "RELOCATING" and others:
            where = f"{held[i]} -> 10.0.0.9 Id9 {others[0]}"
            held.append(others[0])
            row |= {"state": state, "node": where, "ip": "10.0.0.1", "id": "Id1"}
        else:
            state = "STARTED" if state == "RELOCATING" else state
            row |= {"state": state, "node": held[i], "ip": "10.0.0.1", "id": "Id1"}
        if sized:
            row |= {"docs": "7", "store": draw.choice(["0", "31100000", "29.6mb", "1gb", None])}
        found.append(row)
    return found


def node(draw: random.Random, name: str) -> dict[str, Any]:
    """Return a node that holds data."""
    return {
        "name": name, "host": "h", "ip": "10.0.0.1", "transport_address": "a:9300",
        "roles": ["data_hot", "data_content"],
        "attributes": {"zone": draw.choice("abc")}, "version": draw.choice(["8.4.1", "8.12.0"]),
    }  # fmt: skip


def disk(draw: random.Random, name: str) -> Row:
    """Return a row of ``_cat/allocation``."""
    if draw.random() < 0.1:
        return {"shards": "0", "disk.indices": "0", "disk.total": None, "node": name}
    return {
        "shards": "4", "disk.indices": "4294967296",
        "disk.used": draw.choice(["6442450944", "93415538688", "98784247808"]),
        "disk.total": draw.choice(["107374182400", "214748364800"]), "node": name,
    }  # fmt: skip
