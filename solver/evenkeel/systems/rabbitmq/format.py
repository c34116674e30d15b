"""Read quorum queues as RabbitMQ's tools list them; write ``rabbitmq-queues`` commands.

References
----------
RabbitMQ, ``rabbitmqctl list_queues`` and ``cluster_status``, ``rabbitmq-queues add_member`` and
``delete_member``, the management API ``/api/queues`` and ``/api/nodes``.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.documents import Document, largest, quoted
from evenkeel.systems.folders.carrier import Carrier, Change, Orders, Wave, equals
from evenkeel.systems.folders.form import Command, Setting, literal, shown
from evenkeel.systems.json_text import encode_rows
from evenkeel.systems.native.arguments import build
from evenkeel.systems.notes import noted
from evenkeel.systems.payload import check_names, payload_of
from evenkeel.systems.rabbitmq.documents import (
    ASKS,
    MOST_NAMED,
    WORDS,
    Queue,
    QueueFindings,
    gather,
    hint,
    recognises,
)
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

LEAVE = (
    "pin this queue, cluster.pin(...), to leave it where it is and move the others; what leads it "
    "stays only where its node may keep it"
)

# texts that need no escapes within Erlang quotes
PLAIN = re.compile(r"[A-Za-z0-9_.@:-]+", re.ASCII)

# options, NUL, and characters that a shell interprets within quotes
UNFIT = re.compile(r"^-|[\0$`\\]")

FUNCTIONS = r"""
evaluate() { rabbitmqctl -q eval "$1"; }
failed() { printf '%s\n' "$1: stopped" >&2; exit 1; }

# waiting WHAT: report a wait outside of a folder
waiting() { printf '%s  waiting: %s\n' "$(date '+%F %T')" "$1"; }

# join VHOST QUEUE NODE IS-MEMBER HAS-CAUGHT-UP
join() {
  [ "$(evaluate "$4")" = true ] || rabbitmq-queues add_member --vhost "$1" "$2" "$3" ||
    failed "queue $2: add_member of $3"
  [ "$(evaluate "$4")" = true ] || failed "queue $2: $3 is not a member"
  spent=0 silent=0
  while :; do
    ready=$(evaluate "$5") || failed "queue $2: cannot determine whether $3 has caught up"
    [ "$ready" != true ] || break
    [ "$spent" -le "${PATIENCE-86400}" ] ||
      failed "queue $2: $3 does not catch up in ${PATIENCE-86400} s"
    [ "$silent" -lt "${REPORT-600}" ] || {
      silent=0
      waiting "queue $2: $3 has not caught up" || failed "queue $2: $3 cannot catch up"
    }
    spent=$((spent + ${PAUSE-5} + 1)) silent=$((silent + ${PAUSE-5} + 1))
    sleep "${PAUSE-5}"
  done
}

# lead QUEUE TRANSFER
lead() { [ "$(evaluate "$2")" = ok ] || failed "queue $1: does not change its leader"; }

