"""Stand-in of Qdrant behind ``curl`` for runs of plans: ``qdrant.py curl ...``."""

# ruff: noqa: T201 (its output is its answer; it starts without the site, and in a hurry)

import json
import sys

from stand_in import fails, save, state

WORDS = sys.argv[2:]
shards, peers = state["shards"], state["peers"]


def refused(text):
    print(json.dumps({"status": {"error": f"Bad request: {text}"}}) + "\n400", end="")
    sys.exit(0)


def looked_at():
    """Let every copy come closer to its end, by one look."""
    for one in shards:
        for copy in [*one["copies"]]:
            copy["looks"] -= 1
            if copy["looks"] < 0:
                one["copies"].remove(copy)
                one["peers"] = [p for p in one["peers"] if copy["sync"] or p != copy["from"]]
                one["peers"].append(copy["to"])
    save()


def copied(one, asked, sync):
    source, target = asked["from_peer_id"], asked["to_peer_id"]
    assert asked["method"] == "stream_records"
    if any({source, target} & {copy["from"], copy["to"]} for copy in one["copies"]):
        refused(f"Shard {asked['shard_id']} is already involved in transfer")
    if source not in one["peers"] or source in state.get("down", ()):
        refused(f"Shard {asked['shard_id']} is not active on peer {source}")
    if target not in peers:
        refused(f"Peer {target} does not exist")
    one["copies"].append({"from": source, "to": target, "sync": sync, "looks": state["pace"]})


def dropped(one, asked):
    peer = asked["peer_id"]
    if peer not in one["peers"]:
        refused(f"Peer {peer} has no replica of shard {asked['shard_id']}")
    left = [p for p in one["peers"] if p != peer]
    if not [p for p in left if p not in state.get("down", ())]:
        refused("Shard must have at least one active replica")
    one["peers"] = left


path = WORDS[-1].removeprefix("http://q").partition("?")[0]
if path == "/cluster":
    listed = {str(p): {"uri": f"http://h{p}:6335/"} for p in peers}
    print(json.dumps({"result": {"peer_id": peers[0], "peers": listed, "raft_info": {}}}))
elif "-d" not in WORDS:
    looked_at()
    rows, copies = [], []
    for one in (one for one in shards if f"/collections/{one['collection']}/cluster" == path):
        for p in {*one["peers"], *(copy["to"] for copy in one["copies"])}:
            seen = "Active" if p in one["peers"] else "Partial"
            seen = "Dead" if p in state.get("down", ()) else seen
            rows.append({"shard_id": one["shard"], "peer_id": p, "state": seen})
        copies += [{"shard_id": one["shard"], **copy} for copy in one["copies"]]
    local = [one for one in rows if one["peer_id"] == peers[0]]
    remote = [one for one in rows if one["peer_id"] != peers[0]]
    print(json.dumps({"result": {"peer_id": peers[0], "local_shards": local,
                                 "remote_shards": remote, "shard_transfers": copies}}))  # fmt: skip
else:
    ((kind, asked),) = json.loads(WORDS[WORDS.index("-d") + 1]).items()
    (one,) = [one for one in shards if one["shard"] == asked["shard_id"]
              and f"/collections/{one['collection']}/cluster" == path]  # fmt: skip
    dropped(one, asked) if kind == "drop_replica" else copied(one, asked, kind != "move_shard")
    save()
    if fails(json.dumps([path, kind, asked])):
        sys.exit(7)
    print('{"result":true}\n200', end="")
