"""A program of a user's is checked strictly against the types that the package brings."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from mypy import api

import evenkeel as ek
import evenkeel_kernels
from evenkeel.methods.registry import METHODS, MethodName
from evenkeel.result import ResultTable
from evenkeel.result_rows import TABLES
from tests.house import sample_program
from tests.support import places

HERE = Path(sample_program.__file__)


def checked(file):
    """What mypy says of a program, by the settings of the project."""
    settings = places.ROOT / "pyproject.toml"
    told, wrong, _ = api.run(["--config-file", str(settings), str(file)])
    return told + wrong


def checked_by_pyright(program, folder):
    """What pyright says of a program in strict mode: a list of messages."""
    roots = [str(Path(package.__file__).parents[1]) for package in (ek, evenkeel_kernels)]
    (folder / "program.py").write_text(program)
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"strict": ["program.py"], "extraPaths": roots})
    )
    asked = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    told = subprocess.run(
        [*asked, "--project", str(folder)], capture_output=True, text=True, check=False
    )
    found = json.loads(told.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    return [one["message"] for one in found["generalDiagnostics"]]


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
def test_the_program_is_typed_for_pyright(tmp_path):
    assert checked_by_pyright(HERE.read_text(), tmp_path) == []


@pytest.mark.long
def test_a_wrong_program_is_refused(tmp_path):
    wrong = tmp_path / "program.py"
    wrong.write_text(
        "import evenkeel as ek\nek.Cluster.from_arrays(capacity=[[1.0]], lode=[[1.0]])\n"
    )
    assert 'Unexpected keyword argument "lode"' in checked(wrong)
    told = checked_by_pyright(wrong.read_text(), tmp_path)
    assert 'No parameter named "lode"' in told


def test_names_for_types_are_those_of_the_tables():
    assert [*get_args(MethodName)] == [*METHODS]
    assert [*get_args(ResultTable)] == [*TABLES]


@pytest.mark.long
def test_a_method_that_is_misspelt_is_refused(tmp_path):
    wrong = tmp_path / "program.py"
    wrong.write_text(
        "import evenkeel as ek\n\n\n"
        "def levelled(cluster: ek.Cluster) -> ek.Result:\n"
        '    return ek.solve(cluster, "balence")\n'
    )
    assert 'Argument 2 to "solve" has incompatible type' in checked(wrong)
