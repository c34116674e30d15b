"""Answers of NATS servers on JetStream, random or specified by a test."""

import json
import random
from collections.abc import Collection, Sequence
from typing import Any

Row = dict[str, Any]


def stream(
    name: str,
    by: str,
    peers: Sequence[str],
    leader: str,
    *,
    size: int = 0,
    max_bytes: int = -1,
    late: Collection[str] = (),
    down: Collection[str] = (),
    placement: Row | None = None,
    cluster: str = "C",
) -> Row:
    """Return a stream as one of its servers sees it, which leaves itself out."""
    replicas = [
        {"name": one, "current": one not in {*late, *down} and leader in (by, one),
         **({"offline": True} if one in down else {}), "active": 1, "peer": one}
        for one in sorted(peers) if one != by
    ]  # fmt: skip
    config = {"name": name, "subjects": [name], "retention": "limits", "max_bytes": max_bytes,
              "storage": "file", "num_replicas": len(peers)}  # fmt: skip
    return {
        "name": name,
        "cluster": {
            "name": cluster,
            "leader": leader,
            **({"replicas": replicas} if replicas else {}),
        },
        "config": config | ({"placement": placement} if placement else {}),
        "state": {"messages": 0, "bytes": size},
    }


def answer(
    server: str,
    servers: Sequence[str],
    streams: Sequence[Row],
    *,
    tags: Sequence[str] = (),
    unique: str = "",
    account: str = "A",
    cluster: str = "C",
    ver: str = "2.15.2",
    down: Collection[str] = (),
    max_storage: int = 10**9,
) -> Row:
    """Return what one server answers."""
    meta = next(one for one in servers if one not in down)
    replicas = [
        {"name": one, "current": one not in down, **({"offline": True} if one in down else {})}
        for one in servers if one != meta
    ]  # fmt: skip
    config = {"max_memory": 10**6, "max_storage": max_storage, "unique_tag": unique}
    return {
        "server": {"name": server, "id": f"N{server}", "cluster": cluster, "ver": ver,
                   "tags": [*tags]},
        "data": {
            "server_id": f"N{server}", "config": config,
            "meta_cluster": {"name": cluster, "leader": meta, "replicas": replicas},
            "account_details": [{"name": account, "id": account, "stream_detail": [*streams]}],
        },
    }  # fmt: skip


def answers(
    servers: Sequence[str],
    streams: Sequence[Any],
    *,
    tags: Any = None,
    down: Collection[str] = (),
    **more: Any,
) -> list[Row]:
    """Return what all servers answer on streams, each a name, its peers, its leader and more."""
    found = []
    for one in servers:
        own = [
            stream(name, one, peers, leader, down=down, cluster=more.get("cluster", "C"),
                   **(rest[0] if rest else {}))
            for name, peers, leader, *rest in streams if one in peers
        ]  # fmt: skip
        if one not in down:
            row = answer(one, servers, own, tags=(tags or {}).get(one, ()), down=down, **more)
            found.append(row)
    return found


def encoded(rows: Sequence[Row]) -> bytes:
    """Return answers, one a line."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in rows)


def dump(draw: random.Random) -> list[Row]:
    """Return what servers answer on streams of all kinds."""
    servers = [f"n{i}" for i in range(draw.randint(1, 6))]
    down = draw.sample(servers, draw.randint(0, len(servers) - 1)) if draw.random() < 0.3 else []
    tags = {one: draw.sample(["zone:a", "zone:b", "ssd", "!jetstream", f"server:{one}"],
                             draw.randint(0, 4)) for one in servers}  # fmt: skip
    streams = []
    for i in range(draw.randint(0, 5)):
        peers = draw.sample(servers, draw.randint(1, len(servers)))
        placement = {"tags": draw.sample(["ssd", "!zone:a", "x=y,z"], 1)}
        more = {"size": draw.choice([0, 7, 10**9]), "max_bytes": draw.choice([-1, 100]),
                "placement": draw.choice([None, placement])}  # fmt: skip
        streams.append((draw.choice(["S", "a b", "ü", "{{x}}"]) + str(i), peers,
                        draw.choice([*peers, ""]), more))  # fmt: skip
    rows = answers(servers, streams, tags=tags, down=down, unique=draw.choice(["", "zone:"]),
                   ver=draw.choice(["2.15.2", "2.9.16", "2.12.0-beta.1"]))  # fmt: skip
    draw.shuffle(rows)
    return rows
