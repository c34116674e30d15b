"""Run the experiments of the CRUSH-ed text: ``python -m bench.experiments [NAME...]``.

``longhorn`` plays the user stories and test scenarios of Longhorn's text instead.
"""

import argparse
from collections.abc import Callable, Sequence

import evenkeel as ek
from bench.experiments import crush, longhorn_stories
from bench.experiments.tables import Table
from bench.experiments.written import written

STORIES = "longhorn"
EXPERIMENTS: dict[str, Callable[[crush.Place, crush.Layout], Table | tuple[Table, ...]]] = {
    "distribution": crush.distribution,
    "down": crush.nodes_down,
    "recovery": crush.recovery,
    "bouncing": crush.bouncing,
    "zone": crush.zone_down,
    "rolling": crush.rolling_upgrade,
    "adding": crush.nodes_added,
    "sizes": lambda place, layout: crush.unequal_sizes(place, layout, "by size"),
}


def zones_of(text: str) -> tuple[int, ...]:
    """Read the sizes of zones, such as 3,4,4."""
    return tuple(int(part) for part in text.split(","))


def main(argv: Sequence[str] | None = None) -> None:
    """Print what the experiments find."""
    parser = argparse.ArgumentParser(prog="python -m bench.experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{STORIES}, or of {', '.join(EXPERIMENTS)}; all"
    )
    parser.add_argument("--method", default="helix_crushed", help="%(default)s by default")
    parser.add_argument("--repaired", action="store_true", help="helix_crushed without its faults")
    parser.add_argument(
        "--zones", type=zones_of, default=(11, 12, 12, 12, 12), metavar="N,N,...",
        help="nodes in each zone (11,12,12,12,12)",
    )  # fmt: skip
    for name, default in (("groups", 10), ("partitions", 1024), ("replicas", 3)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help="%(default)s")
    asked = parser.parse_args(argv)
    if asked.names == [STORIES]:
        print(longhorn_stories.written(longhorn_stories.played()))
        return
    if unknown := set(asked.names) - set(EXPERIMENTS):
        parser.error(f"no experiment: {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    options = ek.options.Crushed(repaired=True) if asked.repaired else None

    def place(cluster: ek.Cluster) -> ek.Placement:
        return ek.solve(
            cluster, asked.method, goals=ek.Goals(level=None), options=options
        ).placement

    layout = crush.Layout(asked.zones, asked.groups, asked.partitions, asked.replicas)
    for name in asked.names or EXPERIMENTS:
        found = EXPERIMENTS[name](place, layout)
        for table in found if isinstance(found, tuple) else (found,):
            print(written(table), end="\n\n")


if __name__ == "__main__":
    main()
