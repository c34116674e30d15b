"""NATS JetStream: read streams from what servers answer, write requests that move them.

References
----------
NATS, the monitoring endpoints ``/jsz`` and ``/varz``, ``nats server request``, the JetStream API
``STREAM.INFO``, ``STREAM.LIST``, ``ACCOUNT.STREAM.MOVE`` and ``STREAM.LEADER.STEPDOWN``.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.documents import Document, largest
from evenkeel.systems.native.arguments import build
from evenkeel.systems.nats.documents import Findings, Key, Seen, Server, hint, recognises
from evenkeel.systems.nats.waves import CARRIER, native_of, requests_of, unfit
from evenkeel.systems.notes import noted
from evenkeel.systems.registry import Format

NAME = "nats"
KEPT = int(Flag.LEFT_ALONE | Flag.PINNED)
IN_SYNC = int(Flag.HEALTHY | Flag.CAUGHT_UP)
NO_PLACEMENT = "!jetstream"
"""The tag of servers that take no further streams."""

DIRECTED_SINCE = (2, 11)
"""The release whose step-down names the next leader."""

DIMENSIONS = ("storage", "reserved", "memory", "reserved_memory", "streams")
MOST_NAMED = 5


class Held(NamedTuple):
    """A stream from the best of the views of it."""

    key: Key
    seen: Seen
    peers: list[str]
    leader: str
    wanted: int
    marks: int
    """Flags of all its replicas."""

    flags: list[int]
    """Flags of each replica."""


def read(
    documents: Sequence[Document],
    *,
    account: str = "$G",
    spread: Mapping[str, Amount] | None = None,
) -> Cluster:
    """Read a cluster from what servers answer of JetStream, or streams from the API.

    ``account`` is the account of streams in documents that name none: answers of ``STREAM.INFO``
    and ``STREAM.LIST``. Servers that have a tag with the prefix ``unique_tag`` in common hold at
    most one replica of a stream; ``spread`` replaces that rule.

    Raises
    ------
    InvalidInput
        Naming every problem with file, place and value.
    """
    faults = FaultList()
    found = Findings(faults, account)
    for document in documents:
        found.take(document)
    found.named()
    streams = [_held(found, key, found.streams[key]) for key in sorted(found.streams)]
    names = _names(found, [one.key for one in streams])
    servers = _servers(found, streams)
    _note_views(found, streams)
    given: dict[str, Any] = {
        "node_names": [*servers],
        "partition_names": names,
        "group": [found.accounts[one.key[0]] for one in streams],
        "native_format": NAME,
    }
    unique = next((one.store.unique_tag for one in servers.values() if one.store), "")
    given |= _states(found, servers, unique)
    directs = _since(servers, DIRECTED_SINCE)
    given |= _placement(streams, [*servers], directs)
    given |= _amounts(streams, servers)
    given |= _rules(streams, servers, unique, spread)
    given["native"] = {
        "servers": {
            name: {"tags": one.tags or [], "cluster": one.cluster, "known": one.answered}
            for name, one in servers.items()
        },
        "streams": {
            name: [*one.key, found.accounts[one.key[0]], *_asked(one)]
            for name, one in zip(names, streams, strict=True)
        },
        "unique": unique,
        "excludes": _since(servers, (2, 12)),
        "directs": directs,
        "documents": [one.data.decode("utf-8", "replace") for one in documents],
        "notes": [*found.notes, *_missing(found, servers)],
    }
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the requests that bring a placement about, and those that undo them.

    Without a placement, the documents are returned as read.

    Raises
    ------
    InvalidInput
        If the cluster was not read from NATS, or a move cannot be directed.
    """
    native = native_of(cluster)
    if placement is None:
        return {path: "\n".join(one.strip() for one in native["documents"]).encode() + b"\n"}
    undo = path.with_name(f"{path.stem}.undo{path.suffix}")
    there = requests_of(cluster, cluster.placement, placement)
    back = requests_of(cluster, placement, cluster.placement)
    return {path: _listed(there), undo: _listed(back)}


def _listed(requests: Sequence[Any]) -> bytes:
    return b"[\n" + b",\n".join(map(msgspec.json.encode, requests)) + b"\n]\n"


