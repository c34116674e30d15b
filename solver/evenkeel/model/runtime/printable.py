"""Escape control characters of names in text for a terminal."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# control characters, those that turn the direction of writing or show nothing, and half pairs
ACTING = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ud800-\\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with every character that acts on a terminal, but those kept, spelled out.

    >>> print(printable("a\x1b[2J\n"))
    a\x1b[2J\n
    >>> printable("a\nb\a", keep="\n")
    'a\nb\\x07'
    """
    return ACTING.sub(lambda found: found[0] if found[0] in keep else _spelled(found[0]), text)


def _spelled(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")


def counted(count: int, what: str, many: str = "") -> str:
    """Write how many there are of something."""
    return f"{count:,} {what if count == 1 else many or what + 's'}"


def some_of(
    several: Sequence[T], text: Callable[[T], str], most: int = 20, count: int | None = None
) -> str:
    """Write the first of several, at most so many, and how many more there are.

    >>> some_of([1, 2, 3], "n{}".format, 2)
    'n1, n2 and 1 more'
    """
    # ``count`` is the total number, where ``several`` are only the first of them
    left = (len(several) if count is None else count) - most
    return ", ".join(map(text, several[:most])) + (f" and {left:,} more" if left > 0 else "")
