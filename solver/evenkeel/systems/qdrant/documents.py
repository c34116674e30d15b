"""Read Qdrant's API responses about the cluster, its collections and their shards."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import Int32, Int64, decode_json, note_misfits
from evenkeel.systems.notes import Notes, last_states
from evenkeel.systems.qdrant.telemetry import answers_of

Kind = Literal["shards of a collection", "peers", "collection", "telemetry", ""]
HEAD = 65536
DIGITS = 20  # digits of the largest number of a peer
# texts that all stand at the beginning of a kind of document
KINDS: dict[Kind, tuple[bytes, ...]] = {
    "shards of a collection": (b'"local_shards"', b'"remote_shards"'),
    "peers": (b'"peers"', b'"uri"'),
    "collection": (b'"optimizer_status"', b'"shard_number"'),
    "telemetry": (b'"collections"', b'"shards"'),
}

# what the shards in telemetry have, and those of other systems have not
OF_SHARDS = re.compile(rb'"replicate_states"|"replicas"\s*:\s*\[\s*(?:\]|\{\s*"peer_id")')

ASKS = "the answers of GET /cluster, and of GET /collections/NAME/cluster of each peer"

# words of requests and answers
WORDS = re.compile(
    rb"(?i:\bqdrant)|\b(?:local|remote)_shards\b|\"peer_id\"\s*:|\"result\"\s*:\s*\{\s*\"collections\""
)

# a request whose answer does not name the collection
REQUEST = re.compile(rb"(?:/|\bGET +)collections/([^/\s\"'?|;)]+)")


class Shard(msgspec.Struct, gc=False):
    """A replica of a shard: of the peer that answers, or of another one."""

    shard_id: Int32
    peer_id: int = -1
    state: str = "Active"
    shard_key: str | int | None = None
    points_count: Int64 = -1


class Transfer(msgspec.Struct, gc=False):
    """A copy of a shard that is under way."""

    shard_id: Int32
    to: int
    to_shard_id: Int32 | None = None


class Peer(msgspec.Struct, gc=False):
    """The address of a peer for other peers."""

    uri: str = ""


class Params(msgspec.Struct, gc=False):
    """The parameters of a collection."""

    replication_factor: Int32 = 1


class Config(msgspec.Struct, gc=False):
    """The configuration of a collection."""

    params: Params


class Result(msgspec.Struct):
    """A result of any of the three: no field has two meanings in them."""

    peer_id: int = -1
    local_shards: list[Shard] | None = None
    remote_shards: list[Shard] = []
    shard_transfers: list[Transfer] = []
    resharding_operations: list[Shard] | None = None
    peers: dict[str, Peer] | None = None
    message_send_failures: dict[str, Any] = {}
    config: Config | None = None


class Answer(Result):
    """An answer, or its result alone, as ``jq .result`` prints it."""

    result: Result | None = None
    collection: str = ""  # none of Qdrant's: it names what the answer does not


# an answer with its place, its collection, and as it was
Given = tuple[str, str, Result, dict[str, Any]]

Key = tuple[str, int]  # a collection and the number of a shard


@dataclass
class Replica:
    """A replica of a shard, from all answers on it."""

    states: set[str] = field(default_factory=set)
    points: int = -1  # the number of points, which a peer knows of its own replicas alone

    def join(self, other: "Replica") -> None:
        """Add what other answers have of it."""
        self.states |= other.states
        self.points = max(self.points, other.points)


@dataclass
class QdrantFindings:
    """Everything that was read."""

    faults: FaultList
    collection: str
    shards: dict[Key, dict[int, Replica]] = field(default_factory=dict)
    keys: dict[Key, str] = field(default_factory=dict)  # the shard key of each shard that has one
    # the peers that copies of a shard are going to
    targets: dict[Key, set[int]] = field(default_factory=dict)
    # collections, with their shard key, whose number of shards is being changed
    resharding: set[tuple[str, str]] = field(default_factory=set)
    factors: dict[str, int] = field(default_factory=dict)
    # the peers of the cluster with their addresses; None where no answer lists them
    listed: dict[int, str] | None = None
    answered: set[int] = field(default_factory=set)
    # addresses to which a peer has failed to send its last message
    unreached: set[str] = field(default_factory=set)
    answers: list[dict[str, Any]] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    _seen: dict[tuple[str, int], str] = field(default_factory=dict)

    def take(self, documents: Sequence[Document]) -> None:
        """Take all answers in documents, of those on the same in a session the last."""
        given = (one for document in documents for one in self._given(document))
        for at, name, result, plain in last_states(self.notes, given):
            self.answers.append({"collection": name, **plain})
            if result.config is not None:
                self.factors[name] = result.config.params.replication_factor
            elif result.local_shards is not None:
                self._take_shards(at, name, result)
            else:
                self._take_peers(at, result)

    def _given(self, document: Document) -> Iterator[tuple[Hashable, str, str, Given]]:
        """Yield the answers in a document, each with its file, its subject, and its peer."""
        named = self._name(document)
        for at, answer, plain in _each(self.faults, document):
            name, result = answer.collection or named, answer.result or answer
            if result.config is not None:
                about = f"collection {name}"
            elif result.local_shards is not None:
                about = f"shards of {name}"
            elif result.peers is not None:
                about = "peers"
            else:
                message = "is no answer of GET /cluster or GET /collections/NAME[/cluster]"
                self.faults.add(at, None, message)
                continue
            yield document.origin, about, str(result.peer_id), (at, name, result, plain)

    def _name(self, document: Document) -> str:
        """Return the collection that the request before an answer names, or else the file."""
        if requests := REQUEST.findall(document.before):
            return unquote(requests[-1].decode("utf-8", "replace"))
        if document.name.startswith("<"):  # bytes, or standard input
            return self.collection
        stem = PurePath(document.name).stem
        return unquote(stem.rpartition("@")[0] or stem)

    def unround(self) -> None:
        """Put the peers of the cluster for numbers that a tool without 64 bits made of them."""
        listed = self.listed or {}
        like = Counter(map(float, listed))
        # an answer on the cluster has them as texts, which no tool rounds
        exact = {int(float(one)): one for one in listed if like[float(one)] == 1}
        seen = {*self.answered, *(p for one in self.shards.values() for p in one)}
        for peer in sorted(seen - listed.keys() - {-1}):
            own = exact.get(int(float(peer)))
            if own is None:
                continue
            self.notes.add("peers whose numbers a tool has rounded ({}): they are read as GET "
                           "/cluster has them", str(peer))  # fmt: skip
            self.answered = {own if p == peer else p for p in self.answered}
            for targets in self.targets.values():
                targets |= {own} if peer in targets else set()
            for one in self.shards.values():
                if peer in one:
                    one.setdefault(own, Replica()).join(one.pop(peer))

    def _take_peers(self, at: str, result: Result) -> None:
        self.answered.add(result.peer_id)
        self.unreached.update(uri.rstrip("/") for uri in result.message_send_failures)
        self.listed = self.listed or {}
        for text, one in (result.peers or {}).items():
            if text.isascii() and text.isdecimal() and len(text) <= DIGITS:
                self.listed[int(text)] = one.uri
            else:
                self.faults.add(f"{at}.result.peers", text, "is not the number of a peer")

    def _take_shards(self, at: str, name: str, result: Result) -> None:
        own = result.peer_id
        if own < 0:
            message = f"is missing: the answer is of an old release, or cut: give {ASKS}"
            self.faults.add(f"{at}.result.peer_id", None, message)
        elif before := self._seen.get((name, own)):
            message = (
                f"has answered on {name} at {before} already: give one answer of each peer, "
                "and name each file after its collection"
            )
            self.faults.add(f"{at}.result.peer_id", own, message)
        self._seen[name, own] = at
        self.answered.add(own)
        for shard in result.local_shards or ():
            self._take_shard(at, name, shard, own)
        for shard in result.remote_shards:
            self._take_shard(at, name, shard, shard.peer_id)
        for one in result.shard_transfers:
            own_number = one.shard_id if one.to_shard_id is None else one.to_shard_id
            for number in {one.shard_id, own_number}:
                self.targets.setdefault((name, number), set()).add(one.to)
        for other in result.resharding_operations or ():
            self.resharding.add((name, as_text(other.shard_key)))

    def _take_shard(self, at: str, name: str, shard: Shard, peer: int) -> None:
        key = (name, shard.shard_id)
        replica = self.shards.setdefault(key, {}).setdefault(peer, Replica())
        replica.join(Replica({shard.state}, shard.points_count))
        if shard.shard_key is not None:
            self.keys[key] = as_text(shard.shard_key)


def as_text(key: str | int | None) -> str:
    """Return a shard key as text; a number has its own form, since ``7`` is not ``"7"``."""
    return "" if key is None else key if isinstance(key, str) else f"#{key}"


def _each(faults: FaultList, document: Document) -> Iterator[tuple[str, Answer, dict[str, Any]]]:
    """Yield the answers in a document, alone or in a list, each with its place and as it was."""
    given: Any = decode_json(faults, document, Any)
    for i, one in enumerate(given if isinstance(given, list) else [given]):
        at = f"{document.name}: " + (f"[{i}]" if isinstance(given, list) else "")
        for plain in [] if one is None else answers_of(faults, at, one):
            before = len(faults.faults)
            note_misfits(faults, at, plain, Answer)
            if len(faults.faults) == before:
                yield at, msgspec.convert(plain, Answer), plain


def recognises(document: Document) -> Kind:
    """Return the kind of a document; "" if it is none of Qdrant."""
    head = document.data[:HEAD]
    if document.is_json:
        for kind, needed in KINDS.items():
            if all(x in head for x in needed):
                return kind if kind != "telemetry" or OF_SHARDS.search(head) else ""
    return ""


def hint(document: Document) -> str:
    """Return why an answer without a cluster is not read; "" for other documents."""
    if re.match(rb'\s*\{\s*"result"\s*:\s*\{\s*"status"\s*:\s*"disabled"', document.data):
        return "is of a node of Qdrant without cluster mode, which moves no shards"
    if b'"number_of_collections"' in document.data[:HEAD]:
        return "is telemetry of Qdrant without shards: ask for it with details_level=3"
    failed = re.match(
        rb'\s*\{(?:\s*"result"\s*:\s*null\s*,)?\s*"status"\s*:\s*\{\s*"error"', document.data
    )
    return f"is an error of a request to Qdrant: give {ASKS}" if failed else ""
