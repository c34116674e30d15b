"""What is asked of plans, row by row: ``python -m bench.plans ROW [COUNT [FIRST SEED]]``.

Seconds are CPU time of the process; a failure is reported with its seed and counted.
"""

import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable

import numpy as np

import evenkeel as ek
from evenkeel.planning import schedule as schedule
from evenkeel.planning.replay import replay
from tests.naive.planning.orders import least_bytes
from tests.naive.planning.replay import replay as plain_replay
from tests.planning.test_benefit import OBVIOUS
from tests.planning.test_campaigns import asked, halfway, judged, planned
from tests.support.instances import as_cluster, generate
from tests.support.plans.one_by_one import rows_of, steps_of
from tests.support.plans.random_plans import tampered
from tests.support.plans.skewed_sizes import just_expanded
from tests.support.plans.tight_clusters import circles, tiny, tiny_rows

Found = Counter[str]


def safe(seed: int, found: Found) -> None:
    """A full cluster with rules, disks and transient dimensions; the plain replay agrees."""
    cluster, plan = planned(seed)
    report = plan.check()
    assert report.ok, str(report)
    assert report.end == "target" or plan.blocked
    found["complete"] += plan.complete
    found["transient"] += bool(cluster.transient.any() and len(plan))
    found["of disks that share a host"] += bool(cluster.topology.tier_capacity and len(plan))
    assert not plain_replay(cluster, plan.steps, **asked(plan))


def blocked(seed: int, found: Found) -> None:
    """A tiny one, against every order with one hop."""
    cluster, target = tiny(seed)
    _against_orders(found, cluster, target, "plain", ())


def blocked_rows(seed: int, found: Found) -> None:
    """A tiny one with several replicas a partition."""
    cluster, target, apart, protocol = tiny_rows(seed)
    _against_orders(found, cluster, target, protocol, apart)


def _against_orders(found, cluster, target, protocol, apart) -> None:
    plan = ek.plan(cluster, target, protocol=protocol)
    assert plan.check().ok
    least = least_bytes(cluster, plan.target, tiers=apart)
    found["no order"] += least is None
    assert plan.complete == (least is not None), "blocked" if plan.blocked else "not blocked"
    if least is not None:
        found["extra"] += plan.bytes > least
        assert plan.bytes <= least * 1.2, plan.bytes / least


def cycles(seed: int, found: Found) -> None:
    """Swaps on full nodes; extra bytes against the least where they are few."""
    cluster, target = circles(seed)
    plan = ek.plan(cluster, target)
    assert plan.check().ok
    found["complete"] += plan.complete
    if len(cluster.partitions) > 6:
        return
    least = least_bytes(cluster, plan.target)
    found["small"] += 1
    found["small, no order"] += least is None
    assert plan.complete == (least is not None)
    if least is not None:
        moved = cluster.placement.node != plan.target.node
        direct = float(cluster.partitions.load.voter[moved, 0].sum())
        assert plan.bytes - direct <= 1.2 * (least - direct)


def deaths(seed: int, found: Found) -> None:
    """A node dies at a random instant."""
    _, plan, observed, serving = halfway(seed)
    late, useful = judged(plan.resume(observed), observed, serving, seed)
    found["copies that go on late"] += late
    found["copies in flight"] += useful


def merges(seed: int, found: Found) -> None:
    """The target changes at a random instant."""
    rng, plan, observed, serving = halfway(seed)
    node = np.where(rng.random(len(serving)) < 0.5, plan.target.node, serving)
    node = np.where(observed.nodes.alive[node], node, plan.cluster.placement.node)
    target = plan.target.replaced(node.astype(np.int32), plan.target.leader)
    judged(plan.merge(target, observed=observed), observed, serving, seed)


def undos(seed: int, found: Found) -> None:
    """A random prefix and back: bit for bit where nothing is blocked."""
    cluster, plan = planned(seed)
    begun = plan.prefix(int(np.random.default_rng(seed).integers(len(plan) + 1)))
    assert begun.check().ok
    undone = begun.undo()
    assert undone.check().ok
    found["back"] += undone.complete
    if undone.complete:
        for name in ("first", "node", "role", "flags", "leader"):
            assert np.array_equal(getattr(cluster.placement, name), getattr(undone.end, name)), name


