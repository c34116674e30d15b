"""Define and parse the arguments that several commands share."""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from textwrap import fill, wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from evenkeel.cli.output import BAD_INPUT
from evenkeel.model.errors import Fault, FaultList
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.runtime.printable import printable

if TYPE_CHECKING:
    from evenkeel.methods.options import Options
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.goals import Goals
    from evenkeel.model.limits import Limits
    from evenkeel.planning.throttle import Throttle

Commands = Any  # what ``add_subparsers`` returns; argparse keeps its type to itself
NODES = (
    "by name or pattern, or those of an expression such as zone=a or +ssd; may be given several "
    "times"
)

LIMITS = {
    "moves": (int, "N", "most moves in all"),
    "bytes": (str, "N|3TB", "most data moved, in the unit of the bytes dimension, or with a unit"),
    "node_in": (int, "N", "most replicas that may enter one node"),
    "node_out": (int, "N", "most replicas that may leave one node"),
    "partition_moves": (int, "N", "most replicas of one partition that may move"),
    "leader_changes": (int, "N", "most partitions that another node may lead than before"),
    "disk_moves": (int, "N", "most replicas that may change their disk within a node"),
}
TIER_LIMITS = {
    "domain_in": "most replicas that may enter one domain of a tier",
    "domain_out": "most replicas that may leave one domain of a tier",
}


NOT_GIVEN = object()  # the level and leaders by default: what is usual for the system


class _Unnamed(str):
    """The method where none is named."""


UNNAMED = _Unnamed("balance")


# how argparse says that a word is none of those that it knows
UNKNOWN = re.compile(r"argument .*: invalid choice: '(.*)' \(choose from (.*)\)")


# an option in the usage; the help describes it below
OPTIONAL = re.compile(r"\[-(?:[^\[\]]|\[[^\]]*\])*\]")


