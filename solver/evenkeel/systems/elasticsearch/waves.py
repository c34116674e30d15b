"""Write waves as Elasticsearch reroute requests, with automatic rebalancing disabled."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evenkeel.measure.loads import node_loads
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.elasticsearch.documents import recognises
from evenkeel.systems.elasticsearch.exchanges import Command as Reroute
from evenkeel.systems.elasticsearch.exchanges import exchanges, goes_where_one_leaves, under_way
from evenkeel.systems.elasticsearch.exchanges import orders as moves
from evenkeel.systems.elasticsearch.factors import (
    ENABLE,
    Factor,
    enable_of,
    factors_of,
    freed_only,
    held_back,
    listed,
    numbered_only,
    path_of,
)
from evenkeel.systems.folders.carrier import Answer, Carrier, Change, Orders, Wave, anybody
from evenkeel.systems.folders.form import Command, Hold, Setting, literal, shown

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

SETTINGS = (Setting("ES", "http://localhost:9200", "address of the cluster"),)

NOTES = (
    "`cluster.routing.rebalance.enable` is set to `none` before the first move, and given back as "
    "it was after the last. Who stops in between and does not go on gives it back by "
    "`sh run.sh --release`; the balancer may take moves back then.",
    "Allocation filters and awareness hold for moves as well: Elasticsearch refuses what breaks "
    "them, and a run stops where a move does not begin.",
    "Which copy is the primary is not changed.",
)

PACE = (
    "`indices.recovery.max_bytes_per_sec` limits what a node sends and receives, 40mb by default: "
    "set it in `_cluster/settings` before, and back afterwards."
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the reroutes of each wave, a request for each shard."""
    faults = FaultList()
    coming = under_way(cluster)
    factors = factors_of(faults, cluster)
    last = _last_waves(waves)
    found = []
    for w, wave in enumerate(waves):
        bodies = [_reroute(faults, cluster, one, coming.get(one.name, {}), factors) for one in wave]
        changed = [of for of in dict.fromkeys(map(_index_of, wave)) if of in factors]
        before = [_held_index(cluster, of, most) for of in changed if (most := _most(waves, of))]
        after = [_settled(of, last[of]) for of in changed if last[of].wave == w]
        commands = [
            _es("POST", "/_cluster/reroute?metric=none", "-w", r"\n%{http_code}",
                "-d", literal(_encoded(faults, one.name, body)), check="rerouted")
            for one, body in zip(wave, bodies, strict=True) if body
        ]  # fmt: skip
        if any(
            _goes_where_one_leaves(body, coming.get(one.name, {}))
            for one, body in zip(wave, bodies, strict=True)
        ):
            commands = [RELOCATED, *commands]
        found.append(Orders([*before, *commands, *after], ends=[RELOCATED]))
    faults.raise_if_any()
    return found


class Last(NamedTuple):
    """The last wave that changes an index, and how many copies its shards have then."""

    wave: int
    copies: int


def _last_waves(waves: Sequence[Wave]) -> Mapping[str, Last]:
    return {
        _index_of(one): Last(w, sum(n >= 0 for n in one.after))
        for w, wave in enumerate(waves) for one in wave
    }  # fmt: skip


def _most(waves: Sequence[Wave], index: str) -> int:
    """Return the most copies that a shard of an index has on the way."""
    return max(
        sum(n >= 0 for n in row)
        for wave in waves for one in wave if _index_of(one) == index
        for row in (one.before, one.after)
    )  # fmt: skip


def _index_of(change: Change) -> str:
    return change.name.rpartition("/")[0]


def _held_index(cluster: Cluster, index: str, copies: int) -> Command:
    """Return what sets the number of copies of an index while Elasticsearch places none of them."""
    path = literal(path_of(index))

    def put(body: bytes) -> Command:
        return _es("PUT", path, "-f", "-d", literal(body.decode()))

    command = put(held_back(copies))
    back = put(freed_only(enable_of(cluster, index)))
    command.hold = Hold(f"{ENABLE} of {index}", [back])
    return command


def _settled(index: str, last: Last) -> Command:
    """Return what sets the number of copies that an index has in the end."""
    body = literal(numbered_only(last.copies).decode())
    return _es("PUT", literal(path_of(index)), "-f", "-d", body)


def _es(method: str, path: str, *words: str, save: str = "", check: str = "") -> Command:
    """Return a request; curl takes passwords from ``~/.netrc``."""
    head = ["curl", "-sSn", "-X", method, "-H", "Content-Type: application/json"]
    return Command([*head, *words, f"${{ES}}{path}"], save=save, check=check)


