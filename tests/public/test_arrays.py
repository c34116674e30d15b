"""Problems that people post with arrays; what is least was found by CP-SAT, apart from us."""

import numpy as np

import evenkeel as ek


def bins(rows, capacity):
    """Return a cluster of single replicas, by the sizes in each bin."""
    held = [(size, at) for at, row in enumerate(rows) for size in row]
    return ek.Cluster.from_arrays(
        capacity=[[capacity]] * len(rows), load=[[size] for size, _ in held],
        placement=[[at] for _, at in held], dimensions=("size",), bytes="size",
    )  # fmt: skip


def loads(result):
    return result.levelness.loads[:, 0].tolist()


def moved(result):
    return result.comparison.moves, result.comparison.bytes_moved


class TestBuckets:
    """https://stackoverflow.com/questions/16588669: even buckets, with little moved."""

    cluster = bins([[10, 4, 3, 3, 2, 1], [5, 5, 3, 2, 1], [3, 1, 1], [2]], 100.0)

    def test_three_moves_are_enough_and_known_to_be_needed(self):
        result = ek.solve(self.cluster, goals=ek.Goals(level=0.1))
        assert (result.status, moved(result)[0]) == ("optimal", 3)
        assert sorted(loads(result)) == [11.0, 11.0, 12.0, 12.0]

    def test_fifteen_units_are_enough(self):
        of_size = {f"p{p}": size for p, size in enumerate([10, 4, 3, 3, 2, 1, 5, 5, 3, 2, 1])}
        by_size = ek.Goals(level=0.1, move_cost=of_size)
        limited = ek.Limits(bytes=15.0)
        for asked in ({"goals": by_size}, {"goals": ek.Goals(level=0.1), "limits": limited}):
            result = ek.solve(self.cluster, **asked)
            assert result.success and max(loads(result)) == 12.0
            assert moved(result)[1] == 15.0


def test_bins_that_become_smaller():
    """Of cs.stackexchange.com, the bin redistribution problem: below 16, and 5 units were moved."""
    rows = [[3, 1, 4, 3], [2, 1, 7, 4], [1, 7, 4, 4], [4, 2, 3, 4, 5]]
    result = ek.solve(bins(rows, 15.0), goals=ek.Goals(level=None))
    assert (result.status, moved(result)) == ("optimal", (2, 4.0))


class TestGarage:
    """The real-world example of Garage's documentation: a copy in each of three zones.

    Mercury, Venus, Earth and Mars have 1, 2, 2 and 1.5 TB.
    """

    def cluster(self, zones, placement=None):
        return ek.Cluster.from_arrays(
            capacity=[[1e12], [2e12], [2e12], [1.5e12]], load=np.full((256, 1), 1e12 / 256),
            domains={"zone": zones}, spread={"zone": 1}, replicas=3, placement=placement,
            dimensions=("disk",), bytes="disk",
        )  # fmt: skip

    def test_a_node_that_changes_its_zone(self):
        first = self.cluster(["par1", "par1", "lon1", "bru1"])
        placed = ek.solve(first).placement
        assert np.bincount(placed.node).tolist() == [85, 171, 256, 256]
        assert ek.headroom(first).reach().at_most == 1.5
        later = self.cluster(["bru1", "par1", "lon1", "bru1"], placed.nodes)
        assert ek.headroom(later).reach().at_most == 2.0
        repaired = ek.solve(later, goals=ek.Goals(level=None))
        assert (repaired.status, repaired.comparison.moves) == ("optimal", 85)
        level = ek.solve(later)
        assert (level.status, level.comparison.moves) == ("optimal", 95)
        assert np.bincount(level.placement.node).tolist() == [95, 256, 256, 161]


