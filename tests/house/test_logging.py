"""What takes long says when it began, when it ended and why, and to nobody who did not ask."""

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import evenkeel as ek
import evenkeel_kernels
from evenkeel import simulate
from evenkeel.control import InlineWorkers, Pipeline
from evenkeel.model.runtime import logs
from tests.house.parsed import parsed

ROOT = Path(ek.__file__).parent
KERNELS = Path(evenkeel_kernels.__file__).parent
LOGGERS = {
    "evenkeel.solve", "evenkeel.exact", "evenkeel.sweep", "evenkeel.frontier", "evenkeel.simulate",
    "evenkeel.size", "evenkeel.headroom", "evenkeel.parts",
    "evenkeel.control", "evenkeel.relaxation", "evenkeel.kernels",
}  # fmt: skip


@pytest.fixture
def cluster():
    """Six partitions on one of three nodes."""
    return ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, node_names=["a", "b", "c"]
    )


@pytest.fixture
def told(caplog):
    """The fields of what was logged, by logger; every record must have them, and a line as well."""
    caplog.set_level(logging.DEBUG, logger="evenkeel")

    def read():
        found = {}
        for record in caplog.records:
            assert record.evenkeel["event"] in record.getMessage()
            found.setdefault(record.name, []).append(record.evenkeel)
        assert found.keys() <= LOGGERS
        return found

    return read


def test_a_solve_tells_when_it_begins_and_why_it_ended(cluster, told):
    result = ek.solve(cluster, goals=ek.Goals(level=0.0))
    began, ended = told()["evenkeel.solve"]
    assert began == {
        "event": "solving", "method": "balance", "nodes": 3, "partitions": 6, "seed": 0,
    }  # fmt: skip
    assert ended["event"] == "solved"
    assert ended["stop_reason"] == result.stop_reason
    assert ended["moves"] == result.comparison.moves == 4
    assert ended["leader_changes"] == result.comparison.leader_changes
    assert ended["timings"] == result.timings
    assert ended["seconds"] >= sum(ended["timings"][lap] for lap in ("bounds", "balance", "audit"))


def test_an_exact_solve_tells_what_is_proven(cluster, told):
    result = ek.solve(cluster, "exact", goals=ek.Goals(level=0.0))
    began, ended = told()["evenkeel.exact"]
    assert (began["event"], ended["event"]) == ("proving", "proven")
    assert (ended["status"], ended["stop_reason"]) == ("optimal", "optimum")
    assert ended["stages"] == {one.name: (one.value, one.bound) for one in result.native.stages}


def test_a_sweep_tells_how_many_scenarios_fit(cluster, told):
    found = ek.sweep(cluster, ["node"])
    records = told()
    began, ended = records["evenkeel.sweep"]
    assert (began["event"], began["scenarios"]) == ("sweeping", 3)
    assert (ended["event"], ended["done"], ended["failed"]) == ("swept", 3, 0)
    assert (ended["fit"], ended["stop_reason"]) == (found.fits.sum(), "done")
    searched = sum(one["event"] == "solving" for one in records["evenkeel.solve"])
    assert len(records["evenkeel.solve"]) == 2 * searched
    assert 1 <= searched <= 4  # as it is, and without those nodes whose loss takes a search


def test_a_sweep_that_is_stopped_says_so(cluster, told):
    def stop(done, total):
        raise StopIteration

    ek.sweep(cluster, ["node"], callback=stop)
    ended = told()["evenkeel.sweep"][-1]
    assert (ended["done"], ended["stop_reason"]) == (1, "interrupted")


def test_what_fails_in_a_sweep_is_told_with_its_error(cluster, told, monkeypatch):
    def broken(*arguments, **named):
        raise ZeroDivisionError("of all things")

    scenario = ek.Changes(name="one", down=["a"], load_factor=2.0)
    monkeypatch.setattr("evenkeel.studies.scenario.changed", broken)
    monkeypatch.setattr("evenkeel.studies.sweep.result_of", lambda study, change: (
        broken() if change.name == "one" else None
    ))  # fmt: skip
    ek.sweep(cluster, [scenario])
    failed, ended = told()["evenkeel.sweep"][1:]
    assert failed == {"event": "failed", "error": "ZeroDivisionError('of all things')"}
    assert ended["failed"] == 1


def test_a_frontier_tells_its_points(cluster, told):
    found = ek.frontier(cluster, 3)
    began, ended = told()["evenkeel.frontier"]
    assert (began["event"], began["points"]) == ("searching", 3)
    assert ended["event"] == "found"
    assert ended["moves"] == [one.comparison.moves for one in found.results]


def test_a_simulation_tells_how_it_ended(cluster, told):
    scenario = simulate.Scenario("quiet", cluster, minutes=10.0)
    history = simulate.run(scenario)
    began, ended = told()["evenkeel.simulate"]
    assert began == {"event": "playing", "scenario": scenario.name, "method": "balance"}
    assert (ended["event"], ended["stop_reason"]) == ("played", "end")
    assert ended["moves"] == history.total("moves")


def test_a_pipeline_tells_when_it_begins_to_calculate(cluster, told):
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        pipeline.run(cluster)
    events = [one["event"] for one in told()["evenkeel.control"]]
    assert events.count("calculating") == events.count("calculated") > 0
    assert events.index("calculating") < events.index("calculated")


def test_nothing_shows_unless_a_program_listens():
    code = "import logging, evenkeel as ek; logging.getLogger('evenkeel.control').error('shown')"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert (ran.stdout, ran.stderr) == ("", "")


def test_every_logger_is_listed():
    """In the docstring that says what they tell."""
    named = set()
    for file in [*ROOT.rglob("*.py"), *KERNELS.rglob("*.py")]:
        for node in ast.walk(parsed(file.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            # to write a call out takes longer than to look at its last name
            if getattr(called, "attr", "") != "getLogger":
                continue
            if ast.unparse(called) == "logging.getLogger":
                named.add(ast.unparse(node.args[0]).strip("'"))
    assert named - {"ROOT"} == LOGGERS
    assert all(f"``{name}``" in logs.__doc__ for name in LOGGERS)


@pytest.mark.parametrize(
    "room", ["model", "measure", "strategies", "planning", "control", "simulate"]
)
def test_the_library_prints_nothing(room):
    for file in (ROOT / room).rglob("*.py"):
        for node in ast.walk(parsed(file.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            assert getattr(called, "id", "") != "print", file
