"""Exit codes of every command."""

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

    Examples
    --------
    >>> code_of("feasible"), code_of("missed"), code_of("partial"), code_of("infeasible")
    (0, 3, 3, 4)
    """
    codes = {"optimal": DONE, "feasible": DONE, "infeasible": INFEASIBLE}
    return codes.get(status, FELL_SHORT)
