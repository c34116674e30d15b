"""``python -m tests.support.fuzzing --mutants 20000`` reads as many damaged files per reader.

It prints what became of them. The same seed makes the same files. ``--seconds 60`` ends each reader
after a minute of CPU time, however many it has read.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.support.fuzzing.fuzz import Report, fuzz
from tests.support.fuzzing.samples import Reader, readers


def main() -> int:
    """Fuzz every reader, or those that are named, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", help="by name; all by default")
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that escaped")
    arguments = parser.parse_args()
    escaped = 0
    for reader in readers():
        if arguments.readers and reader.name not in arguments.readers:
            continue
        report = fuzz(reader, arguments.mutants, arguments.seed, seconds=arguments.seconds)
        escaped += len(report.escapes)
        tell(reader, report, arguments.keep)
    return 1 if escaped else 0


def tell(reader: Reader, report: Report, keep: Path | None) -> None:
    """Print what became of a reader's files, and keep those that escaped."""
    told = f"{report.outcomes.total():,} of {reader.name}: {dict(report.outcomes)}"
    print(f"{told}, slowest {report.slowest:.3f} s", flush=True)
    for wrong, number in Counter(wrong for wrong, _ in report.escapes).most_common(12):
        print(f"  {number} {wrong}")
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{reader.name}-slowest").write_bytes(report.slow[0])
        for i, (_, files) in enumerate(report.escapes[:20]):
            (keep / f"{reader.name}-{i}").write_bytes(files[0])


if __name__ == "__main__":
    sys.exit(main())
