"""Every golden case of Longhorn, its stages in either order, and the stories of its text."""

import copy
import json
import math

import pytest

from bench.experiments.__main__ import main
from bench.experiments.longhorn_stories import STORIES, played
from tests.conformance import documents
from tests.conformance.schemas import longhorn
from tests.support import places

FOLDER = places.DATA / "golden" / "longhorn"
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


def answered(category, *cases):
    """What is computed for cases without expectations, in strict JSON; refused ones by number."""
    path, document = loaded(category)
    replay = longhorn.replay(path, document | {"cases": [dict(case) for case in cases]})
    assert json.loads(json.dumps(replay.answers, allow_nan=False)) == replay.answers
    return replay.answers["cases"], [case.name for case in replay.cases if case.agrees is False]


def test_a_score_of_nothing_left_is_null_since_json_has_no_infinity():
    path, document = loaded("disk_choice")
    asked = {"id": "full", "usable": {"A": {"A1": 70}}, "size": 70}
    ((case,), refused) = answered("disk_choice", asked)
    assert case["expect"] == {"node": "A", "disk": "A1", "node_scores": {"A": None}}
    assert refused == []
    for worst, agrees in ((None, True), (math.inf, True), (0.0, False)):
        expected = {"node": "A", "disk": "A1", "node_scores": {"A": worst}}
        replay = longhorn.replay(path, document | {"cases": [asked | {"expect": expected}]})
        assert [one.agrees for one in replay.cases] == [agrees]


def test_a_case_that_cannot_be_computed_is_refused_alone():
    good = {"usable": {"A": {"A1": 70}}, "size": 50}
    cases, refused = answered("disk_choice", {"size": 5}, {**good, "size": 50.5}, good)
    assert refused == ["cases[0]", "cases[1]"]
    assert cases[2]["expect"]["disk"] == "A1"


@pytest.mark.parametrize(
    ("owners", "free", "asked"),
    [([6, 1], 0, 4), ([6], 0, 0), ([3, 0], 0, 0), ([2, 1], 2, 2), ([1, 1], 1, 1), ([5, 3], 1, 1)],
)
def test_least_effort_is_asked_before_best_effort(owners, free, asked):
    case = {"mode": "best_effort", "replicas_per_owner": owners, "least_effort_result": free}
    ((answer,), refused) = answered("replenish_count", case)
    assert answer["expect"] == {"replenish": asked}
    assert refused == []


def test_counts_of_hosts_and_zones_that_do_not_fit_together_are_refused():
    keys = ("replicas", "occupied_zones", "occupied_nodes")
    free = ("unused_schedulable_zones", "unused_schedulable_nodes")
    least = [
        dict(zip((*keys, *free), row, strict=True), mode="least_effort")
        for row in ((3, 1, 1, 1, 1), (3, 2, 1, 1, 1), (3, 1, 1, 2, 1), (3, 0, 0, 1, 1))
    ]
    best = [
        {"mode": "best-effort", "replicas_per_owner": [2, 1], "least_effort_result": 3},
        {"mode": "worst-effort", "replicas_per_owner": [2, 1], "least_effort_result": 0},
    ]
    cases, refused = answered("replenish_count", *least, *best)
    assert refused == [f"cases[{i}]" for i in range(1, 6)]
    assert cases[0]["expect"] == {"replenish": 1}


def test_anti_affinity_in_all_its_combinations_and_hosts_without_a_zone():
    def case(node, zone, **more):
        return {
            "zones": {"n-1": "", "n-2": None, "n-3": "z"},
            "soft_anti_affinity": {"node": node, "zone": zone},
            "number_of_replicas": 4,
            "global_setting": "best_effort",
            "volume_setting": "ignored",
            "start": {"n-1": 4},
            "steps": [{"schedulable": ["n-1", "n-2", "n-3"]}],
        } | more

    cases, refused = answered(
        "auto_balance",
        case(True, True), case(False, True), case(True, False),
        case(True, True, soft_anti_affinity={"rack": True}), case(True, True, number_of_replicas=5),
    )  # fmt: skip
    assert refused == ["cases[3]"]
    counts = [one["steps"][0].get("expect_sorted_counts") for one in cases]
    # zones are hard: a used zone gets nothing more, so that n-2 stays empty
    assert counts == [[1, 1, 2], [1, 1, 2], [0, 1, 3], None, [1, 2, 2]]


@pytest.mark.parametrize("order", ["node-then-zone", "zone-then-node"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_ends_as_the_text_says_and_nothing_more_happens(story, order):
    for one in played([story], order):
        assert one.as_stated, one
        assert one.rests, one
        assert one.kept, one


def test_a_story_that_ends_otherwise_is_seen():
    (story,) = [story for story in STORIES if story.name.startswith("5")]
    when = story.whens[0].__class__("node-2 is added", {"volume": (2, 2)}, limited=True)
    (one,) = played([story.__class__(story.name, story.zones, story.start, (when,), story.setting)])
    assert not one.as_stated
    assert one.counts == {"volume": (3, 1)}


def test_stories_are_told_by_the_command_line(capsys):
    main(["longhorn"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + sum(len(story.whens) for story in STORIES)
    assert not any("NO" in line.split() for line in lines)
