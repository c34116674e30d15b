"""Scenarios of CockroachDB's simulator in which load lies unevenly.

Stores are numbered from 0 here and from 1 in names and texts. Where the source gives no size, a
range has 8 MiB.

References
----------
CockroachDB, pkg/kv/kvserver/asim/tests/testdata/non_rand and its folder mma.
"""

from dataclasses import replace

from bench.scenarios.cockroach_repairs import HOST
from bench.scenarios.layouts import GIB, Ranges, Stores, cluster_of
from evenkeel.model.goals import Goals
from evenkeel.model.rules import Rule
from evenkeel.simulate.engine.checks import AtMost, Conforms, Steady, Within
from evenkeel.simulate.engine.checks import Balance as Even
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.events import SplitBusy

CPU = Goals(level={"cpu": 0.05})
BOTH = Goals(level={"cpu": 0.05, "write": 0.05})
FREE = [Rule(spread=HOST)]


def rebalancing(gossip_delay: float = 0.5) -> Scenario:
    """Seven ranges with equal load lie on few of seven nodes."""
    ranges = Ranges(
        count=7,
        skewed=([7, 6, 3, 2, 1, 1, 1], [4, 2, 0, 0, 0, 1, 0]),
        rate=7000.0,
        reads=0.95,
        block=192.0,
    )
    cluster, environment = cluster_of(Stores(7), [ranges], FREE)
    late = gossip_delay > 1.0
    return Scenario(
        name=f"rebalancing, gossip {gossip_delay:g} s late" if late else "rebalancing",
        cluster=cluster,
        environment=replace(environment, gossip_delay=gossip_delay),
        minutes=5.0 if late else 3.0,
        goals=Goals(level={"qps": 0.05}),
        checks=[Even("qps", 1.15), Steady("qps", 0.05)],
    )


def multi_store() -> Scenario:
    """Fourteen ranges on few of fourteen stores of seven nodes."""
    on = [
        ([0, 2, 8], 4.0), ([0, 4, 10], 2.0), ([0, 3, 6], 2.0), ([1, 2, 12], 2.0), ([1, 9, 5], 1.0),
        ([8, 0, 2], 1.0), ([10, 0, 4], 1.0), ([12, 1, 3], 1.0),
    ]  # fmt: skip
    ranges = Ranges(count=14, on=on, rate=7000.0, block=512.0)
    cluster, environment = cluster_of(Stores(7, each=2), [ranges], FREE)
    return Scenario(
        name="multi-store",
        cluster=cluster,
        environment=environment,
        minutes=5.0,
        goals=Goals(level={"qps": 0.05, "replicas": 0.05}, leaders=0.0),
        checks=[Even("leaders", 1.0), Steady("leaders", 0.0)],
    )


def heterogeneous_constrained() -> Scenario:
    """Two regions with small and large nodes, each with ranges of its own."""
    bound = [
        Rule(spread=HOST, place={f"region={name}": 3}, lead=[f"region={name}"]) for name in "ab"
    ]
    turns = [([0, 1, 2], 1.0), ([1, 0, 2], 1.0), ([2, 0, 1], 1.0)]
    kinds = [
        Ranges(
            count=30,
            on=[([s + 3 * rule for s in at], w) for at, w in turns],
            rate=rate,
            reads=1.0,
            request_cpu=1e-3,
            rule=rule,
        )
        for rule, rate in enumerate((3000.0, 24_000.0))
    ]
    cluster, environment = cluster_of(
        Stores({"a": 3, "b": 3}, cores=[4, 4, 4, 12, 12, 12]), kinds, bound
    )
    return Scenario(
        name="heterogeneous cpu, constrained",
        cluster=cluster,
        environment=environment,
        minutes=8.0,
        goals=CPU,
        objective="cpu",
        checks=[
            Conforms(violating=0),
            Within("cpu_share", [3, 4, 5], at_least=0.6),
            Within("cpu_share", [0, 1, 2], at_most=0.26),
        ],
    )


def heterogeneous_free() -> Scenario:
    """Two nodes of 8 cores and one of 16 with the same load on each."""
    ranges = Ranges(count=200, rate=40_000.0, reads=1.0, request_cpu=5e-4)
    cluster, environment = cluster_of(Stores(3, cores=[8, 8, 16]), [ranges], FREE)
    return Scenario(
        name="heterogeneous cpu, free",
        cluster=cluster,
        environment=environment,
        minutes=3.0,
        goals=CPU,
        objective="cpu",
        beyond=[Even("cpu_share", 1.1)],
        note="only CockroachDB's new allocator levels utilisation, the others cores in use",
    )


