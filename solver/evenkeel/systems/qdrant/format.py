"""The Qdrant format: read shards from answers of peers, write requests that move them.

A shard is a partition, its collection or shard key the group, a peer a node. All active replicas
of a shard serve reads and writes: none leads.

References
----------
Qdrant, ``GET /cluster``, ``GET /collections/{name}``, ``GET`` and ``POST
/collections/{name}/cluster`` (``move_shard``, ``replicate_shard``, ``drop_replica``).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from urllib.parse import quote, urlsplit

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Placement
from evenkeel.systems.documents import Document, largest
from evenkeel.systems.folders.carrier import Answer as Checked
from evenkeel.systems.folders.carrier import Carrier, Change, Orders, Wave, anybody, comers
from evenkeel.systems.folders.form import Command, Setting, literal, shown
from evenkeel.systems.json_text import encode_json, encode_rows
from evenkeel.systems.native.arguments import build
from evenkeel.systems.notes import noted
from evenkeel.systems.payload import check_names, payload_of
from evenkeel.systems.qdrant.documents import (
    ASKS,
    WORDS,
    Answer,
    Key,
    QdrantFindings,
    hint,
    recognises,
)
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

NAME = "qdrant"
DIMENSIONS = ["points", "shards"]
KEPT = int(Flag.LEFT_ALONE | Flag.PINNED)
IN_SYNC = int(Flag.HEALTHY | Flag.CAUGHT_UP)
# the states of a replica that has all points; others are being restored, or wait for that
WHOLE = ("Active", "Listener")

# what stands in the refusal of a request that was sent before
DONE = ("is already involved in transfer", "is not active", "has no replica of shard")

SETTINGS = (
    Setting("QDRANT", "http://localhost:6333", "address of a peer for clients"),
    Setting("HEADERS", "", "a file with the header `api-key: ...`, where requests need one"),
    Setting("METHOD", "stream_records", "how shards are copied; or snapshot"),
)

NOTES = (
    "Run it where `curl` is installed, and where no other program moves shards: Qdrant Cloud has "
    "a rebalancer of its own, which may take moves back.",
    "A shard serves reads and writes while it is copied; the copy takes its place when it is "
    "complete. With `METHOD=snapshot`, indexes are copied as well, which takes as much space "
    "again at the source.",
)

Request = dict[str, dict[str, int]]  # one operation on a shard


class ShardRow(NamedTuple):
    """A shard, its peers in order, and the flags of their replicas."""

    key: Key
    peers: list[int]
    flags: list[int]
    wanted: int


def read(documents: Sequence[Document], *, collection: str = "collection") -> Cluster:
    """Read a cluster from what peers answer on collections, on their shards and on the cluster."""
    # An answer does not name its collection: a file is named after it, up to the last ``@`` if
    # there is one (``wiki.json``, ``wiki@peer2.json``), with ``%2F`` and the like for what a file
    # name cannot hold. ``collection`` is the name where there is no file.
    faults = FaultList()
    found = QdrantFindings(faults, collection)
    found.take(documents)
    found.unround()
    peers = sorted(
        {*(found.listed or ()), *found.answered, *(p for one in found.shards.values() for p in one)}
        - {-1}
    )
    gone = {one for one in peers if found.listed is not None and one not in found.listed}
    alive = {one: one not in gone and _lives(found, one) for one in peers}
    shards = [_held(found, key, alive, gone) for key in sorted(found.shards)]
    names = [f"{key[0]}/{key[1]}" for key in sorted(found.shards)]
    listening = {p for one in found.shards.values() for p, r in one.items()
                 if "Listener" in r.states}  # fmt: skip
    place = {peer: n for n, peer in enumerate(peers)}
    load = _loads(found, [one.key for one in shards])
    replicas = np.array([len(one.peers) for one in shards], np.int64)
    if gone:
        named = tuple(map(str, sorted(gone)))
        found.notes.add("peers that GET /cluster does not list ({})", *named)
    if strange := sorted(found.factors.keys() - {key[0] for key in found.shards}):
        found.notes.add("a replication_factor of collections without shards ({}), which is not "
                        "used: an answer is named after its file", *strange)  # fmt: skip
    if found.listed is None:
        found.notes.add("no answer of GET /cluster: peers without shards are unknown")
    given: dict[str, Any] = {
        "node_names": [*map(str, peers)],
        "attributes": {"host": [_host((found.listed or {}).get(one, "")) for one in peers]},
        "alive": np.array([*alive.values()], np.bool_),
        "gone": np.array([one in gone for one in peers], np.bool_),
        "accepts": np.array([up and one not in listening for one, up in alive.items()], np.bool_),
        "partition_names": names,
        "group": ["/".join(filter(None, (one.key[0], found.keys.get(one.key)))) for one in shards],
        "placement": np.array([place[p] for one in shards for p in one.peers], np.int64),
        "first": np.concatenate([[0], np.cumsum(replicas)]).astype(np.int64),
        "leader": np.full(len(shards), -1),
        "flags": np.array([flag for one in shards for flag in one.flags], np.int64),
        "replicas": np.array([one.wanted for one in shards], np.int64),
        "min_active": np.ones(len(shards), np.int64),
        "dimensions": DIMENSIONS,
        "load": load,
        "capacity": np.tile(np.maximum(replicas @ load, 1.0), (len(peers), 1)),
        "native_format": NAME,
        "native": {
            "shards": {name: [*one.key] for name, one in zip(names, shards, strict=True)},
            "answers": found.answers,
            "notes": [*found.notes],
        },
    }
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def _lives(found: QdrantFindings, peer: int) -> bool:
    """Return whether a peer is up, which no answer says of another one than itself."""
    if peer in found.answered:
        return True
    unreached = (found.listed or {}).get(peer, "").rstrip("/") in found.unreached
    states = {s for one in found.shards.values() if peer in one for s in one[peer].states}
    if not unreached and states != {"Dead"}:
        return True
    found.notes.add("peers that are down: no message reaches them, or all their replicas are dead"
                    " ({})", str(peer))  # fmt: skip
    return False


def _host(uri: str) -> str:
    """Return the host in an address.

    >>> _host("http://qdrant-0.qdrant-headless:6335/")
    'qdrant-0.qdrant-headless'
    """
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""


def _held(found: QdrantFindings, key: Key, alive: Mapping[int, bool], gone: set[int]) -> ShardRow:
    """Return a shard with what may be done with it: one that Qdrant itself changes stays."""
    own = {peer: one for peer, one in sorted(found.shards[key].items()) if peer >= 0}
    name = f"{key[0]}/{key[1]}"
    targets = found.targets.get(key, set())
    whole = {peer for peer, one in own.items() if all(s in WHOLE for s in one.states)}
    behind = {peer for peer in own.keys() - whole if alive[peer]}
    disputed = {peer for peer in behind if not {*WHOLE}.isdisjoint(own[peer].states)}
    why = {
        "shards that are being copied": bool(targets),
        "shards of collections that are being resharded": (
            (key[0], found.keys.get(key, "")) in found.resharding
            or any(s.startswith("Resharding") for one in own.values() for s in one.states)
        ),
        "shards with a replica that is not active on a peer that is up: Qdrant restores it": (
            behind > disputed
        ),
        "shards with a replica that is active in the answers of some peers and not in those of "
        "others: ask all of them again": bool(disputed),
        "shards on peers that are not in the cluster": not gone.isdisjoint(own),
    }
    for reason in (reason for reason, holds in why.items() if holds):
        found.notes.add(f"{reason}; they are left alone ({{}})", name)
    kept = any(why.values())
    lost = not any(alive[peer] and "Active" in one.states for peer, one in own.items())
    flags = [
        (KEPT if kept else 0)
        | (int(MARKS) if lost else 0)
        | (int(Flag.INCOMING) if peer in targets else 0)
        | (int(Flag.PINNED) if "Listener" in one.states else 0)
        | (IN_SYNC if peer in whole else 0)
        for peer, one in own.items()
    ]
    factor = 0 if kept or lost or key in found.keys else found.factors.get(key[0], 0)
    if factor > len(own):
        found.notes.add("shards with fewer replicas than the replication_factor of their "
                        "collection, which get more ({})", name)  # fmt: skip
    return ShardRow(key, [*own], flags, max(factor, len(own)))


def _loads(found: QdrantFindings, keys: Sequence[Key]) -> Any:
    """Return the points of each shard, as the replica with most of them has, and 1, (P, 2)."""
    most = {key: max((one.points for one in found.shards[key].values()), default=-1)
            for key in keys}  # fmt: skip
    known: dict[str, list[int]] = {}
    for (name, _), points in most.items():
        known.setdefault(name, []).extend([points] if points >= 0 else [])
    every = [points for points in most.values() if points >= 0]
    load = np.ones((len(keys), 2))
    for p, key in enumerate(keys):
        load[p, 0] = most[key]
        if most[key] < 0:
            # a shard without a count is taken to be as large as the others of its collection
            others = known[key[0]] or every or [0]
            load[p, 0] = sum(others) / len(others)
            note = "shards without a number of points, which only their own peers give; they "
            found.notes.add(f"{note}count as the mean of the others ({{}})", f"{key[0]}/{key[1]}")
    return load


class Payload(TypedDict):
    """What was read beside a cluster."""

    shards: dict[str, tuple[str, int]]
    answers: list[Any]


def native_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise where it is not of Qdrant."""
    message = "was not read from Qdrant: there are no shards to move"
    native: Mapping[str, Any] = payload_of(cluster, Payload, message)
    return native