class TestShardsOfCitus:
    """Of the expected answers in citusdata/citus, shard_rebalancer_unit."""

    def cluster(self, capacity, held, cost=None, forbidden=None):
        return ek.Cluster.from_arrays(
            capacity=[[100.0 * one] for one in capacity], placement=[[at] for at in held],
            load=[[one] for one in cost or [1.0] * len(held)], forbidden=forbidden,
        )  # fmt: skip

    def moves(self, *given, **asked):
        result = ek.solve(self.cluster(*given), goals=ek.Goals(level=0.0), **asked)
        return [(move.partition, move.target) for move in result.moves]

    def test_costs_and_capacities_count(self):
        assert self.moves([1, 1], [0, 0, 0, 0], [1, 1, 1, 3]) == [("p3", "n1")]
        assert len(self.moves([1, 3], [0, 0, 0, 0])) == 3
        assert self.moves([1, 3], [0, 1, 1]) == []
        assert len(self.moves([1, 4], [0, 0, 0])) == 3
        assert len(self.moves([1, 3], [0, 0, 0], [1, 1, 2])) == 2
        assert self.moves([1, 3], [0, 0, 0], [1, 1, 2], limits=ek.Limits(moves=1)) == [("p2", "n1")]

    def test_nodes_that_a_shard_may_not_be_on(self):
        forbidden = [(0, 0), (1, 0), (2, 0), (4, 0), (5, 0), (3, 1), (3, 2)]
        found = self.moves([1, 1, 1], [0, 0, 1, 1, 2, 2], None, forbidden)
        assert len(found) == 3 and ("p3", "n0") in found
        assert {target for name, target in found if name != "p3"} == {"n1", "n2"}


def test_weights_of_a_ring_that_change():
    """Of pda/flexihash, question 25: one weight of ten becomes three; a node joins, two leave."""
    session = ek.Session(ek.Cluster.from_arrays(
        capacity=[[100.0]] * 10, load=[[1.0]] * 120, placement=[[k % 10] for k in range(120)],
    ))  # fmt: skip
    heavier = session.apply(ek.Changes(capacity={"n3": [300.0]})).solve(goals=ek.Goals(level=0.0))
    assert (heavier.status, heavier.comparison.moves) == ("optimal", 18)
    session.apply(ek.Changes(placement=heavier.placement))
    joined = ek.Changes(nodes={"names": ["n10"], "like": "n0"}, down="n1", drain="n2")
    result = session.apply(joined).solve(goals=ek.Goals(level=0.05))
    assert (result.status, result.comparison.moves) == ("optimal", 20)
    assert result.levelness.most[0] <= 1.0


def broker_sets():
    """Return two sets of two brokers, 75 % and 10 % full."""
    return ek.Cluster.from_arrays(
        dimensions=["disk"], bytes="disk", capacity=np.full((4, 1), 100.0),
        node_names=["B1", "B2", "B3", "B4"], tags={"bs1": [1, 1, 0, 0], "bs2": [0, 0, 1, 1]},
        load=[[5.0]] * 15 + [[2.0]] * 5, placement=[[0, 1]] * 15 + [[2, 3]] * 5,
        rules=[ek.Rule(require=["+bs1"]), ek.Rule(require=["+bs2"])], rule=[0] * 15 + [1] * 5,
    )  # fmt: skip


class TestBrokerSets:
    """https://github.com/linkedin/cruise-control/issues/1918: a set without room."""

    def test_the_full_set_needs_a_broker(self):
        (reach,) = ek.headroom(broker_sets(), at_most=0.7).reaches
        assert reach.at_most < 1.0 and reach.where == "+bs1"
        found = ek.size(broker_sets(), 1.0, at_most=0.7)
        assert found.status == "optimal"
        assert [(row.type, row.nodes) for row in found.nodes] == [("like B1", 1)]

    def test_each_set_gets_brokers_of_its_own(self):
        found = ek.size(broker_sets(), 1.2, at_most=0.7, survive="node")
        assert found.status == "optimal"
        assert [(row.type, row.nodes) for row in found.nodes] == [("like B1", 1), ("like B3", 1)]
