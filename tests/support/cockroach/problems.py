"""Small allocator problems of CockroachDB, drawn by hypothesis for twin and kernels."""

from hypothesis import strategies as st

from bench.scenarios.one_range import BY_QPS, Allocator, Replicas, stores_like
from evenkeel.systems.cockroach.allocator.intake import SETTINGS
from evenkeel.systems.cockroach.allocator.range_decider import BY_COUNT
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Conjunction,
    Constraint,
    Site,
    ZoneConfig,
    configs_of,
    localities_of,
)
from tests.naive.cockroach import replicas as naive

COUNTS = st.sampled_from([0.0, 1.0, 10.0, 20.0, 30.0, 100.0]) | st.integers(0, 40).map(float)


@st.composite
def stores(draw):
    """Stores of up to four hosts a locality, with tiers of unequal depth, states and loads."""
    plain = draw(st.booleans())
    hosts = draw(st.integers(1, 6))
    places = [
        tuple((f"t{i}", f"v{draw(st.integers(0, 2))}") for i in range(draw(st.integers(0, 2))))
        for _ in range(hosts)
    ]
    return [
        naive.Store(
            host=host,
            tiers=places[host],
            attributes=frozenset(draw(st.sets(st.sampled_from(["a", "b"])))),
            status=0 if plain else draw(st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4, 5, 6])),
            ready=plain or draw(st.integers(0, 9)) > 0,
            ranges=draw(COUNTS),
            qps=draw(COUNTS) * 50.0,
            used=0.0 if plain else draw(st.sampled_from([0.0, 0.5, 0.93, 0.97])),
            io=0.0 if plain else draw(st.sampled_from([0.0, 0.0, 0.4, 2.0])),
        )
        for host in range(hosts)
        for _ in range(draw(st.integers(1, 2)))
    ]


@st.composite
def tables(draw, total):
    """Conjunctions that together ask for no more replicas than there are."""
    found, left = [], total
    for _ in range(draw(st.integers(0, 2))):
        tests = st.sampled_from([("", "a"), ("", "b"), ("t0", "v0"), ("t0", "v1"), ("t1", "v0")])
        listed = [
            (draw(st.integers(0, 4)) > 0, *one)
            for one in draw(st.lists(tests, min_size=1, max_size=2))
        ]
        number = draw(st.integers(0, left))
        left -= number
        found.append((listed, number))
    return found


@st.composite
def problems(draw):
    """(problem, voters, non-voters): a range somewhere in a small cluster."""
    listed = draw(stores())
    order = draw(st.permutations(range(len(listed))))
    voters = draw(st.integers(1, min(4, len(listed))))
    others = draw(st.integers(0, min(2, len(listed) - voters)))
    problem = naive.Problem(
        stores=listed,
        replicas=voters + others,
        voters=voters,
        constraints=draw(tables(voters + others)),
        voter_constraints=draw(tables(voters)),
        by_load=draw(st.integers(0, 3)) == 0,
        impact=draw(st.sampled_from([0.0, 100.0, 1000.0])),
    )
    return problem, sorted(order[:voters]), sorted(order[voters : voters + others])


def compiled(problem):
    """The same problem for kernels: what decides, and the stores as they are known."""

    def read(listed):
        return [Conjunction(tuple(Constraint(*one) for one in tests), n) for tests, n in listed]

    config = ZoneConfig(
        problem.replicas, problem.voters, read(problem.constraints), read(problem.voter_constraints)
    )
    configs, conjunctions = configs_of([config])
    sites = [Site(one.host, one.tiers, one.attributes) for one in problem.stores]
    scorer = BY_QPS if problem.by_load else BY_COUNT
    view = stores_like(
        len(sites),
        status=[one.status for one in problem.stores],
        ready=[one.ready for one in problem.stores],
        ranges=[one.ranges for one in problem.stores],
        qps=[one.qps for one in problem.stores],
        capacity=100.0,
        available=[100.0 * (1.0 - one.used) for one in problem.stores],
        io=[one.io for one in problem.stores],
    )
    return Allocator(
        localities_of(sites, conjunctions), configs, SETTINGS, scorer, problem.impact
    ), view


def held(voters, others, **more):
    """Where a range is, for kernels."""
    return Replicas(voters, others, **more)
