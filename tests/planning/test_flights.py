"""Copies in flight of which a part has arrived: that part is not copied again."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag


def in_flight():
    """A plan of one copy of 10 bytes at 2 bytes per second, and its cluster on the way."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 3, load=[[10.0]], placement=[[0, 1]], dimensions=("disk",),
        bytes="disk",
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([0, 2], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=2.0))
    flags = np.array([[0, Flag.INCOMING]], np.uint16)
    return plan, cluster.replace(placement=[[0, 2]], flags=flags)


@pytest.mark.parametrize(("share", "bytes_left"), [(0.0, 10.0), (0.6, 4.0), (1.0, 0.0)])
def test_what_has_arrived_is_not_copied_again(share, bytes_left):
    plan, seen = in_flight()
    arrived = {("p0", "n2"): share}
    rest = plan.resume(seen, arrived=arrived)
    assert rest.bytes == pytest.approx(bytes_left)
    assert rest.makespan == pytest.approx(bytes_left / 2.0)
    assert rest.check().ok
    assert rest.check().end == "target"
    assert plan.merge(plan.target, observed=seen, arrived=arrived).bytes == rest.bytes
    progress = plan.progress(seen, arrived=arrived)
    assert progress.left == pytest.approx(rest.makespan)
    assert progress.bytes_done == pytest.approx(10.0 - bytes_left)


def test_nobody_has_to_say():
    plan, seen = in_flight()
    assert plan.resume(seen).bytes == 10.0
    assert plan.progress(seen).left == 5.0


def test_what_arrives_elsewhere_than_it_is_to_be_counts_as_nothing():
    plan, seen = in_flight()
    onwards = plan.merge(plan.cluster.placement, observed=seen, arrived={("p0", "n2"): 0.5})
    assert onwards.bytes == 0.0
    assert [one.node for one in onwards.cancelled] == ["n2"]


def test_every_problem_is_told():
    plan, seen = in_flight()
    with pytest.raises(ek.InvalidInput) as error:
        plan.resume(seen, arrived={("p0", "n2"): 1.5, ("p0", "n1"): 0.5, ("p9", "n2"): 0.1})
    assert len(error.value.faults) == 3
