"""After a warm-up, a solve of the same kind compiles nothing, nor loads what was compiled."""

import subprocess
import sys

import pytest

import evenkeel as ek
from evenkeel.install.warmup_cases import rehearsals
from evenkeel.methods.registry import METHODS, Method
from tests.support.effort import mostly_long

LARGER = """
import sys
import numpy as np
import evenkeel as ek
from bench.experiments.crush import Layout
from evenkeel.simulate.generators import expansion
from evenkeel_kernels.build.inventory import _kernels

method = sys.argv[1]
ek.warmup(methods=[method])
before = {kernel: len(kernel.overloads) for kernel in _kernels()}
if method.startswith("helix"):
    ek.solve(Layout(zones=(6, 5, 5), groups=3, partitions=50).cluster(), method)
else:
    cluster = expansion(partitions=500, nodes=40, zones=8)
    result = ek.solve(cluster, method, goals=ek.Goals(level=0.02))
    session = ek.Session(cluster.with_placement(result.placement))
    session.apply(ek.Changes(down=5)).solve(method, goals=ek.Goals(level=0.1))
grown = [
    kernel.py_func.__qualname__ for kernel, count in before.items()
    if len(kernel.overloads) > count
]
print(*grown)
"""


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_rehearsal_that_succeeds(method):
    quick = ek.options.Exact(effort=0.5) if method == "exact" else None  # proofs compile nothing
    for one in rehearsals(method):
        result = ek.solve(
            one.cluster,
            method,
            goals=one.goals,
            options=quick or one.options,
            limits=one.limits,
            work_limit=10_000,
        )
        assert result.status != "infeasible"


def test_a_method_is_warmed_up_once():
    ek.warmup(methods=["helix_crush"])
    assert not ek.warmup(methods=["helix_crush"])


def test_a_method_without_kernels_has_nothing_to_compile(monkeypatch):
    monkeypatch.setitem(METHODS, "plain", Method("plain", "", "for a test"))
    assert not ek.warmup(methods=["plain"])


def test_there_must_be_such_a_method():
    with pytest.raises(ek.InvalidInput, match="unknown method"):
        ek.warmup(methods=["nobody"])


COMPARED = ["balance", "leaders", "helix_crushed", "helix_waged", "cockroach"]


@pytest.mark.parametrize("method", mostly_long(COMPARED, ["balance"]))
def test_nothing_is_left_to_compile(method):
    ran = subprocess.run(
        [sys.executable, "-c", LARGER, method], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []


ANYTHING = """
import sys
import evenkeel as ek
from evenkeel.methods.options import Exact
from evenkeel_kernels.build.inventory import _kernels
from tests.judge.case import build
from tests.judge.clusters import FAMILIES, draw

method = sys.argv[1]
# what is looked for is compiled, not proven
brief = {"options": Exact(effort=0.1)} if method == "exact" else {"work_limit": 200_000}
ek.warmup(methods=[method])
before = {kernel: len(kernel.overloads) for kernel in _kernels()}
asked = 0
for family in FAMILIES:
    for seed in range(3):
        cluster, goals, limits = build(draw(family, seed))
        for given in ({"goals": goals, "limits": limits}, {"goals": ek.Goals(level=goals.level)}):
            try:
                ek.solve(cluster, method, **brief, **given)
            except ek.InvalidInput:  # it keeps no such limits, or pursues no such goals
                continue
            asked += 1
            break
    if method == "balance":
        ek.solve(cluster, method, goals=ek.Cost(moves=1.0), work_limit=30_000_000)
assert asked > int(sys.argv[2])
grown = [
    f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    for kernel, count in before.items() if len(kernel.overloads) > count
]
print(*grown)
"""
"""After a warm-up nothing is compiled, and nothing is loaded that an earlier process compiled."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "least"),
    # WAGED takes whole amounts only, and no limits
    [("balance", 20), ("exact", 20), ("leaders", 20), ("helix_waged", 5), ("cockroach", 20)],
)
def test_no_rule_role_group_or_limit_leaves_anything_to_compile(method, least):
    ran = subprocess.run(
        [sys.executable, "-c", ANYTHING, method, str(least)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []
