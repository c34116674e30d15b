"""Sizing: against every number of nodes of small clusters, and what is said of what cannot be."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from tests.judge.case import build
from tests.judge.clusters import draw
from tests.studies.growth.oracle import drawn, least_price
from tests.support.effort import mostly_long

LOSSES = ("", "zone", "node", "node pairs")


def two_tier(**changes):
    """Nine nodes in three zones, 60 partitions with two replicas, leaders heavier in cpu."""
    arguments = {
        "dimensions": ("cpu", "disk"), "capacity": np.full((9, 2), 100.0),
        "domains": {"zone": [*"aaabbbccc"]}, "load": np.full((60, 2), [1.0, 2.0]),
        "leader_load": np.full((60, 2), [3.0, 2.0]),
        "placement": [[0, 3, 6], [1, 4, 7]] * 30, "spread": {"zone": 1},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(arguments | changes))


@pytest.mark.parametrize("seed", mostly_long(range(100), range(10)))
def test_prices_are_those_of_trying_every_number_of_nodes(seed):
    small = drawn(seed)
    survive = LOSSES[seed % 4] if seed % 8 < 6 else ""
    found = ek.size(small.cluster, 1.0, small.node_types, survive=survive or ())
    if found.status == "not found":
        assert "no rule keeps" in found.message
        assert found.price_at_least <= least_price(small, survive)
    else:
        assert found.price == found.price_at_least == pytest.approx(least_price(small, survive))
        assert found.status == ("infeasible" if np.isinf(found.price) else "optimal")


@pytest.mark.parametrize("seed", mostly_long(range(60), range(12)))
def test_prices_where_partitions_share_a_limit(seed):
    """As above, with at most so many replicas of all partitions per node, or per zone."""
    tier = "zone" if seed % 3 == 2 else "node"
    small = drawn(seed)._replace(together=(tier, 1 + seed % 4))
    survive = LOSSES[seed // 4 % 3]
    found = ek.size(small.cluster, 1.0, small.node_types, survive=survive or ())
    if found.status == "not found":
        assert found.price_at_least <= least_price(small, survive)
    else:
        assert found.price == pytest.approx(least_price(small, survive))
        assert found.price_at_least <= found.price
        assert found.status in ("infeasible" if np.isinf(found.price) else ("optimal", "feasible"))


@pytest.mark.parametrize("seed", mostly_long(range(60), range(12)))
@pytest.mark.filterwarnings("error")
def test_nodes_without_limits_and_prices_of_any_size(seed):
    """As above, with capacities of which some have no end."""
    rng, small, survive = np.random.default_rng(seed), drawn(seed), LOSSES[seed // 3 % 4]
    prices = [float(rng.choice([0.0, 5e-324, 1e-300, 1.0, 1.5, 1e300])) for _ in small.types]
    endless = 10**6

    def some_endless(capacity):
        return [endless if rng.random() < 0.3 else most for most in capacity]

    small = small._replace(
        capacity=[*map(some_endless, small.capacity)],
        types=[
            (some_endless(one[0]), price, *one[2:])
            for one, price in zip(small.types, prices, strict=True)
        ],
    )
    capacity = small.cluster.nodes.capacity
    cluster = small.cluster.replace(capacity=np.where(capacity == endless, np.inf, capacity))
    types = [
        replace(one, capacity=np.where(one.capacity == endless, np.inf, one.capacity))
        for one in small.node_types
    ]
    found = ek.size(cluster, 1.0, types, survive=survive or ())
    if found.status == "not found":
        assert found.price_at_least <= least_price(small, survive)
    else:
        assert found.price == found.price_at_least == pytest.approx(least_price(small, survive))
        assert "nan" not in str(found)


@pytest.mark.filterwarnings("error")
def test_an_endless_node_does_not_outlive_its_own_loss():
    cluster = ek.Cluster.from_arrays(capacity=[[np.inf], [4.0]], load=[[3.0]] * 2, replicas=1)
    kind = ek.NodeType("t", [np.inf], price=1e300)
    found = ek.size(cluster, 1.0, [kind], survive="node")
    assert (found.status, found.count, found.price) == ("optimal", 1, 1e300)


@pytest.mark.parametrize("seed", mostly_long(range(0, 24, 3), (0, 18)))
def test_what_is_handed_out_is_placed_and_survives(seed):
    small = drawn(seed)
    found = ek.size(small.cluster, 1.0, small.node_types, survive="zone")
    if found.cluster is None:
        return
    assert found.cluster.placement.nodes.tolist() == found.result.placement.nodes.tolist()
    again = ek.solve(found.cluster, goals=ek.Goals(level=None))
    assert (again.audit.hard, again.comparison.moves) == (0, 0)
    assert found.losses.fits.all()
    assert len(found.cluster.nodes) == len(small.capacity) + found.count


def test_utilisation_is_kept_now_and_after_a_loss():
    four = two_tier(capacity=np.full((12, 2), 100.0), domains={"zone": [*"aaabbbcccddd"]})
    found = ek.size(four, {"cpu": 1.4, "disk": 2.2}, survive="zone", at_most=0.6, after_loss=0.9)
    placed = found.cluster
    level = ek.solve(placed, goals=ek.Goals(level=None)).levelness
    assert level.most.max() <= 0.6 + 1e-9
    assert found.losses.fullest.max() <= 1.0 + 1e-9  # of nine tenths
    assert found.status == "optimal"
    load = placed.partitions.load
    assert load.leader[0].tolist() == pytest.approx([4.2, 4.4])


def test_a_price_decides_between_types():
    cluster = two_tier()
    big = ek.NodeType("big", {"cpu": 300.0, "disk": 300.0}, price=2.5)
    small = ek.NodeType("small", {"cpu": 100.0, "disk": 100.0})
    dear = ek.NodeType("big", {"cpu": 300.0, "disk": 300.0}, price=3.5)
    assert {one.type for one in ek.size(cluster, 5.0, [big, small]).nodes} == {"big"}
    assert {one.type for one in ek.size(cluster, 5.0, [dear, small]).nodes} == {"small"}


def test_a_group_may_grow_by_itself_and_partitions_may_join():
    cluster = two_tier(group=["orders"] * 20 + ["logs"] * 40)
    forecast = ek.Forecast(
        load=1.0, groups={"orders": {"disk": 10.0}},
        partitions={"load": [[50.0, 1.0]] * 3, "replicas": 3},
    )  # fmt: skip
    found = ek.size(cluster, forecast)
    loads = found.cluster.partitions.load.voter
    assert loads[:20, 1].tolist() == [20.0] * 20
    assert loads[20:60, 1].tolist() == [2.0] * 40
    assert loads[60:].tolist() == [[50.0, 1.0]] * 3
    assert found.result.audit.hard == 0


def test_a_whole_cluster_may_be_the_forecast():
    cluster = two_tier()
    doubled = cluster.replace(load=np.full((60, 2), 9.0), leader_load=np.full((60, 2), 9.0))
    assert ek.size(cluster, doubled).price == ek.size(doubled).price


def test_goals_are_met_too():
    found = ek.size(two_tier(), 2.0, goals=ek.Goals(level=0.05))
    assert found.result.status in ("optimal", "feasible")
    assert found.result.levelness.ratio.max() <= 1.06


def test_a_cluster_without_nodes_is_built_from_nothing():
    none = ek.Cluster.from_arrays(
        capacity=np.zeros((0, 1)), load=[[1.0]] * 10, replicas=2, domains={"zone": []},
        spread={"zone": 1},
    )  # fmt: skip
    found = ek.size(none, node_types=[ek.NodeType("n", [4.0], places=["a", "b", "c"])])
    assert (found.status, found.count) == ("optimal", 5)
    with pytest.raises(ek.InvalidInput, match="no node of the cluster accepts"):
        ek.size(none)


def test_a_cluster_without_partitions_needs_nothing():
    empty = ek.Cluster.from_arrays(capacity=[[1.0]], load=np.zeros((0, 1)))
    found = ek.size(empty, 3.0, survive="node")
    assert (found.status, found.price, found.gap) == ("optimal", 0.0, 0.0)


def test_dead_nodes_count_for_nothing():
    cluster = two_tier()
    assert ek.size(cluster).count == 0
    assert ek.size(cluster.down("n0", "n1", "n3"), 2.5).count == ek.size(cluster, 2.5).count + 3


def test_what_no_number_of_nodes_can_do_is_named():
    cluster = two_tier()
    few = ek.size(cluster, 9.0, [ek.NodeType("x", [100.0, 100.0], places=["a"], most=2)])
    assert few.status == "infeasible"
    assert {one.measure for one in few.shortages} <= {"cpu", "disk"}
    lost = ek.size(cluster, survive="zone")
    assert "after the loss of zone a, 3 replicas of a partition need" in lost.message
    large = ek.size(cluster, {"cpu": 40.0})
    assert "large replicas" in large.message
    assert large.status == "infeasible"
    required = cluster.replace(rules=[ek.Rule(require=["zone=a"], spread={"zone": 3})])
    tags = ek.size(required, 5.0, [ek.NodeType("x", [100.0, 100.0], places=["b"])])
    assert tags.status == "infeasible"
    assert tags.shortages[0].where in ("zone a", "zone=a")


def test_rules_that_forbid_too_little_are_named():
    cluster = two_tier(spread={}, replicas=2, placement=None)
    found = ek.size(cluster, survive="zone")
    if found.status == "not found":
        assert "no rule keeps their replicas apart" in found.message


def test_hosts_are_counted_up():
    cluster = two_tier(
        domains={"zone": [*"aaabbbccc"], "host": [f"h{i}" for i in range(9)]},
        spread={"zone": 1, "host": 1},
    )
    found = ek.size(cluster, 3.0)
    assert found.status == "optimal"
    row = found.cluster.topology.label[1]
    assert len(np.unique(row)) == len(row)


def grouped(partitions, most=1, tier="node", **more):
    """One group of small partitions, of which each domain takes so many replicas."""
    return ek.Cluster.from_arrays(
        capacity=[[100.0]] * 3, load=[[1.0]] * partitions,
        placement=[[p % 3] for p in range(partitions)], rules=[ek.Rule(spread={tier: most})],
        group=np.zeros(partitions, int), group_rule=[0], rule=np.full(partitions, -1), **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("partitions", "most", "status", "count"),
    [(12, None, "optimal", 9), (300, None, "optimal", 297), (7, 4, "optimal", 4),
     (7, 3, "infeasible", 0)],
)  # fmt: skip
def test_what_a_limit_of_a_group_takes_is_not_limited_by_what_loads_take(
    partitions, most, status, count
):
    """One node per partition, though the loads fit on one."""
    types = [
        ek.NodeType("cheap", [100.0], price=1.0, most=most),
        ek.NodeType("dear", [100.0], price=10.0, most=0 if most else None),
    ]
    found = ek.size(grouped(partitions), node_types=types)
    assert (found.status, found.count) == (status, count)
    assert found.price == (count if count else np.inf)
    assert all(one.type == "cheap" for one in found.nodes)
    held = 3 if count else 3 + most
    assert f"group g0 need places, of which its limit on each node leaves {held}" in str(
        found.shortages[0].reason
    )


def test_a_group_outgrows_its_domains_whatever_is_bought():
    cluster = grouped(9, most=3, tier="zone", domains={"zone": [*"abc"]})
    assert ek.size(cluster).count == 0
    found = ek.size(cluster, survive="zone")
    assert found.status == "infeasible"
    assert found.shortages[0].full == "limit on each zone"
    reach = ek.headroom(cluster, survive="zone").reaches[-1]
    assert (reach.at_most, reach.full) == (0.0, "limit on each zone")


def test_without_recovery_only_leaders_need_room():
    cluster = two_tier(leader_load=np.full((60, 2), [5.0, 2.0]))
    kept = ek.size(cluster, 1.8, survive="zone", recover=False)
    assert kept.status in ("optimal", "feasible")
    assert ek.size(cluster, 1.8, survive="zone").status == "infeasible"


def test_everything_wrong_is_told_at_once():
    cluster = two_tier()
    bad = ek.NodeType("", {"cpu": -1.0, "gpu": 2.0}, price=-1.0, most=-2, places=[{"row": "r"}])
    with pytest.raises(ek.InvalidInput) as error:
        ek.size(
            cluster, {"gpu": 2.0}, [bad, "big"], survive="row", at_most=1.5, after_loss=0.5,
            goals=ek.Goals(level={"gpu": 0.1}), time_limit=0.0, seed=-1, recover="no",
        )  # fmt: skip
    paths = " ".join(fault.path for fault in error.value.faults)
    for path in ("forecast", "node_types[0].name", "node_types[0].price", "node_types[0].most",
                 "node_types[0].capacity", "node_types[0].places", "node_types[1]", "survive[0]",
                 "at_most", "goals.level", "time_limit", "seed", "recover"):  # fmt: skip
        assert path in paths, path


def test_the_same_question_has_the_same_answer():
    small = drawn(7)
    first, again = (ek.size(small.cluster, 1.5, small.node_types) for _ in range(2))
    assert first.nodes == again.nodes
    assert str(first) == str(again)


def test_new_nodes_stand_where_rules_count_them():
    """Racks hold several nodes each, and rules count by rack, which is not the widest tier."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 8, load=[[1.0]] * 30, replicas=2, spread={"rack": 1},
        domains={"zone": [*"aaaabbbb"], "rack": [*"rrsstuut"]},
        placement=[[0, 4]] * 15 + [[2, 5]] * 15,
    )  # fmt: skip
    found = ek.size(cluster, 1.5)
    assert found.status in ("optimal", "feasible") and len(found.cluster.nodes) > 8
    assert (found.cluster.topology.label >= 0).all()
    nowhere = ek.NodeType("n", [10.0], places=["a", {"zone": "b", "rack": "t"}])
    with pytest.raises(ek.InvalidInput, match="must name a domain of rack") as error:
        ek.size(cluster, 1.5, [nowhere])
    assert [one.path for one in error.value.faults] == ["node_types[0].places"]


@pytest.mark.parametrize("more", [{"floor": 0.5}, {"move_cost": {"*": 2.0}}, {"worth": "1%"}])
@pytest.mark.parametrize("seed", [6, 8])
def test_goals_that_the_exact_method_lacks_are_no_error(more, seed):
    cluster, *_ = build(draw("plain", seed))
    found = ek.size(cluster, goals=ek.Goals(level=0.05, **more), shrink=True)
    assert 0.0 <= found.price_at_least <= found.price
