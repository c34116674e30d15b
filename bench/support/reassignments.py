"""Machine-reassignment instances for benchmarks: generated like set B, or read from files."""

import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.experiments.reassignment_instances import SHAPES, reassignment
from evenkeel.methods.cost import begin_walk
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.model.cluster import Cluster
from evenkeel.systems import roadef
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.cost.cost_state import CostState, tighten

FOLDER = Path(os.environ.get("EVENKEEL_ROADEF", Path(__file__).parents[2] / "tests/data/roadef"))
SEED = 1


class Opened(NamedTuple):
    """An instance with the state of a search, and a penalty of 1 for all above capacity."""

    problem: Problem
    state: State
    walk: CostState


def models() -> list[Path]:
    """Models in the folder that ``EVENKEEL_ROADEF`` names, else those that come with the tests."""
    return sorted(file for file in FOLDER.glob("model_*") if re.search(r"\.txt(\.gz)?$", file.name))


@cache
def generated(name: str) -> Cluster:
    """Return an instance in the shape of one of set B."""
    return roadef.cluster_of(reassignment(SHAPES[name], SEED))


def opened(cluster: Cluster) -> Opened:
    """Compile it."""
    cost = roadef.cost_of(cluster)
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, weight, cost=cost)
    state = compile_state(cluster, problem)
    walk = begin_walk(problem, state, SEED)
    tighten(problem, state, walk, np.ones(len(weight)), 1.0, 1.0)
    return Opened(problem, state, walk)
