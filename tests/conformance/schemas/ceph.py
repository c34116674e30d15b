"""Ceph: hashes, CRUSH mappings, placement groups and the upmap balancer.

Hashes, mappings and placement groups must be identical. An upmap file holds an input and what
Ceph's balancer made of it; pairs that differ from Ceph's are no disagreement. They are judged by
what they do: no rule broken, devices as level as the failure domains allow, few moves.
"""

import hashlib
import math
from collections import Counter
from pathlib import Path

from tests.conformance.protocol import MISSING, Case, Document, Replay, compared

NAME = "ceph"
HASHES = "ceph-hash-golden/1"
CRUSH = "ceph-crush-golden/1"
GROUPS = "ceph-pg-golden/1"
UPMAP = "ceph-upmap-golden/1"


def recognises(path: Path, document: Document) -> bool:
    return isinstance(document, dict) and document.get("format") in {HASHES, CRUSH, GROUPS, UPMAP}


def replay(path: Path, document: Document) -> Replay:
    kinds = {HASHES: _hashes, CRUSH: _mappings, GROUPS: _groups, UPMAP: _upmap}
    return kinds[document["format"]](document)


def crush_map(document):
    """The CRUSH map that a file holds."""
    from evenkeel.systems.ceph.crush.crush_map import Bucket, ChooseArg, CrushMap, CrushRule, Step

    return CrushMap(
        devices=document["max_devices"],
        types=document["types"],
        buckets=[
            Bucket(
                b["id"], b["name"], b["type"], [tuple(i) for i in b["items"]], b["alg"], b["hash"]
            )
            for b in document["buckets"]
        ],
        rules=[
            CrushRule(
                rule["rule_id"],
                rule["name"],
                [
                    Step(step["op"], step.get("item", step.get("num", 0)), step.get("type", ""))
                    for step in rule["steps"]
                ],
            )
            for rule in document["rules"]
        ],
        tunables=document["tunables"],
        choose_args={
            name: [
                ChooseArg(arg["bucket_id"], arg.get("weight_set_16_16", ()), arg.get("ids", ()))
                for arg in args
            ]
            for name, args in document.get("choose_args", {}).items()
        },
    )


def pool(document):
    """The pool that a file holds."""
    from evenkeel.systems.ceph.crush.placement import Pool

    given = document["pool"]
    return Pool(
        id=given["id"],
        pg_num=given["pg_num"],
        pgp_num=given["pgp_num"],
        size=given["size"],
        rule=given["rule_id"],
        hashpspool=given["hashpspool"],
        kind="replicated" if given["type"] == "replicated" else "erasure",
    )


def reweights(devices, given):
    """A reweight for each device; all in but those given."""
    weights = [given.get("default_reweight_16_16", 0x10000)] * devices
    for osd, weight in given.get("device_reweights_16_16", {}).items():
        weights[int(osd)] = weight
    return weights


def _hashes(document) -> Replay:
    import numpy as np

    from evenkeel_kernels.ceph.straw2 import logarithms
    from evenkeel_kernels.core import jenkins_hash as hashing

    cases = []
    for n, rows in document["hash"].items():
        function = getattr(hashing, f"hash{n}")
        for k, row in enumerate(rows):
            words = (np.array(row[: int(n)], np.int64) & 0xFFFFFFFF).astype(np.uint32)
            expected = row[int(n)] if len(row) > int(n) else MISSING
            computed = int(function(*words))
            cases.append(compared(f"hash{n}[{k}]", expected, computed))
            row[int(n) :] = [computed]
    table = logarithms()
    for k, row in enumerate(document["ln"]):
        cases.append(compared(f"ln[{k}]", row[1] if len(row) > 1 else MISSING, int(table[row[0]])))
        row[1:] = [int(table[row[0]])]
    digest = hashlib.sha256(table.astype("<i8").tobytes()).hexdigest()
    cases.append(compared("ln_sha256", document.get("ln_sha256", MISSING), digest))
    document["ln_sha256"] = digest
    for k, (draw, chosen) in enumerate(zip(document["straw2"], _draws(document), strict=True)):
        cases.append(compared(f"straw2[{k}]", draw.get("chosen", MISSING), chosen))
        draw["chosen"] = chosen
    return Replay(cases, document)


