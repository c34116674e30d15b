"""Which of 300 nodes may go: seconds, and how many nodes the answer is above the bound."""

import pytest

import evenkeel as ek
from tests.support.instances import as_cluster, generate

# partitions of three replicas, and how full the cluster is
CLUSTERS = (25_000, 0.5), (25_000, 0.7), (5_000, 0.4)

ASKED = (
    {"at_most": 0.85},
    {"at_most": 0.85, "survive": "node"},
    {"at_most": 0.9, "survive": "zone", "after_loss": 1.0},
)


@pytest.mark.benchmark(group="size")
@pytest.mark.parametrize("asked", ASKED, ids=["nothing", "node", "zone"])
@pytest.mark.parametrize(("partitions", "full"), CLUSTERS)
def test_which_of_300_nodes_may_go(benchmark, tell, partitions, full, asked):
    cluster = as_cluster(generate(P=partitions, N=300, Z=10, seed=1, util=full, frac_dead=0.01))
    found = benchmark.pedantic(
        lambda: ek.size(cluster, shrink=True, **asked), rounds=3, warmup_rounds=1
    )
    gap = found.price - found.price_at_least
    tell(
        f"{partitions:,} x 3 on 300 nodes, {full:.0%} full, loss of {asked.get('survive', '')}: "
        f"{benchmark.stats.stats.min:.1f} s, {found.price:g} stay, {gap:g} above the bound"
    )
    assert gap <= 1.0
