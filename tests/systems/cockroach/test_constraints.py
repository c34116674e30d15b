"""Constraints: what they say of every store, how they are read, and what is wrong with them."""

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.systems.cockroach.allocator.intake import cockroach_cluster, fleet_of
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Constraint,
    parse_config,
    parse_constraint,
    zone_configs_of,
)
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.constraints import ADD, REBALANCE, REMOVE, REPLACE
from tests.naive.cockroach import replicas as naive
from tests.support.cockroach.problems import compiled, held, problems

CHANGES = [(ADD, "add"), (REMOVE, "remove"), (REBALANCE, "rebalance"), (REPLACE, "replace")]


@pytest.mark.parametrize(("change", "name"), CHANGES)
@pytest.mark.parametrize(("role", "is_voter"), [(kernel.VOTER, True), (kernel.NON_VOTER, False)])
@pytest.mark.small
@given(case=problems())
def test_every_store_is_judged_as_written(case, role, is_voter, change, name):
    problem, voters, others = case
    allocator, _ = compiled(problem)
    row = voters if is_voter else others or voters
    leaving = row[0] if change in (REBALANCE, REPLACE) else None
    valid, necessary = allocator.check(
        held(voters, others), change, -1 if leaving is None else leaving, role
    )
    for s in row if change == REMOVE else range(len(problem.stores)):
        expected = naive.asked(problem, voters, others, is_voter, name, s, leaving)
        assert (valid[s], necessary[s]) == expected[:2]


@pytest.mark.small
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_stand_in_may_leave_no_conjunction_short(order):
    """What one conjunction lacks does not make up for another that the leaver alone meets."""
    stores = [naive.Store(0, attributes=frozenset({"ssd"})), naive.Store(1, (("dc", "b"),))]
    asked = [([(True, "dc", "b")], 1), ([(True, "", "ssd")], 1)]
    problem = naive.Problem(stores, 2, 2, [asked[i] for i in order])
    allocator, _ = compiled(problem)
    valid, necessary = allocator.check(held([0], []), REPLACE, 0, kernel.VOTER)
    assert (bool(valid[1]), bool(necessary[1])) == (False, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+region=us-east1", Constraint(True, "region", "us-east1")),
        ("-ssd", Constraint(False, "", "ssd")),
        (" +ssd".strip(), Constraint(True, "", "ssd")),
        ("+ zone = a ", Constraint(True, "zone", "a")),
        ("ssd", None),
    ],
)
def test_constraints_are_read(text, expected):
    faults = FaultList()
    assert parse_constraint(faults, "c", text) == expected
    assert not faults


@pytest.mark.parametrize("text", ["", "+", "-", "+=a", "+a=", "+a=b=c", "a=", 7, None])
def test_what_is_no_constraint_is_named(text):
    faults = FaultList()
    assert parse_constraint(faults, "constraints[3]", text) is None
    assert [fault.path for fault in faults.faults] == ["constraints[3]"]


def test_constraints_in_both_shapes():
    faults = FaultList()
    config = parse_config(
        faults,
        "configs[0]",
        {
            "num_replicas": 5,
            "num_voters": 3,
            "constraints": {"+region=a,+ssd": 2, "+region=b": 1},
            "voter_constraints": ["+region=a", "-hdd"],
            "lease_preferences": [["+region=a"], ["+region=b", "-hdd"]],
        },
    )
    assert not faults
    assert [(len(c.constraints), c.replicas) for c in config.constraints] == [(2, 2), (1, 1)]
    assert [(len(c.constraints), c.replicas) for c in config.voter_constraints] == [(2, 0)]
    assert [len(one) for one in config.lease_preferences] == [1, 2]


