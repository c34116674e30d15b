"""``waves.json``: the commands, expected states and waits of each wave of a plan.

Texts of commands are templates: ``${NAME}`` stands for the value of a setting, ``${FILE}`` for
the path of the command's file, ``${WAS}`` for what a hold has read, ``$$`` for a dollar sign.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from string import Template
from typing import Literal

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import Int32, decode_json

LONGEST = 120  # characters of a name that are shown


def shown(name: str) -> str:
    r"""Return a name as one harmless word, in quotes unless it is plain."""
    if re.fullmatch(r"[A-Za-z0-9_.:@/%+-]{1,120}", name, re.ASCII):
        return name
    return f'"{plain(name[:LONGEST])}"' + ("..." if len(name) > LONGEST else "")


def plain(text: str) -> str:
    """Return a text in which all but plain letters, digits and signs are numbers."""
    return re.sub(r"[^A-Za-z0-9_.:@/%+ =,;()?-]", _marked, text)


def _marked(found: re.Match[str]) -> str:
    return {"\n": r"\n", "\t": r"\t"}.get(found[0], f"\\u{ord(found[0]):04x}")


FILE = "waves.json"
VERSION: Literal[1] = 1


class Setting(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A variable of the environment that commands use."""

    name: str
    default: str
    meaning: str
    unless: str = ""  # the setting that empties this one where it is given


SHARED = (
    Setting("PAUSE", "10", "seconds between two looks at the system"),
    Setting("PATIENCE", "86400", "seconds after which a wave that has not ended is given up"),
    Setting("REPORT", "600", "seconds of a wait after which the cluster is compared again"),
    Setting("TRIES", "12", "looks after which a wave that has not begun is given up"),
)


