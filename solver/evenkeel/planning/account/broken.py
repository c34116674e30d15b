"""What a plan cannot keep, told in a sentence."""

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.model.runtime.printable import counted
from evenkeel.planning.steps import StepKind

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


def told_losses(plan: "Plan") -> str:
    """Say what the end breaks that the beginning keeps, and what has no live source.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]]).down("n0")
    >>> told_losses(ek.solve(c).plan())
    ' Of 1 partition no replica lives: what is copied first comes from elsewhere, or is empty.'
    """
    said = ""
    if plan.regressions:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in plan.regressions.items())
        said = f" Its end breaks rules that the beginning keeps: {kinds}."
    steps, start = plan.steps, plan.cluster.placement
    held = np.bincount(start.owner[start.node >= 0], minlength=len(start)) > 0
    nowhere = np.unique(steps.partition[(steps.kind == StepKind.COPY) & (steps.source < 0)])
    if count := int(np.count_nonzero(held[nowhere])):
        said += (
            f" Of {counted(count, 'partition')} no replica lives: what is copied first comes from "
            "elsewhere, or is empty."
        )
    return said
