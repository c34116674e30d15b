"""How far nodes are above their targets, all together: what the highest alone does not tell."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.problem import State
from evenkeel_kernels.levelling.penalty import Targets

NO_TARGET = 1e29
"""1 / the target of a node that may carry nothing."""

HIGH = 0.5
"""Part of the greatest excess from which on a node is as high as the highest."""


def excess(state: State, targets: Targets) -> float:
    """Add up how far nodes are above their targets, of load and leaders, in units of these."""
    scale = np.where(targets.scale < NO_TARGET, targets.scale, 0.0)
    leader_scale = np.where(targets.leader_scale < NO_TARGET, targets.leader_scale, 0.0)
    over = np.maximum(state.load * scale - 1.0, 0.0).sum()
    return float(over + np.maximum(state.leaders * leader_scale - 1.0, 0.0).sum())


def highest_of(state: State, targets: Targets) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which nodes are about as far above their targets as the highest: loads (D, N), leaders.

    None where all nodes are within them.
    """
    over, led_over = state.load * targets.scale - 1.0, state.leaders * targets.leader_scale - 1.0
    high = HIGH * max(float(over.max(initial=0.0)), float(led_over.max(initial=0.0)))
    return (over >= high) & (high > 0.0), (led_over >= high) & (high > 0.0)


def let_be_the_highest(state: State, targets: Targets) -> None:
    """Take what the highest nodes carry and lead for their targets."""
    high, led_high = highest_of(state, targets)
    targets.scale[high] = 1.0 / state.load[high]
    targets.leader_scale[led_high] = 1.0 / state.leaders[led_high]
