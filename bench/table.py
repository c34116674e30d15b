"""Write the site's tables of figures from what pytest-benchmark stored last.

``make bench`` stores; ``python -m bench.table [FILE.json]`` writes. So it does with what
``make bench-peers`` stored, if it ever ran here; else the page keeps the table that it has.
"""

import json
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "figures.md"
STORED = ROOT / ".benchmarks"
PEERS = STORED / "peers.json"
# headings of the modules' figures, in order; those of other modules come last
SECTIONS = {
    "test_speed_balance": "Solving",
    "test_speed_large": "A million partitions",
    "test_speed_sweep": "What if nodes are lost",
    "test_speed_search": "Machine reassignment",
    "test_speed_crush": "Helix's CRUSH strategies and Ceph's CRUSH",
    "test_speed_waged": "Helix's WAGED",
    "test_speed_pipeline": "The pipeline",
    "test_speed_cockroach": "CockroachDB",
    "test_speed_longhorn": "Longhorn: 10,000 volumes x 3 on 200 hosts x 4 disks, two just joined",
    "test_speed_start": "Starting",
}
# columns beside the time, where a section has such figures
NAMED = {
    "moves": "moves", "bound": "proven minimum", "max_over_mean": "max/mean",
    "p99_ms": "slowest of 100 steps, wall", "peak_mb": "peak memory",
}  # fmt: skip


def newest() -> Path:
    """Return the file stored last."""
    files = sorted(STORED.glob("*/*.json"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise SystemExit("nothing is stored: run `make bench` first")
    return files[-1]


def duration(seconds: float) -> str:
    """Write seconds with three digits."""
    if seconds >= 1.0:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def section(benchmark: dict[str, Any]) -> str:
    """Return the heading that a benchmark stands under."""
    module = Path(benchmark["fullname"].partition("::")[0]).stem
    return SECTIONS.get(module, module.removeprefix("test_speed_"))


def rank(benchmark: dict[str, Any]) -> int:
    """Return the place of its section."""
    headings = list(dict.fromkeys(SECTIONS.values()))
    heading = section(benchmark)
    return headings.index(heading) if heading in headings else len(headings)


def figure(name: str, value: float) -> str:
    """Write one figure as its kind is written."""
    if name == "max_over_mean":
        return f"{value:.4f}"
    if name == "p99_ms":
        return duration(value / 1e3)
    return f"{value:,} MiB" if name == "peak_mb" else f"{value:,}"


def cells(benchmark: dict[str, Any], columns: list[str], rated: bool) -> list[str]:
    """Return what stands in a line."""
    info, seconds = benchmark["extra_info"], benchmark["stats"]["min"]
    whole = "p99_ms" not in info  # else the time is that of all steps together
    line = [info["title"], duration(seconds) if whole else ""]
    if rated:
        rate = f"{info['items'] / seconds / 1e6:.2f} M {info['unit']}" if "unit" in info else ""
        line.append(rate)
    return line + [figure(name, info[name]) if name in info else "" for name in columns]


def written(heading: str, benchmarks: list[dict[str, Any]]) -> str:
    """Return the table of one section, with the columns that it has figures for."""
    infos = [each["extra_info"] for each in benchmarks]
    columns = [name for name in NAMED if any(name in info for info in infos)]
    rated = any("unit" in info for info in infos)
    head = [heading, "CPU time", *["per second"] * rated, *(NAMED[name] for name in columns)]
    rows = [head, *(cells(each, columns, rated) for each in benchmarks)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" + "|---:" * (len(head) - 1) + "|", *lines[1:]])


def table(stored: dict[str, Any]) -> str:
    """Return the tables of all benchmarks that have a title, and how they were measured."""
    titled = [each for each in stored["benchmarks"] if "title" in each["extra_info"]]
    ordered = sorted(titled, key=lambda each: (rank(each), section(each)))
    parts = [written(heading, list(some)) for heading, some in groupby(ordered, section)]
    machine = stored["machine_info"]
    cpu = machine["cpu"].get("brand_raw", machine["processor"])
    day = stored["datetime"][:10]
    load = machine["load_average"][0]
    how = (
        f"Measured on {day} on {machine['processors']} processors ({cpu}), Python "
        f"{machine['python_version']}, with a load average of {load:.1f}: CPU time of the calling "
        "thread, warm, least of several calls; where a cluster is solved, from arrays to the "
        "audited result with its bounds; of fresh processes, user and system time of the whole "
        "process."
    )
    return "\n\n".join([*parts, how]) + "\n"


def beside(peers: dict[str, Any]) -> str:
    """Return the table of other systems on the same input."""
    lines = [
        "| input | solver | CPU time | broken rules | moves | proven minimum | max/mean | |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for run in peers.values():
        for row in run["rows"]:
            counts = [row["broken"], row["moves"], row["bound"]]
            level = "" if row["max_over_mean"] is None else f"{row['max_over_mean']:.4f}"
            cells = [row["input"], row["who"], duration(row["cpu"])]
            cells += ["" if count is None else f"{count:,}" for count in counts]
            lines.append(f"| {' | '.join([*cells, level, row['note']])} |")
    days = sorted({run["datetime"][:10] for run in peers.values()})
    loads = " and ".join(f"{run['load_average'][0]:.1f}" for run in peers.values())
    how = (
        f"Measured on {' and '.join(days)} with a load average of {loads}: CPU time of all "
        "threads, of Ceph's tools in user mode, of ours warm and the least of several calls. Every "
        "answer is judged by the audit of this library."
    )
    return "\n".join([*lines, "", how]) + "\n"


def put(text: str, mark: str, block: str) -> str:
    """Replace what stands between two marks."""
    place = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
    text, found = place.subn(lambda marks: marks[1] + block + marks[2], text)
    if not found:
        raise SystemExit(f"{PAGE.name} has no place for {mark}")
    return text


def main(arguments: list[str]) -> None:
    """Write both tables."""
    stored = json.loads((Path(arguments[0]) if arguments else newest()).read_text())
    text = put(PAGE.read_text(), "figures", table(stored))
    if PEERS.exists():
        text = put(text, "peers", beside(json.loads(PEERS.read_text())))
    PAGE.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
