"""The experiments of the CRUSH-ed text on its own cluster: how even, and what moves beyond need."""

import time

import pytest

import evenkeel as ek
from bench.experiments import crush
from bench.experiments.crush import Layout

pytestmark = pytest.mark.quality

METHODS = {
    "helix_crush": ("helix_crush", None),
    "helix_multiround": ("helix_multiround", None),
    "helix_crushed": ("helix_crushed", None),
    "helix_crushed, repaired": ("helix_crushed", ek.options.Crushed(repaired=True)),
}
# replicas and leaders on a node; the first as the original has them on its own names
PROMISED = {
    "helix_crushed": ((519, 526), (170, 176)),
    "helix_crushed, repaired": ((520, 522), (173, 175)),
}
TITLE = (
    f"{'30,720 replicas on 59 nodes in 5 zones':24} {'replicas':>16} {'leaders':>12} {'extra':>6}"
)


def place(name):
    """The method, as the experiments take it."""
    method, options = METHODS[name]
    goals = ek.Goals(level=None)
    return lambda cluster: ek.solve(cluster, method, options=options, goals=goals).placement


@pytest.mark.parametrize("name", METHODS)
def test_seed_experiment(name, tell):
    if name == next(iter(METHODS)):
        tell(TITLE)
    started = time.thread_time()
    even = crush.distribution(place(name), Layout()).rows[0]
    down = crush.nodes_down(place(name), Layout(), 7, 3).rows
    zone = crush.zone_down(place(name), Layout()).rows
    seconds = time.thread_time() - started
    extra = sum(row.extra for row in (*down, *zone))
    tell(
        f"{name:38} {even.least:8,.0f}-{even.most:,.0f} {even.leaders_least:7,.0f}-"
        f"{even.leaders_most:,.0f} {extra:6,} {seconds:7.2f} CPU s"
    )
    if name in PROMISED:
        (least, most), (fewest, greatest) = PROMISED[name]
        assert least <= even.least <= even.most <= most
        assert fewest <= even.leaders_least <= even.leaders_most <= greatest
    if "repaired" in name:
        assert extra == 0
