"""Folders of all systems that have worlds, carried out, broken off, killed, and undone."""

import fcntl
import json
import re
import signal
import subprocess
import time

import pytest

import evenkeel as ek
from evenkeel.cli import main
from tests.support.effort import mostly_long
from tests.support.systems.worlds import WORLDS, ends

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]


@pytest.fixture(params=mostly_long(WORLDS, ["cockroach"]))
def world(request, tmp_path):
    return WORLDS[request.param](tmp_path)


@pytest.fixture
def planned(world):
    plan = world.plan()
    assert len(plan.waves) > 1
    assert plan.check().ok
    return plan, ek.write_plan_folder(plan, world.system.folder / "move")


def held_settings(world):
    state = world.system.state
    return state.get("settings"), state.get("setting")


def test_the_way_back_of_what_was_never_run_changes_nothing(planned, world):
    _, folder = planned
    before, settings = world.seen(), held_settings(world)
    done = world.run(folder / "undo")
    assert done.returncode == 0, done.stderr
    assert "there is nothing to take back" in done.stderr
    assert (world.seen(), held_settings(world)) == (before, settings)


@pytest.mark.parametrize("name", mostly_long(WORLDS, {*WORLDS} - {"helix"}))
def test_it_is_carried_out_and_undone(name, tmp_path):
    world = WORLDS[name](tmp_path)
    plan = world.plan()
    assert len(plan.waves) > 1
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    told = (folder / "undo" / "README.md").read_text()
    ways_back = json.loads((folder / "undo" / "waves.json").read_text())["waves"]
    assert f"in {len(ways_back)} wave" in told
    assert f"- **{len(ways_back)}**: " in told
    assert [len(one.read_text().splitlines()) for one in folder.rglob("*.sh")] == [2, 2]
    before, settings = world.seen(), held_settings(world)
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan) != before
    assert held_settings(world) == settings
    assert not {"held", "running"} & {file.name for file in folder.iterdir()}
    calls = len(world.system.calls)
    again = world.run(folder)
    assert again.returncode == 0, again.stderr
    assert len(world.system.calls) == calls
    back = world.run(folder / "undo")
    assert back.returncode == 0, back.stderr
    assert world.seen() == before
    assert held_settings(world) == settings


@pytest.mark.parametrize("wanted", [1, 3])
def test_longhorn_keeps_the_number_of_replicas_that_a_plan_asks_for(wanted, tmp_path):
    """The stand-in deletes no replica of a volume that lists fewer than it wants."""
    world = WORLDS["longhorn"](tmp_path, count=2)
    before = world.seen()
    asked = world.read().apply(ek.Changes(replicas={"pvc-0": wanted}))
    folder = ek.write_plan_folder(world.plan(asked), world.system.folder / "move")

    def numbers():
        items = world.system.state["items"]
        return [one["spec"]["numberOfReplicas"] for one in items if one["kind"] == "Volume"]

    for run, number in ((folder, wanted), (folder / "undo", 2)):
        done = world.run(run)
        assert done.returncode == 0, done.stderr
        assert numbers() == [number, 2]
        assert {name: len(nodes) for name, nodes in world.seen().items()} == {
            "pvc-0": number, "pvc-1": 2,
        }  # fmt: skip
    assert world.seen() == before


def test_its_script_calls_the_command_that_is_installed(tmp_path):
    world = WORLDS["swift"](tmp_path, parts=4)
    plan = world.plan()
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    done = world.run(folder, EVENKEEL=str(world.system.bin / "evenkeel-alone"))
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan)


@pytest.mark.parametrize("call", mostly_long([1, 2, 3, 5, 8], [3]))
def test_it_goes_on_where_it_stopped(world, planned, call):
    plan, folder = planned
    settings = held_settings(world)
    world.system.state = world.system.state | {"breaks": call}
    assert world.run(folder).returncode == 1
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan)
    assert held_settings(world) == settings


@pytest.mark.parametrize("call", mostly_long([2, 6], [2]))
def test_what_broke_off_is_undone_from_there(world, planned, call):
    before, settings = world.seen(), held_settings(world)
    _, folder = planned
    world.system.state = world.system.state | {"breaks": call}
    assert world.run(folder).returncode == 1
    back = world.run(folder / "undo")
    if back.returncode == 3:
        assert world.seen() != before
        rest = folder.parent / "back"
        undo = folder / "undo"
        told = ["resume", str(undo / "plan.json"), str(undo / "dump"), "-o", str(rest), "-q"]
        assert main(told) == 0
        world.run(undo, "--release")
        back = world.run(rest)
    assert back.returncode == 0, back.stderr
    assert world.seen() == before
    assert held_settings(world) == settings


