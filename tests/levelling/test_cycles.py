"""Replicas that weigh alike make the fewest moves, which a min-cost flow confirms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel_kernels.levelling.cycles import cancel
from evenkeel_kernels.levelling.penalty import new_targets
from tests.core.test_state import assert_books_are_right
from tests.naive.levelling.cycles import fewest_moves
from tests.support.effort import mostly_long

SEEDS = st.integers(0, 2**32 - 1)


def placed(rng, partitions, width, tiers, may, weight):
    """Place each partition at random within the limits of its tiers; as far as these allow."""
    rows = []
    for p in range(partitions):
        row: list[int] = []
        while len(row) < width:
            free = [
                n for n in range(len(weight))
                if n not in row and may[p][n]
                and all(sum(at[m] == at[n] for m in row) < most for at, most in tiers)
            ]  # fmt: skip
            if not free:
                break
            row.append(int(rng.choice(free, p=weight[free] / weight[free].sum())))
        rows.append(row)
    return rows


def zones_and_racks(rng, nodes):
    """Domains of two tiers, racks within zones, and the most replicas of a partition in each."""
    rack = rng.integers(0, rng.integers(1, 5), nodes)
    zone = rack % int(rng.integers(1, 4))
    return [(zone, int(rng.integers(1, 4))), (rack, int(rng.integers(1, 3)))]


@pytest.mark.small
@settings(max_examples=100)
@given(SEEDS)
def test_what_is_proven_is_what_a_flow_finds(seed):
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(1, 8)), int(rng.integers(1, 12))
    tiers, width = zones_and_racks(rng, nodes), int(rng.integers(1, 4))
    pinned = rng.random(partitions) < 0.1
    open_to = rng.random(nodes) < 0.9
    rows = placed(rng, partitions, width, tiers, [[True] * nodes] * partitions, np.ones(nodes))
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((nodes, 1), 99.0), load=np.full((partitions, 1), 3.0),
        placement=[row + [-1] * (width - len(row)) for row in rows],
        domains={name: at.astype(str).tolist()
                 for name, (at, _) in zip(("zone", "rack"), tiers, strict=True)},
        rules=[ek.Rule(spread={"zone": tiers[0][1], "rack": tiers[1][1]})],
        rule=np.zeros(partitions, int), accepts=open_to,
    ).pin(np.flatnonzero(pinned))  # fmt: skip
    room = rng.integers(0, 2 * sum(map(len, rows)) // nodes + 2, nodes)
    problem = compile_problem(cluster, 3.0 * room[None].astype(float), np.ones(1))
    state = compile_state(cluster, problem)
    lists, arcs = np.zeros(nodes + len(state.node), np.int64), np.zeros((2, nodes, nodes), np.int64)
    proven = cancel(
        problem, state, new_targets(problem, np.full(nodes, np.inf), 1.0), np.array([3.0]), lists,
        arcs[0], arcs[1], np.zeros((4, nodes + 1), np.int64), np.array([10**6]),
    )  # fmt: skip
    assert_books_are_right(problem, state)
    may = [[n in row or bool(open_to[n] and not pinned[p]) for n in range(nodes)]
           for p, row in enumerate(rows)]  # fmt: skip
    stands = [[n for n in state.node[p * width : (p + 1) * width].tolist() if n >= 0]
              for p in range(partitions)]  # fmt: skip
    for p, row in enumerate(stands):
        assert len(row) == len(rows[p])
        assert all(may[p][n] for n in row)
        for at, most in [*tiers, (np.arange(nodes), 1)]:
            assert np.bincount(at[row]).max(initial=0) <= most
    fewest = fewest_moves(rows, tiers, may, room.tolist())
    closed = any(not open_to[n] for row, now in zip(rows, stands, strict=True)
                 for n in set(row) - set(now))  # fmt: skip
    if proven and not closed:
        assert (
            sum(len(set(now) - set(was)) for was, now in zip(rows, stands, strict=True)) == fewest
        )
    if fewest is None:
        assert not proven


def unlike(seed: int, **given: Any) -> tuple[dict[str, Any], list[tuple[Any, int]]]:
    """Equal replicas on unlike nodes, of which one or two have just come."""
    rng = np.random.default_rng(seed)
    zones = int(rng.integers(3, 7))
    nodes, partitions = int(rng.integers(3 * zones, 6 * zones)), int(rng.integers(40, 257))
    zone, size = np.arange(nodes) % zones, rng.integers(1, 6, nodes).astype(float)
    weight = np.where(np.arange(nodes) < nodes - rng.integers(1, 3), size, 0.0)
    tiers = [(zone, 1)] if seed % 3 else []
    rows = placed(rng, partitions, 3, tiers, [weight > 0.0] * partitions, weight)
    rule = {"spread": {"zone": 1}} if seed % 3 else {}
    return rule | {
        "capacity": (size * partitions * 3 / size.sum() * 1.8)[:, None], "placement": rows,
        "load": np.ones((partitions, 1)), "domains": {"zone": zone.astype(str).tolist()},
    } | given, tiers  # fmt: skip


Situation = Callable[[ek.Cluster, int], tuple[ek.Cluster, dict[str, Any], list[int], list[int]]]
"""The cluster changed, what is asked beyond it, and which node keeps none, or takes none."""

SITUATIONS: dict[str, Situation] = {
    "plain": lambda cluster, n: (cluster, {}, [], []),
    "dead": lambda cluster, n: (cluster.down(n), {}, [n], [n]),
    "drained": lambda cluster, n: (cluster.drain(n), {}, [n], [n]),
    "cordoned": lambda cluster, n: (cluster.cordon(n), {}, [], [n]),
    "budget": lambda cluster, n: (cluster, {"limits": ek.Limits(moves=400, node_in=40)}, [], []),
    "leaders": lambda cluster, n: (cluster, {"leaders": 0.3}, [], []),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("seed", mostly_long(range(25), range(4)))
def test_equal_replicas_make_the_fewest_moves(seed: int, situation: str) -> None:
    given, tiers = unlike(seed)
    whole = ek.Cluster.from_arrays(**given)
    cluster, asked, leaves, closed = SITUATIONS[situation](whole, seed % len(whole.nodes))
    goals = ek.Goals(level=0.0 if seed % 2 else 0.1, leaders=asked.pop("leaders", None))
    result = ek.solve(cluster, goals=goals, **asked)
    if not result.success:  # a budget, leaders or zones may be in the way
        return
    rows, nodes = given["placement"], len(cluster.nodes)
    may = [[n not in leaves and (n in row or n not in closed) for n in range(nodes)]
           for row in rows]  # fmt: skip
    room = np.floor(np.minimum(result.bounds.target[:, 0], 1e6) + 1e-6).astype(int).tolist()
    fewest = fewest_moves(rows, tiers, may, room)
    if result.status == "optimal":
        assert result.comparison.moves == fewest
    else:
        assert situation == "leaders"


def test_moves_are_called_the_fewest_where_bounds_know_less() -> None:
    given, _ = unlike(9)
    rows, zone = given["placement"], np.array(given["domains"]["zone"]).astype(int)
    bound = np.arange(len(rows)) % 3 > 0
    cluster = ek.Cluster.from_arrays(
        **given, rules=[ek.Rule(require=["zone!=0"])], rule=np.where(bound, 0, -1)
    )
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    may = [[bool(zone[n] != 0) or not tied for n in range(len(zone))] for tied in bound]
    room = np.floor(result.bounds.target[:, 0] + 1e-6).astype(int).tolist()
    assert result.comparison.moves == fewest_moves(rows, [], may, room)
    assert result.comparison.moves > result.bounds.moves_level
    assert result.status == "optimal"
