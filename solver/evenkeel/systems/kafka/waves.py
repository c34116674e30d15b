"""Waves as Kafka's tools take them: a reassignment each, and an election of preferred leaders."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import (
    Answer,
    Carrier,
    Change,
    Orders,
    Wave,
    comers,
    stem,
)
from evenkeel.systems.folders.form import Command, Hold, Setting
from evenkeel.systems.kafka.cluster import observe
from evenkeel.systems.kafka.documents import AssignedPartition, kind_of
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

UNREACHED = (
    "Kafka waits a minute for a broker that is down to take the throttle, and fails once the "
    "others have it"
)
GOES_ON = "Kafka copies (--cancel in the place of --verify takes that back)"

THROTTLED = "waves/throttled.json"
"""The file of all that a folder moves: its ``--verify`` takes the throttle of all that away."""

SETTINGS = (
    Setting("BOOTSTRAP", "localhost:9092", "brokers to ask first", unless="ZOOKEEPER"),
    Setting("PROPERTIES", "", "file of client properties, of a cluster that asks who one is"),
    Setting("THROTTLE", "", "bytes per second that a broker may spend on copies; any where empty"),
    Setting("ZOOKEEPER", "", "address of ZooKeeper, for releases before 2.5 in place of brokers"),
)

NOTES = (
    "No other reassignment may run beside it, nor Cruise Control.",
    "A wave ends by `kafka-reassign-partitions.sh --verify`, which also takes the throttle "
    "away, of brokers that are up. After an interrupt it stays while Kafka copies: run `run.sh` "
    "again, or `evenkeel run FOLDER --release` once that has ended.",
    "Distributions that install the tools without `.sh` need no change here, but in commands that "
    "are entered by hand.",
    "Preferred leaders are elected after each wave; a broker that is not in sync cannot be.",
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return a reassignment for each wave, and the election of those that are to lead."""
    faults = FaultList()
    touched = dict.fromkeys(one.partition for wave in waves for one in wave)
    topics, brokers = topics_of(faults, cluster, touched), broker_ids(faults, cluster)
    stays = standing_in(cluster.placement)
    lists_of_waves = [
        {one.partition: preferred(one, stays=stays[one.partition]) for one in wave}
        for wave in waves
    ]
    for wave, lists in zip(waves, lists_of_waves, strict=True):
        for one in wave:
            if not lists[one.partition]:
                faults.add(one.name, [], "would be left without replicas")
    faults.raise_if_any()
    returns = handed_back(cluster.placement)
    dead = {*np.flatnonzero(~cluster.nodes.alive).tolist()}
    # without replicas: --verify asks those that it names for their throttle, and one may be down
    moved = dict.fromkeys(p for lists in lists_of_waves for p in lists)
    bare = (AssignedPartition(*topics[p], []) for p in moved)
    throttled = document(bare, VERSION)
    found = []
    for number, (wave, lists) in enumerate(zip(waves, lists_of_waves, strict=True), start=1):
        own = Orders()
        for one in wave:
            # an election alone gives the lead back to the first of a list
            if returns[one.partition] and one.before == one.after and leader(one) == one.after[0]:
                del lists[one.partition]
        name = stem(number, len(waves))
        if lists:
            file = f"{name}reassignment.json"
            own.files[file] = document(rows(topics, brokers, cluster, lists), VERSION)
            own.files[THROTTLED] = throttled
            execute = _reassign(file, "--execute", ["--throttle", "${THROTTLE}"])
            execute.hold = Hold("throttle", [_reassign(THROTTLED, "--verify", check="reassigned")])
            if any(n in dead for one in wave for n in (*one.before, *one.after)):
                execute.otherwise = _reassign(file, "--execute", about=UNREACHED)
            own.commands.append(execute)
            wait = _reassign(file, "--verify", about=GOES_ON, check="reassigned", waits=True)
            own.ends.append(wait)
        elected = [
            topics[one.partition] for one in wave
            if one.leads >= 0 and lists.get(one.partition, one.after)[0] == leader(one)
        ]  # fmt: skip
        if elected:
            file = f"{name}election.json"
            own.files[file] = election(elected)
            own.ends.append(_election(file))
        found.append(own)
    return found


