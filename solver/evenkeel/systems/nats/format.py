"""The NATS JetStream format: read streams, and write requests that move them.

A server moves a stream off one peer (``ACCOUNT.STREAM.MOVE``) onto a server that it chooses among
those with all tags of the request. A move is asked for where tags leave one server to choose.

References
----------
NATS, the monitoring endpoints ``/jsz`` and ``/varz``, ``nats server request``, the JetStream API
``STREAM.INFO``, ``STREAM.LIST``, ``ACCOUNT.STREAM.MOVE`` and ``STREAM.LEADER.STEPDOWN``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.documents import Document, largest
from evenkeel.systems.folders.carrier import (
    Answer,
    Carrier,
    Change,
    Orders,
    Wave,
    as_wanted,
    comers,
)
from evenkeel.systems.folders.form import Command, Setting, literal, shown
from evenkeel.systems.json_text import encode_rows
from evenkeel.systems.native.arguments import build
from evenkeel.systems.nats.documents import (
    ASKS,
    WORDS,
    Config,
    Group,
    Key,
    NatsFindings,
    Seen,
    Server,
    Stream,
    Wanted,
    hint,
    recognises,
)
from evenkeel.systems.notes import noted
from evenkeel.systems.payload import check_names, payload_of
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

MOVE, LEAD, INFO = (
    "$JS.API.ACCOUNT.STREAM.MOVE",
    "$JS.API.STREAM.LEADER.STEPDOWN",
    "$JS.API.STREAM.INFO",
)
NOT_A_PEER = 10040  # the code of an answer to who asks to leave a server that holds no replica

SETTINGS = (
    Setting("SYSTEM_CONTEXT", "system", "context of the system account (nats context ls)"),
    Setting("CONTEXT", "", "context of the account, where all streams are of one"),
    Setting("CONTEXTS", "", "what precedes the name of an account in the name of its context"),
)

NOTES = (
    "Run it where `nats` is installed, with a context of the system account, which moves streams, "
    "and one of each account, which elects leaders.",
    "A server chooses where a stream goes, among those with the tags of the request. These are "
    "chosen so that one server is left; the tags of servers may not change meanwhile.",
    "Consumers follow their stream; who leads them is elected anew: `nats consumer cluster "
    "balance STREAM` levels that.",
    "`nats stream cluster balance` may not run beside it.",
)

Request = tuple[str, Mapping[str, Any]]  # a subject, and what is sent to it


class Known(TypedDict):
    """What was read of a server."""

    tags: list[str]
    cluster: str
    known: bool


class Payload(TypedDict):
    """What was read beside a cluster."""

    servers: dict[str, Known]
    streams: dict[str, tuple[str, str, str, str, list[str]]]
    unique: str
    excludes: bool
    directs: bool
    documents: list[str]


def native_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise where it is not of NATS."""
    message = "was not read from NATS: there are no streams to move"
    native: Mapping[str, Any] = payload_of(cluster, Payload, message)
    return native


