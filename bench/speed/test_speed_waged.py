"""WAGED in its scopes, as a pipeline calls it, and its fit against one in NumPy.

The clusters are like those on which the original was timed: whole weights and capacities, most of
it in one dimension, five sizes of node, 25 groups. `extra_info` has the three steps of a run.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import evenkeel as ek
from bench.gates.test_gates import gate  # noqa: F401  a fixture
from bench.support.contest import Contender
from evenkeel.methods.run import run_method
from evenkeel.model.assignment import Assignment
from evenkeel.systems.helix import waged as fitting
from evenkeel.systems.helix.waged import (
    Preference,
    Scope,
    Task,
    model_of,
    nothing,
    placing_order,
    prepare,
    run_nodes,
)
from evenkeel_kernels.helix.waged import LOWEST, PART_HIGH, PART_LOW, WHOLE_HIGH, WHOLE_LOW, fit

ZONES, GROUPS, REPLICAS = 10, 25, 3
# partitions, each of three replicas, and nodes
SIZES = [(8_344, 300), (8_344, 1_000), (25_000, 300), (25_000, 1_000)]

sized = pytest.mark.parametrize(("partitions", "nodes"), SIZES)


@cache
def cluster_of(partitions, nodes, seed=1):
    """An empty cluster that will be full to 62 %."""
    random = np.random.default_rng(seed)
    size = random.choice([1.0, 1.5, 2.0, 3.0, 4.0], nodes)
    capacity = np.outer(size, [100_000, 400_000, 200_000])
    weight = random.lognormal(0.0, 0.6, (partitions, 3))
    weight *= capacity.sum(axis=0) * [0.62, 0.43, 0.5] / REPLICAS / weight.sum(axis=0)
    group = np.arange(partitions) % GROUPS
    return ek.Cluster.from_arrays(
        capacity=np.floor(capacity),
        load=np.maximum(np.floor(weight), 1.0),
        dimensions=("CU", "DISK", "MEM"),
        domains={"zone": [f"z{n % ZONES}" for n in range(nodes)]},
        spread={"zone": 1},
        replicas=REPLICAS,
        min_active=REPLICAS - 1,
        node_names=[f"h{n:04d}" for n in range(nodes)],
        partition_names=[f"Res{p % GROUPS}_{p // GROUPS}" for p in range(partitions)],
        group=group,
        group_names=[f"Res{g}" for g in range(GROUPS)],
    )


def run(cluster, **options):
    """Run one scope."""
    given = ek.options.Waged(**options)
    return run_method("helix_waged", cluster, options=given).outcome


@cache
def baseline(partitions, nodes):
    """Everything placed from empty."""
    cluster = cluster_of(partitions, nodes)
    return run(cluster, current=nothing(partitions), changes=("nodes",)).native


@cache
def without_some(partitions, nodes):
    """The cluster with a twentieth of its nodes down for good."""
    cluster = cluster_of(partitions, nodes)
    down = np.zeros(nodes, np.bool_)
    down[np.random.default_rng(3).choice(nodes, nodes // 20, replace=False)] = True
    return replace(cluster, nodes=replace(cluster.nodes, alive=~down, keeps=~down))


def timed(benchmark, title, cluster, rounds, **options):
    outcome = benchmark.pedantic(
        run, (cluster,), options, rounds=rounds, iterations=1, warmup_rounds=2
    )
    benchmark.extra_info |= {"title": title, "message": outcome.message}
    benchmark.extra_info |= {name: round(s * 1e3, 2) for name, s in outcome.timings.items()}
    return outcome


@sized
@pytest.mark.benchmark(group="waged global")
def test_global(benchmark, partitions, nodes):
    title = f"WAGED baseline from empty: {partitions:,} x {REPLICAS} on {nodes:,} nodes"
    cluster = cluster_of(partitions, nodes)
    outcome = timed(benchmark, title, cluster, 5, current=nothing(partitions), changes=("nodes",))
    assert len(outcome.native.node) == partitions * REPLICAS


@sized
@pytest.mark.parametrize("scope", ["emergency", "partial", "overwrite"])
@pytest.mark.benchmark(group="waged after a loss")
def test_after_a_loss(benchmark, partitions, nodes, scope):
    before = baseline(partitions, nodes)
    title = f"WAGED {scope}, 5 % of the nodes down: {partitions:,} x {REPLICAS} on {nodes:,} nodes"
    cluster = without_some(partitions, nodes)
    outcome = timed(benchmark, title, cluster, 20, scope=scope, current=before, baseline=before)
    assert outcome.native is not None


@pytest.mark.benchmark(group="waged partial")
def test_partial_at_60_percent_divergence(benchmark):
    """The founding text's own complaint: 15,000 of 25,000 replicas on 300 nodes."""
    partitions, nodes = SIZES[0]
    cluster = cluster_of(partitions, nodes)
    meant = baseline(partitions, nodes)
    loads = cluster.partitions.load.voter[np.random.default_rng(9).permutation(partitions)]
    same = replace(cluster.partitions.load, leader=loads, voter=loads, non_voter=loads)
    other = replace(cluster, partitions=replace(cluster.partitions, load=same))
    away = run(other, current=nothing(partitions), changes=("nodes",)).native
    current = crossed(meant, away, np.random.default_rng(4).random(partitions) < 0.605)
    title = "WAGED partial at 60 % divergence: 25,032 replicas on 300 nodes"
    outcome = timed(benchmark, title, cluster, 20, scope="partial", current=current, baseline=meant)
    assert 14_900 < outcome.work // nodes < 15_100