def _held(scope: str) -> Command:
    """Return what takes the balancer's own moves away, and how they are given back."""

    def put(value: str) -> Command:
        body = f'{{"{scope}":{{"cluster.routing.rebalance.enable":{value}}}}}'
        return _es("PUT", "/_cluster/settings", "-f", "-d", body)

    path = f"/_cluster/settings?filter_path={scope}.cluster.routing.rebalance"
    read = _es("GET", path, "-f", check="rebalance")
    command = put('"none"')
    command.hold = Hold(
        f"{scope}.cluster.routing.rebalance.enable", [put("${WAS}")], read, '"none"'
    )
    return command


RELOCATED = _es("GET", "/_cluster/health?filter_path=relocating_shards", "-f", check="relocated")
RELOCATED.waits = True


def shares(plan: "Plan") -> list[tuple[str, float, float]]:
    """Return ``disk.percent`` of nodes before and after, as ``_cat/allocation`` has it."""
    cluster, native = plan.cluster, plan.cluster.native
    try:
        disks = msgspec.convert(native["disks"], dict[str, tuple[float, float, float]])
    except (msgspec.ValidationError, KeyError, TypeError):
        return []
    if cluster.bytes_dimension < 0:
        return []
    ends = node_loads(cluster, plan.end)[:, cluster.bytes_dimension].tolist()
    return [
        (f"`disk.percent` of {shown(name)}", used / total, (others + end) / total)
        for name, end in zip(cluster.nodes.names, ends, strict=False)
        for total, used, others in [disks.get(name, (0.0, 0.0, 0.0))] if total > 0.0
    ]  # fmt: skip


def look(plan: "Plan") -> list[Command]:
    """Return what lists shards and nodes."""
    columns = "index,shard,prirep,state,docs,store,ip,id,node"
    return [
        _es("GET", f"/_cat/shards?format=json&bytes=b&h={columns}", "-f", save="shards.json"),
        _es("GET", "/_nodes", "-f", save="nodes.json"),
    ]


def rebalance(output: str) -> Answer:
    """Return the value of the setting in a scope, as JSON; ``null`` where it has none."""
    try:
        value: Any = msgspec.json.decode(output)
        for key in (*list(value)[:1], "cluster", "routing", "rebalance", "enable"):
            value = value.get(key, {})
    except (msgspec.DecodeError, AttributeError, TypeError):
        return Answer(False, output[:200])
    return Answer(True, msgspec.json.encode(value or None).decode())


def rerouted(output: str) -> Answer:
    """Return whether a request was carried out, or refused as what is done already is."""
    body, _, code = output.rpartition("\n")
    return Answer(code in ("200", "400"), "" if code == "200" else body[:400])


def relocated(output: str) -> Answer:
    """Return whether no shard is on its way."""
    done = '"relocating_shards":0}' in output
    return Answer(done, "" if done else f"health says {output.strip()[:200]}")


def _goes_where_one_leaves(commands: Sequence[Reroute], coming: Mapping[str, str]) -> bool:
    """Return whether any command for a shard has to wait until what is under way has arrived."""
    cancelled = {one["cancel"]["node"] for one in commands if "cancel" in one}
    return any(goes_where_one_leaves(one, coming, cancelled) for one in commands)


def _encoded(faults: FaultList, name: str, commands: Sequence[Reroute]) -> str:
    try:
        return msgspec.json.encode({"commands": commands}).decode()
    except UnicodeEncodeError:
        faults.add(name, name, "cannot be written as UTF-8")
        return ""


def _reroute(
    faults: FaultList,
    cluster: Cluster,
    change: Change,
    coming: Mapping[str, str],
    factors: Mapping[str, Factor],
) -> list[Reroute]:
    names, held = cluster.nodes.names, cluster.placement
    index, _, number = change.name.rpartition("/")
    if not (index and number.isascii() and number.isdecimal()):
        faults.add(change.name, change.name, "must be index/number")
        return []
    own: dict[str, Any] = {"index": index, "shard": int(number)}
    slots = slice(int(held.first[change.partition]), int(held.first[change.partition + 1]))
    trades = exchanges(held.role[slots].tolist(), change.before, change.after)
    if index not in factors and any(len(one.leaves) > len(one.joins) for one in trades):
        gone = [names[n] for n in change.leaves]
        faults.add(change.name, gone, "would give up copies: change replicas")
        return []
    found = moves(own, trades, names, coming, int(held.leader_node[change.partition]))
    return [one for part in found for one in part]


def lists_nodes(documents: Sequence[Document]) -> bool:
    """Return whether they tell the nodes there are: one that stops is in no answer any more."""
    return any(recognises(one) == "nodes" for one in documents)


CARRIER = Carrier(
    orders=orders, look=look, settings=SETTINGS, notes=NOTES, leader=anybody,
    checks={"rebalance": rebalance, "rerouted": rerouted, "relocated": relocated},
    hold=(_held("persistent"), _held("transient")), still="the balancer is still held",
    lists_nodes=lists_nodes, listed=listed, pace=PACE, binary=True, shares=shares,
)  # fmt: skip
