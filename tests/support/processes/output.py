"""Compare the output of processes, however long they take on a busy machine."""

import re


def without_progress(said: str) -> str:
    """Return what a command wrote to its standard error, but for lines on what takes long."""
    return re.sub(r"(?m)^\d+ s: .*\n", "", said)
