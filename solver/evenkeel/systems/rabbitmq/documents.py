"""Read RabbitMQ's documents: queues, cluster status, nodes, and zones."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.notes import Notes, Pages, last_states
from evenkeel.systems.printed import CUT_OFF, HEAD
from evenkeel.systems.rabbitmq.printed import in_json

Kind = Literal["queues", "cluster status", "nodes", "zones", ""]
Raw = dict[str, Any]
Bytes = Annotated[int, Meta(ge=0, lt=2**60)]

# what a page of ``/api/queues`` has, and one queue of ``/api/queues/VHOST/NAME`` has not
PAGE = re.compile(rb'"items"\s*:\s*\[')

# a request for one queue, whose answer ``jq`` may have stripped of the name
REQUEST = re.compile(rb"/api/queues/([^/\s\"'?|;)]+)/([^/\s\"'?|;)]+)")

# the kind of a queue, where no members are listed
OF_KIND = re.compile(rb'"type"\s*:\s*"(?:quorum|stream|classic)"')

# the name of a node in ``/api/nodes``, of which some columns alone may have been asked for
NODES = re.compile(rb'"name"\s*:\s*"[^"@\\]+@')

QUORUM = {"quorum", "rabbit_quorum_queue"}
# states of ``cluster_status`` outside of maintenance, and in it
AT_WORK = {"not under maintenance", "regular", "unknown", "false"}
UNDER_WAY = {
    "marked for maintenance", "draining", "drained", "maintenance", "under maintenance"
}  # fmt: skip

# the command and the banner of a listing, each with its virtual host, "/" where it has none
LISTING = re.compile(
    rb"^Listing queues for vhost (\S+) \.\.\.|"
    rb"\blist_queues\b(?:(?:[^\n\\]|\\\n)*? (?:-p|--vhost)[ =]([^\s'\"]+))?",
    re.MULTILINE,
)

FOR_PEOPLE = re.compile(
    rb"^(?:Timeout: |Listing queues for vhost |Cluster status of node |Status of quorum queue )"
    rb"|Raft State|^(?:Disk Nodes|Running Nodes)\s*$|^(?:vhost\t)?name\t",
    re.MULTILINE,
)
# other documents about queues, by their pattern
OTHERS = {
    rb"Raft State": "is quorum_status of one queue",
    rb"^Re-balancing leaders of ": "is what a rebalance did, and names no queue",
    rb"^(?:Growing|Shrinking) |^(?:vhost\t)?(?:name\t)?size\tresult": (
        "is what grow or shrink did, without the members of queues"
    ),
    rb'"rabbit(?:mq)?_version"\s*:': "is an export of definitions or an overview, without members",
    rb"^\+[-+]+\+\s*\n\| *(?:vhost|name) .*\b(?:name|messages|members|leader|state)\b": (
        "is a table of rabbitmqadmin"
    ),
    rb"^\s*\[+\{name,<<|<<\"|\bra:members|^\{ok,\[\{": "is what Erlang prints",
    rb"\A\s*NAME +STATUS +ROLES +AGE +VERSION\b": (
        'lists nodes of Kubernetes; zones are read as {"rabbit@a": "zone-1"}'
    ),
}

ASKS = "rabbitmqctl list_queues name type leader members online --formatter json"
LISTED = f"list all with {ASKS}"

# words of RabbitMQ's tools, and names of its nodes
WORDS = re.compile(
    rb"\brabbitmq(?:ctl|admin|-queues|-streams|-diagnostics)\b|\brabbit[\w-]*@\w|\bListing queues\b"
)

CUT_SHORT = (
    "a cluster_status that ends behind {}: states, alarms and partitions of nodes behind it are "
    "unknown; print all of it"
)

MOST_NAMED = 5  # queues that a note names; the rest is counted


class Queue(msgspec.Struct, gc=False):
    """A queue as ``list_queues`` or the management API has it; classic ones have no members."""

    name: str
    vhost: str | None = None  # ``list_queues`` does not print it
    type: str | None = None
    leader: str | None = None
    members: list[str] | str | None = None
    online: list[str] | str | None = None
    message_bytes: Bytes | str | None = None
    state: str | None = None
    learners: list[str] = []  # members without a vote, which ``quorum_status`` alone prints

    @property
    def is_quorum(self) -> bool:
        """Whether it has members that elect a leader."""
        return self.type in QUORUM if self.type else isinstance(self.members, list)


class Page(msgspec.Struct):
    """A page of ``/api/queues``, with the number of queues in all, and of those asked for."""

    items: list[Queue]
    total_count: int = 0
    filtered_count: int = 0


class RawPage(msgspec.Struct):
    """The same with every queue as it came."""

    items: list[Raw]


class Status(msgspec.Struct):
    """The answer of ``cluster_status``."""

    # one text without separators in releases 4.1.2 and 4.1.3, which convert lists to text
    running_nodes: list[str] | str
    disk_nodes: list[str] = []
    ram_nodes: list[str] | Literal[""] = []
    # a list where it is empty, as Erlang has it
    maintenance_status: dict[str, str] | list[Any] = {}
    partitions: Any = None
    alarms: Any = None
    cut: str = ""  # the last title, where it is printed in part


class Node(msgspec.Struct):
    """A node as ``/api/nodes`` has it."""

    name: str
    running: bool
    being_drained: bool = False
    mem_alarm: bool = False
    disk_free_alarm: bool = False
    partitions: list[str] = []


@dataclass
class QueueFindings:
    """Everything that was read, with its place in the files."""

    faults: FaultList
    vhost: str = "/"  # the virtual host of queues that name none
    rows: list[Raw] = field(default_factory=list)  # every queue as it came
    # the quorum queues, by virtual host and name
    queues: dict[tuple[str, str], tuple[str, Queue]] = field(default_factory=dict)
    # how many queues there are of each other kind
    others: Counter[str] = field(default_factory=Counter)
    hosts: set[str] = field(default_factory=set)  # nodes on which queues of other kinds are
    # the nodes of the cluster, as some file lists them, and where
    nodes: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)
    # nodes with a memory or disk alarm, which take no members
    alarmed: set[str] = field(default_factory=set)
    apart: set[str] = field(default_factory=set)  # nodes in a network partition
    may_miss_running: bool = False  # whether the list of nodes that run may go on
    notes: Notes = field(default_factory=Notes)
    pages: Pages = field(default_factory=Pages)
    zones: dict[str, tuple[str, str]] = field(default_factory=dict)


def recognises(document: Document) -> Kind:
    """Return the kind of a document; "" if it is none of RabbitMQ's."""
    document = in_json(document)[-1]
    head = document.data[:HEAD].lstrip()
    if not document.is_json:
        return ""
    if head.startswith(b"{") and b'"members"' in head:
        asked = REQUEST.search(document.before)
        return "queues" if asked or PAGE.search(head) or b'"type"' in head else ""
    if head.startswith(b"[") and b'"name"' in head:
        if b'"members"' in head and re.search(rb'"(leader|online|type)"', head):
            return "queues"
        if OF_KIND.search(head):
            return "queues"
        return "nodes" if b'"running"' in head and NODES.search(head) else ""
    if head.startswith(b"{") and b'"running_nodes"' in head:
        return "cluster status"
    zones = re.match(rb'\{\s*"[^"@\\]{1,99}@[^"\\]{1,255}"\s*:\s*"', head)
    return "zones" if zones else ""


