"""The lists of each node's replicas, against plain ones."""

import numpy as np
import pytest

from evenkeel_kernels.core.by_node import by_node, coprime, scattered_by_node
from tests.naive.core.by_node import ascending, scattered

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
        assert rows(scattered_by_node(node, nodes)) == scattered(node, nodes)


def test_coprime_is_what_it_says():
    found = {(a, b) for a in range(1, 9) for b in range(9) if coprime(a, b)}
    assert found == {(a, b) for a in range(1, 9) for b in range(9) if np.gcd(a, b) == 1}
