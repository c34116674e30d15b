"""The door for clusters of CockroachDB: what goes in, what is refused, and what holds after."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.simulate.events import At

THREE = ["region=a", "region=b", "region=c"]
SIX = [f"region={name}" for name in "aabbcc"]


def faults_of(**given):
    """Paths of everything that is wrong."""
    usual = {"localities": THREE, "replicas": [[0, 1, 2]], "configs": [{}]}
    with pytest.raises(ek.InvalidInput) as raised:
        ek.cockroach_cluster(**usual | given)
    return {fault.path for fault in raised.value.faults}


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"leaseholder": [-5]}, {"leaseholder[0]"}),
        ({"leaseholder": [1], "roles": [[0, 1, 0]]}, {"leaseholder[0]"}),
        ({"configs": [{"constraints": ["region=a"]}]}, {"configs[0].constraints[0]"}),
        ({"configs": [{"constraints": {"region=a": 1}}]}, {"configs[0].constraints[0][0]"}),
        ({"configs": [{"constraints": {("+region=a",): 1}}]}, {"configs[0].constraints[0][0]"}),
        ({"configs": [{"constraints": {"+region=a": 0}}]}, {"configs[0].constraints[0]"}),
        (
            {"configs": [{"lease_preferences": [["region=a"]]}]},
            {"configs[0].lease_preferences[0][0]"},
        ),
        ({"configs": [{"constraints": ["+region=mars"]}]}, {"configs[0].constraints[0]"}),
        ({"configs": [{"constraints": ["-planet=mars"]}]}, {"configs[0].constraints[0]"}),
        ({"configs": [None]}, {"configs[0]"}),
        ({"configs": []}, {"configs"}),
        ({"configs": {"num_replicas": 3}}, {"configs"}),
        ({"configs": [{"num_replicas": 10**10}]}, {"configs[0].num_replicas"}),
        ({"replicas": [[0, 1, 2], [0]]}, {"replicas"}),
        ({"localities": "region=a"}, {"localities", "replicas[0, 1]", "replicas[0, 2]"}),
        ({"localities": ["region=a,region=b", "", ""]}, {"localities[0]"}),
        ({"attributes": [["ssd"]] * 4}, {"attributes"}),
        ({"attributes": ["ssd", [], []]}, {"attributes[0]"}),
        (
            {"io": [-1, 0, np.nan], "capacity": [9, -1, 9], "hosts": [-1, 2, 3]},
            {"io[0]", "io[2]", "capacity[1]", "hosts[0]"},
        ),
        ({"requests": [{"region=a": -1.0}]}, {"requests[0]['region=a']"}),
        ({"requests": [{"region": 1.0}]}, {"requests[0]"}),
        ({"requests": [7, None]}, {"requests", "requests[0]"}),
        ({"latency": [[0.0, -1.0]]}, {"latency"}),
        ({"latency": -1.0}, {"latency"}),
        ({"caught_up": [True]}, {"caught_up"}),
    ],
)
def test_what_is_wrong_is_named(given, paths):
    assert faults_of(**given) == paths


def test_ranges_are_called_by_their_names():
    with pytest.raises(ek.InvalidInput, match="range orders/3 has no replica there"):
        ek.cockroach_cluster(
            localities=THREE, replicas=[[0, 1, -1]], configs=[{}], leaseholder=[2],
            range_names=["orders/3"],
        )  # fmt: skip
    cluster = ek.cockroach_cluster(
        localities=SIX, replicas=[[0, 2]], configs=[{}], range_names=["orders/3"],
        store_names=[f"s{n}" for n in range(1, 7)],
    )  # fmt: skip
    log = ek.solve(cluster, "cockroach").native.log
    assert next(log.lines(cluster)).startswith("orders/3: AddVoter - -> s")


def test_a_wrong_leaseholder_of_every_range_is_told_in_a_few_lines():
    with pytest.raises(ek.InvalidInput) as raised:
        ek.cockroach_cluster(
            localities=THREE, replicas=[[0, 1, -1]] * 1000, configs=[{}], leaseholder=[2] * 1000
        )
    assert len(raised.value.faults) == 11


CONFIG = {
    "num_replicas": 5,
    "num_voters": 3,
    "constraints": {"+region=a": 1, "+region=b,-slow": 2},
    "voter_constraints": {"+region=b": 2},
    "lease_preferences": [["+region=b"], ["-region=a", "+fast"]],
}


@pytest.mark.parametrize("method", ["balance", "cockroach"])
def test_every_method_and_the_audit_keep_to_the_configuration(method):
    cluster = ek.cockroach_cluster(
        localities=SIX * 2, replicas=[[0, 4, 5, 6, 10]] * 24, roles=[[0, 0, 0, 1, 1]] * 24,
        configs=[CONFIG], qps=10.0, attributes=[["slow"] if s == 2 else [] for s in range(12)],
    )  # fmt: skip
    assert cluster.rules[0].lead == ["region=b", "region!=a,+fast"]
    result = ek.solve(cluster, method, goals=ek.Goals(level=0.3))
    assert result.audit_before.hard >= 24
    assert result.audit.hard == 0
    placed = np.asarray(result.placement)
    region = placed % 6 // 2
    assert ((region == 1).sum(axis=1) >= 2).all()
    assert ((region[:, :3] == 1).sum(axis=1) >= 2).all()


def test_the_audit_sees_a_constraint_that_cannot_be_met():
    cluster = ek.cockroach_cluster(
        localities=SIX, replicas=[[0, 1, 2]], configs=[{"constraints": ["+region=a"]}]
    )
    result = ek.solve(cluster, "cockroach")
    assert result.status == "partial"
    assert result.audit.hard > 0


def test_no_two_replicas_on_one_host_for_any_method():
    cluster = ek.cockroach_cluster(
        localities=[""] * 8, hosts=[1, 1, 2, 2, 3, 3, 4, 4], replicas=[[0, 1, 2]] * 12,
        configs=[{}],
    )  # fmt: skip
    for method in ("balance", "cockroach"):
        result = ek.solve(cluster, method)
        hosts = np.sort(np.asarray(result.placement) // 2, axis=1)
        assert (np.diff(hosts, axis=1) > 0).all()
        assert result.audit.hard == 0


def test_spread_is_for_the_others():
    cluster = ek.cockroach_cluster(
        localities=SIX, replicas=[[0, 1, 2]] * 6, configs=[{}], spread={"region": 1}
    )
    assert ek.solve(cluster, "balance").audit.hard == 0


def test_fewer_voters_and_more_non_voters_lose_no_replica():
    cluster = ek.cockroach_cluster(
        localities=SIX, replicas=[[0, 1, 2, 3, 4]] * 3,
        configs=[{"num_replicas": 5, "num_voters": 3}],
    )  # fmt: skip
    result = ek.solve(cluster, "cockroach")
    assert result.warnings == ()
    assert not len(result.unplaced)
    row, role = result.placement.node.reshape(3, -1), result.placement.role.reshape(3, -1)
    assert ((row >= 0) & (role == ek.Role.VOTER)).sum(axis=1).tolist() == [3, 3, 3]
    assert ((row >= 0) & (role == ek.Role.NON_VOTER)).sum(axis=1).tolist() == [2, 2, 2]


def test_no_lease_goes_to_a_replica_that_lags():
    given = {
        "localities": THREE, "replicas": [[0, 1, 2]] * 9, "configs": [{}],
        "status": ["draining", "available", "available"],
    }  # fmt: skip
    free = ek.solve(ek.cockroach_cluster(**given), "cockroach").placement.leader_node
    assert set(free.tolist()) == {1, 2}
    lagging = ek.cockroach_cluster(**given, caught_up=[[True, True, False]] * 9)
    led = ek.solve(lagging, "cockroach").placement.leader_node
    assert led.tolist() == [1] * 9


def test_what_the_quorum_needs_is_not_removed():
    """Two of five are to go: one that lags goes first, and where four lag, nobody can."""
    given = {"localities": [""] * 6, "replicas": [[0, 1, 2, 3, 4]] * 8, "configs": [{}]}
    for lag in ((3, 4), (0, 2)):
        caught_up = [[s not in lag for s in range(5)]] * 8
        cluster = ek.cockroach_cluster(**given, caught_up=caught_up, leaseholder=[1] * 8)
        log = ek.solve(cluster, "cockroach").native.log
        first = {int(p): int(log.source[i]) for i, p in reversed(list(enumerate(log.range)))}
        assert len(first) == 8
        assert set(first.values()) <= set(lag)
    stuck = ek.solve(
        ek.cockroach_cluster(**given, caught_up=[[True, *[False] * 4]] * 8), "cockroach"
    )
    assert stuck.native.stuck.tolist() == list(range(8))


def test_leases_follow_requests():
    cluster = ek.cockroach_cluster(
        localities=THREE, replicas=[[0, 1, 2]] * 20, configs=[{}], latency=100.0,
        requests=[{"region=c": 500.0, "region=a": 1.0}] * 20,
    )  # fmt: skip
    result = ek.solve(cluster, "cockroach")
    assert (result.placement.leader_node == 2).sum() >= 15
    assert "TransferLease" in next(result.native.log.lines(cluster))


def test_every_decision_says_what_was_done_and_why():
    cluster = ek.cockroach_cluster(
        localities=[""] * 7,
        replicas=[[0, 1, 2, 3], [0, 1, 6, -1], [1, 2, -1, -1], [0, 1, 5, -1], [0, 1, 2, 4]],
        roles=[[0] * 4, [0] * 4, [0] * 4, [0] * 4, [0, 0, 0, 2]],
        configs=[{}],
        leaseholder=[0, -1, 1, 0, 0],
        status=["available"] * 5 + ["decommissioning", "dead"],
    )
    log = ek.solve(cluster, "cockroach").native.log
    told = {(int(p), log.action(i)): log.reason(i) for i, p in enumerate(log.range)}
    assert told[0, "RemoveVoter"] == "the range has too many replicas"
    assert told[1, "ReplaceDeadVoter"] == "the store it was on is dead"
    assert told[1, "TransferLease"] == "no replica held the lease"
    assert told[2, "AddVoter"] == "the range has too few replicas"
    assert told[3, "ReplaceDecommissioningVoter"] == "the store it was on is being decommissioned"
    assert told[4, "RemoveLearner"] == "a change of replicas was left unfinished"


def test_relieving_a_store_tells_replicas_and_leases_apart():
    cluster = ek.cockroach_cluster(
        localities=[""] * 6, replicas=[[0, 1, 2]] * 12, configs=[{}], qps=400.0
    )
    log = ek.solve(cluster, "cockroach", options=ek.options.Cockroach(objective="qps")).native.log
    told = [(log.action(i), log.reason(i)) for i in range(len(log))]
    assert {action for action, _ in told} <= {"Rebalance", "TransferLease"}
    assert any(action == "TransferLease" and "too much load" in reason for action, reason in told)


def test_loads_are_levelled_where_no_capacity_is_known():
    """CockroachDB levels what stores carry, whatever they could: so must all others here."""
    random = np.random.default_rng(3)
    rows = [random.choice(6, 3, replace=False) for _ in range(120)]
    cluster = ek.cockroach_cluster(
        localities=[""] * 9, replicas=rows, configs=[{}], qps=random.uniform(1.0, 9.0, 120),
        writes=50.0, size=1e8,
    )  # fmt: skip
    result = ek.solve(cluster, "balance", goals=ek.Goals(level=0.1))
    assert result.success
    for name in ("qps", "writes", "bytes"):
        assert result.metrics["level"][name] <= 1.1 + 1e-9


def test_cores_are_levelled_by_share():
    cluster = ek.cockroach_cluster(
        localities=[""] * 3, replicas=[[0], [1], [2]] * 40, configs=[{"num_replicas": 1}],
        cpu=0.1, cores=[4.0, 4.0, 16.0],
    )  # fmt: skip
    goals = ek.Goals(level={"cpu": 0.05, "replicas": None})
    result = ek.solve(cluster, "balance", goals=goals)
    counts = np.bincount(result.placement.node, minlength=3)
    assert counts[2] > 2 * counts[:2].max()
    assert faults_of(cores=[1.0, -1.0, 1.0]) == {"cores[1]"}


def test_without_loads_counts_are_levelled():
    cluster = ek.cockroach_cluster(
        localities=SIX,
        replicas=[[0, 2, 4]] * 30,
        configs=[{"lease_preferences": [["+region=c"]]}],
        spread={"region": 1},
    )
    result = ek.solve(cluster, "balance")
    assert np.bincount(result.placement.node).max() <= 16
    assert (result.placement.leader_node >= 4).all()


def played(cluster, **given):
    """The end of half an hour with CockroachDB's queues, its store rebalancer switched off."""
    around = simulate.Environment(consensus=True, gossip_interval=10.0, gossip_delay=0.5)
    scenario = simulate.Scenario(
        name="played",
        cluster=cluster,
        minutes=30.0,
        switched_off=["store"],
        environment=around,
        **given,
    )
    return simulate.run(scenario, "cockroach")


