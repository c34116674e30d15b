"""Compare two stored runs of the benchmarks: ``python -m bench.compare [OLD.json [NEW.json]]``.

Without names the two stored last. Two runs differ by the machine and its load too, which slow
everything alike: besides each ratio stands what is left of it after division by their median. With
``--worst RATIO`` it exits 1 where that is greater.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.table import STORED, duration


@dataclass(frozen=True)
class Change:
    """One benchmark in both runs, seconds each."""

    name: str
    old: float
    new: float

    @property
    def ratio(self) -> float:
        """New over old: above 1 is slower."""
        return self.new / self.old


def least(stored: dict[str, Any]) -> dict[str, float]:
    """Least seconds of each benchmark."""
    return {each["fullname"]: each["stats"]["min"] for each in stored["benchmarks"]}


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    """Return what both runs have, slowest growth first."""
    before, after = least(old), least(new)
    both = [Change(name, before[name], after[name]) for name in before.keys() & after.keys()]
    return sorted(both, key=lambda change: (-change.ratio, change.name))


def written(found: list[Change]) -> list[str]:
    """Write a line for each, and what they are divided by."""
    common = median(change.ratio for change in found)
    lines = [f"{'new / old':>9} {'/ median':>9} {'old':>9} {'new':>9}  benchmark"]
    for change in found:
        seconds = f"{duration(change.old):>9} {duration(change.new):>9}"
        left = change.ratio / common
        lines.append(f"{change.ratio:9.3f} {left:9.3f} {seconds}  {change.name}")
    return [*lines, f"median of {len(found)} ratios: {common:.3f}"]


def machine(stored: dict[str, Any]) -> str:
    """Say when and where a run was stored."""
    info = stored["machine_info"]
    cpu = info["cpu"].get("brand_raw", info["processor"])
    load = info.get("load_average", [float("nan")])[0]
    return f"{stored['datetime'][:16]}, {cpu}, load {load:.1f}, {info['python_version']}"


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--worst", type=float, default=float("inf"))
    given = parser.parse_args(arguments)
    last = sorted(STORED.glob("*/*.json"), key=lambda file: file.stat().st_mtime)
    files = {0: last[-2:], 1: [*given.files, *last[-1:]]}.get(len(given.files), given.files)
    if len(files) != 2:
        parser.error("two runs are needed: run `make bench` twice, or name two files")
    old, new = (json.loads(file.read_text()) for file in files)
    found = changes(old, new)
    if not found:
        parser.error("the two have no benchmark in common")
    print(f"old: {machine(old)}\nnew: {machine(new)}")
    print("\n".join(written(found)))
    for title, names in (("gone", least(old).keys() - least(new)),
                         ("new", least(new).keys() - least(old))):  # fmt: skip
        print("\n".join(f"{title}: {name}" for name in sorted(names)) or f"{title}: none")
    common = median(change.ratio for change in found)
    return int(found[0].ratio / common > given.worst)


if __name__ == "__main__":
    raise SystemExit(main())
