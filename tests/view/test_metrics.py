"""OpenMetrics text, as Prometheus and its node exporter read it."""

import math
import os
import re
import stat
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.view.metrics import FAMILIES, openmetrics

SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')


def parsed(text):
    """The samples of a text by name and labels; every line has to be of the format."""
    lines, found, declared = text.splitlines(), {}, []
    assert text.endswith("# EOF\n")
    for line in lines[:-1]:
        if line.startswith("# TYPE "):
            declared.append(line.split()[2])
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == declared[-1], "samples of a metric stand together"
            assert (name, labels) not in found
            found[name, labels] = float(value)
    assert len(declared) == len({*declared}), "a metric is declared once"
    return found


def test_values_without_end_names_with_quotes_and_counts():
    figures = {
        "level": {'c"p\\u\n': math.inf, "disk": math.nan}, "broken": {}, "stranded": ["a", "b"],
        "goals": {"met": False}, "moves": None,
    }  # fmt: skip
    found = parsed(openmetrics(figures, {"cluster": "a"}))
    assert found["evenkeel_stranded_partitions", 'cluster="a"'] == 2
    assert found["evenkeel_goals_met", 'cluster="a"'] == 0
    label = r'cluster="a",dimension="c\"p\\u\n"'
    assert found["evenkeel_imbalance_ratio", label] == math.inf
    assert not any(name in ("evenkeel_moves", "evenkeel_broken_rules") for name, _ in found)


def test_metrics_of_one_name_have_one_meaning():
    meanings = [(one.name, one.label) for one in FAMILIES]
    assert len({*meanings}) == len({name for name, _ in meanings})
    assert all(re.fullmatch(r"[a-z_]+", one.name) for one in FAMILIES)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Forty partitions, three quarters of them on one of four nodes, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 4, load=[[1.0]] * 40, dimensions=["cpu"],
        placement=[[0]] * 31 + [[1]] * 3 + [[2]] * 3 + [[3]] * 3,
    )  # fmt: skip
    ek.write(cluster, "a.npz")
    return "a.npz"


def test_commands_write_what_they_find(file, capsys):
    assert main(["check", file, "--level", "10%", "--metrics", "now.prom", "-q"]) == 1
    assert "goal missed: cpu of n0" in capsys.readouterr().err
    now = parsed(Path("now.prom").read_text())
    at = 'cluster="now",command="check"'
    assert now["evenkeel_imbalance_ratio", f'{at},dimension="cpu"'] == pytest.approx(3.1)
    assert (now["evenkeel_goals_met", at], now["evenkeel_moves_at_least", at]) == (0, 20)
    assert now["evenkeel_exit_code", at] == 1
    assert main(["solve", file, "--level", "10%", "-o", "b.npz", "--metrics", "to.prom", "-q"]) == 0
    to = parsed(Path("to.prom").read_text())
    assert to["evenkeel_moves", 'cluster="to",command="solve"'] == 20
    assert main(["check", "b.npz", "--level", "10%", "--metrics", "now.prom", "-q"]) == 0


def test_the_plan_that_is_under_way_tells_its_progress(file):
    assert main(["solve", file, "-o", "b.npz", "-q"]) == 0
    assert main(["plan", file, "--target", "b.npz", "-o", "p.json", "-q"]) == 0
    assert main(["resume", "p.json", file, "--metrics", "p.prom", "-q"]) == 0
    found = parsed(Path("p.prom").read_text())
    at = 'cluster="p",command="resume"'
    assert found["evenkeel_plan_steps_done", at] == 0 < found["evenkeel_plan_copies", at]


def test_others_may_read_the_file_as_any_other(file):
    before = os.umask(0o022)
    try:
        main(["check", file, "--metrics", "now.prom", "-q"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("now.prom").stat().st_mode) == 0o644
    assert not [*Path().glob("*.part"), *Path().glob(".*.part")]


def test_a_folder_that_is_not_there_is_said_before_any_work(file, capsys):
    assert main(["check", file, "--metrics", "none/now.prom"]) == 2
    assert "none/now.prom" in capsys.readouterr().err
