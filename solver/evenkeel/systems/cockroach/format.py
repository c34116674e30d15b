"""The CockroachDB format: read ranges, nodes and zone configurations, write statements.

References
----------
CockroachDB, ``SHOW RANGES``, ``crdb_internal.ranges``, ``crdb_internal.kv_store_status``,
``cockroach node status --all``, ``SHOW ZONE CONFIGURATIONS``, ``ALTER RANGE ... RELOCATE``.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.cockroach.allocator.compile import FORMAT as NAME
from evenkeel.systems.cockroach.allocator.compile import CockroachMap
from evenkeel.systems.cockroach.allocator.intake import plenty
from evenkeel.systems.cockroach.cluster import read
from evenkeel.systems.cockroach.documents import kind_of, shell_hint
from evenkeel.systems.cockroach.statements import encode
from evenkeel.systems.cockroach.waves import CARRIER
from evenkeel.systems.notes import noted
from evenkeel.systems.registry import Format


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield the missing inputs, their effect, and the commands that print them."""
    native = cluster.native
    yield from noted(native)
    tables = native.tables if isinstance(native, CockroachMap) else None
    if tables and tables.database:
        yield (
            f"no database of the ranges: they count as those of {tables.database}, by the "
            "zones; add database_name"
        )
    if tables and tables.unapplied:
        theirs = some_of(tables.unapplied, printable)
        yield (
            f"no tables of the ranges: the zones of {theirs} hold for none of them; add "
            "table_name, as SHOW RANGES prints it WITH TABLES"
        )
    load = cluster.partitions.load.leader
    silent = [cluster.dimensions[d] for d in np.flatnonzero(~load.any(axis=0)).tolist()]
    if silent and len(load):
        yield f"no load of {', '.join(silent)}: ranges count as if they took none"
    # no file limits the number of replicas of a store
    named = [name for name in uncapped(cluster) if name != "replicas"]
    if named:
        yield (
            f"no capacities of {' and '.join(named)}: each store has eight times what all "
            "replicas take, and percentages are of that; add crdb_internal.kv_store_status"
        )


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions in which every store has the plenty that stands for no capacity."""
    load, placement = cluster.partitions.load.leader, cluster.placement
    held = np.bincount(placement.owner[placement.node >= 0], minlength=len(placement))
    most = plenty(load, np.maximum(cluster.partitions.replicas, held))
    made_up = np.isclose(cluster.nodes.capacity, most, rtol=1e-9).all(axis=0) & load.any(axis=0)
    return [cluster.dimensions[d] for d in np.flatnonzero(made_up).tolist()]


FORMAT = Format(
    name=NAME,
    summary="CockroachDB: ranges, node status and store status as CSV, TSV, JSON or printed "
    "tables, zone configurations as SQL or YAML",
    suffixes=(".sql",),
    recognises=kind_of,
    read=read,
    encode=encode,
    carrier=CARRIER,
    keeps_repairs=True,
    left_out=left_out,
    uncapped=uncapped,
    hint=shell_hint,
    stranded="a range changes its replicas by a majority of its voters: bring back nodes that hold "
    "them, or recover without them at the loss of data (cockroach debug recover), and read again",
)