def _draws(document) -> list[int]:
    """What each draw chooses: one bucket and one lane for each of them."""
    import numpy as np

    from evenkeel_kernels.ceph import straw2 as kernels
    from evenkeel_kernels.ceph.straw2 import straws

    draws = document["straw2"]
    n = len(draws)
    items = [item for draw in draws for item in draw["items"]]
    tree = kernels.Tree(
        first=np.cumsum([0] + [len(draw["items"]) for draw in draws]),
        item=np.array(items, np.int32),
        hashed=np.array(items, np.int32).view(np.uint32),
        weight=np.array([[weight for draw in draws for weight in draw["weights"]]], np.float64),
        kind=np.ones(n, np.int32),
        straw=straws(),
    )
    x, r = (np.array([draw[key] for draw in draws], np.int64).astype(np.uint32) for key in "xr")
    at, row = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
    room = kernels.lanes(n, tree)
    kernels.straw2(tree, np.arange(n), n, at, row, x, r, room)
    return [items[place] for place in room.drawn]


def _mappings(document) -> Replay:
    crush = crush_map(document)
    cases = []
    for k, case in enumerate(document["cases"]):
        mapped = crush.map(
            case["rule_id"],
            range(case["x_min"], case["x_max"] + 1),
            case["result_max"],
            reweights(crush.devices, case),
            document.get("choose_args_in_force"),
        )
        rows = [row[:n].tolist() for row, n in zip(mapped.osd, mapped.length, strict=True)]
        none = document["none_value"]
        complete = sum(len(row) == case["result_max"] and none not in row for row in rows)
        computed = {"mappings": rows, "complete": complete}
        expected = {key: case[key] for key in computed if key in case}
        computed_alike = {key: computed[key] for key in expected}
        cases.append(compared(f"cases[{k}]", expected or MISSING, computed_alike))
        case |= computed
    return Replay(cases, document)


def _groups(document) -> Replay:
    from evenkeel.systems.ceph.crush import placement
    from evenkeel.systems.ceph.crush.crush_map import NO_OSD

    crush = crush_map(document)
    rows = placement.raw(crush, pool(document), reweights(crush.devices, document))
    computed = {
        "pps": placement.seeds(pool(document)).tolist(),
        "raw": [[osd for osd in row if osd != NO_OSD] for row in rows.tolist()],
    }
    cases = [compared(key, document.get(key, MISSING), value) for key, value in computed.items()]
    return Replay(cases, document | computed)


def _upmap(document) -> Replay:
    from evenkeel.systems.ceph.crush import method as upmap
    from evenkeel.systems.ceph.crush import placement

    crush = crush_map(document)
    before = placement.raw(crush, pool(document)).tolist()
    cases = [compared("before", document.get("before", MISSING), before)]
    figures = []
    asked = document.setdefault("ceph", {"1": {}})
    for deviation, ceph in asked.items():
        found = upmap.balance(crush, pool(document), deviation=float(deviation))
        ours = judge(document, before, found.items, float(deviation))
        cases += [
            Case(f"deviation {deviation}: {name}", holds, f"{ours}")
            for name, holds in promises(document, before, ours, float(deviation), ceph).items()
        ]
        figures.append(f"deviation {deviation}: {ours}; Ceph: {_figures(ceph)}")
        pairs = {str(pg): [list(pair) for pair in found.items[pg]] for pg in sorted(found.items)}
        ceph.clear()
        ceph |= {**ours, "upmap_items": pairs}
    document["before"] = before
    document["upmap_items"] = next(iter(asked.values()))["upmap_items"]
    return Replay(cases, document, figures)


def _figures(ceph) -> dict[str, object]:
    return {key: value for key, value in ceph.items() if key != "upmap_items"}


