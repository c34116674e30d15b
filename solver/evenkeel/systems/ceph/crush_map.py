"""A CRUSH map of the model out of the documents that say it, with everything at its place."""

from collections.abc import Collection, Sequence

from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.systems.ceph.crush.crush_checks import CHOOSING, OPERATIONS, is_known
from evenkeel.systems.ceph.crush.crush_map import (
    Bucket,
    ChooseArg,
    CrushMap,
    CrushRule,
    Step,
)
from evenkeel.systems.ceph.documents import BucketDump, CrushDump, RuleDump

MOST_TRIES = 10_000
"""Greatest value of a tunable: more than this would only take time."""

FREE_IDS = 2**14
"""Ids of devices and buckets that even the smallest file may have."""

WITHOUT_RANGE = {
    "straw_calc_version", "allowed_bucket_algs", "profile", "optimal_tunables", "legacy_tunables",
    "minimum_required_version",
}  # fmt: skip


def unread_rules(found: CrushDump) -> dict[int, str]:
    """Return why rules cannot be run, by their ids: MSR rules of version 19, for instance."""
    buckets = {one.id: one for one in found.buckets}
    devices = {one.id for one in found.devices}
    types = {one.name for one in found.types}
    other: dict[int, str] = {}
    for one in found.buckets:
        if one.alg != "straw2" or one.hash != "rjenkins1":
            kind = one.alg if one.alg != "straw2" else one.hash
            other[one.id] = f"bucket {one.name} chooses by {kind}, and only straw2 is supported"

    def below(at: int, seen: set[int]) -> str:
        if at >= 0 or at not in buckets or at in seen:
            return ""
        seen.add(at)
        inside = (below(item.id, seen) for item in buckets[at].items)
        return other.get(at, "") or next((one for one in inside if one), "")

    unread: dict[int, str] = {}
    for rule in found.rules:
        for step in rule.steps:
            why = ""
            if step.op != "noop" and step.op not in OPERATIONS:
                why = f"its step {step.op} is not supported"
            elif step.op == "take" and step.item not in buckets and step.item not in devices:
                why = f"it takes {step.item_name or step.item}, which does not exist"
            elif step.op in CHOOSING and step.type not in types:
                why = f"it chooses {step.type}, a type that the map does not have"
            elif step.op == "take":
                why = below(step.item, set())
            if why:
                unread.setdefault(rule.rule_id, why)
    return unread


def crush_map_of(
    faults: FaultList,
    name: str,
    found: CrushDump,
    devices: int,
    size: int,
    unread: Collection[int] = (),
) -> CrushMap | None:
    """Build the map; None after noting what is wrong with it. ``size`` bounds the ids used.

    Rules that are ``unread`` are left out, and tunables that nobody knows.
    """
    before = len(faults.faults)
    most = max(FREE_IDS, size)
    for kind, ids in (
        ("devices", [one.id for one in found.devices]),
        ("buckets", [-one.id for one in found.buckets]),
        ("items", [abs(item.id) for one in found.buckets for item in one.items]),
    ):
        if max(ids, default=0) >= most:
            faults.add(
                f"{name}: {kind}",
                max(ids),
                f"is an id beyond {most}, too large for a file of this size",
            )
    tunables: dict[str, int] = {}
    for key, value in found.tunables.items():
        if key in WITHOUT_RANGE or not is_known(key):
            continue
        if not isinstance(value, int) or not 0 <= value <= MOST_TRIES:
            message = f"must be a whole number from 0 to {MOST_TRIES}"
            faults.add(f"{name}: tunables.{key}", value, message)
        else:
            tunables[key] = value
    if len(faults.faults) > before:
        return None
    known = max((one.id + 1 for one in found.devices), default=0)
    try:
        return CrushMap(
            max(known, devices),
            {one.name: one.type_id for one in found.types},
            [_bucket(one) for one in found.buckets],
            [_rule(one) for one in found.rules if one.rule_id not in unread],
            tunables,
            {
                key: [
                    ChooseArg(
                        one.bucket_id,
                        [[round(weight * 0x10000) for weight in row] for row in one.weight_set],
                        one.ids,
                    )
                    for one in sets
                ]
                for key, sets in found.choose_args.items()
            },
        )
    except InvalidInput as error:
        for fault in error.faults:
            faults.add(f"{name}: {fault.path}", fault.value, fault.message)
        return None


def _bucket(one: BucketDump) -> Bucket:
    """Return a bucket; where nothing weighs anything, CRUSH never gets there."""
    items: Sequence[tuple[int, int]] = [(item.id, item.weight) for item in one.items]
    if not any(weight for _, weight in items):
        items = []
    # rules that reach one of another algorithm are not run
    return Bucket(one.id, one.name, one.type_name, items)


def _rule(one: RuleDump) -> CrushRule:
    steps = [
        Step(step.op, step.item if step.op == "take" else step.num, step.type)
        for step in one.steps
        if step.op != "noop"
    ]
    return CrushRule(one.rule_id, one.rule_name, steps)
