"""The shortlist of best fit: the nodes that a scan of all would take, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.node_scan import FAR, Scan, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.best_fit import FEWEST, best_fit, draw_up, largest_first
from tests.naive.core.shortlist import least_used, uses
from tests.support.small_problems import Small, level_case

seeds = st.integers(0, 2**32 - 1)


@no_alloc
def list_nodes(problem: Problem, state: State, scan: Scan, replicas: int) -> None:
    draw_up(problem, state, scan, replicas)


def drawn(seed: int) -> Small:
    """Draw a cluster just expanded, half of the time one of equal weights or without a placement.

    Nodes may be all alike, far apart in size, closed, unable to lead, or barred from partitions.
    """
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(5, 25))
    small = level_case(seed, int(rng.integers(20, 120)), nodes, float(rng.choice([0.02, 0.2, 3.0])))
    if rng.random() < 0.5:
        small.load[:] = small.load.mean(axis=0)
        small.extra[:] = small.extra.mean(axis=0)
    if rng.random() < 0.5:
        small.placement = [[-1] * 3 for _ in small.placement]
        small.leader = [-1] * len(small.placement)
    if rng.random() < 0.5:
        small.watermark[:] *= rng.choice([0.2, 1.0, 3.0], (nodes, 1))
    if rng.random() < 0.5:
        small.capacity[:] = small.watermark * 1.1
    if rng.random() < 0.5:
        small.allowed = rng.random((len(small.placement), nodes)) < 0.7
    small.leads = [one and rng.random() < 0.8 for one in small.leads]
    small.per_zone = int(rng.integers(1, 4))
    return small


def placed(small: Small, seed: int, listed: int) -> tuple[int, State, Scan]:
    """Place what is drawn, with place for so many nodes on the shortlist."""
    rng = np.random.default_rng(seed)
    problem, state = small.arrays()
    replicas = len(state.node)
    chosen = (rng.random(replicas) < rng.choice([0.5, 1.0])) & problem.partitions.movable
    order, forced = largest_first(problem, chosen), rng.random(replicas) < 0.5
    led = state.leader >= 0
    most = rng.choice([5.0, np.inf], len(small.zone))
    scan = new_scan(problem, np.full(2, 0.05), most, listed)
    ceiling = float(rng.choice([0.5, 1.0, FAR / 2]))
    moved = best_fit(problem, state, scan, order, forced, led, ceiling, 0, len(order))
    return moved, state, scan


@pytest.mark.small
@given(seeds, st.integers(1, 25))
def test_replicas_go_where_a_scan_of_all_nodes_sends_them(seed: int, listed: int) -> None:
    small = drawn(seed)
    moved, state, scan = placed(small, seed, min(listed, len(small.zone)))
    expected, same, _ = placed(small, seed, 0)
    assert moved == expected
    assert state.node.tolist() == same.node.tolist()
    assert state.leader.tolist() == same.leader.tolist()
    assert state.load.tolist() == same.load.tolist()
    count, shortlist = int(scan.listed.length[0]), scan.listed
    at = shortlist.node[:count]
    assert shortlist.load[:, :count].tolist() == state.load[:, at].tolist()
    if count > 0:
        others = np.delete(np.array(uses(state, scan, small.accepts)), at)
        assert others.min(initial=np.inf) >= shortlist.beyond[0]


@pytest.mark.small
@given(seeds, st.integers(1, 25))
def test_the_list_holds_the_nodes_that_are_used_least(seed: int, listed: int) -> None:
    small = drawn(seed)
    problem, state = small.arrays()
    scan = new_scan(problem, np.zeros(2), None, min(listed, len(small.zone)))
    list_nodes(problem, state, scan, FEWEST - 1)
    assert scan.listed.length[0] == 0
    list_nodes(problem, state, scan, FEWEST)
    found = scan.listed.node[: scan.listed.length[0]].tolist()
    expected, beyond = least_used(state, scan, small.accepts, float(scan.listed.beyond[0]))
    assert found == expected
    assert len(found) <= len(scan.listed.node)
    assert beyond >= scan.listed.beyond[0]
    places = [found.index(n) if n in found else -1 for n in range(len(small.zone))]
    assert scan.listed.place.tolist() == places


def test_most_are_served_by_the_list_on_a_cluster_just_expanded() -> None:
    """The nodes that are new take nearly all: what no list would serve is looked for among all."""
    small = level_case(5, 4_000, 48, 0.05)
    problem, state = small.arrays()
    scan = new_scan(problem, np.zeros(2), None, 12)
    list_nodes(problem, state, scan, 1_000)
    new = {n for n in range(48) if state.replicas[n] == 0 and small.accepts[n]}
    assert new <= set(scan.listed.node[: scan.listed.length[0]].tolist())
    assert scan.listed.beyond[0] > 0.5
