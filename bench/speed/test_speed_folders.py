"""25,000 partitions, from a system's dump to the folder that carries a plan out, checked."""

import os
import subprocess
import sys

import pytest

import evenkeel as ek
from bench.support import dumps
from bench.support.processes import bytecode_kept, children_seconds
from tests.support.instances import headline

DUMPS = {
    "Kafka": lambda: dumps.kafka(dumps.alike()),
    "Kafka with log directories": lambda: dumps.kafka(dumps.alike(), log_dirs=True),
    "Helix": lambda: dumps.helix(headline()),
    "Ceph": dumps.ceph,
}


@pytest.fixture(params=DUMPS)
def dump(request, tmp_path):
    """The name of a system, and the files of its dump."""
    (tmp_path / "dump").mkdir()
    for name, data in DUMPS[request.param]().items():
        (tmp_path / "dump" / name).write_bytes(data)
    return request.param, sorted((tmp_path / "dump").iterdir())


def test_folder_in_process(benchmark, tmp_path, dump):
    system, files = dump

    def run():
        cluster = ek.read(*files)
        result = ek.solve(cluster, goals=ek.Goals(level=0.04))
        plan = result.plan(protocol=cluster.native_format)
        assert plan.check().ok
        ek.write_plan_folder(plan, tmp_path / "move", overwrite=True)
        return plan

    plan = benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    benchmark.extra_info["title"] = f"{system}, 25,000 x 3 on 300: dump to folder of a plan"
    benchmark.extra_info["copies"] = plan.copies


@pytest.mark.benchmark(timer=children_seconds)
def test_folder_by_command(benchmark, tmp_path, dump):
    system, files = dump
    command = [sys.executable, "-m", "evenkeel", "plan", *files, "--level", "0.04", "--force",
               "--quiet", "-o", tmp_path / "move"]  # fmt: skip

    environment = os.environ | bytecode_kept(tmp_path / "compiled")

    def run():
        # 3: some moves are blocked
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)

    benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    benchmark.extra_info["title"] = f"the same of {system} as a command, a process of its own"
    assert (tmp_path / "move" / "run.sh").exists()