def hint(document: Document) -> str:
    """Return how to print tables for people as JSON; "" for other documents."""
    head = document.data[:HEAD]
    for looks, reason in OTHERS.items():
        if re.search(looks, head, re.MULTILINE):
            if "zones" in reason:
                return reason
            return f"{reason}: {LISTED}"
    if not FOR_PEOPLE.search(head):
        return ""
    if re.search(rb"^(?:vhost\s+)?name\s(?!.*\b(?:members|leader|\w+_pids)\b)", head, re.M):
        return f"is what the tools of RabbitMQ print for people, without members: {LISTED}"
    return "is what the tools of RabbitMQ print for people: add --formatter json"


def gather(faults: FaultList, documents: Sequence[Document], vhost: str) -> QueueFindings:
    """Read all documents."""
    found = QueueFindings(faults, vhost)
    read = (answer for one in documents for answer in in_json(one))
    given = ((one.origin, *_subject(one, i), one) for i, one in enumerate(read))
    for document in last_states(found.notes, given):
        if document.cut:
            found.notes.add(CUT_OFF, document.name)
        kind = recognises(document)
        if kind == "queues":
            named = _vhost(document)
            found.vhost = named or vhost
            _take_queues(found, document, named if named and named != vhost else "")
        elif kind == "cluster status":
            _take_status(found, document)
        elif kind == "nodes":
            _take_nodes(found, document)
        elif kind == "zones":
            zones = decode_json(faults, document, dict[str, str]) or {}
            for name, zone in zones.items():
                at = f"{document.name}: {quoted(name)}"
                if found.zones.setdefault(name, (at, zone))[1] != zone:
                    faults.add(at, quoted(zone), f"contradicts {found.zones[name][0]}")
        elif document.data.strip() != b"[]":
            message = (
                "is not a list of queues, cluster status, list of nodes or map of zones as JSON"
            )
            faults.add(document.name, document.data[:40], message)
    found.pages.note(found.notes)
    return found