def test_a_simulation_goes_by_what_is_wanted_then():
    """The second configuration, which no range has at first, binds all of them later."""
    cluster = ek.cockroach_cluster(
        localities=SIX,
        replicas=[[0, 2, 4]] * 10,
        configs=[{"constraints": ["-region=nowhere"]}, {"constraints": {"+region=a": 2}}],
        size=2**20,
    )
    end = played(cluster, events=[At(60.0, ek.Changes(rule=1))]).replicas[-1]
    assert end[:2].tolist() == [10, 10]


def test_leases_follow_requests_in_a_simulation():
    cluster = ek.cockroach_cluster(
        localities=THREE, replicas=[[0, 1, 2]] * 20, configs=[{}], latency=100.0, size=2**20,
        requests=[{"region=c": 500.0, "region=a": 1.0}] * 20,
    )  # fmt: skip
    assert played(cluster).leaders[-1][2] >= 15


def test_replicas_that_answer_are_not_removed_for_those_that_do_not():
    """Two of five are to go, and nobody knows whether two others will come back."""
    cluster = ek.cockroach_cluster(
        localities=[""] * 5, replicas=[[0, 1, 2, 3, 4]] * 8, configs=[{}],
        status=["unknown"] * 2 + ["available"] * 3, leaseholder=[2] * 8,
    )  # fmt: skip
    row = ek.solve(cluster, "cockroach").placement.node.reshape(8, -1)
    assert ((row >= 2).sum(axis=1) == 3).all()