def crossed(one, other, some):
    """An assignment with some partitions of another."""
    mine, theirs = ~some[one.owner], some[other.owner]
    return Assignment.of_rows(
        len(one),
        np.concatenate([one.owner[mine], other.owner[theirs]]),
        np.concatenate([one.node[mine], other.node[theirs]]),
        np.concatenate([one.state[mine], other.state[theirs]]),
    )


def sigmoid(usage):
    """The curve, for all nodes at once."""
    x = (usage - 1.0) * 44.0
    whole = x.astype(np.int32) - (x < 0.0)
    part = ((x - whole) * 1024.0).astype(np.int32)
    rest = x - (whole + part / 1024.0)
    z = 0.04168701738764507
    for c in (0.1666666505023083, 0.5000000000042687, 1.0, -3.940510424527919e-20):
        z = z * rest + c
    a, b, c, d = (
        WHOLE_HIGH[whole - LOWEST],
        WHOLE_LOW[whole - LOWEST],
        PART_HIGH[part],
        PART_LOW[part],
    )
    low, high = a * d + b * c + b * d, a * c
    return 1.0 / (1.0 + ((low + high) * z + low + high))


def fit_in_numpy(begun, owner, role):
    """Place replicas one by one, each by a vectorised score of all nodes: the node of each."""
    nodes, terms, count = begun.nodes, begun.terms, len(begun.names)
    used, used_top = np.zeros_like(nodes.capacity), np.zeros_like(nodes.capacity)
    replicas, of_group = np.zeros(count), np.zeros((len(terms.group_count), count))
    taken = np.zeros((len(begun.partitions.group), nodes.zone.max() + 1), np.bool_)
    chosen = np.empty(len(owner), np.int64)
    for at, (p, s) in enumerate(zip(owner.tolist(), role.tolist(), strict=True)):
        weight = begun.partitions.weight[p].astype(np.float32)[:, np.newaxis]
        g = begun.partitions.group[p]
        score = terms.weight[2] * sigmoid(replicas / terms.replicas)
        score += terms.weight[3] * sigmoid(of_group[g] / terms.group_count[g])
        top = ((used_top + weight) / nodes.capacity).max(axis=0).astype(np.float64)
        score += terms.weight[4] * sigmoid(top / terms.usage_top if s == 0 else np.zeros(count))
        usage = ((used + weight) / nodes.capacity).max(axis=0).astype(np.float64)
        score += terms.weight[5] * sigmoid(usage / terms.usage)
        score[taken[p][nodes.zone] | (used + weight > nodes.capacity).any(axis=0)] = -1.0
        n = chosen[at] = score.argmax()
        used[:, n] += weight[:, 0]
        used_top[:, n] += weight[:, 0] * (s == 0)
        replicas[n] += 1
        of_group[g, n] += 1
        taken[p, nodes.zone[n]] = True
    return chosen


@pytest.mark.gate
def test_fit(gate):  # noqa: F811
    """Against a vectorised score of all nodes for every replica, to the last bit."""
    partitions, nodes = 1_000, 300
    model = model_of(cluster_of(partitions, nodes), ek.options.Waged())
    every = run_nodes(cluster_of(partitions, nodes).nodes, Scope.GLOBAL)
    task = Task(Scope.GLOBAL, every, nothing(partitions), None, np.ones(partitions, np.bool_))
    prepared = prepare(model, task)
    known = np.zeros(GROUPS, np.bool_)
    owner, role = placing_order(
        model, every, prepared.estimates, prepared.found.place, known, known
    )

    def begun():
        return fitting.begin(
            model, prepared.names, prepared.estimates, Preference(), prepared.found,
            prepared.current, prepared.baseline,
        )  # fmt: skip

    def ours(one):
        given = (one.nodes, one.partitions, one.terms, one.state)
        return fit(*given, owner, role, 0, len(owner))

    mine, chosen = begun(), fit_in_numpy(begun(), owner, role)
    assert ours(mine) == len(owner)
    first = mine.partitions.row_first[:-1]
    theirs = [[] for _ in range(partitions)]
    for p, n in zip(owner.tolist(), chosen.tolist(), strict=True):
        theirs[p].append(n)
    rows = [mine.state.row_node[f : f + REPLICAS].tolist() for f in first.tolist()]
    assert rows == theirs
    gate(
        "waged_fit",
        Contender(ours, lambda: (begun(),)),
        Contender(fit_in_numpy, lambda: (begun(), owner, role)),
        rounds=5,
    )
