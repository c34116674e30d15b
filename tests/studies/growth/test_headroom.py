"""Headroom: the proven factor against CP-SAT, what is reached against it, and what is told."""

import numpy as np
import pytest

import evenkeel as ek
from tests.studies.growth.oracle import drawn, survives
from tests.support.effort import mostly_long

SCALE = 240  # capacities are multiplied by it, so that loads at many factors are whole numbers


@pytest.mark.parametrize("seed", mostly_long(range(100), range(8)))
def test_what_is_reached_fits_and_nothing_beyond_what_is_proven_does(seed):
    small = drawn(seed)
    survive = ("", "node")[seed % 2]
    found = ek.headroom(small.cluster, survive=survive or (), grows=["all"], precision=0.05)
    found = found.reach("all", survive)
    scaled = [[SCALE * room for room in row] for row in small.capacity]

    def fits(factor):
        """Whether loads times a factor fit, by CP-SAT: loads down to whole numbers."""
        load = [[int(SCALE * factor * one) for one in row] for row in small.load]
        return survives(small._replace(load=load), scaled, small.zone, survive)

    assert found.at_least <= found.at_most * (1.0 + 1e-9)
    if found.at_least > 0.0:
        assert fits(found.at_least * (1.0 - 1e-9))
    if 0.0 < found.at_most < np.inf:
        assert not fits(found.at_most * 1.01 + 2.0 / SCALE)


@pytest.fixture(scope="module")
def zones():
    """Four zones, three replicas of a partition in three of them; disks are the tighter."""
    return ek.Cluster.from_arrays(
        dimensions=("cpu", "disk"), capacity=np.full((12, 2), 100.0), replicas=3,
        domains={"zone": [*"aaabbbcccddd"]}, load=np.full((60, 2), [1.0, 2.0]),
        placement=[[0, 3, 6], [1, 4, 7]] * 30, spread={"zone": 1},
    )  # fmt: skip


def test_dimensions_and_losses_have_factors_of_their_own(zones):
    found = ek.headroom(zones, survive=["zone", "node"], precision=0.05)
    assert len(found.reaches) == 9
    assert found.reach("disk").at_most == pytest.approx(1200 / 360)
    assert found.reach("cpu").at_most == pytest.approx(1200 / 180)
    assert found.reach("all").full == "disk"
    assert found.reach("disk", "zone").at_most == pytest.approx(900 / 360)
    assert found.reach("all", "node").at_most < found.reach("all").at_most
    for one in found.reaches:
        assert 0.85 * one.at_most <= one.at_least <= one.at_most
    assert [one.loss for one in found.losses[:4]] == [f"loss of zone {z}" for z in "abcd"]
    assert str(found).splitlines()[0].split() == [
        "grows", "loses", "at", "least", "at", "most", "then", "full"
    ]  # fmt: skip


def test_a_zone_that_rules_fill_is_named(zones):
    three = zones.down("zone=d").replace(
        capacity=np.repeat([[60.0, 60.0], [100.0, 100.0]], [3, 9], axis=0)
    )
    found = ek.headroom(three, survive="zone")
    now = found.reach("disk")
    assert (now.full, now.where) == ("disk", "zone a")
    assert now.at_most == pytest.approx(180 / 120, rel=0.01)
    lost = found.reach("all", "zone")
    assert (lost.at_most, lost.full) == (0.0, "domains of zone")
    assert {one.domain: one.at_most for one in found.domains if one.dimension == "disk"}[
        "zone a"
    ] == pytest.approx(now.at_most)


def test_shares_shrink_it(zones):
    usual = ek.headroom(zones, grows=["disk"]).reach("disk").at_most
    half = ek.headroom(zones, grows=["disk"], at_most=0.5).reach("disk")
    assert half.at_most == pytest.approx(usual / 2)
    after = ek.headroom(zones, grows=["disk"], survive="zone", at_most=0.6, after_loss=0.7)
    assert after.reach("disk", "zone").at_most == pytest.approx(min(0.6 * 4, 0.7 * 3) * 300 / 360)


def test_a_cluster_that_is_too_full_has_a_factor_below_one():
    full = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 10, replicas=1)
    found = ek.headroom(full).reach()
    assert found.at_least == pytest.approx(found.at_most) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("capacity", "load"), [([[np.inf]], [[1.0]]), ([[4.0]], np.zeros((0, 1))), ([[4.0]], [[0.0]])]
)
def test_what_nothing_limits_is_without_end(capacity, load):
    cluster = ek.Cluster.from_arrays(capacity=capacity, load=load, replicas=1)
    found = ek.headroom(cluster).reach()
    assert (found.at_least, found.at_most, found.full) == (np.inf, np.inf, "")


def test_a_cluster_without_nodes_holds_nothing():
    none = ek.Cluster.from_arrays(capacity=np.zeros((0, 1)), load=[[1.0]], replicas=1)
    assert ek.headroom(none).reach().at_most == 0.0


def test_everything_wrong_is_told_at_once(zones):
    with pytest.raises(ek.InvalidInput) as error:
        ek.headroom(zones, survive=["row"], grows=["gpu"], precision=2.0, at_most={"gpu": 0.5})
    paths = [fault.path for fault in error.value.faults]
    assert paths == ["survive[0]", "at_most['gpu']", "grows[0]", "precision"]
    with pytest.raises(ek.InvalidInput, match="was not asked"):
        ek.headroom(zones, grows=["cpu"]).reach("disk")
