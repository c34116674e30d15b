"""Scenarios of CockroachDB's simulator in which nodes or configurations change.

Stores are numbered from 0 here and from 1 in names and texts. Where the source gives no size, a
range has 8 MiB.

References
----------
CockroachDB, pkg/kv/kvserver/asim/tests/testdata/non_rand.
"""

from dataclasses import replace

from bench.scenarios.layouts import MIB, Ranges, Stores, cluster_of
from evenkeel.model.changes import Changes
from evenkeel.model.goals import Goals
from evenkeel.model.rules import Rule
from evenkeel.simulate.engine.checks import Balance as Even
from evenkeel.simulate.engine.checks import Conforms, Within
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.engine.world import Health
from evenkeel.simulate.events import At, NodesBecome

# as many replicas, and as many leases, on every store
COUNTS = Goals(level={"replicas": 0.03}, leaders=0.05)

HOST = {"host": 1}  # at most one replica on a host

WHOLE = Conforms(under=0, over=0, unavailable=0, violating=0)  # every range is as it should be


def add_node() -> Scenario:
    """One node with 300 ranges is joined by two, and wants three replicas of each.

    >>> len(add_node().cluster.nodes)
    3
    """
    ranges = Ranges(count=300, on=[([0], 1.0)], mebibytes=1e8 / MIB, wanted=3)
    cluster, environment = cluster_of(Stores(3), [ranges], [Rule(spread=HOST)])
    return Scenario(
        name="add node",
        cluster=cluster,
        environment=environment,
        minutes=20.0,
        goals=COUNTS,
        checks=[Even("replicas", 1.05)],
        beyond=[Conforms(under=0, over=0, unavailable=0)],
        note="in the newest record of the source 62 of 600 replicas are missing after 20 minutes",
    )


def liveness() -> Scenario:
    """One node of seven is dead, another one is decommissioned after three minutes."""
    cluster, environment = cluster_of(Stores(7), [Ranges(count=700)], [Rule(spread=HOST)])
    return Scenario(
        name="liveness",
        cluster=cluster,
        environment=environment,
        minutes=12.0,
        goals=COUNTS,
        events=[
            NodesBecome(nodes=[6], health=Health.DEAD),
            NodesBecome(at=180.0, nodes=[5], health=Health.DECOMMISSIONING),
        ],
        checks=[
            Within("replicas", [5, 6], 0.0, 0.0),
            Within("replicas", [0, 1, 2, 3, 4], 399.0, 441.0),
        ],
        note="about 420 replicas is taken for within 5 % of it",
    )


def zone_config() -> Scenario:
    """After a minute all 200 ranges are bound to one of three regions."""
    regions = {"US_East": 12, "US_West": 12, "EU": 12}
    cluster, environment = cluster_of(
        Stores(regions, zone_of=4),
        [Ranges(count=200)],
        [
            Rule(spread={**HOST, "zone": (1, "soft")}),
            Rule(spread={**HOST, "zone": 1}, require=["region=US_East"]),
        ],
    )
    return Scenario(
        name="zone config",
        cluster=cluster,
        environment=environment,
        minutes=10.0,
        goals=COUNTS,
        events=[At(60.0, Changes(rule=1))],
        checks=[
            Within("replicas", list(range(12, 36)), 0.0, 0.0, last=5),
            Conforms(under=0, violating=0),
        ],
        note="each region has three zones of four nodes",
    )


def decommission_conformance() -> Scenario:
    """A decommissioned replica and a new configuration ask for opposite things (#117886)."""
    cluster, environment = cluster_of(
        Stores({"a": 1, "b": 1, "c": 2}),
        [Ranges(count=5, on=[([0, 2, 3], 1.0)])],
        [
            Rule(spread=HOST, place={"region=a": 1, "region=c": 2}),
            Rule(spread=HOST, place={"region=a": 1, "region=b": 1, "region=c": 1}),
        ],
    )
    return Scenario(
        name="decommission conformance",
        cluster=cluster,
        environment=environment,
        minutes=20.0,
        goals=COUNTS,
        events=[
            At(300.0, Changes(rule=1)),
            NodesBecome(at=300.0, nodes=[3], health=Health.DECOMMISSIONING),
        ],
        checks=[WHOLE],
        beyond=[Within("replicas", [3], 0.0, 0.0)],
    )


