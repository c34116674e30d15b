"""Stand-in of the ``nats`` tool and its servers for runs of plans: ``nats.py nats ...``."""

# ruff: noqa: T201 (its output is its answer; it starts without the site, and in a hurry)

import json
import sys

from stand_in import fails, save, state

_, option, context, *WORDS = sys.argv[1:]
assert option == "--context"
servers, streams = state["servers"], state["streams"]


def refused(description, code=0):
    return {"error": {"err_code": code, "description": description}}


def moved(name, body):
    """Move a stream onto the one server with all tags of the request."""
    one = streams[name]
    if body["server"] not in one["peers"]:
        return refused("peer not a member", 10040)
    fit = [
        server for server, tags in servers.items()
        if server not in one["peers"] and {*body.get("tags", ())} <= {*tags}
    ]  # fmt: skip
    if len(fit) != 1:
        return refused(f"{len(fit)} suitable peers")
    one["peers"] = [peer for peer in one["peers"] if peer != body["server"]] + fit
    one["leader"] = one["leader"] if one["leader"] in one["peers"] else one["peers"][0]
    one["behind"] = state["pace"]
    return {"config": {"num_replicas": len(one["peers"])}}


def led(name, body):
    one, server = streams[name], body["placement"]["preferred"]
    if server == one["leader"] or server not in one["peers"]:
        word = "is already leader" if server == one["leader"] else "not known"
        return refused(f'preferred server "{server}" {word}')
    one["leader"] = server
    return {"success": True}


def group(name, by):
    one = streams[name]
    others = [{"name": peer, "current": True} for peer in one["peers"] if peer != by]
    found = {"name": "C", "leader": one["leader"], "replicas": others}
    return found | ({"desired": {"replicas": []}} if one["behind"] > 0 else {})


def detail(name, by):
    config = {"name": name, "num_replicas": len(streams[name]["peers"]), "storage": "file"}
    return {"name": name, "cluster": group(name, by), "config": config, "state": {"bytes": 1}}


if WORDS[:3] == ["server", "request", "jetstream"]:
    assert context == "sys tem"
    names = [*servers]
    for server in (one for one in names if one not in state.get("down", ())):
        replicas = [{"name": one, "current": one not in state.get("down", ())} for one in names[1:]]
        data = {
            "server_id": server, "config": {"max_storage": 100, "max_memory": 100},
            "meta_cluster": {"leader": names[0], "replicas": replicas},
            "account_details": [{"name": "A", "id": "A", "stream_detail": [
                detail(name, server) for name in streams if server in streams[name]["peers"]
            ]}],
        }  # fmt: skip
        origin = {"name": server, "id": server, "cluster": "C", "ver": "2.15.2",
                  "tags": servers[server]}  # fmt: skip
        print(json.dumps({"server": origin, "data": data}))
else:
    assert WORDS[:2] == ["request", "--raw"]
    subject, body = WORDS[2:]
    what, name = subject.rsplit(".", 1)
    request = json.loads(body) if body else None
    if what == "$JS.API.STREAM.INFO":
        assert context == "a's"
        streams[name]["behind"] -= 1
        save()
        print(json.dumps(detail(name, streams[name]["leader"])))
    else:
        moves = what == "$JS.API.ACCOUNT.STREAM.MOVE.A"
        assert moves or what == "$JS.API.STREAM.LEADER.STEPDOWN"
        assert context == ("sys tem" if moves else "a's")
        answer = (moved if moves else led)(name, request)
        save()
        print(json.dumps(answer) + "\n\n")
        sys.exit(int(fails(json.dumps(WORDS))))
