"""What every range needs first, and how urgently."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel_kernels.cockroach.replicas import actions as kernel
from evenkeel_kernels.cockroach.tables import Configs

ACTIONS = (
    "Noop",
    "FinalizeAtomicReplicationChange",
    "RemoveLearner",
    "ReplaceDeadVoter",
    "AddVoter",
    "ReplaceDecommissioningVoter",
    "RemoveDeadVoter",
    "RemoveDecommissioningVoter",
    "RemoveVoter",
    "ReplaceDeadNonVoter",
    "AddNonVoter",
    "ReplaceDecommissioningNonVoter",
    "RemoveDeadNonVoter",
    "RemoveDecommissioningNonVoter",
    "RemoveNonVoter",
    "ConsiderRebalance",
    "RangeUnavailable",
)
"""CockroachDB's names of the actions, by their numbers among the kernels."""

BY_LEASE_PREFERENCE = 1001.0
"""Priority of a range whose leaseholder is not where it should be."""


@dataclass(frozen=True, eq=False)
class Actions:
    """What every range needs first.

    Parameters
    ----------
    action : ndarray of int8, shape (P,)
        Index into ``ACTIONS``.
    priority : ndarray of float64, shape (P,)
        The higher the more urgent; 0 where nothing is wrong, or nothing can be done.
    """

    action: NDArray[np.int8]
    priority: NDArray[np.float64]


class Enough(NamedTuple):
    """How many replicas, and voters among them, CockroachDB keeps of each range, (P,) each.

    Fewer than are configured where so few hosts count that they cannot all have one of their own.
    """

    replicas: NDArray[np.int32]
    voters: NDArray[np.int32]


def enough_of(configs: Configs, config: NDArray[np.int32], hosts: int) -> Enough:
    """Return what CockroachDB keeps of ranges of each ``config (P,)`` where so many hosts count.

    Examples
    --------
    >>> from evenkeel.systems.cockroach.allocator.equivalence_classes import configs_of
    >>> from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig
    >>> configs, _ = configs_of([ZoneConfig(num_replicas=5), ZoneConfig(5, 3)])
    >>> enough = enough_of(configs, np.array([0, 1], np.int32), 4)
    >>> enough.voters.tolist(), enough.replicas.tolist()
    ([3, 3], [3, 4])
    """
    both = zip(configs.replicas.tolist(), configs.voters.tolist(), strict=True)
    kept = np.array(
        [
            (kernel.needed_voters(voters, hosts),
             kernel.needed_non_voters(replicas, voters, hosts))
            for replicas, voters in both
        ],
        np.int32,
    ).reshape(-1, 2)[config]  # fmt: skip
    return Enough(kept.sum(axis=1, dtype=np.int32), kept[:, 0].copy())


def actions(
    *,
    first: ArrayLike,
    store: ArrayLike,
    status: ArrayLike,
    configs: Configs,
    hosts: int,
    role: ArrayLike | None = None,
    config: ArrayLike | None = None,
    joint: ArrayLike | None = None,
) -> Actions:
    """Find what every range needs first, in one pass.

    Examples
    --------
    >>> from evenkeel.systems.cockroach.allocator.equivalence_classes import configs_of
    >>> from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig
    >>> configs, _ = configs_of([ZoneConfig(num_replicas=3)])
    >>> found = actions(
    ...     first=[0, 3, 5], store=[0, 1, 2, 0, 1], status=[0, 0, 6, 0], configs=configs, hosts=4
    ... )
    >>> [ACTIONS[one] for one in found.action], found.priority.tolist()
    (['ReplaceDeadVoter', 'AddVoter'], [12000.0, 10000.0])
    """
    rows = np.ascontiguousarray(first, np.int64)
    stores = np.ascontiguousarray(store, np.int32)
    count = len(rows) - 1
    found = Actions(np.zeros(count, np.int8), np.zeros(count))
    kernel.actions(
        rows,
        stores,
        np.zeros(len(stores), np.uint8) if role is None else np.ascontiguousarray(role, np.uint8),
        np.zeros(count, np.bool_) if joint is None else np.ascontiguousarray(joint, np.bool_),
        np.zeros(count, np.int32) if config is None else np.ascontiguousarray(config, np.int32),
        np.ascontiguousarray(status, np.int8),
        configs,
        hosts,
        found.action,
        found.priority,
    )
    return found
