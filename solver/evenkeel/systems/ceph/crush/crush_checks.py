"""What a CRUSH map may hold: its operations and tunables, and what a monitor would refuse."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from evenkeel.model.errors import FaultList
from evenkeel_kernels.ceph import crush as crush_ceph
from evenkeel_kernels.ceph.crush import Tunables

if TYPE_CHECKING:
    from evenkeel.systems.ceph.crush.crush_map import CrushMap

OPERATIONS = {
    "take": crush_ceph.TAKE,
    "emit": crush_ceph.EMIT,
    "choose_firstn": crush_ceph.CHOOSE_FIRSTN,
    "choose_indep": crush_ceph.CHOOSE_INDEP,
    "chooseleaf_firstn": crush_ceph.CHOOSELEAF_FIRSTN,
    "chooseleaf_indep": crush_ceph.CHOOSELEAF_INDEP,
    "set_choose_tries": crush_ceph.SET_CHOOSE_TRIES,
    "set_chooseleaf_tries": crush_ceph.SET_CHOOSELEAF_TRIES,
    "set_choose_local_tries": crush_ceph.SET_CHOOSE_LOCAL_TRIES,
    "set_chooseleaf_vary_r": crush_ceph.SET_CHOOSELEAF_VARY_R,
    "set_chooseleaf_stable": crush_ceph.SET_CHOOSELEAF_STABLE,
}
CHOOSING = {name: code for name, code in OPERATIONS.items() if name.startswith("choose")}

WITHOUT_EFFECT = {
    "choose_local_fallback_tries": 0,
    "straw_calc_version": None,
    "allowed_bucket_algs": None,
    "minimum_required_version": None,
    "profile": None,
    "optimal_tunables": None,
    "legacy_tunables": None,
    "has_v2_rules": None,
    "has_v3_rules": None,
    "has_v4_buckets": None,
    "has_v5_rules": None,
    "require_feature_tunables": None,
    "require_feature_tunables2": None,
    "require_feature_tunables3": None,
    "require_feature_tunables5": None,
    "msr_descents": None,
    "msr_collision_tries": None,
}
"""Tunables that bear on no rule and no bucket of ours; where a value stands, only that one."""


def check_map(crush: CrushMap) -> None:
    """Raise ``InvalidInput`` with everything that is wrong with a map."""
    faults = FaultList()
    _check_buckets(crush, faults)
    _check_tree(crush, faults)
    _check_rules(crush, faults)
    _check_tunables(crush, faults)
    _check_choose_args(crush, faults)
    faults.raise_if_any()


def _check_buckets(crush: CrushMap, faults: FaultList) -> None:
    seen: dict[int, str] = {}
    for bucket in crush.buckets:
        where = f"buckets[{bucket.name}]"
        if bucket.id >= 0:
            faults.add(f"{where}.id", bucket.id, "must be below 0")
        if bucket.id in seen:
            faults.add(f"{where}.id", bucket.id, f"is also the id of {seen[bucket.id]}")
        seen[bucket.id] = bucket.name
        if crush.types.get(bucket.type, 0) <= 0:
            faults.add(f"{where}.type", bucket.type, "is not a type of buckets in this map")
        if bucket.alg != "straw2":
            faults.add(f"{where}.alg", bucket.alg, "is not supported; only straw2 is")
        if bucket.hash != "rjenkins1":
            faults.add(f"{where}.hash", bucket.hash, "is not supported; only rjenkins1 is")
        for item, weight in bucket.items:
            if not 0 <= weight < 1 << 32:
                faults.add(f"{where}.items[{item}]", weight, "must be a 16.16 weight of 32 bits")
        if bucket.items and not any(weight for _, weight in bucket.items):
            faults.add(where, 0, "all of its items weigh nothing, so that the first would get all")


def _check_tree(crush: CrushMap, faults: FaultList) -> None:
    ids = {bucket.id for bucket in crush.buckets}
    for bucket in crush.buckets:
        for item, _ in bucket.items:
            if item >= crush.devices:
                faults.add(
                    f"buckets[{bucket.name}].items", item, f"device ids lie below {crush.devices}"
                )
            elif item < 0 and item not in ids:
                faults.add(f"buckets[{bucket.name}].items", item, "no bucket has this id")
    below = {b.id: [item for item, _ in b.items if item < 0] for b in crush.buckets}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        names = {bucket.id: bucket.name for bucket in crush.buckets}
        path = " < ".join(names[each] for each in error.args[1])
        faults.add("buckets", path, "a bucket may not be within itself")


def _check_rules(crush: CrushMap, faults: FaultList) -> None:
    ids = {bucket.id for bucket in crush.buckets}
    seen: set[int] = set()
    for rule in crush.rules:
        if rule.id in seen:
            faults.add(f"rules[{rule.name}].id", rule.id, "two rules have this number")
        seen.add(rule.id)
        for k, step in enumerate(rule.steps):
            where = f"rules[{rule.name}].steps[{k}]"
            if step.operation not in OPERATIONS:
                known = ", ".join(OPERATIONS)
                faults.add(where, step.operation, f"is not an operation; those are {known}")
            elif step.operation == "take":
                if not (step.number in ids or 0 <= step.number < crush.devices):
                    faults.add(where, step.number, "takes a bucket or device that does not exist")
            elif step.type not in crush.types and step.operation in CHOOSING:
                faults.add(where, step.type, "chooses a type that the map does not have")


def _check_tunables(crush: CrushMap, faults: FaultList) -> None:
    for name, value in crush.tunables.items():
        if name in WITHOUT_EFFECT:
            needed = WITHOUT_EFFECT[name]
            if needed is not None and value != needed:
                faults.add(f"tunables[{name}]", value, f"only {needed} is supported")
        elif name not in Tunables._fields:
            faults.add(f"tunables[{name}]", value, "is not a tunable")
        elif not 0 <= value < 1 << 31:
            faults.add(f"tunables[{name}]", value, "must be a whole number from 0")


def is_known(tunable: str) -> bool:
    """Whether a tunable is one of those that the map or its tools have."""
    return tunable in WITHOUT_EFFECT or tunable in Tunables._fields


def _check_choose_args(crush: CrushMap, faults: FaultList) -> None:
    sizes = {bucket.id: len(bucket.items) for bucket in crush.buckets}
    for name, args in crush.choose_args.items():
        for arg in args:
            where = f"choose_args[{name}][{arg.bucket}]"
            if arg.bucket not in sizes:
                faults.add(where, arg.bucket, "no bucket has this id")
                continue
            size = sizes[arg.bucket]
            for row in arg.weights:
                if len(row) != size:
                    faults.add(f"{where}.weights", len(row), f"must be {size} weights")
                elif any(not 0 <= weight < 1 << 32 for weight in row):
                    faults.add(f"{where}.weights", row, "must be 16.16 weights of 32 bits")
            if arg.ids and len(arg.ids) != size:
                faults.add(f"{where}.ids", len(arg.ids), f"must be {size} ids")
