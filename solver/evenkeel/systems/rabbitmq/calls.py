"""Shell calls that change the members and leaders of queues."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evenkeel.model.errors import FaultList

LEAVE = (
    "pin this queue, cluster.pin(...), to leave it where it is and move the others; what leads it "
    "stays only where its node may keep it"
)

PLAIN = re.compile(r"[A-Za-z0-9_.@:-]+", re.ASCII)
"""Texts that need no escapes within Erlang quotes."""

UNFIT = re.compile(r"^-|[\0$`\\]")
"""Options, NUL, and characters that a shell interprets within quotes."""

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

BEHIND = 1000
"""Entries of a queue's log by which a member that has caught up may be behind."""


class QueueChange(NamedTuple):
    """Changes of one queue: joining and leaving nodes, and the new leader, "" for no change.

    Of the leaving nodes, ``lost`` ones are down.
    """

    vhost: str
    queue: str
    joins: Sequence[str]
    leaves: Sequence[str]
    leader: str
    lost: Sequence[str] = ()


def why_unfit(text: str) -> str:
    """Return why a text cannot be an argument of a command, even if quoted; "" if it can.

    Some packages wrap the tools in a script that hands arguments to a second shell.

    >>> why_unfit("orders"), why_unfit("amq.$1")[:26]
    ('', 'cannot stand in a command:')
    """
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
    """Return the calls for a queue: joins first, then the leader, then leaves.

    Lost members leave before all: they count for the majority, which a joining member would have
    to be part of before it has caught up.
    """
    return "".join(f"{line}\n" for line in _calls(change))


def _calls(change: QueueChange) -> Iterator[str]:
    queue = f"{shlex.quote(change.vhost)} {shlex.quote(change.queue)}"

    def leave(node: str) -> str:
        test = shlex.quote(has_member(change.vhost, change.queue, node))
        return f"leave {queue} {shlex.quote(node)} {test}"

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
