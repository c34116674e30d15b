"""Given orders: what partitions go through if their slots change in orders that others choose."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.planning.changes.acts import Acts, acts_by_turns
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.turns import Lent, Turns, in_order, turns_of
from evenkeel.planning.protocols import Protocol


class GivenOrders:
    """Says what A partitions go through in one order of their slots after another.

    ``at_once`` copies of a partition may be under way together.
    """

    def __init__(
        self, cluster: Cluster, ends: Ends, protocol: Protocol, at_once: float = 0.0
    ) -> None:
        self.safety = Safety(cluster, ends, protocol)
        self._at_once = at_once
        self._turns: dict[bytes, Turns] = {}
        self._holds: dict[bytes, NDArray[np.bool_]] = {}

    def turns(self, unfit: NDArray[np.bool_] | None = None) -> Turns:
        """Return the usual turns; replicas that are ``unfit (K,)`` do not lead in between."""
        key = b"" if unfit is None else np.flatnonzero(unfit).tobytes()
        if key not in self._turns:
            self._turns[key] = turns_of(self.safety, unfit)
        return self._turns[key]

    def acts(
        self,
        order: NDArray[np.intp],
        unfit: NDArray[np.bool_] | None = None,
        *,
        lent: Lent | None = None,
        late: bool = False,
    ) -> Acts:
        """Say what happens if slots change in an ``order (A, R)``, and none makes a detour.

        Leaders may have ``lent`` the lead, and the next one may take over ``late``, when all have
        moved.
        """
        turns = in_order(
            self.safety, self.turns(unfit), order, self._holds_in(order), lent=lent, late=late
        )
        detour, spare = np.full(len(order), -1), np.full(len(order), -1, np.int32)
        return acts_by_turns(self.safety, self._at_once, turns, detour, spare)

    def _holds_in(self, order: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each partition keeps its rules whoever leads, (A,)."""
        key = order.tobytes()
        if key not in self._holds:
            self._holds[key] = self.safety.holds(order)
        return self._holds[key]
