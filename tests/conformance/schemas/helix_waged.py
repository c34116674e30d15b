"""Helix's WAGED: steps of rebalances in all scopes, small clusters and large ones.

What a step says of the time and memory that the original took is left as it is where it is
expected, and not computed. All else is: assignments, expectations, failures with the reason for
each node, and the figures of quality and movement.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tests.conformance.protocol import MISSING, Case, Document, Replay, compared

NAME = "helix waged"

MODELS: dict[str, dict[str, int | str]] = {
    "MasterSlave": {"MASTER": 1, "SLAVE": "R"},
    "LeaderStandby": {"LEADER": 1, "STANDBY": "R"},
    "OnlineOffline": {"ONLINE": "R"},
}
SHAPES = {"list of [node index, state]": True, "list of node indexes": False}
"""What the format says of an assignment, and whether it names states."""

ALL_ANEW = {"CLUSTER_CONFIG", "INSTANCE_CONFIG"}
SOME_ANEW = {"RESOURCE_CONFIG", "IDEAL_STATE"}
KNOWN = {
    "input": {
        "generator_seed", "topologyAware", "topology", "faultZoneType", "capacityKeys", "nodes",
        "resources", "steps", "maxPartitionsPerInstance", "preference", "preferredScoringKeys",
    },
    "node": {"name", "domain", "capacity", "tags", "disabledPartitions"},
    "resource": {
        "name", "numPartitions", "replicas", "stateModel", "partitionWeights", "defaultWeight",
        "tag", "maxPartitionsPerInstance", "minActiveReplicas",
    },
    "step": {"id", "scope", "down", "current", "baseline", "changes", "reps"},
    "preference": {"EVENNESS", "LESS_MOVEMENT", "FORCE_BASELINE_CONVERGE"},
}  # fmt: skip
MEASURED = re.compile(r"\w*_ms\w*|heap_\w+")
"""Keys of a result that say how long the original took, and how much memory."""

REASONS = {
    "ZONE": "A fault zone cannot contain more than 1 replica of same partition",
    "CAPACITY": "Node has insufficient capacity",
    "DISABLED": "Cannot assign the inactive replica",
    "LIMIT": "Cannot exceed the maximum number of partitions limitation on node",
    "TAG": "Instance doesn't have the tag of the replica",
}
CUT = 900
RAW = "result is the raw algorithm output before merging"
PAIR = re.compile(r"([^\s{,]+)=\[([^\]]*)\]")


def recognises(path: Path, document: Document) -> bool:
    """Steps of rebalances of resources with capacity keys."""
    given = document.get("input") if isinstance(document, dict) else None
    return isinstance(given, dict) and {"capacityKeys", "steps", "resources"} <= given.keys()


def replay(path: Path, document: Any) -> Replay:
    """Run every step whose assignments are there."""
    given = document["input"]
    _refuse_unknown(given)
    named = _names_states(document["format"])
    expected = (document.get("result") or {}).get("steps", MISSING)
    wanted = {} if expected is MISSING else {step["id"]: step for step in expected}
    cases, answers = [], []
    for step, answer in _answers(given, named):
        theirs = MISSING if expected is MISSING else wanted.pop(step, None)
        if answer is not None:
            answers.append(answer)
        cases.append(_judged(step, theirs, answer))
    cases += [Case(step, False, "is not a step of the input") for step in wanted]
    document["result"] = {"steps": answers}
    return Replay(cases, document)


def _refuse_unknown(given: dict[str, Any]) -> None:
    parts = [("input", given), ("preference", given.get("preference") or {})]
    parts += [("node", node) for node in given["nodes"]]
    parts += [("resource", resource) for resource in given["resources"]]
    parts += [("step", step) for step in given["steps"]]
    for what, part in parts:
        if unknown := part.keys() - KNOWN[what]:
            raise ValueError(f"unknown keys of a {what}: {sorted(unknown)}")


def _names_states(text: str) -> bool:
    said = [named for words, named in SHAPES.items() if words in text]
    if len(said) != 1:
        raise ValueError("the format does not say what an assignment looks like")
    return said[0]


def _judged(step: str, expected: Any, answer: dict[str, Any] | None) -> Case:
    if expected is MISSING:
        return Case(step, None)
    if expected is None or answer is None:
        agrees = expected is None and answer is None
        return Case(step, agrees, "" if agrees else "is there in one of the two only")
    theirs = {key: value for key, value in expected.items() if not MEASURED.fullmatch(key)}
    ours = dict(answer)
    for side in (theirs, ours):
        if "error" in side:
            side["error"] = _told(side["error"])
        for key in ("estimatedMaxUtilization", "estimatedTopStateMaxUtilization"):
            side[key] = _as_float32(side.get(key))
    if theirs.get("error", {}).get("cut") and "error" in ours:
        shown = theirs["error"]["nodes"]
        ours["error"]["nodes"] = {n: r for n, r in ours["error"]["nodes"].items() if n in shown}
        ours["error"] |= {"cut": True, "kind": None}
    return compared(step, theirs, ours)


def _told(text: str) -> dict[str, Any]:
    """What an error says, apart from the order in which it names the nodes."""
    head, _, reasons = text.partition("Fail reasons: ")
    replica, _, nodes = reasons.lstrip("{").partition("={")
    kind = text.rpartition("Failure Type: ")[2] if "Failure Type: " in text else None
    return {
        "head": head if reasons else text,
        "replica": replica,
        "nodes": dict(PAIR.findall(nodes)),
        "kind": kind,
        "cut": len(text) >= CUT and kind is None,
    }


def _as_float32(value: Any) -> Any:
    import numpy as np

    return None if value is None else float(np.float32(value))


def _answers(given: dict[str, Any], named: bool) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Each step's id and answer; None for a step that needs one which failed."""
    from evenkeel.systems.helix.waged import NoResult, Preference, prepare, rebalance

    model = _model(given)
    asked = given.get("preference") or {}
    preference = Preference(
        asked.get("EVENNESS", 1),
        asked.get("LESS_MOVEMENT", 1),
        asked.get("FORCE_BASELINE_CONVERGE", 0) > 0,
    )
    scoring = tuple(given.get("preferredScoringKeys") or ())
    found: dict[str, Any] = {}
    for step in given["steps"]:
        needs = [step[key] for key in ("current", "baseline") if key in step]
        if any(found[need] is None for need in needs):
            found[step["id"]] = None
            yield step["id"], None
            continue
        task = _task(given, model, step, found)
        prepared = prepare(model, task, scoring)
        answer: dict[str, Any] = {
            "id": step["id"],
            "scope": step["scope"],
            "estimatedMaxUtilization": _shortest(prepared.estimates.usage),
            "estimatedTopStateMaxUtilization": _shortest(prepared.estimates.usage_top),
            "estimatedMaxPartitionCount": prepared.estimates.count,
            "replicas_to_assign": prepared.placed,
        }
        try:
            assignment = rebalance(model, task, preference, scoring).assignment
        except NoResult as reason:
            found[step["id"]] = None
            answer["error"] = _error(model, reason.failure)
        else:
            found[step["id"]] = assignment
            if step["scope"] == "overwrite":
                answer["note"] = RAW
            answer["quality"] = _quality(model, task, assignment)
            if "current" in step:
                answer["movements_vs_current"] = _movements(model, task, assignment)
            answer["assignment"] = _lists(given, model, assignment, named)
        yield step["id"], answer