class Parser(argparse.ArgumentParser):
    """A parser whose help begins with examples and ends with texts made when printed."""

    endings: Sequence[Callable[[], str]] = ()
    examples: Sequence[str] = ()
    unread: tuple[str, ...] = ()  # what was wrong with the values of options so far
    # the values of options so far, by the option, and by the name that a value is for
    given: Mapping[tuple[str, str], str] = MappingProxyType({})

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Read the values of an option; go on where one is wrong, so that all are reported."""
        self._note_twice(action, arg_strings)
        try:
            return super()._get_values(action, arg_strings)
        except argparse.ArgumentError as error:
            if action.nargs == argparse.PARSER:  # the options of an unknown command are unknown
                raise
            self.unread = (*self.unread, str(error))
            return argparse.SUPPRESS

    def _note_twice(self, action: argparse.Action, arg_strings: list[str]) -> None:
        """Note an option that is given twice with different values: only one could hold."""
        if not action.option_strings or len(arg_strings) != 1:
            return
        [text], name = arg_strings, ""
        if isinstance(action, argparse._AppendAction):
            if action.metavar not in ("GROUP=N", "TIER=N", "NAME=X"):
                return
            name = text.rpartition("=")[0].strip()
        key = action.dest, name
        if self.given.get(key, text) != text:
            of = f" for {name}" * bool(name)
            message = f"is given twice{of}, {self.given[key]!r} and {text!r}: give it once"
            self.unread = (*self.unread, str(argparse.ArgumentError(action, message)))
        self.given = {**self.given, key: text}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what is known; say everything that is wrong with it, and leave."""
        self.unread, self.given = (), {}
        known, rest = super().parse_known_args(args, namespace)
        if self.unread:
            *others, last = self.unread
            self.unread = tuple(others)
            self.error(last)
        positional = self._get_positional_actions()
        if rest and positional[-1].dest == "files" and all(Path(one).is_file() for one in rest):
            known.files, rest = [*known.files, *rest], []  # options stand between the files
        return known, rest

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, each in a line, and leave."""
        from evenkeel.methods.registry import METHODS

        lines = [f"usage: {self.prog} ... (--help lists what it takes)"]
        for sentence in (*self.unread, message):
            known = re.findall(r"'([^']*)'", word[2]) if (word := UNKNOWN.match(sentence)) else []
            hint = did_you_mean(word[1], known) if word else ""
            if word and word[1] in METHODS:
                hint = f"; a method is named so: evenkeel solve --method {word[1]}"
            lines.append(f"{self.prog}: error: {printable(sentence + hint)}")
        self.exit(BAD_INPUT, "\n".join([*lines, ""]))

    def format_help(self) -> str:
        """Write the help: a line of usage, examples, the options, the endings as they are."""
        usage, _, rest = super().format_help().partition("\n\n")
        words = OPTIONAL.sub(" ", usage).split()
        place = words.index(self.prog.split()[-1]) + 1
        parts = [" ".join([*words[:place], "[OPTION ...]", *words[place:]])]
        if self.examples:
            description, _, rest = rest.partition("\n\n")
            word = "example" if len(self.examples) == 1 else "examples"
            parts.append(description)
            parts.append("\n".join([f"{word}:", *(f"  {one}" for one in self.examples)]))
        whole = "\n\n".join([*parts, rest])
        return "\n".join([whole, *(f"{sentence()}\n" for sentence in self.endings)])

    def add_files(self, what: str = "a cluster") -> None:
        """Add the files to read, and their format."""
        self.add_argument(
            "files", nargs="+", metavar="FILE",
            help=f"{what}, in one file or several; - for the standard input",
        )  # fmt: skip
        self.add_argument(
            "--format", metavar="FORMAT",
            help="format of the files, one of those below; found from their content by default",
        )  # fmt: skip
        self.add_argument(
            "--now", metavar="TIME", type=moment,
            help="when the files were printed, such as 2026-01-31T12:00:00Z, for systems that wait "
            "for what is down (Longhorn, Helix)",
        )  # fmt: skip
        self.add_argument(
            "--loads", action="append", default=[], metavar="[NAME=]FILE",
            help="loads of partitions measured elsewhere, of a dimension: a saved answer of "
            "Prometheus to a query, or a table; leader_NAME for what only leaders carry; may be "
            "given several times",
        )  # fmt: skip
        self.add_argument(
            "--label", action="append", default=[], metavar="WORD=LABEL,...",
            help="which labels or columns of those name the partition, its group (topic, index, "
            "...) and the node, such as topic=topic,partition=partition; found by such names by "
            "default",
        )  # fmt: skip
        self.add_argument(
            "--take", default="last", metavar="HOW",
            help="of several samples last, mean, max or a percentile, p95 (%(default)s)",
        )  # fmt: skip
        self.endings = (*self.endings, list_formats)

    def add_output(self) -> None:
        """Add the options for verbosity and output format."""
        self.add_argument(
            "--quiet", "-q", action="store_true", help="print nothing but what is wrong"
        )
        self.add_argument("--json", action="store_true", help="print figures for machines, as JSON")
        self.add_argument(
            "--config", metavar="FILE",
            help="options that hold unless they are given, in TOML; evenkeel.toml, if it is there",
        )  # fmt: skip

    def add_usual(self, *names: str) -> None:
        """Add some of the options that mean the same wherever they are."""
        for name in names:
            self.add_argument(name, **USUAL[name])

    def add_report(self, what: str) -> None:
        """Add the file for a page."""
        self.add_argument(
            "--report",
            metavar="OUT",
            help=f"file for a page about the {what}, .html, to read or print",
        )

    def add_throttle(self, meaning: str) -> None:
        """Add limits of what is under way at once."""
        self.add_argument(
            "--throttle", action="append", default=[], type=throttle_of, metavar="NAME=VALUE",
            help=meaning,
        )  # fmt: skip

    def add_metrics(self) -> None:
        """Add the option that writes figures for Prometheus."""
        self.add_argument(
            "--metrics", metavar="FILE", type=metrics_file,
            help="file for the figures as OpenMetrics text, such as one that ends in .prom in the "
            "folder that a node exporter's textfile collector reads; replaced as a whole",
        )  # fmt: skip

    def add_by_group(self) -> None:
        """Add the view by group."""
        self.add_argument(
            "--by-group", action="store_true",
            help="list the groups, such as topics, whose replicas or leaders lie least evenly",
        )  # fmt: skip

    def add_goals(self, goals: "argparse._ArgumentGroup") -> None:
        """Add the tolerances."""
        goals.add_argument(
            "--level", type=level_of, default=NOT_GIVEN, metavar="X|NAME=X,...",
            help="how far a node may be above the mean, or above the proven floor if that is "
            "higher: 0.04 or 4%%, or cpu=0.1,disk=none, where what is not named is not levelled "
            "(0.05, with methods that level)",
        )  # fmt: skip
        goals.add_argument(
            "--leaders",
            type=tolerance_of,
            default=NOT_GIVEN,
            metavar="X",
            help="the same for the number of leaders",
        )
        goals.add_argument(
            "--groups", type=level_of, metavar="X|NAME=X,...",
            help="how far a node may be above its share of the replicas of a group, such as a "
            "topic; in whole replicas; of all, or of those by name or pattern: today-*=20%%",
        )  # fmt: skip
        goals.add_argument(
            "--group-leaders", type=level_of, metavar="X|NAME=X,...",
            help="the same for the leaders of a group, in whole leaders",
        )  # fmt: skip
        goals.add_argument(
            "--min-leaders", action="append", type=number_of("NAME=N", int), metavar="NAME=N",
            help="least leaders of a group, or of all that match a pattern, on every node that "
            "takes replicas and may lead; may be given several times",
        )  # fmt: skip
        goals.add_argument(
            "--floor", type=level_of, metavar="X|NAME=X,...",
            help="how far a node that accepts replicas may be below the mean",
        )  # fmt: skip
        goals.add_argument(
            "--disks", type=tolerance_of, metavar="X",
            help="how far a disk may be above its share of what its node holds",
        )  # fmt: skip

    def add_solving(self) -> None:
        """Add what a solve takes."""
        solving = self.add_argument_group("solving")
        solving.add_argument(
            "--method",
            default=UNNAMED,
            metavar="NAME",
            help="of those below; by default %(default)s, or what is usual for the system",
        )
        solving.add_argument("--option", **USUAL["--option"])
        self.add_goals(solving)
        solving.add_argument(
            "--act-above", type=level_of, metavar="X|NAME=X,...",
            help="move nothing for the goals while every node is within this wider tolerance",
        )  # fmt: skip
        solving.add_argument(
            "--worth", action="append", metavar="GAIN",
            help="move nothing for the goals where the imbalance would fall by less: 2%% in all, "
            "0.01%%/move, or 1%%/TB moved; may be given several times",
        )  # fmt: skip
        solving.add_argument(
            "--move-cost", action="append", type=number_of("NAME=X"), metavar="NAME=X",
            help="moves that one move of a partition, a pattern of them, or a group such as a "
            "topic counts for: it moves last; may be given several times",
        )  # fmt: skip
        solving.add_argument(
            "--disk-move-cost", type=float, metavar="X",
            help="price of a move between disks of a node, as a share of that of a move between "
            "nodes: 0 to 1 (0.01)",
        )  # fmt: skip
        solving.add_argument(
            "--grow", dest="growth", type=factors_of, metavar="X|NAME=X,...",
            help="decide for larger loads, multiplied by this, all or by dimension: 1.4 or +40%%",
        )  # fmt: skip
        solving.add_argument("--time-limit", type=float, metavar="S", help="seconds")
        solving.add_argument(
            "--work-limit", type=int, metavar="N", help="candidates to look at; repeats bit for bit"
        )
        solving.add_argument("--seed", **USUAL["--seed"])
        self.add_limits()
        self.endings = (*self.endings, list_methods)

    def add_limits(self) -> None:
        """Add what must not be exceeded."""
        limits = self.add_argument_group("limits, never exceeded")
        for name, (kind, shown, meaning) in LIMITS.items():
            limits.add_argument(
                option_name(name), dest=name, type=kind, metavar=shown, help=meaning
            )
        for name, meaning in TIER_LIMITS.items():
            limits.add_argument(
                option_name(name), dest=name, type=tier_count_of, action="append", metavar="TIER=N",
                help=meaning,
            )  # fmt: skip

    def add_changes(self) -> None:
        """Add what is to be different from what the files say."""
        group = self.add_argument_group("changes to the cluster, before anything else")
        group.add_argument(
            "--add-nodes", metavar="N|NAMES|FILE",
            help="more nodes, empty and up: a number of nodes, or names such as b7,b8, like those "
            "there are, where domains have fewest; or those of a table, as nodes.csv of the format "
            "tables; nodes without capacities there have those of all others, if these are alike",
        )  # fmt: skip
        group.add_argument(
            "--soft", action="append", metavar="TIER",
            help="let the rules that keep replicas apart by a tier, such as rack, yield where they "
            "must, as little as they must; may be given several times",
        )  # fmt: skip
        for name, meaning in (
            ("drain", f"nodes that have to give all their replicas away, {NODES}"),
            (
                "exclude",
                "nodes that take no more replicas, and give theirs only for rules and goals, "
                f"{NODES}",
            ),
        ):
            group.add_argument(f"--{name}", action="append", metavar="NODE", help=meaning)
        group.add_argument(
            "--empty-disk", action="append", metavar="DISK",
            help="disks that all replicas have to leave, such as 1:/data/d2, or *:/data/d2 of all "
            "nodes; may be given several times",
        )  # fmt: skip
        group.add_argument(
            "--no-lead", "--demote", action="append", metavar="NODE",
            help=f"nodes that lead nothing where another replica can lead; replicas stay, {NODES}",
        )  # fmt: skip
        group.add_argument(
            "--pin", action="append", metavar="PARTITION",
            help="partitions whose replicas stay, though leaders may change, by name, or "
            "group=NAME; may be given several times",
        )  # fmt: skip
        group.add_argument(
            "--spread", action="append", metavar="TIER=N",
            help="at most N replicas of a partition in one domain of a tier, such as rack=1; may "
            "be given several times",
        )  # fmt: skip
        group.add_argument(
            "--require", action="append", metavar="[GROUP:]EXPRESSION",
            help="nodes that replicas have to be on, such as +ssd or zone!=a, of all partitions or "
            "of some, audit:+ssd, by group, partition or pattern; may be given several times",
        )  # fmt: skip
        group.add_argument(
            "--replicas", action="append", metavar="GROUP=N",
            help="how many replicas each partition of a group, such as a topic, is to have; may be "
            "given several times",
        )  # fmt: skip


def add_command(
    commands: Commands, name: str, summary: str, run: Callable[[argparse.Namespace], int]
) -> Parser:
    """Add a command with its help and what it runs."""
    parser: Parser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.set_defaults(run=run, command=name)
    return parser


# options with other names than the arguments that they stand for
CALLED = {
    "scenarios": "lose", "node_types": "type", "prices": "price", "forecast.load": "grow",
    "forecast.groups": "grow_group", "partition": "explain",
}  # fmt: skip

_PART = re.compile(r"(?:goals|limits|(throttle))\.(?=\w)")
_WORD = re.compile(r"[a-z_]+(?:\.load|\.groups)?")


def in_options(fault: Fault, arguments: argparse.Namespace) -> Fault:
    """Return a validation error with options in place of the arguments of Python.

    >>> given = argparse.Namespace(moves=-1, throttle=[])
    >>> in_options(Fault("limits.moves", -1, "must be 0 or more"), given).path
    '--moves'
    >>> in_options(Fault("throttle.node_in", -1, "must be 0 or more"), given).path
    '--throttle node-in'
    """
    part = _PART.match(fault.path)
    path = fault.path[part.end() :] if part else fault.path
    found = _WORD.match(path)
    if found is None:
        return fault
    name, rest = found[0], path[found.end() :]
    if part and part[1]:
        path = f"--throttle {written(name)}{rest}"
    elif (option := CALLED.get(name, name)) in arguments and (not rest or rest[0] == "["):
        path = f"--{written(option)}{re.sub(r'^.[0-9]+.$', '', rest)}"
    else:
        return fault
    return replace(fault, path=path)


def written(name: str) -> str:
    """Return a name as options write it."""
    return name.replace("_", "-")


def moment(text: str) -> float:
    """Read a time as seconds since 1970, which it may be in itself."""
    try:
        seconds = float(text) if text.isdecimal() else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        seconds = -1.0
    if seconds < 0.0:
        message = f"{text!r} is no time such as 2026-01-31T12:00:00Z, nor seconds since 1970"
        raise argparse.ArgumentTypeError(message)
    return seconds


def read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the files are read with, beside their format."""
    return {} if arguments.now is None else {"now": arguments.now}


