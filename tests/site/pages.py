"""Pages for people: their code blocks, in order."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.support import places

ROOT = places.ROOT
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(?P<fence>```+)(?P<opening>[^\n]*)\n(?P<body>.*?)^(?P=fence)$", re.M | re.S)
DIRECTIVE = re.compile(r"\{(?P<name>[\w-]+)\}\s*(?P<argument>.*)")
OPTION = re.compile(r":(?P<name>\w+):\s*(?P<value>.*)\n")


class Block(NamedTuple):
    """A block of code on a page."""

    language: str
    caption: str
    body: str
    line: int


def blocks(text: str) -> list[Block]:
    """The code blocks of a page; what only arranges the site, such as a toctree, is none."""
    found = []
    for match in FENCE.finditer(text):
        language, caption, body = match["opening"].strip(), "", match["body"]
        if directive := DIRECTIVE.fullmatch(language):
            if directive["name"] != "code-block":
                continue
            language = directive["argument"]
            while option := OPTION.match(body):
                caption = option["value"] if option["name"] == "caption" else caption
                body = body[option.end() :]
            body = body.lstrip("\n")
        found.append(Block(language, caption, body, text.count("\n", 0, match.start()) + 1))
    return found


def pages() -> list[Path]:
    """The README, and every page of the site that a person has written."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
