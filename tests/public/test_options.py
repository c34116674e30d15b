"""Options keep each other: none is dropped without a word."""

import json


def test_new_brokers_are_filled_where_no_other_may_take_anything(public):
    case = public("kafka/fill-only-the-new")
    old = [word for n in range(1, 7) for word in ("--exclude", str(n))]
    answer = case.run(
        "solve", "described.txt", "logdirs.json", "racks.txt", "--add-nodes", "more.csv", *old,
        "--level", "disk=0.1", "--floor", "disk=0.1", "-o", "p.json",
    )  # fmt: skip
    assert answer.code == 0
    assert "disk at least 10.00% of capacity on nodes that take replicas" in answer.text
    assert "the mean of 11.11% less 10.00%" in answer.text  # of all nine, a ninth of the load
    before = {
        (row["topic"], row["partition"]): set(row["replicas"])
        for row in json.loads(case.written("p.rollback.json"))["partitions"]
    }
    moved = [
        set(row["replicas"]) - before[row["topic"], row["partition"]]
        for row in json.loads(case.written("p.json"))["partitions"]
    ]
    assert sum(map(len, moved)) >= 40
    assert set().union(*moved) <= {7, 8, 9}
