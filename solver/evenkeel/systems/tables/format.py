"""The bare minimum without a system: nodes and replicas as tables, rules as TOML.

Nodes: ``node``, ``cap_NAME`` for each dimension, and any of ``watermark_NAME``, ``state`` (up,
cordoned, draining, down), ``tags`` (divided by blanks), ``weight``, ``max_replicas``; every other
column is a tier, the widest first, unless its name is like one of these: ``tiers`` among the rules
says so then, and which columns are tiers.

Replicas, one per row: ``group`` and ``index``, or ``partition``, or all of them; ``node``, empty
where a replica has none; and any of ``role`` (leader, voter, non_voter, learner; where the column
is missing the first replica leads), ``pinned``, ``flags``, ``size_NAME`` or ``load_NAME``,
``leader_load_NAME``, ``non_voter_load_NAME``, ``replicas``, ``voters``, ``min_active`` and
``rule``, which are the partition's and the same in each of its rows.

Rules: ``[[rule]]`` with the fields of ``evenkeel.Rule``, and ``groups`` or ``name``; one with
neither binds all partitions that no other binds. ``bytes`` and ``transient`` name dimensions,
and so does ``uncapped`` those whose capacities nobody knows: what the table has of them is made up.
"""

import re

from evenkeel.systems.documents import Document
from evenkeel.systems.registry import Format
from evenkeel.systems.tables.headings import left_out, read, uncapped
from evenkeel.systems.tables.reading import NAME, kind_of
from evenkeel.systems.tables.writing import encode

CHANGES = re.compile(rb'kind,partition,slot,from,to,|\[\s*\{"kind": "(move|leader)", "partition"|'
                     rb"step,wave,kind,partition,slot,from,to,")  # fmt: skip


def hint(document: Document) -> str:
    """Tell what to give in place of a table of what changes, which ``--table`` wrote."""
    if not CHANGES.match(document.data[:200]):
        return ""
    return "a table tells what changes; a cluster or a target is what -o OUT of solve writes"


FORMAT = Format(
    name=NAME,
    summary="tables of nodes and of replicas (CSV), and rules (TOML)",
    suffixes=(".csv",),
    recognises=kind_of,
    read=read,
    encode=encode,
    left_out=left_out,
    uncapped=uncapped,
    hint=hint,
    no_carrier="is of no system whose commands could be written",
)
