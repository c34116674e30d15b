"""Write the README's table of figures from what pytest-benchmark stored last.

``make bench`` stores; ``python -m bench.table [FILE.json]`` writes.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
STORED = ROOT / ".benchmarks"
HEAD = "| what | CPU time | moves | proven minimum | max/mean |\n|---|---:|---:|---:|---:|"
PLACE = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)


def newest() -> Path:
    """Return the file stored last."""
    files = sorted(STORED.glob("*/*.json"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise SystemExit("nothing is stored: run `make bench` first")
    return files[-1]


def duration(seconds: float) -> str:
    """Write seconds with three digits."""
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{seconds * 1e3:.3g} ms"


def row(benchmark: dict[str, Any]) -> str:
    """Return the line of one benchmark."""
    info = benchmark["extra_info"]
    cells = [info["title"], duration(benchmark["stats"]["min"])]
    if "moves" in info:
        cells += [f"{info['moves']:,}", f"{info['bound']:,}", f"{info['max_over_mean']:.4f}"]
    else:
        cells += [""] * 3
    return f"| {' | '.join(cells)} |"


def table(stored: dict[str, Any]) -> str:
    """Return the table of all benchmarks that have a title, and how they were measured."""
    rows = [row(each) for each in stored["benchmarks"] if "title" in each["extra_info"]]
    machine = stored["machine_info"]
    cpu = machine["cpu"].get("brand_raw", machine["processor"])
    day = stored["datetime"][:10]
    load = machine["load_average"][0]
    how = (
        f"Measured on {day} on {machine['processors']} processors ({cpu}), Python "
        f"{machine['python_version']}, with a load average of {load:.1f}: CPU time of the calling "
        "thread, from arrays to the audited result with its bounds, warm, least of several calls; "
        "of fresh processes, user and system time of the whole process."
    )
    return "\n".join([HEAD, *rows, "", how, ""])


def main(arguments: list[str]) -> None:
    """Replace what stands between the README's marks."""
    stored = json.loads((Path(arguments[0]) if arguments else newest()).read_text())
    text, found = PLACE.subn(lambda marks: marks[1] + table(stored) + marks[2], README.read_text())
    if not found:
        raise SystemExit(f"{README.name} has no place for figures")
    README.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
