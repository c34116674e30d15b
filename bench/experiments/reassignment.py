"""Write a machine-reassignment instance made from a seed (``python -m`` this module)."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.experiments.reassignment_instances import SHAPES, reassignment
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import roadef
from evenkeel.systems.registry import write
from evenkeel.systems.roadef.reassignment import check

COUNTS = (
    "processes", "machines", "resources", "transient", "services", "shared", "spread",
    "neighbourhoods", "locations", "dependencies", "balances",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Write the instance and say what it is."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.experiments.reassignment",
        description="write a machine-reassignment instance in a shape of the ROADEF challenge",
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="for model_NAME.txt and assignment_NAME.txt"
    )
    parser.add_argument("--shape", default="b_1", choices=SHAPES, help="%(default)s by default")
    for name in COUNTS:
        parser.add_argument(f"--{name}", type=int, metavar="N", help="the shape's own")
    parser.add_argument("--utilisation", type=float, metavar="X", help="the shape's own")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="%(default)s")
    asked = parser.parse_args(argv)
    given = {
        name: value
        for name in (*COUNTS, "utilisation")
        if (value := getattr(asked, name)) is not None
    }
    try:
        model = reassignment(replace(SHAPES[asked.shape], **given), asked.seed)
    except InvalidInput as error:
        parser.error(str(error))
    cluster = roadef.cluster_of(model)
    asked.folder.mkdir(parents=True, exist_ok=True)
    written = write(cluster, asked.folder / f"model_{asked.shape}_{asked.seed}.txt", roadef.NAME)
    print(f"{cluster}\nto begin with: {check(model, model.initial)}")
    print(f"wrote {', '.join(map(str, written))}")


if __name__ == "__main__":
    main()
