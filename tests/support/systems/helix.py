"""Stand-in of Helix behind ``curl`` and ``helix-admin.sh`` for runs of plans."""

# ruff: noqa: T201, PTH123 (its output is its answer; it starts without the site, and in a hurry)

import json
import sys
from urllib.parse import unquote

from stand_in import fails, save, state

TOOL, *ARGUMENTS = sys.argv[1:]
ideals, views = state["ideals"], state["views"]


def changed():
    """End a call that changed something; the one that the state names fails after its work."""
    sys.exit(int(fails(json.dumps([TOOL, *ARGUMENTS[:-1]]))))


def look(name):
    """Bring the view of a resource one step nearer to its ideal state."""
    ideal, view = ideals[name], views[name]["mapFields"]
    for partition, nodes in ideal["listFields"].items():
        held = view[partition]
        for node in [x for x in held if x not in nodes]:
            serving = [x for x in held if held[x] in ("MASTER", "SLAVE") and x != node]
            assert len(serving) >= state["least"], "served by too few"
            del held[node]
        for i, node in enumerate(nodes):
            then = "MASTER" if i == 0 else "SLAVE"
            if node not in held:
                held[node] = "OFFLINE"
            elif held[node] == "OFFLINE":
                held[node] = "SLAVE"
            elif held[nodes[0]] != "OFFLINE":
                held[node] = then


if TOOL == "curl":
    assert ARGUMENTS[:2] == ["-fsSn", "--path-as-is"]
    prefix = "http://rest/clusters/c 1/"
    assert ARGUMENTS[2].startswith(prefix)
    kind, name, what = (ARGUMENTS[2].removeprefix(prefix) + "//").split("/")[:3]
    name = unquote(name)
    if (kind, name) == ("instances", ""):
        names = state["instances"]
        print(json.dumps({"id": "c 1", "instances": names, "online": state.get("online", names),
                          "disabled": []}))  # fmt: skip
    elif kind == "statemodeldefs":
        print(json.dumps(state["models"][name]))
    elif "configs" in (kind, what):
        print(json.dumps(state["configs"][kind][name]))
    else:
        look(name)
        save()
        print(json.dumps((ideals if what == "idealState" else views)[name]))
elif ARGUMENTS[:4] == ["--zkSvr", "zk:1", "--addIdealState", "c 1"]:
    with open(ARGUMENTS[5]) as opened:
        record = json.load(opened)
    assert record["id"] == ARGUMENTS[4]
    simple, lists = record["simpleFields"], record["listFields"].values()
    wanted = simple.get("REPLICAS")
    counted = simple.get("REBALANCE_MODE") == "SEMI_AUTO" and wanted != "ANY_LIVEINSTANCE"
    if counted and any(len(row) != int(wanted) for row in lists):
        sys.exit("The ZNRecord for IDEALSTATES is not valid.")
    ideals[record["id"]] = record
    changed()
else:
    sys.exit(f"unknown: {TOOL} {ARGUMENTS}")
