"""Write to a store in a child process that dies before a given line of the writing code.

``python -m tests.support.pipeline.crash FOLDER`` says, for every line at which the child died,
which version is in the store afterwards; the last child lives.
"""

import os
import sys
from pathlib import Path

import numpy as np

from evenkeel.control import store as disk_store
from evenkeel.control.store import DiskStore, Kind, Record
from evenkeel.model.assignment import Assignment
from evenkeel.model.names import Names
from evenkeel.model.runtime import atomic

WATCHED = {disk_store.__file__, atomic.__file__}


def record(version: int, partitions: int = 4) -> Record:
    """A record that says its version in its nodes."""
    owner = np.arange(partitions)
    node = np.full(partitions, version % 7, np.int32)
    return Record(
        version,
        Assignment.of_rows(partitions, owner, node, np.zeros(partitions, np.uint8)),
        Names([f"node-{i}" for i in range(7)], 7, ""),
        Names([f"p{i} é\udc80" for i in range(partitions)], partitions, ""),
        np.ones(partitions, np.bool_),
        {"nodes": str(version)},
    )


def die_at(line: int) -> None:
    """Die before the so-many-th line of the writing code, as in a power cut."""
    seen = [0]

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == line:
                os._exit(9)
        return trace

    sys.settrace(trace)


def main(folder: str) -> None:
    """Crash at every line, one after the other."""
    line = 0
    while True:
        line += 1
        here = Path(folder) / str(line)
        store = DiskStore(here)
        store.write(Kind.BEST_POSSIBLE, record(1))
        store.write(Kind.BEST_POSSIBLE, record(2))
        child = os.fork()
        if child == 0:
            die_at(line)
            DiskStore(here).write(Kind.BEST_POSSIBLE, record(3))
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        again = DiskStore(here)
        found = again.read(Kind.BEST_POSSIBLE)
        assert found is not None and found.assignment.node[0] == found.version
        again.write(Kind.BEST_POSSIBLE, record(found.version + 1))
        assert again.read(Kind.BEST_POSSIBLE).version == found.version + 1
        sys.stdout.write(f"{line} {found.version}\n")
        sys.stdout.flush()  # or the next child would say it again
        if code == 0:
            break


if __name__ == "__main__":
    main(sys.argv[1])
