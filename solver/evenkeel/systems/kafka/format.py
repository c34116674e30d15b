"""The Kafka format: read output of Kafka's tools, and write the files that they take.

References
----------
Apache Kafka, tools ``kafka-reassign-partitions``, ``kafka-topics --describe``, ``kafka-log-dirs``
and ``kafka-leader-election``; Cruise Control, capacity file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.runtime.figures import amount
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.planning.changes.targets import lists_lost
from evenkeel.planning.planner import planned
from evenkeel.planning.throttle import Protocol, Throttle
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Answer, Carrier, Change, Orders, Wave, comers, stem
from evenkeel.systems.folders.form import Command, Hold, Setting
from evenkeel.systems.kafka.cluster import COUNT, observe, read, room_for_all
from evenkeel.systems.kafka.disks import (
    ANY,
    folders_in,
    folders_of_disks,
    inside_waves,
    moved_inside,
    named_disks,
)
from evenkeel.systems.kafka.disks import notes as notes_on_disks
from evenkeel.systems.kafka.documents import (
    ASKS,
    WORDS,
    AssignedPartition,
    hint,
    kind_of,
    recognises,
)
from evenkeel.systems.kafka.missing import NAMED, Missing, remembered
from evenkeel.systems.one_way import left_disabled, one_way

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
from evenkeel.systems.payload import payload_of
from evenkeel.systems.registry import Format

VERSION = ',"version":1'  # the end of a reassignment, after its partitions


def encode(
    cluster: Cluster,
    placement: Placement | None,
    path: Path,
    *,
    partitions: Literal["changed", "all"] | None = None,
) -> dict[Path, bytes]:
    """Return a reassignment, and beside it its rollback and the election of leaders."""
    faults = FaultList()
    target = cluster.placement if placement is None else placement
    topics = topics_of(faults, cluster, range(len(cluster.partitions)))
    brokers = broker_ids(faults, cluster)
    faults.raise_if_any()
    everything = partitions == "all" or (partitions is None and placement is None)
    now = [_slots(cluster.placement, p) for p in range(len(topics))]
    then = now if placement is None else _preferring(now, cluster.placement, target)
    # Kafka refuses a file that names a dead broker, and cannot copy without a source
    lost = stranded(cluster.placement)
    waits = lists_lost(cluster, target) | lost | _left_alone(cluster.placement, target)
    for p in np.flatnonzero(waits).tolist():
        then[p] = now[p]
    inside = moved_inside(cluster, target) & ~waits
    chosen = [p for p in range(len(topics)) if everything or now[p] != then[p] or inside[p]]
    for p in chosen:
        if now[p] and not then[p]:
            faults.add(cluster.partitions.names[p], [], "would be left without replicas")
    faults.raise_if_any()
    entries = partial(rows, topics, brokers, cluster)
    lies = folders_in(cluster, target, [p for p in chosen if not waits[p]])
    files = {path: document(entries({p: then[p] for p in chosen}, lies), VERSION)}
    if placement is not None:
        leads, led = target.leader_node, cluster.placement.leader_node
        elected = [
            topics[p]
            for p in np.flatnonzero(leads >= 0).tolist()
            # a replica that leads already needs no election
            if leads[p] != led[p] and then[p][:1] == [leads[p]] and not lost[p]
        ]
        back = _way_back(cluster, target, now, then)
        # a list is not restored that was too long when it was read
        native = cluster.native if isinstance(cluster.native, dict) else {}
        surplus, names = {*native.get("surplus", ())}, cluster.partitions.names
        kept = [
            p for p in chosen
            if p in back and (len(now[p]) <= len(then[p]) or names[p] not in surplus)
        ]  # fmt: skip
        back_rows = entries({p: back[p] for p in kept})
        files[path.with_suffix(".rollback.json")] = document(back_rows, VERSION)
        files[path.with_suffix(".election.json")] = election(elected)
    return files


def _way_back(
    cluster: Cluster, target: Placement, now: list[list[int]], then: list[list[int]]
) -> dict[int, list[int]]:
    """Return the lists to go back to, by partition."""
    stays, one_sided = left_disabled(cluster, target), one_way(cluster, target)
    # a list stays that has left a failed log directory
    lists = {p: row for p, row in enumerate(now) if not stays[p]}
    one_sided &= ~stays
    if not one_sided.any():
        return lists
    # Nothing can be copied back to a dead broker: what left one goes back as far as a plan for the
    # way back does, which leaves a list as it is where another replica has taken the place.
    there = one_sided[target.owner]
    home = target.replaced(
        np.where(there, cluster.placement.node, target.node),
        np.where(one_sided, cluster.placement.leader, target.leader),
    )
    end = planned(
        replace(cluster, placement=target), home, Throttle(), Protocol.named("kafka")
    ).end  # fmt: skip
    for p in np.flatnonzero(one_sided).tolist():
        lists[p] = preferring(now[p], _slots(end, p), int(end.leader_node[p]), stays=False)
        if lists[p] == then[p]:
            del lists[p]
    return lists


def _left_alone(now: Placement, then: Placement) -> NDArray[np.bool_]:
    """Return the partitions whose replicas are all pinned and unchanged, (P,) bool."""
    pinned = np.ones(len(now), np.bool_)
    pinned[now.owner[now.flags & Flag.PINNED == 0]] = False
    pinned &= now.leader_node == then.leader_node
    # where people pin them, the list may still be to begin with another leader
    asked = np.zeros(len(now), np.bool_)
    asked[now.owner[now.flags & Flag.LEFT_ALONE == 0]] = True
    pinned &= ~asked | (now.preferred_node == then.preferred_node)
    return pinned & np.array(
        [
            still and sorted(_slots(now, p)) == sorted(_slots(then, p))
            for p, still in enumerate(pinned)
        ],
        np.bool_,
    )


def topics_of(
    faults: FaultList, cluster: Cluster, partitions: Iterable[int]
) -> dict[int, tuple[str, int]]:
    """Return the topic and number of each partition, from its name."""
    names, found = [*cluster.partitions.names], {}
    for p in partitions:
        topic, _, number = names[p].rpartition("-")
        if not topic or not number.isdecimal():
            faults.add(f"partition_names[{p}]", names[p], "must be topic-number")
            continue
        found[p] = (topic, int(number))
    return found


def broker_ids(faults: FaultList, cluster: Cluster) -> list[int]:
    """Return the numbers of brokers, by node."""
    for n, name in enumerate(cluster.nodes.names):
        if not name.isdecimal():
            faults.add(f"node_names[{n}]", name, "must be a broker id in files of Kafka")
    return [int(name) for name in cluster.nodes.names if name.isdecimal()]


def _slots(placement: Placement, p: int) -> list[int]:
    """Return the nodes of a partition in the order of its slots, the preferred leader first."""
    nodes = placement.node[placement.first[p] : placement.first[p + 1]]
    return [n for n in nodes.tolist() if n >= 0]


def _preferring(was: Sequence[list[int]], now: Placement, then: Placement) -> list[list[int]]:
    """Return the nodes of each partition, the planned leader first: Kafka prefers that."""
    stands_in = standing_in(now).tolist()
    led, leads = now.leader_node.tolist(), then.leader_node.tolist()
    return [
        preferring(was[p], _slots(then, p), leads[p], stays=stands_in[p] and led[p] == leads[p])
        for p in range(len(now))
    ]


def standing_in(now: Placement) -> NDArray[np.bool_]:
    """Return the partitions with a stand-in for a preferred leader that cannot lead, (P,) bool."""
    return (now.leader > 0) & ~handed_back(now)


def handed_back(now: Placement) -> NDArray[np.bool_]:
    """Return the partitions whose preferred leader an election restores, (P,) bool."""
    returns = np.zeros(len(now), np.bool_)
    returns[now.owner[(now.flags & Flag.PREFERRED) != 0]] = True
    return returns


def preferring(was: list[int], nodes: list[int], leader: int, *, stays: bool) -> list[int]:
    """Return the nodes of a partition with the leader first, which Kafka then prefers."""
    # if the lead ``stays`` with a stand-in and the preferred leader remains, the order is kept
    if leader not in nodes or (stays and was[:1] == nodes[:1]):
        return nodes
    return [leader, *(n for n in nodes if n != leader)]


class Payload(TypedDict, total=False):
    """What was read beside a cluster."""

    log_dirs: dict[str, dict[str, str]]


def rows(
    topics: Mapping[int, tuple[str, int]],
    brokers: Sequence[int],
    cluster: Cluster,
    nodes: Mapping[int, list[int]],
    lies: Mapping[int, Mapping[int, str]] = MappingProxyType({}),
) -> Iterator[AssignedPartition]:
    """Yield the entry of each partition, with the log directories of its replicas."""
    # ``lies`` has the directories to go to, by partition and node; replicas that stay keep the
    # known one
    known: Mapping[str, Mapping[str, str]] = {}
    if isinstance(cluster.native, dict):
        known = payload_of(cluster, Payload, "holds no log directories").get("log_dirs", {})
    names = [*cluster.partitions.names]
    texts = [*map(str, brokers)]
    for p, own in nodes.items():
        folders, asked = known.get(names[p]), lies.get(p, {})
        dirs = None
        if folders or asked:
            dirs = [asked.get(n) or (folders or {}).get(texts[n], ANY) for n in own]
        yield AssignedPartition(*topics[p], [brokers[n] for n in own], dirs)


def election(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Return the document that elects the preferred leaders of partitions."""
    return document(({"topic": topic, "partition": number} for topic, number in partitions), "")


