"""Return a cluster with one small change."""

from collections.abc import Callable
from typing import Any

import numpy as np

import evenkeel as ek

Given = dict[str, Any]


def settled(given: Given, placement: ek.Placement) -> Given:
    """Give the same cluster with its replicas, and who leads, as in a placement."""
    return given | {"placement": placement.nodes, "leader": placement.leader}


def heavier(given: Given, rng: np.random.Generator) -> Given:
    """Make the load of one partition 1 % larger."""
    which = int(rng.integers(len(given["load"])))
    changed = {key: np.array(given[key]) for key in ("load", "leader_load") if key in given}
    for load in changed.values():
        load[which] *= 1.01
    return given | changed


def without_a_node(given: Given, rng: np.random.Generator) -> Given:
    """Let one of the living nodes die."""
    alive = np.array(given.get("alive", np.ones(len(given["capacity"]), bool)))
    alive[rng.choice(np.flatnonzero(alive))] = False
    return given | {"alive": alive}


def with_a_node(given: Given, rng: np.random.Generator) -> Given:
    """Add a node like one that is there."""
    like = int(rng.integers(len(given["capacity"])))
    changed: Given = {"capacity": np.vstack((given["capacity"], given["capacity"][like]))}
    changed["domains"] = {
        name: np.append(of, np.asarray(of)[like]) for name, of in given["domains"].items()
    }
    for key in ("alive", "accepts", "keeps"):
        if key in given:
            changed[key] = np.append(given[key], True)
    return given | changed


def with_a_partition(given: Given, rng: np.random.Generator) -> Given:
    """Add a partition like one that is there, without nodes."""
    like = int(rng.integers(len(given["load"])))
    replicas = given["placement"].shape[1]
    changed: Given = {
        "placement": np.vstack((given["placement"], np.full((1, replicas), -1))),
        "leader": np.append(given["leader"], -1),
    }
    for key in ("load", "leader_load"):
        if key in given:
            changed[key] = np.vstack((given[key], given[key][like]))
    if "flags" in given:
        changed["flags"] = [*given["flags"], [0] * replicas]
    if "rule" in given:
        changed["rule"] = np.append(given["rule"], -1)
    if "group_rule" in given:
        changed["group"] = np.append(given["group"], np.max(given["group"]) + 1)
        changed["group_rule"] = np.append(given["group_rule"], -1)
    elif "group" in given:
        changed["group"] = np.append(given["group"], given["group"][like])
    return given | changed


def renamed(given: Given, rng: np.random.Generator) -> Given:
    """Give the nodes other names."""
    order = rng.permutation(len(given["capacity"]))
    return given | {"node_names": [f"another-{i:04}" for i in order]}


CHANGES: dict[str, Callable[[Given, np.random.Generator], Given]] = {
    "heavier": heavier,
    "without a node": without_a_node,
    "with a node": with_a_node,
    "with a partition": with_a_partition,
    "renamed": renamed,
}
