"""``evenkeel guard``: whether a live system is where the plan of a folder expects it."""

import argparse
from pathlib import Path

from evenkeel.cli.arguments import Commands, add_command, add_output
from evenkeel.cli.commands.solve import STDIN, standard_input
from evenkeel.cli.exits import DONE, FELL_SHORT
from evenkeel.cli.output import complain, print_json, say
from evenkeel.model.runtime.printable import counted

MOST_LISTED = 50
"""Differences that are told one by one."""


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "compare a live system with what the plan of a folder expects before its next wave"
    parser = add_command(commands, "guard", summary, run)
    parser.add_argument("folder", metavar="FOLDER", help="what plan -o FOLDER wrote")
    parser.add_argument(
        "files", nargs="+", metavar="DUMP",
        help="what the system's tools print now, in one file or several; - for the standard input",
    )  # fmt: skip
    parser.add_argument(
        "--wave", type=int, metavar="N", help="of this wave; of the first that is not done, else"
    )
    parser.add_argument(
        "--record", action="store_true", help="write down in state.json how many waves are done"
    )
    parser.examples = ("evenkeel guard move described.txt --wave 1",)
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.systems.documents import Document
    from evenkeel.systems.folders.guarding import guard

    documents = [Document.load(standard_input() if f == STDIN else f) for f in arguments.files]
    folder = Path(arguments.folder)
    verdict = guard(folder, documents, arguments.wave, recording=arguments.record)
    differs = verdict.word == "differs"
    if not arguments.json and verdict.word != "begun":  # while it is waited, it is told once
        for line in verdict.notes:
            complain(f"note: {line}")
    if arguments.json:
        told = {
            name: getattr(verdict, name)
            for name in ("word", "wave", "waves", "differences", "notes")
        }
        names = ("to_do", "under_way", "done")
        print_json(told | dict(zip(names, verdict.counts, strict=True)))
    elif differs:
        for line in verdict.differences[:MOST_LISTED]:
            complain(line)
        if len(verdict.differences) > MOST_LISTED:
            more = len(verdict.differences) - MOST_LISTED
            complain(f"and {counted(more, 'more difference')}")
    elif not arguments.quiet:
        say(str(verdict))
    return FELL_SHORT if differs else DONE
