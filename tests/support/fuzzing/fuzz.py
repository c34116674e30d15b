"""Read damaged files: each must end in a cluster or in ``InvalidInput``, within a time limit."""

import random
import re
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evenkeel.model.errors import InvalidInput
from tests.support.fuzzing.samples import Files, Reader


@dataclass
class Report:
    """What became of damaged files."""

    # how many were read, refused, or ended otherwise
    outcomes: Counter[str] = field(default_factory=Counter)
    # what was wrong with each that ended otherwise, and its files
    escapes: list[tuple[str, Files]] = field(default_factory=list)
    slowest: float = 0.0  # greatest CPU time of one, in seconds
    slow: Files = ()  # the files that took it


MOST_SECONDS = 10.0  # CPU time of one; what takes more hangs


class Hang(BaseException):
    """A reader has not come to an end."""


def fuzz(
    reader: Reader,
    mutants: int,
    seed: int,
    most_memory: int = 100 << 20,
    seconds: float = float("inf"),
) -> Report:
    """Read damaged files; what is neither read nor refused, hangs or takes much is an escape."""
    report = Report()
    last = time.process_time() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for files in reader.samples:  # what is loaded or compiled first is no damaged file's doing
            reader.read(files, Path(folder))
        for files in mutated(reader, mutants, seed):
            if time.process_time() > last:
                break
            judge(report, reader, files, Path(folder), most_memory)
    return report


def judge(
    report: Report, reader: Reader, files: Files, folder: Path, most_memory: int = 100 << 20
) -> None:
    """Read files, and add to the report what became of them."""
    held, began = _peak(), time.process_time()
    outcome, wrong = _outcome(reader, files, folder)
    seconds = time.process_time() - began
    if _peak() - held > most_memory:
        wrong = f"took {(_peak() - held) >> 20} MiB ({outcome})"
    report.outcomes[outcome] += 1
    if wrong:
        report.escapes.append((wrong, files))
    if seconds > report.slowest:
        report.slowest, report.slow = seconds, files


def mutated(reader: Reader, mutants: int, seed: int) -> Iterator[Files]:
    """Yield damaged copies of a reader's samples, one after the other."""
    draw = random.Random(f"{reader.name} {seed}")
    for i in range(mutants):
        content, *others = reader.samples[i % len(reader.samples)]
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            content = reader.damage(draw, content)
        yield (content, *others)


def _outcome(reader: Reader, files: Files, folder: Path) -> tuple[str, str]:
    """Return what became of files, and what is wrong with that."""
    try:
        with limited():
            reader.read(files, folder)
    except InvalidInput as error:
        text = str(error)
        nameless = [
            one.path for one in error.faults if not re.match(r"<bytes>|source|\S*\.txt", one.path)
        ]
        if nameless:
            return "refused", f"names no file: {nameless[0][:80]}"
        return "refused", "" if len(text) < 10_000 + 10 * len(files[0]) else "says too much"
    except BaseException as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(line.filename).name}:{line.lineno}"
        return type(error).__name__, f"{type(error).__name__} at {where}: {str(error)[:100]}"
    return "read", ""


@contextmanager
def limited() -> Iterator[None]:
    """Raise ``Hang`` in what takes too long."""

    def hang(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
