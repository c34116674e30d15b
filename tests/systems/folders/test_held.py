"""Settings of a system that a run holds: whoever goes on gives them back as they were at first."""

import json
import shutil

import pytest

import evenkeel as ek
from evenkeel.cli import main
from tests.support.effort import mostly_long
from tests.support.systems.worlds import WORLDS, ends

HELD = ["elasticsearch", "cockroach", "longhorn"]


def settings(world):
    """What runs may hold, as the system has it now."""
    state = world.system.state
    volumes = {
        one["metadata"]["name"]: one["spec"]["replicaAutoBalance"]
        for one in state.get("items", ())
        if one["kind"] == "Volume"
    }
    return state.get("settings"), state.get("setting"), volumes


@pytest.fixture(params=mostly_long(HELD, ["cockroach"]))
def stopped(request, tmp_path):
    """A world, its plan and folder, and what was set before its run was stopped in the middle."""
    world = WORLDS[request.param](tmp_path)
    state = world.system.state
    for one in state.get("items", ()):
        if one["kind"] == "Volume":
            one["spec"]["replicaAutoBalance"] = "best-effort"
    world.system.state = state
    before = settings(world)
    plan = world.plan()
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    world.system.state = world.system.state | {"breaks": 5}
    run = world.run(folder)
    assert run.returncode == 1
    assert settings(world) != before
    return world, plan, folder, before, run


def look(world, folder):
    """Take a dump into a folder as a run does that orders nothing."""
    assert world.run(folder, "--dry-run").returncode in (0, 3)


def resumed(folder, rest, *more):
    return main(["resume", str(folder / "plan.json"), str(folder / "dump"), "-o", str(rest), *more])


def test_the_rest_gives_back_what_was_there_at_first(stopped, capsys):
    world, plan, folder, before, _ = stopped
    look(world, folder)
    rest = folder.parent / "rest"
    assert resumed(folder, rest) == 0
    assert f"the run of {rest} gives it back at its end" in capsys.readouterr().err
    done = world.run(rest)
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan)
    assert settings(world) == before
    assert not (rest / "held").exists()


def test_a_plan_made_afresh_from_what_it_saw_gives_it_back_too(stopped):
    world, _, folder, before, _ = stopped
    look(world, folder)
    fresh = folder.parent / "fresh"
    main(["plan", str(folder / "dump"), "--level", "0", "-o", str(fresh), "-q"])
    done = world.run(fresh)
    assert done.returncode == 0, done.stderr
    assert settings(world) == before


def test_the_rest_in_the_place_of_the_plan_gives_it_back(stopped):
    world, plan, folder, before, _ = stopped
    look(world, folder)
    assert resumed(folder, folder, "--force", "-q") == 0
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert (world.seen(), settings(world)) == (ends(plan), before)


def test_who_tries_the_way_back_and_then_goes_on_gives_it_back(stopped):
    world, plan, folder, before, _ = stopped
    look(world, folder / "undo")
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert (world.seen(), settings(world)) == (ends(plan), before)


def test_who_stops_is_told_what_is_held_and_how_to_give_it_back(stopped):
    world, _, folder, before, run = stopped
    assert f"`evenkeel run {folder} --release` at once" in run.stderr
    assert "still" in run.stderr
    done = world.run(folder, "--release")
    assert done.returncode == 0
    assert "still" not in done.stderr
    assert settings(world) == before


def test_a_folder_that_still_holds_something_is_not_replaced(stopped):
    world, plan, folder, before, _ = stopped
    with pytest.raises(ek.InvalidInput, match=r"still holds a setting.*run\.sh --release"):
        ek.write_plan_folder(plan, folder, overwrite=True)
    assert world.run(folder, "--release").returncode == 0
    assert settings(world) == before
    ek.write_plan_folder(plan, folder, overwrite=True)


@pytest.mark.parametrize("name", mostly_long(["elasticsearch", "cockroach"], ["cockroach"]))
def test_what_is_off_already_is_told(name, tmp_path):
    world = WORLDS[name](tmp_path)
    own = {"persistent": {"cluster.routing.rebalance.enable": "none"}, "transient": {}}
    known = {"settings": own} if name == "elasticsearch" else {"setting": "off"}
    world.system.state = world.system.state | known
    done = world.run(ek.write_plan_folder(world.plan(), world.system.folder / "move"))
    assert done.returncode == 0
    assert done.stderr.count("already, and will be so at the end") == 1
    assert {key: world.system.state[key] for key in known} == known


def test_a_ring_on_its_way_goes_to_all_before_the_rest(tmp_path):
    world = WORLDS["swift"](tmp_path)
    plan = world.plan()
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    world.system.state = world.system.state | {"breaks": 3}
    assert world.run(folder).returncode == 1
    assert world.system.state["there"] != world.system.state["replicated"]
    rest = ek.write_plan_folder(plan, folder.parent / "rest", after=folder)
    shutil.rmtree(folder)
    done = world.run(rest)
    assert done.returncode == 0, done.stderr
    assert world.seen() == ends(plan)
    assert json.loads((rest / "state.json").read_text())["done"] == len(plan.waves)
