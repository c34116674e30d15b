"""Stand-in of ``ceph`` for runs of plans: ``ceph.py ceph ARGUMENT...``."""

# ruff: noqa: T201 (its output is its answer; it starts without the site, and in a hurry)

import json
import sys

from stand_in import fails, save, state

ARGUMENTS = sys.argv[2:]
items, copying = state["items"], state["copying"]


def changed():
    """End a call that changed something; the one that the state names fails after its work."""
    sys.exit(int(fails(" ".join(ARGUMENTS))))


def up(pg):
    held = [*state["natural"][pg]]
    for source, target in items.get(pg, []):
        if source in held and target not in held:
            held[held.index(source)] = target
    return held


def fits(pg):
    hosts = [state["host"][str(osd)] for osd in up(pg)]
    return len({*hosts}) == len(hosts)


command = ARGUMENTS[:2]
if command == ["osd", "dump"]:
    pairs = [
        {"pgid": pg, "mappings": [{"from": a, "to": b} for a, b in own]}
        for pg, own in items.items()
    ]
    print(json.dumps(state["osd_dump"] | {"pg_upmap_items": pairs}))
elif command == ["osd", "crush"]:
    print(json.dumps(state["crush"]))
elif command == ["pg", "dump"]:
    print("dumped all", file=sys.stderr)
    stats = []
    down = {one["osd"] for one in state["osd_dump"]["osds"] if not one["up"]}
    for pg, size in state["bytes"].items():
        now = [osd for osd in up(pg) if osd not in down]
        state_of = "active+clean" if len(now) == len(up(pg)) else "active+undersized+degraded"
        one = {"pgid": pg, "up": now, "acting": now, "state": state_of}
        if pg in copying:
            held = [osd for osd in copying[pg]["from"] if osd not in down]
            going = state_of.replace("+clean", "") + "+remapped+backfilling"
            one |= {"acting": held, "state": going}
            copying[pg]["looks"] -= 1
            if copying[pg]["looks"] < 0:
                del copying[pg]
        stats.append(one | {"up_primary": now[0], "stat_sum": {"num_bytes": size}})
    print(json.dumps({"pg_ready": True, "pg_map": {"pg_stats": stats}}))
    save()
elif command in (["osd", "pg-upmap-items"], ["osd", "rm-pg-upmap-items"]):
    pg, *osds = ARGUMENTS[2:]
    numbers = [int(osd) for osd in osds]
    if any(str(osd) not in state["host"] for osd in numbers):
        sys.exit(2)
    before, kept = up(pg), items.pop(pg, None)
    if numbers:
        items[pg] = list(zip(numbers[::2], numbers[1::2], strict=True))
    if not fits(pg):  # dropped without a word
        items.pop(pg)
        if kept:
            items[pg] = kept
    elif up(pg) != before:
        copying[pg] = {"from": before, "looks": state["pace"]}
    changed()
else:
    sys.exit(f"unknown: {ARGUMENTS}")