def conformance() -> Scenario:
    """Voters and a non-voter must swap places for a new configuration to hold (#106559)."""
    place = {"region=a": 2, "region=b": 2}
    cluster, environment = cluster_of(
        Stores({"a": 2, "b": 3}),
        [Ranges(count=5, on=[([0, 2, 3, 1], 1.0)], non_voters=1)],
        [
            Rule(spread=HOST, place=place, voters_place={"region=a": 1, "region=b": 2}),
            Rule(spread=HOST, place=place, voters_place={"region=a": 2, "region=b": 1}),
        ],
    )
    return Scenario(
        name="conformance",
        cluster=cluster,
        environment=environment,
        minutes=10.0,
        goals=COUNTS,
        events=[At(300.0, Changes(rule=1))],
        checks=[WHOLE],
    )


def lease_preferences() -> Scenario:
    """One range can have the lease where it wants it, one as a second choice, one not at all."""
    placed = Rule(spread=HOST, place={"region=b": 3})
    cluster, environment = cluster_of(
        Stores({"a": 2, "b": 3, "c": 1}),
        [Ranges(count=1, on=[([0, 1, 2], 1.0)], rule=rule) for rule in range(3)],
        [
            replace(placed, lead=["region=b"]),
            replace(placed, lead=["region=a", "region=b"]),
            replace(placed, lead=["region=c"]),
        ],
    )
    return Scenario(
        name="lease preferences",
        cluster=cluster,
        environment=environment,
        minutes=10.0,
        goals=Goals(level={"replicas": 0.5}),
        events=[NodesBecome(nodes=[5], health=Health.ABSENT)],
        checks=[WHOLE, Conforms(lead_violating=1, lead_less_preferred=1)],
        note="region c has a store that is never part of the cluster, since a label that no node "
        "carries is an input error here",
    )


def store_status_shedding() -> Scenario:
    """Three stores are full of writes, and the only empty one is dead."""
    ranges = Ranges(count=40, on=[([0, 1, 2], 1.0)], rate=20_000.0, block=1000.0)
    cluster, environment = cluster_of(Stores(4), [ranges], [Rule(spread=HOST)])
    return Scenario(
        name="store status shedding",
        cluster=cluster,
        environment=environment,
        minutes=6.0,
        goals=Goals(level={"write": 0.1}),
        events=[NodesBecome(nodes=[3], health=Health.DEAD)],
        checks=[Within("replicas", [3], 0.0, 0.0)],
    )


def _repair(name: str, ranges: Ranges, **changes: object) -> Scenario:
    """Six nodes and ten ranges that are not as they should be, for ten minutes."""
    cluster, environment = cluster_of(Stores(6), [ranges], [Rule(spread=HOST)])
    return Scenario(
        name=name,
        cluster=cluster,
        environment=environment,
        minutes=10.0,
        goals=COUNTS,
        checks=[WHOLE],
        **changes,  # type: ignore[arg-type]
    )


def repair_add_voters() -> Scenario:
    """Ranges with one replica want three."""
    return _repair("repair: add voters", Ranges(count=10, replicas=1, wanted=3))


def repair_remove_voters() -> Scenario:
    """Ranges with five replicas want three."""
    return _repair("repair: remove voters", Ranges(count=10, replicas=5, wanted=3))


def repair_add_non_voters() -> Scenario:
    """Ranges with three voters want two non-voters too."""
    return _repair("repair: add non-voters", Ranges(count=10, wanted=5, voters=3))


def repair_remove_non_voters() -> Scenario:
    """Ranges with three voters and two non-voters want the voters only."""
    ranges = Ranges(count=10, on=[([0, 1, 2, 3, 4], 1.0)], non_voters=2, wanted=3, voters=3)
    return _repair("repair: remove non-voters", ranges)


def repair_replace_dead() -> Scenario:
    """A node with voters and non-voters is dead after a minute."""
    dies = NodesBecome(at=60.0, nodes=[2], health=Health.DEAD)
    kinds = Ranges(count=10, on=[([0, 1, 2, 3], 1.0), ([3, 4, 5, 2], 1.0)], non_voters=1)
    return _repair("repair: replace dead", kinds, events=[dies])


def repair_replace_decommissioning() -> Scenario:
    """A node with voters and non-voters is decommissioned after a minute."""
    leaves = NodesBecome(at=60.0, nodes=[2], health=Health.DECOMMISSIONING)
    kinds = Ranges(count=10, on=[([0, 1, 2, 3], 1.0), ([3, 4, 5, 2], 1.0)], non_voters=1)
    return _repair("repair: replace decommissioning", kinds, events=[leaves])
