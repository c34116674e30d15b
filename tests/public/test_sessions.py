"""What users of programs that keep a placement in memory reported, and what is right for each."""

import numpy as np
import pytest

import evenkeel as ek

BROKERS = ["1001", "1063", "1068", "1070"]


def cluster(brokers=BROKERS, partitions=24, replicas=2):
    """Topics on brokers, a replica in each of several racks."""
    count = len(brokers)
    return ek.Cluster.from_arrays(
        capacity=[[100.0]] * count, load=[[1.0 + i % 3] for i in range(partitions)],
        placement=[[(i + j) % count for j in range(replicas)] for i in range(partitions)],
        node_names=brokers, partition_names=[f"t{i // 6}-{i % 6}" for i in range(partitions)],
        group=[f"t{i // 6}" for i in range(partitions)],
    )  # fmt: skip


def held(session, answer):
    """Replicas of each node in an answer, by name."""
    nodes = session.cluster.nodes.names
    count = np.bincount(answer.placement.node[answer.placement.node >= 0], minlength=len(nodes))
    return dict(zip(nodes, count.tolist(), strict=True))


def test_a_broker_that_is_gone_is_refused_and_nothing_else(public):
    public("sessions/failed-broker-is-gone")
    session = ek.Session(cluster())
    session.apply(ek.Changes(down=["1063", "1068"]))
    first = session.solve()
    assert len(first.lost) == 6
    assert f"no replica lives of 6 partitions: {first.lost[0]}, " in str(first)
    session.apply(ek.Changes(remove_nodes=["1063", "1068"]))
    for _ in range(3):  # the report comes again and again
        with pytest.raises(ek.InvalidInput, match="1063"):
            session.apply(ek.Changes(down=["1063", "1001"]))
    assert session.cluster.nodes.alive.tolist() == [True, True]
    answer = session.solve()
    assert answer.audit.ok
    assert set(held(session, answer)) == {"1001", "1070"}
    assert session.apply(ek.Changes(drain=["1070"])).solve().status == "infeasible"


def test_a_broker_that_comes_back_gets_its_share(public):
    public("sessions/broker-comes-back")
    session = ek.Session(cluster())
    session.apply(ek.Changes(down="1063")).apply(ek.Changes(up="1063"))
    assert session.solve(goals=ek.Goals(level=None)).comparison.moves == 0
    answer = session.apply(ek.Changes(down="1063")).solve()
    session.apply(ek.Changes(placement=answer.placement))
    assert held(session, answer)["1063"] == 0
    session.apply(ek.Changes(up="1063"))
    back = session.solve(goals=ek.Goals(level=0.1, floor=0.2))
    share = back.levelness.table[1, 0] / back.levelness.fair[0]
    assert back.audit.ok
    assert share >= 0.8
    assert back.comparison.moves == held(session, back)["1063"]


def test_what_was_on_a_lost_broker_is_spread_over_the_others(public):
    public("sessions/rebooted-onto-one")
    brokers = [str(n) for n in range(8)]
    session = ek.Session(cluster(brokers, 96, 3))
    answer = session.apply(ek.Changes(down="3")).solve(goals=ek.Goals(level=0.05))
    came = answer.comparison.node_in
    assert answer.audit.ok
    assert came[3] == 0
    assert (came[[0, 1, 2, 4, 5, 6, 7]] > 0).all()
    assert came.max() <= 2 * came[came > 0].min()


def test_a_topic_that_is_dropped_is_named_no_more(public):
    public("sessions/topic-dropped-while-moving")
    session = ek.Session(cluster())
    before = session.apply(ek.Changes(drain="1001")).solve()
    assert any(one.partition.startswith("t1-") for one in before.moves)
    session.apply(ek.Changes(drop="group=t1", down="1070"))
    answer = session.solve()
    assert answer.audit.ok
    assert not [one for one in answer.moves if one.partition.startswith("t1-")]
    again = {"load": [[1.0]] * 6, "names": [f"t0-{i}" for i in range(6)], "replicas": [2] * 6,
             "group": ["t0"] * 6}  # fmt: skip
    session.apply(ek.Changes(drop="group=t0", partitions=again))
    fresh = [one for one in session.solve().moves if one.partition.startswith("t0-")]
    assert len(fresh) == 12
    assert {one.source for one in fresh} == {None}


def test_a_target_that_dies_is_waited_for_no_more(public):
    public("sessions/target-dies-while-moving")
    start = cluster([*BROKERS, "1080"])
    session = ek.Session(start.drain("1001"))
    first = session.solve()
    plan = first.plan(throttle=ek.Throttle(node_in=1))
    seen = plan.after(1)
    dead = next(one.target for one in plan.rows() if one.kind == "copy" and one.wave > 0)
    session.apply(ek.Changes(placement=seen)).apply(ek.Changes(down=dead))
    answer = session.solve()
    assert answer.audit.ok
    assert held(session, answer)[dead] == 0
    rest = answer.plan()
    assert rest.check().ok
    assert not [one for one in rest.rows() if one.kind == "copy" and one.target == dead]


def test_a_node_that_returns_under_a_new_name_takes_the_place_of_the_old(public):
    public("sessions/node-with-a-new-id")
    session = ek.Session(cluster())
    session.apply(ek.Changes(down="1063"))
    new = {"capacity": [[100.0]], "names": ["2063"]}
    session.apply(ek.Changes(remove_nodes="1063", nodes=new))
    answer = session.solve(goals=ek.Goals(level=0.1))
    assert answer.audit.ok
    assert "1063" not in held(session, answer)
    assert held(session, answer)["2063"] > 0
    session.apply(ek.Changes(nodes={"capacity": [[100.0]], "names": ["1063"]}))
    assert session.solve(goals=ek.Goals(floor=0.5)).audit.ok
