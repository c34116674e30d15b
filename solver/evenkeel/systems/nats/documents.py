"""Read JSON of NATS servers and of the ``nats`` tool: servers, streams and peers."""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import Int64, decode_json
from evenkeel.systems.nats.printed import in_json
from evenkeel.systems.notes import Notes, Pages, last_states
from evenkeel.systems.printed import CUT_OFF, HEAD

Kind = Literal["server answers", "monitoring", "streams", ""]
# patterns that all stand at the beginning of a kind of document
KINDS: dict[Kind, Sequence[bytes]] = {
    "server answers": (rb'"server"\s*:\s*\{\s*"name"', rb'"ver"\s*:', rb'"data"\s*:'),
    "monitoring": (
        rb'"server_id"\s*:',
        rb'"(?:ha_assets|account_details|meta_cluster|reserved_storage|max_storage|server_name)"',
    ),
    "streams": (
        rb'"num_replicas"\s*:|io\.nats\.jetstream\.api\.v1\.stream_(?:list|info)_response',
        rb'"(?:state|streams)"\s*:',
    ),
}

PAGE = re.compile(rb'"streams"\s*:\s*(?:\[|null)')
FOR_PEOPLE = re.compile(
    rb"Stream Report|JetStream Summary|RAFT Meta Group|Information for Stream|Server Overview|"
    rb"[|\xe2\x94\x82]\s*Stream\s.*\bReplicas\b"
)
ASKS = "nats server request jetstream --all > jsz.json"
# words of the nats tool and of its traces
WORDS = re.compile(
    rb"\bnats (?:-\S+ |server |stream |str )|\$(?:SYS|JS)\.|\bio\.nats\.|"
    rb"/jsz\b|\"(?:meta_cluster|stream_detail)\"\s*:"
)

SILENT = (
    "streams of which no server answers ({}): their servers are down, or they have no leader; they "
    "are left alone"
)
NO_LEADER = (
    "no server leads JetStream: before one does, no request moves a stream; start the servers that "
    "are missing (nats server report jetstream)"
)
# what stands for the name of a peer that no server has heard of since it started
UNNAMED = "Server name unknown at this time"


class Peer(msgspec.Struct, gc=False):
    """A peer of a group, as one of its servers sees it."""

    name: str = ""
    current: bool = False
    offline: bool = False
    # whether it is in the assignment, and not yet, or no longer, in the group
    pending: bool = False
    cluster: str = ""  # the cluster of the server, which reports for people alone name


class Group(msgspec.Struct):
    """The leader and the peers of a group, other than the server that answers."""

    name: str = ""
    leader: str = ""
    replicas: list[Peer] = []
    desired: "Group | None" = None  # where it is moving to (since 2.15)


class Wanted(msgspec.Struct):
    """Where a stream may be."""

    cluster: str = ""
    tags: list[str] = []


class Config(msgspec.Struct):
    """The configuration of a stream, as far as placement needs it."""

    name: str = ""
    num_replicas: Int64 = 0
    storage: str = "file"
    max_bytes: Int64 = -1
    placement: Wanted | None = None


class Content(msgspec.Struct, gc=False):
    """What a stream holds."""

    bytes: Int64 = 0


class Stream(msgspec.Struct):
    """A stream, in ``stream_detail`` or an answer of ``STREAM.INFO``."""

    name: str = ""
    cluster: Group = msgspec.field(default_factory=Group)
    config: Config = msgspec.field(default_factory=Config)
    state: Content = msgspec.field(default_factory=Content)


class Page(msgspec.Struct):
    """An answer of ``STREAM.LIST``."""

    streams: list[Stream] | None
    total: int = 0
    missing: list[str] | None = None
    # streams of which no server answers, and those that a server is too old for
    offline: dict[str, Any] | None = None


class Store(msgspec.Struct, gc=False):
    """What JetStream of a server may use."""

    max_memory: Int64 = -1
    max_storage: Int64 = -1
    unique_tag: str = ""


class Account(msgspec.Struct):
    """The streams of an account on a server."""

    name: str = ""
    id: str = ""
    stream_detail: list[Stream] = []


class JetStream(msgspec.Struct):
    """JetStream of a server, in ``/varz``."""

    config: Store = msgspec.field(default_factory=Store)


class Data(msgspec.Struct):
    """An answer of ``/jsz`` or ``/varz``: no field has two meanings in them."""

    server_id: str
    server_name: str = ""
    version: str = ""
    tags: list[str] = []
    disabled: bool = False
    config: Store = msgspec.field(default_factory=Store)
    meta_cluster: Group | None = None
    account_details: list[Account] = []
    streams: int = 0
    counted: dict[str, int] = {}  # streams of each server, which reports for people alone name
    total: int = 0
    cluster: Group = msgspec.field(default_factory=Group)
    jetstream: JetStream | None = None


