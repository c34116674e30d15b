"""Budgets bind while moves are chosen: repairs come first, the most endangered before others."""

from functools import cache

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.compare import Comparison
from tests.judge.clusters import draw
from tests.judge.trial import try_one
from tests.support.effort import mostly_long


def half_empty(replicas: int = 2) -> ek.Cluster:
    """The first half of the nodes holds everything, and one replica of each three is missing."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(6)[:replicas].tolist() for _ in range(120)]
    return ek.Cluster.from_arrays(
        capacity=[[200.0]] * 12, load=[[1.0]] * 120, leader_load=[[2.0]] * 120,
        placement=rows, replicas=3,
    )  # fmt: skip


@pytest.mark.parametrize("moves", [0, 10, 50])
def test_no_budget_takes_a_leader_away(moves: int) -> None:
    result = ek.solve(half_empty(), limits=ek.Limits(moves=moves))
    assert (result.placement.leader >= 0).all()
    assert result.comparison.moves == moves


def lost_nodes(dead: int) -> ek.Cluster:
    rng = np.random.default_rng(4)
    rows = [[z * 4 + int(rng.integers(4)) for z in rng.permutation(3)] for _ in range(120)]
    return ek.Cluster.from_arrays(
        capacity=[[200.0]] * 13, load=[[1.0]] * 120,
        domains={"zone": [*"aaaabbbbccccc"]},
        placement=rows, spread={"zone": 1}, alive=np.arange(13) >= dead,
    )  # fmt: skip


def test_leaders_are_mended_without_moves() -> None:
    cluster = lost_nodes(1)
    result = ek.solve(cluster, limits=ek.Limits(moves=0))
    assert result.audit.counts["leader"] == result.audit.counts["leaderless"] == 0


@pytest.mark.parametrize("node_in", [3, 4, 10])
def test_a_budget_per_node_is_filled_with_repairs(node_in: int) -> None:
    cluster = lost_nodes(1)
    lost = int((cluster.placement.node == 0).sum())
    free = ek.solve(cluster)
    assert free.audit.ok
    result = ek.solve(cluster, limits=ek.Limits(node_in=node_in))
    assert result.comparison.node_in.max() <= node_in
    assert result.audit.counts["spread"] == 0
    done = lost - result.audit.counts["on_dead"] - result.audit.counts["unassigned"]
    assert done == min(lost, 3 * node_in)


def test_the_most_endangered_are_mended_first() -> None:
    rows = [[0, 1, 2 + i % 4] for i in range(10)] + [[0, 2 + i % 4, 6 + i % 2] for i in range(60)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[200.0]] * 10, load=[[1.0]] * 10 + [[5.0]] * 60, placement=rows,
        alive=np.arange(10) >= 2, min_active=2,
    )  # fmt: skip
    result = ek.solve(cluster, limits=ek.Limits(moves=12))
    assert result.comparison.moves == 12
    assert result.audit.counts["min_active"] == 0


@pytest.mark.parametrize(
    "limits",
    [
        ek.Limits(partition_moves=1),
        ek.Limits(domain_in={"zone": 5}),
        ek.Limits(domain_out={"zone": 5}),
        ek.Limits(leader_changes=3),
        ek.Limits(node_out=2),
        ek.Limits(moves=7),
    ],
)
def test_every_budget_holds(limits: ek.Limits) -> None:
    rng = np.random.default_rng(8)
    rows = [[int(n) for n in rng.permutation(6)[:3]] for _ in range(90)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[200.0]] * 9, load=rng.lognormal(0, 0.5, (90, 1)), placement=rows,
        domains={"zone": [*"abcabcddd"]}, leader_load=rng.lognormal(0.5, 0.5, (90, 1)),
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.05), limits=limits)
    found, zone = result.comparison, np.array([*"abcabcddd"])
    joined, left = found.joined, found.left
    owner = cluster.placement.owner
    if limits.moves is not None:
        assert found.moves <= limits.moves
    if limits.partition_moves is not None:
        assert np.bincount(owner[joined]).max() <= limits.partition_moves
    if limits.leader_changes is not None:
        assert found.leader_changes <= limits.leader_changes
    if limits.node_out is not None:
        assert found.node_out.max() <= limits.node_out
    for z in "abcd":
        before = np.bincount(owner[zone[cluster.placement.node] == z], minlength=90)
        after = np.bincount(owner[zone[result.placement.node] == z], minlength=90)
        assert np.maximum(after - before, 0).sum() <= limits.domain_in.get("zone", 999)
        assert np.maximum(before - after, 0).sum() <= limits.domain_out.get("zone", 999)
    assert found.moves > 0
    assert left.sum() == joined.sum()


@pytest.mark.parametrize("seed", range(6))
def test_bytes_hold_where_replicas_weigh_more_once_they_lead_no_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = rng.uniform(1.0, 4.0, (40, 1))
    cluster = ek.Cluster.from_arrays(
        capacity=[[90.0]] * 6, load=load, leader_load=load * rng.choice([0.5, 2.0], (40, 1)),
        bytes="d0", placement=[[int(n) for n in rng.permutation(4)[:3]] for _ in range(40)],
    )  # fmt: skip
    for goals in (ek.Goals(level=0.05), ek.Goals(level=0.05, leaders=0.0)):
        result = ek.solve(cluster, goals=goals, limits=ek.Limits(bytes=30.0))
        assert 0 < result.comparison.bytes_moved <= 30.0
        assert result.comparison.moves > 0


def test_surplus_replicas_leave_by_whichever_nodes_may_let_them_go() -> None:
    """All of them would leave the fullest node, which may let go of one."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 60, load=[[1.0]] * 20, replicas=2,
        placement=[[1 + 2 * p, 0, 2 + 2 * p] for p in range(20)],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None), limits=ek.Limits(node_out=1))
    assert result.audit.counts["surplus"] == 0
    assert result.audit.hard == 0