def uneven_regions() -> Scenario:
    """Regions of three and of five nodes, each with ranges and load to match."""
    bound = [
        Rule(spread=HOST, place={f"region={name}": 3}, lead=[f"region={name}"]) for name in "ab"
    ]
    on = ([([0, 1, 2], 30.0)], [([3, 4, 5], 20.0), ([5, 6, 7], 15.0), ([3, 6, 7], 15.0)])
    kinds = [
        Ranges(
            count=count,
            on=on[rule],
            rate=rate,
            reads=0.95,
            block=128.0,
            request_cpu=1e-3,
            raft_cpu=2e-4,
            rule=rule,
        )
        for rule, (count, rate) in enumerate(((30, 3000.0), (50, 5000.0)))
    ]
    cluster, environment = cluster_of(Stores({"a": 3, "b": 5}, cores=8.0), kinds, bound)
    return Scenario(
        name="uneven regions",
        cluster=cluster,
        environment=environment,
        minutes=8.0,
        goals=CPU,
        objective="cpu",
        checks=[Conforms(violating=0), Even("cpu", 1.15)],
    )


def asymmetric_localities() -> Scenario:
    """Regions of 8, 8 and 6 stores with a replica of every range in each (#171402)."""
    on = [([i % 8, 8 + i % 8, 16 + (i % 8 + 2 * (i // 8)) % 6], 1.0) for i in range(24)]
    ranges = Ranges(count=480, on=on, mebibytes=64.0, rate=20_000.0, block=1000.0, raft_cpu=2e-4)
    cluster, environment = cluster_of(
        Stores({"a": 4, "b": 4, "c": 3}, each=2), [ranges], [Rule(spread={**HOST, "region": 1})]
    )
    return Scenario(
        name="asymmetric localities",
        cluster=cluster,
        environment=environment,
        minutes=20.0,
        goals=Goals(level={"cpu": 0.05, "replicas": 0.05}, leaders=0.1),
        objective="cpu",
        checks=[Within("moves", [6], at_most=30.0, last=1)],
        note="moves through a store: replicas that joined or left it",
    )


def skewed_cpu_skewed_writes() -> Scenario:
    """Reads are hot on three nodes, writes on three others; many cold ranges keep counts even."""
    hot = {"rate": 1000.0, "reads": 1.0, "request_cpu": 5e-3}
    written = {"rate": 20_000.0, "block": 1000.0, "raft_cpu": 1e-9}
    low, high = [([0, 1, 2], 1.0)], [([3, 4, 5], 1.0)]
    cluster, environment = cluster_of(
        Stores(6, cores=5.0),
        [
            Ranges(count=36, on=low, **hot),  # type: ignore[arg-type]
            Ranges(count=100, on=low),
            Ranges(count=36, on=high, **written),  # type: ignore[arg-type]
            Ranges(count=100, on=high),
        ],
        FREE,
    )
    return Scenario(
        name="skewed cpu, skewed writes",
        cluster=cluster,
        environment=environment,
        minutes=25.0,
        goals=BOTH,
        objective="cpu",
        checks=[Even("cpu", 1.15)],
        beyond=[Even("write", 1.15)],
        note="level is taken for at most 1.15 times the mean",
    )


def skewed_cpu_even_ranges() -> Scenario:
    """One of nine nodes leads everything that is hot; all have as many replicas."""
    hot = Ranges(
        count=36,
        on=[([0, 1, 2], 1.0)],
        mebibytes=256.0,
        rate=1000.0,
        reads=0.95,
        block=100.0,
        request_cpu=5e-3,
        raft_cpu=5e-4,
    )
    cold = Ranges(
        count=72, on=[([3, 4, 5], 1.0), ([6, 7, 8], 1.0)], mebibytes=256.0, rate=100.0, block=128.0
    )
    cluster, environment = cluster_of(Stores(9, cores=5.0), [hot, cold], FREE)
    return Scenario(
        name="skewed cpu, even ranges",
        cluster=cluster,
        environment=environment,
        minutes=22.0,
        goals=CPU,
        objective="cpu",
        beyond=[Even("cpu", 1.1), Within("cpu_share", list(range(9)), 0.1, 0.125)],
        note="each node at 0.11 of its cores is taken for 0.10 to 0.125",
    )


def high_cpu() -> Scenario:
    """Ten nodes with even ranges, and fifty hot ones that lie on few of them."""
    even = Ranges(count=100, rate=5000.0, reads=0.95, block=100.0, request_cpu=1e-7, raft_cpu=2e-8)
    hot = Ranges(
        count=50,
        skewed=([50, 40, 21, 12, 7, 5, 4, 4, 4, 3], [27, 12, 4, 3, 1, 1, 0, 1, 0, 1]),
        rate=5000.0,
        reads=0.95,
        block=128.0,
        request_cpu=1e-4,
        raft_cpu=2e-5,
    )
    cluster, environment = cluster_of(Stores(10, cores=8.0), [even, hot], FREE)
    return Scenario(
        name="high cpu",
        cluster=cluster,
        environment=environment,
        minutes=2.0,
        goals=CPU,
        objective="cpu",
        beyond=[Even("cpu", 1.1, last=3)],
        note="the source demands nothing in figures",
    )


def high_cpu_25_nodes() -> Scenario:
    """Fifty ranges that keep two cores busy each lie on few of 25 nodes."""
    even = Ranges(count=50, rate=15_000.0, reads=0.95, block=100.0, request_cpu=1e-7, raft_cpu=2e-8)
    hot = Ranges(
        count=50,
        skewed=([50, 38, 19, 10, 6, 3, 2] + [2, 1] * 6 + [1] * 4, [26, 12, 2, 1, 1] + [0] * 18),
        rate=15_000.0,
        reads=0.95,
        block=1.0,
        request_cpu=7e-3,
        raft_cpu=2e-5,
    )
    cluster, environment = cluster_of(Stores(25, cores=8.0), [even, hot], FREE)
    return Scenario(
        name="high cpu, 25 nodes",
        cluster=cluster,
        environment=environment,
        minutes=20.0,
        goals=CPU,
        objective="cpu",
        beyond=[Within("cpu_share", list(range(25)), 0.5, 0.56)],
        note="each at about 0.53 is taken for 0.50 to 0.56",
    )


def splitting() -> Scenario:
    """A single range gets 10,000 requests per second; whatever gets over 2,500 is split."""
    ranges = Ranges(count=1, on=[([0], 1.0)], rate=10_000.0, reads=1.0)
    cluster, environment = cluster_of(Stores(1), [ranges], FREE)
    return Scenario(
        name="splitting",
        cluster=cluster,
        environment=environment,
        minutes=5.0,
        goals=Goals(level=None),
        events=[SplitBusy(rate=2500.0)],
        checks=[Steady("replicas", 0.0), Within("replicas", [0], 4.0, 4.0)],
        note="a split hits the middle of the load here, so that 4 ranges do where sampled keys "
        "make 6, and skew does not matter",
    )


def cannot_shed_leases() -> Scenario:
    """A store has a replica of every range and no lease to give away."""
    on = [([1, 0, 2], 7.0), ([4, 0, 3], 6.0), ([3, 0, 1], 6.0), ([2, 0, 4], 6.0)]
    ranges = Ranges(count=25, on=on, rate=5000.0, raft_cpu=1e-3, block=1.0)
    cluster, environment = cluster_of(Stores(5, cores=9.0), [ranges], FREE)
    return Scenario(
        name="cannot give up leases",
        cluster=cluster,
        environment=environment,
        minutes=5.0,
        goals=Goals(level={"cpu": 0.1, "replicas": 0.05}),
        objective="cpu",
        checks=[Within("replicas", [0], at_most=17.0, last=1)],
        beyond=[Within("replicas", [0], at_most=16.0, last=1), Even("cpu", 1.15)],
        note="the grace of two minutes is the new allocator's; by count a store may keep 17 of 15",
    )


def one_voter() -> Scenario:
    """Two nodes, one replica of each range: reads here, writes there, and only swaps help."""
    cluster, environment = cluster_of(
        Stores(2, cores=1.0),
        [
            Ranges(
                count=100, on=[([0], 1.0)], mebibytes=26.0, rate=1000.0, reads=1.0,
                request_cpu=5e-4,
            ),
            Ranges(
                count=100, on=[([1], 1.0)], mebibytes=26.0, rate=5000.0, block=1000.0,
                raft_cpu=1e-9,
            ),
        ],
        FREE,
    )  # fmt: skip
    return Scenario(
        name="one voter, skewed cpu and writes",
        cluster=cluster,
        environment=environment,
        minutes=65.0,
        goals=BOTH,
        objective="cpu",
        beyond=[Even("cpu", 1.1), Even("write", 1.1), AtMost("moves", 110.0)],
    )


def rebalance_speed() -> Scenario:
    """One of three nodes holds all 200 leases, and with them all load."""
    ranges = Ranges(count=200, on=[([0, 1, 2], 1.0)], rate=10_000.0, reads=1.0, request_cpu=5e-4)
    cluster, environment = cluster_of(Stores(3, cores=8.0), [ranges], FREE)
    return Scenario(
        name="rebalance speed",
        cluster=cluster,
        environment=environment,
        minutes=32.0,
        goals=CPU,
        objective="cpu",
        checks=[Even("cpu", 1.15), Even("cpu", 1.15, last=160)],
        note="level after five minutes at the latest; the old allocator takes three and a half",
    )


def no_legal_rebalance() -> Scenario:
    """Many small ranges here, two large ones there: counts could only be evened against disks."""
    bound = Rule(spread=HOST, place={"region=b": 1}, lead=["region=b"])
    cluster, environment = cluster_of(
        Stores({"a": 1, "b": 1}, disk=10.0 * GIB),
        [
            Ranges(count=50, on=[([0], 1.0)], mebibytes=100.0),
            Ranges(count=2, on=[([1], 1.0)], mebibytes=2500.0, rule=1),
        ],
        [Rule(spread=HOST), bound],
    )
    return Scenario(
        name="no legal rebalance",
        cluster=cluster,
        environment=environment,
        minutes=5.0,
        goals=Goals(level={"disk": 0.1}),
        checks=[Conforms(under=0, over=0, unavailable=0, violating=0)],
        beyond=[Even("disk_share", 1.1, last=5), Steady("replicas", 0.0, last=30)],
        note="the old allocator evens counts and leaves disks at 0.33 and 0.89",
    )


def constraint_satisfaction_disks() -> Scenario:
    """Five replicas in three of four regions with small disks, two of one region in use."""
    rule = Rule(spread=HOST, place={"region=a": 2, "region=b": 2, "region=c": 1}, lead=["region=a"])
    cluster, environment = cluster_of(
        Stores({"a": 3, "b": 2, "c": 1, "d": 3}, disk=10.0 * GIB),
        [Ranges(count=10, on=[([0, 1, 3, 4, 5], 1.0)], mebibytes=500.0)],
        [rule],
    )
    return Scenario(
        name="constraint satisfaction, disks",
        cluster=cluster,
        environment=environment,
        minutes=3.0,
        goals=Goals(level={"disk": 0.0, "replicas": 0.0}),
        checks=[Conforms(under=0, violating=0, lead_violating=0), AtMost("moves", 8.0)],
        note="of the 20 replicas in region a the old allocator makes 8, 6, 6; balance leaves 10, "
        "10, 0, since no store is to be levelled below the 10 that those of region b need anyway",
    )


def constraint_satisfaction() -> Scenario:
    """Five replicas in three of four regions, and all leases in one of them, on one store."""
    ranges = Ranges(
        count=100,
        on=[([0, 1, 3, 4, 5], 1.0)],
        rate=1000.0,
        reads=0.95,
        block=1000.0,
        request_cpu=5e-3,
        raft_cpu=1e-5,
    )
    rule = Rule(spread=HOST, place={"region=a": 2, "region=b": 2, "region=c": 1}, lead=["region=a"])
    cluster, environment = cluster_of(
        Stores({"a": 3, "b": 2, "c": 1, "d": 3}, cores=5.0), [ranges], [rule]
    )
    return Scenario(
        name="constraint satisfaction",
        cluster=cluster,
        environment=environment,
        minutes=40.0,
        goals=CPU,
        objective="cpu",
        checks=[Conforms(under=0, violating=0, lead_violating=0)],
        beyond=[Even("cpu", 1.1, nodes=[0, 1, 2])],
    )
