"""Which replica comes, which goes, and which is moved where."""

from typing import TYPE_CHECKING, Any

from tests.conformance.cockroach_cases.fixtures import Fleet, conjunctions, constraints_of
from tests.conformance.cockroach_cases.protocol import Category, Json, Refused, same_set, within

if TYPE_CHECKING:
    from bench.scenarios.one_range import Allocator, Replicas

DRAWS = 256  # seeds that are tried to find all outcomes of the draws
ENFORCEMENT = {"ignore": 0, "block_rebalance_to": 1, "block_all": 2}
ROLES = {"voter": 0, "non_voter": 1}

FLEET = frozenset({"fixture", "existing", "voters", "non_voters", "not_ready_nodes"})
WANTED = frozenset(
    {"constraint_set", "constraints", "voter_constraints", "num_replicas", "num_voters"}
)
OVERLOAD = frozenset({"io_enforcement", "io_threshold"})


def _allocator(document: Json, case: Json, fleet: Fleet) -> "Allocator":
    from bench.scenarios.one_range import BY_QPS, Allocator
    from evenkeel.systems.cockroach.allocator.intake import SETTINGS
    from evenkeel.systems.cockroach.allocator.range_decider import BY_COUNT
    from evenkeel.systems.cockroach.allocator.zone_configs import (
        ZoneConfig,
        configs_of,
        localities_of,
    )

    config = ZoneConfig(
        num_replicas=case.get("num_replicas", 0),
        num_voters=case.get("num_voters", 0),
        constraints=constraints_of(document, case),
        voter_constraints=conjunctions(case.get("voter_constraints", ())),
    )
    configs, found = configs_of([config])
    settings, scorer = SETTINGS, BY_COUNT
    if "io_enforcement" in case:
        if case["io_enforcement"] not in ENFORCEMENT:
            raise Refused(f"unknown enforcement {case['io_enforcement']!r}")
        settings = settings._replace(io_enforcement=ENFORCEMENT[case["io_enforcement"]])
    if "io_threshold" in case:
        settings = settings._replace(io_threshold=float(case["io_threshold"]))
    if "objective" in case:
        if case["objective"] != "qps":
            raise Refused(f"unknown objective {case['objective']!r}")
        scorer = BY_QPS._replace(threshold=float(case["threshold"]))
    return Allocator(localities_of(fleet.sites(), found), configs, settings, scorer)


def _replicas(case: Json, fleet: Fleet) -> "Replicas":
    from bench.scenarios.one_range import Replicas

    voters = case.get("voters", case.get("existing", ()))
    return Replicas(fleet.places(voters), fleet.places(case.get("non_voters", ())))


def _role(name: str) -> int:
    if name not in ROLES:
        raise Refused(f"unknown kind {name!r}")
    return ROLES[name]


def _add(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    allocator, held = _allocator(document, case, fleet), _replicas(case, fleet)
    stores = fleet.view(case.get("not_ready_nodes", ()))
    role = _role(case.get("kind", "voter"))
    drawn = {allocator.add(stores, held, role, seed) for seed in range(DRAWS)} - {-1}
    best = fleet.names(allocator.best_to_add(stores, held, role))
    return {"best": best, "error": not best, "target_in": fleet.names(drawn)}


def _remove(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    allocator, held = _allocator(document, case, fleet), _replicas(case, fleet)
    role = _role(case.get("kind", "voter"))
    return {"worst": fleet.names(allocator.worst_to_remove(fleet.view(), held, role))}


def _per_replica(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    allocator, held = _allocator(document, case, fleet), _replicas(case, fleet)
    found = allocator.replacements(fleet.view(), held)
    options = {str(fleet.ids[r]): fleet.names(stores) for r, stores in found.items()}
    return {"options": options, "move": bool(options)}


def _rebalance(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    allocator, held = _allocator(document, case, fleet), _replicas(case, fleet)
    stores = fleet.view(case.get("not_ready_nodes", ()))
    role = _role(case.get("move", "voter"))
    drawn = [allocator.rebalance(stores, held, role, seed) for seed in range(DRAWS)]
    moves = [one for one in drawn if one.target >= 0]
    return {
        "target_in": fleet.names({one.target for one in moves}),
        "remove_in": fleet.names({one.removed for one in moves}),
        "should_move": allocator.should_rebalance(stores, held, role),
        "can_add": bool(allocator.best_to_add(stores, held)),
        "can_rebalance": allocator.rebalance(stores, held).target >= 0,
    }


def _same_options(expected: dict[str, Any], computed: dict[str, Any]) -> bool:
    return expected.keys() == computed.keys() and all(
        same_set(expected[key], computed[key]) for key in expected
    )


CATEGORIES = {
    "add_candidates": Category(
        FLEET | WANTED | OVERLOAD | {"kind"}, _add, {"best": same_set, "target_in": within}
    ),
    "remove_candidates": Category(FLEET | WANTED | {"kind"}, _remove, {"worst": same_set}),
    "rebalance_per_replica": Category(FLEET | WANTED, _per_replica, {"options": _same_options}),
    "rebalance_other": Category(
        FLEET | WANTED | OVERLOAD | {"move", "objective", "threshold"},
        _rebalance,
        {"target_in": within, "remove_in": within},
    ),
}
