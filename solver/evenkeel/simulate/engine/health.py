"""Health: the states of a node, and what each means."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.nodes import Nodes


class Health(IntEnum):
    """The state of a node.

    Examples
    --------
    >>> [one.name for one in Health]
    ['UP', 'SUSPECT', 'DRAINING', 'DECOMMISSIONING', 'UNKNOWN', 'DEAD', 'ABSENT']
    """

    UP = 0
    SUSPECT = 1
    """Back from an outage a moment ago: keeps what it has, is given nothing."""
    DRAINING = 2
    DECOMMISSIONING = 3
    UNKNOWN = 4
    """Not heard of, but not for long enough to be dead."""
    DEAD = 5
    ABSENT = 6
    """Not part of the cluster, or not yet."""


FLAGS = np.array(
    # alive, accepts, keeps, leads, gone
    [
        [1, 1, 1, 1, 0],
        [1, 0, 1, 1, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ],
    bool,
)
"""What each state means for ``Nodes``: alive, accepts, keeps, leads, gone."""

MAY_NOT_RECEIVE = (0.3, 1.1)
"""A node whose IO score is at least so high, and so many times the mean, is given no replica."""
MAY_NOT_LEAD = (0.4, 1.75)
"""And from here on it leads nothing."""


def health_of(nodes: Nodes) -> NDArray[np.int8]:
    """Return the states of nodes by what their flags say."""
    health = np.full(len(nodes), Health.UP, np.int8)
    health[~nodes.accepts] = Health.SUSPECT
    health[~nodes.leads] = Health.DRAINING
    health[~nodes.keeps] = Health.DECOMMISSIONING
    health[~nodes.alive] = Health.UNKNOWN
    health[~nodes.alive & ~nodes.keeps] = Health.DEAD
    health[nodes.gone] = Health.ABSENT
    return health
