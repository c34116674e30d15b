"""The shortlist in plain Python: how much each node is used, and which are used least."""

import numpy as np

from evenkeel_kernels.core.node_scan import Scan
from evenkeel_kernels.core.problem import State


def uses(state: State, scan: Scan, accepts: list[bool]) -> list[float]:
    """What each node scores without a replica more; inf where none may go."""
    return [
        float((state.load[:, n] * scan.scale[:, n]).max()) if accepts[n] else np.inf
        for n in range(len(accepts))
    ]


def least_used(
    state: State, scan: Scan, accepts: list[bool], beyond: float
) -> tuple[list[int], float]:
    """List the nodes used less than ``beyond``, and say how much the least of the others is."""
    use = uses(state, scan, accepts)
    others = [one for one in use if one >= beyond]
    return [n for n, one in enumerate(use) if one < beyond], min(others, default=np.inf)