def document(rows: Iterable[object], rest: str) -> bytes:
    """Return a document with one partition per line, which diffs well."""
    # JSON text has no line ends of its own, so each ends a row
    lines = msgspec.json.Encoder().encode_lines(rows)[:-1].replace(b"\n", b",\n")
    return b'{"partitions":[\n' + lines + f"\n]{rest}}}\n".encode()


UNREACHED = (
    "Kafka waits a minute for a broker that is down to take the throttle, and fails once the "
    "others have it"
)
GOES_ON = "Kafka copies (--cancel in the place of --verify takes that back)"

GOES_ON_INSIDE = "brokers copy from one log directory to the other"

# the file of all that a folder moves: its ``--verify`` takes the throttle of all that away
THROTTLED = "waves/throttled.json"

SETTINGS = (
    Setting("BOOTSTRAP", "localhost:9092", "brokers to ask first", unless="ZOOKEEPER"),
    Setting("PROPERTIES", "", "file of client properties, of a cluster that asks who one is"),
    Setting("THROTTLE", "", "bytes per second that a broker may spend on copies; any where empty"),
    Setting(
        "DISK_THROTTLE",
        "",
        "bytes per second that a broker may move between its log directories; any where empty",
    ),
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
    lists_of_waves: list[dict[int, list[int]]] = []
    for wave in waves:
        lists = {}
        for one in wave:
            p = one.partition
            lists[p] = preferred(one, stays=stays[p])
            # a list that begins with its leader once has no stand-in afterwards
            stays[p] &= lists[p][:1] != [one.leads]
            if not lists[p]:
                faults.add(one.name, [], "would be left without replicas")
        lists_of_waves.append(lists)
    faults.raise_if_any()
    returns, folders = handed_back(cluster.placement), folders_of_disks(cluster)
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
            elected_alone = one.first < 0 and returns[one.partition] and one.before == one.after
            if elected_alone and leader(one) == one.after[0]:
                del lists[one.partition]
        name = stem(number, len(waves))
        if lists:
            file = f"{name}reassignment.json"
            lies = {one.partition: _joining(one, folders) for one in wave} if folders else {}
            own.files[file] = document(rows(topics, brokers, cluster, lists, lies), VERSION)
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


def _joining(one: Change, folders: Sequence[str]) -> dict[int, str]:
    """Return the log directory of each replica that joins, by node; others stay where they are."""
    return {
        n: folders[one.lies[n]] if n in one.joins and n in one.lies else ANY for n in one.after
    }  # fmt: skip


def _inside(plan: "Plan", *, early: bool) -> Orders:
    """Return the moves between log directories of a broker, wave by wave."""
    found, faults, cluster = Orders(), FaultList(), plan.cluster
    waves = [*inside_waves(plan, early=early)]
    if not waves:
        return found
    touched = dict.fromkeys(p for _, lies in waves for p in lies)
    topics, brokers = topics_of(faults, cluster, touched), broker_ids(faults, cluster)
    faults.raise_if_any()
    start, end = cluster.placement, plan.end
    lists = [_slots(start, p) for p in range(len(start))]
    if not early:
        lists = _preferring(lists, start, end)
    bare = (AssignedPartition(*topics[p], []) for p in touched)
    name = f"waves/inside-{'before' if early else 'after'}.json"
    found.files[name] = document(bare, VERSION)
    held = Hold("throttle inside brokers", [_reassign(name, "--verify", check="reassigned")])
    # what a run before has ordered ends first
    found.commands.append(_reassign(name, "--verify", check="reassigned", waits=True))
    for number, lies in waves:
        file = f"waves/inside-{number + 1}.reassignment.json"
        anywhere = {p: dict.fromkeys(lists[p], ANY) | own for p, own in lies.items()}
        own = {p: lists[p] for p in lies}
        found.files[file] = document(rows(topics, brokers, cluster, own, anywhere), VERSION)
        execute = _reassign(
            file, "--execute", ["--replica-alter-log-dirs-throttle", "${DISK_THROTTLE}"]
        )
        execute.hold = held
        verify = _reassign(file, "--verify", about=GOES_ON_INSIDE, check="reassigned", waits=True)
        found.commands.extend([execute, verify])
    return found


def inside(plan: "Plan") -> tuple[Orders, Orders]:
    """Return the moves inside brokers, those that make room for copies and those after them."""
    return _inside(plan, early=True), _inside(plan, early=False)


def stages(cluster: Cluster, waves: Sequence[Wave]) -> list[Wave]:
    """Return the waves without lists that name a broker that is down, which Kafka refuses."""
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
                # else the list stays, and its first broker leads already
                if one.before != one.after or one.first >= 0 or leader(one) != one.led:
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


# what ``--verify`` prints of a replica that is not in its log directory and does not go there
NOT_MOVED = ("is not being moved from log dir", "in any live log dir")


def reassigned(output: str) -> Answer:
    """Return whether ``--verify`` says of no partition that it is in progress."""
    lines = output.splitlines()
    going = sum("in progress" in line or "is being moved to log dir" in line for line in lines)
    if going:
        return Answer(False, f"--verify says of {going} partitions that they are in progress")
    left = sum(any(words in line for words in NOT_MOVED) for line in lines)
    return Answer(True, f"--verify says of {left} replicas that no move goes on" if left else "")


def preferred(change: Change, *, stays: bool = False) -> list[int]:
    """Return the nodes of a partition after a change, the one that leads in front."""
    # what is as it was keeps its order, and so does what ``stays`` with a stand-in for the first
    was, nodes = ([n for n in row if n >= 0] for row in (change.before, change.after))
    if change.restored:
        return nodes
    stays = stays and change.first < 0 and change.led == change.leads
    return preferring(was, nodes, change.leads, stays=stays)


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
    orders=orders, look=look, checks={"reassigned": reassigned}, settings=SETTINGS, notes=NOTES,
    leader=leader, observe=observe, lists_nodes=lists_brokers, given=given, first=first,
    inside=inside, keeps_pace=True, stages=stages,
    still="brokers and topics are left with the throttle on copies",
    drops="A run cancels these reassignments before anything else, `kafka-reassign-partitions.sh "
    "--cancel` with `cancel.json`; Kafka executes no others while they wait. It can since 2.6.",
)  # fmt: skip


