"""The replayer of golden files: verdicts, exit statuses, and the copies with our answers."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.__main__ import known_schemas, replay_all
from tests.conformance.protocol import MISSING, Case, Document, Replay, compared
from tests.support import places

DOUBLES = {"cases": [{"x": x, "expect": {"twice": 2 * x}} for x in (1, 2, 3)], "toy": 1}


class Doubling:
    """A toy schema: each case expects twice its ``x``."""

    NAME = "toy doubling"

    def recognises(self, path: Path, document: Document) -> bool:
        return isinstance(document, dict) and "toy" in document

    def replay(self, path: Path, document: Document) -> Replay:
        cases = []
        for number, case in enumerate(document["cases"]):
            computed = {"twice": 2 * case["x"]}
            cases.append(compared(f"case {number}", case.get("expect", MISSING), computed))
            case["expect"] = computed
        return Replay(cases, document, ["largest: 6"])


class SumOfFolder:
    """A toy schema that takes a folder of texts as one document."""

    NAME = "toy folder"

    def recognises(self, path: Path, document: Document) -> bool:
        return isinstance(document, dict) and set(document) == {"in.txt", "out.txt"}

    def replay(self, path: Path, document: Document) -> Replay:
        total = str(sum(map(int, document["in.txt"].split())))
        case = compared("sum", document["out.txt"], total)
        return Replay([case], document | {"out.txt": total})


class Squaring:
    """A toy schema over arrays, without expected answers."""

    NAME = "toy arrays"

    def recognises(self, path: Path, document: Document) -> bool:
        return isinstance(document, dict) and "root" in document

    def replay(self, path: Path, document: Document) -> Replay:
        return Replay([Case("square", None)], document | {"square": document["root"] ** 2})


def doubles(folder: Path, document: object = DOUBLES, name: str = "doubles.json") -> Path:
    """Write ``document`` under ``name``."""
    path = folder / name
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def altered(key: str, value: object) -> dict[str, object]:
    """DOUBLES with another expected answer in its second case."""
    document = json.loads(json.dumps(DOUBLES))
    document["cases"][1][key] = value
    return document


@pytest.mark.parametrize("name", ["doubles.json", "doubles.json.gz"])
def test_a_file_that_agrees(tmp_path, capsys, name):
    assert replay_all([doubles(tmp_path, name=name)], [Doubling()]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name}: 3 of 3 cases agree", "  largest: 6"]


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        ({"twice": 5}, "twice: expected 5, computed 4"),
        ({"twice": True}, "twice: expected True, computed 4"),
        ({"twice": [4]}, "twice: expected [4], computed 4"),
        ({}, "twice: expected nothing, computed 4"),
        ({"twice": 4, "thrice": 6}, "thrice: expected 6, computed nothing"),
    ],
)
def test_an_altered_answer_fails(tmp_path, capsys, expect, says):
    path = doubles(tmp_path, altered("expect", expect))
    assert replay_all([path], [Doubling()]) == 1
    out = capsys.readouterr().out
    assert "doubles.json: 2 of 3 cases agree" in out
    assert f"  case 1: {says}\n" in out


def test_answers_are_written_without_expected_ones(tmp_path, capsys):
    held_back = {"cases": [{"x": case["x"]} for case in DOUBLES["cases"]], "toy": 1}
    source = doubles(tmp_path, held_back, "held.json.gz")
    assert replay_all([source], [Doubling()], tmp_path / "answers") == 0
    assert "held.json.gz: 3 cases computed, none has an expected answer" in capsys.readouterr().out
    written = (tmp_path / "answers" / "held.json.gz").read_bytes()
    assert json.loads(gzip.decompress(written)) == DOUBLES


def test_answers_replace_wrong_ones_in_place(tmp_path):
    source = doubles(tmp_path, altered("expect", {"twice": 0}))
    assert replay_all([source], [Doubling()], tmp_path / "answers") == 1
    assert (tmp_path / "answers" / "doubles.json").read_text().strip() == json.dumps(DOUBLES)
    assert json.loads(source.read_text()) == altered("expect", {"twice": 0})


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_keep_their_compression(tmp_path, save):
    save(tmp_path / "roots.npz", root=np.arange(1000))
    assert replay_all([tmp_path / "roots.npz"], [Squaring()], tmp_path / "answers") == 0
    written = tmp_path / "answers" / "roots.npz"
    with np.load(written) as arrays:
        np.testing.assert_array_equal(arrays["root"], np.arange(1000))
        np.testing.assert_array_equal(arrays["square"], np.arange(1000) ** 2)
    assert (written.stat().st_size < 8000) == (save is np.savez_compressed)


def test_a_folder_is_one_document_or_all_it_holds(tmp_path, capsys):
    whole = tmp_path / "golden" / "sums"
    whole.mkdir(parents=True)
    (whole / "in.txt").write_text("1 2 3")
    (whole / "out.txt").write_text("7")
    doubles(tmp_path / "golden")
    (tmp_path / "golden" / "notes.md").write_text("read me")
    known = [Doubling(), SumOfFolder()]
    assert replay_all([tmp_path / "golden"], known, tmp_path / "answers") == 1
    out = capsys.readouterr().out
    assert "doubles.json: 3 of 3 cases agree" in out
    assert "sums: 0 of 1 cases agree" in out
    assert "notes.md: not a golden file, left alone" in out
    assert (tmp_path / "answers" / "sums" / "out.txt").read_text() == "6"
    assert (tmp_path / "answers" / "doubles.json").exists()


def test_one_disagreement_among_many_files_counts(tmp_path):
    good = doubles(tmp_path)
    bad = doubles(tmp_path, altered("expect", {"twice": 5}), "bad.json")
    assert replay_all([good, bad, good], [Doubling()]) == 1


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        ('{"other": 1}', "other.json", "unknown schema (known: toy doubling)"),
        ('{"toy": 1, "ca', "torn.json", "cannot be read"),
        ("", "empty.json.gz", "cannot be read"),
        ("not an archive", "torn.npz", "cannot be read"),
        ('{"toy": 1, "cases": []}', "hollow.json", "holds no case"),
        ('{"toy": 1}', "broken.json", "the replay broke off: KeyError"),
        ("x = 1", "script.py", "is none of .json"),
        (None, "absent.json", "cannot be read"),
        (None, "absent", "no such file or folder"),
    ],
)
def test_what_cannot_be_replayed_is_said(tmp_path, capsys, content, name, says):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert replay_all([path, doubles(tmp_path)], [Doubling()]) == 2
    out = capsys.readouterr().out
    assert f"{name}: {says}" in out
    assert "doubles.json: 3 of 3 cases agree" in out


def test_a_folder_without_golden_files_is_no_success(tmp_path, capsys):
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "notes.md").write_text("read me")
    assert replay_all([tmp_path / "golden", doubles(tmp_path)], [Doubling()]) == 2
    assert "golden: nothing to replay" in capsys.readouterr().out


def test_a_file_claimed_twice_is_refused(tmp_path, capsys):
    assert replay_all([doubles(tmp_path)], [Doubling(), Doubling()]) == 2
    assert "claimed by several schemas: toy doubling, toy doubling" in capsys.readouterr().out


def test_two_files_of_one_name_do_not_overwrite_each_other(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [doubles(tmp_path / "a"), doubles(tmp_path / "b")]
    assert replay_all(paths, [Doubling()], tmp_path / "answers") == 2
    assert "another file of that name was answered already" in capsys.readouterr().out


def test_comparison_is_exact_unless_told():
    assert compared("c", [0.1 + 0.2], [0.3]).agrees is False
    assert compared("c", [0.1 + 0.2], [0.3], rel_tol=1e-12).agrees is True
    assert compared("c", [1, 2], (np.int32(1), np.int64(2))).agrees is True
    assert compared("c", [[1], [2]], np.array([[1], [2]])).agrees is True
    assert compared("c", float("nan"), float("nan")).agrees is True
    assert compared("c", None, 0).agrees is False


def test_every_schema_module_has_the_three_names():
    for schema in known_schemas():
        assert isinstance(schema.NAME, str)
        assert callable(schema.recognises)
        assert callable(schema.replay)


def test_the_schemas_import_nothing_heavy():
    heavy = {"numba", "scipy", "ortools", "pandas", "evenkeel_kernels"}
    code = (
        "import sys; from tests.conformance.__main__ import known_schemas; known_schemas();"
        f"print(*({heavy!r} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=places.ROOT
    )
    assert run.stdout.strip() == ""


def test_the_command_refuses_an_unknown_schema(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "tests.conformance", str(doubles(tmp_path, {"other": 1}))],
        capture_output=True,
        text=True,
        check=False,
        cwd=places.ROOT,
    )
    assert run.returncode == 2
    assert "doubles.json: unknown schema" in run.stdout