def metrics_file(text: str) -> Path:
    """Read the name of a file for metrics, whose folder exists."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file in a folder that there is")
    return path


def list_formats() -> str:
    """Name the formats."""
    from evenkeel.systems.registry import known

    named = ", ".join(known())
    return f"formats:\n{fill(named, 76, initial_indent='  ', subsequent_indent='  ')}"


def list_methods() -> str:
    """List the methods, each with what it does and the options that it takes."""
    from evenkeel.methods.registry import METHODS

    lines = ["methods, each with its options for --option NAME=VALUE:"]
    for one in METHODS.values():
        kind = one.options_class()
        names = [] if kind is None else [each.name.replace("_", "-") for each in fields(kind)]
        lines.append(f"  {one.name}: {one.summary}")
        if names:
            lines += wrap(", ".join(names), 76, initial_indent=INDENT, subsequent_indent=INDENT)
    return "\n".join(lines)


INDENT = " " * 6


# goals beside the level that solve and check take
OTHER_GOALS = ("leaders", "groups", "group_leaders", "min_leaders", "floor", "disks")


def option_name(field: str) -> str:
    """Return how an argument for a field is written.

    >>> option_name("node_in")
    '--node-in'
    """
    return f"--{field.replace('_', '-')}"


def named(text: str, form: str, *, first: bool = False) -> tuple[str, str]:
    """Split a text of the form NAME=VALUE at its last sign, or at the first."""
    name, equals, value = text.partition("=") if first else text.rpartition("=")
    if not (equals and name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {form}")
    return name.strip(), value


def number_of(form: str, kind: type[float] = float) -> Callable[[str], tuple[str, float]]:
    """Return a reader of a name and its number, a whole one if it is of the kind ``int``.

    >>> number_of("NAME=X")("group=hot=5"), number_of("NAME=N", int)("orders*=1")
    (('group=hot', 5.0), ('orders*', 1))
    """

    def read(text: str) -> tuple[str, float]:
        name, value = named(text, form)
        number = number_or_text(value)
        if not isinstance(number, int | kind):
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form {form}")
        return name, kind(number)

    return read


def tier_count_of(text: str) -> tuple[str, int]:
    """Read a whole number for a tier.

    >>> tier_count_of("zone=20")
    ('zone', 20)
    """
    name, value = named(text, "TIER=N", first=True)
    if not value.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form TIER=N")
    return name, int(value)


def tolerance_of(text: str) -> float | None:
    """Read a tolerance; what would be more than a hundred per cent has lost its sign.

    >>> tolerance_of("0.04"), tolerance_of("4%"), tolerance_of("none")
    (0.04, 0.04, None)
    """
    value = share_of(text)
    if value is not None and value > 1.0 and "%" not in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} is {100.0 * value:,.10g}%: write {value:.10g}% or {value / 100.0:.10g}"
        )
    if value is None or value <= 1.0:
        return value
    from evenkeel.model.reading.quantities import Percent

    return Percent(value)


def share_of(text: str) -> float | None:
    """Read a number from 0 on, or per cent; None for ``"none"``."""
    if text.strip().lower() == "none":
        return None
    percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%")) / (100.0 if percent else 1.0)
    except ValueError:
        value = -1.0
    if not value >= 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 0 on nor 'none'")
    return value


def level_of(text: str) -> float | Mapping[str, float | None] | None:
    """Read a tolerance for all dimensions, or one for each that is named.

    >>> level_of("cpu=0.1,disk=none")
    {'cpu': 0.1, 'disk': None}
    """
    if "=" not in text:
        return tolerance_of(text)
    found: dict[str, float | None] = {}
    for part in text.split(","):
        name, value = named(part, "NAME=X")
        if name in found:
            raise argparse.ArgumentTypeError(f"{name!r} is named twice")
        found[name] = tolerance_of(value)
    return found


def option_of(text: str) -> tuple[str, Any]:
    """Read one option of a method.

    >>> option_of("scope=cluster"), option_of("most-copied=0.25"), option_of("repaired=true")
    (('scope', 'cluster'), ('most_copied', 0.25), ('repaired', True))
    """
    name, value = named(text, "NAME=VALUE", first=True)
    try:
        read = json.loads(value)
    except ValueError:
        read = value
    return name.replace("-", "_"), read


# options that mean the same wherever they are
USUAL: Mapping[str, Mapping[str, Any]] = {
    "--seed": {"type": int, "default": 0, "metavar": "N", "help": "%(default)s by default"},
    "--to": {
        "metavar": "FORMAT",
        "help": "format of OUT; by its suffix, or that of FILE, by default",
    },
    "--force": {
        "action": "store_true",
        "help": "write OUT even where it is one of the files read",
    },
    "--option": {
        "action": "append", "default": [], "type": option_of, "metavar": "NAME=VALUE",
        "help": "one of the method's own options; may be given several times",
    },
}  # fmt: skip


def options_of(arguments: argparse.Namespace) -> "Options | None":
    """Return the options of the method that the arguments name."""
    from evenkeel.methods.registry import find

    given: list[tuple[str, Any]] = arguments.option
    if not given:
        return None
    kind = find(arguments.method).options_class()
    known = [] if kind is None else [one.name for one in fields(kind)]
    faults = FaultList()
    for i, (name, value) in enumerate(given):
        if name not in known:
            hint = f"known: {', '.join(known)}" if known else "it takes none"
            hint += did_you_mean(name, known)
            faults.add(f"option {name}", value, f"unknown option of {arguments.method}; {hint}")
        elif name in [other for other, _ in given[:i]]:
            faults.add(f"option {name}", value, "is given twice")
    faults.raise_if_any()
    assert kind is not None
    return kind(**dict(given))


def goals_of(
    arguments: argparse.Namespace, besides: Mapping[str, Any] = MappingProxyType({})
) -> "Goals | None":
    """Return the goals that the arguments ask for, with others ``besides``; None for none."""
    from evenkeel.model.goals import Goals

    names = (*OTHER_GOALS, "act_above", "worth", "move_cost", "disk_move_cost")
    asked: dict[str, Any] = {name: getattr(arguments, name, None) for name in names}
    for name in ("move_cost", "min_leaders"):
        asked[name] = dict(asked[name] or ()) or None
    asked = {name: one for name, one in asked.items() if one is not None and one is not NOT_GIVEN}
    if arguments.level is not NOT_GIVEN:
        asked["level"] = arguments.level
    return Goals(**{**besides, **asked}) if asked or besides else None


def limits_of(arguments: argparse.Namespace) -> "Limits":
    """Return the limits that the arguments set."""
    from evenkeel.model.limits import Limits

    given: dict[str, Any] = {name: getattr(arguments, name) for name in LIMITS}
    if given["bytes"] is not None:
        given["bytes"] = number_or_text(given["bytes"])
    given |= {name: dict(getattr(arguments, name) or ()) for name in TIER_LIMITS}
    return Limits(**given)


def number_or_text(text: str) -> int | float | str:
    """Return a number where a text is one; what else it may be is for who takes it to say."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def factors_of(text: str) -> float | dict[str, float]:
    """Read a factor for all dimensions, or one for each that is named.

    >>> factors_of("1.4"), factors_of("cpu=+40%,disk=2")
    (1.4, {'cpu': 1.4, 'disk': 2.0})
    """
    if "=" not in text:
        return factor_of(text)
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not (equals and name.strip()) or name.strip() in found:
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form NAME=X, or given twice")
        found[name.strip()] = factor_of(value)
    return found


