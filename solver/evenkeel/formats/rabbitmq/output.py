"""The calls that bring a placement about, and those that take it back, as shell scripts."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement

PLAIN = re.compile(r"[A-Za-z0-9_.@:-]+", re.ASCII)
"""Texts that Erlang reads as they are, inside of quotes."""

UNFIT = re.compile(r"^-|[\0$`\\]")
"""What is an option, ends an argument, or means something to a shell inside of quotes."""

LEAVE = "pin this queue, cluster.pin(...), to leave it where it is and move the others"

HEAD = """#!/bin/sh
# Changes the members and leaders of quorum queues, one queue after the other. Run it with sh on any
# node of the cluster; it stops at the first call that fails, and may be run again: what is done
# already is not done twice.
set -eu
told() { rabbitmqctl -q eval "$1"; }
join() {
  [ "$(told "$4")" = true ] || rabbitmq-queues add_member --vhost "$1" "$2" "$3"
  [ "$(told "$4")" = true ] || { echo "is no member: stopped" >&2; exit 1; }
}
lead() { [ "$(told "$1")" = ok ] || { echo "does not lead: stopped" >&2; exit 1; }; }
leave() {
  [ "$(told "$4")" = false ] || rabbitmq-queues delete_member --vhost "$1" "$2" "$3"
  [ "$(told "$4")" = false ] || { echo "is a member still: stopped" >&2; exit 1; }
}
"""


class Change(NamedTuple):
    """What happens to one queue: who joins, who leaves, and who leads then, "" if nobody else."""

    vhost: str
    queue: str
    joins: Sequence[str]
    leaves: Sequence[str]
    leader: str


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return queues as they will be, the script that gets there, and the one that goes back.

    A path that ends in ``.sh`` is that of the script; the queues are left out then. Unsolved, the
    queues are as they were read.

    Raises
    ------
    InvalidInput
        If the cluster was not read from RabbitMQ, a queue would be left without members, or a name
        cannot stand in a command.
    """
    native = cluster.native
    if not (isinstance(native, dict) and {"queues", "keys"} <= native.keys()):
        message = "was not read from RabbitMQ: there are no queues to write"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
    if placement is None:
        return {path: _rows(native["queues"])}
    there, back, after = _changes(cluster, placement, native)
    script = path if path.suffix == ".sh" else path.with_suffix(".sh")
    files = {} if path == script else {path: _rows(after)}
    return files | {
        script: _script(there),
        script.with_suffix(".undo.sh"): _script(back),
    }


def _rows(rows: Sequence[Any]) -> bytes:
    """Return queues with one on each line, for people to read and compare."""
    try:
        return b"[\n" + b",\n".join(map(msgspec.json.encode, rows)) + b"\n]\n"
    except (UnicodeEncodeError, OverflowError) as error:
        message = f"cannot be written: {error}"
        raise InvalidInput([Fault("cluster.native", "queues", message)]) from None


def _changes(
    cluster: Cluster, after: Placement, native: Mapping[str, Any]
) -> tuple[list[Change], list[Change], list[dict[str, Any]]]:
    """Return the changes there and back, and the queues as they are then."""
    faults = FaultList()
    before, names = cluster.placement, cluster.nodes.names
    usual = native.get("vhost", "/")
    rows = {(row.get("vhost") or usual, row["name"]): i for i, row in enumerate(native["queues"])}
    queues = list(native["queues"])
    there: list[Change] = []
    back: list[Change] = []
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
        _check(faults, cluster.partitions.names[p], [vhost, queue, *joins, *leaves, then])
        there.append(Change(vhost, queue, joins, leaves, then))
        back.append(Change(vhost, queue, leaves, joins, first))
        i = rows[vhost, queue]
        queues[i] = queues[i] | {"members": new, "leader": then or queues[i].get("leader")}
        if isinstance(queues[i].get("online"), list):
            gone = {*leaves}
            stay = [one for one in queues[i]["online"] if one not in gone]
            queues[i]["online"] = stay + joins
    faults.raise_if_any()
    return there, back[::-1], queues


def _check(faults: FaultList, name: str, texts: Iterable[str]) -> None:
    """Note what no argument of a command can be, however it is quoted here.

    Some packages wrap the tools in a script that hands arguments to a second shell.
    """
    for text in texts:
        if UNFIT.search(text):
            message = "cannot stand in a command: it begins with -, or holds a NUL, $, ` or \\"
            faults.add(name, text, f"{message}; {LEAVE}")
        elif any(0xD800 <= ord(letter) < 0xE000 for letter in text):
            faults.add(name, text, f"cannot be written as UTF-8; {LEAVE}")


def _script(changes: Sequence[Change]) -> bytes:
    lines = [line for change in changes for line in _calls(change)]
    return (HEAD + "".join(f"{line}\n" for line in lines)).encode()


def _calls(change: Change) -> Iterator[str]:
    """Yield the calls for a queue: who joins comes before who leaves, the leader in between."""
    queue = f"{shlex.quote(change.vhost)} {shlex.quote(change.queue)}"
    for node in change.joins:
        test = shlex.quote(has_member(change.vhost, change.queue, node))
        yield f"join {queue} {shlex.quote(node)} {test}"
    if change.leader:
        yield f"lead {shlex.quote(transfer(change.vhost, change.queue, change.leader))}"
    for node in change.leaves:
        test = shlex.quote(has_member(change.vhost, change.queue, node))
        yield f"leave {queue} {shlex.quote(node)} {test}"


def has_member(vhost: str, queue: str, node: str) -> str:
    """Return the Erlang expression that tells whether a node is a member.

    Examples
    --------
    >>> print(has_member("/", "a", "rabbit@b").partition("), ")[2])
    {ok, M, _} = ra:members(amqqueue:get_pid(Q)), lists:keymember('rabbit@b', 2, M).
    """
    members = "{ok, M, _} = ra:members(amqqueue:get_pid(Q))"
    return f"{_found(vhost, queue)}, {members}, lists:keymember({_atom(node)}, 2, M)."


def transfer(vhost: str, queue: str, node: str) -> str:
    """Return the Erlang expression that makes a member the leader, which then is ``ok``.

    Examples
    --------
    >>> print(transfer("/", "a", "rabbit@b").partition("), ")[0])
    {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<47>>, queue, <<"a">>)
    """
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
