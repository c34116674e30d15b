"""Where the store rebalancer sends leases and replicas of hot ranges."""

from typing import TYPE_CHECKING

from tests.conformance.cockroach_cases.fixtures import Fleet, conjunctions
from tests.conformance.cockroach_cases.leases import preferences
from tests.conformance.cockroach_cases.protocol import Category, Json, Refused, same_set

if TYPE_CHECKING:
    from evenkeel.systems.cockroach.allocator.range_decider import HotRange, StoreRebalancer

ENFORCEMENT = {"ignore": 0, "block_rebalance_to": 1, "block_all": 2}
BLOCK_TRANSFER = 1


def _lease(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    found = _rebalancer(case, fleet).lease_target(fleet.view(), _hot(case, fleet))
    return {"target": fleet.ids[found] if found >= 0 else None}


def _replica(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    rebalancer, hot = _rebalancer(case, fleet), _hot(case, fleet)
    if case["phase"] == "lease":
        target = rebalancer.lease_target(fleet.view(), hot)
        holder = fleet.ids[target] if target >= 0 else None
        answer = {"voters": sorted(case["voters"]), "leaseholder": holder}
        return _with_others(answer, case, case.get("non_voters", ()))
    if case["phase"] != "replica":
        raise Refused(f"unknown phase {case['phase']!r}")
    found = rebalancer.relocation(fleet.view(), hot)
    if found is None:
        return _with_others({"voters": None, "leaseholder": None}, case, None)
    answer = {"voters": fleet.names(found.voters), "leaseholder": fleet.ids[found.holder]}
    return _with_others(answer, case, fleet.names(found.non_voters))


def _with_others(answer: Json, case: Json, non_voters: object) -> Json:
    """Add the non-voters, where there are any."""
    return {**answer, "non_voters": non_voters} if case.get("non_voters") else answer


def _hot(case: Json, fleet: Fleet) -> "HotRange":
    from evenkeel.systems.cockroach.allocator.range_decider import HotRange

    return HotRange(
        fleet.places(case.get("voters", case.get("existing", ()))),
        fleet.place(case["leaseholder"]),
        float(case["range_qps"]),
        fleet.places(case.get("non_voters", ())),
        behind=fleet.places(case.get("behind", ())),
    )


def _rebalancer(case: Json, fleet: Fleet) -> "StoreRebalancer":
    from evenkeel.systems.cockroach.allocator import leases
    from evenkeel.systems.cockroach.allocator.intake import SETTINGS
    from evenkeel.systems.cockroach.allocator.leases import QPS
    from evenkeel.systems.cockroach.allocator.range_decider import StoreRebalancer
    from evenkeel.systems.cockroach.allocator.zone_configs import (
        ZoneConfig,
        configs_of,
        localities_of,
    )

    voters = case.get("voters", case.get("existing", ()))
    wanted = ZoneConfig(
        num_replicas=len(voters) + len(case.get("non_voters", ())),
        num_voters=len(voters),
        constraints=conjunctions(case.get("constraints", ())),
        voter_constraints=conjunctions(case.get("voter_constraints", ())),
        lease_preferences=preferences(case.get("lease_preferences", [])),
    )
    configs, found = configs_of([wanted])
    load, settings = QPS, SETTINGS
    if "load_threshold" in case:
        load = load._replace(threshold=float(case["load_threshold"]))
    if "io_enforcement" in case:
        if case["io_enforcement"] not in ENFORCEMENT:
            raise Refused(f"unknown enforcement {case['io_enforcement']!r}")
        settings = settings._replace(
            io_enforcement=ENFORCEMENT[case["io_enforcement"]],
            io_threshold=float(case["io_threshold"]),
        )
    allocator = leases.LeaseAllocator(
        localities_of(fleet.sites(), found),
        configs,
        leases.SETTINGS._replace(io_enforcement=BLOCK_TRANSFER),
        load=load,
    )
    return StoreRebalancer(allocator, settings)


def _same_if_any(expected: list[int] | None, computed: list[int] | None) -> bool:
    if expected is None or computed is None:
        return expected is computed
    return same_set(expected, computed)


CATEGORIES = {
    "store_rebalancer_lease": Category(
        frozenset({"fixture", "existing", "leaseholder", "range_qps"}), _lease, {}
    ),
    "store_rebalancer_replica": Category(
        frozenset(
            {
                "fixture", "voters", "non_voters", "leaseholder", "range_qps", "constraints",
                "voter_constraints", "lease_preferences", "load_threshold", "io_enforcement",
                "io_threshold", "phase", "behind",
            }
        ),
        _replica,
        {"voters": _same_if_any, "non_voters": _same_if_any},
    ),
}  # fmt: skip
