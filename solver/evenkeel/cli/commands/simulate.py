"""``evenkeel simulate``: simulate a cluster whose nodes fail and return."""

import argparse
from typing import TYPE_CHECKING, Any

from evenkeel.cli.arguments import (
    NOT_GIVEN,
    Commands,
    add_command,
    level_of,
    options_of,
    protocol_of,
    throttle_from,
)
from evenkeel.cli.output import DONE, check_outputs, check_report, emit, list_files, page
from evenkeel.cli.reading import read_cluster
from evenkeel.cli.waiting import Waiting
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Goals

if TYPE_CHECKING:
    from evenkeel.simulate.engine.history import History
    from evenkeel.simulate.events import At

# the change of each option
EVENTS = {
    "down": ("down", "nodes that fall silent, and count as dead after five minutes"),
    "back": ("up", "nodes that are back"),
    "drained": ("drain", "nodes that are drained: all replicas have to leave"),
    "gone": ("gone", "nodes that are gone for good"),
}


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "play what becomes of a cluster over time, as nodes die and come back"
    parser = add_command(commands, "simulate", summary, run)
    parser.add_files()
    for name, (_, meaning) in EVENTS.items():
        parser.add_argument(
            f"--{name}", action="append", default=[], type=event_of, metavar="NODE@S",
            help=f"{meaning}, S seconds after the beginning; by name, or an expression",
        )  # fmt: skip
    parser.add_argument(
        "--until", type=float, metavar="S", help="seconds to play; an hour beyond the last event"
    )
    parser.add_argument("--every", type=float, default=60.0, metavar="S", help="(%(default)g)")
    parser.add_argument(
        "--method", default="balance", metavar="NAME", help="who decides; %(default)s by default"
    )
    parser.add_usual("--option")
    parser.add_argument(
        "--level",
        type=level_of,
        default=NOT_GIVEN,
        metavar="X|NAME=X,...",
        help="as solve takes it",
    )
    parser.add_throttle(
        "carry out plans, each made under it, as plan takes it; may be given several times; "
        "without it every change is asked for at once"
    )
    parser.add_argument(
        "--protocol", metavar="NAME",
        help="what the system can do, for those plans; that of the files' system by default",
    )  # fmt: skip
    parser.add_usual("--seed")
    parser.add_report("run")
    parser.add_changes()
    parser.add_output()
    parser.examples = (
        "evenkeel simulate cluster.npz --down n7@60 --back n7@7200 --until 14400",
        "evenkeel simulate cluster.npz --down n7@60 --throttle node-in=2",
    )


def event_of(text: str) -> tuple[str, float]:
    """Read nodes and a time.

    >>> event_of("n7@60"), event_of("zone=a@1.5")
    (('n7', 60.0), ('zone=a', 1.5))
    """
    nodes, at, seconds = text.rpartition("@")
    try:
        found = float(seconds)
    except ValueError:
        found = -1.0
    if not (at and nodes and 0.0 <= found < float("inf")):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NODE@SECONDS")
    return nodes, found


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.simulate.controllers.plan import planned
    from evenkeel.simulate.play import play
    from evenkeel.view.histories import history_parts
    from evenkeel.view.terminal import rendered

    throttle = throttle_from(arguments.throttle) if arguments.throttle else None
    protocol_asked = arguments.protocol is not None and "protocol" not in arguments.assumed
    if throttle is None and protocol_asked:
        message = "goes with --throttle, without which nothing is planned"
        raise InvalidInput([Fault("--protocol", arguments.protocol, message)])
    check_report(arguments.report)
    check_outputs(arguments.files, [arguments.report], force=False)
    with Waiting(arguments.quiet) as waiting:
        cluster = read_cluster(arguments, waiting)
        waiting.doing("playing")
        decides, options = arguments.method, options_of(arguments)
        if throttle is not None:
            protocol = protocol_of(cluster, arguments)
            decides, options = (
                planned(
                    decides,
                    throttle=throttle,
                    protocol=protocol,
                    options=options,
                    seed=arguments.seed,
                ),
                None,
            )
        history = play(
            cluster, _events(arguments), decides, until=arguments.until,
            every=arguments.every, options=options, seed=arguments.seed,
            goals=None if arguments.level is NOT_GIVEN else Goals(level=arguments.level),
        )  # fmt: skip
        written = [] if arguments.report is None else [history.report(arguments.report)]
    return emit(
        arguments, DONE,
        figures=lambda: {**_figures(history), "written": [*map(str, written)]},
        text=lambda: rendered(history_parts(history), **page()) + list_files(written),
    )  # fmt: skip


def _events(arguments: argparse.Namespace) -> "list[At]":
    """Return what happens, in the order of time."""
    from evenkeel.model.changes import Changes
    from evenkeel.simulate.events import At

    found = [
        (at, Changes(**{change: nodes}))
        for name, (change, _) in EVENTS.items()
        for nodes, at in getattr(arguments, name)
    ]
    return [At(at, changes) for at, changes in sorted(found, key=lambda one: one[0])]


def _figures(history: "History") -> dict[str, Any]:
    """Return totals, events, and every figure over time."""
    totals = ("moves", "leader_changes", "failovers", "below_min_active")
    return {
        **{name: history.total(name) for name in totals},
        "events": [{"seconds": at, "what": what} for at, what in history.events],
        "warnings": list(history.warnings),
        "seconds": history.seconds.tolist(),
        "over_time": {name: column.tolist() for name, column in history.table().items()},
    }
