"""Waves as RabbitMQ's tools take them: calls that add and delete members, queue by queue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Orders, Wave, equals
from evenkeel.systems.folders.form import Command, Setting, literal, shown
from evenkeel.systems.rabbitmq.calls import caught_up, check_texts, has_member, transfer
from evenkeel.systems.rabbitmq.documents import recognises

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

SETTINGS = (Setting("VHOST", "/", "virtual host of the queues"),)

NOTES = (
    "Run it on a node of the cluster, as a user that may call `rabbitmqctl`.",
    "A member that joins is waited for until its log is as long as the others'; only then another "
    "is deleted. One on a node that is down is deleted first: it counts for the majority of its "
    "queue, which a member that has yet to catch up would make harder to have.",
    "`rabbitmq-queues grow`, `shrink` and `rebalance` may not run beside it.",
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the calls of each wave.

    Raises
    ------
    InvalidInput
        If the cluster was not read from RabbitMQ or has several virtual hosts, a queue would be
        left without members, or a name cannot stand in a command.
    """
    vhost = _vhost(cluster)
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


def _vhost(cluster: Cluster) -> str:
    """Return the virtual host of all queues, or raise where there are several."""
    native = cluster.native
    if not (isinstance(native, dict) and {"queues", "keys"} <= native.keys()):
        message = "was not read from RabbitMQ: there are no queues to change"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
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
    orders, look, CHECKS, SETTINGS, NOTES, leader=leader, lists_nodes=lists_nodes, given=given
)
