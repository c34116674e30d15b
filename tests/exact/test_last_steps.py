"""The last steps: what one replica, or one leader, mends is mended; nothing becomes worse by it."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import Audit
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.exact import last_steps
from evenkeel.methods.exact.last_steps import with_last_steps
from evenkeel.methods.registry import find
from evenkeel.methods.run import checked
from evenkeel.methods.shared.answers import ViolationSummary, regresses
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.placement import Flag, Placement
from tests.judge.clusters import draw
from tests.judge.trial import try_one


def asked(cluster: ek.Cluster, limits: ek.Limits | None = None) -> Request:
    return checked(
        find("balance"), cluster, goals=ek.Goals(level=None), limits=limits, options=None,
        start=None, watch=Watch(None, None, None), seed=0,
    )  # fmt: skip


def stepped(cluster: ek.Cluster, limits: ek.Limits | None = None) -> Outcome:
    """Take steps from where a cluster stands."""
    placement = cluster.placement
    stays = Outcome(placement.node.copy(), placement.leader.copy(), "exhausted")
    return with_last_steps(asked(cluster, limits), stays)


@pytest.mark.parametrize(
    ("family", "seed"),
    [("roles", 610211), ("rules", 610560), ("anything", 611397), ("anything", 611707)],
)
def test_nothing_is_left_that_one_step_would_mend(family: str, seed: int) -> None:
    """Over-full clusters where CP-SAT, out of effort or by what it counts, left something over."""
    assert try_one(draw(family, seed)).findings == []


def test_a_replica_is_placed_where_there_is_room() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0], [1.0], [2.0]], load=[[2.0], [1.0]], placement=[[0, -1], [2, -1]]
    )
    ended = stepped(cluster)
    assert ended.node.tolist() == [0, 2, 2, 1] or ended.node.tolist() == [0, -1, 2, 1]
    assert not regresses(asked(cluster), ended)


def test_budgets_hold() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 4, placement=[[0, -1]] * 4
    )
    ended = stepped(cluster, ek.Limits(moves=2))
    assert np.count_nonzero(ended.node >= 0) == 4 + 2


def test_steps_that_share_a_domain_or_exceed_a_budget_are_refused_unaudited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 2, placement=[[0, -1], [0, -1]], spread={"zone": 1},
        domains={"zone": ["a", "a", "b", "b", "c", "c"]}, accepts=[True] * 4 + [False] * 2,
    )  # fmt: skip
    audited = []
    original = last_steps.audit

    def noted(cluster: ek.Cluster, placement: Placement) -> Audit:
        audited.append(original(cluster, placement))
        return audited[-1]

    monkeypatch.setattr(last_steps, "audit", noted)
    ended = stepped(cluster)
    assert (ended.node >= 0).all()
    assert len(audited) == 3
    assert not any(one.counts["spread"] for one in audited)
    audited.clear()
    assert (stepped(cluster, ek.Limits(moves=0)).node < 0).sum() == 2
    assert len(audited) == 1


def test_a_leader_is_seated() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0, 1]], leader=[0], leads=[False, True]
    )
    assert stepped(cluster).leader.tolist() == [1]


def test_a_surplus_replica_goes_but_not_one_that_a_quorum_needs() -> None:
    """The one without a vote goes; where a rule wants its node, it gets the vote."""
    shape = {
        "capacity": [[9.0]] * 3, "load": [[1.0]], "placement": [[0, 1, 2]], "role": [[0, 0, 1]],
        "replicas": 2, "voters": 2,
    }  # fmt: skip
    assert stepped(ek.Cluster.from_arrays(**shape)).node.tolist() == [0, 1, -1]
    wants = ek.Rule(place={"+ssd": 1})
    ssd = ek.Cluster.from_arrays(
        **shape, tags={"ssd": [False, False, True]}, rules=[wants], rule=[0]
    )
    assert stepped(ssd).node.tolist() == [0, 2, -1]


def test_two_trade_roles() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1, 2]], role=[[0, 0, 1]], voters=2,
        tags={"ssd": [True, False, True]}, rules=[ek.Rule(voters_place={"+ssd": 2})], rule=[0],
    )  # fmt: skip
    assert stepped(cluster).node.tolist() == [0, 2, 1]


def test_a_replica_moves_off_a_forbidden_node() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0]] * 3, load=[[1.0], [1.0]], placement=[[0], [1]], forbidden=[[0, 0]]
    )
    assert stepped(cluster).node.tolist() == [2, 1]


def test_what_is_pinned_stays() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1]], replicas=1,
        flags=[[int(Flag.PINNED)] * 2],
    )  # fmt: skip
    assert stepped(cluster).node.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_less_is_undone_and_nothing_worse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    alive = rng.random(nodes) < 0.8
    cluster = ek.Cluster.from_arrays(
        capacity=rng.uniform(1.0, 4.0, (nodes, 1)), load=rng.uniform(0.1, 2.0, (partitions, 1)),
        alive=alive, keeps=alive, forbidden=np.argwhere(rng.random((partitions, nodes)) < 0.2),
        placement=rng.integers(-1, nodes, (partitions, int(rng.integers(1, 4)))),
    )  # fmt: skip
    request, before = asked(cluster), cluster.placement
    stays = Outcome(before.node.copy(), before.leader.copy(), "exhausted")
    ended = with_last_steps(request, stays)
    assert ViolationSummary.of(request, ended) <= ViolationSummary.of(request, stays)
    assert not regresses(request, ended)
    again = with_last_steps(request, ended)
    assert again is ended
