"""Who leaves nodes that hold too many of a group: as by hand, and as many as are too many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.levelling.crowding import crowd_out, crowded_replicas
from tests.naive.levelling import crowding as naive
from tests.support.instances import as_cluster, generate


def crowded(seed):
    """Groups with limits on nodes, some of them broken, on nodes of several sizes."""
    rng = np.random.default_rng(seed)
    nodes, partitions, groups = rng.integers(1, 6), rng.integers(1, 13), rng.integers(1, 4)
    width = int(rng.integers(1, min(nodes, 3) + 1))
    rows = [rng.choice(nodes, width, replace=False).tolist() for _ in range(partitions)]
    load = rng.integers(0, 4, (partitions, int(rng.integers(1, 3)))).astype(float)
    strength = "soft" if rng.random() < 0.7 else "hard"
    return ek.Cluster.from_arrays(
        capacity=rng.choice([0.0, 4.0, 9.0, 40.0], (nodes, load.shape[1])), load=load,
        leader_load=load + rng.integers(0, 2, load.shape), placement=rows,
        leader=rng.integers(0, width, partitions), group=rng.integers(0, groups, partitions),
        group_names=[f"g{g}" for g in range(groups)],
        rules=[ek.Rule(spread={"node": (int(rng.integers(1, 4)), strength)}), ek.Rule()],
        group_rule=rng.integers(-1, 2, groups),
        flags=np.where(rng.random((partitions, width)) < 0.1, ek.Flag.PINNED, 0),
    )  # fmt: skip


@pytest.mark.small
@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1))
def test_who_leaves_a_crowded_node_is_chosen_as_by_hand(seed):
    cluster = crowded(seed)
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, np.ones(len(watermark)))
    state, parts = compile_state(cluster, problem), problem.partitions
    nodes, was = len(cluster.nodes), state.leader.copy()
    forced = np.random.default_rng(seed).random(len(state.node)) < 0.1
    first, member = scattered_by_node(parts, state.node, was, nodes)
    found = crowded_replicas(problem, state, forced, was, first, member)

    def leads(k):
        p = parts.owner[k]
        return bool(was[p] == k - parts.first[p])

    def size(k):
        load = (parts.leader_load if leads(k) else parts.voter_load)[parts.owner[k]]
        scale = 1.0 / np.maximum(watermark[:, state.node[k]], 1e-30)
        return sum((load * scale).tolist()) if parts.movable[k] else None

    group, rule = cluster.partitions.group, cluster.partitions.group_rule.tolist()
    most = [cluster.rules[0].spread["node"][0] if one == 0 else 99 for one in rule]
    lists = [member[first[n] : first[n + 1]].tolist() for n in range(nodes)]
    cells = [
        (most[g], [k for k in held if group[parts.owner[k]] == g])
        for held in lists
        for g in range(len(rule))
    ]
    by_hand = forced.copy()
    naive.crowd_out(cells, by_hand, leads, size)
    assert found.tolist() == by_hand.tolist()


@pytest.mark.small
def test_a_node_that_holds_nothing_has_nobody_to_give_away():
    cluster = crowded(1)
    problem = compile_problem(cluster, np.array(cluster.nodes.watermark.T, order="C"), np.ones(1))
    state, nothing = compile_state(cluster, problem), np.zeros(len(cluster.nodes) + 1, np.int64)
    leaving = np.zeros(len(state.node), np.bool_)
    groups = len(problem.rules.group_limit_first) - 1
    scale = np.ones_like(problem.nodes.watermark)
    crowd_out(
        problem, state, scale, state.leader, nothing, np.zeros(0, np.int64), np.full(groups, -1),
        np.zeros(len(leaving), np.int64), leaving,
    )  # fmt: skip
    assert not leaving.any()


@pytest.mark.parametrize("seed", range(3))
def test_groups_and_loads_are_levelled_together_with_about_the_fewest_moves(seed):
    """A cluster just expanded, on which groups, and then loads, took a tenth of moves more."""
    cluster = as_cluster(generate(P=2_000, N=60, Z=6, seed=seed))
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, groups=0.2))
    assert result.status in ("optimal", "feasible")
    assert result.comparison.moves <= 1.05 * result.bounds.moves_level
