"""Random clusters of RabbitMQ: queues of all kinds, with or without nodes and zones."""

import json
import random
from typing import Any

Row = dict[str, Any]
QUEUES = ("orders.0", "orders.1", "a b", "ü", "$(x)", 'q"t', "x/y", "%2F", "-f")
HOSTS = ("/", "shop", "a/b", "50%")


def dump(draw: random.Random) -> tuple[list[Row], list[bytes]]:
    """Return queues, and the answers beside them."""
    nodes = [f"rabbit@mq-{letter}" for letter in "abcdef"[: draw.randint(1, 6)]]
    management = draw.random() < 0.7
    hosts = draw.sample(HOSTS, draw.randint(1, 3)) if management else [""]
    ghosts = [*nodes, "rabbit@forgotten"] if draw.random() < 0.3 else nodes
    rows = [
        queue(draw, host, name, ghosts)
        for host in hosts
        for name in draw.sample(QUEUES, draw.randint(1, 4))
    ]
    draw.shuffle(rows)
    beside: list[Any] = []
    if draw.random() < 0.5:
        running = draw.sample(nodes, draw.randint(1, len(nodes)))
        states = ["draining", "not under maintenance", "novel"]
        drained = {one: draw.choice(states) for one in running}
        beside.append(
            {"disk_nodes": nodes, "running_nodes": running, "maintenance_status": drained,
             "alarms": draw.choice([[], [{"node": running[0], "resource": "disk"}]]),
             "partitions": draw.choice([{}, {}, {running[0]: [nodes[0]]}])}
        )  # fmt: skip
    if draw.random() < 0.5:
        zoned = [*ghosts, "rabbit@never"] if draw.random() < 0.3 else ghosts
        beside.append({one: draw.choice(["z 1", "z2", "ü"]) for one in zoned})
    return rows, [json.dumps(one).encode() for one in beside]


def queue(draw: random.Random, host: str, name: str, nodes: list[str]) -> Row:
    """Return a quorum queue, or one that stands on one node."""
    told = {"vhost": host} if host else {}
    if draw.random() < 0.2:
        return {"name": name, **told, "type": "classic", "members": "", "leader": "", "online": ""}
    if draw.random() < 0.1:
        return {"name": name, **told, "type": "quorum", "members": "", "leader": "", "online": ""}
    members = draw.sample(nodes, draw.randint(1, len(nodes)))
    online = draw.sample(members, draw.randint(0, len(members)))
    row = {
        "name": name, **told, "type": "quorum", "members": members, "online": online,
        "leader": draw.choice([*members, "", "rabbit@other"]),
        "arguments": {"x-queue-type": "quorum", "n": [1]},
    }  # fmt: skip
    if draw.random() < 0.6:
        row["message_bytes"] = draw.choice([0, 7, 10**9, ""])
    return row
