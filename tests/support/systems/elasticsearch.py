"""Stand-in of Elasticsearch behind ``curl`` for runs of plans: ``elasticsearch.py curl ...``."""

# ruff: noqa: T201, PTH123 (its output is its answer; it starts without the site, and in a hurry)

import json
import sys

from stand_in import fails, save, state

ARGUMENTS = sys.argv[2:]
shards, nodes, settings = state["shards"], state["nodes"], state["settings"]


def changed(what):
    """Count a call that changes something; the one that the state names fails after its work."""
    if fails(json.dumps(what)):
        sys.exit(7)


def answer(body, code=200):
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    if "-o" in ARGUMENTS:
        with open(ARGUMENTS[ARGUMENTS.index("-o") + 1], "w") as out:
            out.write(text)
    else:
        print(text, end="")
    if "-w" in ARGUMENTS:
        print(f"\n{code}", end="")
    elif "-f" in ARGUMENTS and code >= 400:
        sys.exit(22)


def body():
    if "-d" in ARGUMENTS:
        return json.loads(ARGUMENTS[ARGUMENTS.index("-d") + 1])
    source = ARGUMENTS[ARGUMENTS.index("--data-binary") + 1]
    if source == "@-":
        return json.loads(sys.stdin.read())
    with open(source[1:]) as opened:
        return json.load(opened)


def nested(names, value):
    for name in reversed(names):
        value = {name: value}
    return value


def row(one):
    kind, node, target = ("p" if one["primary"] else "r"), one["node"], one.get("to")
    seen = {"index": one["index"], "shard": str(one["shard"]), "prirep": kind, "state": "STARTED"}
    if target is not None:
        one["looks"] -= 1
        seen |= {"state": "RELOCATING", "node": f"{node} -> 10.0.0.1 id-{target} {target}"}
        if one["looks"] < 0:
            one["node"] = one.pop("to")
    else:
        seen |= {"node": node, "ip": "10.0.0.1", "id": f"id-{node}"}
    return seen | {"docs": "1", "store": str(one.get("store", 1000))}


def moved(command):
    told = command["move"]
    own = [x for x in shards if (x["index"], x["shard"]) == (told["index"], told["shard"])]
    held = {x["node"] for x in own} | {x.get("to") for x in own}
    one = next((x for x in own if x["node"] == told["from_node"] and "to" not in x), None)
    if one is None or told["to_node"] in held or told["to_node"] not in nodes:
        return False
    one |= {"to": told["to_node"], "looks": state["pace"]}
    return True


method, path = ARGUMENTS[ARGUMENTS.index("-X") + 1], ARGUMENTS[-1].removeprefix("http://es")
name = "cluster.routing.rebalance.enable"
if path.startswith("/_cat/shards"):
    answer([row(one) for one in shards])
    save()
elif path == "/_nodes":
    told = {"transport_address": "x", "ip": "10.0.0.1", "roles": ["data"], "attributes": {}}
    answer({"nodes": {f"id-{node}": {"name": node} | told for node in nodes}})
elif path.startswith("/_cluster/settings") and method == "GET":
    scope = path.split("filter_path=")[1].split(".")[0]
    value = settings[scope].get(name)
    answer({} if value is None else {scope: nested(name.split("."), value)})
elif path == "/_cluster/settings":
    for scope, own in body().items():
        value = own[name] if name in own else own["cluster"]["routing"]["rebalance"]["enable"]
        settings[scope] = {} if value is None else {name: value}
    changed([path, settings])
elif path.startswith("/_cluster/reroute"):
    asked = body()["commands"]
    assert settings["persistent"] == settings["transient"] == {name: "none"}
    fits = all(map(moved, asked))
    answer({"acknowledged": fits}, 200 if fits else 400)
    changed([path, asked]) if fits else save()
elif path.startswith("/_cluster/health"):
    for one in shards:
        row(one)
    save()
    answer({"relocating_shards": sum("to" in one for one in shards)})
else:
    sys.exit(f"unknown: {ARGUMENTS}")
