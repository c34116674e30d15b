"""The command ``evenkeel``: what each command does stands in a module of its name."""

import argparse
import os
import sys
from collections.abc import Sequence

from evenkeel import __version__
from evenkeel.cli import (
    check,
    demo,
    explain,
    generate,
    plan,
    resume,
    solve,
    versions,
    warmup,
)
from evenkeel.cli.arguments import Parser
from evenkeel.cli.exits import BAD_INPUT, INTERRUPTED, MEANING
from evenkeel.cli.output import complain
from evenkeel.model.errors import InvalidInput


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Examples
    --------
    >>> main(["check"]) == BAD_INPUT
    True
    """
    _keep_printable()
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse has told what is wrong, or helped
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except InvalidInput as error:
        for fault in error.faults:
            complain(str(fault))
        return BAD_INPUT
    except BrokenPipeError:
        # who reads has had enough; what is still buffered must not be written as Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        print("evenkeel: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="evenkeel",
        description="Decides where replicas live.",
        epilog=MEANING,
    )
    parser.add_argument("--version", action="version", version=f"evenkeel {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in (
        solve, plan, resume, check, explain, generate, demo, warmup, versions,
    ):  # fmt: skip
        command.add(commands)
    return parser


def _keep_printable() -> None:
    """Let output that cannot show a bar show a question mark, and not fail."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="replace")