def test_everything_wrong_is_told_at_once():
    with pytest.raises(InvalidInput) as raised:
        cockroach_cluster(
            localities=["region=us,zone=a", "region=us,zone", "region=eu", "region=eu"],
            hosts=[1, 2, 3, 3],
            status=["available", "asleep", "dead", "dead"],
            replicas=[[0, 1], [2, 9], [0, 3]],
            leaseholder=[0, 2, 1],
            qps=[1.0, -2.0, 0.0],
            cpu=[0.0, np.nan, 0.0],
            size=-1.0,
            config=[0, 1, 4],
            configs=[
                {"num_replicas": 3, "constraints": {"+region=us": 2, "+region=eu": 2}},
                {"num_replicas": 1, "num_voters": 2, "constraints": ["+a=b=c"], "ttl": 5},
            ],
        )
    told = {fault.path for fault in raised.value.faults}
    assert told >= {
        "localities[1]", "status[1]", "replicas[1, 1]", "leaseholder[2]", "qps[1]", "cpu[1]",
        "size[0]", "size[1]", "size[2]", "config[2]", "configs[0].constraints",
        "configs[1].num_voters", "configs[1].constraints[0]", "configs[1].ttl",
    }  # fmt: skip
    assert "range 2 has no replica there" in str(raised.value)


def test_stores_of_one_host_share_its_locality():
    with pytest.raises(InvalidInput, match="same host"):
        cockroach_cluster(
            localities=["region=us", "region=eu"], hosts=[4, 4], replicas=[[0]],
            configs=[{"num_replicas": 1}],
        )  # fmt: skip


def test_the_cluster_is_what_the_allocator_sees():
    cluster = cockroach_cluster(
        localities=["region=us,zone=a", "region=us,zone=b", "region=eu", ""],
        hosts=[7, 8, 9, 9 + 1],
        attributes=[["ssd"], [], ["ssd"], []],
        status=["available", "throttled", "draining", "decommissioning"],
        replicas=[[0, 1, -1], [2, 3, 0]],
        roles=[[0, 0, 0], [0, 0, 1]],
        leaseholder=[1, 2],
        configs=[{"num_replicas": 4, "num_voters": 3, "constraints": {"+region=us,+ssd": 1}}],
        qps=[10.0, 20.0],
        size=[5.0, 7.0],
        capacity=[100.0, 100.0, 100.0, np.inf],
    )
    fleet = fleet_of(cluster)
    assert fleet.hosts == 3
    assert fleet.stores.status.tolist() == [0, 1, 3, 5]
    assert fleet.stores.amount[kernel.RANGES].tolist() == [2.0, 1.0, 1.0, 1.0]
    assert fleet.stores.amount[kernel.LEASES].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert fleet.stores.amount[kernel.QPS].tolist() == [0.0, 10.0, 20.0, 0.0]
    assert fleet.stores.amount[kernel.BYTES].tolist() == [12.0, 5.0, 7.0, 7.0]
    assert fleet.stores.capacity.tolist() == [100.0, 100.0, 100.0, 0.0]
    assert fleet.localities.matches[0, fleet.localities.alike].tolist() == [
        True,
        False,
        False,
        False,
    ]
    first = fleet.ranges.first
    assert fleet.ranges.store[: first[1]].tolist() == [0, 1, -1, -1, -1]
    assert fleet.ranges.role[: first[1]].tolist()[:4] == [0, 0, 0, 1]


def test_rules_become_constraints():
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0]] * 4, load=[[0.0]] * 2, replicas=3, voters=[3, 2],
        domains={"zone": ["a", "a", "b", "c"]}, tags={"ssd": [1, 0, 1, 1]},
        rules=[
            ek.Rule(require=["+ssd"], place={"zone=a": 1}, voters_place={"zone=b": 1},
                    lead=["zone=b", "zone!=a"])
        ],
    )  # fmt: skip
    configs, config = zone_configs_of(cluster)
    assert config.tolist() == [1, 0]
    assert [(c.num_replicas, c.num_voters) for c in configs] == [(3, 2), (3, 3)]
    said = [([str(x) for x in c.constraints], c.replicas) for c in configs[0].constraints]
    assert said == [(["+ssd", "+zone=a"], 1), (["+ssd"], 2)]
    assert [str(c.constraints[0]) for c in configs[0].voter_constraints] == ["+zone=b"]
    assert [[str(x) for x in one] for one in configs[0].lease_preferences] == [
        ["+zone=b"],
        ["-zone=a"],
    ]