def checked(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise for streams and servers that were not read."""
    native = native_of(cluster)
    check_names(cluster, partitions=native["streams"], nodes=native["servers"])
    return native


def unfit(key: tuple[str, str]) -> str:
    """Return why no request can name a stream; "" where one can.

    >>> unfit(("A", "orders")), unfit(("A", "a b"))
    ('', 'holds a space, a point, * or >')
    """
    for text in key:
        if "{{" in text or not text.isprintable():
            return "holds {{ or what cannot be printed"
        if not text or any(letter in " .*>" for letter in text):
            return "holds a space, a point, * or >"
    return ""


def directing(
    native: Mapping[str, Any], asked: Sequence[str], peers: Sequence[str], target: str
) -> list[str] | None:
    """Return the tags with which a server can choose ``target`` alone; None where none do."""
    # ``asked`` are the tags that the stream asks for, ``peers`` the servers that hold it
    here = native["servers"][target]
    tags = {
        name: {tag.lower() for tag in one["tags"]}
        for name, one in native["servers"].items() if one["cluster"] == here["cluster"]
    }  # fmt: skip
    own = [tag for tag in map(str.lower, here["tags"]) if not tag.startswith("!")]
    others = [one for name, one in tags.items() if name != target]
    rivals = [
        one for name, one in tags.items() if name not in (target, *peers) and _fits(one, asked)
    ]  # fmt: skip
    alone = [tag for crowd in (others, rivals) for tag in own if not any(tag in o for o in crowd)]
    chosen = alone[:1] if alone or not rivals else own
    for one in rivals:
        if _fits(one, chosen):
            strange = sorted(one - {*own})
            if not (strange and native["excludes"]):
                return None
            chosen = [*chosen, f"!{strange[0]}"]
    # a tag of the prefix lifts the rule that each server has another: the plan keeps it
    prefix = native["unique"].lower()
    apart = [tag for tag in own if prefix and tag.startswith(prefix)][:1]
    return [*dict.fromkeys([*chosen, *apart])] if here["known"] else None


def _fits(tags: set[str], asked: Sequence[str]) -> bool:
    """Whether a server has all tags that are asked for, and none that is excluded."""
    return all((tag[1:] not in tags) if tag.startswith("!") else tag in tags for tag in asked)


def _moves(
    faults: FaultList, cluster: Cluster, name: str, before: Sequence[int], after: Sequence[int]
) -> list[Request]:
    """Return the requests that replace peers of a stream, one after the other."""
    native, names = native_of(cluster), cluster.nodes.names
    account, stream, _, _, asked = native["streams"][name]
    peers = [names[n] for n in before if n >= 0]
    leaves = [names[n] for n in comers(after, before)]
    joins = [names[n] for n in comers(before, after)]
    if len(leaves) != len(joins):
        message = "would get another number of replicas: nats stream edit --replicas changes it"
        faults.add(name, len(peers) + len(joins) - len(leaves), message)
        return []
    found: list[Request] = []
    for source, target in zip(leaves, joins, strict=True):
        tags = directing(native, asked, peers, target)
        if tags is None:
            message = (
                f"cannot be sent to {shown(target)}: no tags tell it from the others. Give it one "
                f'of its own, such as server_tags: ["server:{target}"], reload it (nats-server '
                "--signal reload), and read again"
            )
            faults.add(name, target, message)
            return []
        body = {"server": source, "tags": tags} if tags else {"server": source}
        found.append((f"{MOVE}.{account}.{stream}", body))
        peers = [*(one for one in peers if one != source), target]
    return found


def _leads(native: Mapping[str, Any], name: str, server: str) -> Request:
    """Return the request that makes a peer the leader."""
    return f"{LEAD}.{native['streams'][name][1]}", {"placement": {"preferred": server}}


def requests_of(cluster: Cluster, before: Placement, after: Placement) -> list[dict[str, Any]]:
    """Return the requests that lead from one placement to another, stream by stream."""
    native, names, faults = checked(cluster), cluster.nodes.names, FaultList()
    alive = cluster.nodes.alive
    found = []
    moved = np.unique(before.owner[before.node != after.node])
    led = np.flatnonzero(before.leader_node != after.leader_node)
    for p in np.union1d(moved, led).tolist():
        slots = slice(int(before.first[p]), int(before.first[p + 1]))
        old, new = before.node[slots].tolist(), after.node[slots].tolist()
        if any(n >= 0 and n not in old and not alive[n] for n in new):
            continue
        name, leader = cluster.partitions.names[p], int(after.leader_node[p])
        requests = _moves(faults, cluster, name, old, new)
        if leader >= 0 and len(new) > 1 and native["directs"]:
            requests.append(_leads(native, name, names[leader]))
        account = native["streams"][name][2]
        found += [
            {"account": account, "stream": native["streams"][name][1], "subject": subject,
             "request": body}
            for subject, body in requests
        ]  # fmt: skip
    faults.raise_if_any()
    return found


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the requests of each wave: moves, and leaders once these have ended."""
    native, faults, found = checked(cluster), FaultList(), []
    if not native["directs"]:
        message = "a folder takes servers of 2.11 or later, whose step-down names the next leader"
        faults.add("cluster", "an older server", message)
    for wave in waves:
        moves = [
            (one, request)
            for one in wave
            for request in _moves(faults, cluster, one.name, one.before, one.after)
        ]
        commands = []
        while moves:
            now = {one.name: (one, request) for one, request in reversed(moves)}
            moves = [each for each in moves if each not in now.values()]
            ready = [now[one.name] for one in wave if one.name in now]
            commands += [
                _asked("${SYSTEM_CONTEXT}", request, "asked", one) for one, request in ready
            ]
            commands += [_settled(native, one) for one, _ in ready]
        commands += [
            _asked(_context(native, one), _leads(native, one.name, cluster.nodes.names[one.leads]),
                   "led", one)
            for one in wave if one.leads >= 0 and sum(n >= 0 for n in one.after) > 1
        ]  # fmt: skip
        found.append(Orders(commands, ends=[_settled(native, one) for one in wave]))
    faults.raise_if_any()
    return found


def _asked(context: str, request: Request, check: str, change: Change) -> Command:
    subject, body = request
    about = (
        f"stream {shown(change.name)}: {'a leader' if check == 'led' else 'a move'} is asked for"
    )
    return _request(context, subject, msgspec.json.encode(body).decode(), about, check)


def _settled(native: Mapping[str, Any], change: Change) -> Command:
    """Return what waits until a stream is where it is to be, all of its replicas in sync."""
    subject = f"{INFO}.{native['streams'][change.name][1]}"
    about = f"stream {shown(change.name)}: it moves"
    waits = _request(_context(native, change), subject, "", about, "settled")
    waits.waits = True
    return waits


def _request(context: str, subject: str, body: str, about: str, check: str) -> Command:
    words = ["nats", "--context", context, "request", "--raw", literal(subject), literal(body)]
    return Command(words, about, check=check, waits=check != "asked")


def _context(native: Mapping[str, Any], change: Change) -> str:
    accounts = {account for _, _, account, _, _ in native["streams"].values()}
    account = native["streams"][change.name][2]
    return "${CONTEXT}" if len(accounts) == 1 else "${CONTEXTS}" + literal(account)


def look(plan: "Plan") -> list[Command]:
    """Return what asks all servers for their streams."""
    words = ("server", "request", "jetstream", "--accounts", "--streams", "--config")
    return [Command(["nats", "--context", "${SYSTEM_CONTEXT}", *words], save="jsz.json")]


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the account of all streams, whose name a context is supposed to have."""
    accounts = {account for _, _, account, _, _ in native_of(plan.cluster)["streams"].values()}
    return {"CONTEXT": accounts.pop()} if len(accounts) == 1 else {}


def lists_nodes(documents: Sequence[Document]) -> bool:
    """Return whether they tell the servers of JetStream: streams name those with replicas."""
    return any(recognises(one) in ("server answers", "monitoring") for one in documents)


class _Failure(msgspec.Struct):
    description: str = ""
    err_code: int = 0


class _Reply(msgspec.Struct):
    """An answer of the JetStream API."""

    error: _Failure | None = None
    config: Config | None = None
    cluster: Group | None = None


def _checked(holds: Callable[[_Reply], str]) -> Callable[[str], Answer]:
    """Return the check of an answer; ``holds`` returns what is wrong with it, or ""."""

    def check(output: str) -> Answer:
        try:
            reply = msgspec.json.decode(output, type=_Reply)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return Answer(False, f"no answer of a server: {output.strip()[:200]!r}")
        wrong = holds(reply)
        return Answer(not wrong, wrong)

    return check


def _was_asked(reply: _Reply) -> str:
    """Return why a move was refused; that of a stream that has left is done."""
    failure = reply.error
    if failure is None or failure.err_code == NOT_A_PEER or "in progress" in failure.description:
        return ""
    return failure.description


def _was_led(reply: _Reply) -> str:
    failure = reply.error
    return "" if failure is None or "already leader" in failure.description else failure.description


def _is_settled(reply: _Reply) -> str:
    group = reply.cluster
    if reply.error is not None:
        return reply.error.description
    if group is None or not group.leader:
        return "no leader"
    peers = group.replicas or []
    if group.desired is not None or any(one.pending for one in peers):
        return "a move has not ended"
    if reply.config is not None and len(peers) + 1 != reply.config.num_replicas:
        return f"{len(peers) + 1} of {reply.config.num_replicas} replicas"
    late = sum(not one.current and not one.offline for one in peers)
    return f"{late} replicas not in sync" if late else ""


CHECKS = {
    "asked": _checked(_was_asked), "led": _checked(_was_led), "settled": _checked(_is_settled),
}  # fmt: skip

CARRIER = Carrier(
    orders=orders, look=look, checks=CHECKS, settings=SETTINGS, notes=NOTES,
    lists_nodes=lists_nodes, given=given, listed=as_wanted,
)  # fmt: skip


NAME = "nats"
KEPT = int(Flag.LEFT_ALONE | Flag.PINNED)
IN_SYNC = int(Flag.HEALTHY | Flag.CAUGHT_UP)
NO_PLACEMENT = "!jetstream"  # the tag of servers that take no further streams

MOVED_SINCE = (2, 9)  # the release whose servers take requests that move a stream

DIRECTED_SINCE = (2, 11)  # the release whose step-down names the next leader

FEWER = (
    "servers count more streams than the answers list ({}): the others are neither placed nor "
    "counted; ask for the streams of all accounts: nats server request jetstream --all"
)

DIMENSIONS = ("storage", "reserved", "memory", "reserved_memory", "streams")
MOST_NAMED = 5


class Held(NamedTuple):
    """A stream from the best of the views of it."""

    key: Key
    stream: Stream
    peers: list[str]
    wanted: int
    flags: list[int]

    @property
    def asked(self) -> tuple[str, list[str]]:
        """Return its cluster, and the tags that its servers must have."""
        placement = self.stream.config.placement or Wanted()
        return placement.cluster or self.stream.cluster.name, sorted(map(str.lower, placement.tags))


def read(
    documents: Sequence[Document],
    *,
    account: str = "$G",
    spread: Mapping[str, Amount] | None = None,
) -> Cluster:
    """Read a cluster from what servers answer of JetStream, or streams from the API."""
    # ``account`` is that of streams in documents that name none: answers of ``STREAM.INFO`` and
    # ``STREAM.LIST``
    faults = FaultList()
    found = NatsFindings(faults, account)
    found.take(documents)
    streams = [_held(found, key, found.streams[key]) for key in sorted(found.streams)]
    names = _names(found, [one.key for one in streams])
    held = Counter(peer for one in streams for peer in one.peers)
    for name, count in sorted(found.counts.items()):
        if count > held[name]:
            found.notes.add(FEWER, f"{held[name]:,} of {count:,} on {printable(name)}")
    servers = _servers(found, streams)
    given: dict[str, Any] = {
        "node_names": [*servers],
        "partition_names": names,
        "group": [found.accounts[one.key[0]] for one in streams],
        "native_format": NAME,
    }
    # servers that have a tag with the prefix ``unique_tag`` in common hold at most one replica of a
    # stream; ``spread`` replaces that rule
    unique = next((one.store.unique_tag for one in servers.values() if one.store), "")
    given |= _states(found, servers, unique)
    directs = _since(servers, DIRECTED_SINCE)
    alive = dict(zip(servers, given["alive"].tolist(), strict=True))
    given |= _placement(streams, alive, directs)
    given |= _amounts(streams, servers)
    given |= _rules(streams, servers, unique, spread)
    given["native"] = {
        "servers": {
            name: {"tags": one.tags or [], "cluster": one.cluster, "known": one.answered}
            for name, one in servers.items()
        },
        "streams": {
            name: [*one.key, found.accounts[one.key[0]], *one.asked]
            for name, one in zip(names, streams, strict=True)
        },
        "unique": unique,
        "excludes": _since(servers, (2, 12)),
        "directs": directs,
        "documents": [one.data.decode("utf-8", "replace") for one in documents],
        "notes": [*found.notes, *_missing(servers)],
    }
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the requests that bring a placement about, and those that undo them."""
    native = native_of(cluster)
    if placement is None:
        texts = dict(enumerate(native["documents"], start=1))
        return {
            path.with_name(f"{path.stem}.{i}{path.suffix}") if i > 1 else path: text.encode()
            for i, text in texts.items()
        }
    undo = path.with_name(f"{path.stem}.undo{path.suffix}")
    there = requests_of(cluster, cluster.placement, placement)
    back = requests_of(cluster, placement, cluster.placement)
    return {path: encode_rows(there), undo: encode_rows(back)}


def _held(found: NatsFindings, key: Key, views: Sequence[Seen]) -> Held:
    """Return a stream as its leader sees it, or else as that view which has most of its peers."""
    seen = max(views, key=lambda one: (one.by_leader, len(one.peers)))
    group, here = seen.stream.cluster, seen.peers
    if len(views) == 1 and seen.source and not (seen.by or seen.by_leader):
        # the others, which the server lists, are not there to name it
        here |= {seen.source}
        found.server(seen.source).member = True
    peers = sorted(here | {one.name for one in (group.desired or Group()).replicas})
    wanted = max(seen.stream.config.num_replicas, 0) or len(peers)
    others = [one for one in views if one.by_leader and one.stream.cluster.leader != group.leader]
    moving = (
        group.desired is not None
        or len(here) > wanted
        or any(one.pending for one in group.replicas)
    )
    why = {
        "streams on servers older than 2.9, which no request moves": not _since(
            found.servers, MOVED_SINCE
        ),
        "streams that are being moved": moving,
        "streams that several servers lead": bool(others),
        f"streams whose name {unfit(key)}": bool(unfit(key)),
        "streams without peers": not peers,
        "streams with peers that JetStream does not list, or that have no name (nats stream "
        "cluster peer-remove removes one)": bool(found.strangers(peers)),
        "streams with fewer peers than replicas, of which NATS alone chooses more (nats stream "
        "edit --replicas, there and back)": 0 < len(peers) < wanted,
    }
    for reason, holds in why.items():
        if holds:
            found.notes.add(f"{reason}, which are left alone ({{}})", key[1])
    late = {one.name for one in group.replicas if seen.by_leader and not one.current}
    kept = any(why.values())
    flags = [
        (KEPT if kept else 0)
        | (int(Flag.INCOMING) if moving and (name in late or name not in here) else 0)
        | (0 if name in late else IN_SYNC)
        for name in peers
    ]
    return Held(key, seen.stream, peers, len(peers) if kept else wanted, flags)


def _names(found: NatsFindings, keys: Sequence[Key]) -> list[str]:
    """Return streams by their names, with the account in front where there are several."""
    if len({account for account, _ in keys}) <= 1:
        return [name for _, name in keys]
    return [
        f"{found.accounts[account].replace('%', '%25').replace('/', '%2F')}/{name}"
        for account, name in keys
    ]


def _servers(found: NatsFindings, streams: Sequence[Held]) -> dict[str, Server]:
    """Return the servers of JetStream by name: those that are listed, and those with streams."""
    held = {name for one in streams for name in one.peers}
    for name in sorted(held - found.servers.keys()):
        found.server(name)
    return {
        name: one
        for name, one in sorted(found.servers.items())
        if name in held or one.member or (one.answered and one.store and not one.disabled)
    }


def _states(found: NatsFindings, servers: Mapping[str, Server], unique: str) -> dict[str, Any]:
    """Return the states of servers: one that did not answer is down if the others say so."""
    strangers = found.strangers([*servers])
    gone = np.array([name in strangers for name in servers], np.bool_)
    alive = np.array([one.answered or not one.away for one in servers.values()], np.bool_) & ~gone
    accepts = []
    for (name, one), up in zip(servers.items(), alive.tolist(), strict=True):
        tags = {tag.lower() for tag in one.tags or ()}
        why = {
            f"no tag {printable(unique)}": bool(unique and one.tags is not None)
            and not _with(tags, unique.lower()),
            f"the tag {NO_PLACEMENT}": NO_PLACEMENT in tags,
        }
        for reason in (reason for reason, holds in why.items() if holds):
            found.notes.add(f"servers with {reason}, which take no stream ({{}})", name)
        accepts.append(up and not one.disabled and not any(why.values()))
        if one.away and not one.answered:
            note = "servers that are down ({}): streams of one replica there are unknown"
            found.notes.add(note, name)
    return {"alive": alive, "gone": gone, "leads": alive, "accepts": np.array(accepts, np.bool_)}


def _placement(streams: Sequence[Held], alive: Mapping[str, bool], directs: bool) -> dict[str, Any]:
    """Return the peers and leader of each stream; one without a majority stays as it is."""
    place = {name: n for n, name in enumerate(alive)}
    leader, flags, wanted = [], [], []
    for one in streams:
        leads = one.stream.cluster.leader
        leader.append(one.peers.index(leads) if leads in one.peers else -1)
        lost = not leads or 2 * sum(alive[name] for name in one.peers) <= len(one.peers)
        wanted.append(len(one.peers) if lost else one.wanted)
        marks = np.array(one.flags, np.int64) | (int(MARKS) if lost else 0)
        # servers that no request gives a leader (``directs``) elect it alone
        if leads in one.peers and len(one.peers) > 1 and not directs:
            marks[one.peers.index(leads)] |= int(Flag.ELECTED)
        flags.append(marks)
    return {
        "placement": np.array([place[name] for one in streams for name in one.peers], np.int64),
        "first": np.cumsum([0, *(len(one.peers) for one in streams)]).astype(np.int64),
        "leader": np.array(leader, np.int64),
        "flags": np.concatenate([np.zeros(0, np.int64), *flags]),
        "replicas": np.array(wanted, np.int64),
        # of a stream of one replica, old reports name neither a number of replicas nor a server
        "min_active": np.where(
            [bool(one.peers) or one.stream.config.num_replicas > 0 for one in streams],
            np.array(wanted, np.int64) // 2 + 1,
            0,
        ),
    }


def _amounts(streams: Sequence[Held], servers: Mapping[str, Server]) -> dict[str, Any]:
    """Return bytes and reservations as loads; the limits of servers as capacities."""
    load = np.zeros((len(streams), 5))
    load[:, 4] = 1.0
    for p, one in enumerate(streams):
        config = one.stream.config
        first = 2 if config.storage == "memory" else 0
        # a server reserves ``max_bytes`` of a stream, and compares that and what it uses with its
        # limit, each for itself
        load[p, first : first + 2] = max(one.stream.state.bytes, 0), max(config.max_bytes, 0)
    capacity = np.zeros((len(servers), 5))
    capacity[:] = np.maximum(np.array([len(one.peers) for one in streams], np.float64) @ load, 1.0)
    stores = {n: one.store for n, one in enumerate(servers.values()) if one.store}
    for n, store in stores.items():
        capacity[n, :4] = np.repeat([float(store.max_storage), float(store.max_memory)], 2)
    if stores:
        # of what is down, or did not answer, the limit is supposed to be the largest
        silent = [n for n in range(len(servers)) if n not in stores]
        capacity[silent] = capacity[[*stores]].max(axis=0)
    kept = [d for d in range(5) if d in (0, 4) or load[:, d].any()]
    return {
        "dimensions": [DIMENSIONS[d] for d in kept],
        "load": load[:, kept],
        "capacity": capacity[:, kept],
        "bytes": DIMENSIONS[0],
    }


def _rules(
    streams: Sequence[Held],
    servers: Mapping[str, Server],
    unique: str,
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return tags as conditions and domains, and a rule for each placement that streams ask for."""
    own = [{tag.lower() for tag in one.tags or ()} for one in servers.values()]
    named = {tag.removeprefix("!") for one in streams for tag in one.asked[1]} - {""}
    every = sorted(named.union(*own))
    clusters = [one.cluster for one in servers.values()]
    domains = {"cluster": clusters} if len({*clusters} - {""}) > 1 else {}
    for prefix in sorted({tag.partition(":")[0] + ":" for tag in every} | {unique.lower()} - {""}):
        labels = [_with(tags, prefix) for tags in own]
        if prefix == unique.lower() or (all(labels) and len({*labels}) < len(labels)):
            domains[_tier(prefix)] = labels
    rules: dict[tuple[Any, ...], int] = {}
    rule = []
    for one in streams:
        cluster, wanted = one.asked
        if not cluster and len(there := {servers[peer].cluster for peer in one.peers}) == 1:
            cluster = there.pop()  # what people read does not name it
        # a stream that asks for such a tag may have several replicas with it
        free = not unique or any(tag.strip("!").startswith(unique.lower()) for tag in wanted)
        require = [f"{'-' if tag[0] == '!' else '+'}{_escaped(tag.removeprefix('!'))}"
                   for tag in wanted if tag.strip("!")]  # fmt: skip
        require += [f"cluster={cluster}"] if cluster in domains.get("cluster", ()) else []
        rule.append(rules.setdefault((free, *require), len(rules)))
    apart: Mapping[str, Amount] = {} if spread is None else spread
    return {
        "tags": {_escaped(tag): [tag in tags for tags in own] for tag in every},
        "domains": domains,
        "crossing": [one for one in domains if one != "cluster"],
        "rules": [
            Rule(
                require=[*require],
                spread=apart if free or spread is not None else {_tier(unique): 1},
            )
            for free, *require in rules
        ],
        "rule": np.array(rule, np.int64),
    }


def _with(tags: set[str], prefix: str) -> str:
    """Return the first tag with a prefix, or ""; of two, the tier cannot express the second."""
    return min((tag for tag in tags if tag.startswith(prefix)), default="")


def _tier(prefix: str) -> str:
    """Return the name of the tier that tags with a prefix make; two names have a meaning."""
    name = prefix.lower().rstrip(":") or prefix
    return f"{name} tag" if name in ("node", "cluster") else name


def _escaped(tag: str) -> str:
    """Return a tag as expressions name it."""
    return tag.replace("%", "%25").replace("=", "%3D").replace(",", "%2C")


def _since(servers: Mapping[str, Server], release: tuple[int, int]) -> bool:
    """Whether all servers that name their release are at least that new."""
    named = [re.match(r"v?(\d+)\.(\d+)", one.version) for one in servers.values()]
    return all((int(one[1]), int(one[2])) >= release for one in named if one)


def _missing(servers: Mapping[str, Server]) -> Iterator[str]:
    """Yield notes on what the documents do not have."""
    unknown = [name for name, one in servers.items() if one.tags is None and not one.away]
    if unknown:
        named = some_of(unknown, printable, MOST_NAMED)
        yield (
            f"no tags of {counted(len(unknown), 'server')} ({named}): no move can be directed to "
            "them; add nats server request jetstream --all"
        )
    if not _since(servers, DIRECTED_SINCE):
        yield (
            "servers older than 2.11: a step-down does not name the next leader there, so that "
            "no folder can be written"
        )


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
    majority=True,
    enforces=True,
    left_out=lambda cluster: noted(cluster.native),
    carrier=CARRIER,
    keeps_repairs=True,
    usual=usual,
    hint=hint,
    asks=ASKS,
    words=WORDS,
    stranded="a stream changes its peers by a majority of them: start the servers that hold it, "
    "and read again; where they are lost, restore it from a backup (nats stream restore)",
)