@pytest.mark.parametrize("sent", mostly_long(SIGNALS, SIGNALS[:1]))
def test_it_goes_on_after_it_was_ended_by_a_signal(world, planned, sent):
    plan, folder = planned
    settings = held_settings(world)
    alone = world.environment | {"EVENKEEL": str(world.system.bin / "evenkeel-alone")}
    running = subprocess.Popen(
        ["/bin/sh", folder / "run.sh"], env=world.system.environment(**alone),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    while len(world.system.calls) < 2 and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(sent)
    told = running.communicate(timeout=120)[1]
    if sent == signal.SIGKILL:
        assert running.returncode == -sent
    else:
        assert running.returncode == 128 + sent
        assert f"`evenkeel run {folder}` goes on from here".encode() in told
        assert not (folder / "running").exists()
        assert held_settings(world) == settings
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan)


@pytest.mark.parametrize("name", mostly_long(WORLDS, ["elasticsearch"]))
def test_what_has_begun_as_a_signal_comes_ends_first(name, tmp_path, monkeypatch, capsys):
    """The signal comes before the run holds the process that it has started."""
    world = WORLDS[name](tmp_path)
    folder = ek.write_plan_folder(world.plan(), world.system.folder / "move")
    settings = held_settings(world)
    begun = []

    class Begun(subprocess.Popen):
        def __init__(self, *words, **more):
            assert all(one.returncode is not None for one in begun)
            begun.append(self)
            super().__init__(*words, **more)
            if len(world.system.calls) == 1 and not sent:
                sent.append(signal.SIGTERM)
                signal.raise_signal(signal.SIGTERM)

    sent = []
    for key, value in world.system.environment(**world.environment).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(subprocess, "Popen", Begun)
    assert main(["run", str(folder)]) == 128 + signal.SIGTERM
    assert sent
    assert all(one.returncode is not None for one in begun)
    assert "goes on from here" in capsys.readouterr().err
    assert held_settings(world) == settings


def test_a_signal_that_is_ignored_does_not_end_it(tmp_path):
    world = WORLDS["cockroach"](tmp_path)
    plan = world.plan()
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    alone = world.environment | {"EVENKEEL": str(world.system.bin / "evenkeel-alone")}
    running = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" HUP; exec sh "$0"', folder / "run.sh"],
        env=world.system.environment(**alone), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while len(world.system.calls) < 2 and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGHUP)
    running.communicate(timeout=120)
    assert running.returncode == 0
    assert world.seen() == ends(plan)


def test_its_page_says_what_is_done(planned):
    plan, folder = planned
    page = (folder / "README.md").read_text()
    assert f"{plan.copies:,} replicas are copied" in page
    assert not re.search(r"\| (nan|inf)", page)
    assert json.loads((folder / "waves.json").read_text())["format"] == plan.cluster.native_format


@pytest.mark.parametrize("name", mostly_long(["elasticsearch", "cockroach"], ["cockroach"]))
def test_what_is_held_is_given_back_on_demand(tmp_path, name):
    world = WORLDS[name](tmp_path)
    folder = ek.write_plan_folder(world.plan(), world.system.folder / "move")
    settings = held_settings(world)
    world.system.state = world.system.state | {"breaks": 5}
    assert world.run(folder).returncode == 1
    assert held_settings(world) != settings
    assert world.run(folder, "--release").returncode == 0
    assert held_settings(world) == settings
    assert world.run(folder, "something").returncode == 2
    assert world.run(folder, "--until", "0").returncode == 2
    assert world.run(folder, PAUSE="soon").returncode == 2


def test_it_pauses_after_a_wave_and_shows_what_is_left(world, planned):
    plan, folder = planned
    settings, before = held_settings(world), world.seen()
    shown = world.run(folder, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    waves = json.loads((folder / "waves.json").read_text())["waves"]
    assert shown.stdout.count("# wave ") == len(waves)
    assert (world.seen(), world.system.calls) == (before, [])
    paused = world.run(folder, "--until", "1")
    assert paused.returncode == 0, paused.stderr
    assert f"paused: wave 1 of {len(waves)} is done" in paused.stdout
    assert held_settings(world) == settings
    assert json.loads((folder / "state.json").read_text())["done"] == 1
    assert "# wave 1\n" not in world.run(folder, "--dry-run").stdout
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan)


def test_a_second_run_beside_it_does_not_begin(tmp_path):
    world = WORLDS["swift"](tmp_path, parts=4)
    folder = ek.write_plan_folder(world.plan(), world.system.folder / "move")
    with (folder / "running").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for way in (folder, folder / "undo"):
            done = world.run(way)
            assert done.returncode == 1
            assert "it runs already" in done.stderr
    assert world.system.calls == []
    assert world.run(folder).returncode == 0
