"""Run beside us whatever other system is installed: ``python -m bench.peers [NAME...]``.

Says how to get those that are not. Not part of any check; nothing here is needed by anything else.
"""

import os
import sys
import tempfile
from pathlib import Path

from bench.peers import ceph, ganeti, meta, swift
from bench.peers.table import HEAD, STORED, store

PEERS = {"ceph": ceph, "ganeti": ganeti, "rebalancer": meta, "swift": swift}


def main(names: list[str]) -> None:
    """Print a line for each contestant as it ends, and store them."""
    if unknown := set(names) - set(PEERS):
        raise SystemExit(
            f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}"
        )
    with tempfile.TemporaryDirectory() as folder:
        for name in names or PEERS:
            if not PEERS[name].found():
                print(PEERS[name].ABSENT)
                continue
            print(HEAD)
            rows = []
            for row in PEERS[name].run(Path(folder)):
                rows.append(row)
                print(row, flush=True)
            store(name, rows)
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"load average {load} on {os.cpu_count()} processors; kept in {STORED}")


if __name__ == "__main__":
    main(sys.argv[1:])
