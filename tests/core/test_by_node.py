"""The lists of each node's replicas, against plain ones."""

import numpy as np
import pytest

from evenkeel_kernels.core.by_node import by_node, coprime, scattered_by_node
from tests.naive.core.by_node import ascending, scattered
from tests.support.random_problems import random_problem

pytestmark = pytest.mark.small


def rows(listed):
    first, member = listed
    return [member[first[n] : first[n + 1]].tolist() for n in range(len(first) - 1)]


def drawn():
    random = np.random.default_rng(5)
    yield np.zeros(0, np.int32), 3
    yield np.full(4, -1, np.int32), 2
    yield np.zeros(0, np.int32), 0
    for size in range(1, 30):
        yield random.integers(-1, 4, size).astype(np.int32), 4
        yield np.zeros(size, np.int32), 1


def test_lists_of_nodes_are_the_plain_ones():
    for node, nodes in drawn():
        assert rows(by_node(node, nodes)) == ascending(node, nodes)


def test_scattered_lists_are_the_plain_ones():
    for seed in range(40):
        _, problem, state = random_problem(seed)
        first, owner = problem.partitions.first, problem.partitions.owner
        leads = [k - first[p] == state.leader[p] for k, p in enumerate(owner)]
        nodes = state.load.shape[1]
        listed = scattered_by_node(problem.partitions, state.node, state.leader, nodes)
        assert rows(listed) == scattered(state.node, leads, nodes)


def test_coprime_is_what_it_says():
    found = {(a, b) for a in range(1, 9) for b in range(9) if coprime(a, b)}
    assert found == {(a, b) for a in range(1, 9) for b in range(9) if np.gcd(a, b) == 1}
