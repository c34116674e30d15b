"""Ten thousand random events on real threads: what must hold after each of them, and when it rests.

Nodes go down, come back, are lost, vanish, are added and disabled; loads change; groups come and
go. After every single step no replica is lost, every partition has as many replicas that serve as
it must have, and no version goes back.
"""

import faulthandler

import numpy as np
import pytest

from evenkeel.control.engines.balance import BalanceEngine
from evenkeel.control.engines.waged import WagedEngine
from tests.support.pipeline.world import EVENTS, Soak, World, fresh, level


@pytest.fixture(autouse=True)
def watchdog():
    """Show all threads and end the process if a worker hangs."""
    faulthandler.dump_traceback_later(1200.0, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def check(soak):
    """What must have held all along."""
    assert soak.wrong == []
    assert soak.failures == []
    for versions in soak.store.versions.values():
        assert versions == sorted(set(versions)) and versions
    assert set(EVENTS) < set(soak.happened)
    assert soak.happened["emergency"] > 50


@pytest.mark.long
def test_waged_under_prolonged_events():
    with Soak(World(seed=1), WagedEngine()) as soak:
        for _ in range(9_000):
            soak.step()
        counted = soak.pipeline.metrics
    check(soak)
    assert counted["cancelled_counter"] > 50
    assert soak.happened["overwrite"] > 50


@pytest.mark.long
def test_balance_under_prolonged_events_stays_level():
    """Every 20 events it is left alone until it rests, and compared with a fresh solve.

    Delay windows have passed by then.
    """
    engine = BalanceEngine()
    gaps = []
    with Soak(World(seed=2, partitions=300), engine) as soak:
        for number in range(1, 1_001):
            soak.step()
            if number % 20 == 0:
                cluster, held = soak.rest()
                gaps.append(level(cluster, held) - level(cluster, fresh(engine, cluster)))
    check(soak)
    assert np.percentile(gaps, 99) <= 0.02
