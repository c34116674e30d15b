"""Reassignments, drains and decommissions that users asked for, as plans."""

import json


def test_all_brokers_are_replaced(public):
    case = public("kafka/replace-all-brokers")
    words = ["described.txt", "racks.txt", "--add-nodes", "more.csv"]
    drains = ["--drain", "1", "--drain", "2", "--drain", "3"]
    answer = case.run("plan", *words, *drains, "-o", "move")
    assert answer.code == 0
    assert "blocked" not in answer.text
    assert "27 copies" in answer.text
    moves = json.loads(case.written("move/waves/1.reassignment.json"))["partitions"]
    rack = {4: "a", 5: "b", 6: "c"}
    assert len(moves) == 9
    assert all(sorted(rack[n] for n in one["replicas"]) == ["a", "b", "c"] for one in moves)