def stages(cluster: Cluster, waves: Sequence[Wave]) -> list[Wave]:
    """Return the waves without lists that name a broker that is down, which Kafka refuses.

    What a partition gains before the last such broker leaves its list, it gains with that.
    """
    dead = {*np.flatnonzero(~cluster.nodes.alive).tolist()}
    last = {one.partition: number for number, wave in enumerate(waves) for one in wave}
    put_off: dict[int, Change] = {}
    found: list[Wave] = []
    for number, wave in enumerate(waves):
        own = []
        for one in wave:
            if one.partition in put_off:
                begun = put_off.pop(one.partition)
                joins = comers(begun.before, one.after)
                one = one._replace(before=begun.before, led=begun.led, joins=joins)
            if dead.isdisjoint(one.after) or number == last[one.partition]:
                own.append(one)
            else:
                put_off[one.partition] = one
        if own:
            found.append(own)
    return found


def _tool(
    name: str, *words: str | Sequence[str], config: str = "--command-config"
) -> Sequence[str | Sequence[str]]:
    """Return a call of a tool, of a release that asks ZooKeeper, too, and of a secured cluster."""
    where = [["--bootstrap-server", "${BOOTSTRAP}"], ["--zookeeper", "${ZOOKEEPER}"]]
    return [f"kafka-{name}.sh", *where, [config, "${PROPERTIES}"], *words]


def _reassign(
    file: str, *words: str | Sequence[str], about: str = "", check: str = "", waits: bool = False
) -> Command:
    run = _tool("reassign-partitions", "--reassignment-json-file", "${FILE}", *words)
    return Command(run, about, file, check=check, waits=waits)


def _election(file: str) -> Command:
    """Return the election of preferred leaders, by the tool of releases before 2.4 as well."""
    path = ["--path-to-json-file", "${FILE}"]
    run = _tool("leader-election", "--election-type", "PREFERRED", *path, config="--admin.config")
    old = Command(_tool("preferred-replica-election", *path), file=file)
    return Command(run, file=file, otherwise=old)


def look(plan: "Plan") -> list[Command]:
    """Return what describes topics, and asks which brokers answer."""
    answers = ["kafka-broker-api-versions.sh", "--bootstrap-server", "${BOOTSTRAP}",
               ["--command-config", "${PROPERTIES}"]]  # fmt: skip
    return [
        Command(_tool("topics", "--describe"), save="described.txt"),
        Command(answers, save="answers.txt", optional=True),
    ]


def reassigned(output: str) -> Answer:
    """Return whether ``--verify`` says of no partition that it is in progress."""
    going = sum("in progress" in line for line in output.splitlines())
    return Answer(
        not going, f"--verify says of {going} partitions that they are in progress" if going else ""
    )


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
    """Return who leads once the preferred one is elected; -1 where none did."""
    after, leads = change.after, change.leads
    if leads < 0 or (leads in after and not change.restored):
        return leads
    # who leads is not to: the first of the list is preferred then
    return next(n for n in after if n >= 0)


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the throttle of a broker, where the plan is paced."""
    rate = plan.throttle.node_bandwidth
    return {} if rate is None else {"THROTTLE": f"{max(int(rate), 1)}"}


def first(plan: "Plan") -> Orders:
    """Return the reassignments to be cancelled first, of which Kafka asks for the partitions."""
    names = dict.fromkeys(one.partition for one in plan.cancelled)
    if not names:
        return Orders()
    faults = FaultList()
    cluster = plan.cluster
    place = {name: p for p, name in enumerate(cluster.partitions.names)}
    begin, node = cluster.placement.first.tolist(), cluster.placement.node.tolist()
    held = {
        p: [n for n in node[begin[p] : begin[p + 1]] if n >= 0] for p in map(place.get, names)
        if p is not None
    }  # fmt: skip
    topics, brokers = topics_of(faults, cluster, held), broker_ids(faults, cluster)
    faults.raise_if_any()
    files = {"cancel.json": document(rows(topics, brokers, cluster, held), VERSION)}
    return Orders([_reassign("cancel.json", "--cancel")], files)


def lists_brokers(documents: Sequence[Document]) -> bool:
    """Return whether they tell which brokers answer: a description names those with replicas."""
    return any(kind_of(one) == "answers" for one in documents)


CARRIER = Carrier(
    orders, look, {"reassigned": reassigned}, SETTINGS, NOTES, leader=leader, observe=observe,
    lists_nodes=lists_brokers, given=given, first=first, keeps_pace=True,
    stages=stages, still="brokers and topics are left with the throttle on copies",
    drops="A run cancels these reassignments before anything else, `kafka-reassign-partitions.sh "
    "--cancel` with `cancel.json`; Kafka executes no others while they wait. It can since 2.6.",
)  # fmt: skip
