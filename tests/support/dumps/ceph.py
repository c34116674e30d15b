"""Random maps of Ceph: a hierarchy, rules, pools, pairs in force, and primaries by decree."""

import json
import random
from typing import Any

Dump = dict[str, Any]


def dump(draw: random.Random) -> tuple[Dump, Dump]:
    """Return ``osd dump`` and ``osd crush dump`` of one cluster."""
    crush, devices = hierarchy(draw)
    osds = [
        {
            "osd": osd, "up": int(draw.random() < 0.9), "in": int(draw.random() < 0.9),
            "weight": draw.choice([1.0, 1.0, 0.75, 0.5]),
            "primary_affinity": draw.choice([1.0, 1.0, 1.0, 0.5, 0.0]),
        }
        for osd in devices
    ]  # fmt: skip
    rules = [rule["rule_id"] for rule in crush["rules"]]
    pools = [pool(draw, number, rules) for number in draw.sample(range(1, 9), draw.randint(1, 2))]
    groups = [f"{one['pool']}.{pg:x}" for one in pools for pg in range(one["pg_num"])]
    paired = draw.sample(groups, draw.randint(0, min(6, len(groups))))
    paired.sort(key=groups.index)
    decreed = draw.sample(groups, draw.randint(0, min(4, len(groups))))
    osd_map = {
        "max_osd": max(devices) + 1,
        "pools": pools,
        "osds": osds,
        "pg_upmap_items": [{"pgid": pgid, "mappings": pairs(draw, devices)} for pgid in paired],
        "pg_upmap_primaries": [
            {"pgid": pgid, "primary_osd": draw.choice(devices)} for pgid in decreed
        ],
    }
    return osd_map, crush


def hierarchy(draw: random.Random) -> tuple[Dump, list[int]]:
    """Return a CRUSH map and its devices; some numbers are left free."""
    hosts, devices = [], []
    for host in range(draw.randint(1, 6)):
        own = []
        for _ in range(draw.randint(0 if hosts else 1, 3)):
            devices.append((devices[-1] if devices else -1) + draw.choice([1, 1, 1, 2]))
            own.append({"id": devices[-1], "weight": draw.choice([65536, 65536, 32768, 0])})
        hosts.append({"id": -10 - host, "name": f"h{host}", "type_name": "host", "items": own})
    racks = []
    for rack in range(draw.randint(1, 3)):
        own = [{"id": one["id"], "weight": total(one)} for one in hosts[rack::3]]
        racks.append({"id": -2 - rack, "name": f"r{rack}", "type_name": "rack", "items": own})
    known = {item["id"] for rack in racks for item in rack["items"]}
    racks[0]["items"] += [
        {"id": one["id"], "weight": total(one)} for one in hosts if one["id"] not in known
    ]
    top = [{"id": one["id"], "weight": total(one)} for one in racks]
    root = {"id": -1, "name": "default", "type_name": "root", "items": top}
    domains = draw.sample(["osd", "host", "rack"], draw.randint(1, 3))
    return {
        "devices": [{"id": osd, "name": f"osd.{osd}"} for osd in devices],
        "types": [
            {"type_id": number, "name": name}
            for number, name in ((0, "osd"), (1, "host"), (3, "rack"), (11, "root"))
        ],
        "buckets": [root, *racks, *hosts],
        "rules": [rule(draw, number, domain) for number, domain in enumerate(domains)],
        "tunables": {"choose_total_tries": 50, "chooseleaf_stable": 1},
    }, devices


def total(bucket: Dump) -> int:
    """Return what the items of a bucket weigh."""
    return sum(item["weight"] for item in bucket["items"])


def rule(draw: random.Random, number: int, domain: str) -> Dump:
    """Return a rule that keeps replicas, or shards, in domains of their own."""
    kind = draw.choice(["firstn", "indep"])
    choose = "choose" if domain == "osd" else "chooseleaf"
    return {
        "rule_id": number, "rule_name": f"by {domain}",
        "steps": [
            {"op": "take", "item": -1, "item_name": "default"},
            {"op": f"{choose}_{kind}", "num": 0, "type": domain},
            {"op": "emit"},
        ],
    }  # fmt: skip


def pool(draw: random.Random, number: int, rules: list[int]) -> Dump:
    """Return a pool, replicated or erasure-coded."""
    groups = draw.choice([1, 4, 6, 8, 16])
    return {
        "pool": number, "type": draw.choice([1, 1, 3]), "size": draw.randint(1, 4),
        "crush_rule": draw.choice(rules), "pg_num": groups,
        "pg_placement_num": draw.choice([groups, max(groups // 2, 1)]),
        "flags": draw.choice([0, 1]),
    }  # fmt: skip


def pairs(draw: random.Random, devices: list[int]) -> list[Dump]:
    """Return pairs of devices, most of which do nothing."""
    return [
        {"from": draw.choice(devices), "to": draw.choice(devices)}
        for _ in range(draw.randint(1, 4))
    ]


def encoded(document: Dump) -> bytes:
    """Return a document as Ceph prints it."""
    return json.dumps(document).encode()
