"""A violation names what is asked, and what of it fails."""

import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.model.cluster import Cluster

GIVEN = {
    "capacity": [[9.0]] * 4,
    "load": [[1.0]],
    "domains": {"region": ["us", "us", "eu", "eu"], "zone": [*"abcd"]},
    "tags": {"ssd": [True, False, False, False], "hot": [True, False, True, True]},
}


def rows(rule, placement, **more):
    """The violations of one partition under one rule."""
    cluster = Cluster.from_arrays(**GIVEN | more, placement=[placement], rules=[rule], rule=[0])
    return audit(cluster, cluster.placement).table()


@pytest.mark.small
@pytest.mark.parametrize(
    ("rule", "placement", "kind", "expression", "asked"),
    [
        (ek.Rule(require=["+ssd", "+hot"]), [0, 2], "require", "+ssd", None),
        (ek.Rule(require=["+ssd", "+hot"]), [0, 1], "require", "+ssd and +hot", None),
        (ek.Rule(voters_require=["zone!=b"]), [0, 1], "voters_require", "zone!=b", None),
        (ek.Rule(place={"region=eu": 2}), [0, 2], "place", "region=eu", 2.0),
        (ek.Rule(voters_place={"zone=d": 1}), [0, 2], "voters_place", "zone=d", 1.0),
        (ek.Rule(lead=["zone=c", "zone=a"]), [0, 2], "lead", "zone=c", None),
        (ek.Rule(spread={"region": 1}), [0, 1], "spread", "", 1.0),
        (ek.Rule(min_domains={"region": 2}), [0, 1], "min_domains", "", 2.0),
        (ek.Rule(max_domains={"zone": 1}), [0, 1], "max_domains", "", 1.0),
    ],
)
def test_a_violation_names_its_expression(rule, placement, kind, expression, asked):
    (row,) = rows(rule, placement)
    assert (row.kind, row.expression, row.asked) == (kind, expression, asked)


@pytest.mark.small
def test_capacity_and_numbers_say_what_they_are_held_to():
    found = rows(ek.Rule(), [0, 1], load=[[10.0]], max_replicas=[0, 5, 5, 5])
    assert [(row.kind, row.node, row.amount, row.asked) for row in found] == [
        ("capacity", "n0", 1.0, 9.0),
        ("capacity", "n1", 1.0, 9.0),
        ("max_replicas", "n0", 1.0, 0.0),
    ]


@pytest.mark.small
def test_some_of_the_violations_can_be_taken():
    cluster = Cluster.from_arrays(
        **GIVEN | {"load": [[1.0]] * 3}, placement=[[1], [2], [3]],
        rules=[ek.Rule(require=["+ssd"])], rule=[0] * 3,
    )  # fmt: skip
    (found,) = audit(cluster, cluster.placement).found
    assert [row.partition for row in found.take([2, 0]).rows(cluster)] == ["p2", "p0"]
    assert found.take([1]).expression == "+ssd"
