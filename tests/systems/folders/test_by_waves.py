"""Waves have one number and one length, whoever tells of them."""

import csv
import json
import re

import pytest

from evenkeel.cli import main

ROWS = [{"topic": "t", "partition": p, "replicas": [1 + p % 2]} for p in range(24)]
LOADS = "topic,partition,disk\n" + "".join(f"t,{p},{10 + 7 * p % 90}\n" for p in range(24))


@pytest.fixture
def files(tmp_path):
    named = {
        "now.json": json.dumps({"version": 1, "partitions": ROWS}),
        "loads.csv": LOADS,
        "racks.json": '{"1": "a", "2": "b", "3": "c", "4": "d"}',
    }
    for name, text in named.items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in named]


def planned(files, tmp_path, capsys, *more):
    """What is printed of a plan, the page of its folder, and the table of its steps."""
    table, folder = tmp_path / "steps.csv", tmp_path / "move"
    throttle = ["--throttle", "node-in=1", "--throttle", "node-bandwidth=10"]
    given = [*files, "--level", "0", *throttle, "--table", str(table), "-o", str(folder), *more]
    assert main(["plan", *given]) in (0, 3)
    printed = capsys.readouterr().out
    return (
        printed,
        (folder / "README.md").read_text(),
        [*csv.DictReader(table.read_text().splitlines())],
    )


def test_they_are_numbered_alike_everywhere(files, tmp_path, capsys):
    report = tmp_path / "plan.html"
    printed, page, steps = planned(files, tmp_path, capsys, "--report", str(report))
    files = [name.name.partition(".")[0] for name in (tmp_path / "move/waves").iterdir()]
    numbers = {int(number) for number in files if number.isdigit()}
    assert numbers == {*range(1, len(numbers) + 1)}
    assert {int(row["wave"]) for row in steps} == numbers
    in_page = {int(one) for one in re.findall(r"^\| (\d+) \|", page, re.M)}
    assert in_page == numbers
    rows = re.findall(r"^ *\d+ +(\d+) +(?:copy|swap|lead|remove)", printed, re.M) or re.findall(
        r"^ *(\d+) +\d+ +\d+ ", printed, re.M
    )
    assert rows and {int(one) for one in rows} <= numbers and "1" in rows
    for row in steps:
        moves = json.loads((tmp_path / f"move/waves/{row['wave']}.reassignment.json").read_text())
        topic, _, number = row["partition"].rpartition("-")
        told = [(one["topic"], one["partition"]) for one in moves["partitions"]]
        assert (topic, int(number)) in told
    assert '<td class="n">0</td><td class="n">0</td>' not in report.read_text()


def test_the_time_is_the_same_on_the_screen_and_on_the_page(files, tmp_path, capsys):
    printed, page, _ = planned(files, tmp_path, capsys)
    printed = " ".join(printed.split())
    whole = re.search(r"all of them take (.+?) at least", page)[1]
    assert f"{whole} at least wave by wave" in printed
    own = re.search(r"The plan's own (.+?) are those", page)[1]
    assert f": {own} if each step begins as soon as it may" in printed
    assert own != whole


def test_machines_are_told_both(files, tmp_path, capsys):
    throttle = ["--throttle", "node-in=1", "--throttle", "node-bandwidth=10"]
    assert main(["plan", *files, "--level", "0", *throttle, "--json"]) in (0, 3)
    told = json.loads(capsys.readouterr().out)
    assert told["makespan_by_waves"] > told["makespan"] >= told["makespan_at_least"] > 0.0
