"""Waves as RabbitMQ's tools take them: calls that add and delete members, queue by queue."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Setting, Wave
from evenkeel.systems.rabbitmq.calls import FUNCTIONS, QueueChange, check_texts, lines_of
from evenkeel.systems.rabbitmq.documents import recognises

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

SHELL = (
    FUNCTIONS
    + r"""
waiting() {
  tell "waiting: $1"
  ! differs
}

take() {
  rabbitmqctl -q list_queues --vhost "$VHOST" name type leader members online --formatter json \
    >"$dump/queues.json" &&
    rabbitmqctl -q cluster_status --formatter json >"$dump/status.json"
}

# shellcheck disable=SC1090 # each wave has a file of its own
apply() { (. "$1.calls.sh"); }

settle() { :; }
"""
)

SETTINGS = (Setting("VHOST", "/", "virtual host of the queues"),)

NOTES = (
    "Run it on a node of the cluster, as a user that may call `rabbitmqctl`.",
    "A member that joins is waited for until its log is as long as the others'; only then another "
    "is deleted. One on a node that is down is deleted first: it counts for the majority of its "
    "queue, which a member that has yet to catch up would make harder to have.",
    "`rabbitmq-queues grow`, `shrink` and `rebalance` may not run beside it.",
)


def files(cluster: Cluster, waves: Sequence[Wave]) -> list[dict[str, bytes]]:
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
        found.append({"calls.sh": "".join(_lines(cluster, vhost, one) for one in wave).encode()})
    return found


def _lines(cluster: Cluster, vhost: str, change: Change) -> str:
    names = cluster.nodes.names
    leads = names[leader(change)] if leader(change) >= 0 else ""
    down = [n for n in change.leaves if not cluster.nodes.alive[n]]
    joins, leaves, lost = ([names[n] for n in some] for some in (change.joins, change.leaves, down))
    return lines_of(QueueChange(vhost, change.name, joins, leaves, leads, lost))


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
    """Return who is made the leader; -1 where nobody is."""
    return change.leads if change.leads != change.led else -1


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the virtual host."""
    return {"VHOST": _vhost(plan.cluster)}


def lists_nodes(documents: Sequence[Document]) -> bool:
    """Return whether they tell the nodes of the cluster: queues name those with members."""
    return any(recognises(one) in ("cluster status", "nodes") for one in documents)


CARRIER = Carrier(files, SHELL, SETTINGS, NOTES, leader, lists_nodes=lists_nodes, given=given)
