"""The CRUSH family: Helix's strategies, Ceph's mappings, and Ceph's devices balanced by pairs."""

from dataclasses import replace

import numpy as np
import pytest

from bench.support.ceph_maps import regular
from evenkeel.systems.ceph.crush.method import balance
from evenkeel.systems.ceph.crush.placement import Pool
from evenkeel.systems.helix.crush.method import crushed
from evenkeel.systems.helix.crush.tree import HashedNames, Tree, crush, multiround

STATES = [1, 2]
# partitions, nodes, zones, nodes down, and the strategy
STRATEGIES = {
    "CRUSH-ed": (10_100, 100, 5, 0, lambda *given: crushed(*given, "group")),
    "CRUSH-ed, 5 nodes down": (10_100, 100, 5, 5, lambda *given: crushed(*given, "group")),
    "MultiRoundCRUSH": (10_100, 100, 5, 0, multiround),
    "CRUSH": (100_000, 1_000, 20, 0, crush),
}
MAPS = {"5 x 4 x 5": (5, 4, 5), "10 x 10 x 10": (10, 10, 10)}
POOLS = {"100": ((5, 4, 5, "host", 4), 4_096), "1,000": ((10, 10, 10, "host", 4), 32_768)}


def named(partitions, nodes, zones, down=0):
    """Names with their hashes, and a tree of equal nodes."""
    names = HashedNames.of([f"group_{p}" for p in range(partitions)])
    tree = Tree.of(
        [f"host-{n:04d}" for n in range(nodes)],
        [f"zone-{n % zones}" for n in range(nodes)],
        live=np.arange(nodes) >= down,
    )
    return names, tree


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.benchmark(group="crush")
def test_strategy(benchmark, name):
    """Names already hashed, as in a caller that places again and again."""
    partitions, nodes, zones, down, strategy = STRATEGIES[name]
    names, tree = named(partitions, nodes, zones, down)
    found = benchmark.pedantic(strategy, (names, tree, STATES), rounds=15, warmup_rounds=2)
    title = f"Helix's {name}: {partitions:,} x 3 on {nodes:,} nodes in {zones} zones"
    benchmark.extra_info |= {"title": title, "items": partitions, "unit": "partitions"}
    placed = getattr(found, "placed", found)
    assert placed.shape == (partitions, 3)
    assert tree.live[placed].all()


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.benchmark(group="ceph")
def test_mappings(benchmark, name):
    crush_map = regular(*MAPS[name])
    seeds = np.arange(100_000)
    mapped = benchmark.pedantic(crush_map.map, (0, seeds, 3), rounds=15, warmup_rounds=2)
    title = f"Ceph's CRUSH, firstn of 3 over racks: {crush_map.devices:,} devices, {name}"
    benchmark.extra_info |= {"title": title, "items": len(seeds), "unit": "mappings"}
    assert (mapped.length == 3).all()


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.benchmark(group="ceph")
def test_upmap(benchmark, name):
    sizes, groups = POOLS[name]
    crush_map = regular(*sizes)
    pool = replace(Pool(1, 1, 3, 0), pg_num=groups)
    found = benchmark.pedantic(balance, (crush_map, pool), rounds=5, warmup_rounds=1)
    title = f"`ceph_upmap`: {groups:,} groups x 3 on {name} unlike devices, to within one replica"
    benchmark.extra_info |= {"title": title, "moves": found.moves}
    assert found.after.deviation <= 1.0
    assert found.broken.size == 0