class Origin(msgspec.Struct):
    """The server that answers."""

    name: str
    id: str = ""
    cluster: str = ""
    ver: str = ""
    tags: list[str] = []


class Answer(msgspec.Struct):
    """An answer with the server that it comes from."""

    server: Origin
    data: Data | None = None


@dataclass
class Server:
    """A server, from all that names it."""

    cluster: str = ""
    version: str = ""
    tags: list[str] | None = None
    answered: bool = False
    away: bool = False  # whether it is offline, or the leader of JetStream does not hear of it
    member: bool = False  # whether it is listed as one of JetStream
    disabled: bool = False
    store: Store | None = None


class Seen(msgspec.Struct):
    """A stream as a server, or the API, sees it."""

    at: str
    by: str  # the name of the server, if it is known
    source: str  # the name or identifier of the server; "" for the API
    stream: Stream

    @property
    def peers(self) -> set[str]:
        """Return the peers by name; a server leaves itself out of the list."""
        group = self.stream.cluster
        return {*(peer.name for peer in group.replicas), group.leader, self.by} - {""}

    @property
    def by_leader(self) -> bool:
        """Whether it is the view of the leader, which does not list itself."""
        group = self.stream.cluster
        listed = any(peer.name == group.leader for peer in group.replicas)
        return bool(group.leader) and self.by in ("", group.leader) and not listed


Given = tuple[str, Answer | Data | Stream]  # an answer with its place
Key = tuple[str, str]  # the identifier of an account, and a stream


