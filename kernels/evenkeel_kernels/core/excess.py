"""The squared hinge by which every search charges what exceeds a threshold."""

from evenkeel_kernels.build.jit import inline_only


@inline_only
def squared_excess(pressure: float, knee: float) -> float:
    """Square of what ``pressure`` is above ``knee``."""
    over = pressure - knee
    return over * over if over > 0.0 else 0.0
