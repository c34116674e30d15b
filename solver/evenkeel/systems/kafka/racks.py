"""Read the racks of brokers from JSON, text, properties and lists of API versions.

``metadata``, ``tables`` and ``cruise_control`` call ``add_rack`` for racks in other answers. The
first rack named of a broker holds; another one later is a fault.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import Int32, decode_json
from evenkeel.systems.kafka.findings import Findings, keep_first, whole
from evenkeel.systems.node_states import NODE_STATES

JSON = re.compile(rb'\s*\{\s*(\}\s*$|"\d+"\s*:\s*("|null))')
# a broker and its rack; a line of a log begins with a time
LINE = re.compile(r"(?![0-9]{1,2}:[0-9]{2}(?::[0-9]{2}|\s+\S))([0-9]{1,10})(\s*[:=,]\s*|\s+)(\S.*)")

MOST_WORDS = 5  # of a rack and what may stand around it by mistake
IN_QUOTES = re.compile(r"\"([^\"]*)\"|'([^']*)'")
PROPERTY = re.compile(r"(broker\.id|node\.id|broker\.rack|process\.roles)\s*[=:]\s*(.*)")
PARTS = {"broker.id": "id", "node.id": "id", "broker.rack": "rack", "process.roles": "roles"}

# the first line of a broker: its id, rack, whether it is fenced, and whether it answered
ANSWER = re.compile(
    rb"^\S+:[0-9]{1,5} \(id: ([0-9]{1,10}) rack: ([^\n]*?)(?: isFenced: (true|false))?\) ->"
    rb"[ \t]*(\(?)",
    re.MULTILINE,
)

# a row of ``kafka-cluster list-endpoints``: the id, rack and state of a broker
ENDPOINT = re.compile(
    rb"^([0-9]{1,10}) +\S+ +[0-9]{1,5} +(|\S[^\n]*?) +(?:(fenced|unfenced) +)?broker *\r?$",
    re.MULTILINE,
)

# the brokers that ``rpk cluster info`` or ``rpk redpanda admin brokers list`` lists, and a row of
# them: its id, rack, membership, and whether it is alive
RPK = re.compile(
    rb"^(?:ID +HOST +PORT(?: +RACK)?(?: +CORES +MEMBERSHIP +IS-ALIVE\b[^\n]*)?"
    rb"|NODE-ID +NUM-CORES +MEMBERSHIP-STATUS +IS-ALIVE\b[^\n]*?) *\r?\n(?:[0-9]{1,10}\*? .*\n?)+",
    re.MULTILINE,
)
RPK_BROKER = re.compile(
    rb"^([0-9]{1,10})\*?(?: +\S+ +[0-9]{1,5})?(?: +(\S+?))??"
    rb"(?: +[0-9]+ +([a-z]+) +(true|false)\b[^\n]*)? *\r?$",
    re.MULTILINE,
)

DRAINING = (
    "Redpanda decommissions brokers {}, whose membership is draining: they are to be emptied, "
    "which it does by itself, too"
)
UNRACKED = {None: b"null", b"-": b"null"}


class Member(msgspec.Struct):
    """One broker of ``/v1/brokers``, as Redpanda's admin API answers."""

    node_id: Int32
    rack: str | None = None
    membership_status: str = "active"
    is_alive: bool = True


MEMBERS = re.compile(rb"\s*\[\s*\{.{,2000}?\"membership_status\"", re.DOTALL)

# the brokers that are registered at ZooKeeper, as its shell lists them
IDS = re.compile(rb"\bls /brokers/ids\b[^\n]*\n(?:(?![ \t]*\[)[^\n]*\n){0,9}[ \t]*\[([0-9, ]+)\]")

# what a broker registers there: its rack, if it has one
REGISTERED = re.compile(
    rb"\bget /brokers/ids/([0-9]{1,10})\b[^\n]*\n(?:(?![ \t]*\{|[^\n]*\bget /)[^\n]*\n){0,9}"
    rb"[ \t]*\{(?=[^\n]*\"endpoints\")[^\n]*?(?:\"rack\": ?\"([^\"\n]*)\"|\n)"
)

# what lists brokers, by a word in each that is soon found
LISTS = {
    b"(id: ": ANSWER, b"ID ": RPK, b"/brokers/ids": IDS, b"get /brokers/ids/": REGISTERED
}  # fmt: skip


def add_rack(
    findings: Findings, document: Document, at: str, broker: int, rack: str | None
) -> None:
    """Add the rack of a broker; an unlike one is a fault, an unknown one contradicts none."""
    if unlike := keep_first(findings.racks, at, broker, rack or None):
        before, first = unlike
        findings.faults.add(at, quoted(rack), f"{first} has broker {broker} on {before}")
    if rack:
        note_rack_file(findings, document)


def note_rack_file(findings: Findings, document: Document) -> None:
    """Note that brokers without a rack may be named in a document."""
    if document.name not in findings.rack_files:
        findings.rack_files.append(document.name)


def is_rack_json(head: bytes) -> bool:
    """Return whether a document begins like racks by broker."""
    return JSON.match(head) is not None