def checked(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise for shards and peers that are none."""
    native = native_of(cluster)
    numbers = {name for name in cluster.nodes.names if name.isdecimal()}
    check_names(cluster, partitions=native["shards"], nodes=numbers)
    return native


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the requests that bring a placement about, and those that undo them."""
    native = native_of(cluster)
    if placement is None:
        return {path: b"".join(map(encode_json, native["answers"]))}
    undo = path.with_name(f"{path.stem}.undo{path.suffix}")
    there = requests_of(cluster, cluster.placement, placement)
    back = requests_of(cluster, placement, cluster.placement)
    return {path: encode_rows(there), undo: encode_rows(back)}


def requests_of(cluster: Cluster, before: Placement, after: Placement) -> list[dict[str, Any]]:
    """Return the requests that lead from one placement to another, shard by shard."""
    native, alive, names = checked(cluster), cluster.nodes.alive, cluster.partitions.names
    found = []
    for p in range(len(names)):
        old, new = (
            [n for n in one.node[one.first[p] : one.first[p + 1]].tolist() if n >= 0]
            for one in (before, after)
        )
        if all(alive[n] for n in comers(old, new)):
            copies, drops = _requests(cluster, names[p], old, new)
            name = native["shards"][names[p]][0]
            found += [{"collection": name, "request": one} for one in copies + drops]
    return found


def _requests(
    cluster: Cluster, name: str, before: Sequence[int], after: Sequence[int]
) -> tuple[list[Request], list[Request]]:
    """Return the copies of a shard, one after the other, and what is dropped after them."""
    alive, peer = cluster.nodes.alive, [int(one) for one in cluster.nodes.names]
    shard = native_of(cluster)["shards"][name][1]
    leaves, joins = comers(after, before), comers(before, after)
    sources = [n for n in leaves if alive[n]]
    copies = []
    for target in joins:
        # a replica that is down cannot be moved: another one is copied, and it is dropped
        kind = "move_shard" if sources else "replicate_shard"
        stays = (n for n in before if n >= 0 and alive[n])
        source = sources.pop(0) if sources else next(stays)
        copies.append(
            {kind: {"shard_id": shard, "from_peer_id": peer[source], "to_peer_id": peer[target]}}
        )
    drops = [
        {"drop_replica": {"shard_id": shard, "peer_id": peer[n]}}
        for n in (*(n for n in leaves if not alive[n]), *sources)
    ]
    # what moves goes last: it is the source of the others
    return sorted(copies, key=lambda one: "move_shard" in one), drops


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the requests of each wave: copies, and what is dropped once these have ended."""
    checked(cluster)
    found = []
    for wave in waves:
        each = [(one, *_requests(cluster, one.name, one.before, one.after)) for one in wave]
        rounds = [[(one, drop) for one, _, drops in each for drop in drops]]
        copies = zip_longest(*([(one, copy) for copy in copies] for one, copies, _ in each))
        steps = [[pair for pair in step if pair is not None] for step in copies] + rounds
        commands: list[Command] = []
        for step in filter(None, steps):
            commands += [*_settled(cluster, wave)] if commands else []
            commands += [_asked(cluster, one, request) for one, request in step]
        found.append(Orders(commands, ends=[*_settled(cluster, wave)]))
    return found


def _asked(cluster: Cluster, change: Change, request: Request) -> Command:
    (kind,) = request
    body = literal(msgspec.json.encode(request).decode())
    if kind != "drop_replica":
        body = f'{body[:-2]},"method":"${{METHOD}}"}}}}'
    path = _path(native_of(cluster)["shards"][change.name][0])
    about = f"shard {shown(change.name)}: {kind} is asked for"
    words = ("-H", "Content-Type: application/json", "-w", r"\n%{http_code}", "-d", body)
    return _curl(f"{path}?timeout=60", *words, about=about, check="asked")


def _settled(cluster: Cluster, wave: Wave) -> Iterator[Command]:
    """Yield what waits until no shard of a collection of a wave is being copied."""
    native = native_of(cluster)
    for name in sorted({native["shards"][one.name][0] for one in wave}):
        about = f"collection {shown(name)}: shards are copied"
        command = _curl(_path(name), "-f", about=about, check="settled")
        command.waits = True
        yield command


def _path(collection: str) -> str:
    return literal(f"/collections/{quote(collection, safe='')}/cluster")


def _curl(path: str, *words: str, about: str = "", check: str = "", save: str = "") -> Command:
    """Return a request; the key of an account is in a file, and so in no list of processes."""
    head = ["curl", "-sS", ["-H", "@${HEADERS}"]]
    return Command([*head, *words, f"${{QDRANT}}{path}"], about, check=check, save=save)


def look(plan: "Plan") -> list[Command]:
    """Return what asks a peer for all peers, and for the shards of all collections."""
    names = sorted({name for name, _ in native_of(plan.cluster)["shards"].values()})
    return [
        _curl("/cluster", "-f", save="cluster.json"),
        *(_curl(_path(one), "-f", save=f"{quote(one, safe='')}@.json") for one in names),
    ]


def lists_nodes(documents: Sequence[Document]) -> bool:
    """Return whether they list the peers: shards name those with replicas."""
    return any(recognises(one) == "peers" for one in documents)


def asked(output: str) -> Checked:
    """Return whether a request was taken, or refused as one that is done already is."""
    body, _, code = output.rpartition("\n")
    done = code == "200" or (code == "400" and any(one in body for one in DONE))
    return Checked(done, "" if code == "200" else body[:400])


def settled(output: str) -> Checked:
    """Return whether no shard of a collection is being copied."""
    try:
        result = msgspec.json.decode(output, type=Answer).result
    except (msgspec.MsgspecError, UnicodeDecodeError):
        result = None
    if result is None:
        return Checked(False, f"no answer of a peer: {output.strip()[:200]!r}")
    transfers = result.shard_transfers
    text = ", ".join(f"{one.shard_id} to {one.to}" for one in transfers[:5])
    return Checked(not transfers, f"{len(transfers)} under way ({text})" if transfers else "")


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return all dimensions: peers name no limit."""
    return DIMENSIONS


CARRIER = Carrier(
    orders=orders, look=look, checks={"asked": asked, "settled": settled}, settings=SETTINGS,
    notes=NOTES, leader=anybody, lists_nodes=lists_nodes,
    drops="A copy that leads nowhere is ended by abort_transfer (POST /collections/NAME/cluster).",
)  # fmt: skip

FORMAT = Format(
    name=NAME,
    summary="Qdrant: /cluster, /collections/NAME and /collections/NAME/cluster as JSON, telemetry",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    left_out=lambda cluster: noted(cluster.native),
    uncapped=uncapped,
    carrier=CARRIER,
    keeps_repairs=True,
    hint=hint,
    asks=ASKS,
    words=WORDS,
    stranded="no replica of these shards is active on a peer that is up, by what all peers answer: "
    "start the peers that hold them, or restore a snapshot, and read again",
)