# leave VHOST QUEUE NODE IS-MEMBER
leave() {
  [ "$(evaluate "$4")" = false ] || rabbitmq-queues delete_member --vhost "$1" "$2" "$3" ||
    failed "queue $2: delete_member of $3"
  [ "$(evaluate "$4")" = false ] || failed "queue $2: $3 is a member still"
}
"""

BEHIND = 1000  # entries of a queue's log by which a member that has caught up may be behind


class QueueChange(NamedTuple):
    """Changes of one queue: joining and leaving nodes, and the new leader, "" for no change."""

    vhost: str
    queue: str
    joins: Sequence[str]
    leaves: Sequence[str]
    leader: str
    lost: Sequence[str] = ()  # leaving nodes that are down


def why_unfit(text: str) -> str:
    """Return why a text cannot be an argument of a command, even if quoted; "" if it can.

    >>> why_unfit("orders"), why_unfit("amq.$1")[:26]
    ('', 'cannot stand in a command:')
    """
    # some packages wrap the tools in a script that hands arguments to a second shell
    if UNFIT.search(text):
        return "cannot stand in a command: it begins with -, or holds a NUL, $, ` or \\"
    if any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        return "cannot be written as UTF-8"
    return ""


def check_texts(faults: FaultList, name: str, texts: Iterable[str]) -> None:
    """Report texts that cannot be arguments of a command."""
    for text in texts:
        if message := why_unfit(text):
            faults.add(name, text, f"{message}; {LEAVE}")


def lines_of(change: QueueChange) -> str:
    """Return the calls for a queue: joins first, then the leader, then leaves."""
    return "".join(f"{line}\n" for line in _script_calls(change))


def _script_calls(change: QueueChange) -> Iterator[str]:
    queue = f"{shlex.quote(change.vhost)} {shlex.quote(change.queue)}"

    def leave(node: str) -> str:
        test = shlex.quote(has_member(change.vhost, change.queue, node))
        return f"leave {queue} {shlex.quote(node)} {test}"

    # lost members count for the majority, which a joining one would have to be part of before it
    # has caught up
    yield from map(leave, change.lost)
    for node in change.joins:
        test = shlex.quote(has_member(change.vhost, change.queue, node))
        ready = shlex.quote(caught_up(change.vhost, change.queue, node))
        yield f"join {queue} {shlex.quote(node)} {test} {ready}"
    if change.leader:
        test = shlex.quote(transfer(change.vhost, change.queue, change.leader))
        yield f"lead {shlex.quote(change.queue)} {test}"
    yield from (leave(node) for node in change.leaves if node not in change.lost)


def has_member(vhost: str, queue: str, node: str) -> str:
    """Return the Erlang expression for whether a node is a member."""
    members = "{ok, M, _} = ra:members(amqqueue:get_pid(Q))"
    return f"{_found(vhost, queue)}, {members}, lists:keymember({_atom(node)}, 2, M)."


def caught_up(vhost: str, queue: str, node: str) -> str:
    """Return the Erlang expression for whether a member has caught up with the longest log.

    >>> print(caught_up("/", "a", "rabbit@b").partition(", At")[0])
    S = rabbit_quorum_queue:status(<<47>>, <<"a">>)
    """
    index = '{<<"Node Name">>, N} <- P, {<<"Commit Index">>, I} <- P, is_integer(I)'
    return (
        f"S = rabbit_quorum_queue:status({_binary(vhost)}, {_binary(queue)}), "
        f"At = [{{N, I}} || P <- S, {index}], Most = lists:max([I || {{_, I}} <- At]), "
        f"case [I || {{N, I}} <- At, N =:= {_atom(node)}] of "
        f"[Own] -> Own + {BEHIND} >= Most; _ -> false end."
    )


def transfer(vhost: str, queue: str, node: str) -> str:
    """Return the Erlang expression that makes a member the leader, which then is ``ok``."""
    asked = f"rabbit_quorum_queue:transfer_leadership(Q, {_atom(node)})"
    return (
        f"{_found(vhost, queue)}, case {asked} of "
        "{migrated, _} -> ok; {not_migrated, already_leader} -> ok; Other -> Other end."
    )


def _found(vhost: str, queue: str) -> str:
    name = f"rabbit_misc:r({_binary(vhost)}, queue, {_binary(queue)})"
    return f"{{ok, Q}} = rabbit_amqqueue:lookup({name})"


def _atom(node: str) -> str:
    return f"'{node}'" if PLAIN.fullmatch(node) else f"binary_to_atom({_binary(node)}, utf8)"


def _binary(text: str) -> str:
    """Return a text as an Erlang binary: as its bytes, unless it is plain."""
    if PLAIN.fullmatch(text):
        return f'<<"{text}">>'
    return f"<<{','.join(map(str, text.encode()))}>>"


SETTINGS = (Setting("VHOST", "/", "virtual host of the queues"),)

NOTES = (
    "Run it on a node of the cluster, as a user that may call `rabbitmqctl`.",
    "A member that joins is waited for until its log is as long as the others'; only then another "
    "is deleted. One on a node that is down is deleted first: it counts for the majority of its "
    "queue, which a member that has yet to catch up would make harder to have.",
    "`rabbitmq-queues grow`, `shrink` and `rebalance` may not run beside it.",
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the calls of each wave."""
    vhost = _vhost(cluster)
    check_names(cluster, partitions=native_of(cluster)["keys"])
    names = cluster.nodes.names
    faults = FaultList()
    found = []
    for wave in waves:
        for one in wave:
            joins, leaves = [names[n] for n in one.joins], [names[n] for n in one.leaves]
            if all(n < 0 for n in one.after):
                faults.add(one.name, [], "would be left without members")
            check_texts(faults, one.name, [vhost, one.name, *joins, *leaves])
        faults.raise_if_any()
        found.append(Orders([call for one in wave for call in _calls(cluster, vhost, one)]))
    return found


