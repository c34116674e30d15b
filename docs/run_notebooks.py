"""Execute the notebooks whose cells are not those executed last: ``python -m docs.run_notebooks``.

The site shows what is stored in ``docs/gallery``; the tests store there whatever they execute.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "notebooks"
EXECUTED = ROOT / "docs" / "gallery"
AT_ONCE = 2
PATIENCE = 600
"""Seconds that a cell may take on a machine that does other things, too."""


def cells_of(book: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Return kind and source of every cell."""
    return [(cell.cell_type, cell.source) for cell in book.cells]


def is_executed(name: str) -> bool:
    """Return whether the stored notebook was executed from the present cells."""
    stored = EXECUTED / f"{name}.ipynb"
    if not stored.exists():
        return False
    source = nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)
    return cells_of(nbformat.read(stored, as_version=4)) == cells_of(source)


def store(name: str, book: nbformat.NotebookNode) -> None:
    """Store an executed notebook for the site."""
    EXECUTED.mkdir(exist_ok=True)
    nbformat.write(book, EXECUTED / f"{name}.ipynb")


def execute(name: str) -> None:
    """Execute a notebook, and store it."""
    book = nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)
    client = NotebookClient(
        book,
        timeout=PATIENCE,
        kernel_name="python3",
        resources={"metadata": {"path": str(SOURCES)}},
    )
    client.execute()
    store(name, book)


def main() -> int:
    """Execute what has changed, two at a time."""
    names = [file.stem for file in sorted(SOURCES.glob("*.ipynb"))]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(execute, [name for name in names if not is_executed(name)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
