"""What every node would carry if all were perfectly even: what scores are relative to.

All of it is in 32 bits, whole numbers and floats alike, as the original has it: sums over the
cluster that pass 2**31 come round to negative numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.waged.model import Model

MOST = 2**31 - 1
"""What Java's cast makes of infinity."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Of one run. D capacity keys, G groups.

    Parameters
    ----------
    capacity, weight : ndarray of int32, shape (D,)
        Of all nodes, and of all replicas.
    usage, usage_top : float
        Expected greatest usage of a node, by all replicas and by those in the top state.
    count : int
        Expected replicas of a node.
    group_count : ndarray of int64, shape (G,)
        Expected replicas of each group on a node, at least 1.
    scored : ndarray of int64, shape (S,)
        Keys that the usages are the greatest over.
    """

    capacity: NDArray[np.int32]
    weight: NDArray[np.int32]
    usage: float
    usage_top: float
    count: int
    group_count: NDArray[np.int64]
    scored: NDArray[np.int64]

    @property
    def left(self) -> NDArray[np.int32]:
        """Capacity that is left when all is placed, (D,) int32."""
        return self.capacity - self.weight


def estimate(
    model: Model, nodes: NDArray[np.int64], made: NDArray[np.int32], scored: NDArray[np.int64]
) -> Estimates:
    """Estimate what nodes will carry."""
    capacity = _wrapped(model.capacity[nodes].sum(axis=0, dtype=np.int64))
    replicas = made.sum(axis=1, dtype=np.int64)
    weight = _wrapped(_weighed(replicas, model.weight))
    top = _wrapped(_weighed(made[:, 0].astype(np.int64), model.weight))
    by_group = np.bincount(model.group, replicas, len(model.groups)).astype(np.int64)
    return Estimates(
        capacity=capacity,
        weight=weight,
        usage=_greatest_share(weight[scored], capacity[scored]),
        usage_top=_greatest_share(top[scored], capacity[scored]),
        count=int(_per_node(replicas.sum(), len(nodes))),
        group_count=np.maximum(_per_node(by_group, len(nodes)), 1),
        scored=scored,
    )


def scored_keys(model: Model, preferred: tuple[str, ...]) -> NDArray[np.int64]:
    """Choose the keys that usages are computed over."""
    if preferred and preferred[0] in model.keys:
        return np.array(sorted({model.keys.index(key) for key in preferred}), np.int64)
    return np.arange(len(model.keys))


def _wrapped(total: NDArray[np.int64]) -> NDArray[np.int32]:
    """Let a sum come round as 32 bits do."""
    return total.astype(np.int32)


def _weighed(replicas: NDArray[np.int64], weight: NDArray[np.int32]) -> NDArray[np.int64]:
    """Add up the weights of so many replicas of each partition, (D,)."""
    return np.array(
        [np.dot(replicas, weight[:, d].astype(np.int64)) for d in range(weight.shape[1])], np.int64
    )


def _greatest_share(weight: NDArray[np.int32], capacity: NDArray[np.int32]) -> float:
    """Divide in 32-bit floats; a key without capacity counts as full, and no key at all too."""
    if len(capacity) == 0:
        return 1.0
    whole = np.where(capacity == 0, 1, capacity).astype(np.float32)
    share = np.where(capacity == 0, np.float32(1.0), weight.astype(np.float32) / whole)
    return float(max(np.float32(0.0), share.max()))


def _per_node(count: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Share replicas out, rounded down, in 32-bit floats; over no nodes, as Java's casts do it."""
    if nodes == 0:
        return np.where(count > 0, MOST, 0)
    share: NDArray[np.int64] = np.floor(np.float32(count) / np.float32(nodes)).astype(np.int64)
    return share
