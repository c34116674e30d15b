"""All scenarios of CockroachDB's simulator that need no raft, by name."""

from collections.abc import Callable

from evenkeel.simulate.scenarios import cockroach_disks as disks
from evenkeel.simulate.scenarios import cockroach_loads as loads
from evenkeel.simulate.scenarios import cockroach_repairs as repairs
from evenkeel.simulate.scenarios.scenario import Scenario

SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "add_node": repairs.add_node,
    "full_disk": disks.full_disk,
    "liveness": repairs.liveness,
    "multi_store": loads.multi_store,
    "zone_config": repairs.zone_config,
    "lease_preferences": repairs.lease_preferences,
    "heterogeneous_constrained": loads.heterogeneous_constrained,
    "heterogeneous_free": loads.heterogeneous_free,
    "decommission_conformance": repairs.decommission_conformance,
    "conformance": repairs.conformance,
    "store_status_shedding": repairs.store_status_shedding,
    "asymmetric_localities": loads.asymmetric_localities,
    "uneven_regions": loads.uneven_regions,
    "skewed_writes_disk": disks.skewed_writes_disk,
    "skewed_cpu_skewed_writes": loads.skewed_cpu_skewed_writes,
    "low_write_bandwidth": disks.low_write_bandwidth,
    "rebalancing": loads.rebalancing,
    "rebalancing_late": lambda: loads.rebalancing(20.0),
    "io_overload": disks.io_overload,
    "cannot_shed_leases": loads.cannot_shed_leases,
    "high_cpu": loads.high_cpu,
    "high_cpu_25_nodes": loads.high_cpu_25_nodes,
    "splitting": loads.splitting,
    "disks_even_out": disks.disks_even_out,
    "one_voter": loads.one_voter,
    "rebalance_speed": loads.rebalance_speed,
    "skewed_cpu_even_ranges": loads.skewed_cpu_even_ranges,
    "constraint_satisfaction": loads.constraint_satisfaction,
    "constraint_satisfaction_disks": loads.constraint_satisfaction_disks,
    "no_legal_rebalance": loads.no_legal_rebalance,
    "repair_add_voters": repairs.repair_add_voters,
    "repair_remove_voters": repairs.repair_remove_voters,
    "repair_add_non_voters": repairs.repair_add_non_voters,
    "repair_remove_non_voters": repairs.repair_remove_non_voters,
    "repair_replace_dead": repairs.repair_replace_dead,
    "repair_replace_decommissioning": repairs.repair_replace_decommissioning,
}
"""Builders by a name that can be typed."""
