"""Answers of Qdrant's peers, random or specified by a test."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def answers(
    shards: Mapping[int, Sequence[int]],
    peers: Sequence[int],
    states: Mapping[tuple[int, int], str] | None = None,
    transfers: Sequence[Row] = (),
    **more: Any,
) -> list[Row]:
    """Return what each of some peers answers on shards, given as their peers by number."""
    found = []
    for own in peers:
        rows = [{"shard_id": s, "peer_id": p, "state": (states or {}).get((s, p), "Active"),
                 "points_count": 100 + s} for s, held in shards.items() for p in held]  # fmt: skip
        result = {"peer_id": own, "local_shards": [r for r in rows if r["peer_id"] == own],
                  "remote_shards": [r for r in rows if r["peer_id"] != own],
                  "shard_transfers": [*transfers]}  # fmt: skip
        found.append({"result": result | more})
    return found


def cluster_of(peers: Sequence[int]) -> Row:
    """Return what the first of some peers answers on the cluster."""
    listed = {str(p): {"uri": f"http://h{p}:6335/"} for p in peers}
    return {"result": {"peer_id": peers[0], "peers": listed, "raft_info": {}}}


def encoded(rows: Sequence[Row]) -> bytes:
    """Return answers, one a line."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


def dump(draw: random.Random) -> list[Row]:
    """Return what peers answer on shards in all states, of one collection or two."""
    peers = draw.sample([1, 2, 3, 4, 2**53 + 1, 2**64 - 1], draw.randint(1, 6))
    rows = [cluster_of(peers)] if draw.random() < 0.7 else []
    kinds = ["Active"] * 6 + ["Dead", "Partial", "Initializing", "Listener", "Recovery"]
    for name in ("wiki", "a/b c")[: draw.randint(1, 2)]:
        shards = {s: draw.sample(peers, draw.randint(1, len(peers)))
                  for s in range(draw.randint(0, 5))}  # fmt: skip
        states = {(s, p): draw.choice(kinds) for s, held in shards.items() for p in held}
        copies = [{"shard_id": s, "from": held[0], "to": draw.choice(peers)}
                  for s, held in shards.items() if draw.random() < 0.1]  # fmt: skip
        own = draw.sample(peers, draw.randint(1, len(peers)))
        rows += [{"collection": name, **one} for one in answers(shards, own, states, copies)]
    draw.shuffle(rows)
    return rows
