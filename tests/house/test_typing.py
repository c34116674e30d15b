"""A program of a user's is checked strictly against the types that the package brings."""

from pathlib import Path

import pytest
from mypy import api

import evenkeel as ek
from tests.house import sample_program
from tests.support import places

HERE = Path(sample_program.__file__)


def checked(file):
    """What mypy says of a program, by the settings of the project."""
    settings = places.ROOT / "pyproject.toml"
    told, wrong, _ = api.run(["--config-file", str(settings), str(file)])
    return told + wrong


def test_the_program_runs():
    found = sample_program.main()
    assert (found["unplaced"], found["broken"], found["fits"], found["calm"]) == (0, 0, 5, True)
    assert found["steps"] > found["moves"] > 0


def test_the_package_says_that_it_is_typed():
    assert (Path(ek.__file__).parent / "py.typed").exists()


@pytest.mark.long
def test_the_program_is_typed():
    assert checked(HERE) == "Success: no issues found in 1 source file\n"


@pytest.mark.long
def test_a_wrong_program_is_refused(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import evenkeel as ek\nek.Cluster.from_arrays(capacity=[[1.0]], lode=[[1.0]])\n"
    )
    told = checked(wrong)
    assert 'Unexpected keyword argument "lode"' in told
