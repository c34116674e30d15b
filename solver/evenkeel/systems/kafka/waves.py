"""Waves as Kafka's tools take them: a reassignment each, and an election of preferred leaders."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Setting, Wave
from evenkeel.systems.kafka.cluster import observe
from evenkeel.systems.kafka.documents import kind_of
from evenkeel.systems.kafka.reassignment import (
    VERSION,
    broker_ids,
    document,
    election,
    handed_back,
    preferring,
    rows,
    standing_in,
    topics_of,
)

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

SHELL = r"""
# kafka NAME ARGUMENT...: a tool of Kafka's, by whichever name it is installed
kafka() {
  tool=$1; shift
  if command -v "kafka-$tool.sh" >/dev/null; then tool=kafka-$tool.sh; else tool=kafka-$tool; fi
  if [ -n "$ZOOKEEPER" ]; then set -- --zookeeper "$ZOOKEEPER" "$@"
  else set -- --bootstrap-server "$BOOTSTRAP" "$@"; fi
  "$tool" "$@"
}

has() { command -v "kafka-$1.sh" >/dev/null || command -v "kafka-$1" >/dev/null; }

# secured NAME ARGUMENT...: the same, with the properties of a secured cluster
secured() {
  name=$1; shift
  [ -z "$PROPERTIES" ] || set -- --command-config "$PROPERTIES" "$@"
  kafka "$name" "$@"
}

# what leads nowhere any more is cancelled once, before anything is looked at or ordered
drop() {
  [ -e "$here/cancel.json" ] || return 0
  secured reassign-partitions --reassignment-json-file "$here/cancel.json" --cancel &&
    mv -- "$here/cancel.json" "$here/cancelled.json"
}

take() {
  drop || return 1
  secured topics --describe >"$dump/described.txt" || return 1
  if [ -z "$ZOOKEEPER" ] && has broker-api-versions; then
    secured broker-api-versions >"$dump/answers.txt" || return 1
  fi
}

apply() {
  [ -e "$1.reassignment.json" ] || return 0
  set -- --reassignment-json-file "$1.reassignment.json" --execute
  [ -z "$THROTTLE" ] || set -- "$@" --throttle "$THROTTLE"
  secured reassign-partitions "$@"
}

