"""How far methods come in CockroachDB's scenarios: check by check, with the CPU time."""

import time

import pytest

from bench.scenarios.cockroach import SCENARIOS
from bench.scenarios.verdicts import verdicts_of
from evenkeel import simulate

pytestmark = pytest.mark.quality

TITLE = f"{'scenario':32} {'method':10} {'measured':>10} {'met':4} check (+ beyond CockroachDB)"


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Compile before anything is timed."""
    for name in ("rebalancing", "cannot_shed_leases", "conformance"):
        for method in ("balance", "cockroach"):
            simulate.run(SCENARIOS[name](), method)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name, tell):
    if name == next(iter(SCENARIOS)):
        tell(TITLE)
    for method in ("balance", "cockroach"):
        started = time.thread_time()
        history = simulate.run(SCENARIOS[name](), method)
        seconds = time.thread_time() - started
        for one in verdicts_of(history):
            plus = "+" if one.beyond else " "
            tell(
                f"{one.scenario:32} {method:10} {one.measured:10.4f} "
                f"{'yes' if one.met else 'NO':4}{plus}{one.check}"
            )
            assert one.met or (one.beyond and method == "cockroach")
        tell(
            f"{'':32} {method:10} {seconds:10.3f} CPU s; {history.total('moves'):.0f} moves, "
            f"{history.total('bytes') / 2**30:.1f} GiB, "
            f"{history.total('leader_changes'):.0f} leader changes"
        )
