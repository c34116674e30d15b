"""Cache values derived from an object on that object, until the other inputs change.

The scenarios of a sweep share all that they do not change, and so what follows from it.
"""

from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

MARK = "_once "  # what the names of things kept begin with


def memoize(owner: object, name: str, make: Callable[[], Answer], *others: object) -> Answer:
    """Return the value last made of an object and others; make it if needed.

    >>> class Part:
    ...     pass
    >>> part, zone = Part(), Part()
    >>> memoize(part, "list", list, zone) is memoize(part, "list", list, zone)
    True
    >>> memoize(part, "list", list, zone) is memoize(part, "list", list, Part())
    False
    """
    key = MARK + name
    kept = owner.__dict__.get(key)
    if kept is not None and all(a is b for a, b in zip(kept[0], others, strict=True)):
        answer: Answer = kept[1]
        return answer
    made = make()
    owner.__dict__[key] = others, made
    return made


def is_kept(attribute: str) -> bool:
    """Return whether ``once`` made an entry of a ``__dict__``; another owner may take it over."""
    return attribute.startswith(MARK)
