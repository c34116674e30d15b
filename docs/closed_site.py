"""Checks of the built site: every link within it leads somewhere, and no page fetches from outside.

A Sphinx extension; what it finds is a warning, and warnings fail the build.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

FETCHED = {"src", "srcset", "poster", "data"}
"""Attributes whose address a browser fetches by itself, whatever the element."""

FETCHED_BY_LINK = {"stylesheet", "icon", "preload", "preconnect", "prefetch", "manifest", "modulepreload"}
"""What a ``link`` must be for its address to be fetched."""

IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class Page(NamedTuple):
    """What a page refers to."""

    anchors: set[str]
    links: list[str]
    fetched: list[str]


class _Reader(HTMLParser):
    """Gathers what a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note anchors, links and what is fetched."""
        given = {name: value for name, value in attrs if value is not None}
        self.page.anchors.update(given[name] for name in ("id", "name") if name in given)
        self.page.fetched.extend(given[name] for name in FETCHED & given.keys())
        self.page.fetched.extend(IN_STYLE.findall(given.get("style", "")))
        if "href" in given:
            fetches = tag == "link" and FETCHED_BY_LINK & set(given.get("rel", "").split())
            (self.page.fetched if fetches else self.page.links).append(given["href"])


def read_page(text: str) -> Page:
    """Return what a page refers to."""
    reader = _Reader()
    reader.feed(text)
    return reader.page


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the pages and styles below a folder, one line each."""
    pages = {file: read_page(file.read_text()) for file in sorted(folder.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        name = file.relative_to(folder)
        for address in page.fetched:
            if urlsplit(address).netloc:
                found.append(f"{name}: fetches {address}")
        for address in (*page.links, *page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{name}: {address} leads nowhere")
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    found.append(f"{name}: {address} is no place on that page")
    for file in sorted(folder.rglob("*.css")):
        for address in IN_STYLE.findall(file.read_text()):
            found.append(f"{file.relative_to(folder)}: fetches {address}")
    return found


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of every fault of the site."""
    if error is None and app.builder.name == "html":
        for fault in faults(Path(app.outdir)):
            logger.warning(fault)


def setup(app: Sphinx) -> dict[str, Any]:
    """Check when all is written."""
    app.connect("build-finished", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
