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

FETCHED_BY_LINK = {
    "stylesheet",
    "icon",
    "preload",
    "preconnect",
    "prefetch",
    "manifest",
    "modulepreload",
}
"""Values of `rel` with which a ``link`` is fetched."""

IN_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class Page(NamedTuple):
    """The references of a page."""

    anchors: set[str]
    links: list[str]
    fetched: list[str]


class _Reader(HTMLParser):
    """Collects the references of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect anchors, links and fetched addresses."""
        given = {name: value for name, value in attrs if value is not None}
        self.page.anchors.update(given[name] for name in ("id", "name") if name in given)
        self.page.fetched.extend(given[name] for name in FETCHED & given.keys())
        self.page.fetched.extend(IN_STYLE.findall(given.get("style", "")))
        if "href" in given:
            fetches = tag == "link" and FETCHED_BY_LINK & set(given.get("rel", "").split())
            (self.page.fetched if fetches else self.page.links).append(given["href"])


def read_page(text: str) -> Page:
    """Return the references of a page."""
    reader = _Reader()
    reader.feed(text)
    return reader.page


def faults(folder: Path) -> list[str]:
    """Return the faults of the pages and styles below a folder, one line each."""
    written = [file for file in folder.rglob("*.html") if "_static" not in file.parts]
    pages = {file: read_page(file.read_text()) for file in sorted(written)}
    found = []
    for file, page in pages.items():
        name = file.relative_to(folder)
        found += [f"{name}: fetches {one}" for one in page.fetched if urlsplit(one).netloc]
        reasons = ((one, _dead(one, file, pages)) for one in (*page.links, *page.fetched))
        found += [f"{name}: {address} {why}" for address, why in reasons if why]
    for file in sorted(folder.rglob("*.css")):
        name = file.relative_to(folder)
        found += [f"{name}: fetches {one}" for one in IN_STYLE.findall(file.read_text())]
    return found


def _dead(address: str, file: Path, pages: dict[Path, Page]) -> str:
    """Return why an address within the site is dead, or "" if it is not, or is of another site."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "leads nowhere"
    anchors = pages[target].anchors if target in pages else {parts.fragment}
    missing = parts.fragment and unquote(parts.fragment) not in anchors
    return "is no place on that page" if missing else ""


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of every fault of the site."""
    if error is None and app.builder.name == "html":
        for fault in faults(Path(app.outdir)):
            logger.warning(fault)


def setup(app: Sphinx) -> dict[str, Any]:
    """Check when all is written."""
    app.connect("build-finished", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
