"""Every golden case of Helix's hashes and CRUSH strategies."""

from pathlib import Path

import pytest

from tests.conformance import documents
from tests.conformance.schemas import helix_crush
from tests.support import places

FOLDER = places.DATA / "golden" / "helix"
CASES = {
    "hash_vectors": 422, "crush_c01": 9, "crush_c02": 9, "crush_c03": 15, "crush_c04": 15,
    "crush_c05": 6, "crush_c06": 6, "crush_c07": 12, "crush_c08": 12, "crush_c09": 60,
    "crush_c10": 9, "crush_c11": 60,
}  # fmt: skip


def answered(name: str) -> tuple[Path, dict]:
    path = FOLDER / f"{name}.json.gz"
    document = documents.load(path)
    assert helix_crush.recognises(path, document)
    return path, document


@pytest.mark.parametrize("name", CASES)
def test_every_golden_case_agrees(name):
    replay = helix_crush.replay(*answered(name))
    assert [case for case in replay.cases if not case.agrees] == []
    assert len(replay.cases) == CASES[name]


def test_a_wrong_answer_is_seen():
    path, document = answered("crush_c01")
    document["output"]["crushed"]["DbA1"][5].reverse()
    wrong = [case.name for case in helix_crush.replay(path, document).cases if not case.agrees]
    assert wrong == ["crushed DbA1"]


def test_an_error_where_lists_are_expected_is_seen():
    path, document = answered("crush_c04")
    document["output"]["multiround"]["NoZone0"] = [[1]]
    wrong = [case.name for case in helix_crush.replay(path, document).cases if not case.agrees]
    assert wrong == ["multiround NoZone0"]


def test_answers_need_no_expectation():
    path, document = answered("crush_c02")
    expected = document.pop("output")
    replay = helix_crush.replay(path, document)
    assert replay.answers["output"] == expected
    assert {case.agrees for case in replay.cases} == {None}


def test_hashes_need_no_expectation():
    path, document = answered("hash_vectors")
    asked = {name: [row[:-1] for row in document[name]] for name in helix_crush.HASHES}
    asked["names"] = [row[:1] for row in document["names"]]
    answers = helix_crush.replay(path, asked).answers
    assert all(answers[name] == document[name] for name in asked)