def factor_of(text: str) -> float:
    """Read a factor, or by how much more, such as ``+40%``."""
    more = text.strip().startswith("+")
    value = share_of(text.strip().removeprefix("+"))
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor such as 1.4 or +40%")
    if "%" in text and not more:
        number, factor = text.strip(), f"{1.0 + value:.10g}"
        raise argparse.ArgumentTypeError(
            f"{text!r} may be what is added or what is left: write +{number} or {factor} for more, "
            f"{value:.10g} for a part"
        )
    return round(1.0 + value, 12) if more else value


def throttle_of(text: str) -> tuple[str, Any]:
    """Read one limit of a throttle.

    >>> throttle_of("node-in=2"), throttle_of("domain-in=zone=4"), throttle_of("copies=few")
    (('node_in', 2), ('domain_in', ('zone', 4)), ('copies', 'few'))
    >>> throttle_of("window=30m-8h"), throttle_of("every=24h"), throttle_of("recovery-first=yes")
    (('window', (1800.0, 28800.0)), ('every', 86400.0), ('recovery_first', True))
    """
    name, value = named(text, "NAME=VALUE", first=True)
    name = name.replace("-", "_")
    if name in ("domain_in", "domain_out"):
        return name, tier_count_of(value)
    if name == "priority":
        of, equals, amount = value.partition("=")
        if not (equals and of.strip()):
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form {name}=NAME=VALUE")
        return name, (of.strip(), number_or_text(amount))
    if name == "window":
        begin, dash, end = value.partition("-")
        if not dash:
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form window=BEGIN-END")
        return name, (_seconds(text, begin), _seconds(text, end) if end.strip() else float("inf"))
    if name == "every":
        return name, _seconds(text, value)
    if name == "recovery_first":
        return name, {"yes": True, "no": False}.get(value.strip(), value)
    return name, number_or_text(value)


