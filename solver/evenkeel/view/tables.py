"""Tables of what a result changes and of the steps of a plan, as CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evenkeel.planning.account.by_waves import wave_numbers
from evenkeel.planning.plan import Plan

STEP_COLUMNS = (
    "step", "wave", "kind", "partition", "slot", "from", "to", "bytes", "start", "finish"
)  # fmt: skip
COLUMNS = ("kind", "partition", "slot", "from", "to", "bytes")


def moves_csv(result: Any) -> str:
    """Write every move, then every other leader change, as a line of CSV.

    A replica that had no node comes from nowhere, ""; a leader change has no slot and moves no
    data. Bytes are in the unit of the dimension that moves, "" where there is none.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[-1]])
    >>> print(moves_csv(ek.solve(cluster)))
    kind,partition,slot,from,to,bytes
    move,p0,0,,n0,
    leader,p0,,,n0,
    """
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows(_rows(result))
    return out.getvalue()


def moves_json(result: Any) -> str:
    """Write the same rows as JSON objects, with null for what is not there."""
    lines = (json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in _rows(result))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _rows(result: Any) -> Iterator[tuple[Any, ...]]:
    """List the moves, then the leader changes."""
    for one in result.moves:
        yield "move", one.partition, one.slot, one.source, one.target, one.bytes
    for one in result.leader_changes:
        yield "leader", one.partition, None, one.source, one.target, None


def steps_csv(plan: Plan) -> str:
    """Write every step of a plan as a line of CSV, in their order.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[-1]])
    >>> print(steps_csv(ek.solve(c).plan()).splitlines()[1])
    0,1,copy,p0,0,,n0,0.0,0.0,1.0
    """
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(STEP_COLUMNS)
    lines.writerows(_steps(plan))
    return out.getvalue()


def steps_json(plan: Plan) -> str:
    """Write the same rows as JSON objects, with null for what is not there."""
    lines = (json.dumps(dict(zip(STEP_COLUMNS, row, strict=True))) for row in _steps(plan))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _steps(plan: Plan) -> Iterator[tuple[Any, ...]]:
    """List the steps; waves count from 1, as the files of a folder do."""
    for row, number in zip(plan.rows(), wave_numbers(plan).tolist(), strict=True):
        yield row._replace(wave=number)


STEP_TABLES: Mapping[str, Callable[[Plan], str]] = {".csv": steps_csv, ".json": steps_json}
"""How a table of steps is written, by the suffix of its file."""

TABLES: Mapping[str, Callable[[Any], str]] = {".csv": moves_csv, ".json": moves_json}
"""How a table is written, by the suffix of its file."""
