"""Constraints, diversity, thresholds, actions and what raft can do without."""

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from operator import add

from tests.conformance.cockroach_cases.fixtures import STATES, Fleet, constraints_of
from tests.conformance.cockroach_cases.protocol import Category, Json, Refused, near, same_set

CHANGES = {"plain_validity": 0, "add": 0, "remove": 1, "rebalance_from": 2, "replace": 3}
LEASTS = {"range_count": 2.0, "qps": 100.0}
BALANCES = {1: "underfull", 0: "around_mean", -1: "overfull"}
CLOSE = 1e-10


def _constraints(document: Json, case: Json) -> Json:
    from bench.scenarios.one_range import Allocator, Replicas
    from evenkeel.systems.cockroach.allocator.zone_configs import (
        ZoneConfig,
        configs_of,
        localities_of,
    )

    if case["group"] not in CHANGES:
        raise Refused(f"unknown group {case['group']!r}")
    fleet = Fleet(document, case)
    held = fleet.places(case.get("existing", ()))
    wanted = ZoneConfig(case.get("num_replicas", 0), constraints=constraints_of(document, case))
    configs, found = configs_of([wanted])
    allocator = Allocator(localities_of(fleet.sites(), found), configs)
    leaving = fleet.place(case["leaving"]) if "leaving" in case else -1
    change = CHANGES[case["group"]]
    valid, necessary = allocator.check(Replicas(held), change, leaving)
    checked = held if case["group"] == "remove" else range(len(fleet.ids))
    checked = [s for s in checked if s != leaving or case["group"] == "remove"]
    answer = {"valid": fleet.names([s for s in checked if valid[s]])}
    if case["group"] != "plain_validity":
        answer["necessary"] = fleet.names([s for s in checked if necessary[s]])
    return answer


def _diversity(document: Json, case: Json) -> Json:
    fleet = Fleet(document, case)
    if case["group"] == "range_score":
        return _range_scores(fleet, fleet.places(case["stores"]))
    held = fleet.places(case["existing"])
    pair = _pairs(fleet)
    free = [s for s in range(len(fleet.ids)) if s not in held]
    if case["group"] == "should_move_for_diversity":
        leaver = fleet.place(case["examined_replica"])
        rest = [s for s in held if s != leaver]
        most = max((_range_score(pair, [*rest, s]) for s in free), default=0.0)
        return {"should_move": most > _range_score(pair, held) + CLOSE}
    if case["group"] == "allocate_order":
        ranked = {s: _mean([pair[s][e] for e in held]) for s in free}
    elif case["group"] == "rebalance_to_order":
        ranked = {s: _rebalance_to(pair, held, s) for s in free}
    elif case["group"] == "removal_order":
        ranked = {r: _mean([pair[r][e] for e in held if e != r]) for r in held}
    else:
        raise Refused(f"unknown group {case['group']!r}")
    order = sorted(ranked, key=lambda s: (-round(ranked[s], 9), fleet.ids[s]))
    return {"order": [fleet.ids[s] for s in order]}


def _pairs(fleet: Fleet) -> list[list[float]]:
    """Diversity of every two stores, as kernels see it."""
    from evenkeel.systems.cockroach.allocator.zone_configs import localities_of

    found = localities_of(fleet.sites(), [])
    pair = found.pair[found.alike][:, found.alike]
    pair[found.host[:, None] == found.host] = 0.0
    return pair.tolist()


def _range_scores(fleet: Fleet, held: Sequence[int]) -> Json:
    from evenkeel.systems.cockroach.allocator.zone_configs import diversity

    bare = [site.values[:-1] for site in fleet.sites()]
    legacy = _mean([diversity(bare[a], bare[b]) for a, b in combinations(held, 2)])
    return {"score": _range_score(_pairs(fleet), held), "score_legacy": legacy}


def _range_score(pair: list[list[float]], held: Sequence[int]) -> float:
    return _mean([pair[a][b] for a, b in combinations(held, 2)])


def _rebalance_to(pair: list[list[float]], held: Sequence[int], s: int) -> float:
    """The best score of the range once the store has taken over from somebody."""
    scores = [_range_score(pair, [s, *(e for e in held if e != r)]) for r in held]
    return max(scores, default=1.0)