def _model(given: dict[str, Any]) -> Any:
    """The cluster of a file."""
    import numpy as np

    from evenkeel.systems.helix.crush.tree import HashedNames
    from evenkeel.systems.helix.waged import NO_LIMIT, Kind, Model

    nodes, resources = given["nodes"], given["resources"]
    keys = len(given["capacityKeys"])
    tags = [None, *sorted({r["tag"] for r in resources if r.get("tag")})]
    kinds: dict[tuple[Any, ...], int] = {}
    kind_of = [
        kinds.setdefault((r["stateModel"], r["replicas"], r.get("minActiveReplicas")), len(kinds))
        for r in resources
    ]
    names, group, weights, disabled = [], [], [], []
    for g, resource in enumerate(resources):
        count = resource["numPartitions"]
        names += [f"{resource['name']}_{i}" for i in range(count)]
        group += [g] * count
        weights += resource.get("partitionWeights") or [resource["defaultWeight"]] * count
    place = {
        (resources[g]["name"], name): p
        for p, (g, name) in enumerate(zip(group, names, strict=True))
    }
    for n, node in enumerate(nodes):
        for resource, some in (node.get("disabledPartitions") or {}).items():
            disabled += [(place[resource, name], n) for name in some]
    zones = [_zone(given, node) for node in nodes]
    code = {zone: i for i, zone in enumerate(dict.fromkeys(zones))}
    most = given.get("maxPartitionsPerInstance", -1)
    return Model(
        keys=tuple(given["capacityKeys"]),
        nodes=HashedNames.of([_logical_id(given, node) for node in nodes]),
        capacity=np.array([node["capacity"] for node in nodes], np.int32).reshape(len(nodes), keys),
        zone=np.array([code[zone] for zone in zones], np.int32),
        limit=np.full(len(nodes), most if most >= 0 else NO_LIMIT, np.int32),
        masks=np.array([[tag in (None, *node.get("tags", ())) for node in nodes] for tag in tags]),
        groups=HashedNames.of([resource["name"] for resource in resources]),
        group_limit=np.array(
            [r.get("maxPartitionsPerInstance", NO_LIMIT) for r in resources], np.int32
        ),
        partitions=HashedNames.of(names),
        group=np.array(group, np.int32),
        mask=np.array([tags.index(resources[g].get("tag")) for g in group], np.int32),
        kind=np.array([kind_of[g] for g in group], np.int32),
        kinds=tuple(Kind(MODELS[states], replicas, least) for states, replicas, least in kinds),
        weight=np.array(weights, np.int32).reshape(len(names), keys),
        disabled=np.array(sorted(disabled), np.int32).reshape(-1, 2),
    )