settle() {
  spent=0
  while [ -e "$1.reassignment.json" ]; do
    set -- "$1" --reassignment-json-file "$1.reassignment.json"
    told=$(secured reassign-partitions "$2" "$3" --verify) || {
      printf '%s\n' "$told" >&2
      return 1
    }
    case $told in *"in progress"*) ;; *) break ;; esac
    open=$(printf '%s\n' "$told" | grep -c 'in progress')
    nap "--verify says of $open partitions that they are in progress" || {
      printf '%s\n' "$told" | grep 'in progress' | head -n 20 >&2
      printf 'run.sh: %s\n' \
        'Kafka goes on with them: run it again to wait on, or resume the plan from there;' \
        "to cancel them: kafka-reassign-partitions --cancel with $1.reassignment.json" >&2
      return 1
    }
  done
  [ -e "$1.election.json" ] || return 0
  if has leader-election; then
    set -- --election-type PREFERRED --path-to-json-file "$1.election.json"
    [ -z "$PROPERTIES" ] || set -- --admin.config "$PROPERTIES" "$@"
    kafka leader-election "$@"
  else
    kafka preferred-replica-election --path-to-json-file "$1.election.json"
  fi
}
"""

SETTINGS = (
    Setting("BOOTSTRAP", "localhost:9092", "brokers to ask first"),
    Setting("PROPERTIES", "", "file of client properties, of a cluster that asks who one is"),
    Setting("THROTTLE", "", "bytes per second that a broker may spend on copies; any where empty"),
    Setting("ZOOKEEPER", "", "address of ZooKeeper, for releases before 2.5 in place of brokers"),
)

NOTES = (
    "No other reassignment may run beside it, nor Cruise Control.",
    "A wave ends by `kafka-reassign-partitions --verify`, which also takes the throttle away. Who "
    "interrupts a wave runs that, or `run.sh` again.",
    "Preferred leaders are elected after each wave; a broker that is not in sync cannot be.",
)


def files(cluster: Cluster, waves: Sequence[Wave]) -> list[dict[str, bytes]]:
    """Return a reassignment for each wave, and the election of those that are to lead.

    Raises
    ------
    InvalidInput
        If a node or partition is not named as Kafka names them, or a partition would be left
        without replicas.
    """
    faults = FaultList()
    touched = dict.fromkeys(one.partition for wave in waves for one in wave)
    topics, brokers = topics_of(faults, cluster, touched), broker_ids(faults, cluster)
    stays = standing_in(cluster.placement)
    told = [
        {one.partition: preferred(one, stays=stays[one.partition]) for one in wave}
        for wave in waves
    ]
    for wave, lists in zip(waves, told, strict=True):
        for one in wave:
            if not lists[one.partition]:
                faults.add(one.name, [], "would be left without replicas")
    faults.raise_if_any()
    returns = handed_back(cluster.placement)
    found = []
    for wave, lists in zip(waves, told, strict=True):
        parts = {}
        for one in wave:
            # an election alone gives the lead back to the first of a list
            if returns[one.partition] and one.before == one.after and leader(one) == one.after[0]:
                del lists[one.partition]
        if lists:
            parts["reassignment.json"] = document(rows(topics, brokers, cluster, lists), VERSION)
        elected = [
            topics[one.partition] for one in wave
            if one.leads >= 0 and lists.get(one.partition, one.after)[0] == leader(one)
        ]  # fmt: skip
        if elected:
            parts["election.json"] = election(elected)
        found.append(parts)
    return found


def preferred(change: Change, *, stays: bool = False) -> list[int]:
    """Return the nodes of a partition after a change, the one that leads in front.

    What is as it was has the order that it had, and so has what ``stays`` with who stands in for
    the first of the list.
    """
    was, nodes = ([n for n in row if n >= 0] for row in (change.before, change.after))
    if change.restored:
        return nodes
    return preferring(was, nodes, change.leads, stays=stays and change.led == change.leads)


def leader(change: Change) -> int:
    """Return who leads once the preferred one is elected; -1 where nobody did."""
    after, leads = change.after, change.leads
    if leads < 0 or (leads in after and not change.restored):
        return leads
    # who leads is not to: the first of the list is preferred then
    return next(n for n in after if n >= 0)


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the throttle of a broker, where the plan is paced."""
    rate = plan.throttle.node_bandwidth
    return {} if rate is None else {"THROTTLE": f"{max(int(rate), 1)}"}


def keeps_pace(plan: "Plan") -> bool:
    """Return whether a broker's rate is all that paces the plan: Kafka knows no other."""
    others = replace(plan.throttle, node_bandwidth=None)
    return not others.paces


def beside(plan: "Plan") -> Mapping[str, bytes]:
    """Return the reassignments to be cancelled first, of which Kafka asks for the partitions."""
    names = dict.fromkeys(one.partition for one in plan.cancelled)
    if not names:
        return {}
    faults = FaultList()
    cluster = plan.cluster
    place = {name: p for p, name in enumerate(cluster.partitions.names)}
    first, node = cluster.placement.first.tolist(), cluster.placement.node.tolist()
    held = {
        p: [n for n in node[first[p] : first[p + 1]] if n >= 0] for p in map(place.get, names)
        if p is not None
    }  # fmt: skip
    topics, brokers = topics_of(faults, cluster, held), broker_ids(faults, cluster)
    faults.raise_if_any()
    return {"cancel.json": document(rows(topics, brokers, cluster, held), VERSION)}


def lists_brokers(documents: Sequence[Document]) -> bool:
    """Return whether they tell which brokers answer: a description names those with replicas."""
    return any(kind_of(one) == "answers" for one in documents)


CARRIER = Carrier(
    files, SHELL, SETTINGS, NOTES, leader, observe=observe, lists_nodes=lists_brokers, given=given,
    beside=beside, keeps_pace=keeps_pace, pace="Kafka has a rate of each broker alone, `THROTTLE`.",
    drops="`run.sh` cancels these reassignments before anything else, `kafka-reassign-partitions "
    "--cancel` with `cancel.json`; Kafka executes no others while they wait. It can since 2.6.",
)  # fmt: skip
