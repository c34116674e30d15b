"""Legends: what the columns and rows of studies say, and in which units."""

from collections.abc import Iterable

SIMULATED = {
    "under": "partitions short of a live replica",
    "over": "partitions with a live replica too many",
    "unavailable": "partitions that do not serve",
    "in_danger": "partitions with fewer live replicas than min-active",
    "violating": "partitions whose replicas violate their rule",
    "lead_violating": "partitions led where their rule does not want it",
    "lead_less_preferred": "partitions led where their rule wants it less than elsewhere",
    "moves": "replicas moved so far",
    "bytes": "data that moves sent so far",
    "leader_changes": "leaders changed so far without a move",
    "failed": "changes so far that no longer fitted when they were due",
    "expired": "changes so far that took too long",
    "failovers": "leaders so far that another followed, their node being silent",
    "seconds_below_min_active": "seconds so far, added up over partitions",
    "returns": "replicas so far that came back to a node within the hour",
}
"""Of a simulation, by the name of the figure; levels come apart."""

LEVEL = "fullest node over its fair share; 1 is level"

SWEPT = {
    "status": "of the repair, as of a solve",
    "broken": "hard rules broken after it",
    "lost": "partitions that the loss leaves without a live replica",
    "quorum": "partitions that it leaves without a majority of voters",
    "short": "partitions that it leaves with fewer live replicas than min-active",
    "level": "fullest node over the mean after the repair, in the dimension furthest from it",
    "fullest": "share of its capacity that the fullest node carries then",
    "moves": "replicas that the repair moves",
    "seconds": "that the plan of the repair takes",
    "short for": "seconds until no partition is short of live replicas",
}
"""Of a sweep, by column."""


def said_of(figure: str, bytes: str = "") -> str:
    """Return what a figure of a simulation is; ``bytes`` names the dimension that moves.

    Examples
    --------
    >>> said_of("bytes", "disk")
    'data that moves sent so far, in units of disk'
    """
    if figure.startswith("level_"):
        return LEVEL
    told = SIMULATED.get(figure, "")
    return f"{told}, in units of {bytes}" if figure == "bytes" and bytes else told


def legend(heads: Iterable[str]) -> str:
    """Return a line for each column of a sweep that says what it tells."""
    return "".join(f"  {head:<10} {SWEPT[head]}\n" for head in heads if head in SWEPT)
