"""No step of a search worsens anything, wherever it is cut short, and none exceeds a budget."""

from typing import Any

import pytest

import evenkeel as ek
from evenkeel.measure.spending import exceeded
from tests.support.stopping import stopping_after

F = ek.Flag
HELD = F.STRANDED | F.PINNED

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a lead is not handed back to a node without the room": (
        {
            "capacity": [[3.0], [5.0]],
            "load": [[2.0]],
            "leader_load": [[4.0]],
            "placement": [[0, 1]],
            "leader": [1],
            "flags": [[F.PREFERRED, 0]],
        },
        {"time_limit": 0.0},
    ),
    "a replica behind does not lead, though the one in sync may not": (
        {
            "capacity": [[9.0]] * 3,
            "load": [[1.0]],
            "leader_load": [[2.0]],
            "placement": [[0, 1, 2]],
            "replicas": [2],
            "flags": [[F.CAUGHT_UP, 0, F.CAUGHT_UP]],
            "alive": [False, True, True],
            "accepts": [False, True, True],
            "leads": [False, True, False],
        },
        {"led": [-1]},
    ),
    "what is stranded makes no room, though it is not pinned": (
        {
            "capacity": [[4.0], [3.0], [9.0]],
            "load": [[3.0], [4.0]],
            "placement": [[0], [2]],
            "flags": [[F.STRANDED], [0]],
            "keeps": [True, True, False],
            "accepts": [True, True, False],
        },
        {},
    ),
    "what a start has given up counts against a budget": (
        {
            "capacity": [[55.0]] * 6,
            "load": [[2.0], [1.0], [1.0], [5.0]],
            "domains": {"zone": ["a", "d", "a", "d", "b", "b"]},
            "placement": [[4, 3, 1], [3, 4, 5], [1, 3, 4], [3, 4, 5]],
            "replicas": [1, 1, 3, 2],
            "group": [1, 1, 0, 1],
            "group_names": ["g0", "g1"],
        },
        {"goals": {"move_cost": {"g0": 10.0}}, "limits": {"domain_out": {"zone": 2}}},
    ),
    "no replica too many is dropped that a term leans on": (
        {
            "capacity": [[29.0]] * 4,
            "load": [[1.0]] * 2,
            "domains": {"zone": [*"bcda"]},
            "placement": [[1, 3, 1, 0], [1, 3, 0, 2]],
            "replicas": [0, 2],
            "rules": [ek.Rule(voters_place={"zone=a": 1})],
            "rule": [-1, 0],
        },
        {"limits": {"node_out": [0, 1, 1, 2]}},
    ),
    "nor one that a skew leans on": (
        {
            "capacity": [[1.2], [1.2], [2.4], [2.4], [4.7]],
            "load": [[2.0]],
            "domains": {"zone": [*"cbacc"]},
            "placement": [[0, 2, 1, 4]],
            "replicas": [3],
            "rules": [ek.Rule(place={"zone=c": 2}, skew={"zone": 1})],
            "rule": [0],
        },
        {},
    ),
    "nor one that a group leans on": (
        {
            "capacity": [[9.0]],
            "load": [[1.0]] * 2,
            "placement": [[0], [0]],
            "replicas": [1, 0],
            "group": [0, 1],
            "group_names": ["g0", "g1"],
            "domains": {"zone": ["a"]},
            "depends": [(0, 1, "zone")],
        },
        {},
    ),
    "a dead replica comes back beside no other in its rack": (
        {
            "capacity": [[9.0], [9.0], [9.0], [0.0]],
            "load": [[1.0]],
            "alive": [False, False, True, True],
            "domains": {"rack": [*"abbc"]},
            "placement": [[0, 1]],
            "tags": {"ssd": [False, True, False, False]},
            "rules": [ek.Rule(voters_place={"+ssd": 1}, skew={"rack": 1})],
            "rule": [0],
        },
        {"limits": {"node_out": 0}},
    ),
    "what stays on a dead node needs nothing that was there": (
        {
            "capacity": [[9.0]] * 5,
            "load": [[1.0]] * 2,
            "alive": [True] * 4 + [False],
            "domains": {"rack": [*"abccd"]},
            "placement": [[3, 0, 4, 2], [3, 4, 0, 2]],
            "flags": [[0] * 4, [HELD] * 4],
            "group": [1, 0],
            "group_names": ["g0", "g1"],
            "depends": [(0, 1, "rack")],
        },
        {},
    ),
    "a leader that nothing replaces changes no leader": (
        {"capacity": [[9.0]] * 2, "load": [[1.0]], "placement": [[1]], "replicas": [0]},
        {"limits": {"leader_changes": 0}},
    ),
    "a leader stays where the only other one is pinned and may not lead": (
        {
            "capacity": [[5.0]] * 4,
            "load": [[1.0]],
            "placement": [[0, 3, 1]],
            "leads": [False, True, False, True],
            "replicas": [1],
            "leader": [1],
            "flags": [[F.HEALTHY | F.CAUGHT_UP | F.PINNED, 0, 0]],
        },
        {},
    ),
    "a leader behind stays where a new one has no room": (
        {
            "capacity": [[9.0], [3.0]],
            "load": [[1.0]] * 2,
            "leader_load": [[3.0], [2.0]],
            "placement": [[0, 1], [1, -1]],
            "replicas": [1, 1],
            "leader": [0, 0],
            "flags": [[0, F.CAUGHT_UP], [F.PINNED, 0]],
        },
        {},
    ),
    "a leader behind stays where no leader may change": (
        {
            "capacity": [[9.0]] * 2,
            "load": [[1.0]],
            "placement": [[0, 1]],
            "replicas": [1],
            "leader": [1],
            "flags": [[F.CAUGHT_UP, 0]],
        },
        {"limits": {"leader_changes": 0}},
    ),
    "a leader stays where the only other one is behind": (
        {
            "capacity": [[9.0]] * 4,
            "load": [[1.0]],
            "domains": {"zone": [*"abca"]},
            "placement": [[0, 3, 1]],
            "replicas": [2],
            "leads": [True, True, True, False],
            "flags": [[0, F.CAUGHT_UP, 0]],
            "rules": [ek.Rule(spread={"zone": 1})],
            "rule": [0],
        },
        {"led": [0]},
    ),
    "a learner is no voter to a term": (
        {
            "capacity": [[9.0]] * 4,
            "load": [[1.0]],
            "placement": [[0, 0, 1]],
            "role": [[0, 2, 0]],
            "leader": [2],
            "rule": [0],
            "tags": {"ssd": [True, False, False, False]},
            "rules": [ek.Rule(voters_place={"+ssd": 1})],
        },
        {},
    ),
    "a leader does not lead on from where another is behind": (
        {
            "capacity": [[17.0], [99.0], [99.0]],
            "load": [[4.0]],
            "leader_load": [[12.0]],
            "dimensions": ["d0"],
            "bytes": "d0",
            "placement": [[0, 1]],
            "flags": [[F.CAUGHT_UP, 0]],
        },
        {"goals": {"level": 0.0, "leaders": 0.1}, "limits": {"bytes": 8.0}},
    ),
    "what was made worse stays when soft rules yield": (
        {
            "capacity": [[5.0], [10.0], [5.0], [10.0]],
            "load": [[2.0], [2.0], [5.0], [3.0]],
            "leader_load": [[0.0], [0.0], [0.0], [3.0]],
            "dimensions": ["d0"],
            "transient": ["d0"],
            "domains": {"zone": [*"aaba"]},
            "placement": [[0, 1, -1], [0, 1, -1], [1, 2, -1], [2, 0, 0]],
            "group": [1, 1, 0, 1],
            "group_names": ["g0", "g1"],
            "rules": [ek.Rule(spread={"zone": (4, "soft")})],
            "group_rule": [0, 0],
        },
        {},
    ),
}