def _calls(cluster: Cluster, vhost: str, change: Change) -> Iterator[Command]:
    """Yield the calls for a queue: what is lost goes first, since it counts for the majority."""
    names, queue = cluster.nodes.names, change.name
    lost = [n for n in change.leaves if not cluster.nodes.alive[n]]
    for n in lost:
        yield from _changed(vhost, queue, names[n], "delete_member", "false")
    for n in change.joins:
        yield from _changed(vhost, queue, names[n], "add_member", "true")
        about = f"queue {shown(queue)}: {shown(names[n])} has not caught up"
        waits = _request(caught_up(vhost, queue, names[n]), "true", about)
        waits.waits = True
        yield waits
    if leader(change) >= 0:
        leads = names[leader(change)]
        about = f"queue {shown(queue)}: {shown(leads)} is to lead it"
        yield _request(transfer(vhost, queue, leads), "ok", about)
    for n in change.leaves:
        if n not in lost:
            yield from _changed(vhost, queue, names[n], "delete_member", "false")


def _changed(vhost: str, queue: str, node: str, verb: str, then: str) -> Iterator[Command]:
    """Yield what adds or deletes a member that is not there, or is, and sees that it was done."""
    request = _request(
        has_member(vhost, queue, node), then,
        f"queue {shown(queue)}: after {verb} it is {then} that {shown(node)} is a member",
    )  # fmt: skip
    words = map(literal, ("--vhost", vhost, queue, node))
    yield Command(["rabbitmq-queues", verb, *words], unless=request)
    yield request


def _request(expression: str, check: str, about: str) -> Command:
    """Return what evaluates an expression of Erlang."""
    return Command(["rabbitmqctl", "-q", "eval", literal(expression)], about, check=check)


def look(plan: "Plan") -> list[Command]:
    """Return what lists queues and nodes."""
    columns = ("name", "type", "leader", "members", "online")
    ctl, form = ("rabbitmqctl", "-q"), ("--formatter", "json")
    return [
        Command([*ctl, "list_queues", "--vhost", "${VHOST}", *columns, *form], save="queues.json"),
        Command([*ctl, "cluster_status", *form], save="status.json"),
    ]


class Row(TypedDict):
    """What was read of a queue that is written."""

    name: str


class Payload(TypedDict):
    """What was read beside a cluster."""

    queues: list[Row]
    vhost: NotRequired[str]
    keys: dict[str, tuple[str, str]]


def native_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return what was read beside the cluster; raise where it is not of RabbitMQ."""
    message = "was not read from RabbitMQ: there are no queues to change"
    native: Mapping[str, Any] = payload_of(cluster, Payload, message)
    return native


def _vhost(cluster: Cluster) -> str:
    """Return the virtual host of all queues, or raise where there are several."""
    native = native_of(cluster)
    hosts = sorted({vhost for vhost, _ in native["keys"].values()})
    if len(hosts) > 1:
        message = "are several virtual hosts: a folder is for the queues of one"
        raise InvalidInput([Fault("cluster", hosts, message)])
    return str(hosts[0]) if hosts else "/"


def leader(change: Change) -> int:
    """Return who is made the leader; -1 where none is."""
    return change.leads if change.leads != change.led else -1


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the virtual host."""
    return {"VHOST": _vhost(plan.cluster)}


def lists_nodes(documents: Sequence[Document]) -> bool:
    """Return whether they tell the nodes of the cluster: queues name those with members."""
    return any(recognises(one) in ("cluster status", "nodes") for one in documents)


CHECKS = {answer: equals(answer) for answer in ("true", "false", "ok")}

CARRIER = Carrier(
    orders=orders, look=look, checks=CHECKS, settings=SETTINGS, notes=NOTES, leader=leader,
    lists_nodes=lists_nodes, given=given,
)  # fmt: skip