def _domain(node: Mapping[str, Any]) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in (node.get("domain") or "").split(",") if pair)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _zone(given: dict[str, Any], node: dict[str, Any]) -> str:
    if not given["topologyAware"]:
        return str(node["name"])
    path = [key for key in given["topology"].split("/") if key]
    path = path[: path.index(given["faultZoneType"]) + 1]
    return "/".join(_domain(node).get(key, f"Default_{key}") for key in path)


def _logical_id(given: dict[str, Any], node: dict[str, Any]) -> str:
    if not given["topologyAware"]:
        return str(node["name"])
    end = [key for key in given["topology"].split("/") if key][-1]
    return str(_domain(node).get(end, node["name"]))


def _task(given: dict[str, Any], model: Any, step: dict[str, Any], found: dict[str, Any]) -> Any:
    import numpy as np

    from evenkeel.systems.helix.waged import Scope, Task, nothing

    changes = step.get("changes") or {}
    if unknown := changes.keys() - ALL_ANEW - SOME_ANEW:
        raise ValueError(f"unknown kinds of change: {sorted(unknown)}")
    changed = {name for kind in SOME_ANEW for name in changes.get(kind, ())}
    some = np.array([resource["name"] in changed for resource in given["resources"]])
    anew = some[model.group] | bool(changes.keys() & ALL_ANEW)
    up = np.ones(len(model.nodes), np.bool_)
    up[step.get("down", [])] = False
    empty = nothing(len(model.kind))
    current = found[step["current"]] if "current" in step else empty
    baseline = found[step["baseline"]] if "baseline" in step else None
    return Task(Scope(step["scope"]), np.flatnonzero(up), current, baseline, anew)


def _shortest(value: float) -> float:
    import numpy as np

    return float(str(np.float32(value)))


