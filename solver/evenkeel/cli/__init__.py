"""The command ``evenkeel``: parse the command line and run one of the commands."""

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evenkeel import __version__
from evenkeel.cli.arguments import Parser, in_options
from evenkeel.cli.commands import (
    check,
    completion,
    convert,
    demo,
    diff,
    explain,
    frontier,
    generate,
    plan,
    resume,
    run,
    simulate,
    size,
    solve,
    sweep,
    versions,
    warmup,
)
from evenkeel.cli.config import parsed
from evenkeel.cli.output import BAD_INPUT, INTERRUPTED, MEANING, complain
from evenkeel.model.errors import InvalidInput, fault_lines

# the commands, in the order in which help lists them; each module adds its own
COMMANDS = (
    solve, plan, run, resume, check, explain, diff, convert, sweep, frontier, size, simulate,
    generate, demo, warmup, completion, versions,
)  # fmt: skip

# objects after which circular garbage is looked for: a command that is short is over before
COLLECTED_EVERY = 400_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    _keep_printable()
    gc.set_threshold(COLLECTED_EVERY)
    # what is there as the process ends is not looked through for circular garbage once more
    atexit.register(gc.freeze)
    arguments = argparse.Namespace()
    try:
        given = sys.argv[1:] if argv is None else argv
        arguments = parsed(command_parser, given)
        code: int = arguments.run(arguments)
        return code
    except SystemExit as stop:  # argparse has reported the error or printed help
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except InvalidInput as error:
        for line in fault_lines([in_options(one, arguments) for one in error.faults]):
            complain(line)
        return BAD_INPUT
    except OSError as error:
        message = error.strerror and f"{error.filename}: {error.strerror}"
        complain(message if message and error.filename is not None else str(error))
        return BAD_INPUT
    except MemoryError:
        complain("there is not enough memory for this")
        return BAD_INPUT
    except KeyboardInterrupt:
        print("evenkeel: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED


def command_parser(*names: str) -> tuple[Parser, Mapping[str, Parser]]:
    """Return the parser of the command line, and that of each command, or of some, by its name."""
    parser = Parser(prog="evenkeel", description="Decides where replicas live.", epilog=MEANING)
    parser.add_argument("--version", action="version", version=f"evenkeel {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for command in COMMANDS:
        if not names or command.__name__.rpartition(".")[2] in names:
            command.add(commands)
    found: Mapping[str, Parser] = commands.choices
    return parser, found


def _keep_printable() -> None:
    """Let output that cannot show a bar show a question mark, and closed streams take all."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115, open to the end
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="replace")
