"""Print the outcome of a command as a report or JSON, write its files, and set its exit code."""

import argparse
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.runtime.printable import printable
from evenkeel.view.terminal import WIDTH

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.placement import Placement
    from evenkeel.model.runtime.table import Table
    from evenkeel.result import Result


STYLE = re.compile(r"(\x1b\[[0-9;]*m)")  # what changes the style of a terminal


def page() -> dict[str, Any]:
    """Return how wide a report should be, and whether with the styles of a terminal."""
    styled = (
        sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    )
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    return {"width": min(width, 120), "styled": styled}


def print_json(figures: Mapping[str, Any]) -> None:
    """Print figures as one JSON object."""
    _put(json.dumps(_plain(figures), indent=2) + "\n")


def emit(
    arguments: argparse.Namespace,
    code: int,
    *,
    figures: Callable[[], Mapping[str, Any]],
    text: Callable[[], str],
    verdict: str = "",
    asked: str = "",
) -> int:
    """Tell what came of a command, and return its exit code; ``asked`` is printed if quiet, too."""
    if getattr(arguments, "metrics", None) is not None:
        write_metrics(arguments, {**figures(), "exit_code": code})
    if arguments.json:
        print_json(figures())
    elif not arguments.quiet:
        say(text())
    else:
        if asked:
            say(asked.lstrip("\n"))
        if code and verdict:
            complain(verdict)
    return code


def by_group(
    arguments: argparse.Namespace, cluster: "Cluster", placement: "Placement"
) -> tuple[str, dict[str, Any]]:
    """Return the view by group as text and as figures; nothing where it is not asked for."""
    from evenkeel.result_rows import group_rows
    from evenkeel.view.results import WORST_GROUPS, report_groups

    if not arguments.by_group:
        return "", {}
    rows = group_rows(cluster, placement, WORST_GROUPS)
    figures = {"groups": [one._asdict() for one in rows]}
    return f"\n{report_groups(cluster, placement, **page())}", figures


def write_metrics(arguments: argparse.Namespace, figures: Mapping[str, Any]) -> None:
    """Write the figures of a command where its arguments want metrics."""
    from evenkeel.model.runtime.atomic import write_atomically
    from evenkeel.view.metrics import openmetrics

    labels = {"cluster": arguments.metrics.stem, "command": arguments.command}
    write_atomically(arguments.metrics, openmetrics(figures, labels).encode())


def say(text: str) -> None:
    """Print lines, in which nothing acts on a terminal but the styles of a report."""
    parts = STYLE.split(text) if page()["styled"] else [text]
    pieces = [one if STYLE.fullmatch(one) else printable(one, keep="\n") for one in parts]
    _put("".join(pieces).rstrip("\n") + "\n")


def _put(text: str) -> None:
    """Write to the standard output; that its reader has gone changes no verdict."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # what is still buffered must not be written as Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print one line to the standard error stream, in which nothing acts on a terminal."""
    print(f"evenkeel: {printable(text)}", file=sys.stderr)


def list_files(written: Sequence[Path], otherwise: str = "") -> str:
    """Return a line for each file written, or ``otherwise`` where there is none."""
    return "".join(f"wrote {printable(str(path))}\n" for path in written) or otherwise


def figures_of(result: "Result") -> dict[str, Any]:
    """Return what ``--json`` says of a result."""
    gap = result.gap
    return {
        "method": result.method,
        "status": result.status,
        "success": result.success,
        "message": result.message,
        "stop_reason": result.stop_reason,
        "warnings": result.warnings,
        **result.metrics,
        "gap": {"moves": gap.moves, "level": gap.level, "leaders": gap.leaders, "cost": gap.cost},
        "regressions": result.regressions,
        "broken_before": _broken(result.audit_before.counts),
        "broken": _broken(result.audit.counts),
        "timings": result.timings,
        "seed": result.seed,
    }


