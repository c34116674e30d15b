"""What is wrong with rules is reported, and what only looks wrong is not."""

from typing import Any

import numpy as np
import pytest

from evenkeel.model.rules import COUNTS, LIMITS, Limit, Rule, readable, word
from evenkeel.planning.replay import rules as replay
from evenkeel.planning.resources import Tie
from evenkeel.simulate.engine.world import DomainLimit
from tests.support.plain_cluster import build, faults_of


class TestRules:
    @pytest.mark.parametrize(
        "text", ["", "zone", "xssd", "+", "=a", "zone=", "zone!=", "a=b=c", "+ssd,", 7]
    )
    def test_what_does_not_parse(self, text):
        assert "rules[0].require[0]" in faults_of(rules=[Rule(require=[text])])

    @pytest.mark.parametrize(
        "text", ["+gpu", "-gpu", "row=1", "zone=z9", "zone!=z9", "os=mac", "node=n7", "zone=a,+gpu"]
    )
    def test_what_no_node_knows(self, text):
        rule = Rule(
            require=[text], voters_require=[text], lead=[text], place={text: 1},
            voters_place={text: 1},
        )  # fmt: skip
        found = faults_of(rules=[Rule(), rule])
        for path in ("require[0]", "voters_require[0]", "lead[0]"):
            assert f"rules[1].{path}" in found
        for path in ("place", "voters_place"):
            assert f"rules[1].{path}[{text!r}]" in found

    @pytest.mark.parametrize(
        "texts",
        [
            ["+ssd", "-ssd"], ["zone=a", "zone=b"], ["zone=a", "zone!=a"], ["zone=a,zone=b"],
            ["os=linux,+ssd", "os=bsd"],
        ],
    )  # fmt: skip
    def test_contradictions(self, texts):
        assert "rules[0].require" in faults_of(rules=[Rule(require=texts)])

    def test_what_is_no_contradiction(self):
        build(rules=[Rule(require=["zone!=b", "os!=bsd", "+ssd"], lead=["zone=a", "zone=b"])])
        build(rules=[Rule(place={"zone=a": 1, "zone=b": 1})])
        build(rules=[Rule(place={"zone=a": 2, "+ssd": 2, "os=linux,+ssd": 1})])
        build(rules=[Rule(voters_require=["zone=a"], place={"zone=b": 1})])
        build(rules=[Rule(require=["zone=a"], place={"zone=b": 0})])

    @pytest.mark.parametrize(
        ("rule", "path", "named"),
        [
            (Rule(require=["zone=b", "+ssd"]), "require", ["zone=b", "+ssd"]),
            (Rule(require=["zone=b,+ssd"]), "require", ["zone=b,+ssd"]),
            (Rule(require=["zone!=a", "zone!=b"]), "require", ["zone!=a", "zone!=b"]),
            (
                Rule(require=["zone=b"], voters_require=["+ssd"]), "voters_require",
                ["zone=b", "+ssd"],
            ),
            (
                Rule(require=["os=linux"], place={"zone=b": 1}), "place['zone=b']",
                ["os=linux", "zone=b"],
            ),
            (Rule(place={"zone=b,+ssd": 1}), "place['zone=b,+ssd']", ["zone=b,+ssd"]),
            (
                Rule(voters_require=["+ssd"], voters_place={"zone=b": 1}),
                "voters_place['zone=b']", ["+ssd", "zone=b"],
            ),
        ],
    )  # fmt: skip
    def test_what_some_nodes_meet_but_none_together(self, rule, path, named):
        found = faults_of(rules=[rule])
        assert set(found) == {f"rules[0].{path}"}
        assert found[f"rules[0].{path}"].value == named

    def test_what_no_node_meets_even_alone_is_for_solving_to_report(self):
        tags = {"ssd": [True, True, False], "gpu": [False] * 3}
        build(tags=tags, rules=[Rule(require=["+gpu", "zone=a"], place={"+gpu": 1, "zone=a": 2})])

    def test_places_apart_that_ask_for_more_than_there_is(self):
        found = faults_of(rules=[Rule(place={"zone=a": 2, "zone=b": 2})])
        assert set(found) == {"rules[0].place"}
        assert found["rules[0].place"].value == {"zone=a": 2, "zone=b": 2}
        rule = Rule(voters_place={"zone=a": 1, "zone=b": 1})
        build(rules=[rule])
        assert set(faults_of(rules=[rule], voters=1)) == {"rules[0].voters_place"}

    def test_partitions_that_want_nothing_ask_for_nothing(self):
        build(replicas=[0, 2, 2, 2], rules=[Rule(place={"zone=a": 1}, min_domains={"zone": 2})])

    def test_a_group_as_a_whole_has_the_replicas_of_its_partitions(self):
        groups = {"group": [0, 0, 0, 1], "group_names": ["many", "few", "none"]}
        rule = Rule(min_domains={"node": 3}, place={"zone=a": 4, "zone=b": 2})
        build(rules=[rule], group_rule=[0, -1, 0], **groups)
        found = faults_of(rules=[rule], group_rule=[-1, 0, 0], **groups)
        assert set(found) == {"rules[0].min_domains['node']", "rules[0].place['zone=a']"}
        assert "2 replicas of a group" in found["rules[0].min_domains['node']"].message

    def test_counts_that_no_partition_can_meet(self):
        assert "rules[0].place['zone=a']" in faults_of(rules=[Rule(place={"zone=a": 3})])
        found = faults_of(rules=[Rule(voters_place={"zone=a": 2})], voters=1)
        assert "rules[0].voters_place['zone=a']" in found
        rule = Rule(min_domains={"zone": 3})
        assert "rules[0].min_domains['zone']" in faults_of(rules=[rule])
        rule = Rule(min_domains={"zone": 2}, max_domains={"zone": 1})
        assert "rules[0].min_domains['zone']" in faults_of(rules=[rule])

    def test_what_is_only_wished_for_may_be_out_of_reach(self):
        build(rules=[Rule(min_domains={"zone": (3, "soft")}, max_domains={"zone": 1})])

    @pytest.mark.parametrize(
        "amount", [-1, 1.5, "1", True, (1, "maybe"), (1,), (None, "soft", 3), (None, "soft")]
    )
    def test_amounts(self, amount):
        for name in LIMITS:
            assert f"rules[0].{name}['zone']" in faults_of(rules=[Rule(**{name: {"zone": amount}})])

    @pytest.mark.parametrize("count", [-1, 1.5, True])
    def test_counts(self, count):
        assert "rules[0].place['+ssd']" in faults_of(rules=[Rule(place={"+ssd": count})])

    @pytest.mark.parametrize("name", ["require", "voters_require", "lead"])
    @pytest.mark.parametrize("value", ["zone=a", None, 5, {"zone": "a"}])
    def test_what_is_no_list(self, name, value):
        found = faults_of(rules=[Rule(**{name: value})])
        assert [(path, fault.value) for path, fault in found.items()] == [
            (f"rules[0].{name}", value)
        ]

    @pytest.mark.parametrize("name", [*COUNTS, *LIMITS])
    @pytest.mark.parametrize("value", ["zone", None, 5, ["zone=a"], [("zone=a", 1)]])
    def test_what_is_no_mapping(self, name, value):
        assert set(faults_of(rules=[Rule(**{name: value})])) == {f"rules[0].{name}"}

    def test_spread_alone_is_reported_as_the_caller_wrote_it(self):
        assert set(faults_of(spread=5)) == {"spread"}
        assert set(faults_of(spread={"row": 1, "zone": -1})) == {"spread['row']", "spread['zone']"}

    @pytest.mark.parametrize("rules", [Rule(), 1, "zone=a", {"spread": 1}])
    def test_rules_are_a_list(self, rules):
        assert set(faults_of(rules=rules, rule=[0, 0, 0, 0])) == {"rules"}

    def test_spread_and_rules_exclude_each_other(self):
        assert "spread" in faults_of(rules=[Rule()], spread={"zone": 1})

    def test_what_is_no_rule(self):
        found = faults_of(rules=[Rule(), {"spread": {"zone": 1}}, Rule(lead=["+gpu"])], rule=2)
        assert set(found) == {"rules[1]", "rules[2].lead[0]"}

    def test_one_rule_binds_all_and_several_bind_whom_they_are_told(self):
        assert build(spread={"zone": 1}).partitions.rule.tolist() == [0] * 4
        assert build(rules=[Rule(), Rule()]).partitions.rule.tolist() == [-1] * 4
        assert build(rules=[Rule()], group_rule=[-1]).partitions.rule.tolist() == [0] * 4

    def test_one_rule_that_binds_a_group_binds_no_partition_untold(self):
        rules = [Rule(spread={"zone": 5})]
        assert build(rules=rules, group_rule=[0]).partitions.rule.tolist() == [-1] * 4
        assert build(rules=rules, group_rule=[0], rule=0).partitions.rule.tolist() == [0] * 4

    @pytest.mark.parametrize("name", ["ssd", "a,b", "a=b", "100%", "%2C", " ", "ö/1"])
    def test_names_that_expressions_hold_are_read_as_they_are(self, name):
        assert readable(word(name)) == name
        assert str(Rule(place={f"+{word(name)}": 1}).terms()[0]) == f"place 1 on +{name}"

    def test_one_replica_per_node_is_a_default_that_can_be_lifted(self):
        node = Limit("node", "spread", 1, True)
        assert Rule().limits() == [node]
        assert Rule().limits(per_node=False) == []
        assert Rule(spread={"node": None}).limits() == []
        assert Rule(spread={"node": (1, "soft")}).limits() == [Limit("node", "spread", 1, False)]


UNKNOWN: Any = "unknown"


@pytest.mark.parametrize(
    "judge",
    [
        lambda: DomainLimit(np.zeros(2, np.int32), UNKNOWN, 1).broken(
            np.zeros((1, 2), np.int32), np.ones((1, 2), bool)
        ),
        lambda: Tie(UNKNOWN, 0, 0, 1, -1, np.ones(1, bool)).kept(np.ones((1, 1), np.int64)),
        lambda: replay._value(UNKNOWN, np.ones((1, 1), np.int64), np.ones((1, 1), bool)),
        lambda: replay.IS_MAXIMUM[UNKNOWN],
    ],
    ids=["simulator", "planner", "replay", "bounds of the replay"],
)
def test_no_kind_of_limit_counts_as_another(judge):
    with pytest.raises((AssertionError, KeyError), match=UNKNOWN):
        judge()
