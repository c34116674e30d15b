"""Collect notes on incomplete or unclear input, each with the names that it concerns."""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeVar

from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import Document

MOST_NAMED = 8

T = TypeVar("T")


@dataclass
class Notes:
    """Sentences, each with the names that belong into its gap, if it has one.

    >>> notes = Notes()
    >>> for name in ("n1", "n2", "n1"):
    ...     notes.add("no node {}: it counts as gone", name)
    >>> notes.add("no zones")
    >>> [*notes], notes.names("no node {}: it counts as gone")
    (['no node n1, n2: it counts as gone', 'no zones'], ('n1', 'n2'))
    """

    _names: dict[str, dict[str, None]] = field(default_factory=dict)

    def add(self, sentence: str, *names: str) -> None:
        """Add names to a note; each is listed once."""
        self._names.setdefault(sentence, {}).update(dict.fromkeys(names))

    def names(self, sentence: str) -> tuple[str, ...]:
        """Return all names of a note; none if it was not added."""
        return tuple(self._names.get(sentence, ()))

    def __iter__(self) -> Iterator[str]:
        """Yield the sentences with their names, of many only the first."""
        for sentence, names in self._names.items():
            named = some_of([*names], printable, MOST_NAMED)
            yield sentence.replace("{}", named, 1) if names else sentence


@dataclass
class Pages:
    """How much was given of lists that a system answers page by page.

    >>> pages, notes = Pages(), Notes()
    >>> for given in (2, 1):
    ...     pages.add("queues", "of /", given, 4)
    >>> pages.note(notes)
    >>> [*notes]
    ['3 of 4 queues: the others are not counted; ask for all of them']
    """

    _lists: dict[tuple[str, Hashable], tuple[int, int]] = field(default_factory=dict)

    def add(self, what: str, of: Hashable, given: int, total: int) -> None:
        """Add a page; ``of`` tells its list from others, and ``total`` is that of the list."""
        before, most = self._lists.get((what, of), (0, 0))
        self._lists[what, of] = before + given, max(most, total)

    def add_chunk(self, kind: str, metadata: Any, given: int) -> None:
        """Add a list of Kubernetes with its metadata, which say how many objects are behind it."""
        about = metadata if isinstance(metadata, dict) else {}
        left = about.get("remainingItemCount")
        total = given + left if isinstance(left, int) else given
        self.add(f"objects of a {kind}", str(about.get("resourceVersion")), given, total)

    def note(self, notes: Notes) -> None:
        """Note lists of which a part is missing."""
        for (what, _), (given, total) in self._lists.items():
            if given < total:
                counts = f"{given:,} of {total:,} {what}"
                notes.add(f"{counts}: the others are not counted; ask for all of them")


def last_states(notes: Notes, answers: Iterable[tuple[Hashable, str, str, T]]) -> list[T]:
    """Return the answers that hold, in their order, of sessions in which the same is asked again.

    >>> notes = Notes()
    >>> last_states(notes, [("a", "peers", source, source) for source in ("n1", "n2", "n1")])
    ['n1']
    >>> [*notes]
    ['more than one state of peers: the last counts']
    """
    # a second answer of a source on the same begins a later state, for which no earlier answer in
    # the file holds
    held: dict[tuple[Hashable, str], dict[str, tuple[int, T]]] = {}
    for place, (file, about, source, answer) in enumerate(answers):
        given = held.setdefault((file, about), {})
        if source in given:
            notes.add("more than one state of {}: the last counts", about)
            given.clear()
        given[source] = place, answer
    last = sorted((one for given in held.values() for one in given.values()), key=itemgetter(0))
    return [answer for _, answer in last]


# a prompt with its folder, which is no part of what is asked
PLACE = re.compile(r"(?<!\S)(?:\[([^\s@]++@\S++) [^]]*+\]|([^\s@]++@[^\s:]++):\S*)(?=[#$] )")

# a title above an answer, such as ``IdealState for myDB:``
TITLE = re.compile(r"(?:^| )([A-Z]\w+ for \S+):$")


def last_answers(notes: Notes, documents: Sequence[Document]) -> list[Document]:
    """Return documents without answers whose request, in the same words, comes again in a file."""
    given = []
    asked: dict[Hashable, tuple[int, str, int]] = {}
    for one in documents:
        known, request, place = asked.get(one.origin, (0, "", 0))
        # a request may have several answers, each under a title, such as "InstanceConfig:"
        words = " ".join(one.before[known:].decode("utf-8", "replace").split())
        words = PLACE.sub(r"\1\2", words)
        words = "" if words.endswith(":") and " " not in words else words
        # a title that names what it is about does so whatever is above
        words = title[1] if (title := TITLE.search(words)) else words
        request, place = (words, 0) if words else (request, place + 1)
        asked[one.origin] = len(one.before), request, place
        given.append((one.origin, request, str(place), one))
    return last_states(notes, given)


def noted(native: object) -> Iterable[str]:
    """Return the notes in the payload of a cluster."""
    found = native.get("notes", ()) if isinstance(native, dict) else getattr(native, "notes", ())
    return [one for one in found if isinstance(one, str)] if isinstance(found, Iterable) else []
