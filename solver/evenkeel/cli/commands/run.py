"""``evenkeel run``: execute the plan in a folder."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.output import BROKEN, DONE, FELL_SHORT, complain, print_json, say, write_metrics
from evenkeel.cli.reading import STDIN, standard_input
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import counted, printable

if TYPE_CHECKING:
    from evenkeel.systems.documents import Document
    from evenkeel.systems.folders.guarding import Verdict
    from evenkeel.systems.folders.running import FolderRun

MOST_LISTED = 50  # differences that are listed one by one


class Interrupted(BaseException):
    """A signal that ends a run."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "carry out a plan's folder: order wave by wave, compare, wait, go on where it ended"
    parser = add_command(commands, "run", summary, run)
    parser.add_argument("folder", metavar="FOLDER", help="what plan -o FOLDER wrote, or its undo")
    parser.add_argument(
        "--dry-run", action="store_true",
        help="look at the system, and print the commands that are left; order nothing",
    )  # fmt: skip
    parser.add_argument(
        "--dump", action="append", metavar="FILE",
        help="with --dry-run: what the system's tools print now, in place of a look; - for the "
        "standard input; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--until", type=int, metavar="N", help="pause once wave N is done; run again to go on"
    )
    parser.add_argument(
        "--release", action="store_true",
        help="give back what an earlier run still holds of the system, and order nothing",
    )  # fmt: skip
    parser.examples = ("evenkeel run move --until 1", "evenkeel run move/undo")
    parser.add_metrics()
    parser.add_output()


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.systems.documents import Document
    from evenkeel.systems.folders.running import FolderRun, Stopped

    faults = FaultList()
    if arguments.until is not None and arguments.until < 1:
        faults.add("--until", arguments.until, "must be 1 or more")
    if arguments.dump and not arguments.dry_run:
        faults.add("--dump", arguments.dump, "needs --dry-run: a run looks at the system itself")
    faults.raise_if_any()
    given = arguments.dump or ()
    dumps = [Document.load(standard_input() if one == STDIN else one) for one in given]
    with _shown(arguments) as tell, _signals():
        runner = FolderRun(Path(arguments.folder), os.environ, tell)
        try:
            with runner.alone():
                return _carried_out(runner, arguments, dumps)
        except Stopped as error:
            for line in error.lines[:MOST_LISTED]:
                complain(line)
            if len(error.lines) > MOST_LISTED:
                complain(f"and {counted(len(error.lines) - MOST_LISTED, 'more line')}")
            if runner.holds:
                complain(f"{runner.holds}; a run that goes on gives it back at its end, and "
                         f"`evenkeel run {arguments.folder} --release` at once")  # fmt: skip
            return FELL_SHORT if error.differs else BROKEN
        except Interrupted as stop:
            if runner.holds:
                complain(f"{runner.holds}; a run that goes on sees to that")
            complain(f"interrupted; `evenkeel run {arguments.folder}` goes on from here")
            return 128 + stop.number


def _carried_out(
    runner: "FolderRun", arguments: argparse.Namespace, dumps: "Sequence[Document]"
) -> int:
    """Do what the arguments ask, and give back what is held where a signal ends that."""
    from evenkeel.systems.folders.running import Stopped

    verdict: Verdict | None = None
    if arguments.metrics is not None:
        runner.looked = lambda verdict: write_metrics(arguments, figures_of_verdict(verdict))
    try:
        if arguments.release:
            runner.release()
        elif arguments.dry_run:
            verdict, lines = runner.ahead(arguments.until, dumps)
            runner.looked(verdict)
            if not (arguments.json or arguments.quiet):
                say("\n".join((str(verdict), *lines)))
        else:
            verdict = runner.carry_out(arguments.until)
    except Interrupted as stop:
        try:
            runner.release(first=False)
        except Stopped as error:
            for line in error.lines[-2:]:
                complain(line)
        raise stop from None
    if arguments.json and verdict is not None:
        print_json(figures_of_verdict(verdict))
    return DONE


def figures_of_verdict(verdict: "Verdict") -> dict[str, Any]:
    """Return what ``--json`` says of where a plan stands."""
    names = ("word", "wave", "waves", "differences", "notes")
    counts = zip(("to_do", "under_way", "done"), verdict.counts, strict=True)
    return {name: getattr(verdict, name) for name in names} | dict(counts)


@contextmanager
def _signals() -> Iterator[None]:
    """Raise ``Interrupted`` where a signal asks the process to end, unless it is ignored."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    from evenkeel.systems.folders.running import ENDING

    # as nohup has it, or a shell for what runs in the background
    numbers = [one for one in ENDING if signal.getsignal(one) != signal.SIG_IGN]
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def _shown(arguments: argparse.Namespace) -> Iterator[Callable[[str, str], None]]:
    """Show progress with the time; on a terminal also what is waited for, as one line."""
    silent = arguments.quiet or arguments.json

    def line(text: str) -> str:
        return f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}"

    def tell(kind: str, text: str) -> None:
        if kind == "note":
            complain(f"note: {text}")
        elif not silent and kind != "state":
            say(line(f"waiting: {text}" if kind == "waiting" else text))

    if silent or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield tell
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    with console.status("looking at the system") as status:

        def show(kind: str, text: str) -> None:
            if kind == "note":
                complain(f"note: {text}")
                return
            status.update(Text(printable(text)))
            if kind == "progress":
                console.print(line(printable(text)), markup=False, highlight=False)

        yield show