def osds(document) -> tuple[dict[int, int], dict[int, float]]:
    """The failure domain of each device, and its share of the pool's replicas by weight."""
    kind = {bucket["id"]: bucket["type"] for bucket in document["buckets"]}
    above = {item: b["id"] for b in document["buckets"] for item, _ in b["items"]}
    weight = {i: w for b in document["buckets"] for i, w in b["items"] if i >= 0}
    domain = {}
    for osd in weight:
        at = osd
        while kind.get(at) != document["failure_domain"]:
            at = above[at]
        domain[osd] = at
    replicas = document["pool"]["pg_num"] * document["pool"]["size"]
    total = sum(weight.values())
    return domain, {osd: replicas * w / total for osd, w in weight.items()}


def judge(document, before, items, deviation) -> dict[str, object]:
    """Apply pairs one by one, and measure what comes of them; shares no code with the balancer."""
    domain, share = osds(document)
    count = Counter()
    moves = violations = 0
    for pg, row in enumerate(before):
        row = list(row)
        for source, target in items.get(pg, ()):
            if source in row and target not in row:
                row[row.index(source)] = target
        count.update(row)
        moves += len(set(row) - set(before[pg]))
        violations += len({domain[osd] for osd in row}) < len(before[pg])
    off = [count[osd] - share[osd] for osd in share]
    return {
        "upmap_deviation": deviation,
        "pgs_remapped": len(items),
        "pairs": sum(map(len, items.values())),
        "moves": moves,
        "after_metrics": {
            "max_dev": round(max(map(abs, off)), 4),
            "max_over": round(max(off), 4),
            "max_under": round(-min(off), 4),
            "stddev": round(math.sqrt(sum(d * d for d in off) / len(off)), 4),
            "max_fill_ratio": round(max(count[osd] / share[osd] for osd in share), 5),
            "min_fill_ratio": round(min(count[osd] / share[osd] for osd in share), 5),
            "pgs_min": min(count[osd] for osd in share),
            "pgs_max": max(count.values()),
        },
        "failure_domain_violations": violations,
    }


def room(document, whole) -> int:
    """Replicas that the failure domains hold when each device holds ``whole``."""
    domain, _ = osds(document)
    inside = Counter()
    for osd, number in whole.items():
        inside[domain[osd]] += number
    return sum(min(document["pool"]["pg_num"], number) for number in inside.values())


def least_fill(document) -> float:
    """The least fill in whole replicas that the failure domains allow."""
    _, share = osds(document)
    replicas = document["pool"]["pg_num"] * document["pool"]["size"]
    fills = sorted({n / t for t in set(share.values()) for n in range(1, int(4 * t) + 2)})
    low, high = 0, len(fills) - 1
    while low < high:
        middle = (low + high) // 2
        whole = {osd: math.floor(fills[middle] * t + 1e-9) for osd, t in share.items()}
        if room(document, whole) >= replicas:
            high = middle
        else:
            low = middle + 1
    return fills[low]


def promises(document, before, ours, deviation, ceph) -> dict[str, bool]:
    """What the pairs must keep, each with whether they do."""
    _, share = osds(document)
    after = ours["after_metrics"]
    kept = {
        "no rule broken": ours["failure_domain_violations"] == 0,
        "one move for each pair": ours["pairs"] == ours["moves"],
    }
    loose = {osd: math.floor(t + deviation) for osd, t in share.items()}
    if room(document, loose) >= sum(map(len, before)):
        kept["level"] = after["max_dev"] <= deviation
        if "moves" in ceph:
            kept["moves at most Ceph's"] = ours["moves"] <= ceph["moves"]
    else:
        bound = least_fill(document)
        kept["fill within 1 % of the bound"] = after["max_fill_ratio"] <= 1.01 * bound
        count = Counter(osd for row in before for osd in row)
        above = sum(max(0, count[osd] - math.floor(bound * t + 1e-9)) for osd, t in share.items())
        kept["moves within 15 % of the least"] = ours["moves"] <= 1.15 * above
    return kept
