"""Searching machine-reassignment instances: what it takes to begin, and to look at a candidate."""

import numpy as np
import pytest

import evenkeel as ek
from bench.experiments.reassignment_instances import SHAPES, reassignment
from bench.support.full_evaluation import probe
from bench.support.reassignments import SEED, generated, models, opened
from evenkeel.methods.cost import minimise
from evenkeel.methods.shared.stopping import Watch
from evenkeel.systems import roadef
from evenkeel.systems.roadef.reassignment import check

WORK = 300_000
LARGE = "b_9"
TITLE = "50,000 processes on 1,000 machines"

FILES = {file.name.partition(".")[0].removeprefix("model_"): file for file in models()}


def sizes(cluster):
    """Say how large an instance is."""
    processes, machines = len(cluster.partitions), len(cluster.nodes)
    return f"{processes:,} x {machines:,}, {len(cluster.dimensions)} resources"


@pytest.mark.parametrize("name", [*FILES, "b_1", "b_3", "b_8", LARGE])
@pytest.mark.benchmark(group="full evaluations")
def test_full_evaluations(benchmark, name):
    """All five constraints and the whole change of cost of random moves and swaps."""
    cluster = roadef.read(FILES[name]) if name in FILES else generated(name)
    compiled, found = opened(cluster), np.zeros(4, np.int64)
    benchmark.pedantic(probe, args=(*compiled, WORK, found), rounds=15, warmup_rounds=1)
    which = name if name in FILES else f"generated like {name}"
    benchmark.extra_info |= {
        "title": f"candidates looked at in full, {which}: {sizes(cluster)}",
        "items": WORK,
        "unit": "candidates",
        "seed": SEED,
        "break_nothing": round(found[1] / found[0], 3),
    }
    assert found[1] > 0


@pytest.mark.benchmark(group="reassignment")
def test_set_up(benchmark):
    """From the cluster to the first candidate."""
    cluster = generated(LARGE)
    cost = roadef.cost_of(cluster)
    found = benchmark.pedantic(
        lambda: minimise(cluster, cost, Watch(None, 1, None)), rounds=10, warmup_rounds=1
    )
    benchmark.extra_info |= {"title": f"{TITLE}: from the cluster to the first candidate"}
    assert found.work == 1


@pytest.mark.benchmark(group="reassignment")
def test_whole_call(benchmark):
    """What a solve takes beside the search: rules, bounds, the audit."""
    cluster = generated(LARGE)
    cost = roadef.cost_of(cluster)
    result = benchmark.pedantic(
        lambda: ek.solve(cluster, goals=cost, work_limit=1), rounds=5, warmup_rounds=1
    )
    benchmark.extra_info |= {"title": "the same, the whole solve with bounds and audit"}
    assert result.audit.hard == 0


@pytest.mark.benchmark(group="reassignment")
def test_read(benchmark, tmp_path):
    """Both files."""
    file = tmp_path / "model_large.txt"
    ek.write(generated(LARGE), file, "roadef")
    cluster = benchmark.pedantic(lambda: roadef.read(file), rounds=5, warmup_rounds=1)
    benchmark.extra_info |= {"title": "the same, read from its two files"}
    assert len(cluster.partitions) == SHAPES[LARGE].processes


@pytest.mark.benchmark(group="reassignment")
def test_generate(benchmark):
    model = benchmark.pedantic(lambda: reassignment(SHAPES[LARGE], SEED), rounds=5, warmup_rounds=1)
    benchmark.extra_info |= {"title": "the same, generated"}
    assert check(model, model.initial).feasible
