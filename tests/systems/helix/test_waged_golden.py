"""Every golden step of WAGED."""

import json

import pytest

from tests.conformance import documents
from tests.conformance.__main__ import replay_all
from tests.conformance.schemas import helix_waged
from tests.support import places
from tests.support.effort import mostly_long

FOLDER = places.DATA / "golden" / "helix"
STEPS = {
    "15krep_60n": 5, "25krep_100n": 5,
    "s10_more_replicas_than_zones": 1, "s11_one_big_partition": 1,
    "s12_disabled_partitions_any_live": 2, "s13_not_topology_aware": 6, "s14_expansion": 3,
    "s15_zone_lost": 12, "s16_zone_lost_small": 12, "s17_min_active_above_replicas": 12,
    "s1_mixed_models": 6, "s2_tags": 6, "s2b_tag_spans_too_few_zones": 1, "s3_max_partitions": 6,
    "s4_evenness_only": 6, "s5_less_movement": 6, "s6_scoring_key": 6, "s7_force_converge": 6,
    "s8_no_capacity_keys": 1, "s9_infeasible_total": 1,
}  # fmt: skip
LARGE = {"15krep_60n", "25krep_100n"}


def answered(name):
    path = FOLDER / f"waged_{name}.json.gz"
    document = documents.load(path)
    assert helix_waged.recognises(path, document)
    return path, document


@pytest.mark.parametrize("name", mostly_long(STEPS, STEPS.keys() - LARGE))
def test_every_golden_step_agrees(name):
    path, document = answered(name)
    expected = [step["id"] for step in document["result"]["steps"]]
    replay = helix_waged.replay(path, document)
    assert [case for case in replay.cases if not case.agrees] == []
    assert len(replay.cases) == STEPS[name]
    assert [step["id"] for step in replay.answers["result"]["steps"]] == expected


@pytest.mark.parametrize("name", ["s3_max_partitions", "s12_disabled_partitions_any_live"])
def test_answers_need_no_expectation(name):
    path, document = answered(name)
    expected = document.pop("result")
    replay = helix_waged.replay(path, document)
    assert {case.agrees for case in replay.cases} == {None}
    _, again = answered(name)
    again["result"] = replay.answers["result"]
    for ours, theirs in zip(again["result"]["steps"], expected["steps"], strict=True):
        assert ours.get("assignment") == theirs.get("assignment")
        assert ours.keys() == theirs.keys()
    cases = helix_waged.replay(path, again).cases
    assert all(case.agrees for case in cases)


def wrong_cases(name, change):
    path, document = answered(name)
    change({step["id"]: step for step in document["result"]["steps"]})
    return [case.name for case in helix_waged.replay(path, document).cases if not case.agrees]


def test_a_wrong_node_is_seen():
    def change(steps):
        steps["B"]["assignment"]["gU"][3][0][0] += 1

    assert wrong_cases("s12_disabled_partitions_any_live", change) == ["B"]


def test_a_wrong_expectation_is_seen():
    def change(steps):
        steps["A"]["estimatedMaxUtilization"] += 1e-7

    assert wrong_cases("s10_more_replicas_than_zones", change) == ["A"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gBig-gBig_0-MASTER", "gBig-gBig_0-SLAVE"),
        ("gj03=[Node has insufficient capacity]", "gj03=[Cannot assign the inactive replica]"),
        ("gj03=[Node has insufficient capacity], ", ""),
        ("FAILED_TO_CALCULATE", "INVALID_INPUT"),
    ],
)
def test_a_wrong_failure_is_seen(old, new):
    def change(steps):
        assert old in steps["A"]["error"]
        steps["A"]["error"] = steps["A"]["error"].replace(old, new)

    assert wrong_cases("s11_one_big_partition", change) == ["A"]


def test_the_order_of_nodes_in_a_failure_does_not_count():
    def change(steps):
        head, _, rest = steps["A"]["error"].partition("MASTER={")
        nodes, _, tail = rest.partition("}}")
        shuffled = ", ".join(sorted(nodes.split(", "), reverse=True))
        steps["A"]["error"] = f"{head}MASTER={{{shuffled}}}}}{tail}"

    assert wrong_cases("s11_one_big_partition", change) == []


def test_a_missing_step_is_seen():
    path, document = answered("s12_disabled_partitions_any_live")
    document["result"]["steps"].pop()
    wrong = [case.name for case in helix_waged.replay(path, document).cases if not case.agrees]
    assert wrong == ["B"]


@pytest.mark.parametrize(
    ("where", "key"),
    [("input", "sharding"), ("nodes", "weight"), ("resources", "delay"), ("steps", "timeout")],
)
def test_what_is_not_known_is_refused(tmp_path, capsys, where, key):
    _, document = answered("s12_disabled_partitions_any_live")
    part = document["input"] if where == "input" else document["input"][where][0]
    part[key] = 1
    path = tmp_path / "waged.json"
    path.write_text(json.dumps(document))
    assert replay_all([path], [helix_waged]) == 2
    assert key in capsys.readouterr().out
