"""The steps of a plan with names, a row for each."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.steps import StepKind

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


class PlanRow(NamedTuple):
    """One step of a plan with names.

    Parameters
    ----------
    step : int
        Its index.
    wave : int
        Its place in ``plan.waves``, from 0: steps of a wave may be handed out together once the
        wave before has finished. Texts and files for people count from 1.
    kind : str
        Name of a ``StepKind``, in small letters.
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    source, target : str or None
        Names of the nodes copied from or left, copied to or joined.
    bytes : float
        Bytes copied.
    start, finish : float
        Seconds from the beginning.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> first = result.plan().rows()[0]
    >>> first.kind, first.partition, first.source, first.target, first.finish
    ('copy', 'p0', 'n0', 'n1', 1.0)
    """

    step: int
    wave: int
    kind: str
    partition: str
    slot: int
    source: str | None
    target: str | None
    bytes: float
    start: float
    finish: float


def rows_of(plan: "Plan", which: NDArray[np.integer]) -> list[PlanRow]:
    """Return some steps with names, in the order asked for."""
    steps, nodes = plan.steps, plan.cluster.nodes.names
    partitions, first = plan.cluster.partitions.names, plan.cluster.placement.first
    return [
        PlanRow(
            i, int(steps.wave[i]), StepKind(steps.kind[i]).name.lower(),
            partitions[int(steps.partition[i])],
            int(steps.replica[i] - first[steps.partition[i]]),
            nodes[int(steps.source[i])] if steps.source[i] >= 0 else None,
            nodes[int(steps.target[i])] if steps.target[i] >= 0 else None,
            float(steps.size[i]), float(steps.start[i]), float(steps.finish[i]),
        )
        for i in which.tolist()
    ]  # fmt: skip
