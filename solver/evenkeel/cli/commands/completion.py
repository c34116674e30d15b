"""``evenkeel completion``: print the completion script of a shell."""

import argparse

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.output import DONE, emit
from evenkeel.model.errors import Fault, InvalidInput

SHELLS = ("bash", "zsh", "tcsh")
# what arguments that are files are called
FILES = ("FILE", "DUMP", "FOLDER", "OUT", "PLAN", "BEFORE", "AFTER")


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "print what a shell needs to complete commands, options and files"
    parser = add_command(commands, "completion", summary, run)
    parser.examples = (
        "evenkeel completion bash > ~/.local/share/bash-completion/completions/evenkeel",
        "evenkeel completion zsh > ~/.zsh/completions/_evenkeel",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.add_output()


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.cli import command_parser

    try:
        import shtab
    except ImportError:
        message = "is not installed: pip install 'evenkeel[completion]'"
        raise InvalidInput([Fault("shtab", None, message)]) from None
    parser, commands = command_parser()
    names = _names()
    for action in (each for command in commands.values() for each in command._actions):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in names:
            action.choices = names[action.dest]
    script: str = shtab.complete(parser, arguments.shell)
    return emit(arguments, DONE, figures=lambda: {"script": script}, text=lambda: script)


def _names() -> dict[str, list[str]]:
    """Return the names that there are for arguments that are one of them."""
    from evenkeel.methods.registry import METHODS
    from evenkeel.planning.throttle import PRESETS
    from evenkeel.systems.registry import known

    formats, methods = sorted(known()), sorted(METHODS)
    return {
        "method": methods, "methods": methods, "format": formats, "to": formats,
        "protocol": sorted(PRESETS),
    }  # fmt: skip