HEAD = """#!/bin/sh
# Changes the members and leaders of quorum queues, one queue after the other. Run it with sh on any
# node of the cluster; it stops at the first call that fails, and may be run again: what is done
# already is not done twice.
set -u
"""


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the planned queues, the script that changes them, and its undo."""
    native = native_of(cluster)
    # without a placement, the queues are returned as read
    if placement is None:
        return {path: encode_rows(native["queues"])}
    there, back, after = _changes(cluster, placement, native)
    # a path that ends in ``.sh`` is that of the script; the queues are left out then
    script = path if path.suffix == ".sh" else path.with_suffix(".sh")
    files = {} if path == script else {path: encode_rows(after)}
    return files | {script: _script(there), script.with_suffix(".undo.sh"): _script(back)}


def _changes(
    cluster: Cluster, after: Placement, native: Mapping[str, Any]
) -> tuple[list[QueueChange], list[QueueChange], list[dict[str, Any]]]:
    """Return the changes, their undo, and the queues after them."""
    faults = FaultList()
    before, names = cluster.placement, cluster.nodes.names
    usual = native.get("vhost", "/")
    rows = {(row.get("vhost") or usual, row["name"]): i for i, row in enumerate(native["queues"])}
    there_are = {name for name, key in native["keys"].items() if tuple(key) in rows}
    check_names(cluster, partitions=there_are)
    queues = list(native["queues"])
    there: list[QueueChange] = []
    back: list[QueueChange] = []
    down = {names[n] for n in np.flatnonzero(~cluster.nodes.alive).tolist()}
    moved = np.unique(before.owner[before.node != after.node])
    led = np.flatnonzero(before.leader_node != after.leader_node)
    for p in np.union1d(moved, led).tolist():
        vhost, queue = native["keys"][cluster.partitions.names[p]]
        slots = slice(int(before.first[p]), int(before.first[p + 1]))
        old = [names[n] for n in before.node[slots].tolist() if n >= 0]
        new = [names[n] for n in after.node[slots].tolist() if n >= 0]
        if not new:
            faults.add(cluster.partitions.names[p], [], "would be left without members")
        was, leads = (int(one.leader_node[p]) for one in (before, after))
        joins = [one for one in new if one not in old]
        leaves = [one for one in old if one not in new]
        then = names[leads] if leads >= 0 and leads != was else ""
        first = names[was] if was >= 0 and leads != was else ""
        if not (joins or leaves or then):
            continue
        check_texts(faults, cluster.partitions.names[p], [vhost, queue, *joins, *leaves, then])
        lost = [one for one in leaves if one in down]
        there.append(QueueChange(vhost, queue, joins, leaves, then, lost))
        if not lost:  # no member can join a dead node: such a change has no undo
            back.append(QueueChange(vhost, queue, leaves, joins, first))
        i = rows[vhost, queue]
        queues[i] = queues[i] | {"members": new, "leader": then or queues[i].get("leader")}
        if isinstance(queues[i].get("online"), list):
            gone = {*leaves}
            stay = [one for one in queues[i]["online"] if one not in gone]
            queues[i]["online"] = stay + joins
    faults.raise_if_any()
    return there, back[::-1], queues


def _script(changes: Sequence[QueueChange]) -> bytes:
    return (HEAD + FUNCTIONS + "".join(map(lines_of, changes))).encode()


NAME = "rabbitmq"
HEALTHY, CAUGHT_UP, PINNED = int(Flag.HEALTHY), int(Flag.CAUGHT_UP), int(Flag.PINNED)
NO_LEADER = ("undefined", "none", "null")  # texts for a missing leader
LOST = ("minority", "down", "stopped", "crashed")  # states of queues without a majority, or stopped
MOST_DIGITS = 18  # most digits of a number of bytes in text
COUNT = "members"  # the dimension that counts members; what waits in a queue is ``bytes``


def read(
    documents: Sequence[Document], *, vhost: str = "/", spread: Mapping[str, Amount] | None = None
) -> Cluster:
    """Read a cluster from what ``rabbitmqctl`` and the management API print as JSON."""
    # without types of queues, all with members count as quorum queues; ``vhost`` is the virtual
    # host of queues that name none
    faults = FaultList()
    found = gather(faults, documents, vhost)
    if not (found.rows or faults or any(one.data.strip() == b"[]" for one in documents)):
        faults.add("source", [document.name for document in documents], f"needs {ASKS}")
    keys = sorted(found.queues)
    queues = [found.queues[key][1] for key in keys]
    nodes = _nodes(found)
    hosts = sorted({host for host, _ in keys})
    names = _names(keys)
    place = {name: n for n, name in enumerate(nodes)}
    given: dict[str, Any] = {
        "node_names": nodes,
        "partition_names": names,
        "group": np.array([hosts.index(host) for host, _ in keys], np.int64),
        "group_names": hosts,
        "native_format": NAME,
        "native": {
            "queues": found.rows,
            "vhost": vhost,
            "keys": {name: [*key] for name, key in zip(names, keys, strict=True)},
        },
    }
    # members on nodes that are no longer of the cluster count as down for good
    gone = _gone(found, queues)
    given["gone"] = np.array([name in gone for name in nodes], np.bool_)
    given |= _states(found, queues, nodes)
    alive = dict(zip(nodes, given["alive"].tolist(), strict=True))
    given |= _placement(found, keys, place, alive)
    given |= _amounts(found, keys, queues, nodes)
    # a file that maps nodes to zones, ``{"rabbit@a": "zone-1"}``, keeps the members of a queue
    # apart; ``spread`` replaces that rule
    given |= _zones(found, queues, nodes, given["alive"], spread)
    given["native"]["notes"] = [*found.notes, *_beside(found)]
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing input, each with its effect and what to add."""
    native = cluster.native
    rows = native.get("queues", ()) if isinstance(native, dict) else ()
    yield from noted(native)
    if any(isinstance(row.get("members"), list) and not row.get("type") for row in rows):
        yield "no types of queues: streams, too, count as quorum queues; list them with type"


