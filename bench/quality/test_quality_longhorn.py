"""One plan for all volumes against Longhorn's own rule: the fullest disk, and bytes copied."""

import time

import pytest

import evenkeel as ek
from tests.support.longhorn.skewed import skewed, use

pytestmark = pytest.mark.quality

SEEDS = range(6)
GIB = 2**30
TITLE = (
    f"{'1,000 volumes on 24 hosts, 3 just joined':52} {'fullest':>8} {'GiB copied':>11} "
    f"{'moves':>6} {'soft':>6} {'CPU s':>7}"
)


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Compile before anything is timed."""
    for scope in ("volume", "cluster"):
        solved(skewed(volumes=20, hosts=8), scope, "best-effort")


def solved(cluster, scope, effort, most_copied=None):
    """Solve, levelling data; returns the result and its CPU seconds."""
    options = ek.options.Longhorn(scope=scope, replica_auto_balance=effort, most_copied=most_copied)
    started = time.thread_time()
    result = ek.solve(cluster, "longhorn", options=options)
    return result, time.thread_time() - started


@pytest.mark.parametrize("seed", SEEDS)
def test_skewed(seed, tell):
    cluster = skewed(seed=seed)
    if seed == SEEDS[0]:
        tell(TITLE)
    tell(f"{f'seed {seed}, as it is':52} {use(cluster):8.3f}")
    found = {}
    for name, scope, effort, most_copied in (
        ("Longhorn, least effort", "volume", "least-effort", None),
        ("Longhorn, best effort", "volume", "best-effort", None),
        ("all volumes, least effort", "cluster", "least-effort", None),
        ("all volumes, best effort", "cluster", "best-effort", None),
        ("all volumes, least effort, up to a quarter copied", "cluster", "least-effort", 0.25),
        ("all volumes, best effort, up to a quarter copied", "cluster", "best-effort", 0.25),
    ):
        result, seconds = solved(cluster, scope, effort, most_copied)
        found[name] = result
        moved = result.comparison
        tell(
            f"  {name:50} {use(result):8.3f} {moved.bytes_moved / GIB:11,.0f} {moved.moves:6,} "
            f"{result.audit.soft:6,} {seconds:7.3f}"
        )
        assert result.audit.hard == 0
    theirs = found["Longhorn, best effort"]
    ours = found["all volumes, best effort"]
    assert ours.comparison.bytes_moved < theirs.comparison.bytes_moved
    assert use(ours) < use(theirs)
    assert ours.audit.soft <= theirs.audit.soft
