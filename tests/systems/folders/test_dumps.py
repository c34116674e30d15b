"""The dumps that runs take say all that a plan was made from, so that a resume reads it."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from tests.support.systems.worlds import WORLDS


def dumped(world, plan):
    """What is read of the dump of a run that broke off at once; a resume goes on from it."""
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    world.system.state = world.system.state | {"breaks": 1}
    assert world.run(folder).returncode == 1
    told = ["resume", str(folder / "plan.json"), str(folder / "dump"), "-q"]
    assert main([*told, "-o", str(world.system.folder / "rest")]) == 0
    return ek.read(folder / "dump")


def assert_as_binding(cluster, other):
    """Assert that two clusters are bound by the same rules."""
    assert cluster.rules == other.rules
    for name in ("replicas", "voters", "min_active", "rule"):
        ours, theirs = (getattr(one.partitions, name) for one in (cluster, other))
        assert np.array_equal(ours, theirs), name


@pytest.mark.parametrize("old", [False, True])
def test_zones_of_cockroach(tmp_path, old):
    world = WORLDS["cockroach"](tmp_path)
    world.system.state = world.system.state | {"old": old}
    plan = world.plan()
    assert plan.cluster.partitions.replicas.tolist() == [4] * 9
    assert plan.cluster.partitions.voters.tolist() == [3] * 9
    bound = np.bincount(plan.cluster.partitions.rule + 1, minlength=2)
    assert {*bound.tolist()} >= {1, 8}  # a system range, and those of the bank
    assert_as_binding(dumped(world, plan), plan.cluster)


def test_what_nobody_could_read_of_zones_stops_no_guard(tmp_path):
    world = WORLDS["cockroach"](tmp_path)
    folder = ek.write_plan_folder(world.plan(), world.system.folder / "move")
    zones = {"TABLE t": "ALTER TABLE t CONFIGURE ZONE USING what_comes_next = 3"}
    world.system.state = world.system.state | {"zones": zones}
    done = world.run(folder)
    assert done.returncode == 0, done.stderr


def test_configurations_of_helix(tmp_path):
    world = WORLDS["helix"](tmp_path, zones=("a", "b", "a", "b"))
    plan = world.plan()
    (rule,) = plan.cluster.rules
    assert rule.spread == {"zone": 1}
    assert plan.cluster.dimensions == ("DISK",)
    seen = dumped(world, plan)
    assert_as_binding(seen, plan.cluster)
    assert seen.dimensions == ("DISK",)
    assert np.array_equal(seen.nodes.capacity, plan.cluster.nodes.capacity)
    assert np.array_equal(seen.topology.domain, plan.cluster.topology.domain)


def test_an_instance_of_helix_that_joins_in_another_zone_stops_it(tmp_path):
    world = WORLDS["helix"](tmp_path, nodes=("h1", "h2"), zones=("a", "b"))
    cluster = world.read().add_nodes([[1000.0]], names=["h3"], domains={"zone": ["a"]})
    folder = ek.write_plan_folder(world.plan(cluster), world.system.folder / "move")
    state = world.system.state
    config = state["configs"]["instances"]["h1"]
    joined = config | {"id": "h3", "simpleFields": {"DOMAIN": "zone=c,instance=h3"}}
    state["configs"]["instances"]["h3"] = joined
    world.system.state = state | {"instances": ["h1", "h2", "h3"]}
    stopped = world.run(folder)
    assert stopped.returncode == 3
    assert "h3: is in zone c, where the plan has it in a" in stopped.stderr
