"""Judge Ceph's commands by the rules of the CRUSH map, parsed without the library.

Where CRUSH puts a group is the one thing taken from the library, which golden files hold to Ceph's.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from evenkeel.systems import registry
from evenkeel.systems.ceph.crush.placement import Pool

NONE = 2147483647
COMMAND = re.compile(r"ceph osd (rm-)?pg-upmap-items (\S+)((?: \d+)*)")


class Judged(NamedTuple):
    """What commands do: the groups whose rule is broken, dropped, or that they change, by name."""

    broken: list[str]
    dropped: list[str]
    changed: list[str]
    rows: dict[str, list[int]]
    mapped: dict[str, list[int]]


class Cluster:
    """A cluster as its JSON documents have it."""

    def __init__(self, osd_dump: Any, crush: Any) -> None:
        self.dump, self.crush = osd_dump, crush
        self.buckets = {one["id"]: one for one in crush["buckets"]}
        self.rules = {one["rule_id"]: one["steps"] for one in crush["rules"]}
        self.reweight = {one["osd"]: one["weight"] if one["in"] else 0 for one in osd_dump["osds"]}
        self.pools = {one["pool"]: one for one in osd_dump["pools"]}

    def below(self, item: int) -> set[int]:
        """Return the devices below a bucket."""
        if item >= 0:
            return {item}
        inside = (self.below(one["id"]) for one in self.buckets[item]["items"])
        return set().union(*inside)

    def weights(self, item: int) -> dict[int, int]:
        """Return what each device below a bucket weighs there."""
        if item >= 0:
            return {item: 1}
        found: dict[int, int] = {}
        for one in self.buckets[item]["items"]:
            found |= {one["id"]: one["weight"]} if one["id"] >= 0 else self.weights(one["id"])
        return found

    def chosen(self, root: int, kind: str) -> dict[int, int]:
        """Return the bucket of a type below a root that each device is in, or the device."""
        if kind == "osd":
            return {osd: osd for osd in self.below(root)}
        found: dict[int, int] = {}
        waiting = [root]
        while waiting:
            bucket = self.buckets[waiting.pop()]
            if bucket["type_name"] == kind:
                found |= dict.fromkeys(self.below(bucket["id"]), bucket["id"])
            waiting += [one["id"] for one in bucket["items"] if one["id"] < 0]
        return found

    def breaks_rule(self, pool: int, row: list[int]) -> bool:
        """Whether a row is none that the steps of the rule could choose, holes apart."""
        at, root, stack = 0, 0, []
        for step in self.rules[self.pools[pool]["crush_rule"]]:
            if step["op"] == "take":
                root, stack = step["item"], []
            elif step["op"].endswith(("firstn", "indep")):
                number = step["num"] if step["num"] > 0 else step["num"] + self.pools[pool]["size"]
                stack.append((number, self.chosen(root, step["type"])))
            elif step["op"] == "emit":
                many = 1
                for number, _ in stack:
                    many *= number
                own = [osd for osd in row[at : at + many] if osd != NONE]
                at += many
                if not {*own} <= self.below(root):
                    return True
                above: list[Any] = [()] * len(own)
                for number, chosen in stack:
                    if any(osd not in chosen for osd in own):
                        return True
                    here = [(*path, chosen[osd]) for path, osd in zip(above, own, strict=True)]
                    if max(Counter(one[:-1] for one in {*here}).values(), default=0) > number:
                        return True
                    above = here
                if len({*above}) < len(above):
                    return True
        held = [osd for osd in row if osd != NONE]
        return len({*held}) < len(held)

    def is_dropped(self, pool: int, row: list[int]) -> bool:
        """Whether the monitors drop the pairs of a row, as ``CrushWrapper::verify_upmap`` says."""
        size = self.pools[pool]["size"]
        steps = self.rules[self.pools[pool]["crush_rule"]]
        roots = sorted({step["item"] for step in steps if step["op"] == "take"})
        held = [osd for osd in row if osd != NONE]
        at, root, numbers = 0, 0, {}
        for step in steps:
            if step["op"] == "take":
                root = step["item"]
            elif step["op"].endswith(("firstn", "indep")):
                number = step["num"] if step["num"] > 0 else step["num"] + size
                numbers.setdefault(step["type"], number)
                if step["type"] == "osd":
                    continue
                parents = []
                for osd in held:
                    own = [
                        self.chosen(one, step["type"])[osd]
                        for one in roots if osd in self.chosen(one, step["type"])
                    ]  # fmt: skip
                    parents += own[:1]
                leaf = step["op"].startswith("chooseleaf")
                if leaf and max(Counter(parents).values(), default=0) > 1:
                    return True
                if not leaf and len({*parents}) > number:
                    return True
            elif step["op"] == "emit":
                many = 1
                for number in numbers.values():
                    many *= number
                own = [osd for osd in row[at : at + many] if osd != NONE]
                if root < 0 and not {*own} <= self.below(root):
                    return True
                at += many
                numbers = {}
        weights: dict[int, int] = {}
        for one in roots:
            weights |= self.weights(one)
        return any(not self.reweight.get(osd, 0) or not weights.get(osd) for osd in held)


def judge(osd_dump: bytes, crush: bytes, commands: str, *ignored: int) -> Judged:
    """Carry commands out on the map, and judge every group that they change."""
    # ``ignored``: pools that the library cannot map
    plain = re.sub(rb"(?<=[:,\[])(\s*)-?(nan|inf|NaN|Infinity)\b", rb"\1null", osd_dump)
    cluster = Cluster(json.loads(plain), json.loads(crush))
    native = registry.read(plain, crush).native
    items = {one["pgid"]: [(pair["from"], pair["to"]) for pair in one["mappings"]]
             for one in cluster.dump.get("pg_upmap_items", [])}  # fmt: skip
    after = dict(items)
    named = []
    for line in commands.splitlines():
        found = COMMAND.fullmatch(line)
        assert found, line
        osds = [int(one) for one in found[3].split()]
        after[found[2]] = [*zip(osds[::2], osds[1::2], strict=True)]
        named.append(found[2])
    broken, dropped, changed, rows, by_crush = [], [], [], {}, {}
    for pool in native.pools:
        if pool.id in ignored:
            assert not [one for one in named if one.startswith(f"{pool.id}.")]
            continue
        mapped = mapped_by_crush(native, pool)
        for pg, row in enumerate(mapped):
            name = f"{pool.id}.{pg:x}"
            then = carried_out(row, after.get(name, []), cluster.reweight)
            rows[name], by_crush[name] = then, row
            if name not in named:
                continue
            changed.append(name)
            if not all(
                source in row and source != target and cluster.reweight.get(target, 0)
                for source, target in after[name]
            ):
                dropped.append(name)  # of a device that is not there, or to one that is out
            if after[name] and then == row:
                dropped.append(name)  # pairs that do nothing
            if cluster.breaks_rule(pool.id, then):
                broken.append(name)
            if after[name] and cluster.is_dropped(pool.id, then):
                dropped.append(name)
    return Judged(broken, dropped, changed, rows, by_crush)


def mapped_by_crush(native: Any, pool: Pool) -> list[list[int]]:
    """Return where CRUSH puts the groups of a pool."""
    return native.rows(pool, native.reweight, upmaps=False).tolist()


def carried_out(
    row: list[int], pairs: list[tuple[int, int]], weight: dict[int, float]
) -> list[int]:
    """Return a row after its pairs."""
    held = list(row)
    for source, target in pairs:
        if source in held and target not in held and weight.get(target, 0):
            held[held.index(source)] = target
    return held


def judge_files(folder: Path, commands: str, *ignored: int) -> Judged:
    """Judge commands for the ``osd_dump.json`` and ``crush.json`` of a folder."""
    dump, crush = (folder / name for name in ("osd_dump.json", "crush.json"))
    return judge(dump.read_bytes(), crush.read_bytes(), commands, *ignored)