def test_no_slot_is_filled_beside_a_surplus_replica_that_may_not_leave() -> None:
    """Two of the three that live do not vote, where one should; the third voter is lost."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 60, load=[[1.0]] * 20, replicas=3, voters=2, role=[0, 1, 1, 0] * 20,
        placement=[[3 * p % 59, (3 * p + 1) % 59, (3 * p + 2) % 59, 59] for p in range(20)],
        alive=[True] * 59 + [False],
    )  # fmt: skip
    goals = ek.Goals(level=None)
    held = ek.solve(cluster, goals=goals, limits=ek.Limits(node_out=0))
    assert held.audit.counts["surplus"] == 0
    assert not held.regressions
    assert ek.solve(cluster, goals=goals).audit.hard == 0


def test_a_leader_that_has_moved_hands_over_only_within_the_bytes() -> None:
    assert try_one(draw("anything", 611594)).findings == []


@pytest.mark.parametrize("limits", [{"moves": 0}, {"partition_moves": 0}, {"node_in": 0}])
@pytest.mark.parametrize(
    ("method", "partitions"), [("balance", 3), ("exact", 3), ("balance", 1_500)]
)
def test_a_second_replica_on_a_node_of_its_partition_is_no_move(method, partitions, limits):
    """A move is a node that joins a partition's set of nodes."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0 * partitions]] * 4, load=[[1.0]] * partitions, replicas=2,
        placement=[[p % 4, -1] for p in range(partitions)],
        rules=[ek.Rule(spread={"node": 2})], rule=[0] * partitions,
    )  # fmt: skip
    result = ek.solve(cluster, method, goals=ek.Goals(level=None), limits=ek.Limits(**limits))
    assert result.audit.ok
    assert len(result.unplaced) == 0
    assert result.comparison.moves == 0


