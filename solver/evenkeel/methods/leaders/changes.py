"""Which partitions another node leads than before, counted as a result counts them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Request
from evenkeel.model.runtime.printable import counted


class Handed(NamedTuple):
    """How many partitions are led by another node than where the search began.

    Attributes
    ----------
    on : int
        Those whose leader lived: what results and limits count as changes.
    over : int
        Those whose leader is lost, or that had none, so that somebody took over.
    """

    on: int
    over: int

    @classmethod
    def of(cls, request: Request, leader: NDArray[np.int16]) -> "Handed":
        """Count them for ``leader`` (P,), slots that lead, replicas staying where they are."""
        start = request.start
        was, led = start.leader_node, start.replaced(start.node, leader).leader_node
        lived = np.append(request.cluster.nodes.alive, False)[was]
        other = led != was
        return cls(int((other & lived).sum()), int((other & ~lived & (led >= 0)).sum()))

    def said_over(self) -> str:
        """Say how many had to be taken over, as a sentence after another; "" for none."""
        if not self.over:
            return ""
        return f" {counted(self.over, 'partition')} had no leader that lives."
