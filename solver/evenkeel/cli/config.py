"""Read default options from ``evenkeel.toml``, which the command line overrides.

A key is an option without its dashes. At the top it is for every command that takes it, in a table
named like a command for that one. What may be given several times is a list, or a table where it
is of the form NAME=VALUE.
"""

import argparse
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import did_you_mean

FILE = "evenkeel.toml"  # read from the working folder where ``--config`` names no other
NOT_KEPT = ("help", "config")
AT_LINE = re.compile(r"\(at line (\d+)")


Commands = Mapping[str, argparse.ArgumentParser]  # the parser of each command by its name
# makes the parser of the command line, with the commands that are named, or all
Build = Callable[..., tuple[argparse.ArgumentParser, Commands]]


def parsed(build: Build, given: Sequence[str]) -> argparse.Namespace:
    """Parse a command line on top of what the file says, or raise what is wrong with the file."""
    name = next((one for one in given if not one.startswith("-")), "")
    path = _path(given)
    parser, commands = build(name)
    if given and given[0].startswith("-") and given[0] not in _named(parser):
        whole, every = build()
        if behind := next((one for one in given if one in every), ""):
            whole.error(f"options follow the command: evenkeel {behind} {given[0]} ...")
    if name not in commands or path is None:
        arguments = _all_known(parser if name in commands else build()[0], build, name, given)
        arguments.assumed = frozenset[str]()
        return arguments
    entries = _entries(path, build()[1])
    bare = _all_known(parser, build, name, given)
    values = entries.get("", {}) | entries.get(name, {})
    own = {one.dest: values[one.dest] for one in _options(commands[name]) if one.dest in values}
    repeated = {one.dest for one in _options(commands[name]) if _repeats(one)}
    plain = {dest: value for dest, value in own.items() if dest not in repeated}
    commands[name].set_defaults(**plain)
    arguments = _all_known(parser, build, name, given)
    for dest in repeated & own.keys():
        stale = dest == "option" and arguments.method != plain.get("method", arguments.method)
        setattr(arguments, dest, _merged([] if stale else own[dest], getattr(arguments, dest)))
    arguments.assumed = frozenset(
        dest
        for dest in own.keys() - entries.get(name, {}).keys()
        if getattr(arguments, dest) != getattr(bare, dest)
    )
    return arguments


def _all_known(
    parser: argparse.ArgumentParser, build: Build, name: str, given: Sequence[str]
) -> argparse.Namespace:
    """Parse a command line; report unknown options with the commands that know them."""
    arguments, rest = parser.parse_known_args(given)
    if rest:
        commands = build()[1]
        named = {one: _named(parser) for one, parser in commands.items()}
        option = rest[0].partition("=")[0]
        whose = [f"evenkeel {one}" for one, options in named.items() if option in options]
        hint = f"; {option} is an option of {' and '.join(whose)}" if whose else ""
        hint = hint or did_you_mean(option, named[name])
        hint = hint or _once_for_each(commands[name], given, rest[0])
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return arguments


def _once_for_each(parser: argparse.ArgumentParser, given: Sequence[str], word: str) -> str:
    """Say that an option is repeated for another value, where the word follows one that may be."""
    before = [one for one in given[: given.index(word)] if one[:2] == "--"]
    known = {name for one in _options(parser) if _repeats(one) for name in one.option_strings}
    several = before[-1] if before and word[:1] != "-" and before[-1] in known else ""
    return f"; several are given one by one: {several} {word}" if several else ""


def _named(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a command as they may be written."""
    return [one for action in _options(parser) for one in action.option_strings]


def _path(given: Sequence[str]) -> Path | None:
    """Return the file that is named, or the one in the working folder if there is one."""
    asking = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    asking.add_argument("--config")
    try:
        named = asking.parse_known_args([*given])[0].config
    except argparse.ArgumentError:
        return None  # the command's own parser says it better
    if named is not None:
        return Path(named)
    return Path(FILE) if Path(FILE).is_file() else None


def _entries(path: Path, commands: Commands) -> dict[str, dict[str, Any]]:
    """Return the values of a file by command, "" for all, or raise everything that is wrong."""
    faults = FaultList()
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        line = AT_LINE.search(str(error))
        at = f"{path}:{line[1]}" if line else str(path)
        faults.add(at, None, f"is not valid TOML: {str(error)[:200]}")
        faults.raise_if_any()
    entries: dict[str, dict[str, Any]] = {"": {}}
    every = [option for one in commands.values() for option in _options(one)]
    for key, value in document.items():
        if key in commands and isinstance(value, dict):
            entries[key] = {}
            for inner, one in value.items():
                _read(
                    faults,
                    f"{path}: {key}.{inner}",
                    inner,
                    one,
                    _options(commands[key]),
                    entries[key],
                )
        else:
            _read(faults, f"{path}: {key}", key, value, every, entries[""], [*commands])
    faults.raise_if_any()
    return entries


def _read(
    faults: FaultList,
    at: str,
    key: str,
    value: Any,
    options: Sequence[argparse.Action],
    into: dict[str, Any],
    tables: Sequence[str] = (),
) -> None:
    """Read one value as the option of its name reads a text, or note what is wrong with it."""
    by_name = {one.option_strings[-1].lstrip("-"): one for one in options}
    by_name |= {name.lstrip("-"): one for one in options for name in one.option_strings}
    option = by_name.get(key.replace("_", "-"))
    if option is None:
        long = [name for name in by_name if len(name) > 1]
        faults.add(at, value, f"is not an option{did_you_mean(key, [*long, *tables])}")
    elif option.nargs == 0:
        if not isinstance(value, bool):
            faults.add(at, value, "must be true or false")
        into[option.dest] = value
    else:
        found = [_value(faults, at, text, option) for text in _texts(value, option)]
        if len(found) != 1 and not _repeats(option):
            faults.add(at, value, "must be one value")
        elif found or _repeats(option):
            into[option.dest] = found if _repeats(option) else found[0]


def _value(faults: FaultList, at: str, text: str, option: argparse.Action) -> Any:
    """Return what an option makes of a text."""
    kind = option.type
    try:
        return kind(text) if callable(kind) else text
    except argparse.ArgumentTypeError as error:
        faults.add(at, text, str(error))
    except (TypeError, ValueError):
        faults.add(at, text, f"is not of type {getattr(kind, '__name__', 'value')}")
    return None


def _texts(value: Any, option: argparse.Action) -> Iterator[str]:
    """Yield a value as one would write it on the command line."""
    if isinstance(value, list):
        yield from (_text(one) for one in value)
    elif isinstance(value, dict):
        entries = [
            f"{name}={text}" for name, one in value.items() for text in _texts(one, option)
        ]  # fmt: skip
        yield from entries if _repeats(option) else [",".join(entries)]
    else:
        yield _text(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options of a command that a file may set."""
    actions: list[argparse.Action] = parser._actions
    return [one for one in actions if one.option_strings and one.dest not in NOT_KEPT]


def _repeats(option: argparse.Action) -> bool:
    return isinstance(option, argparse._AppendAction)


def _merged(configured: list[Any], given: list[Any] | None) -> list[Any]:
    """Return what was given, and of the file what the command line does not name."""
    if not given:
        return configured
    if isinstance(given[0], tuple):
        named = {name for name, _ in given}
        return [one for one in configured if one[0] not in named] + given
    return given
