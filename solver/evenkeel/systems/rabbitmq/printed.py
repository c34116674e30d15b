"""What RabbitMQ's tools print without ``--formatter json``, as JSON.

``list_queues`` prints titles and rows, their cells parted by tabs (by blanks in pasted text), lines
or commas; old releases print no titles, so that the command has them. ``--formatter erlang`` prints
pairs of a name and a value, as does ``cluster_status`` of old releases; later ones print titles,
each above its lines. ``quorum_status`` prints a row for each member of one queue.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.csv_text import read_table
from evenkeel.systems.documents import Document
from evenkeel.systems.printed import HEAD, is_cut

# the titles of a table with the members of queues
TITLES = re.compile(
    rb"^[ \t|\"\xe2\x94\x82]*+(?=[^\n:{}]*\bmembers\b)(?:vhost\b[^\n:{}]*)?\bname\b[^\n:{}]*$",
    re.MULTILINE,
)

# a row without titles, and the columns that are usual
ROW = re.compile(rb"^[ \t]*\S+[ \t]+(?:quorum|stream)[ \t]+\S+@\S+[ \t]+\[[^\]\n]*\]", re.MULTILINE)
COLUMNS = b"name type leader members"

CELL = re.compile(rb"\[[^\]\n]*\]|\S+")
MARKS = (b"\t", b"|", "│".encode(), b'",')  # what parts cells, where blanks do not

# the banner or command above a listing, with its virtual host and its columns
LISTING = re.compile(
    rb"^(?:Listing queues for vhost (\S+) \.\.\.[ \t]*|"
    rb"[^\n]*\blist_queues\b(?=(?:[^\n]*?[ \t](?:-p|--vhost)[ =](\S+))?)"
    rb"((?:[ \t]+[a-z_]+)*)[^\n]*)$",
    re.MULTILINE,
)

# what ends a table: a blank line, unless a queue follows, a command, or a prompt
END = re.compile(
    rb"\n[ \t]*(?:\n(?![^\n]*@)|\.\.\.done|"
    rb"(?:[^\n\t|]*[#$>%] ?)?(?:(?:sudo|kubectl|k|oc|docker|podman) [^\n\t|]*)?"
    rb"\brabbitmq(?:ctl|admin|-(?:queues|diagnostics|streams|upgrade))[ \t])|"
    rb"\n[^\n\t|]*[#$>%][ \t]*(?=\n|\Z)"
)

STATUS = re.compile(rb"Status of quorum queue ([^\n]+?) on node \S+? ?\.\.\.[^\n]*\n")
# the raft states of members that do not answer, and the form of one, which no crash has
NOT_ONLINE = {"noproc", "timeout", "nodedown", "unknown", "unreachable", "error"}
STATE = re.compile(r"[a-z_]+")

LEARNERS = {"promotable", "non_voter"}  # the memberships without a vote

# the command that asks for the status of a queue, a virtual host, and an option with its value
ASKED = re.compile(rb"^[^\n]*\bquorum_status\b([^\n]*)$", re.MULTILINE)
VHOST = re.compile(rb"[ \t](?:-p|--vhost)[ =](\S+)")
OPTION = re.compile(rb"[ \t]--?[a-z][\w-]*[ =]\S+")

# the parts of a status of a cluster: its banner, or the first title where ``-q`` leaves none; a
# title above lines; before RabbitMQ 3.8, names and nodes
CLUSTER = re.compile(
    rb"^(?:Cluster status of node \S+? ?\.\.\.[^\n]*\n|Basics[ \t]*\n\s*(?=Cluster name:))",
    re.MULTILINE,
)
TITLE = re.compile(r"(?:^|\n)([A-Z][A-Za-z ]+)[ \t]*\n[ \t]*\n")
TERM = re.compile(r"\{(disc|ram|running_nodes),\s*\[([^\]]*)\]")
ATOM = re.compile(r"'?([^\s',]+@[^\s',]+)'?")

# a line of a node and its zone
ZONE = re.compile(rb"([\w.-]+@[\w.-]+)[ \t:=,]+([\w.-]+)[ \t]*\r?(?:\n|\Z)")

ERLANG = re.compile(rb"\A\s*\[\[\{name,<<")
# a name and its value, as Erlang prints them
PAIR = re.compile(rb"\{(\w+),(?:<<\"([^\"]*)\">>|'([^']*)'|(\[[^\]]*\])|([^{}\[\]]*))\}")


class _Member(msgspec.Struct):
    """A member as ``quorum_status --formatter json`` has it."""

    name: str = msgspec.field(name="Node Name")
    state: str = msgspec.field(name="Raft State")
    vote: str = msgspec.field(name="Membership", default="")


def in_json(document: Document) -> tuple[Document, ...]:
    """Return the answers in a text for people as JSON; any other document as it is."""
    if document.is_json and not ERLANG.match(document.data):
        status = b'"Raft State"' in document.data[:HEAD] and _status_in_json(document)
        return (replace(document, data=msgspec.json.encode(status)) if status else document,)
    data = document.data.replace(b"\r\n", b"\n")
    head = data[:HEAD]
    faults = FaultList()
    answers: list[Any] = []
    if CLUSTER.search(head):
        answers.append(_status_of_cluster(data))
    if ERLANG.match(head):
        answers.append([*_rows_of_terms(data)])
    cut: list[bool] = []
    if STATUS.search(head):
        answers.append([*_rows_of_status(faults, data, cut)])
    if TITLES.search(head) or ROW.search(head):
        answers.append([*_rows_of_tables(faults, data, cut)])
    zones = ZONE.findall(data) if ZONE.match(head.lstrip()) else []
    if zones and not ZONE.sub(b"", data).strip():
        answers.append({node.decode(): zone.decode() for node, zone in zones})
    if faults or not all(answers):
        return (document,)
    read = (msgspec.json.encode(answer) for answer in answers)
    beside = document.beside_text() if answers else ()
    made = (replace(document, data=one, cut=any(cut)) for one in read)
    return (*beside, *made) or (document,)


def _status_of_cluster(data: bytes) -> dict[str, Any]:
    """Return the status of a cluster; lists behind its last title may go on."""
    text = CLUSTER.split(data)[-1].decode("utf-8", "replace")  # the last that a session has
    if terms := dict(TERM.findall(text)):
        lists = {name: ATOM.findall(listed) for name, listed in terms.items()}
        return {"disk_nodes": lists.get("disc", []), "ram_nodes": lists.get("ram", []), **lists}
    parts = TITLE.split(text)
    below = {title.lower(): lines for title, lines in zip(parts[1::2], parts[2::2], strict=True)}
    # whatever a release prints there, the partitions are behind the nodes
    cut = "" if "network partitions" in below else next(reversed(below), "basics")
    whole = below if "running nodes" in below else {}
    nodes = {
        f"{kind}_nodes": re.findall(r"^\S+@\S+$", whole.get(f"{kind} nodes", ""), re.MULTILINE)
        for kind in ("disk", "ram", "running")
    }
    states = re.findall(r"^Node: (\S+), status: (.*)$", text, re.MULTILINE)
    apart = [
        (node, re.split(r"[,\s]+", others.strip()))
        for node, others in re.findall(r"^Node (\S+) cannot communicate with (.+)$", text, re.M)
    ]
    alarms = re.findall(r"\balarm on node (\S+)", text)
    others = {"maintenance_status": dict(states), "partitions": dict(apart)}
    return {**nodes, **others, "alarms": [{"node": name} for name in alarms], "cut": cut}


def _rows_of_tables(faults: FaultList, data: bytes, cut: list[bool]) -> Iterator[dict[str, Any]]:
    """Yield the queues of all tables, with the virtual host that their banner or command names."""
    # ``cut`` receives whether each is a box without its lower border
    begins = [0, *(one.start() for one in LISTING.finditer(data)), len(data)]
    columns = COLUMNS
    for begin, end in pairwise(begins):
        part = data[begin:end]
        if listing := LISTING.match(part):
            asked = listing[3] or b""
            columns = asked.strip() if b"members" in asked else columns
        host = (listing[1] or listing[2] if listing else None) or b""
        starts = [one.start() for one in TITLES.finditer(part)]
        if not starts and (row := ROW.search(part)):
            starts = [row.start()]
            part = part[: row.start()] + columns + b"\n" + part[row.start() :]
        for start in starts:
            stop = END.search(part, start)
            table = part[start : stop.start() if stop else len(part)]
            cut.append(is_cut(table.decode("utf-8", "replace").split("\n")))
            if not any(mark in table for mark in MARKS):
                lines = [CELL.findall(line) for line in table.split(b"\n")]
                # classic queues have no members: empty cells, which blanks do not show
                gaps = ([b""] * (len(lines[0]) - len(cells)) for cells in lines)
                whole = (
                    cells[:2] + gap + cells[2:] for cells, gap in zip(lines, gaps, strict=True)
                )
                table = b"\n".join(b"\t".join(cells) for cells in whole if any(cells))
            read = read_table(faults, Document("", table))
            of = {"vhost": host.decode("utf-8", "replace")} if host else {}
            names = ["type" if name == "queue_type" else name for name in read.columns]
            rows: list[dict[str, str]] = []
            for cells in zip(*read.columns.values(), strict=True):
                queue = dict(zip(names, cells, strict=True))
                if rows and not queue["name"]:  # the further lines of cells
                    rows[-1] = {name: f"{rows[-1][name]} {cell}" for name, cell in queue.items()}
                else:
                    rows.append(queue)
            for queue in rows:
                yield of | {name: _value(name, cell) for name, cell in queue.items()}


def _rows_of_status(faults: FaultList, data: bytes, cut: list[bool]) -> Iterator[dict[str, Any]]:
    """Yield the queues of which the state of each member is printed; ``cut`` as above."""
    starts = [*STATUS.finditer(data)]
    ends = [one.start() for one in starts[1:]] + [len(data)]
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        printed = data[start.end() : end]
        cut.append(is_cut(printed.decode("utf-8", "replace").split("\n")))
        table = read_table(faults, Document("", printed))
        names, states = table.cells("node name"), table.cells("raft state")
        has_votes = "membership" in table.columns  # since 3.13
        votes = table.cells("membership") if has_votes else [""] * len(names)
        host, _ = _asked(data[starts[i - 1].end() if i else 0 : start.start()])
        name = start[1].decode("utf-8", "replace")
        yield from _queue_of(host, name, zip(names, states, votes, strict=True))


def _status_in_json(document: Document) -> list[dict[str, Any]]:
    """Return the queue of a status in JSON, which the command before it names."""
    host, name = _asked(document.before)
    try:
        rows = msgspec.json.decode(document.data, type=list[_Member])
    except msgspec.MsgspecError:
        return []
    return [*_queue_of(host, name, ((one.name, one.state, one.vote) for one in rows if name))]


def _asked(before: bytes) -> tuple[str, str]:
    """Return the virtual host and the queue of the last command that asks for a status."""
    if not (asked := [*ASKED.finditer(before)]):
        return "", ""
    host = VHOST.search(asked[-1][0])
    words = OPTION.sub(b"", asked[-1][1]).decode("utf-8", "replace").split()
    return host[1].decode("utf-8", "replace") if host else "", words[0] if words else ""


def _queue_of(
    host: str, name: str, members: Iterable[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield a queue by the names, states and memberships of its members."""
    rows = [one for one in members if one[0]]  # others are the further lines of a cell
    states = {node: state for node, state, _ in rows}
    if any(states.values()):
        yield {
            "name": name,
            "type": "quorum",
            "leader": next((node for node, state in states.items() if state == "leader"), ""),
            "members": [*states],
            "learners": [node for node, _, vote in rows if vote in LEARNERS],
            "online": [
                node
                for node, state in states.items()
                if STATE.fullmatch(state) and state not in NOT_ONLINE
            ],
            **({"vhost": host} if host else {}),
        }


def _rows_of_terms(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the queues of which Erlang's terms are printed."""
    for row in re.split(rb"\]\s*,\s*\[(?=\{name,)", data):
        yield {
            name.decode(): _value(
                name.decode(),
                (text or atom or plain or listed.replace(b"'", b"")).decode("utf-8", "replace"),
            )
            for name, text, atom, listed, plain in PAIR.findall(row)
        }


def _value(column: str, cell: str) -> Any:
    """Return a cell of a column: a list of nodes, a number of messages, or a text."""
    cell = cell.strip()
    if column in ("members", "online") and cell:
        return [one for one in re.split(r"[,\s]+", cell.strip("[]")) if one]
    return int(cell) if column.startswith("message") and cell.isdecimal() else cell