def _names(keys: Sequence[tuple[str, str]]) -> list[str]:
    """Return queues by their names, with the virtual host in front where there are several."""
    if len({host for host, _ in keys}) <= 1:
        return [name for _, name in keys]
    # no two are the same, whatever stands in them
    return [f"{host.replace('%', '%25').replace('/', '%2F')}/{name}" for host, name in keys]


def members_of(queue: Queue) -> list[str]:
    """Return the nodes that hold a queue, in the order of the listing."""
    return queue.members if isinstance(queue.members, list) else []


def _nodes(found: QueueFindings) -> list[str]:
    """Return the nodes there are: those that are listed, and those that queues name."""
    members = {name for _, queue in found.queues.values() for name in members_of(queue)}
    return sorted(members | {*(found.nodes or [*found.zones, *found.hosts])})


def _gone(found: QueueFindings, queues: Sequence[Queue]) -> set[str]:
    """Return members on nodes that left the cluster, and note them and their zones."""
    if not found.nodes:
        return set()
    held = Counter(name for queue in queues for name in members_of(queue))
    departed = sorted(held.keys() - found.nodes.keys())
    if departed:
        named = some_of(departed, lambda one: f"{printable(one)} in {counted(held[one], 'queue')}")
        found.notes.add(f"members on nodes that left the cluster ({named}): they are gone")
    strays = sorted(found.zones.keys() - found.nodes.keys() - held.keys())
    if strays:
        named = some_of(strays, printable, MOST_NAMED)
        found.notes.add(f"zones of nodes that are not in the cluster ({named}): ignored")
    return {*departed}


def _beside(found: QueueFindings) -> Iterator[str]:
    """Yield notes on queues that are not placed, and nodes that take no members."""
    if found.others:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.others.items()))
        yield f"queues that are no quorum queues ({kinds}): these stay where they are, uncounted"
    if not found.nodes:
        yield "no cluster_status: nodes without queues are unknown"
    few = [host for (host, _), (_, queue) in found.queues.items() if len(members_of(queue)) < 3]
    if few and len(found.nodes or _nodes(found)) > 2:
        asked = " ".join(f"--replicas {shlex.quote(host)}=3" for host in sorted({*few}))
        yield (
            f"{counted(len(few), 'queue')} with fewer than three members, which cannot lose any: "
            f"{asked} gives each three"
        )
    if found.alarmed:
        named = some_of(sorted(found.alarmed), printable, MOST_NAMED)
        yield f"alarms of memory or disk on {named}: no member comes there"
    if found.apart:
        named = some_of(sorted(found.apart), printable, MOST_NAMED)
        yield f"a network partition ({named}): queues with members there are left alone"