def _mean(values: Sequence[float]) -> float:
    return reduce(add, values, 0.0) / len(values) if values else 1.0


def _score_class(document: Json, case: Json) -> Json:
    from bench.scenarios.one_range import BY_QPS
    from evenkeel.systems.cockroach.allocator.range_decider import BY_COUNT
    from evenkeel_kernels.cockroach import scores
    from evenkeel_kernels.cockroach.tables import fraction_used

    if case["group"] == "balance":
        if case["metric"] not in LEASTS:
            raise Refused(f"unknown metric {case['metric']!r}")
        scorer = {"range_count": BY_COUNT, "qps": BY_QPS}[case["metric"]]
        scorer = scorer._replace(threshold=float(case["threshold"]))
        level = scores.balance(scorer, float(case["value"]), float(case["mean"]))
        return {"balance": BALANCES[level]}
    if case["group"] == "converge":
        value, mean = float(case["value"]), float(case["mean"])
        return {
            "removing_converges": bool(scores.converges(value, value - 1, mean)),
            "adding_converges": bool(scores.converges(value, value + 1, mean)),
        }
    if case["group"] == "disk":
        fleet = Fleet(document, case)
        used = fraction_used(fleet.view(), fleet.place(case["store"]))
        return {"has_room": bool(used < case["threshold"])}
    raise Refused(f"unknown group {case['group']!r}")


def _needed(document: Json, case: Json) -> Json:
    from evenkeel_kernels.cockroach.actions import needed_voters

    return {"needed": int(needed_voters(case["configured"], case["cluster_nodes"]))}


def _removable(document: Json, case: Json) -> Json:
    import numpy as np

    from evenkeel_kernels.cockroach.actions import removable

    match = np.array(case["match"], np.int64)
    free = np.zeros(len(match), np.bool_)
    removable(match >= case["commit"], len(match), case.get("brand_new", 0) - 1, free)
    return {"removable": match[free].tolist()}


def _action(document: Json, case: Json) -> Json:
    from evenkeel.systems.cockroach.allocator.actions import ACTIONS, actions
    from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig, configs_of

    listed = {name: case.get(name, ()) for name in STATE_LISTS}
    state = {store: STATES[name] for name, stores in listed.items() for store in stores}
    voters, others = case["voters"], case.get("non_voters", ())
    if missing := sorted({*voters, *others} - state.keys()):
        raise Refused(f"no state of stores {missing}")
    number = {store: i for i, store in enumerate(sorted(state))}
    configs, _ = configs_of([ZoneConfig(case["num_replicas"], case["num_voters"])])
    found = actions(
        first=[0, len(voters) + len(others)],
        store=[number[one] for one in (*voters, *others)],
        role=[0] * len(voters) + [1] * len(others),
        status=[state[store] for store in sorted(state)],
        configs=configs,
        hosts=case["cluster_nodes"],
    )
    return {"action": ACTIONS[found.action[0]]}


STATE_LISTS = ("live", "suspect", "dead", "decommissioning", "decommissioned", "unknown")

CATEGORIES = {
    "constraints": Category(
        frozenset({"fixture", "constraints", "num_replicas", "existing", "leaving"}),
        _constraints,
        {"valid": same_set, "necessary": same_set},
    ),
    "diversity": Category(
        frozenset({"fixture", "stores", "existing", "examined_replica"}),
        _diversity,
        {"score": near, "score_legacy": near},
    ),
    "score_classes": Category(
        frozenset({"metric", "mean", "threshold", "value", "fixture", "store"}), _score_class, {}
    ),
    "needed_voters": Category(frozenset({"configured", "cluster_nodes"}), _needed, {}),
    "raft_unremovable": Category(
        frozenset({"commit", "match", "brand_new"}), _removable, {"removable": same_set}
    ),
    "compute_action": Category(
        frozenset({"num_replicas", "num_voters", "voters", "non_voters", "cluster_nodes"})
        | set(STATE_LISTS),
        _action,
        {},
    ),
}
