"""Random maps of Ceph: a hierarchy, rules of every kind, pools, and defects."""

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

Dump = dict[str, Any]

NONE = 2147483647
ONE = 65536
TYPES = {"osd": 0, "host": 1, "rack": 3, "datacenter": 8, "root": 11}
CLASSES = ("hdd", "ssd", "nvme")


def dump(draw: random.Random) -> tuple[Dump, Dump]:
    """Return ``osd dump`` and ``osd crush dump`` of one cluster."""
    crush, devices = hierarchy(draw)
    listed = [osd for osd in devices if draw.random() < 0.97] or devices[:1]
    if draw.random() < 0.1:
        listed.append(max(devices) + draw.choice([1, 3]))  # new, and not in the map yet
    osds = [
        {
            "osd": osd, "up": int(draw.random() < 0.9), "in": int(draw.random() < 0.9),
            "weight": draw.choice([1.0, 1.0, 0.75, 0.5]),
            "primary_affinity": draw.choice([1.0, 1.0, 1.0, 0.5, 0.0]),
        }
        for osd in listed
    ]  # fmt: skip
    pools = [
        pool(draw, number, crush["rules"])
        for number in draw.sample(range(1, 9), draw.randint(1, 3))
    ]
    groups = [f"{one['pool']}.{pg:x}" for one in pools for pg in range(one["pg_num"])]
    paired = draw.sample(groups, draw.randint(0, min(8, len(groups))))
    paired.sort(key=groups.index)
    decreed = draw.sample(groups, draw.randint(0, min(4, len(groups))))
    osd_map = {
        "max_osd": max(listed) + 1,
        "pools": pools,
        "osds": osds,
        "pg_upmap": [],
        "pg_upmap_items": [{"pgid": pgid, "mappings": pairs(draw, listed)} for pgid in paired],
        "pg_upmap_primaries": [
            {"pgid": pgid, "primary_osd": draw.choice(listed)} for pgid in decreed
        ],
        "pg_temp": [],
        "erasure_code_profiles": {
            f"p{one['pool']}": {"k": str(max(one["size"] - 1, 1)), "m": "1"}
            for one in pools if one["type"] == 3
        },
    }  # fmt: skip
    return osd_map, crush


