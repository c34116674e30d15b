"""A folder in which ``run.sh`` of a plan runs against the stand-in of a system."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support import places
from tests.support.systems.server import started

HERE = Path(__file__).parent
PYTHON = shlex.quote(sys.executable)


class System:
    """The stand-in of a system: its tools in a folder of their own, its state in a file."""

    # a state may say ``breaks``: the number of a changing call that does its work and then fails

    def __init__(self, folder, program, tools, state):
        self.folder = folder
        self.format = program
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.file = folder / "system.json"
        self.log = folder / "calls.txt"
        source = HERE / f"{program}.py"
        for tool in tools:
            self._tool(tool, f'exec {PYTHON} -EsS "{source}" {tool} "$@"')
        paths = ":".join(map(str, (places.ROOT / "solver", places.ROOT / "kernels")))
        self._tool("evenkeel", f'exec {PYTHON} -EsS "{HERE / "caller.py"}" "{started()}" "$@"')
        self._tool(
            "evenkeel-alone", f'PYTHONPATH={shlex.quote(paths)} exec {PYTHON} -m evenkeel "$@"'
        )
        self.state = state

    def _tool(self, name, line):
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)

    @property
    def state(self):
        return json.loads(self.file.read_text())

    @state.setter
    def state(self, state):
        self.file.write_text(json.dumps(state))

    @property
    def calls(self):
        """Every call that changed something."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def environment(self, **more):
        own = {"PAUSE": "0", "TRIES": "4", "SYSTEM": str(self.file), "CALLS": str(self.log)}
        inherited = {k: v for k, v in os.environ.items() if k in ("HOME", "TMPDIR", "LANG")}
        return inherited | own | {"PATH": f"{self.bin}:/usr/bin:/bin"} | more

    def run(self, folder, *words, **more):
        """Run a folder to its end."""
        return subprocess.run(
            ["/bin/sh", str(folder / "run.sh"), *words], env=self.environment(**more),
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip


def members_and_leaders(plan):
    """The nodes and the leader of each partition, by name, at the end of a plan."""
    names, end = plan.cluster.nodes.names, plan.end
    return {
        name: (
            {names[n] for n in end.node[end.first[p] : end.first[p + 1]]},
            names[end.leader_node[p]],
        )
        for p, name in enumerate(plan.cluster.partitions.names)
    }
