"""Check keyword arguments; an unknown one is an error that names the closest."""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Collection
from difflib import SequenceMatcher
from typing import Any, ParamSpec, TypeVar

from evenkeel.model.errors import FaultList, InvalidInput

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Kind = TypeVar("Kind")

# names up to which the closest is looked for: that of more takes longer than it helps
MOST_COMPARED = 50_000

# words that take something away, or set to work: proposed only for near misses
HARMFUL = frozenset(
    [
        "apply",
        "delete",
        "down",
        "drain",
        "drained",
        "drop",
        "exclude",
        "execute",
        "force",
        "gone",
        "lost",
        "overwrite",
        "prune",
        "purge",
        "remove",
        "remove_nodes",
        "shrink",
    ]
)

ALL_BUT = 0.75  # how much a word has to be like one of these
FIELDS: dict[str, Collection[str]] = {}  # arguments of classes, by the name of each
MOST_ASKED = 3  # faults up to which it is looked for: a list of wrong names has one cause


def closest(word: str, known: Collection[str], likeness: float = 0.5) -> str | None:
    """Return the known word that is most like a word, of a likeness from 0 to 1 at least.

    >>> closest("hight", ["width", "height"]), closest("depth", ["width", "height"], 0.8)
    ('height', None)
    >>> closest("pin", ["drain", "down"]), closest("darin", ["drain", "down"])
    (None, 'drain')
    """
    # the second ratio knows letters in any order: of two that are as close, it is the swapped ones
    best, close = (likeness, 0.0), None
    for one in sorted(known):
        compared = SequenceMatcher(None, word, one)
        # neither is ever below the ratio, and each is much faster than the next
        if compared.real_quick_ratio() < best[0] or (quick := compared.quick_ratio()) < best[0]:
            continue
        ratios = compared.ratio(), quick
        plain = one.lstrip("-").replace("-", "_")
        if plain in HARMFUL and not (ratios[0] >= ALL_BUT and word.lstrip("-")[:1] == plain[:1]):
            continue
        if ratios > best:
            best, close = ratios, one
    return close


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return a question after the closest known word, to end a message with, or ``""``."""
    close = closest(word, known)
    return f"; did you mean {close!r}?" if close else ""


def meant_name(faults: FaultList, word: object, known: Collection[str]) -> str:
    """Return the hint of ``did_you_mean`` for a name of a cluster, for the first few faults.

    >>> meant_name(FaultList(), "ordrs-1", ["orders-0", "orders-1"])
    "; did you mean 'orders-1'?"
    >>> meant_name(FaultList(), "a", ["rabbit@a", "rabbit@b"])
    "; did you mean 'rabbit@a'?"
    """
    # the only name of which the word is a part comes first
    if len(known) > MOST_COMPARED or len(faults.faults) >= MOST_ASKED or not isinstance(word, str):
        return ""
    part = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    whole = [one for one in known if word and part.search(one)]
    return f"; did you mean {whole[0]!r}?" if len(whole) == 1 else did_you_mean(word, known)


def check_keywords(faults: FaultList, given: dict[str, object], known: Collection[str]) -> None:
    """Note arguments that are not among those known, each with the closest word that is."""
    for word, value in given.items():
        if word not in known:
            holds = [kind for kind, names in FIELDS.items() if kind.lower() in known
                     and word in names]  # fmt: skip
            hint = did_you_mean(word, known)
            # a field of what an argument takes
            if holds:
                hint = f"; write {holds[0].lower()}=evenkeel.{holds[0]}({word}=...)"
            faults.add(word, value, f"unknown argument{hint}")


def known_fields(kind: type[Kind]) -> type[Kind]:
    """Make a class refuse keywords that are none of its fields; goes above ``dataclass``."""
    kind.__init__ = known_arguments(kind.__init__)  # type: ignore[method-assign]
    return kind


def known_keywords(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make a function refuse keywords it does not know before anything else is looked at.

    >>> @known_keywords
    ... def area(*, width: float, height: float) -> float:
    ...     return width * height
    >>> area(width=2.0, hight=3.0)
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: hight: unknown argument; did you mean 'height'? (got 3.0)
    """
    known = _names(function)

    @functools.wraps(function)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        faults = FaultList()
        check_keywords(faults, kwargs, known)
        faults.raise_if_any()
        return function(*args, **kwargs)

    return checked


def known_arguments(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make what only reads its arguments refuse such keywords with all else that is wrong.

    >>> from evenkeel.model.limits import Limits
    >>> Limits(moves=-1, byts=3)
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: 2 problems with the input:
      byts: unknown argument; did you mean 'bytes'? (got 3)
      limits.moves: must be a whole number, 0 or more (got -1)
    """
    known, signature = _names(function), inspect.signature(function)
    if function.__name__ == "__init__":
        FIELDS[function.__qualname__.split(".")[0]] = known

    @functools.wraps(function)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        faults = FaultList()
        check_keywords(faults, kwargs, known)
        if not faults:
            return function(*args, **kwargs)
        stated: dict[str, Any] = {name: value for name, value in kwargs.items() if name in known}
        with contextlib.suppress(TypeError):  # without what must be given, nothing can be read
            signature.bind(*args, **stated)
            try:
                function(*args, **stated)
            except InvalidInput as error:
                faults.faults.extend(error.faults)
        raise InvalidInput(faults.faults)

    return checked


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """List the parameters that a keyword may name."""
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    given = inspect.signature(function).parameters.values()
    return tuple(one.name for one in given if one.kind not in several)
