"""``evenkeel reassignment``: write a machine-reassignment instance, made from a seed."""

import argparse
from pathlib import Path

from evenkeel.cli.arguments import Commands, add_command, add_output
from evenkeel.cli.exits import DONE
from evenkeel.cli.output import print_json
from evenkeel.cli.waiting import Waiting

COUNTS = (
    "processes", "machines", "resources", "transient", "services", "shared", "spread",
    "neighbourhoods", "locations", "dependencies", "balances",
)  # fmt: skip


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "write a machine-reassignment instance in a shape of the ROADEF challenge"
    parser = add_command(commands, "reassignment", summary, run)
    parser.add_argument(
        "folder", metavar="FOLDER", help="for model_NAME.txt and assignment_NAME.txt"
    )
    parser.add_argument("--shape", default="b_1", metavar="NAME", help="%(default)s; b_1 to b_9")
    for name in COUNTS:
        parser.add_argument(f"--{name}", type=int, metavar="N", help="the shape's own")
    parser.add_argument("--utilisation", type=float, metavar="X", help="the shape's own")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="%(default)s")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from dataclasses import replace

    from evenkeel.formats import roadef
    from evenkeel.formats.registry import write
    from evenkeel.measure.reassignment import check
    from evenkeel.model.errors import FaultList
    from evenkeel.simulate.reassignment_instances import SHAPES, reassignment

    faults = FaultList()
    if arguments.shape not in SHAPES:
        faults.add("shape", arguments.shape, f"is none; there are: {', '.join(SHAPES)}")
    faults.raise_if_any()
    asked = {name: getattr(arguments, name) for name in (*COUNTS, "utilisation")}
    given = {name: value for name, value in asked.items() if value is not None}
    with Waiting(arguments.quiet) as waiting:
        waiting.doing("generating")
        model = reassignment(replace(SHAPES[arguments.shape], **given), arguments.seed)
        cluster = roadef.cluster_of(model)
        waiting.doing("writing")
        folder = Path(arguments.folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"model_{arguments.shape}_{arguments.seed}.txt"
        written = [str(path) for path in write(cluster, file, roadef.NAME)]
    verdict = check(model, model.initial)
    if arguments.json:
        print_json({"cluster": str(cluster), "cost": verdict.cost, "written": written})
    elif not arguments.quiet:
        print(f"{cluster}\nto begin with: {verdict}\nwrote {', '.join(written)}")
    return DONE