def _held(found: Findings, key: Key, views: Sequence[Seen]) -> Held:
    """Return a stream as its leader sees it, or else as who names most of its peers."""
    sights = {id(one): _peers(one) for one in views}
    seen = max(views, key=lambda one: (_by_leader(one), len(sights[id(one)])))
    peers = [*sights[id(seen)]]
    strange = found.strangers(peers)
    if strange:
        named = some_of(strange, printable, MOST_NAMED)
        found.notes.add(
            f"peers that are no servers of JetStream, or without a name ({named}), of streams "
            "({}): no request moves these, so they are left alone; nats stream cluster "
            "peer-remove removes such a peer", key[1],
        )  # fmt: skip
    disputed = any({*sights[id(one)]} - {*peers} for one in views if _by_leader(one))
    if disputed:
        found.notes.add(
            "streams of which several servers say that they lead them ({}): they are left alone",
            key[1],
        )
    group = seen.stream.cluster
    leader = (group.leader if group else "") or ""
    config = seen.stream.config
    wanted = config.num_replicas if config and config.num_replicas > 0 else len(peers)
    listed = {peer.name: peer for peer in (group.replicas if group else None) or ()}
    desired = {one.name for one in (group.desired.replicas or ())} if (
        group and group.desired) else set()  # fmt: skip
    moving = (
        len(peers) > wanted
        or any(one.pending for one in listed.values())
        or (group is not None and group.desired is not None)
    )
    peers += sorted(desired - {*peers})
    marks = KEPT if moving or disputed or strange or unfit(key) else 0
    trusted = _by_leader(seen)
    flags = []
    for name in peers:
        peer = listed.get(name)
        synced = peer is None or peer.current or not trusted
        arriving = moving and (not synced or name not in sights[id(seen)])
        flags.append(int(Flag.INCOMING) if arriving else IN_SYNC if synced else 0)
    if moving:
        found.notes.add("streams that are being moved ({}): they are left alone", key[1])
    elif len(peers) < wanted and peers:
        found.notes.add(
            "streams with fewer peers than replicas ({}): NATS alone chooses a further peer, so "
            "they are left alone; nats stream edit --replicas, there and back, makes it choose",
            key[1],
        )
        marks |= KEPT
    if why := unfit(key):
        found.notes.add(f"streams whose name {why} ({{}}): they are left alone", key[1])
    if not trusted and len(views) > 1 and leader:
        found.notes.add(
            "streams that their leader does not report ({}): which peers are in sync is unknown",
            key[1],
        )
    return Held(key, seen, peers, leader, len(peers) if marks else wanted, marks, flags)


def _peers(seen: Seen) -> list[str]:
    """Return the peers in a view by name; a server leaves itself out of the list."""
    group = seen.stream.cluster
    if group is None:
        return [seen.by] if seen.by else []
    named = {peer.name for peer in group.replicas or ()} | {group.leader or "", seen.by}
    return sorted(named - {""})


def _by_leader(seen: Seen) -> bool:
    """Whether a view is that of the leader, which does not list itself."""
    group = seen.stream.cluster
    if group is None or not group.leader:
        return False
    return seen.by in ("", group.leader) and all(
        one.name != group.leader for one in group.replicas or ()
    )


def _names(found: Findings, keys: Sequence[Key]) -> list[str]:
    """Return streams by their names, with the account in front where there are several."""
    if len({account for account, _ in keys}) <= 1:
        return [name for _, name in keys]
    return [
        f"{found.accounts[account].replace('%', '%25').replace('/', '%2F')}/{name}"
        for account, name in keys
    ]


def _servers(found: Findings, streams: Sequence[Held]) -> dict[str, Server]:
    """Return the servers of JetStream by name: those that are listed, and those with streams."""
    held = {name for one in streams for name in one.peers}
    for name in sorted(held - found.servers.keys()):
        found.server(name)
    return {
        name: one
        for name, one in sorted(found.servers.items())
        if name in held or one.member or (one.answered and one.store and not one.disabled)
    }


def _note_views(found: Findings, streams: Sequence[Held]) -> None:
    """Note streams without a leader or peers."""
    for one in streams:
        if not one.peers:
            found.notes.add("streams without peers ({}): they are nowhere, and stay so", one.key[1])


