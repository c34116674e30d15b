"""``evenkeel size``: find the nodes that a forecast needs, or the headroom for growth."""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import (
    Commands,
    add_command,
    factor_of,
    factors_of,
    level_of,
    named,
    number_of,
    number_or_text,
)
from evenkeel.cli.output import BROKEN, DONE, check_outputs, code_of, emit, list_files, page
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Waiting
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.printable import counted

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.result import Result
    from evenkeel.studies.growth.forecast import Forecast
    from evenkeel.studies.growth.headroom import Headroom, Reach
    from evenkeel.studies.growth.node_types import NodeType
    from evenkeel.studies.growth.packing import Units
    from evenkeel.studies.growth.sizing import Sizing

# keys that a type of nodes may have beside its capacities
WORDS = ("price", "most", "at", "tags", "max-replicas")


def add(commands: Commands) -> None:
    """Add the command."""
    summary = (
        "tell which nodes a forecast takes at least, and at what price; which nodes may go; or how "
        "far loads may grow until the cluster is full"
    )
    parser = add_command(commands, "size", summary, run)
    parser.add_files()
    parser.add_argument(
        "--grow", type=factors_of, metavar="X|NAME=X,...",
        help="what loads are multiplied by, all or by dimension: 1.4 or +40%%; 1 for as they are",
    )  # fmt: skip
    parser.add_argument(
        "--grow-group", action="append", default=[], type=group_factor_of, metavar="GROUP=X",
        help="the same for one group, in place of --grow; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--forecast", metavar="FILE",
        help="the cluster as it is expected to be, in any format that is read, in place of --grow",
    )  # fmt: skip
    parser.add_argument(
        "--type", action="append", default=[], type=type_of, metavar="NAME,NAME=X,...",
        help="a type of nodes that one can get: what it is called, its capacity in every "
        "dimension, and any of price=X, most=N in each place, at=DOMAIN+DOMAIN, tags=TAG+TAG, "
        "max-replicas=N; may be given several times; like most nodes, by default",
    )  # fmt: skip
    parser.add_argument(
        "--shrink", action="store_true",
        help="tell which nodes may go, in the order in which to drain them, so that what stays is "
        "cheapest; a node with a pinned replica stays",
    )  # fmt: skip
    parser.add_argument(
        "--price", action="append", default=[], type=number_of("NODE=X"), metavar="NODE=X",
        help="with --shrink: price of nodes, by name, pattern or expression such as rack=r7; 1 "
        "for all others; may be given several times, the last that matches counts",
    )  # fmt: skip
    parser.add_argument(
        "--unit", type=lambda text: type_of(f"unit,{text}"), metavar="NAME=X,...",
        help="tell how many free units of this size there are, and can be made by moves: "
        "cpu=2,memory=8GiB",
    )  # fmt: skip
    for name, kind, what in (("--moves", int, "moves"), ("--bytes", str, "data moved, as 2TiB")):
        parser.add_argument(
            name, type=kind, metavar="N", help=f"with --shrink or --unit: most {what}",
        )  # fmt: skip
    parser.add_argument(
        "--survive", action="append", default=[], metavar="WHAT",
        help="node, the name of a tier, or two at once as in 'node pairs': what may be lost; may "
        "be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--without-recovery", action="store_true",
        help="what is lost need not find another place; no partition may be without a quorum",
    )  # fmt: skip
    for name, when in (("--at-most", "always"), ("--after-loss", "after a loss")):
        parser.add_argument(
            name, type=level_of, default=1.0, metavar="X|NAME=X,...",
            help=f"how full a node may be {when}: 0.8 or 80%%, or cpu=0.7,disk=0.9 (1)",
        )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="OUT",
        help="file for the cluster with its new nodes, everything placed, or what brings replicas "
        "there, as solve writes it; its format is found from the suffix",
    )  # fmt: skip
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds for each solve")
    parser.add_usual("--seed")
    parser.add_changes()
    parser.add_output()
    parser.examples = (
        "evenkeel size cluster.npz --survive zone --at-most 80%",
        "evenkeel size cluster.npz --grow +40% --type big,cpu=64,disk=4000,price=3 --survive zone",
        "evenkeel size cluster.npz --forecast next-year.npz --survive zone -o sized.npz",
        "evenkeel size cluster.npz --shrink --survive node --at-most 80%",
    )