def hierarchy(draw: random.Random) -> tuple[Dump, list[int]]:
    """Return a CRUSH map and its devices; some numbers are left free."""
    numbers = iter(range(-1, -10_000, -1))
    root = bucket(next(numbers), "default", "root")
    buckets, devices, classes = [root], [], {}
    many = draw.choice([CLASSES[:1], CLASSES[:2], CLASSES[:2], CLASSES, ()])
    for name, site in sites(draw):
        centre = bucket(next(numbers), name, "datacenter") if name else root
        if name:
            buckets.append(centre)
        for at, hosts in enumerate(site):
            rack = bucket(next(numbers), f"{name}r{at}", "rack")
            buckets.append(rack)
            for number in range(hosts):
                host = bucket(next(numbers), f"{rack['name']}h{number}", "host")
                for _ in range(draw.randint(0 if devices else 1, 4)):
                    devices.append((devices[-1] if devices else -1) + draw.choice([1, 1, 1, 2]))
                    weight = draw.choice([ONE, ONE, ONE, 2 * ONE, ONE // 2, 0])
                    host["items"].append({"id": devices[-1], "weight": weight})
                    if many and draw.random() < 0.95:
                        classes[devices[-1]] = draw.choice(many)
                buckets.append(host)
                rack["items"].append({"id": host["id"], "weight": total(host)})
            centre["items"].append({"id": rack["id"], "weight": total(rack)})
        if name:
            root["items"].append({"id": centre["id"], "weight": total(centre)})
    draw.shuffle(root["items"])
    by_id = {one["id"]: one for one in buckets}
    for kind in many:
        buckets += shadow_tree(by_id, root, kind, classes, numbers)
    roots = {one["name"]: one["id"] for one in buckets if one["type_name"] in ROOTS}
    return {
        "devices": [
            {"id": osd, "name": f"osd.{osd}"} | ({"class": classes[osd]} if osd in classes else {})
            for osd in devices
        ],
        "types": [{"type_id": number, "name": name} for name, number in TYPES.items()],
        "buckets": buckets,
        "rules": [rule(draw, number, roots) for number in range(draw.randint(1, 4))],
        "tunables": {
            "choose_total_tries": 50, "chooseleaf_stable": 1, "chooseleaf_vary_r": 1,
            "chooseleaf_descend_once": 1, "choose_local_tries": 0, "choose_local_fallback_tries": 0,
            "minimum_required_version": "x",
        },
    }, devices  # fmt: skip


ROOTS = frozenset(("root", "datacenter"))


def bucket(number: int, name: str, kind: str) -> Dump:
    """Return an empty bucket."""
    return {
        "id": number, "name": name, "type_id": TYPES[kind], "type_name": kind, "alg": "straw2",
        "hash": "rjenkins1", "items": [],
    }  # fmt: skip


def sites(draw: random.Random) -> list[tuple[str, list[int]]]:
    """Return data centres, or one without a name, each with the hosts of its racks."""
    names = [f"dc{i}" for i in range(draw.choice([2, 2, 3]))] if draw.random() < 0.5 else [""]
    most = 2 if names[0] else 4
    return [(name, [draw.randint(1, 4) for _ in range(draw.randint(1, most))]) for name in names]


def shadow_tree(
    by_id: dict[int, Dump], top: Dump, kind: str, classes: dict[int, str], numbers: Any
) -> list[Dump]:
    """Return the copies of a bucket and those below it that have the devices of one class."""
    copy = bucket(next(numbers), f"{top['name']}~{kind}", top["type_name"])
    found = [copy]
    for item in top["items"]:
        if item["id"] >= 0:
            copy["items"] += [item] * (classes.get(item["id"]) == kind)
        else:
            below = shadow_tree(by_id, by_id[item["id"]], kind, classes, numbers)
            copy["items"].append({"id": below[0]["id"], "weight": total(below[0])})
            found += below
    return found


def total(bucket: Dump) -> int:
    """Return what the items of a bucket weigh."""
    return sum(item["weight"] for item in bucket["items"])


def rule(draw: random.Random, number: int, roots: dict[str, int]) -> Dump:
    """Return one of the rules that operators write."""
    kind = draw.choice(["firstn", "indep"])
    tops = [name for name in roots if name.startswith("default")]
    centres = [name for name in roots if name.startswith("dc") and "~" not in name]
    wide = draw.choice(["host", "host", "rack", "datacenter", "osd"])
    leaf = [(f"{'choose' if wide == 'osd' else 'chooseleaf'}_{kind}", 0, wide)]
    patterns = [[(draw.choice(tops), leaf)]] * 4
    patterns += [
        [(draw.choice(tops), [(f"choose_{kind}", a, wide), (f"chooseleaf_{kind}", b, "host")])]
        for a, b, wide in ((0, 2, "datacenter"), (2, 2, "rack"), (1, 0, "rack"), (0, 1, "rack"))
    ]
    patterns.append(
        [(draw.choice(tops), [("choose_indep", 0, "host"), ("choose_indep", 2, "osd")])]
    )
    patterns.append([(draw.choice(tops), [
        ("choose_firstn", 2, "datacenter"), ("choose_firstn", 2, "host"),
        ("choose_firstn", 1, "osd"),
    ])])  # fmt: skip
    if len(tops) > 2:
        ssd, hdd = (f"default~{name}" for name in draw.sample(["ssd", "hdd"], 2))
        one, rest = ([(f"chooseleaf_{kind}", number, "host")] for number in (1, -1))
        patterns += [[(ssd, one), (hdd, rest)]] * 2
    if len(centres) > 1:
        each = [(f"chooseleaf_{kind}", 2, "host")]
        patterns += [[(centre, each) for centre in centres]] * 2
        patterns.append([
            (centres[0], [(f"chooseleaf_{kind}", 1, "rack")]), ("default", leaf),
        ])  # fmt: skip
    steps: list[Dump] = []
    if kind == "indep":
        steps += [{"op": "set_chooseleaf_tries", "num": 5}, {"op": "set_choose_tries", "num": 100}]
    for top, choices in draw.choice(patterns):
        steps.append({"op": "take", "item": roots[top], "item_name": top})
        steps += [{"op": op, "num": num, "type": of} for op, num, of in choices]
        steps.append({"op": "emit"})
    found = {"rule_id": number, "rule_name": f"rule{number}", "type": 1, "steps": steps}
    if draw.random() < 0.07:  # multi-step retry rules of version 19
        found |= {"type": 5, "steps": [
            {"op": "set_choosemsr_collision_tries", "num": 8},
            {"op": "take", "item": roots["default"], "item_name": "default"},
            {"op": "choosemsr", "num": 0, "type": "host"},
            {"op": "choosemsr", "num": 2, "type": "osd"},
            {"op": "emit"},
        ]}  # fmt: skip
    return found


def pool(draw: random.Random, number: int, rules: list[Dump]) -> Dump:
    """Return a pool, replicated or erasure-coded."""
    groups = draw.choice([1, 4, 6, 8, 16, 32, 64])
    which = draw.choice(rules)
    erasure = any("indep" in step["op"] for step in which["steps"]) and draw.random() < 0.7
    size = draw.choice([3, 4, 5, 6, 8]) if erasure else draw.choice([1, 2, 3, 3, 4, 4])
    return {
        "pool": number, "pool_name": draw.choice(["", f"data{number}", "data"]),
        "type": 3 if erasure else draw.choice([1, 1, 1, 1, 1, 3]), "size": size,
        "crush_rule": which["rule_id"], "pg_num": groups,
        "pg_placement_num": draw.choice([groups, groups, max(groups // 2, 1)]),
        "flags": draw.choice([0, 1, 1]), "erasure_code_profile": f"p{number}",
    }  # fmt: skip


def pairs(draw: random.Random, devices: list[int]) -> list[Dump]:
    """Return pairs of devices, most of which do nothing."""
    return [
        {"from": draw.choice(devices), "to": draw.choice(devices)}
        for _ in range(draw.randint(1, 4))
    ]


def encoded(document: Dump) -> bytes:
    """Return a document as Ceph prints it."""
    return json.dumps(document).replace('"@', "").replace('@"', "").encode()


class Broken(NamedTuple):
    """The files of a broken cluster, what their notes have to name, and which groups stay."""

    files: list[bytes]
    named: set[str]
    still: set[str]


def broken(draw: random.Random, ups: Callable[[list[bytes]], dict[str, list[int]]]) -> Broken:
    """Return the dump of a broken cluster; ``ups`` says where the groups of two files are."""
    osd_map, crush = dump(draw)
    named: set[str] = set()
    still: set[str] = set()
    groups = [f"{one['pool']}.{pg:x}" for one in osd_map["pools"] for pg in range(one["pg_num"])]
    listed = [one["osd"] for one in osd_map["osds"]]
    strange = {one["rule_id"] for one in crush["rules"] if one["type"] == 5}
    if draw.random() < 0.05:
        osd_map["pools"][0]["crush_rule"] = 77
        strange.add(77)
    for one in osd_map["pools"]:
        if one["crush_rule"] in strange:
            named.add(f"pool {one['pool']} ")
            still |= {name for name in groups if name.startswith(f"{one['pool']}.")}
    for key in ("pg_upmap_items", "pg_upmap"):
        stale = {
            "pool": "99.1", "group": f"{osd_map['pools'][0]['pool']}.fff", "device": groups[0],
        }  # fmt: skip
        for kind, pgid in stale.items():
            if draw.random() < 0.8 or any(one["pgid"] == pgid for one in osd_map[key]):
                continue
            target = max(listed) + 9 if kind == "device" else listed[0]
            osd_map[key].append(
                {"pgid": pgid, "osds": [target]} if key == "pg_upmap"
                else {"pgid": pgid, "mappings": [{"from": listed[0], "to": target}]}
            )  # fmt: skip
            named.add(pgid)
    if draw.random() < 0.2:
        osd_map["pg_upmap_primaries"].append({"pgid": "99.1", "primary_osd": listed[0]})
        named.add("99.1")
    temporary = draw.sample(groups, draw.choice([0, 0, 1, 3]) % (len(groups) + 1))
    osd_map["pg_temp"] = [{"pgid": one, "osds": listed[:3]} for one in temporary]
    whole = draw.sample(groups, draw.choice([0, 0, 0, 1]))
    osd_map["pg_upmap"] += [{"pgid": one, "osds": listed[:1]} for one in whole]
    for one in osd_map["pools"]:
        one |= draw.choice([{}, {"read_balance": {"score_acting": NAN, "score_stable": INF}}])
    files = [encoded(osd_map), encoded(crush)]
    if draw.random() < 0.6:
        stats, copied = pg_dump(draw, ups(files))
        still -= set(temporary)
        files.append(encoded(stats))
        still |= copied
    else:
        still |= {*temporary}
    if draw.random() < 0.4:
        gone = draw.choice([[], [max(listed) + 40]])
        named |= {str(osd) for osd in gone}
        files.append(encoded({"nodes": [
            {
                "id": osd, "name": f"osd.{osd}", "type": "osd", "type_id": 0,
                "kb": draw.choice([0, 10**9, 10**9]), "utilization": draw.choice([0.5, NAN, INF]),
                "var": draw.choice([1.0, NAN]),
            }
            for osd in listed + gone
        ], "stray": [], "summary": {"average_utilization": NAN}}))  # fmt: skip
    draw.shuffle(files)
    return Broken(files, named, still)


NAN, INF = "@-nan@", "@inf@"  # what ``encoded`` prints bare


def pg_dump(draw: random.Random, ups: dict[str, list[int]]) -> tuple[Dump, set[str]]:
    """Return ``pg dump`` of groups, some of which are being copied; and those."""
    copied: set[str] = set()
    stats = []
    for pgid, up in ups.items():
        acting, state = up, "active+clean"
        held = [osd for osd in up if osd != NONE]
        if len(held) > 1 and draw.random() < 0.1:
            acting = [NONE if osd == held[0] else osd for osd in up]
            state = draw.choice(["active+remapped+backfilling", "active+undersized+degraded"])
            copied.add(pgid)
        stats.append({
            "pgid": pgid, "state": state, "up": up, "acting": acting,
            "up_primary": held[0] if held else -1,
            "stat_sum": {"num_bytes": draw.choice([0, 10**9, 10**9, 3 * 10**9, -4096])},
        })  # fmt: skip
    if len(stats) > 4 and draw.random() < 0.2:
        stats.append(stats[0] | {"pgid": "99.0"})
        copied.discard(stats.pop(draw.randrange(len(stats) - 1))["pgid"])
    return {"pg_ready": True, "pg_map": {"version": 1, "pg_stats": stats}}, copied