def read_rack_json(findings: Findings, document: Document) -> None:
    """Read ``{"1": "rack-a"}``."""
    note_rack_file(findings, document)
    decoded = decode_json(findings.faults, document, dict[str, str | None])
    for key, rack in (decoded or {}).items():
        at, broker = f"{document.name}: {quoted(key)}", whole(key)
        if broker is not None:
            add_rack(findings, document, at, broker, rack)
        else:
            findings.faults.add(at, quoted(key), "must be a broker id")


def is_rack_text(head: bytes) -> bool:
    """Return whether a document begins with a rack line, or holds a property about racks."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n") if _has_text(line)]
    first = LINE.fullmatch(lines[0].strip()) if lines else None
    # a rack of several words is reported, and a row of a larger table is none of Kafka's
    return bool(first and len(first[3].split()) < MOST_WORDS) or any(map(PROPERTY.match, lines))


def _has_text(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def read_rack_text(findings: Findings, document: Document) -> None:
    """Read lines ``1 rack-a``, and the properties files of nodes, one after the other."""
    note_rack_file(findings, document)
    properties: list[Property] = []
    own = ("", "")
    for number, line in enumerate(document.text(findings.faults).split("\n"), start=1):
        at = f"{document.name}:{number}"
        line = line.strip()
        if known := PROPERTY.fullmatch(line):
            key, value = known[1], known[2].strip()
            if PARTS[key] == "id":
                # a file may have both ids, which are equal
                again, own = key != own[0] and value == own[1], (key, value)
                if again:
                    continue
                if whole(value) is None:
                    findings.faults.add(at, quoted(value), f"{key} must be a broker id")
            properties.append(Property(PARTS[key], value, number))
        elif (found := LINE.fullmatch(line)) and (broker := whole(found[1])) is not None:
            _add_line(findings, document, at, broker, found[2].strip(), found[3].strip())
        elif _has_text(line) and "=" not in line:
            findings.faults.add(at, quoted(line), "is neither `broker rack` nor a property")
    _add_properties(findings, document, properties)


def _add_line(
    findings: Findings, document: Document, at: str, broker: int, divider: str, text: str
) -> None:
    """Add a rack without its quotes, or report a line of more than two cells."""
    # cells end at a comma, and at blanks unless one separates the first two: so no line of a log
    # gives a rack
    inside = IN_QUOTES.fullmatch(text)
    if inside is not None:
        add_rack(findings, document, at, broker, inside[1] or inside[2])
    elif "," in text or (divider != "," and len(text.split()) > 1):
        message = "is more than one cell: a line has a broker and its rack; else put it in quotes"
        findings.faults.add(at, quoted(text), message)
    elif text[0] in "\"'" or text[-1] in "\"'":
        findings.faults.add(at, quoted(text), "has a quote without the other one")
    else:
        add_rack(findings, document, at, broker, text)


class Property(NamedTuple):
    """A property: an id, a rack or roles."""

    part: str
    value: str
    line: int


File = Mapping[str, Property]  # the properties of one node, by the part of a node that they give


def _add_properties(findings: Findings, document: Document, properties: Sequence[Property]) -> None:
    """Add the rack of each node; report nodes that may have one rack or another."""
    files = _files(properties)
    unsure: list[str] = []
    lines: set[int] = set()
    of_node: dict[Property, list[File]] = {}
    for file in files:
        if "id" in file:
            of_node.setdefault(file["id"], []).append(file)
    for own, several in of_node.items():
        broker, rack = whole(own.value), several[0].get("rack")
        if len({(_is_controller(file), _rack_of_broker(file)) for file in several}) > 1:
            unsure.append(own.value)
            spans = [{one.line for one in file.values()} for file in several]
            lines |= set.union(*spans) - spans[0].intersection(*spans)
        elif broker is None:
            continue  # reported where it was read
        elif _is_controller(several[0]):
            findings.controllers.add(broker)
        elif rack is None:
            findings.faults.add(f"{document.name}:{own.line}", broker, "has no broker.rack")
        else:
            add_rack(findings, document, f"{document.name}:{rack.line}", broker, rack.value)
    for first in [next(iter(file.values())) for file in files if "id" not in file]:
        at = f"{document.name}:{first.line}"
        findings.faults.add(at, quoted(first.value), "has no broker.id or node.id")
    if unsure:
        message = (
            f"have no certain rack: each of lines {some_of(sorted(lines), str)} may end one file "
            "or begin the next; give the files one by one"
        )
        findings.faults.add(f"{document.name}:{min(lines)}", unsure, message)


def _files(properties: Sequence[Property]) -> list[File]:
    """Return each file of the divisions of properties in which the fewest files lack something."""
    # a key that is seen again begins the next file; the order of keys in a file is free
    count = len(properties)
    spans = [
        (i, j, file)
        for i in range(count)
        for j in range(i + 1, count + 1)[: len(PARTS)]
        if len(file := {one.part: one for one in properties[i:j]}) == j - i
    ]
    before, after = [0, *[count] * count], [*[count] * count, 0]
    for i, j, file in spans:
        before[j] = min(before[j], before[i] + _lacks(file))
    for i, j, file in reversed(spans):
        after[i] = min(after[i], _lacks(file) + after[j])
    return [file for i, j, file in spans if before[i] + _lacks(file) + after[j] == after[0]]


def _lacks(file: File) -> bool:
    """Return whether a file has no id, or is a broker's without a rack."""
    return "id" not in file or not ("rack" in file or _is_controller(file))


