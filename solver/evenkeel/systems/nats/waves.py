"""Requests that move streams, and waves of them.

A server moves a stream off one peer (``ACCOUNT.STREAM.MOVE``) onto a server that it chooses among
those with all tags of the request. A move is asked for where tags leave one server to choose.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import (
    Answer,
    Carrier,
    Change,
    Orders,
    Wave,
    comers,
    no_partition,
)
from evenkeel.systems.folders.form import Command, Setting, literal, shown
from evenkeel.systems.nats.documents import Config, Group, recognises

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

MOVE, LEAD, INFO = (
    "$JS.API.ACCOUNT.STREAM.MOVE",
    "$JS.API.STREAM.LEADER.STEPDOWN",
    "$JS.API.STREAM.INFO",
)
NOT_A_PEER = 10040
"""The code of an answer to who asks to leave a server that holds no replica."""

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

Request = tuple[str, Mapping[str, Any]]
"""A subject, and what is sent to it."""


def native_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise where it is not of NATS."""
    native = cluster.native
    if not (isinstance(native, dict) and {"servers", "streams", "unique"} <= native.keys()):
        message = "was not read from NATS: there are no streams to move"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
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
    """Return the tags with which a server can choose ``target`` alone; None where none do.

    ``asked`` are the tags that the stream asks for, ``peers`` the servers that hold it.
    """
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
    """Return the requests that lead from one placement to another, stream by stream.

    What would go to a server that is down is left out: no stream can.
    """
    native, names, faults = native_of(cluster), cluster.nodes.names, FaultList()
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
    native, faults, found = native_of(cluster), FaultList(), []
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
    orders, look, CHECKS, SETTINGS, NOTES, lists_nodes=lists_nodes, given=given,
    gives_up=no_partition,
)  # fmt: skip
