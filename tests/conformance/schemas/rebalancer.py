"""Replica re-placement instances: an expanded, damaged cluster that is to be mended and levelled.

There is no expected answer to equal: a placement agrees if it breaks no hard rule and is as level
as was asked for, and its figures are printed beside the proven bounds.
"""

from pathlib import Path
from typing import Any

from tests.conformance.protocol import Case, Document, Replay

NAME = "rebalancer"

LEVEL = 0.04  # tolerance asked for: no node above 1.04 times the fair share, in any dimension
FIELDS = {
    "capacity", "zone", "rack", "load", "leader_extra_load", "placement_before", "dead", "new",
    "resource", "meta",
}  # fmt: skip

SLACK = 1e-9


def recognises(path: Path, document: Document) -> bool:
    """Whether it holds the arrays of an instance."""
    return isinstance(document, dict) and document.keys() >= FIELDS


def replay(path: Path, document: Any) -> Replay:
    """Solve the instance, and judge and describe the placement by the audit alone."""
    import numpy as np

    import evenkeel as ek
    from evenkeel.measure.audit import audit
    from evenkeel.measure.bounds import bounds
    from evenkeel.measure.compare import compare
    from evenkeel.measure.levelness import levelness
    from tests.support.instances import as_cluster

    cluster, goals = as_cluster(document), ek.Goals(level=LEVEL)
    placement = ek.solve(cluster, method="balance", goals=goals).placement
    found, level = audit(cluster, placement), levelness(cluster, placement)
    way, proven = compare(cluster, cluster.placement, placement), bounds(cluster, goals)
    over = level.loads > proven.target * (1.0 + SLACK)

    broken = {kind: count for kind, count in found.counts.items() if count}
    cases = [
        Case("no hard rule is broken", found.ok, f"{broken}"),
        Case("the goal is reached", not over.any(), f"{int(over.any(1).sum())} nodes are above it"),
    ]
    gap = way.moves / max(proven.moves_level, 1) - 1.0
    figures = [
        f"unassigned {found.counts['unassigned']}, on dead {found.counts['on_dead']}, "
        f"spread {found.counts['spread']}, same node {found.counts['same_node']}, "
        f"over capacity {found.counts['capacity']}",
        f"moves {way.moves} (forced {way.forced}, voluntary {way.voluntary}), proven minimum "
        f"{proven.moves_level}, {gap:.1%} above; leader changes {way.leader_changes}",
        f"load moved    {_row(way.load_moved)}",
        f"fair          {_row(proven.fair)}",
        f"max           {_row(level.most)}",
        f"max over fair {_row(level.ratio)}, proven minimum {_row(proven.ratio)}",
        f"deviation     {_row(level.deviation)}",
        f"min           {_row(level.least)}",
    ]
    answers = {**document, "placement_after": np.asarray(placement, np.int32)}
    return Replay(cases, answers, figures)


def _row(values: Any) -> str:
    return " ".join(f"{value:.4f}" for value in values)