def _seconds(whole: str, text: str) -> float:
    """Read a length of time such as ``8h``, ``30m``, ``1d`` or ``90``, in seconds."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number, unit = text.strip(), 1.0
    if number[-1:] in units:
        number, unit = number[:-1], units[number[-1]]
    try:
        return float(number) * unit
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{whole!r}: {text!r} is not a time such as 8h, 30m or 90s"
        ) from None


def throttle_from(given: list[tuple[str, Any]]) -> "Throttle":
    """Return the throttle that the arguments name, or raise all that is wrong with them."""
    from evenkeel.planning.throttle import BY_TIER, COUNTS, RATES, Throttle, Windows

    by_name = [*BY_TIER, "priority"]
    known = [*COUNTS, *RATES, *by_name, "window", "every", "recovery_first"]
    faults = FaultList()
    limits: dict[str, Any] = {}
    spans: list[tuple[float, float]] = []
    for name, value in given:
        if name not in known:
            written = [one.replace("_", "-") for one in known]
            names = ", ".join(written) + did_you_mean(name.replace("_", "-"), written)
            faults.add(f"throttle {name}", value, f"is unknown; known: {names}")
        elif name == "window":
            spans.append(value)
        elif name in by_name:
            limits.setdefault(name, {}).update([value])
        elif name in limits:
            faults.add(f"throttle {name}", value, "is given twice")
        else:
            limits[name] = value
    every = limits.pop("every", None)
    last = max((end for begin, end in spans if begin < end), default=float("inf"))
    if every is not None and not spans:
        faults.add("throttle every", every, "needs windows: give window=BEGIN-END")
    elif every is not None and every < last < float("inf"):
        faults.add("throttle every", every, f"must be at least {last:g} s, where windows end")
    elif every is None and last < float("inf"):
        wanted = "must not end, or come again: give every, such as every=24h, or no end: window=8h-"
        faults.add("throttle window", last, wanted)
    faults.raise_if_any()
    windows = Windows(spans, every) if spans else None
    return Throttle(**limits, windows=windows)


def protocol_of(cluster: "Cluster", arguments: argparse.Namespace) -> str:
    """Return the name of the protocol: as asked for, or that of the system the files are of."""
    from evenkeel.planning.throttle import Protocol

    return arguments.protocol or Protocol.of(cluster).name
