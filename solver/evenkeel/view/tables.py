"""Tables of a result's moves, as CSV and JSON."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

COLUMNS = ("partition", "slot", "from", "to")


def moves_csv(result: Any) -> str:
    """Write every move as a line of CSV; a replica that had no node comes from nowhere, "".

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[-1]])
    >>> print(moves_csv(ek.solve(cluster)))
    partition,slot,from,to
    p0,0,,n0
    """
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows((m.partition, m.slot, m.source, m.target) for m in result.moves)
    return out.getvalue()


def moves_json(result: Any) -> str:
    """Write every move as a JSON object; a replica that had no node comes from null."""
    rows = ((m.partition, m.slot, m.source, m.target) for m in result.moves)
    lines = (json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows)
    return "[\n" + ",\n".join(lines) + "\n]\n"


TABLES: Mapping[str, Callable[[Any], str]] = {".csv": moves_csv, ".json": moves_json}
"""How a table is written, by the suffix of its file."""
