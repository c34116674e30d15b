"""What every range needs first, and how urgently."""

from dataclasses import dataclass

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
    >>> from evenkeel.strategies.cockroach.equivalence_classes import configs_of
    >>> from evenkeel.strategies.cockroach.zone_configs.documents import ZoneConfig
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
