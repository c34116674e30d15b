"""Run the command line on the files of a public case.

Each case is a folder ``tests/data/public/<system>/<case>`` with the files as the system printed
them (cut to what matters) and an ``about.md``: the source, the situation, what is right and why.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from evenkeel.cli import main
from tests.support import places

PUBLIC = places.DATA / "public"


class Answer(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Return everything that was printed, white space folded, so that no line break matters."""
        return " ".join((self.out + " " + self.err).split())

    @property
    def json(self) -> Any:
        """Return the printed document of a command that was given ``--json``."""
        return json.loads(self.out)


class Case:
    """One public case, run in a folder of its own."""

    def __init__(self, name: str, folder: Path, capsys: Any) -> None:
        self.source = PUBLIC / name
        assert (self.source / "about.md").is_file(), f"{name} has no about.md"
        self.folder = folder
        self._capsys = capsys

    def path(self, name: str) -> Path:
        """Return the path of a file of the case, or else of an output."""
        given = self.source / name
        return given if given.exists() else self.folder / name

    def run(self, command: str, *words: str) -> Answer:
        """Run one command; words that name files of the case, or outputs, become paths."""
        arguments = [command]
        for before, word in zip((command, *words), words, strict=False):
            given = self.source / word
            arguments.append(
                str(given) if given.is_file()
                else str(self.folder / word) if before in ("-o", "--table", "--report")
                else word
            )  # fmt: skip
        self._capsys.readouterr()
        code = main(arguments)
        printed = self._capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    def written(self, name: str) -> str:
        """Return the text of a file that a command wrote."""
        return (self.folder / name).read_text()
