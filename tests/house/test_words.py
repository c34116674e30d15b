"""Words that have a plain form: none of them in source, messages, docstrings, names or pages."""

import re
import subprocess

import pytest

from tests.support import places

PLAIN = {
    "told": "reported, given",
    "untold": "missing",
    "said": "stated, reported",
    "nobody": "none",
    "somebody": "others",
    "everybody": "all",
    "whoever": "any",
    "mend": "repair",
    "mends": "repairs",
    "mended": "repaired",
    "mending": "repair",
    "ghost": "replica on a dead node",
    "heir": "next leader",
    "deputy": "interim leader",
    "toll": "move penalty",
    "knee": "threshold",
    "strain": "node penalty",
    "seat": "slot, decision variable",
    "seats": "slots",
    "leeway": "slack",
    "desk": "workspace",
    "outlook": "scenario result",
    "hurry": "squeaky wheel",
    "pressed": "overloaded",
    "wish": "soft rule",
    "wishes": "soft rules",
    "onwards": "resume",
    "underway": "in flight",
    "ills": "violations",
    "harms": "violations",
    "lent": "transferred",
    "passage": "trajectory check",
    "leveller": "more balanced",
    "brim": "capacity",
    "wing": "folder",
    "door": "public interface",
}
READ = (
    "solver",
    "kernels",
    "docs",
    "notebooks",
    "bench",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
LEFT: dict[str, set[str]] = {}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]*")


def words(text: str) -> set[str]:
    """Return the words of a text in lower case, those inside of names too."""
    return {word.lower() for word in WORD.findall(text)}


def files() -> list[str]:
    """Return the files that are read."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *READ],
        cwd=places.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [one for one in listed.stdout.split() if one.endswith((".py", ".html", ".md"))]


def test_names_are_split_into_words():
    assert words("_told_files, LOST_SAID: Outlook; untold mendedZones") == {
        "told", "files", "lost", "said", "outlook", "untold", "mended", "zones",
    }  # fmt: skip


@pytest.mark.parametrize("name", files())
def test_words_are_plain(name):
    found = words((places.ROOT / name).read_text()) & PLAIN.keys()
    assert not {word: PLAIN[word] for word in found - LEFT.get(name, set())}


@pytest.mark.parametrize("name", [name for name in files() if name.endswith(".md")])
def test_lines_of_prose_are_short(name):
    prose = re.sub(r"^(```+).*?^\1$", "", (places.ROOT / name).read_text(), flags=re.M | re.S)
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > 100] == []


def test_exceptions_are_in_use():
    for name, some in LEFT.items():
        assert some <= words((places.ROOT / name).read_text())
