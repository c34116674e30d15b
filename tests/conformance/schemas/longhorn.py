"""Longhorn's auto-balance: counts, passes, tiers, deletions, and the rules of space."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.protocol import MISSING, Case, Document, Replay, compared

NAME = "longhorn placement"

BYTES = 10**12  # room of a disk where a case says that there is room everywhere
STEP_KEYS = {"schedulable", "expect_node_counts", "expect_sorted_counts"}

SOFT = {
    "node": "replica_soft_anti_affinity",
    "zone": "replica_zone_soft_anti_affinity",
    "disk": "replica_disk_soft_anti_affinity",
}
"""Settings by what two replicas may share."""


def recognises(path: Path, document: Document) -> bool:
    """Cases of placement that name Longhorn as their system."""
    return (
        isinstance(document, dict)
        and document.get("schema") == "placement-cases/1"
        and document.get("system") == "longhorn"
    )


def replay(path: Path, document: Any) -> Replay:
    """Answer every case of the file's category."""
    category = document.get("category")
    if category not in CATEGORIES:
        return Replay([Case(f"category {category!r}", False, "is not known")], document)
    answer, keys = CATEGORIES[category]
    cases = []
    for k, case in enumerate(document["cases"]):
        name = str(case.get("id", f"cases[{k}]"))
        unknown = sorted(case.keys() - keys - {"id", "why", "expect"})
        if unknown:
            cases.append(Case(name, False, f"keys that are not known: {', '.join(unknown)}"))
        else:
            cases += _answered(name, case, answer)
    return Replay(cases, document)


def _answered(name: str, case: dict[str, Any], answer: "Answer") -> list[Case]:
    """Answer a case; one that makes no sense disagrees, and keeps no others from being answered."""
    try:
        return answer(name, case)
    except (KeyError, TypeError, ValueError) as problem:
        return [Case(name, False, f"cannot be computed: {type(problem).__name__}: {problem}")]


def _judged(name: str, case: dict[str, Any], computed: dict[str, Any]) -> list[Case]:
    """Compare with what is expected, and put what was computed in its place."""
    expected = case.get("expect", MISSING)
    case["expect"] = computed
    return [compared(name, expected, computed)]


def _whole(number: float) -> int:
    """Return a number as the kernels take it, which would cut the rest off silently."""
    if number != int(number):
        raise ValueError(f"{number} is no whole number")
    return int(number)


def _hosts(zones: Mapping[str, str | None], schedulable: Any, **disk: Any) -> list[Any]:
    from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host

    return [
        Host(
            name=name,
            zone=zone or "",
            allow_scheduling=name in schedulable,
            disks=[Disk(name="disk", maximum=BYTES, **disk)],
        )
        for name, zone in zones.items()
    ]


def _replicas(hosts: list[str]) -> list[Any]:
    from evenkeel.systems.longhorn.auto_balance.intake import Replica

    return [Replica(name=f"r{i:04}", host=h, disk="disk") for i, h in enumerate(hosts)]


def _auto_balance(name: str, case: dict[str, Any]) -> list[Case]:
    from evenkeel.systems.longhorn.auto_balance.intake import Volume, cluster_of
    from evenkeel.systems.longhorn.auto_balance.settings import Settings
    from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance
    from evenkeel_kernels.longhorn.auto_balance import ADD
    from tests.support.longhorn.aftermath import cluster_after

    soft = case["soft_anti_affinity"]
    if unknown := sorted(soft.keys() - SOFT.keys()):
        return [Case(name, False, f"anti-affinity that is not known: {', '.join(unknown)}")]
    settings = Settings(
        replica_auto_balance=case["global_setting"],
        **{SOFT[level]: may_share for level, may_share in soft.items()},
    )
    held = [host for host, count in case["start"].items() for _ in range(count)]
    moves, cases = 0, []
    for k, step in enumerate(case["steps"]):
        if unknown := sorted(step.keys() - STEP_KEYS):
            return [Case(name, False, f"keys that are not known: {', '.join(unknown)}")]
        volume = Volume(
            name="volume",
            size=1,
            replicas=_replicas(held),
            number_of_replicas=case["number_of_replicas"],
            replica_auto_balance=case["volume_setting"],
            attached_to="node-1" if "node-1" in case["zones"] else next(iter(case["zones"])),
            robustness=case.get("robustness", "healthy"),
        )
        hosts = _hosts(case["zones"], step["schedulable"])
        work = AutoBalance(cluster_of(hosts, [volume], settings=settings))
        log = work.run()
        moves += int((log.kind == ADD).sum())
        after = cluster_after(work)
        places = after.native.disks.host[after.placement.node[after.placement.node >= 0]]
        held = [after.native.hosts.names[h] for h in places.tolist()]
        cases += _counts(f"{name}, step {k + 1}", step, Counter(held), list(case["zones"]))
    expected = case.get("moves", MISSING)
    case["moves"] = moves
    return cases if expected is MISSING else [*cases, compared(f"{name}, moves", expected, moves)]


