"""Notebooks: in step with their scripts, without outputs, and each runs to its end in time."""

import ast
import math
import time

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from docs.run_notebooks import cells_of, store
from tests.support import places

FOLDER = places.ROOT / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))
NAMES = [script.stem for script in SCRIPTS]

MOST_SECONDS = 300
"""For a whole notebook, on a machine that does other things too; idle, two cores need 120."""

HIDING = {"skip-execution", "raises-exception"}  # tags that hide an error


def notebook(name):
    """The notebook beside a script."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def run(cells, seconds=MOST_SECONDS):
    """Execute a notebook; any error of any cell is raised, and so is a lack of time."""
    end = time.monotonic() + seconds
    client = NotebookClient(
        cells,
        timeout_func=lambda cell: max(1, math.ceil(end - time.monotonic())),
        kernel_name="python3",
        allow_errors=False,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()


def test_every_notebook_has_its_script():
    assert NAMES
    assert sorted(book.stem for book in FOLDER.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_its_script(name):
    assert cells_of(notebook(name)) == cells_of(jupytext.read(FOLDER / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_carries_no_outputs(name):
    book = notebook(name)
    nbformat.validate(book)
    for cell in book.cells:
        assert not HIDING & set(cell.metadata.get("tags", []))
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_hides_an_error(name):
    for kind, source in cells_of(notebook(name)):
        if kind == "code":
            handlers = [
                node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler)
            ]
            # what is meant to fail says how, and shows it
            assert all(node.type is not None and node.name is not None for node in handlers)
            assert not any(ast.unparse(node.type) == "Exception" for node in handlers)


@pytest.mark.notebook
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_to_its_end(name):
    book = notebook(name)
    run(book)
    store(name, book)  # for the site, which need not execute it again


def test_an_error_in_a_cell_is_an_error():
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    with pytest.raises(CellExecutionError):
        run(book)


def test_a_cell_that_takes_too_long_is_an_error():
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import time; time.sleep(600)")]
    )
    with pytest.raises(CellTimeoutError):
        run(book, seconds=5)