def tampers(seed: int, found: Found) -> None:
    """One step is tampered with; the plain replay says whether that does harm."""
    cluster, plan = planned(seed)
    if not 0 < len(plan) <= 80:
        found["passed over"] += 1
        return
    way, rows = tampered(np.random.default_rng([seed, 7]), rows_of(plan.steps), len(cluster.nodes))
    steps, given = steps_of(rows), asked(plan)
    kinds = {one.kind for one in replay(cluster, steps, **given).breaches}
    plain = {kind for kind, _ in plain_replay(cluster, steps, **given)}
    found["harmful"] += bool(plain)
    assert kinds == plain, way


THROTTLES = {
    "none": {}, "one in, one out": {"node_in": 1, "node_out": 1}, "two in": {"node_in": 2},
    "cluster 50": {"copies": 50},
    "bandwidth": {"node_bandwidth": 1e3}, "both": {"node_bandwidth": 1e3, "node_in": 2},
}  # fmt: skip


def headline(seed: int = 1) -> tuple[ek.Cluster, ek.Result]:
    """The headline cluster, balanced to 1.04."""
    cluster = as_cluster(generate(25_000, 300, 10, seed=seed)).replace(bytes="d1")
    return cluster, ek.solve(cluster, goals=ek.Goals(level=0.04))


def makespan(seed: int, found: Found) -> None:
    """The headline cluster with each throttle."""
    _, answer = headline(seed)
    for name, given in list(THROTTLES.items())[1:]:
        plan = answer.plan(throttle=ek.Throttle(**given))
        ratio = plan.makespan / plan.bound.seconds
        print(f"  seed {seed}, {name}: {ratio:.4f} of {plan.copies:,} copies")
        assert plan.check().ok, name
        assert ratio <= 1.05, (name, ratio)


def skewed(seed: int, found: Found) -> None:
    """Pareto sizes, with bandwidths and slots."""
    one = just_expanded(seed)
    plan = one.answer.plan(throttle=one.throttle, protocol=one.protocol)
    assert plan.check().ok
    ratio = plan.makespan / plan.bound.seconds if plan.bound.seconds else 1.0
    found["ppm over the bound"] = max(found["ppm over the bound"], int(1e6 * (ratio - 1.0)))
    assert ratio <= 1.15, ratio


