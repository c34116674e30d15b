"""Arguments that several commands take, and how their texts are read."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.model.goals import Goals
    from evenkeel.model.limits import Limits

Commands = Any
"""What ``add_subparsers`` returns; argparse keeps its type to itself."""

LIMITS = {
    "moves": (int, "most moves in all"),
    "bytes": (float, "most data moved, in the unit of the bytes dimension"),
    "node_in": (int, "most replicas that may enter one node"),
    "node_out": (int, "most replicas that may leave one node"),
}


def add_command(
    commands: Commands, name: str, summary: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command with its help and what it runs."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.set_defaults(run=run)
    return parser


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the files to read, and their format."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a cluster, in one file or several"
    )
    parser.add_argument("--format", help="format of the files; found from their content by default")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add how much is told, and in what form."""
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="print nothing but what is wrong"
    )
    parser.add_argument("--json", action="store_true", help="print figures for machines, as JSON")


def add_solving(parser: argparse.ArgumentParser) -> None:
    """Add what a solve takes."""
    solving = parser.add_argument_group("solving")
    solving.add_argument("--method", default="balance", help="%(default)s by default")
    solving.add_argument(
        "--option", action="append", default=[], type=option_of, metavar="NAME=VALUE",
        help="one of the method's own options; may be given several times",
    )  # fmt: skip
    solving.add_argument(
        "--level", type=level_of, default=0.05, metavar="X|NAME=X,...",
        help="how far above level a node may be: 0.04, or cpu=0.1,disk=none (%(default)s)",
    )  # fmt: skip
    solving.add_argument(
        "--leaders", type=tolerance_of, metavar="X", help="the same for the number of leaders"
    )
    solving.add_argument("--time-limit", type=float, metavar="S", help="seconds")
    solving.add_argument(
        "--work-limit", type=int, metavar="N", help="candidates to look at; repeats bit for bit"
    )
    solving.add_argument("--seed", type=int, default=0, metavar="N", help="%(default)s by default")
    limits = parser.add_argument_group("limits, never exceeded")
    for name, (kind, meaning) in LIMITS.items():
        option = f"--{name.replace('_', '-')}"
        limits.add_argument(option, dest=name, type=kind, metavar="N", help=meaning)


def tolerance_of(text: str) -> float | None:
    """Read a tolerance.

    Examples
    --------
    >>> tolerance_of("0.04"), tolerance_of("none")
    (0.04, None)
    """
    if text.strip().lower() == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 0 on nor 'none'")
    return value


def level_of(text: str) -> float | Mapping[str, float | None] | None:
    """Read a tolerance for all dimensions, or one for each that is named.

    Examples
    --------
    >>> level_of("cpu=0.1,disk=none")
    {'cpu': 0.1, 'disk': None}
    """
    if "=" not in text:
        return tolerance_of(text)
    found: dict[str, float | None] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not (equals and name.strip()):
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form NAME=X")
        if name.strip() in found:
            raise argparse.ArgumentTypeError(f"{name.strip()!r} is named twice")
        found[name.strip()] = tolerance_of(value)
    return found


def option_of(text: str) -> tuple[str, Any]:
    """Read one option of a method.

    Examples
    --------
    >>> option_of("scope=cluster"), option_of("most-copied=0.25"), option_of("mended=true")
    (('scope', 'cluster'), ('most_copied', 0.25), ('mended', True))
    """
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        read = json.loads(value)
    except ValueError:
        read = value
    return name.strip().replace("-", "_"), read


def options_of(arguments: argparse.Namespace) -> Any:
    """Return the options of the method that the arguments name."""
    from evenkeel.model.errors import FaultList
    from evenkeel.strategies import options
    from evenkeel.strategies.registry import find

    given: list[tuple[str, Any]] = arguments.option
    if not given:
        return None
    kind = getattr(options, find(arguments.method).options, None)
    known = [one.name for one in fields(kind)] if kind is not None else []
    faults = FaultList()
    for i, (name, value) in enumerate(given):
        if name not in known:
            told = f"known: {', '.join(known)}" if known else "it takes none"
            faults.add(f"option {name}", value, f"is no option of {arguments.method}; {told}")
        elif name in [other for other, _ in given[:i]]:
            faults.add(f"option {name}", value, "is given twice")
    faults.raise_if_any()
    assert kind is not None
    return kind(**dict(given))


def goals_of(arguments: argparse.Namespace) -> "Goals":
    """Return the goals that the arguments ask for."""
    from evenkeel.model.goals import Goals

    return Goals(level=arguments.level, leaders=arguments.leaders)


def limits_of(arguments: argparse.Namespace) -> "Limits":
    """Return the limits that the arguments set."""
    from evenkeel.model.limits import Limits

    return Limits(**{name: getattr(arguments, name) for name in LIMITS})
