"""The replicas of each node, plainly: sorted, or gone round by a stride."""

from math import gcd


def ascending(node, n_nodes):
    """Return each node's replicas by index."""
    return [[k for k, n in enumerate(node) if n == at] for at in range(n_nodes)]


def scattered(node, leads, n_nodes):
    """Return each node's replicas, gone round from a place of its own; who ``leads`` comes last."""
    found = []
    for n, row in enumerate(ascending(node, n_nodes)):
        size = len(row)
        stride = max(1, int(0.6180339887498949 * size))
        while gcd(stride, size) != 1:
            stride -= 1
        turned = [row[(n + i * stride) % size] for i in range(size)]
        following = [k for k in turned if not leads[k]]
        found.append(following + [k for k in turned if leads[k]])
    return found
