"""Every golden case of Longhorn, its stages in either order, and the stories of its text."""

import copy
from pathlib import Path

import pytest

from evenkeel.cli import main
from evenkeel.strategies.longhorn.stories import STORIES, played
from tests.conformance import documents
from tests.conformance.schemas import longhorn

FOLDER = Path(__file__).parent / "data" / "golden" / "longhorn"
CASES = {
    "auto_balance": 35, "deletion_choice": 8, "disk_choice": 4, "disk_feasibility": 10,
    "disk_pressure": 13, "placement_tiers": 6, "replenish_count": 12,
}  # fmt: skip


def loaded(name):
    path = FOLDER / f"{name}.json"
    document = documents.load(path)
    assert longhorn.recognises(path, document)
    return path, document


@pytest.mark.parametrize("name", CASES)
def test_every_golden_case_agrees(name):
    replay = longhorn.replay(*loaded(name))
    assert [case for case in replay.cases if not case.agrees] == []
    assert len(replay.cases) == CASES[name]


@pytest.mark.parametrize("name", CASES)
def test_answers_need_no_expectation_and_stand_in_its_place(name):
    path, document = loaded(name)
    asked = copy.deepcopy(document)
    for case in asked["cases"]:
        for key in ("expect", "moves"):
            case.pop(key, None)
        for step in case.get("steps", ()):
            step.pop("expect_node_counts", None)
            step.pop("expect_sorted_counts", None)
    replay = longhorn.replay(path, asked)
    assert {case.agrees for case in replay.cases} == {None}
    for given, answered in zip(document["cases"], replay.answers["cases"], strict=True):
        for key in ("expect", "moves"):
            if key in given:
                assert answered[key] == given[key]
        for step, told in zip(given.get("steps", ()), answered.get("steps", ()), strict=True):
            counts = step.get("expect_node_counts", {})
            assert counts.items() <= told["expect_node_counts"].items()
            ordered = told["expect_sorted_counts"]
            assert step.get("expect_sorted_counts", ordered) == ordered


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_expectation_is_seen(name):
    path, document = loaded(name)
    case = document["cases"][1]
    if "steps" in case:
        case["steps"][0]["expect_node_counts"]["node-1"] += 1
    else:
        case["expect"][next(iter(case["expect"]))] = "something else"
    wrong = [one.name for one in longhorn.replay(path, document).cases if not one.agrees]
    assert len(wrong) == 1
    assert wrong[0].startswith(case["id"])


def test_other_systems_categories_and_keys_are_refused():
    path, document = loaded("disk_pressure")
    assert not longhorn.recognises(path, document | {"system": "cockroach"})
    unknown = longhorn.replay(path, document | {"category": "snapshots"})
    assert [case.agrees for case in unknown.cases] == [False]
    document["cases"][0]["group"] = "temperature"
    document["cases"][1]["colour"] = "red"
    refused = [case for case in longhorn.replay(path, document).cases if not case.agrees]
    assert [case.name for case in refused] == ["dp-0", "dp-2"]


def test_cases_that_say_the_impossible_are_refused():
    path, document = loaded("replenish_count")
    case = document["cases"][0]
    document["cases"] = [case | {"occupied_nodes": 9}]
    assert [one.agrees for one in longhorn.replay(path, document).cases] == [False]


@pytest.mark.parametrize("order", ["node-then-zone", "zone-then-node"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_ends_as_the_text_says_and_nothing_more_happens(story, order):
    for one in played([story], order):
        assert one.as_said, one
        assert one.rests, one
        assert one.kept, one


def test_a_story_that_ends_otherwise_is_seen():
    (story,) = [story for story in STORIES if story.name.startswith("5")]
    when = story.whens[0].__class__("node-2 is added", {"volume": (2, 2)}, limited=True)
    (one,) = played([story.__class__(story.name, story.zones, story.start, (when,), story.setting)])
    assert not one.as_said
    assert one.counts == {"volume": (3, 1)}


def test_stories_are_told_by_the_command_line(capsys):
    assert main(["experiment", "longhorn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + sum(len(story.whens) for story in STORIES)
    assert not any("NO" in line.split() for line in lines)
