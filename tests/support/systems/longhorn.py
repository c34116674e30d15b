"""Stand-in of Longhorn's ``kubectl`` for runs of plans: ``longhorn.py kubectl ARGUMENT...``."""

# ruff: noqa: T201, PTH123 (its output is its answer; it starts without the site, and in a hurry)

import json
import re
import sys

from stand_in import fails, save, state

ARGUMENTS = sys.argv[2:]
items = state["items"]
BUILT = "2026-01-02T03:04:05Z"


def changed():
    """End a call that changed something; the one that the state names fails after its work."""
    sys.exit(int(fails(json.dumps(ARGUMENTS))))


def named(kind, name):
    return next(x for x in items if x["kind"] == kind and x["metadata"]["name"] == name)


def field(one, path):
    for key in path.strip(".").split("."):
        one = one.get(key, "")
    return one


def on(labels):
    """The replicas with such labels."""
    wanted = dict(pair.split("=") for pair in labels.split(","))
    return [
        x for x in items
        if x["kind"] == "Replica" and wanted.items() <= x["metadata"]["labels"].items()
    ]  # fmt: skip


assert ARGUMENTS[:2] == ["-n", state["namespace"]], ARGUMENTS
verb, *rest = ARGUMENTS[2:]
for one in items:
    if one["kind"] == "Replica" and "looks" in one:
        one["looks"] -= 1
        if one["looks"] < 0:
            del one["looks"]
            one["spec"]["healthyAt"] = BUILT
            one["status"] = {"currentState": "running"}
if verb == "get" and rest[:2] == ["-o", "json"]:
    assert rest[2] == ",".join(
        f"{kind}.longhorn.io" for kind in ("nodes", "volumes", "replicas", "settings")
    )
    shown = [{k: v for k, v in one.items() if k != "looks"} for one in items]
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": shown}))
    save()
elif verb == "get":
    labelled = rest[0] == "replicas.longhorn.io"
    found = on(rest[2]) if labelled else [named("Volume", rest[1])]
    if rest[-1] == "name":
        print("".join(f"replica.longhorn.io/{one['metadata']['name']}\n" for one in found), end="")
    else:
        template = rest[-1].removeprefix("jsonpath=").replace(".items[*]", "")
        print(re.sub(r"\{([^}]*)\}", lambda x: " ".join(
            field(one, x[1]) for one in found
        ), template), end="")  # fmt: skip
    save()
elif verb == "patch":
    assert rest[0] == "volumes.longhorn.io"
    assert rest[2] == "--type=merge"
    spec = named("Volume", rest[1])["spec"]
    for key, value in json.loads(rest[4])["spec"].items():
        spec.pop(key, None) if value is None else spec.update({key: value})
    changed()
elif verb == "create":
    with open(rest[1]) as opened:
        one = json.load(opened)
    volume = named("Volume", one["spec"]["volumeName"])
    assert volume["spec"]["replicaAutoBalance"] in ("disabled", "ignored")
    assert all(x["metadata"]["name"] != one["metadata"]["name"] for x in items)
    items.append(one | {"status": {"currentState": "stopped"}, "looks": state["pace"]})
    changed()
elif verb == "delete":
    assert rest[:2] == ["replicas.longhorn.io", "-l"]
    one = next(iter(on(rest[2])), None)
    if one is None:
        print("No resources found")
        sys.exit(0)
    left = [
        x
        for x in items
        if x["kind"] == "Replica"
        and x is not one
        and x["spec"]["volumeName"] == one["spec"]["volumeName"]
        and x["spec"]["healthyAt"]
    ]
    assert len(left) >= named("Volume", one["spec"]["volumeName"])["spec"]["numberOfReplicas"]
    items.remove(one)
    changed()
else:
    sys.exit(f"unknown: {ARGUMENTS}")
