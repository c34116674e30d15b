"""Plans in the simulator: handed out in their order, and planned anew when something happens."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.simulate.controllers.plan import changes_of
from evenkeel.simulate.engine.stage import Controller
from tests.planning.test_plan import drawn, full, swapped
from tests.simulate.test_play import cluster_of

SLOW = simulate.Environment(snapshot=1.0, overhead=0.5, lead_gap=0.0)


class Watched(Controller):
    """Notes the world and what was made while another controller decides."""

    def __init__(self, inner):
        self.inner = inner
        self.made, self.fullest = [], 0.0
        self.world = None

    def wake(self, stage):
        self.world = stage.world
        again = self.inner.wake(stage)
        room = np.maximum(stage.world.capacity, 1e-300)
        self.fullest = max(self.fullest, float((stage.world.load / room).max()))
        return again

    def ended(self, number, change, made):
        self.made.append((change, made))
        self.inner.ended(number, change, made)


def test_a_plan_is_carried_out_in_its_order():
    cluster = full()
    plan = ek.plan(cluster, swapped(cluster))
    watched = Watched(simulate.planned(plan))
    simulate.play(cluster, [], watched, until=3600.0, environment=SLOW)
    assert watched.world.node[:, 0].tolist() == [1, 1, 0, 0]
    assert watched.fullest <= 1.0
    assert all(made for _, made in watched.made)
    assert len(watched.made) == len(np.unique(plan.change))
    assert len(watched.inner.plans) == 1
    assert watched.inner.plans[0] is plan


def test_without_a_plan_the_same_swap_overfills_a_node():
    cluster = full()

    def trade(*_):
        return swapped(cluster)

    watched = Watched(simulate.planned(trade))
    simulate.play(cluster, [], watched, until=3600.0, environment=SLOW)
    assert watched.fullest <= 1.0
    bare = simulate.play(cluster, [], trade, until=600.0, every=0.1, environment=SLOW)
    carried = simulate.play(cluster, [], simulate.planned(trade), until=600.0, every=0.1,
                            environment=SLOW)  # fmt: skip
    assert bare.total("moves") == 4
    assert carried.total("moves") == 5


def test_play_takes_a_plan_as_it_is():
    cluster = full()
    plan = ek.plan(cluster, swapped(cluster))
    history = simulate.play(cluster, [], plan, until=3600.0, environment=SLOW)
    assert history.total("moves") == plan.copies
    assert history.method == "plan"


@pytest.mark.parametrize("seed", range(12))
def test_what_each_change_waits_for_has_ended_when_it_begins(seed):
    _, plan = drawn(seed)
    changes, ahead = changes_of(plan, led=True)
    assert sum(len(change.add) for change in changes) == plan.copies
    assert len(changes) == len(np.unique(plan.change))
    done = set()
    for i in range(len(changes)):
        assert ahead[i] <= done, "changes come in an order that the arrows allow"
        done.add(i)


def test_a_node_that_dies_in_the_middle_has_the_rest_planned_anew():
    cluster = cluster_of(nodes=9, partitions=30)
    carrying = simulate.planned("balance", throttle=ek.Throttle(node_in=1, copies=2))
    watched = Watched(carrying)
    dies = simulate.At(20.0, ek.Changes(down="n4"), dead_after=30.0)
    history = simulate.play(
        cluster, [simulate.At(5.0, ek.Changes(down="n1"), dead_after=5.0), dies], watched,
        until=3600.0, environment=SLOW,
    )  # fmt: skip
    table = history.table()
    assert table["under"][-1] == 0
    assert table["under"].max() > 0
    assert len(carrying.plans) > 1
    assert not np.isin(watched.world.node, [1, 4]).any()
    assert all(plan.check().ok for plan in carrying.plans)


def test_news_may_be_late():
    cluster = cluster_of(nodes=9, partitions=30)
    late = simulate.Environment(snapshot=1.0, overhead=0.5, gossip_delay=40.0, lead_gap=0.0)
    dies = [
        simulate.At(at, ek.Changes(down=f"n{n}"), dead_after=5.0) for n, at in ((1, 5.0), (4, 60.0))
    ]
    carrying = simulate.planned("balance", throttle=ek.Throttle(node_in=1))
    history = simulate.play(cluster, dies, carrying, until=7200.0, environment=late)
    assert history.table()["under"][-1] == 0


def test_no_more_copies_at_once_than_the_throttle_lets():
    cluster = cluster_of(nodes=9, partitions=30)
    wide = simulate.Environment(snapshot=1.0, overhead=0.5, receive=50, send=50, lead_gap=0.0)

    class Counting(Watched):
        most = 0

        def wake(self, stage):
            flying = stage.traffic.under_way()
            self.most = max(self.most, sum(len(change.add) for change in flying))
            return super().wake(stage)

    counts = {}
    for copies in (1, 3):
        watched = Counting(simulate.planned("balance", throttle=ek.Throttle(copies=copies)))
        down = simulate.At(5.0, ek.Changes(down="n1"), dead_after=5.0)
        simulate.play(cluster, [down], watched, until=3600.0, environment=wide, every=30.0)
        counts[copies] = watched.most
    assert counts[1] == 1
    assert 1 < counts[3] <= 3


def test_the_same_seed_carries_out_the_same():
    cluster = cluster_of(nodes=9, partitions=30)
    down = simulate.At(5.0, ek.Changes(down="n1"), dead_after=5.0)
    once, again = (
        simulate.play(cluster, [down], simulate.planned("balance"), until=1200.0, environment=SLOW)
        for _ in range(2)
    )
    for name, column in once.table().items():
        assert np.array_equal(column, again.table()[name], equal_nan=True), name


def test_bad_input_is_refused():
    with pytest.raises(ek.InvalidInput, match="unknown method"):
        simulate.planned("magic")
    with pytest.raises(ek.InvalidInput, match="unknown protocol"):
        simulate.planned("balance", protocol="magic")
