"""Notes on input that cannot be judged, each with the names that it concerns."""

from collections.abc import Iterable

from evenkeel.model.runtime.printable import printable, some_of

MOST_NAMED = 8


class Notes:
    """Sentences with a gap, each with the names that belong into it.

    Examples
    --------
    >>> notes = Notes()
    >>> for name in ("n1", "n2", "n1"):
    ...     notes.add("no node {}: it counts as gone", name)
    >>> notes.texts()
    ['no node n1, n2: it counts as gone']
    """

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}

    def add(self, sentence: str, *names: str) -> None:
        """Add names to a note; each is listed once."""
        self._names.setdefault(sentence, {}).update(dict.fromkeys(names))

    def texts(self) -> list[str]:
        """Return the sentences with their names, of many only the first."""
        return [
            sentence.replace("{}", some_of([*names], printable, MOST_NAMED), 1)
            for sentence, names in self._names.items()
        ]


def noted(native: object) -> Iterable[str]:
    """Return the notes in the payload of a cluster."""
    found: Iterable[str] = (
        native.get("notes", ()) if isinstance(native, dict) else getattr(native, "notes", ())
    )
    return found