def area(seed: int, found: Found) -> None:
    """The area under the curve against 200 random orders and the obvious ones."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(200, 1500)), int(rng.integers(20, 60)), 4
    cluster = as_cluster(generate(*shape, seed=seed, util=float(rng.uniform(0.6, 0.9))))
    cluster = cluster.replace(bytes="d1")
    result = ek.solve(cluster, goals=ek.Goals(level=0.04), work_limit=200_000)
    mine, own = ek.plan(cluster, result).curve().area, schedule.ranks

    def other(key: Callable) -> float:
        def ranks(cluster, actions, copies, effects, throttle, previous):
            order = np.argsort(key(cluster, actions, copies, len(previous)), kind="stable")
            first = np.searchsorted(actions.change, order)
            danger = schedule.dangers(cluster)[actions.partition[first]]
            last = order[np.argsort(danger, kind="stable")].astype(np.int32)
            return last, np.zeros(len(previous), np.int64)

        schedule.ranks = ranks
        try:
            return ek.plan(cluster, result).curve().area
        finally:
            schedule.ranks = own

    named = {name: other(key) for name, key in OBVIOUS.items()}
    drawn = min(other(lambda *given: rng.permutation(given[-1])) for _ in range(200))
    best = min(drawn, *named.values())
    found["worst, per mille of the best other"] = max(
        found["worst, per mille of the best other"], int(1e3 * mine / best)
    )
    assert mine <= named["largest first"] * (1.0 + 1e-9), "largest first"
    assert mine <= 1.1 * best, mine / best


def timed(work: Callable[[], object], rounds: int = 3) -> tuple[float, object]:
    """Return the least CPU seconds of some rounds, and what came of the last."""
    least, made = np.inf, None
    for _ in range(rounds):
        begin = time.process_time()
        made = work()
        least = min(least, time.process_time() - begin)
    return least, made


def speed(seed: int, found: Found) -> None:
    """Plan and check of the headline cluster."""
    _, answer = headline(seed)
    for name, given in THROTTLES.items():
        throttle = ek.Throttle(**given)
        one, plan = timed(lambda throttle=throttle: answer.plan(throttle=throttle), 7)
        two, _ = timed(lambda plan=plan: plan.check(), 7)
        print(
            f"  {name}: {plan.copies:,} copies, plan {1e3 * one:.1f} ms, check {1e3 * two:.1f} ms"
        )


def shifted(partitions: int, nodes: int, moves: int, *, ruled: bool = True):
    """Return a cluster of three replicas, and a target in which so many have moved."""
    rng = np.random.default_rng(1)
    zones = 10
    third = nodes // zones
    zone = np.arange(nodes) % zones
    drawn = np.argsort(rng.random((partitions, zones)), axis=1)[:, :4]
    at = rng.integers(0, third, (partitions, 4)) * zones + drawn
    node = at[:, :3].copy()
    size = rng.uniform(0.5, 1.5, partitions)
    load = np.stack([size, rng.uniform(0.5, 1.5, partitions)], 1)
    some = np.arange(moves) % partitions
    slot = np.arange(moves) // partitions
    after = node.copy()
    # a node of the same zone: rules are kept whatever moves first
    after[some, slot] = (node[some, slot] + zones * rng.integers(1, third, moves)) % nodes
    fullest = max(np.bincount(one.ravel(), np.repeat(load.max(1), 3), nodes).max()
                  for one in (node, after))  # fmt: skip
    given = {"domains": {"zone": [f"z{z}" for z in zone]}}
    if ruled:
        given["spread"] = {"zone": 1}
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((nodes, 2), 1.1 * fullest), load=load, placement=node,
        dimensions=["disk", "cpu"], bytes="disk", transient=["disk"], **given,
    )  # fmt: skip
    target = cluster.placement.replaced(
        after.reshape(-1).astype(np.int32), cluster.placement.leader
    )
    return cluster, target


def scale(partitions: int, nodes: int, moves: int, rounds: int = 1) -> None:
    """Print CPU time and peak memory of a plan and its check."""
    cluster, target = shifted(partitions, nodes, moves)
    one, plan = timed(lambda: ek.plan(cluster, target), rounds)
    two, report = timed(plan.check, rounds)
    print(f"  {plan.copies:,} copies: plan {one:.2f} s, check {two:.2f} s, {report.ok}")


def memory(partitions: int, nodes: int, moves: int) -> None:
    """Print the peak of traced memory of plan and check over that of the cluster."""
    # kernels and modules that are loaded for the first time are no part of it
    ek.plan(*shifted(1_000, 100, 1_000)).check()
    tracemalloc.start()
    cluster, target = shifted(partitions, nodes, moves)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    plan = ek.plan(cluster, target)
    now, peak = (one - held for one in tracemalloc.get_traced_memory())
    tracemalloc.reset_peak()
    plan.check()
    checked = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    print(f"  cluster and target {held / 1e6:.0f} MB; on top of that plan {peak / held:.2f} times, "
          f"of which it keeps {now / held:.2f}, check {checked / held:.2f} times")  # fmt: skip


def growth(seed: int, found: Found) -> None:
    """Nothing to do, one move, and many with and without a rule."""
    cluster, target = shifted(100_000, 1_000, 1)
    for name, aim in (("idle", cluster.placement), ("one move", target)):
        least, _ = timed(lambda aim=aim: ek.plan(cluster, aim).check(), 5)
        print(f"  100,000 x 3, {name}: {1e3 * least:.1f} ms")
    for moves in (31_250, 62_500, 125_000, 250_000):
        for ruled in (False, True):
            cluster, target = shifted(moves, 1_000, moves, ruled=ruled)
            least, _ = timed(lambda c=cluster, t=target: ek.plan(c, t).check(), 2)
            print(f"  {moves:,} moves, {'one rule' if ruled else 'no rule'}: {least:.2f} s")


ROWS: dict[str, Callable[[int, Found], None]] = {
    one.__name__: one
    for one in (safe, blocked, blocked_rows, cycles, deaths, merges, undos, tampers, makespan,
                skewed, area, speed, growth)
}  # fmt: skip
SIZES = {
    "large": (100_000, 1_000, 100_000), "huge": (1_000_000, 10_000, 1_000_000),
}  # fmt: skip


def main(row: str, count: int = 1, first: int = 1) -> None:
    """Run a row over so many seeds."""
    began = time.process_time()
    if row.removesuffix("-memory") in SIZES:
        size = SIZES[row.removesuffix("-memory")]
        (memory if row.endswith("-memory") else scale)(*size)
        return
    found: Found = Counter()
    for seed in range(first, first + count):
        try:
            ROWS[row](seed, found)
        except AssertionError as failed:
            found["FAILED"] += 1
            print(f"  {row}, seed {seed}: {str(failed).splitlines()[0] if str(failed) else ''}")
        except Exception as failed:
            found["CRASHED"] += 1
            print(f"  {row}, seed {seed}: {failed!r}")
    print(f"{row}: seeds {first} to {first + count - 1}, {dict(found)}, "
          f"{time.process_time() - began:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
