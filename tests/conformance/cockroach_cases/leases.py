"""Who should hold a lease: by counts, draining, preferences, overload, the origin of requests."""

import re
from typing import TYPE_CHECKING

from tests.conformance.cockroach_cases.fixtures import STATES, Fleet, conjunctions
from tests.conformance.cockroach_cases.protocol import Category, Json, Refused, within

if TYPE_CHECKING:
    from evenkeel.systems.cockroach.allocator.leases import Lease, LeaseAllocator
    from evenkeel_kernels.cockroach.tables import Stores

DRAWS = 256  # seeds that are tried to find all outcomes of the draws
ENFORCEMENT = {"ignore": 0, "block_transfer_to": 1, "shed": 2}


def preferences(listed: list[list[str]]) -> list:
    """Read an ordered list of conjunctions such as ``[["+dc=1"], ["-ssd"]]``."""
    read = conjunctions([{"num": 0, "all": texts} for texts in listed])
    return [one.constraints for one in read]


def _score(document: Json, case: Json) -> Json:
    from evenkeel_kernels.cockroach.leases import workload_adjustment, workload_score

    weights = float(case["remote_weight"]), float(case["source_weight"])
    nearer = workload_adjustment(1.0, *weights, float(case["remote_latency_ms"]))
    leases = (float(case[name]) for name in ("remote_leases", "source_leases", "mean_leases"))
    return {"score": int(workload_score(nearer, *leases))}


def _preferred(document: Json, case: Json) -> Json:
    wanted = document.get("preference_sets", {}).get(case["preference_set"])
    if wanted is None:
        raise Refused(f"no preference set {case['preference_set']!r}")
    fleet = Fleet(document, case)
    allocator = _allocator({**case, "lease_preferences": wanted}, fleet)
    lease, stores = _lease(case, fleet), fleet.view()
    return {
        "target_allow_stay": _only(_targets(allocator, stores, lease, False, fleet)),
        "target_forced": _only(_targets(allocator, stores, lease, True, fleet)),
    }


def _transfer(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    allocator, lease = _allocator(case, fleet), _lease(case, fleet)
    stores = fleet.view(status=_states(case, fleet))
    drawn = _targets(allocator, stores, lease, case.get("exclude_leaseholder", False), fleet)
    return {
        "target": _only(drawn),
        "target_in": drawn,
        "should_transfer": allocator.should_transfer(stores, lease),
    }


def _states(case: Json, fleet: Fleet) -> list[str]:
    states = [one.get("status", "live") for one in fleet.stores]
    for store in case.get("unavailable", ()):
        states[fleet.place(store)] = "unavailable"
    for store, state in case.get("status_of", {}).items():
        if state not in STATES:
            raise Refused(f"unknown state {state!r}")
        states[fleet.place(int(store))] = state
    return states


def _lease(case: Json, fleet: Fleet) -> "Lease":
    from evenkeel.systems.cockroach.allocator.leases import Lease

    return Lease(
        fleet.places(case["existing"]),
        fleet.place(case["leaseholder"]),
        behind=fleet.places(case.get("behind", ())),
    )


def _allocator(case: Json, fleet: Fleet) -> "LeaseAllocator":
    from evenkeel.systems.cockroach.allocator.leases import (
        SETTINGS,
        LeaseAllocator,
        Requests,
        workload_of,
    )
    from evenkeel.systems.cockroach.allocator.zone_configs import (
        ZoneConfig,
        configs_of,
        localities_of,
    )

    wanted = ZoneConfig(
        num_replicas=len(case["existing"]),
        constraints=conjunctions(case.get("constraints", ())),
        voter_constraints=conjunctions(case.get("voter_constraints", ())),
        lease_preferences=preferences(case.get("lease_preferences", [])),
    )
    configs, found = configs_of([wanted])
    sites = fleet.sites()
    localities = localities_of(sites, found)
    settings, workload = SETTINGS, None
    if "io_enforcement" in case:
        if case["io_enforcement"] not in ENFORCEMENT:
            raise Refused(f"unknown enforcement {case['io_enforcement']!r}")
        settings = settings._replace(
            io_enforcement=ENFORCEMENT[case["io_enforcement"]],
            io_threshold=float(case["io_threshold"]),
            io_shed_threshold=float(case["io_shed_threshold"]),
        )
    if "latency_ms" in case:
        rate = {sites[s].locality: 1.0 for s in _origins(case, fleet)}
        requests = [Requests(rate)]
        workload = workload_of(sites, localities, requests, latency=float(case["latency_ms"]))
    return LeaseAllocator(localities, configs, settings, workload)


def _origins(case: Json, fleet: Fleet) -> list[int]:
    """The stores from whose localities the requests come."""
    if case["request_origin"] == "even":
        return list(range(len(fleet.ids)))
    one = re.fullmatch(r"all_from_(\d+)", case["request_origin"])
    if one is None:
        raise Refused(f"unknown origin of requests {case['request_origin']!r}")
    return [fleet.place(int(one[1]))]


def _targets(
    allocator: "LeaseAllocator", stores: "Stores", lease: "Lease", asked: bool, fleet: Fleet
) -> list[int]:
    """The stores that some draw gives the lease to; empty if it stays."""
    drawn = {allocator.target(stores, lease, asked=asked, seed=n).target for n in range(DRAWS)}
    return fleet.names(drawn - {-1})


def _only(drawn: list[int]) -> int | None:
    """The one that all draws give; the lowest, should they differ."""
    return drawn[0] if drawn else None


CATEGORIES = {
    "follow_workload_score": Category(
        frozenset(
            {
                "remote_weight", "remote_latency_ms", "remote_leases", "source_weight",
                "source_leases", "mean_leases",
            }
        ),
        _score,
        {},
    ),
    "lease_preferences": Category(
        frozenset({"fixture", "preference_set", "existing", "leaseholder"}), _preferred, {}
    ),
    "lease_transfer": Category(
        frozenset(
            {
                "fixture", "existing", "leaseholder", "exclude_leaseholder", "behind",
                "constraints", "voter_constraints", "lease_preferences", "unavailable",
                "status_of", "io_enforcement", "io_threshold", "io_shed_threshold", "latency_ms",
                "request_origin",
            }
        ),
        _transfer,
        {"target_in": within},
    ),
}  # fmt: skip