def write_plan(
    result: "Result", path: str, format: str | None, overwrite: bool = False
) -> tuple[Path, ...]:
    """Write where replicas should be, in the format that the suffix and the cluster say."""
    from evenkeel.systems.registry import write

    return write(result.cluster, path, format=format, placement=result, overwrite=overwrite)


def write_table(table: "Table", path: str) -> Path:
    """Write a table as CSV or JSON, by the suffix."""
    from evenkeel.model.runtime.atomic import write_atomically
    from evenkeel.model.runtime.table import WRITTEN

    check_table(path)
    return write_atomically(path, WRITTEN[Path(path).suffix](table).encode())


def check_table(path: str | None) -> None:
    """Raise what is wrong with the name of a table, before any work is done for it."""
    from evenkeel.model.runtime.table import WRITTEN

    if path is not None and Path(path).suffix not in WRITTEN:
        raise InvalidInput([Fault("--table", path, f"must end in one of {[*WRITTEN]}")])


def check_report(path: str | None) -> None:
    """Raise what is wrong with the name of a page, before any work is done for it."""
    from evenkeel.view.html import check_page

    if path is not None:
        check_page(path, "--report")


def check_outputs(inputs: Sequence[str], outputs: Sequence[str | None], *, force: bool) -> None:
    """Raise where a file to be written is one that is read, unless that is meant, or cannot be."""
    read = {os.path.realpath(one) for one in inputs}
    faults = [
        Fault("OUT", one, "is one of the files that are read; --force writes it nevertheless")
        for one in outputs
        if one is not None and os.path.realpath(one) in read
    ]
    faults = [] if force else faults
    for one in outputs:
        if one is None:
            continue
        place = Path(os.path.realpath(one))
        if not place.parent.is_dir():
            faults.append(
                Fault("OUT", one, f"cannot be written: there is no folder {place.parent}")
            )
        elif place.is_dir():
            faults.append(Fault("OUT", one, "cannot be written: it is a folder"))
        elif place.exists() and not place.is_file():
            faults.append(Fault("OUT", one, "cannot be written: it is no file"))
        elif place.is_symlink():
            faults.append(Fault("OUT", one, "cannot be written: it is a link to itself"))
    if faults:
        raise InvalidInput(faults)
    check_apart(outputs)


def check_apart(outputs: Sequence[str | Path | None]) -> None:
    """Raise where two outputs would be one file, or one is to be a stream."""
    named = [one for one in outputs if one is not None]
    places = [os.path.realpath(one) for one in named]
    faults = [
        Fault("OUT", os.fspath(one), "is where another output goes: choose another")
        for i, one in enumerate(named)
        if places[i] in places[:i]
    ]
    faults += [
        Fault("OUT", one, "is no file; figures go to the standard output, with --json")
        for one in named
        if one == "-"
    ]
    if faults:
        raise InvalidInput(faults)


def list_kinds(counts: Mapping[str, int]) -> str:
    """Return how many of each kind there are, those of which there are any.

    >>> list_kinds({"spread": 3, "capacity": 0, "on_dead": 1})
    '3 spread, 1 on_dead'
    """
    return ", ".join(f"{n:,} {kind}" for kind, n in counts.items() if n)


def _broken(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if count}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


DONE = 0
BROKEN = 1
BAD_INPUT = 2
FELL_SHORT = 3
INFEASIBLE = 4
INTERRUPTED = 130

MEANING = (
    "exit codes: 0 done; 1 what was checked is broken or does not fit; 2 bad input; 3 done in "
    "part: something is left broken or unplaced, goals are missed, or moves of a plan are blocked; "
    "4 proven to be infeasible; 130 interrupted"
)


def code_of(status: str) -> int:
    """Return the exit code for the status of a result.

    >>> code_of("feasible"), code_of("missed"), code_of("partial"), code_of("infeasible")
    (0, 3, 3, 4)
    """
    codes = {"optimal": DONE, "feasible": DONE, "infeasible": INFEASIBLE}
    return codes.get(status, FELL_SHORT)
