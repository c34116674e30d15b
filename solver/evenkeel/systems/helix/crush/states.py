"""State models: how many replicas of a partition are in each state.

References
----------
Apache Helix, ``StateModelDefinition.getStateCountMap``.
"""

from collections.abc import Mapping

ANY_LIVE = "ANY_LIVEINSTANCE"
"""As many replicas as there are eligible nodes."""

CANDIDATES, REPLICAS = "N", "R"
"""Counts that stand for all candidates, and for the replicas that are left."""


def state_counts(model: Mapping[str, int | str], candidates: int, replicas: int) -> dict[str, int]:
    """Count the replicas in each state.

    Examples
    --------
    >>> state_counts({"MASTER": 1, "SLAVE": "R", "OFFLINE": -1}, candidates=5, replicas=3)
    {'MASTER': 1, 'SLAVE': 2}
    >>> state_counts({"MASTER": 1, "SLAVE": "R"}, candidates=2, replicas=3)
    {'MASTER': 1, 'SLAVE': 1}
    """
    counts: dict[str, int] = {}
    for state, number in model.items():
        if candidates <= 0:
            break
        if number == CANDIDATES:
            counts[state] = candidates
            replicas -= candidates
            candidates = 0
        elif number != REPLICAS and str(number).isdigit() and int(number) > 0:
            counts[state] = min(candidates, int(number))
            candidates -= counts[state]
            replicas -= counts[state]
    for state, number in model.items():
        if number == REPLICAS and candidates > 0 and replicas > 0:
            counts[state] = min(candidates, replicas)
            break
    return counts


def wanted_replicas(stated: int | str, eligible: int) -> int:
    """Read how many replicas a group wants.

    Examples
    --------
    >>> wanted_replicas("3", 7), wanted_replicas("ANY_LIVEINSTANCE", 7)
    (3, 7)
    """
    return eligible if stated == ANY_LIVE else int(stated)
