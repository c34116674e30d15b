"""Auto-balance to the end: as the plain rule does it, safe at every step, then at rest."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.systems.longhorn.auto_balance.settings import Longhorn
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance, nodes_in_slots
from tests.naive.longhorn.auto_balance import World, told
from tests.support.longhorn.aftermath import cluster_after
from tests.support.longhorn.systems import plain, random_system, soft

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from([{"rough": True}, {"rough": False}, {"rough": False, "pressed": True}])


@pytest.mark.small
@given(seeds, kinds)
def test_a_run_does_what_the_plain_rule_does(seed, kind):
    cluster, options = random_system(seed, **kind)
    assert told(AutoBalance(cluster, options).run()) == World(cluster, options).run()


@pytest.mark.small
@pytest.mark.parametrize(
    "start",
    [{"a": 0}, {"a": 1}, {"a": 5}, {"a": 2, "b": 2, "c": 2}, {"a": 3, "b": 0, "c": 0, "d": 0}],
)
@pytest.mark.parametrize("zones", [("", "", "", ""), ("x", "x", "y", "y")])
def test_ties_and_lone_hosts_are_as_in_the_plain_rule(start, zones):
    cluster = plain(dict(zip(start, zones, strict=False)), start, settings=soft())
    assert told(AutoBalance(cluster).run()) == World(cluster).run()


def healthy_at_first(cluster):
    serving = cluster.native.replicas.healthy & cluster.native.replicas.active
    serving &= cluster.placement.node >= 0
    return np.bincount(cluster.placement.owner[serving], minlength=len(cluster.partitions))


@given(seeds, kinds)
def test_no_volume_ever_has_fewer_than_it_had_or_wants(seed, kind):
    cluster, options = random_system(seed, **kind)
    replicas, placement = cluster.native.replicas, cluster.placement
    there = {
        (int(placement.owner[k]), replicas.names[k]): (
            cluster.nodes.names[node],
            replicas.healthy[k],
        )
        for k, node in enumerate(placement.node)
        if node >= 0
    }
    active = {
        (int(placement.owner[k]), name)
        for k, name in enumerate(replicas.names)
        if replicas.active[k]
    }
    least = np.minimum(healthy_at_first(cluster), cluster.partitions.replicas)
    for kind_of, volume, replica, disk, _ in AutoBalance(cluster, options).run().rows():
        key = (cluster.partitions.names.index(volume), replica)
        if kind_of == "add":
            assert key not in there
            there[key] = disk, True
            active.add(key)
        else:
            where, was_healthy = there.pop(key)
            assert where == disk
            assert was_healthy == (kind_of == "delete")
        serving = Counter(
            v for (v, name), (_, well) in there.items() if well and (v, name) in active
        )
        assert all(serving[v] >= least[v] for v in range(len(least)))


@given(seeds, kinds)
def test_what_a_run_leaves_behind_is_at_rest(seed, kind):
    cluster, options = random_system(seed, **kind)
    work = AutoBalance(cluster, options)
    work.run()
    after = cluster_after(work)
    assert len(AutoBalance(after, options).run()) == 0
    names = [name for name in after.native.replicas.names if name]
    assert len(names) == len(set(names))
    assert Counter(after.placement.node[after.placement.node >= 0].tolist()) == Counter(
        work.bundle.state.node[work.bundle.state.node >= 0].tolist()
    )


@given(seeds, kinds)
def test_few_replicas_are_added(seed, kind):
    cluster, options = random_system(seed, **kind)
    log = AutoBalance(cluster, options).run()
    added = np.bincount(log.volume[log.kind == 1], minlength=len(cluster.partitions))
    wanted = cluster.partitions.replicas.astype(np.int64)
    pressed = cluster.native.settings.replica_auto_balance_disk_pressure_percentage > 0
    disks = len(cluster.nodes)
    # a missing replica is added once; then zones, hosts, and squares of counts only get better
    assert (added <= (wanted + (wanted**2 + 2 * wanted) * (1 + pressed * disks))).all()


@given(seeds)
def test_best_effort_ends_with_hosts_level(seed):
    rng = np.random.default_rng(seed)
    hosts = [f"h{h}" for h in range(int(rng.integers(1, 6)))]
    zones = dict.fromkeys(hosts, "z")
    start = {host: int(rng.integers(0, 6)) for host in hosts}
    order = ("node-then-zone", "zone-then-node")[int(rng.integers(2))]
    work = AutoBalance(plain(zones, start, settings=soft()), Longhorn(order=order))
    work.run()
    state = work.bundle.state
    count = np.bincount(state.node[state.node >= 0], minlength=len(hosts))
    assert count.max() - count.min() < 2
    assert len(work.log) == 2 * int(np.maximum(count - list(start.values()), 0).sum())


@given(seeds)
def test_least_effort_reaches_every_zone_and_host_it_can(seed):
    rng = np.random.default_rng(seed)
    zones = {f"h{h}": str(rng.choice(["x", "y", "z"])) for h in range(int(rng.integers(1, 6)))}
    start = {host: int(rng.integers(0, 4)) for host in zones}
    work = AutoBalance(plain(zones, start, settings=soft("least-effort")))
    work.run()
    state, total = work.bundle.state, sum(start.values())
    held = state.node[state.node >= 0]
    assert len(set(held.tolist())) == min(total, len(zones))
    assert len(set(work.bundle.problem.zone[held].tolist())) == min(total, len(set(zones.values())))


@given(seeds, kinds, st.integers(1, 5), st.integers(1, 200))
def test_the_same_input_gives_the_same_log_in_slices_of_any_size(seed, kind, most, budget):
    cluster, options = random_system(seed, **kind)
    whole, parts = AutoBalance(cluster, options), AutoBalance(cluster, options)
    whole.run()
    while not parts.slice(budget, most):
        pass
    np.testing.assert_array_equal(whole.log.entries, parts.log.entries)
    np.testing.assert_array_equal(nodes_in_slots(whole)[0], nodes_in_slots(parts)[0])


@given(seeds, kinds)
def test_steps_and_explanations_are_those_of_the_run(seed, kind):
    cluster, options = random_system(seed, **kind)
    log = AutoBalance(cluster, options).run()
    steps = AutoBalance(cluster, options)
    for i, (kind_of, volume, replica, disk, _) in enumerate(log.rows()):
        found = steps.step(volume)
        assert (found.kind, found.replica, found.disk) == (kind_of, replica, disk)
        if kind_of == "add":
            assert disk in found.candidates
            assert found.scores[disk.partition("/")[0]] == min(found.scores.values())
        elif kind_of == "delete":
            assert replica in found.candidates
        if i < 3:
            assert log.explain(i) == found
    for v in range(len(cluster.partitions)):
        rest = steps.next_action(v)
        assert rest.kind == "nothing"
        assert rest.why
        assert str(rest)


@given(seeds, kinds)
def test_slots_hold_what_stands_at_the_end(seed, kind):
    cluster, options = random_system(seed, **kind)
    work = AutoBalance(cluster, options)
    work.run()
    node, left_over = nodes_in_slots(work)
    state, before = work.bundle.state, cluster.placement
    total = Counter(zip(state.owner[state.node >= 0], state.node[state.node >= 0], strict=True))
    held = Counter(zip(before.owner[node >= 0], node[node >= 0], strict=True))
    assert held <= total
    assert (total - held).total() == left_over
    gone = work.log.replica[(work.log.kind > 1) & (work.log.replica >= 0)]
    stays = np.setdiff1d(np.flatnonzero(before.node >= 0), gone)
    np.testing.assert_array_equal(node[stays], before.node[stays])