def _vhost(document: Document) -> str:
    """Return the virtual host that the banner or command before a listing names, if any."""
    listed = [*LISTING.finditer(document.before)]
    return (listed[-1][1] or listed[-1][2] or b"/").decode("utf-8", "replace") if listed else ""


def _subject(document: Document, number: int) -> tuple[str, str]:
    """Return what a document lists, in words, and what tells it from others of the same."""
    kind = recognises(document)
    if kind != "queues":
        return kind, "" if kind in ("cluster status", "nodes") else str(number)
    host = _vhost(document) if document.data.lstrip().startswith(b"[") else ""
    return (f"queues of {host}", "") if host else ("queues", str(number))


def _take_queues(found: QueueFindings, document: Document, vhost: str) -> None:
    """Read queues; ``vhost`` is the virtual host that their banner names, if it is another one."""
    paged = PAGE.search(document.data[:HEAD])
    if document.data.lstrip().startswith(b"{"):
        document = _listed(document) if paged else _one_queue(document)
    if paged:
        pages = decode_json(found.faults, document, list[Page])
        decoded = decode_json(found.faults, document, list[RawPage])
        if pages is None or decoded is None:
            return
        raw = [row for page in decoded for row in page.items]
        rows = [row for page in pages for row in page.items]
        for page in pages:
            total = max(page.total_count, page.filtered_count)
            found.pages.add("queues", total, len(page.items), total)
    else:
        listed = decode_json(found.faults, document, list[Raw])
        for i, row in enumerate(listed or ()):
            if "name" not in row:
                found.faults.add(f"{document.name}: [{i}].name", None, f"is missing: {LISTED}")
                return
        typed = None if listed is None else decode_json(found.faults, document, list[Queue])
        if listed is None or typed is None:
            return
        raw, rows = listed, typed
    found.rows += [{**row, "vhost": vhost} for row in raw] if vhost else raw
    silent: list[str] = []
    for i, one in enumerate(rows):
        at = f"{document.name}: [{i}]"
        if not one.is_quorum:
            mirrored = raw[i].get("slave_nodes") or raw[i].get("slave_pids")
            kind = (one.type or "classic").removeprefix("rabbit_").removesuffix("_queue")
            found.others[f"mirrored {kind}" if mirrored else kind] += 1
            online = raw[i].get("online") or raw[i].get("members")
            hosts = [raw[i].get("node"), *(online if isinstance(online, list) else ())]
            found.hosts.update(host for host in hosts if isinstance(host, str) and host)
            continue
        if not one.members:
            silent.append(one.name)
            continue
        first, before = found.queues.setdefault((one.vhost or found.vhost, one.name), (at, one))
        if before is not one:
            message = f"is already given at {first}: of one listing read one virtual host at a time"
            found.faults.add(f"{at}.name", quoted(one.name), message)
    if silent and not any("members" in row for row in raw):
        found.faults.add(document.name, quoted(silent[0]), f"has no members: {LISTED}")
    elif silent:
        named = some_of(silent, printable, MOST_NAMED)
        found.notes.add(f"no members of quorum queues ({named}): these are left out")


