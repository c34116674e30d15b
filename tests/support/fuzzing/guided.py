"""``python -m tests.support.fuzzing.guided kafka`` reads damaged files that coverage leads on.

Files that reached code that none had reached before are damaged further: atheris, libFuzzer for
Python, watches the readers and the model. It is installed by hand, ``pip install atheris``. Its
own mutations alternate with those of ``damage``.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["evenkeel.systems", "evenkeel.model", "evenkeel.systems.longhorn.auto_balance"]
):
    from tests.support.fuzzing.__main__ import tell
    from tests.support.fuzzing.fuzz import Report, judge
    from tests.support.fuzzing.samples import Reader, readers

LONGEST = 100_000  # bytes of a file; what grows beyond it is cut


def main() -> None:
    """Fuzz one reader until so many files are read, and end the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader")
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the files that escaped")
    arguments = parser.parse_args()
    (reader,) = (one for one in readers() if one.name == arguments.reader)
    with tempfile.TemporaryDirectory() as folder:
        seeds, place = Path(folder) / "seeds", Path(folder) / "files"
        seeds.mkdir()
        place.mkdir()
        for i, (content, *_) in enumerate(reader.samples):
            (seeds / str(i)).write_bytes(bytes([i]) + content)
            reader.read(reader.samples[i], place)  # loads what is loaded late
        watched(reader, arguments, seeds, place)


def watched(reader: Reader, arguments: argparse.Namespace, seeds: Path, place: Path) -> None:
    """Let libFuzzer read files; the first byte of each tells which sample's others join it."""
    report, last = Report(), time.process_time() + arguments.seconds

    def read(data: bytes) -> None:
        if not data:
            return  # libFuzzer begins with nothing
        _, *others = reader.samples[data[0] % len(reader.samples)]
        judge(report, reader, (data[1:], *others), place)
        if report.outcomes.total() >= arguments.mutants or time.process_time() > last:
            tell(reader, report, arguments.keep)
            sys.stdout.flush()
            os._exit(1 if report.escapes else 0)  # libFuzzer itself never comes back

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if draw.random() < 0.4:  # else hardly one would still be read
            first = draw.randrange(len(reader.samples))
            data = bytes([first]) + reader.samples[first][0]
        content = data[1:]
        if draw.random() < 0.2:
            content = bytes(atheris.Mutate(content, most - 1))
        else:
            for _ in range(draw.choice((1, 1, 1, 2, 4))):
                content = reader.damage(draw, content)
        return data[:1] + content[: most - 1]

    flags = [f"-seed={arguments.seed}", f"-max_len={LONGEST}", "-len_control=0", "-rss_limit_mb=0",
             "-timeout=1000", "-verbosity=0", f"-artifact_prefix={place}/"]  # fmt: skip
    atheris.Setup([sys.argv[0], *flags, str(seeds)], read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
