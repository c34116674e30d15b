"""``evenkeel warmup``: compile the kernels of methods ahead of time."""

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.output import DONE, emit
from evenkeel.cli.waiting import Waiting

if TYPE_CHECKING:
    from evenkeel_kernels.build.inventory import Inventory

SLOWEST = 5  # kernels that are named; the rest is counted


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "compile what methods need and keep it, so that no solve waits for it"
    command = add_command(commands, "warmup", summary, run)
    command.add_argument("methods", nargs="*", metavar="METHOD", help="balance by default")
    command.add_argument("--all", action="store_true", help="every method that there is")
    command.add_output()
    command.examples = ("evenkeel warmup balance exact",)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.install.diagnostics import warmup
    from evenkeel_kernels.build.inventory import inventory

    with Waiting(arguments.quiet) as waiting:
        waiting.doing("loading kernels")
        compiled = warmup(
            waiting.compiling, None if arguments.all else arguments.methods or ["balance"]
        )
        found = inventory()
    seconds = sum(compiled.values())
    return emit(
        arguments, DONE,
        figures=lambda: {"compiled": compiled, "seconds": seconds, "folder": found.folder},
        text=lambda: "\n".join(_lines(compiled, found)),
    )  # fmt: skip


def _lines(compiled: Mapping[str, float], found: "Inventory") -> Iterator[str]:
    """Yield what was compiled, the slowest by name, and where it is kept."""
    if compiled:
        yield f"compiled {len(compiled)} kernels in {sum(compiled.values()):.1f} s"
        for name in sorted(compiled, key=lambda name: -compiled[name])[:SLOWEST]:
            yield f"  {compiled[name]:5.1f} s  {name}"
    else:
        yield "nothing to compile" if found.jit else "nothing compiled: the compiler is off"
    yield f"kept in {found.folder}" if found.folder else "kept nowhere: compiled every time"