# how to get the missing sizes
LISTED = "list the log dirs of all brokers, after the topics are described"


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing input, each with its effect and what to add."""
    if "rack" not in cluster.topology.tiers:
        yield (
            "no racks: replicas of a partition may share one; add a file of racks, or what "
            "kafka-broker-api-versions.sh prints"
        )
    missing = remembered(cluster)
    if missing.filtered:
        yield (
            "no lines of topics, and partitions are missing: the listing is filtered, as by "
            "--under-replicated-partitions. What it leaves out is not counted, and a broker that "
            "shows no life in it may be up: describe all topics"
        )
    yield from _of_reassignments(missing)
    yield from missing.notes
    yield from _of_orders(missing)
    yield from _of_leads(cluster)
    yield from _of_replicas(missing)
    yield from _of_brokers(cluster, missing)
    yield from _of_log_dirs(missing)
    yield from notes_on_disks(missing)
    if "disk" not in cluster.dimensions:
        yield (
            "no sizes: every replica counts the same, and bytes are not known; add what "
            "kafka-log-dirs.sh --describe prints"
        )
    for name, count in missing.unmeasured.items():
        what, remedy = (
            (name, "add them to the table of loads") if name != "disk" else ("size", LISTED)
        )
        yield (
            f"no {what} of {count:,} of {counted(len(cluster.partitions), 'partition')}: it counts "
            f"as 0; {remedy}"
        )
    yield from _of_topics(missing)
    alike = uncapped(cluster)
    if alike and (alike != [COUNT] or cluster.dimensions == (COUNT,)):
        names = " and ".join(alike)
        yield (
            f"no capacities of {names}: percentages are of the load of all brokers together, and "
            "no broker counts as too full; add a file of capacities"
        )
    if awaited := [name for name in missing.awaited if name not in cluster.nodes.names]:
        yield (
            f"nothing of brokers {_some(awaited)} but capacities: they count only where "
            "--add-nodes names them"
        )
    for name, brokers in missing.uncapped.items():
        yield (
            f"no capacity of {name} of brokers {_some(brokers)}: they count as "
            "large enough for everything; add it to the file of capacities"
        )


def _of_leads(cluster: Cluster) -> Iterator[str]:
    """Yield a note on partitions that are not led by their preferred, in-sync replica."""
    placement, names = cluster.placement, cluster.partitions.names
    first = np.flatnonzero((placement.flags & Flag.PREFERRED) != 0)
    owner = placement.owner[first]
    waits = owner[placement.leader_node[owner] != placement.node[first]]
    if len(waits):
        named = _some([names[p] for p in waits[:NAMED].tolist()], len(waits))
        yield (
            f"no lead of the preferred broker in {counted(len(waits), 'partition')} "
            f"({named}), though it is in sync: Kafka restores it, by itself or by an election "
            "(kafka-leader-election.sh), which results count as a leader change; with "
            "--leader-changes the broker that leads becomes the preferred one instead"
        )
    first = np.flatnonzero((placement.flags & Flag.AWAITED) != 0)
    first = first[cluster.nodes.alive[placement.node[first]]]
    if len(first):
        named = _some([names[p] for p in placement.owner[first[:NAMED]].tolist()], len(first))
        yield (
            f"no lead of the preferred broker in {counted(len(first), 'partition')} "
            f"({named}), since it is not in sync: the list keeps its order where replicas and "
            "leader stay, also with --leader-changes, and Kafka restores the lead once it can"
        )


def _of_replicas(missing: Missing) -> Iterator[str]:
    """Yield notes on replicas that are not in sync though their brokers are up."""
    if missing.behind:
        order = sorted(missing.behind, key=lambda name: -missing.behind[name])
        each = [f"{missing.behind[name]:,} on {name}" for name in order]
        yield (
            f"{counted(sum(missing.behind.values()), 'replica')} not in sync in "
            f"{counted(missing.lagging_count, 'partition')} "
            f"({_some(missing.lagging, missing.lagging_count)}), on brokers that are up "
            f"({_some(each)}): they break no rule, and moves may go to these brokers: plan once "
            f"they are in sync, or with --exclude {order[0]}"
        )
    if missing.refused:
        yield (
            "fewer replicas in sync than min.insync.replicas in "
            f"{counted(missing.refused_count, 'partition')} "
            f"({_some(missing.refused, missing.refused_count)}): Kafka refuses writes with "
            "acks=all there, and no rule counts that while their brokers are up"
        )


def _of_brokers(cluster: Cluster, missing: Missing) -> Iterator[str]:
    """Yield notes on brokers whose state was inferred, and on controllers and observers."""
    nodes, node = cluster.nodes, cluster.placement.node
    index = {name: n for n, name in enumerate(nodes.names)}
    empty = np.bincount(node[node >= 0], minlength=len(nodes)) == 0
    down = [name for name in missing.down if name in index and not nodes.alive[index[name]]]
    silent = [name for name in down if not empty[index[name]]]
    if silent:
        yield (
            f"no sign of life of brokers {_some(silent)}, which lead nothing and are in sync with "
            "no leader: they count as dead; to be certain, add what "
            "kafka-broker-api-versions.sh prints"
        )
    silent = [name for name in down if empty[index[name]]]
    if silent:
        yield (
            f"no sign of life of brokers {_some(silent)}, which hold nothing: they count as dead; "
            "where they are controllers, that is right; where they are new, add what "
            "kafka-broker-api-versions.sh prints, or take them out of the racks and give them with "
            "--add-nodes"
        )
    up = [name for name in missing.up if name in index and nodes.alive[index[name]]]
    if up:
        why = (
            " in a listing that is filtered" if missing.filtered
            else ", which only join partitions, observe them or hold nothing that is listed"
        )  # fmt: skip
        yield (
            f"no sign of life of brokers {_some(up)}{why}: they count as up; to be certain, add "
            "what kafka-broker-api-versions.sh prints"
        )
    if missing.controllers:
        yield (
            f"nothing placed on {_some(missing.controllers)}: their properties say that they are "
            "controllers and no brokers"
        )
    if missing.observers:
        yield (
            f"no difference between replicas and observers, though there are "
            f"{missing.observers:,}: a reassignment cannot name them; pin their "
            "topics, or place these by Confluent's own constraints"
        )


def _of_reassignments(missing: Missing) -> Iterator[str]:
    """Yield notes on running reassignments, and on surplus and lacking replicas."""
    if missing.reassigned:
        yield (
            f"a running reassignment of {counted(missing.reassigned_count, 'partition')} "
            f"({_some(missing.reassigned, missing.reassigned_count)}): each counts as at "
            "its target, where a file has it, and no file written here changes it; until it has "
            "ended, "
            "kafka-reassign-partitions.sh --execute refuses another one without --additional, and "
            "--list shows its progress"
        )
    if missing.undescribed:
        yield (
            f"{counted(missing.undescribed_count, 'partition')} under reassignment "
            f"({_some(missing.undescribed, missing.undescribed_count)}) that no file describes: "
            "what they add to their brokers is not counted"
        )
    if missing.endless:
        yield (
            f"no end of the reassignment of {_some(missing.endless)} while a broker of its target "
            "is down: cancel it (kafka-reassign-partitions.sh --cancel), and describe again"
        )
    if missing.longer:
        yield (
            "more replicas than the replication factor in "
            f"{counted(missing.longer_count, 'partition')} "
            f"({_some(missing.longer, missing.longer_count)}): those that are in sync stay, others "
            "are dropped, not replaced, where no broker that is down would stay in the list: Kafka "
            "refuses it"
        )
    if missing.shorter:
        yield (
            "fewer replicas than the replication factor in "
            f"{counted(missing.shorter_count, 'partition')} "
            f"({_some(missing.shorter, missing.shorter_count)}): as many are wanted as there are; "
            "--replicas TOPIC=N gives each as many"
        )


def _of_orders(missing: Missing) -> Iterator[str]:
    """Yield notes on deleted topics, proposals, repeated lines, and demoted brokers."""
    if missing.deleted:
        yield (
            f"a mark of deletion on topics {_some(missing.deleted)}: Kafka reassigns none of their "
            "partitions, and they are not counted"
        )
    if missing.proposals:
        yield (
            f"a proposed assignment beside the current one ({_some(missing.proposals)}): the "
            "current one is read, and brokers of the other count as up; save the other as a file "
            "of its own, and give it as --target"
        )
    if missing.replaced:
        yield (
            f"unlike lines on {counted(missing.replaced_count, 'partition')} in one file "
            f"({_some(missing.replaced, missing.replaced_count)}): the last of each counts"
        )
    if missing.unheld:
        yield f"brokers in sync that hold no replica ({_some(missing.unheld)}): they count as none"
    if missing.demoted:
        yield (
            f"a demotion of brokers {_some(missing.demoted)}: they keep replicas, and lead none "
            "but of partitions that no other replica can lead, which stay"
        )
    if missing.unlimited:
        yield (
            f"no capacities of {' and '.join(missing.unlimited)}, for which load has -1: these are "
            "not counted; add a file of capacities"
        )


def _of_log_dirs(missing: Missing) -> Iterator[str]:
    """Yield notes on unreadable log directories and their replicas."""
    for broker, errors in missing.failed.items():
        lost = missing.offline.get(broker, [])
        held = f"{counted(len(lost), 'replica')}{f' ({_some(lost)})' if lost else ''}"
        yield (
            f"no access to log directory {_errors(errors)} on broker {broker}: {held} of it, in "
            "none of its others and not in sync, must move, and it takes no more"
        )
    for broker, errors in missing.unread.items():
        yield (
            f"no list of log directory {_errors(errors)} on broker {broker}: sizes may be missing"
        )


def _errors(errors: Mapping[str, str]) -> str:
    """Write log directories with their errors, without the package of a Java class."""
    return _some([
        f"{folder or 'of no name'} ({error.split(':')[0].rpartition('.')[2]})"
        for folder, error in errors.items()
    ])  # fmt: skip


def _of_topics(missing: Missing) -> Iterator[str]:
    """Yield notes on topics that no file describes."""
    named = _some(missing.topics, missing.topic_count)
    if missing.topics:
        yield (
            f"no description of topics that log dirs hold ({named}): they stay where they are, "
            "on a broker that is drained as well"
            + (f", and capacities of disk are less by {_bytes(missing.taken_off)}"
               if missing.taken_off else "")
            + (f", and {_bytes(missing.uncounted)} are not counted, for want of capacities"
               if missing.uncounted else "")
            + "; describe all topics, or add the others' description"
        )  # fmt: skip
    if missing.beyond:
        yield (
            "fewer replicas than min.insync.replicas in topics "
            f"{_some(missing.beyond, missing.beyond_count)}: Kafka asks for no more than there are"
        )
    if missing.loads:
        named = _some(missing.loads, missing.load_count)
        yield f"no description of topics that have loads ({named}): these are not counted"


def _bytes(held: Mapping[str, float]) -> str:
    """Write the bytes of all brokers together, and of those with the most."""
    order = sorted(held, key=lambda name: -held[name])
    each = [f"{amount(held[name])}B on {name}" for name in order]
    return f"{amount(sum(held.values()))}B ({_some(each)})"


def _some(names: Sequence[str], count: int | None = None) -> str:
    """Write the first names, and the number of others, of ``count`` in all."""
    return some_of(names, str, NAMED, count)


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions without given capacities: each broker has room for all replicas."""
    load = cluster.partitions.load
    room = room_for_all(cluster.placement.first, load.voter, load.leader)
    unlimited = np.isclose(cluster.nodes.capacity, room, rtol=1e-9).all(axis=0)
    return [cluster.dimensions[d] for d in np.flatnonzero(unlimited).tolist()]


def awaited(cluster: Cluster) -> Mapping[str, Mapping[str, float]]:
    """Return the capacities of brokers that only a file of capacities names."""
    return remembered(cluster).awaited


# leaders serve clients, and a transfer moves no data: they are levelled as well
USUAL = {"level": 0.05, "leaders": 0.1}

FORMAT = Format(
    name="kafka",
    summary="Kafka: reassignment, topic description, log dirs, racks and capacities",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    keeps_repairs=True,
    usual=lambda cluster: USUAL,
    left_out=left_out,
    named_disks=named_disks,
    uncapped=uncapped,
    awaited=awaited,
    stranded=(
        "Kafka copies from the leader, and no broker that is up is in sync: bring back one that "
        "was, or elect another at the loss of data (kafka-leader-election.sh --election-type "
        "unclean), and read again"
    ),
    hint=hint,
    asks=ASKS,
    words=WORDS,
)
