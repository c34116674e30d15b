"""CockroachDB: ranges, nodes and zone configurations as its tools print them, and statements out.

References
----------
CockroachDB, ``SHOW RANGES``, ``crdb_internal.ranges``, ``crdb_internal.kv_store_status``,
``cockroach node status --all``, ``SHOW ZONE CONFIGURATIONS``, ``ALTER RANGE ... RELOCATE``.
"""

from evenkeel.systems.cockroach.allocator.compile import FORMAT as NAME
from evenkeel.systems.cockroach.cluster import read
from evenkeel.systems.cockroach.documents import kind_of
from evenkeel.systems.cockroach.notices import left_out, uncapped
from evenkeel.systems.cockroach.shell_text import shell_hint
from evenkeel.systems.cockroach.statements import encode
from evenkeel.systems.cockroach.waves import CARRIER
from evenkeel.systems.registry import Format

FORMAT = Format(
    name=NAME,
    summary="CockroachDB: ranges, node status and store status as CSV, TSV, JSON or printed "
    "tables, zone configurations as SQL or YAML",
    suffixes=(".sql",),
    recognises=kind_of,
    read=read,
    encode=encode,
    carrier=CARRIER,
    keeps_mended=True,
    left_out=left_out,
    uncapped=uncapped,
    hint=shell_hint,
    stranded="a range changes its replicas by a majority of its voters: bring back nodes that hold "
    "them, or recover without them at the loss of data (cockroach debug recover), and read again",
)
