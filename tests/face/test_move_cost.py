"""Partitions that are dear to move: they move last, and where that is needed."""

import numpy as np
import pytest
from ortools.sat.python import cp_model

import evenkeel as ek
from evenkeel.cli import main
from tests.support.effort import mostly_long


def two_topics(**changes):
    """Ten of twelve partitions on one node; six belong to a hot topic."""
    arguments = {
        "capacity": [[20.0]] * 3, "load": [[1.0]] * 12, "group": ["hot"] * 6 + ["cold"] * 6,
        "placement": [[0]] * 10 + [[1]] * 2,
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(arguments | changes))


def moved(result):
    names, group = result.cluster.partitions.names, result.cluster.partitions.group
    which = [group[names.index(one.partition)] for one in result.moves]
    return np.bincount(which, minlength=2).tolist()


@pytest.mark.parametrize(
    ("cluster", "costs", "cold_and_hot"),
    [
        (two_topics(), {"hot": 5}, [4, 2]),
        (two_topics(), {"group=hot": 5}, [4, 2]),
        (two_topics(), {"cold": 3}, [0, 6]),
        (two_topics(), {"p?": 9, "group=hot": 2}, [0, 6]),
        (two_topics().pin(group="cold"), {"hot": 5}, [0, 6]),
        (two_topics().drain("n0"), {"hot": 5}, [4, 6]),
    ],
)
def test_what_is_dear_moves_last(cluster, costs, cold_and_hot):
    found = ek.solve(cluster, goals=ek.Goals(level=0.0, move_cost=costs))
    group = found.cluster.partitions.group_names
    by_name = dict(zip(group, moved(found), strict=True))
    assert [by_name["cold"], by_name["hot"]] == cold_and_hot
    assert found.audit.hard == 0
    assert found.goals_reached


@pytest.mark.parametrize(
    ("costs", "message"), [({"hot": 0.5}, "1 to"), ({"hat": 2}, "neither"), ([1], "mapping")]
)
def test_what_is_no_cost(costs, message):
    with pytest.raises(ek.InvalidInput, match=message):
        ek.solve(two_topics(), goals=ek.Goals(move_cost=costs))


def least_cost(cluster, most, cost):
    """Return what moves cost at least for no node to hold more than ``most``, by CP-SAT."""
    model, before = cp_model.CpModel(), cluster.placement.nodes.tolist()
    at = [[model.new_bool_var("") for _ in cluster.nodes.names] for _ in before]
    for row, old in zip(at, before, strict=True):
        model.add(sum(row) == len(old))
    for n, room in enumerate(most.tolist()):
        model.add(sum(row[n] for row in at) <= round(room))
    model.minimize(sum(cost[p] * (1 - at[p][n]) for p, old in enumerate(before) for n in old))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.solve(model)
    return round(solver.objective_value)


@pytest.mark.parametrize("begin", mostly_long(range(0, 150, 10), (0,)))
def test_moves_cost_little_more_than_the_least(begin):
    above, plain = [], []
    for seed in range(begin, begin + 10):
        rng = np.random.default_rng(seed)
        nodes, count = int(rng.integers(3, 7)), int(rng.integers(8, 25))
        favour = (rng.dirichlet(np.ones(nodes)) + 0.02) / (1 + 0.02 * nodes)
        rows = [rng.choice(nodes, 2, replace=False, p=favour).tolist() for _ in range(count)]
        cluster = ek.Cluster.from_arrays(
            capacity=[[99.0]] * nodes, load=[[1.0]] * count, placement=rows,
            group=[*"abc", *("abc"[i] for i in rng.integers(0, 3, count - 3))],
        )  # fmt: skip
        names, costs = cluster.partitions.group_names, {"a": 5, "b": 2}
        cost = [costs.get(names[g], 1) for g in cluster.partitions.group.tolist()]
        found, free = (
            ek.solve(cluster, goals=ek.Goals(level=0.1, move_cost=one)) for one in (costs, {})
        )
        assert found.goals_reached
        least = least_cost(cluster, found.bounds.target[:, 0], cost)
        for result, into in ((found, above), (free, plain)):
            into.append(
                sum(cost[cluster.partitions.names.index(one.partition)] for one in result.moves)
                - least
            )
    assert min(above) >= 0
    assert sum(above) <= sum(plain) / 2


def test_on_the_command_line(tmp_path, capsys):
    ek.write(two_topics(), tmp_path / "c.npz")
    words = ["--level", "0", "--move-cost", "hot=5", "--json", "--table", str(tmp_path / "m.csv")]
    assert main(["solve", str(tmp_path / "c.npz"), *words]) == 0
    table = (tmp_path / "m.csv").read_text()
    hot = [
        line
        for line in table.splitlines()
        if line.startswith(tuple(f"move,p{i}," for i in range(6)))
    ]
    assert len(hot) == 2
    assert '"moves": 6' in capsys.readouterr().out