def group_factor_of(text: str) -> tuple[str, float]:
    """Read the factor of a group.

    >>> group_factor_of("orders=+100%")
    ('orders', 2.0)
    """
    name, value = named(text, "GROUP=X")
    return name, factor_of(value)


def type_of(text: str) -> tuple[str, dict[str, str]]:
    """Read a type of nodes: its name and its keys."""
    name, *settings = text.split(",")
    found: dict[str, str] = {}
    for part in settings:
        key, equals, value = part.partition("=")
        if not (equals and key.strip() and value.strip()) or key.strip() in found:
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form NAME=X, or given twice")
        found[key.strip()] = value.strip()
    if not name.strip() or "=" in name:
        raise argparse.ArgumentTypeError(f"{text!r} does not begin with the name of the type")
    return name.strip(), found


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.model.limits import Limits
    from evenkeel.studies.growth.headroom import headroom
    from evenkeel.studies.growth.packing import free_units
    from evenkeel.studies.growth.sizing import size
    from evenkeel.systems.registry import system_of

    forecast = [] if arguments.forecast is None else [arguments.forecast]
    grows = arguments.grow is not None or bool(arguments.grow_group)
    limits = None
    if arguments.moves is not None or arguments.bytes is not None:
        limits = Limits(moves=arguments.moves, bytes=arguments.bytes)
    _check(
        arguments, forecast,
        sized=grows or bool(forecast) or bool(arguments.type) or arguments.shrink
        or arguments.unit is not None,
    )  # fmt: skip
    with Waiting(arguments.quiet) as waiting:
        cluster = read_cluster(arguments, waiting)
        asked: dict[str, Any] = {
            "survive": arguments.survive, "recover": not arguments.without_recovery,
            "at_most": arguments.at_most, "after_loss": arguments.after_loss,
            "time_limit": arguments.time_limit, "seed": arguments.seed,
        }  # fmt: skip
        types = _types(cluster, arguments.type)
        waiting.doing("solving")
        unknown = system_of(cluster).uncapped(cluster)
        if arguments.unit is not None:
            faults = FaultList()
            unit = _amounts(faults, cluster, "--unit", arguments.unit[1])
            faults.raise_if_any()
            _check_capped(arguments, cluster, unknown)
            units = free_units(
                _without_made_up(cluster, unknown), unit, limits=limits, at_most=arguments.at_most,
                time_limit=arguments.time_limit, seed=arguments.seed,
            )  # fmt: skip
            return _write_and_tell(
                arguments,
                partial(_tell_units, arguments, units),
                units.cluster,
                units.result,
                waiting,
            )
        if not (grows or forecast or arguments.shrink) and types is None:
            found = headroom(_without_made_up(cluster, unknown), **asked)
            return _tell_headroom(arguments, found, unknown)
        _check_capped(arguments, cluster, unknown)
        sized = size(
            cluster, _forecast(arguments), types, shrink=arguments.shrink, limits=limits,
            prices=dict(arguments.price) or None, **asked,
        )  # fmt: skip
        return _write_and_tell(
            arguments, partial(_tell_sizing, arguments, sized), sized.cluster, sized.result, waiting
        )


def _write_and_tell(
    arguments: argparse.Namespace,
    tell: Callable[[Sequence[Path]], int],
    cluster: "Cluster | None",
    result: "Result | None",
    waiting: Waiting,
) -> int:
    """Write the cluster as it becomes, or the way there, if asked, and tell the answer."""
    from evenkeel.systems.registry import write

    if arguments.output is None or cluster is None:
        return tell([])
    waiting.doing("writing")
    before = cluster if result is None else cluster.with_placement(result.cluster.placement)
    after = None if result is None else cluster.placement
    try:
        written = write(before, arguments.output, placement=after)
    except InvalidInput:
        tell([])  # the answer holds, though the format cannot express it
        raise
    return tell(written)


