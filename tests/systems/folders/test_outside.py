"""Partitions that a plan leaves alone, moved by somebody else while it is carried out."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Standing
from evenkeel.systems.folders.guarding import digest_of, digest_seen, elsewhere, guard

JOINS = [{"p0": [2, ~0]}]  # one wave: p0 goes from n0 to n2


@pytest.fixture
def plan(tmp_path):
    """Three nodes with room for two; p0 moves to n2, which has p1."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0], [3.0], [2.0]], load=[[1.0]] * 4, group=[0, 1, 1, 1],
        placement=[[0], [2], [0], [1]], domains={"zone": [*"abc"]},
        rules=[ek.Rule(skew={"zone": 1})], group_rule=[-1, 0],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([2, 2, 0, 1], np.int32), cluster.placement.leader)
    return ek.plan(cluster, target)


@pytest.fixture
def document(plan, tmp_path):
    return Document.load(str(ek.write_plan(plan, tmp_path / "plan.json")))


def standing(**nodes):
    usual = {"p0": "n0", "p1": "n2", "p2": "n0", "p3": "n1"} | nodes
    return {p: Standing([n] if n else [], n, False) for p, n in usual.items() if n is not None}


def test_where_nothing_has_changed_the_digests_are_the_same(plan):
    told = digest_of(plan.cluster, [0])
    assert told == digest_seen(standing(), {"p0"}) == digest_seen(standing(p0="n1"), {"p0"})
    for changed in ({"p1": "n0"}, {"p1": None}, {"p9": "n0"}, {"p1": ""}):
        assert digest_seen(standing(**changed), {"p0"}) != told


def test_what_moved_elsewhere_is_only_noted(document):
    found = elsewhere(document, standing(p3="n0"), JOINS, 1)
    assert found.differences == ()
    assert found.notes == (
        "1 partitions outside the plan are elsewhere than it has them: p3",
        "skew: broken 0 times in the plan, 1 times with what others have done",
    )


def test_who_takes_the_room_of_a_wave_to_come_stops_it(document):
    found = elsewhere(document, standing(p3="n2"), JOINS, 1)
    assert found.differences == (
        "n2: has no room any more for what wave 1 puts there: partitions outside the plan have "
        "come",
    )
    assert elsewhere(document, standing(p3="n2"), JOINS, 2).differences == ()
    # one comes and one goes
    assert elsewhere(document, standing(p3="n2", p1="n1"), JOINS, 1).differences == ()


def test_what_is_not_seen_and_what_is_new_is_counted(document):
    found = elsewhere(document, standing(p3=None, p9="n2", p2="elsewhere"), JOINS, 1)
    assert found.differences == ()
    assert "partitions outside the plan: 1 not seen, 1 new" in found.notes


def test_a_guard_tells_it(tmp_path):
    def rows(**replicas):
        listed = [{"topic": t, "partition": 0, "replicas": own} for t, own in replicas.items()]
        return json.dumps({"version": 1, "partitions": listed}).encode()

    cluster = ek.read(rows(a=[1, 2], b=[1, 2], c=[3, 2]), b'{"1": "x", "2": "y", "3": "z"}')
    node = cluster.placement.node.copy()
    node[0] = 2
    plan = ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader))
    folder = ek.write_plan_folder(plan, tmp_path / "move")
    same = guard(folder, [Document("now", rows(a=[1, 2], b=[1, 2], c=[3, 2]))])
    assert (same.word, same.notes) == ("ready", ())
    seen = guard(folder, [Document("now", rows(a=[1, 2], b=[1, 3], c=[3, 2]))])
    assert seen.word == "ready"
    assert seen.notes == ("1 partitions outside the plan are elsewhere than it has them: b-0",)