def _states(found: Findings, servers: Mapping[str, Server], unique: str) -> dict[str, Any]:
    """Return the states of servers: one that did not answer is down if the others say so."""
    gone = np.array([name in found.strangers([*servers]) for name in servers], np.bool_)
    alive = [one.answered or not one.offline for one in servers.values()]
    accepts = []
    for (name, one), up in zip(servers.items(), alive, strict=True):
        tags = [tag.lower() for tag in one.tags or ()]
        bare = bool(unique) and one.tags is not None and not _unique_tag(tags, unique)
        if bare:
            found.notes.add(f"servers without a tag {printable(unique)} ({{}}): they take no "
                            "stream", name)  # fmt: skip
        if NO_PLACEMENT in tags:
            found.notes.add("servers with the tag !jetstream ({}): they take no stream", name)
        accepts.append(up and not bare and not one.disabled and NO_PLACEMENT not in tags)
    for name, one in servers.items():
        if one.offline and not one.answered:
            found.notes.add(
                "servers that are offline ({}): streams of one replica there are in no answer, and "
                "are unknown", name,
            )  # fmt: skip
    here = np.array(alive, np.bool_) & ~gone
    return {"alive": here, "gone": gone, "leads": here, "accepts": np.array(accepts, bool) & here}


def _placement(streams: Sequence[Held], servers: Sequence[str], directs: bool) -> dict[str, Any]:
    """Return the peers and leader of each stream; one without a majority stays as it is.

    Servers that no request gives a leader (``directs``) elect it alone.
    """
    place = {name: n for n, name in enumerate(servers)}
    lost = [_lost(one) for one in streams]
    elected = 0 if directs else int(Flag.ELECTED)
    return {
        "placement": np.array([place[name] for one in streams for name in one.peers], np.int64),
        "first": np.cumsum([0, *(len(one.peers) for one in streams)]).astype(np.int64),
        "leader": np.array(
            [one.peers.index(one.leader) if one.leader in one.peers else -1 for one in streams],
            np.int64,
        ),
        "flags": np.array(
            [
                flag | one.marks | (int(MARKS) if gone else 0)
                | (elected if name == one.leader and len(one.peers) > 1 else 0)
                for one, gone in zip(streams, lost, strict=True)
                for name, flag in zip(one.peers, one.flags, strict=True)
            ],
            np.int64,
        ),
        "replicas": np.array(
            [len(one.peers) if gone else one.wanted
             for one, gone in zip(streams, lost, strict=True)], np.int64,
        ),
        "min_active": np.array([one.wanted // 2 + 1 for one in streams], np.int64),
    }  # fmt: skip


def _lost(one: Held) -> bool:
    """Whether no majority of the peers can be asked."""
    group = one.seen.stream.cluster
    away = [peer for peer in (group.replicas if group else None) or () if peer.offline]
    return not one.leader or 2 * len(away) >= max(len(one.peers), 1)


def _amounts(streams: Sequence[Held], servers: Mapping[str, Server]) -> dict[str, Any]:
    """Return bytes and reservations as loads; the limits of servers as capacities.

    A server reserves ``max_bytes`` of a stream, and compares that and what it uses with its limit,
    each for itself. Of what is down, or did not answer, the limit is supposed to be the largest.
    """
    load = np.zeros((len(streams), 5))
    load[:, 4] = 1.0
    for p, one in enumerate(streams):
        config, state = one.seen.stream.config, one.seen.stream.state
        first = 2 if config and config.storage == "memory" else 0
        load[p, first] = max(state.bytes, 0) if state else 0
        load[p, first + 1] = max(config.max_bytes, 0) if config else 0
    capacity = np.zeros((len(servers), 5))
    capacity[:] = np.maximum(np.array([len(one.peers) for one in streams], np.float64) @ load, 1.0)
    stores = {n: one.store for n, one in enumerate(servers.values()) if one.store}
    for n, store in stores.items():
        capacity[n, :4] = np.repeat([float(store.max_storage), float(store.max_memory)], 2)
    if stores:
        silent = [n for n in range(len(servers)) if n not in stores]
        capacity[silent] = capacity[[*stores]].max(axis=0)
    kept = [d for d in range(5) if d in (0, 4) or load[:, d].any()]
    return {
        "dimensions": [DIMENSIONS[d] for d in kept],
        "load": load[:, kept],
        "capacity": capacity[:, kept],
        "bytes": DIMENSIONS[0],
    }


def _asked(one: Held) -> tuple[str, list[str]]:
    """Return the cluster of a stream, and the tags that its servers must have."""
    config, group = one.seen.stream.config, one.seen.stream.cluster
    wanted = config.placement if config else None
    cluster = (wanted.cluster if wanted else "") or (group.name if group else "")
    return cluster, sorted({tag.lower() for tag in (wanted.tags if wanted else None) or ()})


def _rules(
    streams: Sequence[Held],
    servers: Mapping[str, Server],
    unique: str,
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return tags as conditions and domains, and a rule for each placement that streams ask for."""
    asked = [_asked(one) for one in streams]
    tags = {name: {tag.lower() for tag in one.tags or ()} for name, one in servers.items()}
    every = sorted(
        {*set().union(*tags.values()), *(t.lstrip("!") for _, own in asked for t in own)}
    )
    given: dict[str, Any] = {
        "tags": {_escaped(tag): [tag in own for own in tags.values()] for tag in every}
    }
    clusters = sorted({one.cluster for one in servers.values()} - {""})
    domains = {"cluster": [one.cluster for one in servers.values()]} if len(clusters) > 1 else {}
    prefixes = {tag.partition(":")[0] + ":" for tag in every if ":" in tag} | {unique.lower()}
    for prefix in sorted(prefixes - {""}):
        labels = [_unique_tag(sorted(own), prefix) for own in tags.values()]
        known = {*labels} - {""}
        if prefix == unique.lower() or (
            1 < len(known) < len(labels) and all(
                label and sum(tag.startswith(prefix) for tag in own) == 1
                for label, own in zip(labels, tags.values(), strict=True))):  # fmt: skip
            domains[_tier(prefix)] = [one.removeprefix(prefix) or one for one in labels]
    given |= {"domains": domains, "crossing": [one for one in domains if one != "cluster"]}
    apart: Mapping[str, Amount] = {_tier(unique.lower()): 1} if unique else {}
    rules: dict[tuple[Any, ...], int] = {}
    own = []
    for cluster, wanted in asked:
        free = bool(unique) and any(tag.lstrip("!").startswith(unique.lower()) for tag in wanted)
        require = [("-" if tag[0] == "!" else "+") + _escaped(tag.lstrip("!"))
                   for tag in wanted if tag.strip("!")]  # fmt: skip
        if len(clusters) > 1 and cluster in clusters:
            require.append(f"cluster={cluster}")
        own.append(rules.setdefault((free, *require), len(rules)))
    given["rules"] = [
        Rule(require=[*require], spread=spread if spread is not None else {} if free else apart)
        for free, *require in rules
    ]
    return given | {"rule": np.array(own, np.int64)}


def _tier(prefix: str) -> str:
    """Return the name of the tier that tags with a prefix make."""
    return prefix.rstrip(":-_=. ") or prefix


def _unique_tag(tags: Sequence[str], prefix: str) -> str:
    """Return the first tag of a server with a prefix, or ""."""
    return next((one for one in tags if one.startswith(prefix.lower())), "")


def _escaped(tag: str) -> str:
    """Return a tag as expressions name it."""
    return tag.replace("%", "%25").replace("=", "%3D").replace(",", "%2C")


def _since(servers: Mapping[str, Server], release: tuple[int, int]) -> bool:
    """Whether all servers that tell their release are at least that new."""
    listed = [one.version for one in servers.values() if one.version]
    return all(_release(one) >= release for one in listed)


def _release(version: str) -> tuple[int, ...]:
    numbers = version.split("-")[0].split(".")[:2]
    return tuple(int(one) for one in numbers) if all(map(str.isdecimal, numbers)) else (0,)


def _missing(found: Findings, servers: Mapping[str, Server]) -> Iterator[str]:
    """Yield notes on what the documents do not have."""
    unknown = [name for name, one in servers.items() if one.tags is None and not one.offline]
    if unknown and found.streams:
        named = some_of(unknown, printable, MOST_NAMED)
        yield (
            f"tags of {counted(len(unknown), 'server')} ({named}): a move cannot be directed to "
            "them; add nats server request jetstream --all"
        )
    if found.streams and not _since(servers, DIRECTED_SINCE):
        yield (
            "servers older than 2.11: a step-down does not name the next leader there, so that "
            "no folder can be written"
        )


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing input, each with its effect and what to add."""
    yield from noted(cluster.native)


def usual(cluster: Cluster) -> dict[str, float]:
    """Return the goals: leaders do the work of a stream, and a step-down moves no data."""
    return {"level": 0.05} | ({"leaders": 0.1} if native_of(cluster)["directs"] else {})


FORMAT = Format(
    name=NAME,
    summary="NATS JetStream: server request jetstream, /jsz and /varz, stream info as JSON",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    left_out=left_out,
    carrier=CARRIER,
    usual=usual,
    hint=hint,
    stranded="a stream changes its peers by a majority of them: start the servers that hold it, "
    "and read again; where they are lost, restore it from a backup (nats stream restore)",
)