@dataclass
class NatsFindings:
    """Everything that was read."""

    faults: FaultList
    account: str
    servers: dict[str, Server] = field(default_factory=dict)
    streams: dict[Key, list[Seen]] = field(default_factory=dict)
    # the name of each account, by its identifier
    accounts: dict[str, str] = field(default_factory=dict)
    # how many streams each server counts on itself
    counts: dict[str, int] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    # streams that are named, and of which no server answers
    _silent: set[str] = field(default_factory=set)
    # the leaders of JetStream that answers name, "" where they know of none
    _leaders: set[str] = field(default_factory=set)
    _lists_peers: bool = False  # whether some answer lists the peers of JetStream
    _names: dict[str, str] = field(default_factory=dict)
    _pages: Pages = field(default_factory=Pages)

    def server(self, name: str) -> Server:
        """Return a server, which is new if nothing named it before."""
        return self.servers.setdefault(name, Server())

    def strangers(self, names: Sequence[str]) -> list[str]:
        """Return the servers that JetStream does not list, where it lists any, or has no name of.

        >>> found = NatsFindings(FaultList(), "A", _lists_peers=True)
        >>> found.strangers(["a", "Server name unknown at this time (...)"])
        ['a', 'Server name unknown at this time (...)']
        """
        return [
            name for name in names
            if name.startswith(UNNAMED) or (self._lists_peers and not self.server(name).member)
        ]  # fmt: skip

    def take(self, documents: Sequence[Document]) -> None:
        """Take all answers in documents, of those on the same in a session the last."""
        read = [answer for document in documents for answer in in_json(document)]
        if cut := sorted({one.name for one in read if one.cut}):
            self.notes.add(CUT_OFF, *cut)
        given = (one for document in read for one in self._given(document))
        unnamed: list[tuple[str, Data]] = []
        for at, answer in last_states(self.notes, given):
            if isinstance(answer, Answer):
                self._take_answer(at, answer)
            elif isinstance(answer, Data):
                self._names |= {answer.server_id: answer.server_name} if answer.server_name else {}
                unnamed.append((at, answer))
            else:
                self._take_stream(at, "", "", self.account, answer)
        for at, data in unnamed:
            if not (name := self._names.get(data.server_id, "")):
                note = "servers known by their identifier alone ({}): add /varz of each"
                self.notes.add(note, data.server_id[:12])
            self._take_data(at, name, data)
        if self._leaders == {""}:
            self.notes.add(NO_LEADER)
        if silent := sorted(self._silent - {name for _, name in self.streams}):
            self.notes.add(SILENT, *silent)
        self._pages.note(self.notes)

    def _given(self, document: Document) -> Iterator[tuple[Hashable, str, str, Given]]:
        """Yield the answers in a document, each with its file, its subject, and its server."""
        kind = recognises(document)
        if kind == "server answers":
            for at, answer in _each(self.faults, document, Answer):
                data = answer.data or Data("")
                yield document.origin, _subject(data), answer.server.name, (at, answer)
        elif kind == "monitoring":
            for at, data in _each(self.faults, document, Data):
                yield document.origin, _subject(data), data.server_id, (at, data)
        elif kind == "streams":
            paged = PAGE.search(document.data[:HEAD])
            for at, page in _each(self.faults, document, Page) if paged else ():
                silent = {*(page.missing or ()), *(page.offline or ())}
                self._silent |= silent
                given = len(page.streams or ()) + len(silent)
                self._pages.add("streams", page.total, given, page.total)
                for i, stream in enumerate(page.streams or ()):
                    yield document.origin, _named(stream), "", (f"{at}.streams[{i}]", stream)
            for at, stream in () if paged else _each(self.faults, document, Stream):
                yield document.origin, _named(stream), "", (at, stream)
        elif document.data.strip() != b"[]":
            message = "is no answer of a NATS server on JetStream, nor of the nats tool, in JSON"
            self.faults.add(document.name, document.data.lstrip()[:40], message)

    def _take_answer(self, at: str, answer: Answer) -> None:
        origin, server = answer.server, self.server(answer.server.name)
        self._names[origin.id] = origin.name
        server.answered, server.tags = True, origin.tags
        server.cluster, server.version = origin.cluster, origin.ver
        if answer.data is not None:
            self._take_data(at, origin.name, answer.data)

    def _take_data(self, at: str, name: str, data: Data) -> None:
        if name:
            server = self.server(name)
            server.answered, server.disabled = True, server.disabled or data.disabled
            if data.version:  # the settings of a server, of which what people read has none
                server.version, server.tags = data.version, data.tags
            server.cluster = data.cluster.name or server.cluster
            store = data.jetstream.config if data.jetstream else data.config
            server.store = store if store.max_storage >= 0 else server.store
        self.counts |= data.counted or {name or data.server_id: data.streams}
        if (meta := data.meta_cluster) is not None:
            self._leaders |= {meta.leader} if meta.leader or not meta.replicas else set()
            self._lists_peers |= bool(meta.replicas)
            for one in {meta.leader, name} - {""}:
                self.server(one).member = True
            for peer in meta.replicas:
                self.server(peer.name).member = True
                self.server(peer.name).cluster = peer.cluster or self.server(peer.name).cluster
                # the others do not know who is current
                self.server(peer.name).away |= peer.offline or (
                    bool(name) and name == meta.leader and not peer.current
                )
        if given := len(data.account_details):
            self._pages.add("accounts", name or data.server_id, given, data.total)
        for a, account in enumerate(data.account_details):
            key = account.id or account.name
            self.accounts[key] = account.name or key
            for i, stream in enumerate(account.stream_detail):
                where = f"{at}.account_details[{a}].stream_detail[{i}]"
                self._take_stream(where, name, name or data.server_id, key, stream)

    def _take_stream(self, at: str, by: str, source: str, account: str, stream: Stream) -> None:
        for peer in stream.cluster.replicas:
            self.server(peer.name).away |= peer.offline
        name = stream.name or stream.config.name
        self.accounts.setdefault(account, account)
        views = self.streams.setdefault((account, name), [])
        if not name:
            self.faults.add(f"{at}.name", "", "is missing")
        elif again := next((one.at for one in views if one.source == source), ""):
            self.faults.add(at, name, f"is already given at {again}: read one moment alone")
        views.append(Seen(at, by, source, stream))


T = TypeVar("T")


def _subject(data: Data) -> str:
    """Return what an answer is about, in words: a server, or the streams of an account first."""
    if data.server_name and data.meta_cluster is None:
        return "settings of servers"
    account = next((one.name or one.id for one in data.account_details), "")
    return f"streams of {account}" if account else "servers"


def _named(stream: Stream) -> str:
    return f"stream {stream.name or stream.config.name}"


def _each(faults: FaultList, document: Document, shape: type[T]) -> Iterator[tuple[str, T]]:
    """Yield what a document holds, alone or in a list, each with its place."""
    if document.data.lstrip().startswith(b"["):
        found: Any = decode_json(faults, document, list[shape])  # type: ignore[valid-type]
        yield from ((f"{document.name}: [{i}]", one) for i, one in enumerate(found or ()))
    elif (alone := decode_json(faults, document, shape)) is not None:
        yield document.name, alone


def recognises(document: Document) -> Kind:
    """Return the kind of a document; "" if it is none of NATS."""
    document = in_json(document)[-1]
    head = document.data[:HEAD]
    found = (kind for kind, needed in KINDS.items() if all(re.search(one, head) for one in needed))
    return next(found, "") if document.is_json else ""


def hint(document: Document) -> str:
    """Return how to print tables for people as JSON; "" for other documents."""
    found = FOR_PEOPLE.search(document.data[:HEAD])
    return f"is what the nats tool prints for people: print JSON, {ASKS}" if found else ""
