"""In which order replicas are placed."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.java_order import text_order
from evenkeel.systems.helix.waged.estimates import Estimates
from evenkeel.systems.helix.waged.model import Model

SPARE = np.float32(0.01)
"""Part of the whole capacity that is added to what is left, so that it is never nothing."""


def placing_order(
    model: Model,
    nodes: NDArray[np.int64],
    estimates: Estimates,
    place: NDArray[np.int32],
    held: NDArray[np.bool_],
    meant: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Order the replicas to place.

    First those of groups that the best possible has, then those of groups that the baseline has,
    then by falling priority of state, by falling share of what is left of the capacity, by a hash
    that changes with the nodes, and by name.
    """
    p, s = np.nonzero(place)
    order = np.zeros(len(p), np.int64)
    group = model.group[p]
    kind = (2 * ~held[group] + ~meant[group]).astype(np.int64) * place.shape[1] + s
    key = _falling(_impact(model, estimates)[p]) << np.uint64(32)
    key |= _rising(_salted(model, nodes)[p, s])
    filled = 0
    for one in np.unique(kind):
        members = np.flatnonzero(kind == one)
        order[filled : filled + len(members)] = members[np.argsort(key[members])]
        filled += len(members)
    _settle_ties(model, p, s, kind, key, order)
    times = place[p, s][order]
    return np.repeat(p[order], times).astype(np.int32), np.repeat(s[order], times).astype(np.uint8)


def _impact(model: Model, estimates: Estimates) -> NDArray[np.float32]:
    """Share of what is left that a replica of each partition takes, added up over the keys."""
    impact = np.zeros(len(model.kind), np.float32)
    for d in model.weight_order.tolist():
        left = np.float32(estimates.left[d]) + np.float32(estimates.capacity[d]) * SPARE
        if left != 0.0:  # else there is no capacity, and what has no weight adds nothing
            impact += model.weight[:, d].astype(np.float32) / left
    return impact


def _falling(impact: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Numbers that ascend as impacts, which are not negative, descend."""
    bits: NDArray[np.uint64] = (np.uint32(0x7FFFFFFF) - impact.view(np.uint32)).astype(np.uint64)
    return bits


def _rising(hashes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Unsigned numbers in the order of the hashes read as signed ones."""
    bits: NDArray[np.uint64] = (hashes ^ np.uint32(1 << 31)).astype(np.uint64)
    return bits


def _salted(model: Model, nodes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash of each replica and of the nodes that carry what it asks for, (P, S).

    Where no node of the run does, all of them count.
    """
    words = model.nodes.word[nodes]
    carries = model.masks[:, nodes]
    carries = carries | ~carries.any(axis=1, keepdims=True)
    salt = (carries * words).sum(axis=1, dtype=np.uint64).astype(np.uint32)
    salted = np.uint32(31) * (np.uint32(31) + model.replica_hash)
    return np.asarray(salted + salt[model.mask][:, np.newaxis], np.uint32)


def _settle_ties(
    model: Model,
    p: NDArray[np.int64],
    s: NDArray[np.int64],
    kind: NDArray[np.int64],
    key: NDArray[np.uint64],
    order: NDArray[np.int64],
) -> None:
    """Bring those that agree in all numbers into the order of their names."""
    ordered, same_kind = key[order], kind[order]
    alike = (ordered[1:] == ordered[:-1]) & (same_kind[1:] == same_kind[:-1])
    if not alike.any():
        return
    bounds = np.flatnonzero(np.concatenate([[True], ~alike, [True]]))
    for i in np.flatnonzero(np.diff(bounds) > 1).tolist():
        run = np.sort(order[bounds[i] : bounds[i + 1]])
        names = [_name(model, int(p[k]), int(s[k])) for k in run.tolist()]
        order[bounds[i] : bounds[i + 1]] = run[text_order(names)]


def _name(model: Model, p: int, s: int) -> str:
    group = model.groups.texts[int(model.group[p])]
    state = model.kinds[int(model.kind[p])].names[s]
    return f"{group}-{model.partitions.texts[p]}-{state}"
