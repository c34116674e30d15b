"""Goals and limits: what may be written, what is refused, and what clusters must know of them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import check_goals
from evenkeel.model.limits import check_limits
from evenkeel.model.rules import Rule
from tests.support.plain_cluster import build, faults_of


def refused(make):
    with pytest.raises(ek.InvalidInput) as caught:
        make()
    return {fault.path: fault for fault in caught.value.faults}


class TestGoals:
    @pytest.mark.parametrize(
        ("given", "meant"),
        [("5%", 0.05), (" 12.5 % ", 0.125), ("0%", 0.0), (0, 0.0), (np.float64(0.1), 0.1)],
    )
    def test_a_tolerance_is_a_share_or_a_percentage(self, given, meant):
        goals = ek.Goals(level=given, leaders=given, floor={"cpu": given})
        assert goals.level == goals.leaders == goals.floor_tolerance("cpu") == meant
        assert type(goals.level) is float

    @pytest.mark.parametrize(
        "given", ["5", "five %", "-5%", "%", "nan%", "", True, -0.1, np.nan, [0.1], 1j, b"5%"]
    )
    def test_anything_else_is_refused_everywhere_together(self, given):
        found = refused(lambda: ek.Goals(level={"cpu": given}, leaders=given, floor=given))
        assert set(found) == {"goals.level['cpu']", "goals.leaders", "goals.floor"}

    def test_more_than_the_mean_is_asked_for_in_per_cent(self):
        goals = ek.Goals(level="500%", leaders="150%")
        assert (goals.level, goals.leaders) == (5.0, 1.5)
        assert pickle.loads(pickle.dumps(replace(goals, soft_yield=True))).level == 5.0
        found = refused(lambda: ek.Goals(level={"cpu": 5}, leaders=1.5))
        assert "write '5%' or 0.05, or '500%'" in found["goals.level['cpu']"].message
        assert set(found) == {"goals.level['cpu']", "goals.leaders"}
        assert ek.Goals(level=1.0, leaders=1).level == 1.0

    def test_nothing_can_be_emptier_than_empty(self):
        assert set(refused(lambda: ek.Goals(floor=1.1))) == {"goals.floor"}
        assert ek.Goals(floor="100%").floor == 1.0

    def test_a_floor_is_given_by_dimension_like_level(self):
        goals = ek.Goals(level=0.1, floor={"cpu": "20%", "disk": None})
        assert goals.floor_tolerance("cpu") == 0.2
        assert goals.floor_tolerance("disk") is goals.floor_tolerance("net") is None
        assert ek.Goals().floor_tolerance("cpu") is None

    def test_soft_rules_yield_or_not(self):
        assert ek.Goals().soft_yield is False
        assert ek.Goals(soft_yield=True).soft_yield is True
        assert set(refused(lambda: ek.Goals(soft_yield="yes"))) == {"goals.soft_yield"}

    def test_dimensions_they_name_must_be_known(self):
        faults = FaultList()
        check_goals(faults, build(), ek.Goals(level={"gpu": 0.1}, floor={"x": 0.1, "disk": 0.1}))
        assert [(one.path, one.value) for one in faults.faults] == [
            ("goals.level", "gpu"), ("goals.floor", "x"),
        ]  # fmt: skip

    def test_they_are_compared_copied_hashed_and_pickled(self):
        goals = ek.Goals(level={"cpu": "5%"}, leaders=0.1, floor=0.2, soft_yield=True)
        assert pickle.loads(pickle.dumps(goals)) == goals
        assert replace(goals, floor="20%") == goals
        assert hash(replace(goals)) == hash(goals)
        assert goals != replace(goals, level={"cpu": 0.06})
        with pytest.raises(AttributeError):
            goals.level = 0.1


class TestLimits:
    @pytest.mark.parametrize("name", ["moves", "node_in", "node_out", "partition_moves",
                                      "leader_changes", "disk_moves"])  # fmt: skip
    def test_counts_are_whole(self, name):
        for value in (0, 7, np.int32(7)):
            assert getattr(ek.Limits(**{name: value}), name) == value
        for value in (1.5, 2.0, -1, True, "7", np.nan, {1}):
            assert set(refused(lambda value=value: ek.Limits(**{name: value}))) == {
                f"limits.{name}"
            }

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            ("3TB", 3e12), ("2.5 TiB", 2.5 * 2**40), ("1kb", 1e3), ("7 B", 7.0), (" .5GB ", 5e8),
            ("3 T", 3e12), ("18.58 G", 18.58e9), ("10M", 1e7), ("3k", 3e3),
            (0, 0.0), (1.5, 1.5), (np.int64(9), 9.0),
        ],
    )  # fmt: skip
    def test_data_has_a_unit_or_is_a_number(self, given, meant):
        assert ek.Limits(bytes=given).bytes == meant

    @pytest.mark.parametrize(
        "given", ["3", "TB", "3 X", "-3TB", "3TBs", "nan B", "", np.inf, np.nan, -1, True, [1.0]]
    )
    def test_what_is_no_amount_of_data_is_refused(self, given):
        assert set(refused(lambda: ek.Limits(bytes=given))) == {"limits.bytes"}

    def test_domains_are_limited_by_tier(self):
        limits = ek.Limits(domain_in={"zone": 20}, domain_out={"zone": 5, "rack": 0})
        assert limits.domain_in == {"zone": 20}
        assert limits.domain_out == {"zone": 5, "rack": 0}
        assert ek.Limits().domain_in == {}
        found = refused(lambda: ek.Limits(domain_in={"zone": 1.5, 3: 1}, domain_out=4))
        assert set(found) == {"limits.domain_in['zone']", "limits.domain_in[3]",
                              "limits.domain_out"}  # fmt: skip

    def test_what_is_given_is_not_shared(self):
        given = {"zone": 20}
        limits = ek.Limits(domain_in=given)
        given["zone"] = 1
        assert limits.domain_in == {"zone": 20}

    def test_a_cluster_must_know_what_they_name(self):
        faults = FaultList()
        limits = ek.Limits(bytes="1GB", domain_in={"zone": 1, "row": 1}, domain_out={"node": 1})
        check_limits(faults, build(domains={"zone": ["a", "b", "c"]}), limits)
        assert [(one.path, one.value) for one in faults.faults] == [
            ("limits.bytes", 1e9), ("limits.domain_in", "row"), ("limits.domain_out", "node"),
        ]  # fmt: skip

    def test_solve_asks(self):
        found = refused(lambda: ek.solve(build(), limits=ek.Limits(domain_in={"row": 1})))
        assert set(found) == {"limits.domain_in"}

    def test_they_are_compared_copied_hashed_and_pickled(self):
        limits = ek.Limits(moves=3, bytes="1kB", domain_in={"zone": 1})
        assert pickle.loads(pickle.dumps(limits)) == limits
        assert replace(limits, bytes=1000) == limits
        assert hash(replace(limits)) == hash(limits)
        assert limits != replace(limits, domain_in={"zone": 2})
        assert ek.Limits() == ek.Limits(domain_out={})


class TestSoftLimits:
    def test_a_soft_limit_may_have_a_weight(self):
        rule = Rule(spread={"zone": (1, "soft", 5), "node": (2, "soft")}, skew={"zone": 1})
        assert [(one.amount, one.hard, one.weight) for one in rule.limits()] == [
            (1, False, 5.0), (2, False, 1.0), (1, True, 1.0),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "amount",
        [
            (1, "soft", 0), (1, "soft", -1), (1, "soft", np.inf), (1, "soft", np.nan),
            (1, "soft", "2"), (1, "soft", True), (1, "hard", 2), (1, "soft", 2, 3), (1,), (1, "x"),
        ],
    )  # fmt: skip
    def test_a_weight_is_above_zero_and_finite(self, amount):
        found = faults_of(domains={"zone": ["a", "b", "c"]}, spread={"zone": amount})
        assert set(found) == {"spread['zone']"}

    @pytest.mark.parametrize(("kind", "least"), [("spread", 1), ("max_domains", 1),
                                                 ("min_domains", 0), ("skew", 0)])  # fmt: skip
    @pytest.mark.parametrize("strength", ["hard", "soft"])
    def test_no_limit_forbids_every_replica(self, kind, least, strength):
        zones = {"domains": {"zone": ["a", "b", "c"]}}
        build(**zones, rules=[Rule(**{kind: {"zone": (least, strength)}})])
        found = faults_of(**zones, rules=[Rule(**{kind: {"zone": (least - 1, strength)}})])
        assert set(found) == {f"rules[0].{kind}['zone']"}
