"""Two placements compared: what moved, what had to, and what it weighs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.measure.compare import compare, forced_moves
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from tests.naive.measure import audit as naive
from tests.support.clusters import clusters
from tests.support.instances import as_cluster, golden

REFERENCE = {
    "small": {
        "moves": 62, "forced": 69, "voluntary": -7, "leader_changes": 98,
        "load_moved": [0.03543363732955552, 0.04602201676882393, 0.043407520048560855],
    },
    "medium": {
        "moves": 687, "forced": 539, "voluntary": 148, "leader_changes": 959,
        "load_moved": [0.04234197349597169, 0.04551997439876952, 0.04310099268779812],
    },
}  # fmt: skip
"""What the reference scorer says of the shuffle below."""


def shuffled(placement, nodes):
    """Send every seventh second replica elsewhere, exchange every fifth leader, drop one."""
    table = placement.nodes.copy()
    table[::7, 1] = (table[::7, 1] + 3) % nodes
    table[::5, :2] = table[::5, 1::-1]
    table[3, 2] = -1
    return placement.replaced(table.ravel(), placement.leader)


@pytest.mark.parametrize("name", REFERENCE)
def test_figures_are_those_of_the_reference_scorer(name):
    cluster = as_cluster(golden(name))
    after = shuffled(cluster.placement, len(cluster.nodes))
    found = compare(cluster, cluster.placement, after)
    for figure, expected in REFERENCE[name].items():
        assert getattr(found, figure) == pytest.approx(expected, rel=1e-12), figure


@st.composite
def pairs(draw):
    """A cluster and two placements of it, whose rows may differ in length."""
    cluster = draw(clusters())
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes, partitions = len(cluster.nodes), len(cluster.partitions)
    first = cluster.placement.first
    if draw(st.booleans()):
        first = np.concatenate([[0], np.cumsum(random.integers(0, 4, partitions))])
    replicas = int(first[-1])
    node = random.integers(-1, nodes, replicas).astype(np.int32)
    leader = np.where(np.diff(first) > 0, random.integers(-1, 1, partitions), -1).astype(np.int16)
    zeros = np.zeros(replicas, np.uint8)
    return cluster, Placement(first.astype(np.int64), node, zeros, zeros.astype(np.uint16), leader)


@pytest.mark.small
@given(pairs())
def test_a_move_is_a_node_that_joins_and_a_leadership_change_is_none(case):
    cluster, after = case
    found = compare(cluster, cluster.placement, after)
    before_rows, after_rows = naive.rows_of(cluster.placement), naive.rows_of(after)
    into, out, changes, removed, forced = [], [], 0, 0, 0
    for p, (old, new) in enumerate(zip(before_rows, after_rows, strict=True)):
        was, is_now = {n for _, n, _ in old}, {n for _, n, _ in new}
        came = [n for _, n, _ in new if n not in was]
        left = [n for _, n, _ in old if n not in is_now]
        into += came
        out += left
        removed += max(0, len(old) - len(new))
        leaders = [
            next((n for slot, n, _ in row if slot == placement.leader[p]), -1)
            for row, placement in ((old, cluster.placement), (new, after))
        ]
        if leaders[0] >= 0 and cluster.nodes.alive[leaders[0]]:
            changes += leaders[0] != leaders[1]
        staying = sum(bool(cluster.nodes.may_hold[n]) for _, n, _ in old)
        forced += max(0, int(cluster.partitions.replicas[p]) - staying)
    assert (found.moves, found.leader_changes, found.removed) == (len(into), changes, removed)
    assert found.forced == forced == forced_moves(PlacementCounts(cluster, cluster.placement))
    assert found.voluntary == len(into) - forced
    assert found.node_in.tolist() == [into.count(n) for n in range(len(cluster.nodes))]
    assert found.node_out.tolist() == [out.count(n) for n in range(len(cluster.nodes))]
    assert (found.joined.sum(), found.left.sum()) == (len(into), len(out))


@pytest.mark.small
@given(clusters())
def test_nothing_moves_between_a_placement_and_itself(cluster):
    found = compare(cluster, cluster.placement, cluster.placement)
    assert (found.moves, found.leader_changes, found.removed) == (0, 0, 0)
    assert not found.load_moved.any()
    assert found.bytes_moved == 0.0


def test_exchanging_the_slots_of_a_partition_moves_nothing_but_its_leader():
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[2.0]], leader_load=[[5.0]], bytes="d0", placement=[[0, 1]]
    )
    turned = cluster.placement.replaced(np.array([1, 0], np.int32), cluster.placement.leader)
    found = compare(cluster, cluster.placement, turned)
    assert (found.moves, found.leader_changes, found.bytes_moved) == (0, 1, 0.0)
    moved = cluster.placement.replaced(np.array([2, 1], np.int32), cluster.placement.leader)
    found = compare(cluster, cluster.placement, moved)
    assert (found.moves, found.bytes_moved) == (1, 5.0)
    assert found.load_moved.tolist() == [5.0 / 7.0]
