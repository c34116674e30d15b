"""Leaders within numbers: as many chains as a flow of another library, and each kernel's twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.graph.python import min_cost_flow

import evenkeel as ek
from evenkeel.measure.group_goals import LeadCells
from evenkeel.methods.leaders.flow import Arcs, Places, flow_within, lead_flow
from evenkeel.methods.shared.stopping import Clock
from evenkeel.simulate.generators import expansion
from evenkeel_kernels.leaders import fewest_changes as kernel
from tests.naive.leaders import fewest_changes as naive

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int) -> tuple[Arcs, np.ndarray]:
    """Up to 40 partitions on up to 8 nodes, a voter twice on a node now and then, and numbers."""
    rng = np.random.default_rng(seed)
    partitions, nodes = int(rng.integers(1, 40)), int(rng.integers(1, 9))
    rows = []
    for _ in range(partitions):
        size = int(rng.integers(1, min(nodes, 4) + 1))
        twice = rng.random() < 0.1
        rows.append(np.sort(rng.choice(nodes, size, replace=bool(twice))))
    p = np.repeat(np.arange(partitions), [len(row) for row in rows])
    first = np.searchsorted(p, np.arange(partitions + 1))
    leads = np.zeros(len(p), bool)
    for q in np.flatnonzero(rng.random(partitions) < 0.9).tolist():
        leads[first[q] if rng.random() < 0.7 else rng.integers(first[q], first[q + 1])] = True
    most = rng.integers(0, max(2, int(2.2 * partitions / nodes) + 1), nodes)
    node = np.concatenate(rows).astype(np.int64)
    return Arcs(np.arange(len(p)), p, node, leads, partitions), most


def placed(arcs: Arcs, most: np.ndarray, seed: int) -> Places:
    """Places on nodes alone, or with those of groups within them, which ask for some numbers."""
    if seed % 2:
        return Places.on_nodes(arcs, most)
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, arcs.count)[arcs.p]
    key, which = np.unique(group * len(most) + arcs.node, return_inverse=True)
    group, node = np.divmod(key, len(most))
    least = np.where(rng.random(len(key)) < 0.3, rng.integers(0, 3, len(key)), 0)
    cells = LeadCells(group, node, 0 * key, least, least + rng.integers(0, 9, len(key)), which)
    return Places.on_nodes(arcs, most, cells)


def least_changes(arcs: Arcs, places: Places) -> int | None:
    """The same by OR-Tools' flow; None where some partition finds no leader."""
    flow, last = min_cost_flow.SimpleMinCostFlow(), len(places.most) - 1
    supply = np.append(np.ones(arcs.count, int), np.zeros(last + 1, int))
    for p, v, leads in zip(arcs.p.tolist(), places.of.tolist(), arcs.leads.tolist(), strict=True):
        flow.add_arc_with_capacity_and_unit_cost(p, arcs.count + v, 1, int(not leads))
    for v, around in enumerate(places.around[:-1].tolist()):
        least, most = int(places.least[v]), int(places.most[v])
        ends = arcs.count + v, arcs.count + around
        flow.add_arc_with_capacity_and_unit_cost(*ends, most - least, 0)
        supply[list(ends)] += [-least, least]
    supply[-1] -= arcs.count
    for v, amount in enumerate(supply.tolist()):
        flow.set_node_supply(v, amount)
    return flow.optimal_cost() if flow.solve() == flow.OPTIMAL else None


@settings(max_examples=400, deadline=None)
@given(SEEDS)
def test_no_flow_changes_fewer_leaders(seed: int) -> None:
    arcs, most = drawn(seed)
    places = placed(arcs, most, seed)
    flow, least = flow_within(arcs, places, Clock()), least_changes(arcs, places)
    assert arcs.p[flow.taken].tolist() == list(range(arcs.count))
    assert (kernel.excess(flow) > 0) == (least is None)
    if least is not None:
        counts = np.array(naive.led(flow))
        np.add.at(counts, places.around[:-1], counts[:-1] * (places.around[:-1] < len(counts) - 1))
        inside = (places.least <= counts) & (counts <= places.most)
        assert inside[:-1].all()
        assert int((~arcs.leads[flow.taken]).sum()) == least


@settings(max_examples=120, deadline=None)
@given(SEEDS)
def test_kernels_do_what_their_twins_do(seed: int) -> None:
    arcs, most = drawn(seed)
    flow = lead_flow(arcs, placed(arcs, most, seed))
    places = range(len(flow.most))
    kernel.begin_flow(flow)
    assert flow.taken.tolist() == naive.begin(flow)
    for _ in range(3 * arcs.count):
        assert kernel.excess(flow) == naive.above(flow)
        assert flow.surplus.tolist() == naive.surplus(flow)
        assert flow.leading.led.tolist() == naive.led(flow)
        if naive.above(flow) == 0:
            break
        price, far = flow.price.copy(), naive.distances(flow)
        end = naive.nearest_end(flow, far)
        assert kernel.measure_chains(flow) == np.isfinite(end)
        if np.isinf(end):
            break
        assert (flow.price - price).tolist() == [min(one, end) for one in far]
        assert min(cost for v in places for _, cost in naive.hops(flow, v)) >= 0
        while True:
            far = naive.distances(flow, free_only=True)
            end = naive.nearest_end(flow, far)
            assert kernel.rank_places(flow) == np.isfinite(end)
            if np.isinf(end):
                break
            rank = [one if one <= end else np.inf for one in far]
            assert [r if r < kernel.FAR else np.inf for r in flow.distance.tolist()] == rank
            ranks = flow.distance.tolist()
            before = naive.above(flow)
            kernel.follow_chains(flow)
            assert naive.above(flow) < before
            many = naive.surplus(flow)
            assert not any(naive.is_open(flow, ranks, v) for v in places if many[v] > 0)


def test_a_large_flow_is_looked_at_between_rounds() -> None:
    cluster = expansion(partitions=2_000, nodes=40, zones=5)
    reports = []
    result = ek.solve(cluster, "leaders", callback=reports.append)
    flows = [one for one in reports if one.phase == "leaders"]
    assert len(flows) > 1
    assert [one.work for one in flows] == sorted(one.work for one in flows)
    assert result.native.ratio >= result.native.bound > 0.0


@pytest.mark.parametrize("most", [[0, 9], [1, 2]])
def test_who_may_not_lead_hands_all_on(most: list[int]) -> None:
    p = np.repeat(np.arange(3), 2)
    leads = np.tile([True, False], 3)
    arcs = Arcs(np.arange(6), p, np.tile([0, 1], 3), leads, 3)
    flow = flow_within(arcs, Places.on_nodes(arcs, np.array(most)), Clock())
    assert kernel.excess(flow) == 0
    assert np.bincount(arcs.node[flow.taken], minlength=2).tolist() == [
        3 - min(most[1], 3),
        min(most[1], 3),
    ]
