"""``evenkeel warmup``: compile what ``balance`` needs before anybody waits for it."""

import argparse

from evenkeel.cli.arguments import Commands, add_command, add_output
from evenkeel.cli.exits import DONE
from evenkeel.cli.output import print_json
from evenkeel.cli.waiting import Waiting

SLOWEST = 5
"""Kernels that are named; the rest is counted."""


def add(commands: Commands) -> None:
    """Add the command.

    Parameters
    ----------
    commands : object
        Where it is added.
    """
    summary = "compile what balance needs and keep it, so that no solve waits for it"
    add_output(add_command(commands, "warmup", summary, run))


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : Namespace
        As ``add`` defines them.

    Returns
    -------
    int
        Exit code.
    """
    from evenkeel.installation import warmup
    from evenkeel_kernels.inventory import inventory

    with Waiting(arguments.quiet) as waiting:
        waiting.doing("loading kernels")
        compiled = warmup(waiting.compiling)
        found = inventory()
    if arguments.json:
        print_json(
            {"compiled": compiled, "seconds": sum(compiled.values()), "folder": found.folder}
        )
    elif not arguments.quiet:
        if compiled:
            print(f"compiled {len(compiled)} kernels in {sum(compiled.values()):.1f} s")
            for name in sorted(compiled, key=lambda name: -compiled[name])[:SLOWEST]:
                print(f"  {compiled[name]:5.1f} s  {name}")
        else:
            print("nothing to compile" if found.jit else "nothing compiled: the compiler is off")
        print(f"kept in {found.folder}" if found.folder else "kept nowhere: compiled every time")
    return DONE