def _check(arguments: argparse.Namespace, forecast: list[str], *, sized: bool) -> None:
    """Raise where arguments contradict each other, or the file cannot be written."""
    faults = FaultList()
    if forecast and (arguments.grow is not None or arguments.grow_group):
        faults.add("--forecast", forecast[0], "says how loads grow; so does --grow")
    if arguments.output is not None and "output" not in arguments.assumed and not sized:
        faults.add(
            "--output", arguments.output, "needs --grow, --forecast, --type, --shrink or --unit"
        )
    for name in ("price", "moves", "bytes"):
        given = getattr(arguments, name)
        packs = arguments.shrink or (arguments.unit is not None and name != "price")
        if given not in (None, []) and not packs and name not in arguments.assumed:
            faults.add(f"--{name}", given, "needs --shrink" + " or --unit" * (name != "price"))
    if arguments.unit is not None:
        for name, given in (("shrink", arguments.shrink), ("survive", arguments.survive)):
            if given and name not in arguments.assumed:
                faults.add(f"--{name}", given, "is not for --unit, which counts what fits today")
    if (
        arguments.without_recovery
        and not arguments.survive
        and "without_recovery" not in arguments.assumed
    ):
        faults.add("--without-recovery", True, "needs --survive")
    faults.raise_if_any()
    check_outputs([*arguments.files, *forecast], [arguments.output], force=False)


def _without_made_up(cluster: "Cluster", unknown: Sequence[str]) -> "Cluster":
    """Return a cluster in which nothing is full that only a made-up capacity limits."""
    import numpy as np

    made_up = [name in unknown for name in cluster.dimensions]
    if not any(made_up):
        return cluster
    return cluster.replace(capacity=np.where(made_up, np.inf, cluster.nodes.capacity))


def _check_capped(
    arguments: argparse.Namespace, cluster: "Cluster", unknown: Sequence[str]
) -> None:
    """Raise where no capacity is known, so that any number of nodes would be made up, too."""
    if cluster.dimensions and len(unknown) == len(cluster.dimensions):
        message = "no capacity is known, so nothing tells how many nodes are needed; add capacities"
        raise InvalidInput([Fault(", ".join(arguments.files), [*unknown], message)])


def _grown(arguments: argparse.Namespace) -> dict[str, float | dict[str, float]]:
    """Return the factors that were asked for, by what they are for."""
    load = {} if arguments.grow is None else {"load": arguments.grow}
    return load | {f"group {name}": factor for name, factor in arguments.grow_group}


def _factor_lines(arguments: argparse.Namespace) -> list[str]:
    """Say by which factors loads grow."""
    lines = []
    for what, factor in _grown(arguments).items():
        by_name = factor if isinstance(factor, dict) else {"": factor}
        each = ", ".join(f"{name} x {one:.10g}".strip() for name, one in by_name.items())
        lines.append(f"{what} grows: {each}")
    return lines


def _forecast(arguments: argparse.Namespace) -> "Forecast | Cluster":
    """Return what the arguments expect: a cluster from a file, or how loads grow."""
    from evenkeel.studies.growth.forecast import Forecast
    from evenkeel.systems.registry import read

    if arguments.forecast is not None:
        return read(arguments.forecast)
    load = 1.0 if arguments.grow is None else arguments.grow
    return Forecast(load=load, groups=dict(arguments.grow_group))


