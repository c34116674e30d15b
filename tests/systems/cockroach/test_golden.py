"""CockroachDB's own test cases, and how the replayer deals with what it does not know."""

from pathlib import Path

import pytest

from tests.conformance import documents
from tests.conformance.schemas import cockroach
from tests.support import places

FILES = sorted((places.DATA / "golden" / "cockroach").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_case_agrees(file):
    document = documents.load(file)
    assert cockroach.recognises(file, document)
    cases = cockroach.replay(file, document).cases
    assert len(cases) == document["case_count"] > 0
    assert [case for case in cases if not case.agrees] == []


def test_all_files_are_there():
    assert len(FILES) == 15


@pytest.mark.long
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers_need_no_expected_ones(file):
    answered = cockroach.replay(file, documents.load(file)).answers
    bare = documents.load(file)
    for case in bare["cases"]:
        del case["expect"]
    replay = cockroach.replay(file, bare)
    assert {case.agrees for case in replay.cases} == {None}
    assert replay.answers == answered


def test_what_is_not_known_disagrees():
    file = next(file for file in FILES if file.stem == "remove_candidates")
    document = documents.load(file)
    document["cases"][0]["weather"] = "fine"
    document["cases"][1]["fixture"] = "nowhere"
    document["cases"][2]["kind"] = "witness"
    wrong = [case for case in cockroach.replay(file, document).cases if not case.agrees]
    assert [case.detail for case in wrong] == [
        "unknown keys ['weather']", "no fixture 'nowhere'", "unknown kind 'witness'",
    ]  # fmt: skip
    document = documents.load(file)
    document["category"] = "astrology"
    assert not any(case.agrees for case in cockroach.replay(file, document).cases)


def test_a_wrong_answer_is_seen():
    file = next(file for file in FILES if file.stem == "add_candidates")
    document = documents.load(file)
    document["cases"][0]["expect"] = {"best": [8]}
    assert [case.agrees for case in cockroach.replay(file, document).cases].count(False) == 1


def test_other_systems_files_of_the_same_schema_are_not_claimed():
    assert not cockroach.recognises(Path(), {"schema": "placement-cases/1", "system": "longhorn"})
