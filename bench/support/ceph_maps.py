"""Ceph maps of racks, hosts and devices of equal or unequal weight, also as crushtool text."""

import itertools
from functools import cache

import numpy as np

from evenkeel.systems.ceph.crush.crush_map import IN, Bucket, CrushMap, CrushRule, Step

TYPES = {"osd": 0, "host": 1, "rack": 2, "root": 3}
ROOT = -1
# Ceph's tunables since Jewel
PROFILE = {
    "choose_local_tries": 0,
    "choose_local_fallback_tries": 0,
    "choose_total_tries": 50,
    "chooseleaf_descend_once": 1,
    "chooseleaf_vary_r": 1,
    "chooseleaf_stable": 1,
}


@cache
def regular(racks: int, hosts: int, osds: int, over: str = "rack", uneven: int = 1) -> CrushMap:
    """Build a map with one rule, a replica per rack or host; devices weigh 1 to ``uneven``."""
    random = np.random.default_rng(1)
    # ids are without gaps, since Ceph's own code passes over each of them for every mapping
    number = itertools.count()
    buckets, top = [], []
    for r in range(racks):
        inside = []
        for h in range(hosts):
            weights = random.integers(1, uneven + 1, osds).tolist()
            items = [(next(number), IN * weight) for weight in weights]
            bucket = Bucket(ROOT - 1 - racks - hosts * r - h, f"host-{r}-{h}", "host", items)
            buckets.append(bucket)
            inside.append((bucket.id, IN * sum(weights)))
        buckets.append(Bucket(ROOT - 1 - r, f"rack-{r}", "rack", inside))
        top.append((ROOT - 1 - r, sum(weight for _, weight in inside)))
    buckets.append(Bucket(ROOT, "default", "root", top))
    steps = [Step("take", ROOT), Step("chooseleaf_firstn", 0, over), Step("emit")]
    rule = CrushRule(0, "replicated", steps)
    return CrushMap(racks * hosts * osds, TYPES, buckets, [rule], PROFILE)


def as_text(crush: CrushMap) -> str:
    """Write a map as crushtool compiles it; devices and buckets that others name come first."""
    names = {bucket.id: bucket.name for bucket in crush.buckets}
    names |= {n: f"osd.{n}" for n in range(crush.devices)}
    lines = [f"tunable {name} {value}" for name, value in crush.tunables.items()]
    lines += [f"device {n} osd.{n}" for n in range(crush.devices)]
    lines += [f"type {number} {name}" for name, number in crush.types.items()]
    for bucket in crush.buckets:
        items = [f"  item {names[i]} weight {weight / IN:.5f}" for i, weight in bucket.items]
        head = [f"{bucket.type} {bucket.name} {{", f"  id {bucket.id}", "  alg straw2", "  hash 0"]
        lines += [*head, *items, "}"]
    for rule in crush.rules:
        lines += [f"rule {rule.name} {{", f"  id {rule.id}", "  type replicated"]
        lines += ["  min_size 1", "  max_size 10"]
        for step in rule.steps:
            if step.operation == "take":
                lines.append(f"  step take {names[step.number]}")
            elif step.operation == "emit":
                lines.append("  step emit")
            else:
                words = step.operation.replace("_", " ")
                lines.append(f"  step {words} {step.number} type {step.type}")
        lines.append("}")
    return "\n".join(lines) + "\n"