class Command(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A command, without a shell: a program, its arguments, and what becomes of its output."""

    # arguments; those in a list of their own are left out where a setting in it is empty
    run: Sequence[str | Sequence[str]] = []
    about: str = ""  # what it does, or what it waits for, for people
    file: str = ""  # the file that ``${FILE}`` stands for, by its path in the folder
    save: str = ""  # the file of the dump that takes its output
    # a file of the dump and a text in it, without which the command is left out
    where: list[str] = []
    # whether it is left out where its program is missing or a setting that it needs is empty
    optional: bool = False
    # a command whose check makes this one unnecessary where it holds
    unless: "Command | None" = None
    otherwise: "Command | None" = None  # what is run where this one fails or cannot be run
    check: str = ""  # the check of the system that its output must meet
    waits: bool = False  # whether it is run again until the check is met
    hold: "Hold | None" = None  # what is recorded before it runs, so that it can be given back
    # the name of a hold that is given back here; such a command runs nothing else
    release: str = ""


class Hold(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A state of the system that a plan changes for a while, and how to give it back."""

    name: str
    back: list[Command]
    read: Command | None = None  # the command whose check tells ``${WAS}``
    off: str = ""  # the ``${WAS}`` with which there is nothing to change, nor to give back
    # whether it is given back before a run looks at the system, and not by an interrupt
    first: bool = False


class Expected(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """What one wave does to one partition; nodes by index, those that lead are -1 for none."""

    partition: str
    before: list[Int32]
    after: list[Int32]
    led: Int32
    leads: Int32


class WaveForm(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One wave."""

    expect: list[Expected]  # where partitions are before it, and where they are once it is done
    commands: list[Command]
    # the node that comes first in the list of a partition of which nothing else changes
    first: dict[str, Int32] = {}
    # commands that wait for what was ordered, also before a wave is ordered again
    ends: list[Command] = []


class Form(msgspec.Struct, forbid_unknown_fields=True):
    """All that a run goes by."""

    version: Literal[1]
    format: str  # the format that reads the dumps of the system
    nodes: list[str]
    dead: list[Int32]  # nodes that were dead when the plan was made
    # whether every mixture of waves done and not done has room, so that their order is free
    in_any_order: bool
    outside: str  # digest of where the partitions are that no wave changes
    left: str  # what the waves leave out, and why; "" for nothing
    # the way to the folder that keeps what is held: that of the plan, also for its way back
    whole: str
    still: str  # what the system is left with while something is held
    settings: list[Setting]
    first: list[Command]  # run once, before anything is looked at
    look: list[Command]  # write the dump
    hold: list[Command]  # run before the first wave that a run orders
    waves: list[WaveForm]
    before: list[Command] = []  # run once, as the first wave is ready and nothing of it has begun
    # run once all waves are done, from the beginning where that was interrupted
    after: list[Command] = []
    # the labels, by tier, of nodes that hold nothing before the plan, as it counts on them
    places: dict[str, dict[str, str]] = {}


def encoded(form: Form) -> bytes:
    """Return the file, a wave per line."""
    head, mark, tail = msgspec.json.encode(msgspec.structs.replace(form, waves=[])).rpartition(
        b'"waves":['
    )
    waves = b",\n".join(map(msgspec.json.encode, form.waves))
    return head + mark + b"\n" + waves + b"\n" + tail + b"\n"


def read_form(faults: FaultList, document: Document) -> Form | None:
    """Return what a folder's file says; None after noting what is wrong with it."""
    return decode_json(faults, document, Form)


def literal(text: str) -> str:
    """Return a text as templates have it.

    >>> literal("a$b")
    'a$$b'
    """
    return text.replace("$", "$$")


def names_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield the names that templates leave open."""
    for text in texts:
        yield from Template(text).get_identifiers()


def filled(command: Command, values: Mapping[str, str]) -> list[str] | str:
    """Return the arguments of a command, or the name of a setting that it needs and is empty."""
    words: list[str] = []
    for one in command.run:
        group = [one] if isinstance(one, str) else one
        empty = next((name for name in names_in(group) if not values[name]), "")
        if empty and isinstance(one, str):
            return empty
        words += [] if empty else [Template(text).substitute(values) for text in group]
    return words


def lines_of(commands: Iterable[Command]) -> Iterator[str]:
    """Yield commands as a person enters them in a shell in the folder."""
    for one in commands:
        if one.about:
            yield f"# {plain(one.about)}"
        if one.hold is not None:
            if one.hold.read is not None:
                yield f"{_line(one.hold.read)}    # WAS is the value in it"
            for back in one.hold.back:
                yield f"# later: {_line(back)}"
        if one.unless is not None:
            yield f"{_line(one.unless)}    # {one.unless.check}: leave out the next"
        if one.run:
            yield _line(one) + (f"    # until {one.check}" if one.waits else "")
        if one.release:
            yield f"# now what is noted for later of {plain(one.release)}"
        if one.otherwise is not None:
            yield f"# or, where that fails: {_line(one.otherwise)}"


def preparing(form: Form) -> Iterator[str]:
    """Yield what a person enters in a shell before the commands: settings, folders of dumps."""
    own = [one for one in form.settings if one.name not in {shared.name for shared in SHARED}]
    for one in own:
        yield f"{one.name}=${{{one.name}-{_quoted(one.default)}}}"
    for one in own:
        if one.unless:
            yield f'[ -z "${one.unless}" ] || {one.name}='
    saved = (PurePosixPath("dump", one.save).parent for one in form.look)
    yield f"mkdir -p {' '.join(sorted({*map(str, saved)}))}"


def _line(command: Command) -> str:
    """Return a command as one line for a shell."""
    words = []
    for one in command.run:
        if isinstance(one, str):
            words.append(_word(one, command))
        else:
            inner = " ".join(_word(text, command) for text in one)
            words.append(f"${{{next(names_in(one))}:+{inner}}}")
    return " ".join(words) + (f" >{shlex.quote('dump/' + command.save)}" if command.save else "")


def _word(template: str, command: Command) -> str:
    parts = re.split(r"(\$\$|\$\{\w+\})", template)
    words = ""
    for text, mark in zip(parts[::2], [*parts[1::2], ""], strict=True):
        words += _quoted(text) if text else ""
        if mark == "${FILE}":
            words += _quoted(command.file)
        elif mark == "$$":
            words += "'$'"
        elif mark:
            words += f'"{mark}"'
    return words or "''"


def _quoted(text: str) -> str:
    """Return a text in quotes of a shell, on one line and without what acts on a terminal."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(letter: str) -> str:
    if letter.isprintable() and letter not in "\\'":
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogatepass"))


def settings_of(
    settings: Sequence[Setting], given: Mapping[str, str] | None = None
) -> list[Setting]:
    """Return all settings of a run; ``given`` are values that a plan knows."""
    return [
        msgspec.structs.replace(one, default=(given or {}).get(one.name, one.default))
        for one in (*settings, *SHARED)
    ]


def values_of(settings: Sequence[Setting], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of settings."""
    found = {one.name: environment.get(one.name, one.default) for one in settings}
    for one in settings:
        if one.unless and found[one.unless]:
            found[one.name] = ""
    return found