def _counts(name: str, step: dict[str, Any], held: Counter[str], hosts: list[str]) -> list[Case]:
    """Compare the counts of a step, by host and in order, with those that are expected."""
    told = [key for key in ("expect_node_counts", "expect_sorted_counts") if key in step]
    named = step.get("expect_node_counts", hosts) or hosts
    computed = {
        "expect_node_counts": {host: held[host] for host in named},
        "expect_sorted_counts": sorted(held[host] for host in hosts),
    }
    expected = {key: step[key] for key in told}
    step |= {key: computed[key] for key in told or computed}
    if not told:
        return [Case(name, None)]
    return [compared(name, expected, {key: computed[key] for key in told})]


def _replenish_count(name: str, case: dict[str, Any]) -> list[Case]:
    from evenkeel.systems.longhorn.auto_balance.intake import Volume, cluster_of
    from evenkeel.systems.longhorn.auto_balance.settings import Settings, spelled
    from evenkeel.systems.longhorn.auto_balance.stepping import next_action

    mode = spelled(case["mode"])
    if mode == "least-effort":
        zones, held = _least_effort_hosts(case)
        wanted = case["replicas"]
    elif mode == "best-effort":
        zones, held = _best_effort_hosts(case)
        wanted = sum(held)
    else:
        return [Case(name, False, f"mode {mode!r} is not known")]
    hosts = {f"host-{h:03}": zone for h, zone in enumerate(zones)}
    places = [host for host, count in zip(hosts, held, strict=True) for _ in range(count)]
    volume = Volume(
        name="volume",
        size=1,
        replicas=_replicas(places),
        number_of_replicas=wanted,
        attached_to=next(iter(hosts)),
    )
    settings = Settings(replica_auto_balance=mode, replica_soft_anti_affinity=True)
    told = next_action(cluster_of(_hosts(hosts, hosts), [volume], settings=settings), "volume")
    if told.kind not in ("add", "nothing"):
        return [Case(name, False, f"is no volume with as many replicas as it wants: {told}")]
    return _judged(name, case, {"replenish": told.asked})


