"""``evenkeel versions``: what a bug report should say."""

import argparse

from evenkeel.cli.arguments import Commands, add_command, add_output
from evenkeel.cli.exits import DONE
from evenkeel.cli.output import print_json


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "print versions, processor and compiled kernels, for a bug report"
    add_output(add_command(commands, "versions", summary, run))


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.install.diagnostics import versions

    found = versions()
    if arguments.json:
        print_json(found)
    elif not arguments.quiet:
        width = max(map(len, found))
        for name, text in found.items():
            print(f"{name:{width}}  {text}")
    return DONE
