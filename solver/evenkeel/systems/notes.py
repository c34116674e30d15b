"""Notes on input that cannot be judged, each with the names that it concerns."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evenkeel.model.runtime.printable import printable, some_of

MOST_NAMED = 8


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


def noted(native: object) -> Iterable[str]:
    """Return the notes in the payload of a cluster."""
    found: Iterable[str] = (
        native.get("notes", ()) if isinstance(native, dict) else getattr(native, "notes", ())
    )
    return found