@pytest.mark.parametrize("calls", [None, *range(6)])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_worse_and_no_budget_exceeded(name: str, calls: int | None) -> None:
    given, asked = CASES[name]
    cluster = ek.Cluster.from_arrays(**given)
    goals, limits = ek.Goals(**{"level": None} | asked.get("goals", {})), asked.get("limits", {})
    result = ek.solve(
        cluster, goals=goals, limits=ek.Limits(**limits),
        callback=None if calls is None else stopping_after(calls),
        time_limit=asked.get("time_limit"),
    )  # fmt: skip
    assert result.placement.leader.tolist() == asked.get("led", result.placement.leader.tolist())
    assert result.regressions == {}
    assert exceeded(cluster, result.placement, ek.Limits(**limits)) == []


def test_a_leader_given_up_weighs_no_more_than_it_led() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]], load=[[3.0]] * 2, leader_load=[[1.0], [3.0]], dimensions=["d0"],
        transient=["d0"], placement=[[0], [0]], replicas=[0, 1],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.placement.nodes.tolist() == [[-1], [0]]


@pytest.mark.parametrize("calls", range(4))
def test_a_start_is_not_used_where_disks_have_no_room_for_it(calls: int) -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0], [3.0], [4.0]], load=[[2.0], [1.0]], dimensions=["size"], bytes="size",
        placement=[[0], [1]], disks=ek.Disks([0, 1, 1, 2], [4.0, 1.5, 1.5, 4.0]),
        disk=[[0], [1]],
    )  # fmt: skip
    start = cluster.placement.replaced([1, 1], [0, 0])
    goals = ek.Goals(level=None)
    result = ek.solve(cluster, start=start, goals=goals, callback=stopping_after(calls))
    assert result.regressions == {}
