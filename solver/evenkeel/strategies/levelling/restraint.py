"""What a search leaves alone the next time: partitions that came out of it worse than they came."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions
from evenkeel.model.cluster import Cluster
from evenkeel.strategies.levelling.run_state import Run
from evenkeel.strategies.registry import Outcome


class Restraint(NamedTuple):
    """Partitions that stay whole, nothing dropped of them, and that stay where they are; (P,)."""

    whole: NDArray[np.bool_]
    pinned: NDArray[np.bool_]

    @classmethod
    def none(cls, cluster: Cluster) -> "Restraint":
        """Leave nothing alone."""
        count = len(cluster.partitions)
        return cls(np.zeros(count, bool), np.zeros(count, bool))

    def after(self, run: Run, outcome: Outcome) -> "Restraint | None":
        """Add the partitions that are worse than they came, if there are any to add.

        What a surplus replica held up breaks where it is dropped, and where leaders weigh less than
        followers a node may be too full while one leaves: neither is seen one move at a time.
        """
        cluster = run.request.cluster
        if not run.dropped.any() and not cluster.transient.any():
            return None
        placement = cluster.placement.replaced(outcome.node, outcome.leader)
        worse = regressions(cluster, placement, audit(cluster, placement)).partitions
        cut = np.zeros(len(cluster.partitions), bool)
        cut[cluster.placement.owner[run.dropped]] = True
        whole, pinned = worse & cut, worse & ~cut & ~self.pinned
        if not whole.any() and not pinned.any():
            return None
        return Restraint(self.whole | whole, self.pinned | pinned)
