"""Loads over time as WAGED reads them: it counts in whole numbers, and what drifts is rounded."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import SimulatedState
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.partitions import Loads
from evenkeel.model.reading.arrays import list_entries, read_only


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose loads are whole numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> c = Cluster.from_arrays(capacity=[[9.0]], load=[[3.0]])
    >>> drifted = replace(c.partitions, load=Loads(*[np.array([[3.4]])] * 3))
    >>> now = replace(c, partitions=drifted)
    >>> state = SimulatedState(c, now, np.zeros(1, int), 60.0, np.zeros(1))
    >>> refresh_payload(state).partitions.load.voter.tolist()
    [[3.0]]
    """
    given = simulated.began.partitions.load.voter
    faults = FaultList()
    wrong = "must be a whole number for helix_waged, which counts in nothing else: scale the unit"
    list_entries(faults, "load", given, given != np.floor(given), wrong)
    faults.raise_if_any()
    load = simulated.now.partitions.load
    whole = Loads(_rounded(load.leader), _rounded(load.voter), _rounded(load.non_voter))
    return replace(simulated.now, partitions=replace(simulated.now.partitions, load=whole))


def _rounded(load: NDArray[np.float64]) -> NDArray[np.float64]:
    return read_only(np.rint(load))