def test_a_budget_of_moves_is_left_for_what_moves() -> None:
    """Half of what is missing stands by its partition; the budget is spent on the other half."""
    partitions = 400
    rows = [[p % 4, -1] if p % 2 else [-1, -1] for p in range(partitions)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[0.6 * partitions]] * 4, load=[[1.0]] * partitions, placement=rows,
        replicas=[2 if p % 2 else 1 for p in range(partitions)], min_active=1,
        rules=[ek.Rule(spread={"node": 2})], rule=[0] * partitions,
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None), limits=ek.Limits(moves=partitions // 2))
    assert result.comparison.moves <= partitions // 2
    assert result.audit.ok


@pytest.mark.parametrize("method", ["balance", "exact"])
def test_one_of_two_on_a_node_moves_and_the_node_is_not_left(method: str) -> None:
    """A replica leaves a node that its partition leaves."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 3, placement=[[0, 0]] * 3,
        rules=[ek.Rule(spread={"node": 2})], rule=[0] * 3,
    )  # fmt: skip
    result = ek.solve(cluster, method, goals=ek.Goals(level=None), limits=ek.Limits(node_out=0))
    assert result.audit.ok
    assert result.comparison.moves == 2
    assert result.comparison.node_out.max() == 0


def one_dead(seed: int) -> ek.Cluster:
    """Partitions of very different sizes on nine nodes, one of them dead."""
    rng = np.random.default_rng(seed)
    size = np.round(rng.lognormal(1.0, 1.2, 300), 2)
    return ek.Cluster.from_arrays(
        capacity=[[float(size.sum())]] * 9, load=size[:, None], dimensions=["disk"], bytes="disk",
        placement=[rng.permutation(9)[:3].tolist() for _ in range(300)], alive=np.arange(9) != 4,
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.1, 0.4, 0.9])
def test_a_budget_of_bytes_carries_as_many_repairs_as_it_can(share: float) -> None:
    cluster = one_dead(3)
    lost = cluster.placement.node == 4
    sizes = np.sort(cluster.partitions.load.voter[cluster.placement.owner[lost], 0])
    most = share * float(sizes.sum())
    result = ek.solve(cluster, limits=ek.Limits(bytes=most))
    mended = int(lost.sum()) - result.audit.counts["on_dead"]
    assert mended == int((np.cumsum(sizes) <= most).sum())
    assert result.comparison.bytes_moved <= most
    assert result.message.endswith(f"Used up: limits.bytes={most:,.0f}.")
    for one in result.unplaced:
        assert f"limits.bytes={most:,.0f}" in one.blocked
        assert "open to it by itself" not in one.blocked


def test_a_budget_of_bytes_goes_to_the_most_endangered_first() -> None:
    rows = [[0, 1, 2 + i % 4] for i in range(10)] + [[0, 2 + i % 4, 6 + i % 2] for i in range(60)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[200.0]] * 10, load=[[5.0]] * 10 + [[1.0]] * 60, placement=rows,
        alive=np.arange(10) >= 2, min_active=2, dimensions=["disk"], bytes="disk",
    )  # fmt: skip
    result = ek.solve(cluster, limits=ek.Limits(bytes=55.0))
    assert result.audit.counts["min_active"] == 0
    assert result.comparison.moves == 15


def test_a_budget_of_bytes_that_carries_all_changes_nothing() -> None:
    cluster = one_dead(5)
    free = ek.solve(cluster, limits=ek.Limits(moves=10**6))
    enough = ek.solve(cluster, limits=ek.Limits(bytes=1e12))
    assert (free.placement.node == enough.placement.node).all()


BY_NODE = [
    {"n6": 0, "n7": 2, "n2": 1},
    [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5],
    np.arange(12, dtype=np.uint8) % 4,
]


@pytest.mark.parametrize("given", BY_NODE, ids=["mapping", "list", "array"])
@pytest.mark.parametrize("name", ["node_in", "node_out"])
def test_a_budget_of_each_node_binds_that_node(name: str, given: object) -> None:
    cluster = half_empty()
    result = ek.solve(cluster, limits=ek.Limits(**{name: given}))
    if isinstance(given, dict):
        most = np.array([given.get(node, 2**31) for node in cluster.nodes.names])
    else:
        most = np.asarray(given, np.int64)
    spent = getattr(result.comparison, name)
    assert (spent <= most).all()
    assert spent.max() > most.min()


def test_a_budget_of_each_node_binds_the_exact_method_and_sessions() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 4, load=[[1.0]] * 8, placement=[[0]] * 8, replicas=1
    )
    budget = ek.Limits(node_in={"n1": 0, "n2": 1}, node_out=[5, 5, 5, 5])
    for result in (
        ek.solve(cluster, limits=budget),
        ek.solve(cluster, "exact", limits=budget),
        ek.Session(cluster).solve(limits=budget),
    ):
        assert result.comparison.node_in.tolist()[1:3] == [0, 1]
        assert result.method == "exact" or "limits.node_in of n1, n2" in result.message
    session = ek.Session(cluster)
    session.solve()
    session.apply(ek.Changes(down=["n0"]))
    lost = session.solve(goals=ek.Goals(level=None), limits=ek.Limits(node_in=(0, 0, 2, 1)))
    assert lost.comparison.node_in.tolist() == [0, 0, 2, 1]
    assert "limits.node_in of the node" in str(lost.unplaced[0])


def test_budgets_of_nodes_name_what_the_cluster_does_not_have() -> None:
    cluster = half_empty()
    for given, said in (
        ({"n99": 1}, "unknown node"),
        ([1, 2], "needs one number for each of 12 nodes"),
    ):
        with pytest.raises(ek.InvalidInput, match=said):
            ek.solve(cluster, limits=ek.Limits(node_out=given))
    with pytest.raises(ek.InvalidInput, match=r"limits\.node_in\[1\]"):
        ek.Limits(node_in=[1, -1])


def greedy(cluster: ek.Cluster, limits: ek.Limits, zone: np.ndarray, level: float) -> float:
    """Relieve the fullest node by the best single move, again and again; how full it is then."""
    owner, size = cluster.placement.owner, cluster.partitions.load.voter
    node, home, room = cluster.placement.node.copy(), cluster.placement.node, cluster.nodes.capacity
    load = fill(cluster, cluster.placement)
    mean = load.sum(0) / room.sum(0)
    moves, data, came, went = 0, 0.0, np.zeros(len(room)), np.zeros(len(room))
    most = {
        name: getattr(limits, name) or np.inf for name in ("moves", "bytes", "node_in", "node_out")
    }
    while True:
        high = load / room / mean
        here = int(high.max(1).argmax())
        best = (high[here].max() - 1e-12, 0, 0)
        for k in np.flatnonzero((node == here) & (home == here)).tolist():
            p = owner[k]
            spent = moves + 1 > most["moves"] or data + size[p, 0] > most["bytes"]
            if spent or went[here] + 1 > most["node_out"]:
                continue
            taken = np.zeros(zone.max() + 1, bool)
            mates = node[cluster.placement.first[p] : cluster.placement.first[p + 1]]
            taken[zone[mates[mates != here]]] = True
            after = ((load + size[p]) / room / mean).max(1)
            after[taken[zone] | (came + 1 > most["node_in"])] = np.inf
            after[((load + size[p]) > room).any(1)] = np.inf
            there = int(after.argmin())
            left = ((load[here] - size[p]) / room[here] / mean).max()
            best = min(best, (max(after[there], left), k, there))
        if high.max() <= 1.0 + level or best[0] == high[here].max() - 1e-12:
            return float(high.max())
        _, k, there = best
        load[here] -= size[owner[k]]
        load[there] += size[owner[k]]
        node[k], moves, data = there, moves + 1, data + size[owner[k], 0]
        came[there] += 1
        went[here] += 1


def fill(cluster: ek.Cluster, placement: ek.Placement) -> np.ndarray:
    """Add up the loads of each node, (N, D)."""
    load = np.zeros_like(cluster.nodes.capacity)
    np.add.at(load, placement.node, cluster.partitions.load.voter[placement.owner])
    return load


def highest(cluster: ek.Cluster, placement: ek.Placement) -> float:
    """Return how full the fullest node is, in units of the mean of its dimension."""
    load, room = fill(cluster, placement), cluster.nodes.capacity
    return float((load / room / (load.sum(0) / room.sum(0))).max())


@cache
def lopsided(seed: int) -> tuple[ek.Cluster, np.ndarray]:
    """Nodes of several sizes in zones, some much fuller than others, and large and small loads."""
    rng = np.random.default_rng(seed)
    nodes, dimensions, zones = int(rng.integers(9, 30)), 1 + seed % 3, 3
    zone, size = np.arange(nodes) % zones, rng.choice([1.0, 2.0, 4.0], nodes)
    load = np.exp(rng.normal(0.0, 0.3 if seed % 2 else 1.0, (8 * nodes, dimensions)))
    pull = size * np.exp(rng.normal(0.0, 1.0, nodes))
    rows = [
        [int(rng.choice(there, p=pull[there] / pull[there].sum())) for there in homes]
        for homes in [[np.flatnonzero(zone == z) for z in range(zones)]] * len(load)
    ]
    full = np.zeros((nodes, dimensions))
    np.add.at(full, np.ravel(rows), np.repeat(load, zones, axis=0))
    room = size[:, None] * (full / size[:, None]).max(0) / 0.95
    cluster = ek.Cluster.from_arrays(
        capacity=room, load=load, placement=rows, dimensions=("disk", "cpu", "net")[:dimensions],
        domains={"zone": [f"z{z}" for z in zone]}, spread={"zone": 1}, bytes="disk",
    )  # fmt: skip
    return cluster, zone


SHARES = (0.05, 0.1, 0.2, 0.4, 0.7)

RISES, WORSE = 1.02, 1.15
"""How much fuller the fullest node may be than with less of a budget, and than a greedy leaves it:
single moves, each the best, also find what is out of the reach of a few heights."""


@cache
def without_budget(seed: int) -> Comparison:
    """Return what levelling costs where nothing limits it."""
    return ek.solve(lopsided(seed)[0], goals=ek.Goals(level=0.1)).comparison


@pytest.mark.parametrize("seed", mostly_long(range(30), range(3)))
@pytest.mark.parametrize("budget", ["moves", "bytes", "node_in", "node_out", "two"])
def test_more_of_a_budget_never_leaves_the_fullest_node_fuller_and_a_greedy_does_no_better(
    seed: int, budget: str
) -> None:
    cluster, zone = lopsided(seed)
    goals = ek.Goals(level=0.1)
    free = without_budget(seed)
    before = highest(cluster, cluster.placement)
    for share in SHARES:
        moves, data = 1 + int(share * free.moves), share * free.bytes_moved
        limits = {
            "moves": ek.Limits(moves=moves),
            "bytes": ek.Limits(bytes=data),
            "node_in": ek.Limits(node_in=1 + int(8 * share)),
            "node_out": ek.Limits(node_out=1 + int(20 * share)),
            "two": ek.Limits(moves=moves, bytes=data),
        }[budget]
        result = ek.solve(cluster, goals=goals, limits=limits)
        now = highest(cluster, result.placement)
        assert now <= RISES * before
        assert result.status != "missed" or now <= WORSE * greedy(cluster, limits, zone, 0.1)
        assert "no move within" not in result.message
        before = min(before, now)
