"""Take the rows of nodes and replicas out of JSON that systems without a reader answer with."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Row = dict[str, Any]

# how PD, Solr, Proxmox and MongoDB write what has rows in it
NESTED = re.compile(
    rb'\s*(?:\{\s*(?:"count"\s*:\s*\d+\s*,\s*)?"(?:stores|regions)"\s*:\s*\[\s*\{'
    rb'|(?:\[\s*)?\{\s*"id"\s*:\s*\d+\s*,\s*"start_key"\s*:'
    rb'|\{(?:\s*"responseHeader"\s*:\s*\{[^{}]*\}\s*,)?\s*"cluster"\s*:\s*\{'
    rb'|(?:\{\s*"data"\s*:\s*)?\[\s*\{[^{}]*"type"\s*:\s*"(?:node|qemu|lxc|storage|sdn|pool)"'
    rb'|\[\s*\{[^$]{0,4096}?\{\s*"\$(?:oid|timestamp|number\w+|date|binary|uuid|minKey)"\s*:)'
)

LEARNERS = ("Learner", "IncomingLearner")
# how ClickHouse, CrateDB and PD call the number of rows
COUNTS = ("rows", "rows_before_limit_at_least", "rowcount", "count")

PLACES = ("region", "dc", "zone", "rack", "host")  # labels of a store that say where it is


def rows_in(given: Any) -> list[list[Row]]:
    """Return the tables in an answer, of replicas last; none if it is of another kind."""
    if isinstance(given, dict):  # of the API of Proxmox, or one region
        given = given.get("data", [given] if "peers" in given else given)
    if isinstance(given, list) and "peers" in given[0]:
        given = {"regions": given}
    if isinstance(given, list):
        kinds = {row.get("type") for row in given}
        if kinds & {"qemu", "lxc"}:
            return _of_proxmox(given)
        return [[{name: _plain(cell) for name, cell in row.items()} for row in given]]
    if "stores" in given:
        return [[_of_store(one["store"], one.get("status", {})) for one in given["stores"]]]
    if "regions" in given:
        sized = any("approximate_size" in one for one in given["regions"])
        return [[row for one in given["regions"] for row in _of_region(one, sized=sized)]]
    return _of_solr(given["cluster"]) if "cluster" in given else []


def is_partial(given: Mapping[str, Any]) -> bool:
    """Return whether an answer says that it was broken off, or that there are more rows."""
    listed = (given.get(one) for one in ("data", "rows", "stores", "regions"))
    there = next((len(one) for one in listed if isinstance(one, list)), None)
    counts = [given[one] for one in COUNTS if isinstance(given.get(one), int)]
    return there is not None and bool(given.get("exception") or max(counts, default=0) > there)


def _plain(cell: Any) -> Any:
    """Return a cell of MongoDB without its type; one of several fields as they are in words."""
    if isinstance(cell, dict):
        name, value = next(iter(cell.items()), ("", ""))
        if name[:1] == "$":
            return _plain(value.get("base64", value) if isinstance(value, dict) else value)
        return " ".join(f"{name}={_plain(one)}" for name, one in cell.items())
    several = isinstance(cell, list) and any(isinstance(one, dict | list) for one in cell)
    return "; ".join(str(_plain(one)) for one in cell) if several else cell


def _of_store(store: Mapping[str, Any], status: Mapping[str, Any]) -> Row:
    """Return a store of TiKV as a row, with its labels that say where it is."""
    labels = {one["key"]: one["value"] for one in store.get("labels", ())}
    limit = {"capacity": status["capacity"].replace(" ", "")} if "capacity" in status else {}
    places = {one: labels[one] for one in PLACES if one in labels}
    engine = {"tags": labels["engine"]} if "engine" in labels else {}
    # TiDB alone says which tables have learners on stores of TiFlash
    takes_none = labels.get("engine", "").startswith("tiflash") and store["state_name"] == "Up"
    state = "cordoned" if takes_none else store["state_name"]
    return {"store_id": store["id"], "state_name": state, **limit, **places, **engine}


def _of_region(region: Mapping[str, Any], *, sized: bool) -> Iterator[Row]:
    """Yield a row for each peer of a region of TiKV, with its size if any has one."""
    leader = (region.get("leader") or {}).get("store_id")
    down = {one["peer"]["store_id"] for one in region.get("down_peers") or ()}
    size = {"size": f"{region.get('approximate_size', 0)}MiB"} if sized else {}
    for peer in region["peers"] or [{"store_id": ""}]:
        store = peer["store_id"]
        learns = peer.get("is_learner") or peer.get("role_name") in LEARNERS
        role = "leader" if store == leader else "learner" if learns else "voter"
        status = "down" if store in down else "normal"
        yield {"region_id": region["id"], "store_id": store, "role": role, "status": status} | size


def _of_solr(cluster: Mapping[str, Any]) -> list[list[Row]]:
    """Return the live nodes and the replicas of Solr's CLUSTERSTATUS."""
    rows = [
        {"collection": name, "shard": shard, "node": one["node_name"],
         "role": "leader" if str(one.get("leader")) == "true"
         else "observer" if one.get("type") == "PULL" else "replica",
         "status": one.get("state", "")}
        for name, collection in cluster["collections"].items()
        for shard, own in collection["shards"].items()
        for one in own["replicas"].values()
        or [{"node_name": ""}] * (own.get("state") != "inactive")  # one that was split has none
    ]  # fmt: skip
    live = [{"node": one, "state": "up"} for one in cluster.get("live_nodes", ())]
    return [live, rows] if live else [rows]


def _of_proxmox(given: list[Row]) -> list[list[Row]]:
    """Return the hosts and the machines of Proxmox with their memory."""
    hosts = [
        {"node": one["node"], "status": one["status"], "memory": one.get("maxmem")}
        for one in given
        if one.get("type") == "node"
    ]
    machines = [
        {"vmid": one["vmid"], "node": one["node"], "memory": one.get("maxmem")}
        for one in given
        if one.get("type") in {"qemu", "lxc"} and not one.get("template")
    ]
    return [hosts, machines] if hosts else [machines]