def _is_controller(file: File) -> bool:
    return "roles" in file and file["roles"].value.replace(" ", "") == "controller"


def _rack_of_broker(file: File) -> str | None:
    return file["rack"].value if "rack" in file and not _is_controller(file) else None


def is_answers(head: bytes) -> bool:
    """Return whether a document begins like output that lists brokers with their states."""
    return (
        bool(MEMBERS.match(head))
        or b"ENDPOINT_TYPE" in head
        or any(word in head and one.search(head) for word, one in LISTS.items())
    )


def read_answers(findings: Findings, document: Document) -> None:
    """Read which brokers answered, and the racks of all."""
    # A fenced broker may answer, but counts as down: the controller makes it neither leader nor
    # in-sync replica. Of a session that lists them again, the last list counts.
    data = document.data
    if MEMBERS.match(data):
        for i, member in enumerate(decode_json(findings.faults, document, list[Member]) or []):
            at, leaves = f"{document.name}: [{i}]", member.membership_status == "draining"
            if member.node_id < 0:
                findings.faults.add(at, member.node_id, "must be a broker id")
                continue
            _add_broker(
                findings, document, at, member.node_id, member.rack, member.is_alive, leaves
            )
        return
    listed = [
        (one.start(), one[1], one[2], one[4] == b"(" and one[3] != b"true", b"")
        for one in ANSWER.finditer(data)
    ]
    listed += [
        (one.start(), one[1], one[2], one[3] != b"fenced", b"") for one in ENDPOINT.finditer(data)
    ]
    for table in RPK.finditer(data):
        listed += [
            (one.start(), one[1], UNRACKED.get(one[2], one[2]), one[4] != b"false", one[3] or b"")
            for one in RPK_BROKER.finditer(data, *table.span())
        ]
    for found in IDS.finditer(data):
        listed += [
            (found.start(1), one, b"null", True, b"") for one in re.findall(rb"[0-9]+", found[1])
        ]
    registered = [*REGISTERED.finditer(data)]  # one is asked for: others may be up
    for one in registered:
        at, broker = f"{document.name}:{document.line_at(one.start())}", whole(one[1].decode())
        if broker is not None:
            add_rack(findings, document, at, broker, (one[2] or b"").decode("utf-8", "replace"))
    if not (listed or registered):
        findings.faults.add(document.name, data[:40], "lists no brokers")
    last: dict[bytes, tuple[int, bytes, bool, bytes]] = {}
    for start, number, rack, up, status in sorted(listed):
        last = {} if number in last else last
        last[number] = (start, rack, up, status)
    for number, (start, rack, up, status) in last.items():
        at, broker = f"{document.name}:{document.line_at(start)}", whole(number.decode())
        if broker is None:
            findings.faults.add(at, quoted(number), "must be a broker id")
            continue
        name = None if rack == b"null" else rack.decode("utf-8", "replace")
        _add_broker(findings, document, at, broker, name, up, status == b"draining")


def _add_broker(
    findings: Findings,
    document: Document,
    at: str,
    broker: int,
    rack: str | None,
    up: bool,
    leaves: bool,
) -> None:
    """Add whether a broker is up, whether it is to be emptied, and its rack."""
    findings.add_answer(at, broker, up=up)
    if up and leaves:
        findings.add_state(at, broker, NODE_STATES["draining"])
        findings.notes.add(DRAINING, str(broker))
    add_rack(findings, document, at, broker, rack)


def tier_of_racks(
    found: Findings,
    brokers: NDArray[np.int32],
    alive: NDArray[np.bool_],
    wanted: NDArray[np.int64],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return racks as a tier, and the rule of each number of replicas."""
    if not found.rack_files:
        return {} if spread is None else {"spread": spread}
    numbered = brokers.tolist()
    racks = [found.racks.get(broker, (None, ""))[0] or "" for broker in numbered]
    given: dict[str, Any] = {"domains": {"rack": np.array(racks, object)}}
    strays = [
        broker for broker, rack, up in zip(numbered, racks, alive, strict=True) if up and not rack
    ]
    own = tuple(f"{file}:" for file in found.rack_files)
    misread = any(f"{fault.path}:".startswith(own) for fault in found.faults.faults)
    if strays and not misread and (spread is None or "rack" in spread):
        message = "have no rack: name it here, or ask for another spread ({} for no rule)"
        found.faults.add(f"{', '.join(found.rack_files)}: brokers", strays, message)
    if spread is not None:
        return given | {"spread": spread}
    if count := len({*racks} - {""}):
        numbers = np.unique(wanted)
        given["rules"] = [Rule(spread={"rack": -(-int(n) // count)}) for n in numbers]
        given["rule"] = np.searchsorted(numbers, wanted)
    return given
