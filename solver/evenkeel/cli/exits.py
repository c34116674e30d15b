"""Exit codes of every command."""

DONE = 0
LEFT_BROKEN = 1
BAD_INPUT = 2
FELL_SHORT = 3
INTERRUPTED = 130

MEANING = (
    "exit codes: 0 done; 1 something is left broken or unplaced; 2 bad input; 3 no hard rule is "
    "broken, but the goals are missed, or moves of a plan are blocked; 130 interrupted"
)


def code_of(status: str) -> int:
    """Return the exit code for the status of a result.

    Examples
    --------
    >>> code_of("feasible"), code_of("missed"), code_of("partial")
    (0, 3, 1)
    """
    return {"optimal": DONE, "feasible": DONE, "missed": FELL_SHORT}.get(status, LEFT_BROKEN)
