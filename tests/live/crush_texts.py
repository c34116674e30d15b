"""CRUSH maps as text, of shapes that people have, drawn by a seed."""

import numpy as np

HEAD = """tunable choose_local_tries 0
tunable choose_local_fallback_tries 0
tunable choose_total_tries {tries}
tunable chooseleaf_descend_once 1
tunable chooseleaf_vary_r 1
tunable chooseleaf_stable 1
tunable straw_calc_version 1
tunable allowed_bucket_algs 54
"""
TYPES = ("osd", "host", "rack", "datacenter", "root")
RULES = {
    "hosts": "step take default\nstep chooseleaf firstn 0 type host\nstep emit",
    "racks": "step take default\nstep chooseleaf firstn 0 type rack\nstep emit",
    "ssd": "step take default class ssd\nstep chooseleaf firstn 0 type host\nstep emit",
    "paired": "step take default\nstep choose firstn 2 type rack\n"
    "step chooseleaf firstn 2 type host\nstep emit",
    "coded": "step set_chooseleaf_tries 5\nstep set_choose_tries 100\nstep take default class hdd\n"
    "step chooseleaf indep 0 type host\nstep emit",
    "split": "step take r0\nstep chooseleaf firstn 1 type host\nstep emit\n"
    "step take default\nstep chooseleaf firstn -1 type rack\nstep emit",
}
"""By name; the place in this order is the number of the rule."""


def drawn(seed: int, *, alike: bool = False) -> tuple[str, int]:
    """Return the text of a map and how many devices it has; ``alike`` ones all weigh the same."""
    random = np.random.default_rng(seed)
    devices, hosts, racks = [], [], []
    wide = int(random.integers(3, 6))
    for r in range(int(random.integers(4, 7))):
        inside = []
        for h in range(wide if alike else int(random.integers(2, 6))):
            own = []
            for _ in range(2 if alike else int(random.integers(1, 5))):
                weight = 1.0 if alike else float(random.choice([0.0, 0.5, 1.0, 1.819, 3.638, 7.3]))
                kind = "hdd" if random.random() < 0.7 else "ssd"
                own.append((f"osd.{len(devices)}", weight))
                devices.append(f"device {len(devices)} osd.{len(devices)} class {kind}")
            hosts.append(_bucket("host", f"r{r}-h{h}", own))
            inside.append((f"r{r}-h{h}", sum(weight for _, weight in own)))
        racks.append((r, inside))
    text = HEAD.format(tries=50) + "\n".join(devices) + "\n"
    text += "".join(f"type {number} {name}\n" for number, name in enumerate(TYPES))
    text += "".join(hosts)
    top = []
    for r, inside in racks:
        text += _bucket("rack", f"r{r}", inside)
        top.append((f"r{r}", sum(weight for _, weight in inside)))
    text += _bucket("root", "default", top)
    for number, (name, steps) in enumerate(RULES.items()):
        kind = "erasure" if name == "coded" else "replicated"
        sizes = "min_size 1\nmax_size 10"
        text += f"rule {name} {{\nid {number}\ntype {kind}\n{sizes}\n{steps}\n}}\n"
    return text, len(devices)


def _bucket(kind: str, name: str, items: list[tuple[str, float]]) -> str:
    lines = "".join(f"item {item} weight {weight:.5f}\n" for item, weight in items)
    return f"{kind} {name} {{\nalg straw2\nhash 0\n{lines}}}\n"