def _error(model: Any, failure: Any) -> str:
    """The failure in the original's words."""
    if failure.key:
        said = f"The cluster does not have enough {failure.key} capacity for all partitions. "
    else:
        partition = model.partitions.texts[failure.partition]
        group = model.groups.texts[model.group[failure.partition]]
        state = model.kinds[model.kind[failure.partition]].names[failure.state]
        nodes = ", ".join(
            f"{model.nodes.texts[n]}=[{REASONS[reason.name]}]"
            for n, reason in failure.reasons.items()
        )
        said = (
            f"Unable to find any available candidate node for partition {partition}; "
            f"Fail reasons: {{{group}-{partition}-{state}={{{nodes}}}}}"
        )
    return f"HelixRebalanceException: {said} Failure Type: {failure.kind}"[:CUT]


def _lists(given: dict[str, Any], model: Any, assignment: Any, named: bool) -> dict[str, Any]:
    node, state = assignment.node.tolist(), assignment.state.tolist()
    first, p = assignment.first.tolist(), 0
    lists: dict[str, Any] = {}
    for resource in given["resources"]:
        names = list(MODELS[resource["stateModel"]])
        rows = lists[resource["name"]] = []
        for _ in range(resource["numPartitions"]):
            row = range(first[p], first[p + 1])
            rows.append([[node[i], names[state[i]]] if named else node[i] for i in row])
            p += 1
    return lists


def _quality(model: Any, task: Any, assignment: Any) -> dict[str, Any]:
    """How even the nodes of a run are."""
    import numpy as np

    count, top = len(model.nodes), assignment.state == 0

    def used(some: Any) -> Any:
        owner, node = assignment.owner[some], assignment.node[some]
        columns = [np.bincount(node, model.weight[owner, d], count) for d in range(keys)]
        return np.array(columns).reshape(keys, count)[:, task.nodes]

    keys = len(model.keys)
    capacity = model.capacity[task.nodes].T
    usage, usage_top = used(slice(None)) / capacity, used(top) / capacity
    shares = [("utilisation", usage), ("top_state_utilisation", usage_top)]
    found: dict[str, Any] = {
        name: {key: _spread(share[d]) for d, key in enumerate(model.keys)} for name, share in shares
    }
    found["node_highest_utilisation"] = _spread(usage.max(axis=0, initial=0.0))
    for name, some in (("replica_count", slice(None)), ("top_state_count", top)):
        counts = np.bincount(assignment.node[some], minlength=count)[task.nodes]
        found[name] = _spread(counts.astype(np.float64))
    return found


def _spread(values: Any) -> dict[str, float | str]:
    """Figures of some nodes, added up one by one as the original adds."""
    count = len(values)
    if count == 0:
        return dict.fromkeys(("min", "max", "mean", "std"), 0.0) | {"max_over_mean": "NaN"}
    # the built-in sum compensates rounding from Python 3.12 on
    mean = reduce(add, values.tolist(), 0.0) / count
    squares = ((value - mean) * (value - mean) for value in values.tolist())
    deviation = reduce(add, squares, 0.0) / count
    most = float(values.max())
    return {
        "min": float(values.min()), "max": most, "mean": mean, "std": math.sqrt(deviation),
        "max_over_mean": most / mean if mean else "NaN",
    }  # fmt: skip


def _movements(model: Any, task: Any, assignment: Any) -> dict[str, int]:
    import numpy as np

    def pairs(one: Any) -> dict[tuple[int, int], int]:
        owner, node = one.owner.tolist(), one.node.tolist()
        return dict(zip(zip(owner, node, strict=True), one.state.tolist(), strict=True))

    before, after = pairs(task.current), pairs(assignment)
    moves = sum(pair not in before for pair in after)
    changed = sum(before.get(pair, state) != state for pair, state in after.items())
    down = int(np.count_nonzero(~np.isin(task.current.node, task.nodes)))
    return {
        "replica_moves": moves, "state_changes_in_place": changed,
        "replicas_on_down_nodes": down, "extra_moves": moves - down,
    }  # fmt: skip
