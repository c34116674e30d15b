"""The public names: what the doors of the package hand out, and the classes that these lead to."""

import dataclasses
import importlib
import inspect
import typing
from collections.abc import Iterator

DOORS = (
    "evenkeel",
    "evenkeel.control",
    "evenkeel.simulate",
    "evenkeel.systems.ceph.crush",
    "evenkeel.systems.longhorn.auto_balance",
    "evenkeel.view.plots",
)
OPTIONS = "evenkeel.options"


def public() -> set[object]:
    """Every function and class that a user meets: exported, or the type of something exported."""
    found: set[object] = set()
    waiting = list(_exported())
    while waiting:
        value = inspect.unwrap(waiting.pop())
        own = getattr(value, "__module__", "") or ""
        if own.partition(".")[0] != "evenkeel" or not callable(value) or value in found:
            continue
        found.add(value)
        waiting += _leads_to(value)
    return found


def _exported() -> Iterator[object]:
    """What the doors list, and every class of options."""
    for door in DOORS:
        module = importlib.import_module(door)
        yield from (getattr(module, name) for name in module.__all__)
    options = importlib.import_module(OPTIONS)
    yield from (getattr(options, name) for name in dir(options) if name[0].isupper())


def _leads_to(value: object) -> Iterator[object]:
    """Classes that a public name returns, takes, or has as a field."""
    if inspect.isclass(value):
        if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
            yield from _classes(_hints(value).values())
        for name, member in vars(value).items():
            plain = member.fget if isinstance(member, property) else member
            plain = plain.__func__ if isinstance(plain, classmethod | staticmethod) else plain
            if name[0] != "_" and inspect.isfunction(plain):
                yield from _classes(_hints(plain).values())
    else:
        yield from _classes(_hints(value).values())


def _hints(value: object) -> dict[str, object]:
    """The annotations of a class or function; none where a name of theirs is not importable."""
    try:
        return typing.get_type_hints(value)
    except NameError:
        return {}


def _classes(hints: typing.Iterable[object]) -> Iterator[object]:
    """The classes in annotations, also inside unions and generics."""
    for hint in hints:
        if inspect.isclass(hint) and not typing.get_args(hint):
            yield hint
        yield from _classes(typing.get_args(hint))
