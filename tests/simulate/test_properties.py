"""Whatever happens, and whoever decides: no replica is lost, and the history adds up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel import simulate
from evenkeel.control import Delay
from evenkeel.simulate import (
    At,
    Growth,
    Health,
    LoadDrift,
    NodesBecome,
    RollingUpgrade,
    Split,
    play,
)
from tests.simulate.test_play import FAST, cluster_of
from tests.support.effort import share_of_examples

seconds = st.integers(0, 90).map(lambda tick: 10.0 * tick)
node = st.integers(0, 8)
partition = st.integers(0, 11)


@st.composite
def happening(draw):
    """One event of any kind, in the first quarter of an hour."""
    at = draw(seconds)
    which = draw(node)
    kinds = [
        lambda: At(at, ek.Changes(down=which), dead_after=draw(st.sampled_from([0.0, 60.0, 1e6]))),
        lambda: At(at, ek.Changes(up=which)),
        lambda: At(at, ek.Changes(gone=which)),
        lambda: At(at, ek.Changes(drain=which)),
        lambda: At(at, ek.Changes(cordon=which, load_factor={"disk": 1.5})),
        lambda: NodesBecome(at=at, nodes=which, health=Health.DRAINING),
        lambda: At(at, ek.Changes(nodes={"names": [f"new{which}"], "like": which})),
        lambda: At(
            at, ek.Changes(down=draw(st.sampled_from(["zone=a", "zone=b", "zone=c"]))), lasts=120.0
        ),
        lambda: RollingUpgrade(tier="zone", at=at, batch=2, away=50.0, pause=10.0),
        lambda: At(at, ek.Changes(load_factor={draw(partition): 9.0}), lasts=100.0),
        lambda: LoadDrift(at=at, every=100.0, lasts=300.0),
        lambda: Growth(at=at, every=100.0, lasts=200.0, partitions=2),
        lambda: Split(partition=draw(partition), at=at),
    ]
    return draw(st.sampled_from(kinds))()


def played(events, decides):
    """A run of twenty minutes."""
    cluster = cluster_of(partitions=12, capacity=1000.0)
    method = decides
    if decides != "balance":
        method = simulate.pipeline(decides, delay=Delay(120.0))
    return cluster, play(cluster, events, method, until=1200.0, environment=FAST, every=30.0)


def rows_of(cluster, history):
    """Where every replica is after each change of the log; splits and growth are seen by it."""
    rows = {p: set(row) for p, row in enumerate(cluster.placement.nodes.tolist())}
    for entry in history.log:
        if entry.outcome == "made":
            change = entry.change
            before = rows.get(change.partition)
            yield entry.seconds, change, before
            if before is not None:
                joins = {n for n, _ in change.add}
                rows[change.partition] = (before | joins) - set(change.drop)


@share_of_examples(0.2)
@given(st.lists(happening(), max_size=5), st.sampled_from(["balance", "balance", "helix_waged"]))
def test_no_replica_is_lost_and_the_history_adds_up(events, decides):
    cluster, history = played(events, decides)
    moves = 0
    for _, change, before in rows_of(cluster, history):
        joins = [n for n, _ in change.add]
        moves += len(joins)
        if before is not None:
            assert not set(joins) & before, "it is there already"
            assert set(change.drop) <= before
            assert len(before | set(joins)) - len(change.drop) >= min(len(before), 3)
    assert history.total("moves") == moves == history.table()["moves"][-1]
    assert (np.diff(history.totals, axis=0) >= 0.0).all(), "totals only grow"
    assert (np.diff(history.seconds) > 0.0).all()
    assert (history.leaders <= history.replicas).all()
    wanted = 3 * len(history.partitions)
    short = history.astray("under")[-1] + history.astray("unavailable")[-1]
    assert history.replicas[-1].sum() >= wanted - 3 * short
    assert history.below_min_active.sum() == history.total("below_min_active") or np.isclose(
        history.below_min_active.sum(), history.total("below_min_active")
    )
    assert (history.below_min_active <= 1200.0).all()
    assert history.returns(0.0)[-1] <= history.returns()[-1] <= moves


@share_of_examples(0.1)
@given(st.lists(happening(), max_size=4))
def test_what_each_node_has_is_what_the_log_says(events):
    structural = (Growth, Split)
    events = [event for event in events if not isinstance(event, structural)]
    cluster, history = played(events, "balance")
    rows = {p: set(row) for p, row in enumerate(cluster.placement.nodes.tolist())}
    at = 0
    for row, now in enumerate(history.seconds.tolist()):
        while at < len(history.log) and history.log[at].seconds <= now:
            change, outcome = history.log[at].change, history.log[at].outcome
            if outcome == "made":
                stays = rows[change.partition] | {n for n, _ in change.add}
                rows[change.partition] = stays - set(change.drop)
            at += 1
        count = np.bincount(
            [n for nodes in rows.values() for n in nodes], minlength=history.replicas.shape[1]
        )
        assert count.tolist() == history.replicas[row].tolist()
        naive = sum(sum(bool(history.alive[row, n]) for n in nodes) < 2 for nodes in rows.values())
        assert naive == history.astray("in_danger")[row]
        bare = sum(not any(history.alive[row, n] for n in nodes) for nodes in rows.values())
        assert bare == history.astray("unavailable")[row]


@share_of_examples(0.1)
@given(st.lists(happening(), max_size=3), st.sampled_from(["balance", "helix_waged"]))
def test_the_same_again_is_the_same_bits(events, decides):
    (_, one), (_, other) = played(events, decides), played(events, decides)
    assert one.log == other.log
    assert one.totals.tobytes() == other.totals.tobytes()
    assert one.load.tobytes() == other.load.tobytes()