def _least_effort_hosts(case: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Zones and counts of hosts that are occupied and free as the case says."""
    occupied, in_zones = case["occupied_nodes"], case["occupied_zones"]
    free, free_zones = case["unused_schedulable_nodes"], case["unused_schedulable_zones"]
    if not 0 < in_zones <= occupied <= case["replicas"] or free_zones > free:
        raise ValueError("there are no such hosts and zones")
    zones = [f"zone-{h % in_zones}" for h in range(occupied)]
    kind, count = ("free", free_zones) if free_zones else ("zone", in_zones)
    zones += [f"{kind}-{h % count}" for h in range(free)]
    held = [1] * occupied + [0] * free
    held[0] += case["replicas"] - occupied
    return zones, held


def _best_effort_hosts(case: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Zones and counts of owners in one zone, and as many free zones as least-effort asks for."""
    held = [count for count in case["replicas_per_owner"] if count]  # others own nothing
    asked = case["least_effort_result"]
    if not 0 <= asked < max(sum(held), 1):
        raise ValueError(f"least-effort cannot ask for {asked} of {sum(held)} replicas")
    return ["zone"] * len(held) + [f"free-{h}" for h in range(asked)], held + [0] * asked


def _deletion_choice(name: str, case: dict[str, Any]) -> list[Case]:
    from evenkeel.systems.longhorn.auto_balance.intake import (
        Disk,
        Host,
        Replica,
        Volume,
        cluster_of,
    )
    from evenkeel.systems.longhorn.auto_balance.settings import Settings
    from evenkeel.systems.longhorn.auto_balance.stepping import next_action

    known = {"replica", "disk", "node", "zone", "disk_available", "evict"}
    rows = case["replicas"]
    if unknown := sorted({key for row in rows for key in row} - known):
        return [Case(name, False, f"keys that are not known: {', '.join(unknown)}")]
    zones = {row["node"]: row.get("zone") or "" for row in rows}
    free = {(row["node"], row["disk"]): _whole(row["disk_available"]) for row in rows}
    hosts = [
        Host(
            name=host,
            zone=zone,
            disks=[
                Disk(name=disk, maximum=BYTES, available=space)
                for (on, disk), space in free.items()
                if on == host
            ],
        )
        for host, zone in zones.items()
    ]
    replicas = [
        Replica(
            name=row["replica"],
            host=row["node"],
            disk=row["disk"],
            eviction_requested=row.get("evict", False),
        )
        for row in rows
    ]
    volume = Volume(
        name="volume",
        size=1,
        replicas=replicas,
        number_of_replicas=len(rows) - 1,
        attached_to=rows[0]["node"],
    )
    settings = Settings(
        replica_auto_balance=case["setting"],
        replica_soft_anti_affinity=True,
        replica_auto_balance_disk_pressure_percentage=0,
    )
    told = next_action(cluster_of(hosts, [volume], settings=settings), "volume")
    gone = told.replica if told.kind == "delete" else None
    return _judged(name, case, {"delete": gone})


def _disk_choice(name: str, case: dict[str, Any]) -> list[Case]:
    import numpy as np

    from evenkeel.systems.longhorn.auto_balance.compile import ranks
    from evenkeel.systems.longhorn.auto_balance.stepping import host_scores
    from evenkeel_kernels.longhorn.state import levellest

    hosts = list(case["usable"])
    disks = [(h, disk) for h, host in enumerate(hosts) for disk in case["usable"][host]]
    on = np.array([h for h, _ in disks], np.int32)
    usable = np.array([_whole(case["usable"][hosts[h]][disk]) for h, disk in disks], np.int64)
    candidate = np.ones(len(disks), np.bool_)

    def scratch(n: int) -> tuple[Any, Any, Any]:
        return np.zeros(n, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.int64)

    total, fit, spread = scratch(len(hosts))
    rank = ranks(hosts).astype(np.int32)
    size = _whole(case["size"])
    h = levellest(on, rank, candidate, usable, size, total, fit, spread)
    scores = host_scores(total, spread, size)
    computed: dict[str, Any] = {
        "node": None,
        "disk": None,
        "node_scores": {hosts[i]: _finite(round(score, 6)) for i, score in scores.items()},
    }
    if h >= 0:
        itself = np.arange(len(disks), dtype=np.int32)
        names = ranks([disk for _, disk in disks]).astype(np.int32)
        d = levellest(itself, names, on == h, usable, size, *scratch(len(disks)))
        computed |= {"node": hosts[h], "disk": disks[d][1]}
    expected = case.get("expect", MISSING)
    if isinstance(expected, dict) and isinstance(expected.get("node_scores"), dict):
        finite = {host: _finite(score) for host, score in expected["node_scores"].items()}
        case["expect"] = expected | {"node_scores": finite}
    return _judged(name, case, computed)


def _finite(score: Any) -> Any:
    """Return a score; None, as JSON has no infinity, for the worst, where nothing is left."""
    return None if isinstance(score, float) and math.isinf(score) else score


def _disk_feasibility(name: str, case: dict[str, Any]) -> list[Case]:
    from evenkeel_kernels.longhorn.state import leaves_free, share_of

    disk, replica = case["disk"], case["replica"]
    if disk.keys() != {"maximum", "available", "scheduled", "reserved"}:
        return [Case(name, False, f"a disk of {sorted(disk)} is not known")]
    if replica.keys() != {"size", "required"}:
        return [Case(name, False, f"a replica of {sorted(replica)} is not known")]
    minimal = share_of(disk["maximum"], case["minimal_available_pct"])
    free = leaves_free(disk["maximum"], disk["available"], replica["required"], minimal)
    promised = share_of(disk["maximum"] - disk["reserved"], case["over_provisioning_pct"])
    fits = replica["size"] + disk["scheduled"] <= promised
    return _judged(name, case, {"schedulable": bool(free and fits)})


def _disk_pressure(name: str, case: dict[str, Any]) -> list[Case]:
    from evenkeel_kernels.longhorn.state import stays_below, under_pressure

    disk, percent = case["disk"], case["pressure_pct"]
    if case["group"] == "pressure" and disk.keys() == {"maximum", "available", "reserved"}:
        pressed = under_pressure(disk["maximum"], disk["available"], disk["reserved"], percent)
        return _judged(name, case, {"under_pressure": bool(pressed)})
    if case["group"] == "target_stays_below" and disk.keys() == {
        "maximum",
        "scheduled",
        "reserved",
    }:
        below = stays_below(
            disk["maximum"], disk["scheduled"], disk["reserved"], case["required"], percent
        )
        return _judged(name, case, {"acceptable": bool(below)})
    return [Case(name, False, f"group {case['group']!r} of {sorted(disk)} is not known")]


def _placement_tiers(name: str, case: dict[str, Any]) -> list[Case]:
    from evenkeel.systems.longhorn.auto_balance.intake import Volume, cluster_of
    from evenkeel.systems.longhorn.auto_balance.settings import Settings
    from evenkeel.systems.longhorn.auto_balance.stepping import next_action

    existing, hosts = case["existing"], case["nodes"]
    volume = Volume(
        name="volume",
        size=1,
        replicas=_replicas(existing),
        number_of_replicas=len(existing) + 1,
        attached_to=next(iter(hosts), None),
    )
    settings = Settings(
        replica_soft_anti_affinity=case["node_soft"],
        replica_zone_soft_anti_affinity=case["zone_soft"],
    )
    told = next_action(cluster_of(_hosts(hosts, hosts), [volume], settings=settings), "volume")
    if told.kind not in ("add", "nothing"):
        return [Case(name, False, f"asks for no replica: {told}")]
    candidates = sorted(disk.partition("/")[0] for disk in told.candidates)
    expected = case.get("expect", MISSING)
    if isinstance(expected, dict) and "candidates" in expected:
        expected = {**expected, "candidates": sorted(expected["candidates"])}
    case["expect"] = {"candidates": candidates}
    return [compared(name, expected, case["expect"])]


Answer = Callable[[str, dict[str, Any]], list[Case]]

CATEGORIES: dict[str, tuple[Answer, set[str]]] = {
    "auto_balance": (
        _auto_balance,
        {
            "zones", "soft_anti_affinity", "number_of_replicas", "global_setting",
            "volume_setting", "start", "steps", "moves", "robustness",
        },
    ),
    "deletion_choice": (_deletion_choice, {"replicas", "setting"}),
    "disk_choice": (_disk_choice, {"usable", "size"}),
    "disk_feasibility": (
        _disk_feasibility, {"disk", "replica", "minimal_available_pct", "over_provisioning_pct"},
    ),
    "disk_pressure": (_disk_pressure, {"group", "disk", "pressure_pct", "required"}),
    "placement_tiers": (_placement_tiers, {"nodes", "existing", "node_soft", "zone_soft"}),
    "replenish_count": (
        _replenish_count,
        {
            "replicas", "occupied_zones", "occupied_nodes", "unused_schedulable_zones",
            "unused_schedulable_nodes", "mode", "least_effort_result", "replicas_per_owner",
        },
    ),
}  # fmt: skip