def _states(found: QueueFindings, queues: Sequence[Queue], nodes: Sequence[str]) -> dict[str, Any]:
    """Return the states of nodes; without a status, nodes that are online for a queue are up."""
    up = {*found.running}
    # a status that is not there to its end may leave out nodes that run
    if not found.nodes or found.may_miss_running:
        supposed = set[str]() if found.nodes else {*nodes}  # where nothing tells
        for queue in queues:
            members = {*members_of(queue)}
            up |= {*queue.online} if isinstance(queue.online, list) else members & supposed
            up |= {queue.leader or ""}
        up |= supposed.difference(*map(members_of, queues))
        if down := sorted({*(found.nodes or nodes)} - up):
            found.notes.add(
                f"no whole status of the cluster: {some_of(down, printable, MOST_NAMED)}, online "
                "for no queue, counts as down"
            )
    alive = np.array([name in up for name in nodes], np.bool_)
    drained = np.array([name in found.drained for name in nodes], np.bool_)
    alarmed = np.array([name in found.alarmed for name in nodes], np.bool_)
    return {"alive": alive, "accepts": alive & ~drained & ~alarmed, "leads": alive & ~drained}


def _placement(
    found: QueueFindings,
    keys: Sequence[tuple[str, str]],
    place: Mapping[str, int],
    alive: Mapping[str, bool],
) -> dict[str, Any]:
    """Return the members and leader of each queue; queues without a majority stay."""
    strange: dict[str, list[str]] = {}
    halted: dict[str, list[str]] = {}
    learning: dict[str, list[str]] = {}
    unlisted = bool(keys) and not any("leader" in row for row in found.rows)
    if unlisted:
        found.notes.add(
            "no leaders of queues: the first member that runs counts as leader; list them with "
            "leader"
        )
    node: list[int] = []
    flags: list[int] = []
    roles: list[int] = []
    leader, width, wanted, votes = [], [], [], []
    fewer: list[str] = []
    unfit: dict[str, str] = {}
    for key in keys:
        at, queue = found.queues[key]
        members = members_of(queue)
        online = {*queue.online} if isinstance(queue.online, list) else set()
        own = [place.get(name, -1) for name in members]
        if len({*own}) != len(own):
            for i, name in enumerate(members):
                if name in members[:i]:
                    found.faults.add(f"{at}.members[{i}]", quoted(name), "is a member twice")
        leads = queue.leader not in (None, "", *NO_LEADER)
        if online.difference(members) or (leads and queue.leader not in members):
            others = online.difference(members) | ({queue.leader or ""} - {*members})
            strange.setdefault(key[1], sorted(others - {""}))
        node += own
        # a member may be down on a node that is up
        listed = online if isinstance(queue.online, list) else {*members}
        voters = [name for name in members if name not in queue.learners]
        runs = [name for name in voters if alive.get(name, False) and name in listed]
        leads_it = next(iter(runs), None) if unlisted else queue.leader
        leader.append(members.index(leads_it) if leads_it in members else -1)
        there = len(runs)
        # without a leader, none of them changes its members
        lost = 2 * there <= len(voters) or (queue.state or "").lower() in LOST
        lost |= not (leads or unlisted)
        known = int(MARKS) if lost else 0
        if why := next(filter(None, map(why_unfit, key)), ""):
            unfit[key[1]] = why
        if why or found.apart & {*members}:
            known |= int(Flag.LEFT_ALONE | Flag.PINNED)
        flags += [
            known
            | (HEALTHY if name in online else 0)
            | (CAUGHT_UP if name in runs else 0)
            # one without a vote yet stays, as another one could take its part otherwise
            | (PINNED if name in queue.learners else 0)
            for name in members
        ]
        # a member that does not run on a node that does counts as one without a vote: it cannot
        # lead
        idle = [
            name for name in members
            if alive.get(name, False) and name not in runs and name != leads_it and not lost
        ]  # fmt: skip
        if still := [name for name in idle if name in voters]:
            halted[key[1]] = still
        if queue.learners:
            learning[key[1]] = queue.learners
        roles += [int(Role.NON_VOTER if name in idle else Role.VOTER) for name in members]
        # without its nodes for good, a queue has no more members than there are nodes
        count = min(len(members), len(found.nodes) or len(members))
        if count < len(members) and not lost:
            fewer.append(key[1])
        width.append(len(members))
        wanted.append(len(members) if lost else count)
        votes.append(wanted[-1] - len(idle))
    if strange:
        named = some_of([*strange], lambda one: f"{printable(one)}: {', '.join(strange[one])}")
        found.notes.add(f"leaders or online nodes that are no members ({named}): ignored")
    if unfit:
        named = some_of([*unfit], lambda one: f"{printable(one)} {unfit[one]}", MOST_NAMED)
        found.notes.add(
            f"queues that the tools cannot be called for: {named}; they stay as they are"
        )
    if fewer:
        named = some_of(fewer, printable, MOST_NAMED)
        found.notes.add(
            f"more members than nodes of the cluster ({named}): those on nodes that left it are "
            "deleted, without others in their place"
        )
    if halted:
        named = some_of(
            [*halted], lambda one: f"{printable(one)}: {', '.join(halted[one])}", MOST_NAMED
        )
        found.notes.add(
            f"members that are not online, on nodes that run ({named}): they lead nothing; where "
            "they do not recover, delete them as members and add them again"
        )
    if learning:
        named = some_of(
            [*learning], lambda one: f"{printable(one)}: {', '.join(learning[one])}", MOST_NAMED
        )
        found.notes.add(
            f"members without a vote, which catch up ({named}): they lead nothing, and stay"
        )
    return {
        "placement": np.array(node, np.int64),
        "first": np.concatenate([[0], np.cumsum(width)]).astype(np.int64),
        "leader": np.array(leader, np.int64),
        "role": np.array(roles, np.int64),
        "flags": np.array(flags, np.int64),
        "replicas": np.array(wanted, np.int64),
        "voters": np.array(votes, np.int64),
        "min_active": np.array([count // 2 + 1 for count in wanted], np.int64),
    }


def _amounts(
    found: QueueFindings,
    keys: Sequence[tuple[str, str]],
    queues: Sequence[Queue],
    nodes: Sequence[str],
) -> dict[str, Any]:
    """Return members and waiting bytes as loads, and capacities without limits."""
    size = np.zeros(len(queues))
    for p, queue in enumerate(queues):
        text = str(queue.message_bytes or 0)
        if text.isdecimal() and len(text) <= MOST_DIGITS:
            size[p] = int(text)
        else:
            at = f"{found.queues[keys[p]][0]}.message_bytes"
            found.faults.add(at, quoted(queue.message_bytes), "must be a number of bytes")
    measured = bool(size.any())
    load = np.column_stack([np.ones(len(queues)), size])[:, : 1 + measured]
    width = np.array([len(members_of(queue)) for queue in queues], np.float64)
    # balance is measured against capacities
    everything = np.maximum(width @ load, 1.0)
    return {
        "dimensions": [COUNT, "bytes"][: 1 + measured],
        "load": load,
        "capacity": np.tile(everything, (len(nodes), 1)),
        "bytes": "bytes" if measured else None,
    }


def _zones(
    found: QueueFindings,
    queues: Sequence[Queue],
    nodes: Sequence[str],
    alive: NDArray[np.bool_],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return zones as a tier, and a rule for each number of members."""
    if not found.zones:
        return {} if spread is None else {"spread": spread}
    labels = [found.zones.get(name, ("", ""))[1] for name in nodes]
    strays = [name for name, zone, up in zip(nodes, labels, alive, strict=True) if up and not zone]
    if strays and spread is None:
        at = next(iter(found.zones.values()))[0].partition(": ")[0]
        found.faults.add(at, strays[:8], "have no zone: name it, or ask for another spread")
    given: dict[str, Any] = {"domains": {"zone": labels}}
    if spread is not None:
        return given | {"spread": spread}
    count = max(len({*labels} - {""}), 1)
    numbers = sorted({len(members_of(queue)) for queue in queues})
    given["rules"] = [Rule(spread={"zone": -(-number // count)}) for number in numbers]
    own = [numbers.index(len(members_of(queue))) for queue in queues]
    return given | {"rule": np.array(own, np.int64)}


# leaders serve clients, and a transfer moves no data: they are levelled as well
USUAL = {"level": 0.05, "leaders": 0.1}

FORMAT = Format(
    name="rabbitmq",
    summary="RabbitMQ: list_queues and cluster_status as JSON, /api/nodes, a zone for each node",
    suffixes=(".json", ".sh"),
    recognises=recognises,
    read=read,
    encode=encode,
    majority=True,
    left_out=left_out,
    carrier=CARRIER,
    keeps_repairs=True,
    usual=lambda cluster: USUAL,
    hint=hint,
    asks=ASKS,
    words=WORDS,
    stranded="a queue changes its members by a majority of them: bring back nodes that hold it, "
    "and read again; where they are lost, declare it anew, or keep one member at the loss of data "
    "(rabbit_quorum_queue:force_shrink_member_to_current_member)",
)
