"""``evenkeel versions``: print the versions that belong in a bug report."""

import argparse

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.output import DONE, emit


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "print versions, processor and compiled kernels, for a bug report"
    parser = add_command(commands, "versions", summary, run)
    parser.add_output()
    parser.examples = ("evenkeel versions --json",)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.install.diagnostics import versions

    found = versions()
    width = max(map(len, found))
    lines = [f"{name:{width}}  {text}" for name, text in found.items()]
    return emit(arguments, DONE, figures=lambda: found, text=lambda: "\n".join(lines))
