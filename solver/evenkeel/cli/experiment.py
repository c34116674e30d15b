"""``evenkeel experiment``: run the experiments of the CRUSH-ed text with a method."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from evenkeel.cli.arguments import Commands, add_command
from evenkeel.cli.exits import DONE

if TYPE_CHECKING:
    from evenkeel.simulate.crush_experiments import Layout, Place
    from evenkeel.simulate.experiment_tables import Table

Experiment = Callable[["Place", "Layout"], "Table | tuple[Table, ...]"]

NAMES = ("distribution", "down", "recovery", "bouncing", "zone", "rolling", "adding", "sizes")
STORIES = "longhorn"
"""Name under which Longhorn's user stories and test scenarios are played."""


def add(commands: Commands) -> None:
    """Add the command."""
    summary = "run the experiments of the CRUSH-ed text with a method, or Longhorn's stories"
    parser = add_command(commands, "experiment", summary, run)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{STORIES}, or of {', '.join(NAMES)}; all"
    )
    parser.add_argument("--method", default="helix_crushed", help="%(default)s by default")
    parser.add_argument("--mended", action="store_true", help="helix_crushed without its faults")
    parser.add_argument(
        "--zones", type=zones_of, default=(11, 12, 12, 12, 12), metavar="N,N,...",
        help="nodes in each zone (11,12,12,12,12)",
    )  # fmt: skip
    for name, default in (("groups", 10), ("partitions", 1024), ("replicas", 3)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help="%(default)s")


def zones_of(text: str) -> tuple[int, ...]:
    """Read the sizes of zones.

    Examples
    --------
    >>> zones_of("3,4,4")
    (3, 4, 4)
    """
    return tuple(int(part) for part in text.split(","))


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.errors import FaultList
    from evenkeel.model.goals import Goals
    from evenkeel.model.placement import Placement
    from evenkeel.simulate import crush_experiments as crush
    from evenkeel.solve import solve
    from evenkeel.strategies.options import Crushed
    from evenkeel.view.experiments import written

    if arguments.names == [STORIES]:
        from evenkeel.strategies.longhorn import stories

        print(stories.written(stories.played()))
        return DONE

    def place(cluster: Cluster) -> Placement:
        options = Crushed(mended=True) if arguments.mended else None
        goals = Goals(level=None)
        return solve(cluster, arguments.method, goals=goals, options=options).placement

    experiments: dict[str, Experiment] = {
        "distribution": crush.distribution,
        "down": crush.nodes_down,
        "recovery": crush.recovery,
        "bouncing": crush.bouncing,
        "zone": crush.zone_down,
        "rolling": crush.rolling_upgrade,
        "adding": crush.nodes_added,
        "sizes": lambda place, layout: crush.unequal_sizes(place, layout, arguments.method),
    }
    faults = FaultList()
    for name in arguments.names:
        if name not in experiments:
            faults.add("NAME", name, f"is no experiment; there are: {', '.join(NAMES)}")
    faults.raise_if_any()
    layout = crush.Layout(
        arguments.zones, arguments.groups, arguments.partitions, arguments.replicas
    )
    for name in arguments.names or NAMES:
        found = experiments[name](place, layout)
        for table in found if isinstance(found, tuple) else (found,):
            print(written(table), end="\n\n")
    return DONE