def _one_queue(document: Document) -> Document:
    """Return an answer on one queue as a list, with the name that its request has."""
    data = document.data.strip()
    if (asked := REQUEST.findall(document.before)) and not re.search(rb'"name"\s*:', data):
        vhost, name = (unquote(one.decode("utf-8", "replace")) for one in asked[-1])
        given = msgspec.json.encode({"name": name, "vhost": vhost})
        data = given[:-1] + b"," + data.removeprefix(b"{")
    return _listed(Document(document.name, data, document.path))


def _listed(document: Document) -> Document:
    """Return an answer as a list of answers."""
    return Document(document.name, b"[%s]" % document.data, document.path)


def _take_status(found: QueueFindings, document: Document) -> None:
    status = decode_json(found.faults, document, Status)
    if status is None:
        return
    if status.cut:
        found.notes.add(CUT_SHORT, f'"{status.cut.title()}"')
        found.may_miss_running |= status.cut == "running nodes"
    listed = {*status.disk_nodes, *status.ram_nodes}
    running = status.running_nodes
    if isinstance(running, str):
        longest_first = sorted(map(re.escape, listed), key=len, reverse=True)
        running = re.findall("|".join(longest_first), running) if listed else []
        if "".join(running) != status.running_nodes:
            at = f"{document.name}: running_nodes"
            found.faults.add(at, quoted(status.running_nodes), "holds names of no disk_nodes")
    listed |= {*running}
    found.nodes |= dict.fromkeys(sorted(listed), f"{document.name}: disk_nodes")
    found.running |= {*running}
    states = status.maintenance_status
    stated = states.items() if isinstance(states, dict) else []
    found.drained |= {name for name, state in stated if state.lower() not in AT_WORK}
    for name, state in stated:
        if state.lower() not in UNDER_WAY | AT_WORK:
            found.notes.add(
                f"an unknown maintenance state of {printable(name)}, "
                f"{printable(state[:60])}: it counts as under maintenance"
            )
    if isinstance(status.partitions, dict):
        for name, others in status.partitions.items():
            seen = others if isinstance(others, list) else [others]
            found.apart |= {name, *(one for one in seen if isinstance(one, str))}
    for alarm in status.alarms if isinstance(status.alarms, list) else ():
        node = alarm.get("node") if isinstance(alarm, dict) else None
        found.alarmed |= {node} if isinstance(node, str) else set()


def _take_nodes(found: QueueFindings, document: Document) -> None:
    names: dict[str, str] = {}
    for i, one in enumerate(decode_json(found.faults, document, list[Node]) or ()):
        at = f"{document.name}: [{i}].name"
        if names.setdefault(one.name, at) != at:
            found.faults.add(at, quoted(one.name), f"is already given at {names[one.name]}")
        found.nodes.setdefault(one.name, at)
        found.running |= {one.name} if one.running else set()
        found.drained |= {one.name} if one.being_drained else set()
        found.alarmed |= {one.name} if one.mem_alarm or one.disk_free_alarm else set()
        found.apart |= {one.name, *one.partitions} if one.partitions else set()