def _types(
    cluster: "Cluster", given: Sequence[tuple[str, dict[str, str]]]
) -> "list[NodeType] | None":
    """Return the types that the arguments name; None if they name none."""
    from evenkeel.studies.growth.node_types import NodeType

    faults, types = FaultList(), []
    for name, values in given:
        capacity = _amounts(faults, cluster, f"--type {name}", values, WORDS)
        words: dict[str, Any] = {}
        for key, value in values.items():
            number = number_or_text(value)
            if key in ("at", "tags"):
                words[key] = value.split("+")
            elif key in WORDS and isinstance(number, str):
                faults.add(f"--type {name}: {key}", value, "must be a number")
            elif key in WORDS:
                words[key.replace("-", "_")] = number
        places = words.pop("at", None)
        types.append(NodeType(name, capacity, places=places, **words))
    faults.raise_if_any()
    return types or None


def _amounts(
    faults: FaultList, cluster: "Cluster", path: str, given: dict[str, str],
    words: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return amounts by dimension; note keys that are neither dimensions nor ``words``."""
    from evenkeel.model.reading.quantities import milli_or_mega, read_bytes

    moved, found = cluster.bytes_dimension, dict[str, Any]()
    of_bytes = cluster.dimensions[moved] if moved >= 0 else None
    for key, value in given.items():
        number = number_or_text(value)
        if key not in cluster.dimensions:
            if key not in words:
                known = [*cluster.dimensions, *words]
                message = f"is neither a dimension nor one of those known: {known}"
                faults.add(f"{path}: {key}", value, message)
        elif either := milli_or_mega(value) if key != of_bytes else "":
            faults.add(f"{path}: {key}", value, either)
        elif isinstance(number, str):
            found[key] = read_bytes(faults, f"{path}: {key}", number)
        else:
            found[key] = number
    return found


def _tell_sizing(arguments: argparse.Namespace, found: "Sizing", written: Sequence[Path]) -> int:
    """Tell which nodes a forecast takes, and which files were written."""
    code = code_of(found.status)
    rows = [(one.type, one.place, f"{one.nodes:,}", quantity(one.price)) for one in found.nodes]
    heads: tuple[str, ...] = ("type", "place", "nodes", "price of each")
    if arguments.shrink:
        rows = [
            (one.node, one.place, f"{one.replicas:,}", quantity(one.price))
            for one in found.leaving
        ]  # fmt: skip
        heads = ("drain", "place", "replicas", "price")
    fullest = found.fullest
    notes = [
        f"then {name} of the fullest node, {most.node}, is at {most.share:.1%}, "
        f"and at {most.mean:.1%} on average"
        for name, most in fullest.items()
    ]
    if crowded := [name for name, most in fullest.items() if most.crowded]:
        notes.append(
            f"nothing is to stay free of {' or '.join(crowded)}: --at-most 80% keeps a fifth of "
            "each node for bursts and repairs"
        )
    notes += [f"{name} stays: {why}" for name, why in found.must_stay]
    if found.leaving:
        notes.insert(0, f"{counted(found.moves, 'move')}, at least {found.moves_at_least:,}")
    lacking = [one.reason for one in found.shortages]
    return emit(
        arguments, code,
        figures=lambda: {
            "status": found.status, "message": found.message, "price": found.price,
            "price_at_least": found.price_at_least, "gap": found.gap, "grow": _grown(arguments),
            "nodes": [one._asdict() for one in found.nodes],
            "fullest": {name: most._asdict() for name, most in fullest.items()},
            **({
                "leaving": [one._asdict() for one in found.leaving],
                "must_stay": dict(found.must_stay), "moves": found.moves,
                "moves_at_least": found.moves_at_least,
            } if arguments.shrink else {}),
            "shortages": [one._asdict() | {"reason": one.reason} for one in found.shortages],
            "losses": [] if found.losses is None else [
                row._asdict() for row in found.losses.rows()
            ],
            "written": [*map(str, written)],
        },
        text=lambda: _laid_out(
            found.status, f"{found.status}: {found.message}",
            [heads, *rows] if rows else [],
            notes + _factor_lines(arguments) + (
                ["lacking without new nodes:" if code == DONE else "lacking:", *lacking]
                if lacking and not (arguments.shrink and code == DONE) else []
            ),
        ) + list_files(written),
        verdict=f"{found.status}: {found.message}",
    )  # fmt: skip


def _tell_units(arguments: argparse.Namespace, found: "Units", written: Sequence[Path]) -> int:
    """Tell how many free units there are, and can be made."""
    verdict = f"{found.now:,} free units now"
    if found.count > found.now:
        verdict += f", {found.count:,} after {counted(found.moves, 'move')}"
    bound = f"no more than {found.at_most:,}" + " within the budget" * (arguments.moves is not None)
    optimal = found.count == found.at_most
    figures = ("now", "count", "at_most", "moves")
    return emit(
        arguments, DONE,
        figures=lambda: {
            **{name: getattr(found, name) for name in figures}, "unit": arguments.unit[1],
            "written": [*map(str, written)],
        },
        text=lambda: _laid_out(
            "optimal" if optimal else "feasible", f"{verdict}; proven: {bound}", [], []
        ) + list_files(written),
        verdict=verdict,
    )  # fmt: skip


def _tell_headroom(arguments: argparse.Namespace, found: "Headroom", unknown: Sequence[str]) -> int:
    """Tell how far loads may grow; nothing of what has no capacity that is known."""
    short = [one for one in found.reaches if not one.fits]
    rows = [
        (one.grows, one.loss or "nothing", _limit(one.at_least, unknown),
         _limit(one.at_most, unknown), ", ".join(filter(None, (one.full, one.where))))
        for one in found.reaches
    ]  # fmt: skip
    verdict = ""
    if any(not one.loss for one in short):
        verdict = "loads do not fit as they are"
    elif short:
        lost = ", ".join(dict.fromkeys(one.loss for one in short))
        verdict = f"loads fit as they are, but not after a loss ({lost})"
    worst = dict.fromkeys(_proof(one) for one in short if one.at_most < 1.0)
    if unknown:
        named = ", ".join(unknown)
        worst[f"no capacity of {named} is known: how far that may grow cannot be computed"] = None
    return emit(
        arguments, BROKEN if short else DONE,
        figures=lambda: {
            name: [one._asdict() for one in getattr(found, name)]
            for name in ("reaches", "losses", "domains")
        } | {"capacity_unknown": [*unknown]},
        text=lambda: _laid_out(
            "partial" if short else "optimal", verdict,
            [("grows", "loses", "fits up to", "never above", "then full"), *rows], [*worst],
        ),
        verdict=verdict,
    )  # fmt: skip


def _proof(reach: "Reach") -> str:
    """Say what is full, and at which loads."""
    grown = "loads" if reach.grows == "all" else f"loads of {reach.grows}"
    if reach.at_most > 0.0:
        return f"proven: at {reach.at_most:.4f} times the {grown}, {reach.reason}"
    return f"proven: at any {grown}, {reach.reason}"


def _limit(factor: float, unknown: Sequence[str]) -> str:
    """Write how far loads may grow: without an end there is either no limit, or none is known."""
    if math.isfinite(factor):
        return f"{factor:.4f}" if factor > 0.0 else "none"
    return "unknown" if unknown else "no limit"


def _laid_out(
    status: str, verdict: str, table: Sequence[tuple[str, ...]], notes: Sequence[str]
) -> str:
    """Lay out a verdict, a table of which the first row is the heading, and notes."""
    from evenkeel.model.runtime.table import Column, Table
    from evenkeel.view.terminal import Line, rendered

    style = {"optimal": "green", "feasible": "yellow"}.get(status, "red")
    parts: list[Line | Table] = [Line(verdict, style)] if verdict else []
    if table:
        heads, *rows = table
        figures = ("nodes", "replicas", "price", "price of each", "fits up to", "never above")
        columns = zip(*rows, strict=True) if rows else ((),) * len(heads)
        parts.append(
            Table(
                [
                    Column(name, values, str if name in figures else None)
                    for name, values in zip(heads, columns, strict=True)
                ]
            )
        )
    parts += [Line(note, "dim") for note in notes]
    return rendered(parts, **page()).lstrip("\n")
