"""The options of the ``cockroach`` method."""

from dataclasses import dataclass
from typing import Literal

from evenkeel.methods.options import Options
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import check_number, check_whole

# what the store rebalancer moves; ``kv.allocator.load_based_rebalancing``
MODES = ("off", "leases", "leases and replicas")

# the balanced quantity; ``kv.allocator.load_based_rebalancing.objective``
OBJECTIVES = ("qps", "cpu")

Mode = Literal["off", "leases", "leases and replicas"]
Objective = Literal["qps", "cpu"]


@known_fields
@dataclass(frozen=True, kw_only=True)
class Cockroach(Options):
    """Options of ``cockroach``.

    Parameters
    ----------
    mode : {"off", "leases", "leases and replicas"}
        What the store rebalancer moves.
    objective : {"qps", "cpu"}, optional
        The balanced quantity; by default cpu where the cluster has it, else qps.
    load_threshold, range_threshold, lease_threshold : float
        How far above the mean a store's load, its number of ranges, or of leases may be: a share.
    aggressiveness : float
        How much leases follow the workload; 0 for not at all.
    max_passes : int
        Rounds of queue, load and leases after which a run ends though something is decided still.

    Examples
    --------
    >>> Cockroach(objective="qps").mode
    'leases and replicas'
    """

    mode: Mode = "leases and replicas"
    objective: Objective | None = None
    load_threshold: float = 0.10
    range_threshold: float = 0.05
    lease_threshold: float = 0.05
    aggressiveness: float = 1.0
    max_passes: int = 100

    def __post_init__(self) -> None:
        faults = FaultList()
        if self.mode not in MODES:
            faults.add("options.mode", self.mode, f"must be one of {', '.join(MODES)}")
        if self.objective not in (None, *OBJECTIVES):
            faults.add("options.objective", self.objective, "must be 'qps', 'cpu' or None")
        for name in ("load_threshold", "range_threshold", "lease_threshold", "aggressiveness"):
            check_number(faults, f"options.{name}", getattr(self, name))
        check_whole(faults, "options.max_passes", self.max_passes, 1)
        faults.raise_if_any()
