"""What is wrong with arrays and names is reported all together, with paths and values."""

import numpy as np
import pytest

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.rules import Rule
from tests.support.plain_cluster import PLAIN, build, faults_of


class TestFaults:
    def test_all_of_them_are_reported_together(self):
        found = faults_of(
            capacity=[[10.0, np.nan], [-1.0, 10.0], [1.0, 1.0]],
            load=[[np.inf, 1.0]] + [[1.0, -2.0]] + [[1.0, 1.0]] * 2,
            alive=[True, False],
            rules=[Rule(require=["+gpu", "zone==a"], spread={"row": 1})],
            node_names=["x", "y", "x"],
        )
        assert set(found) == {
            "capacity[0, 1]", "capacity[1, 0]", "load[0, 0]", "load[1, 1]", "alive",
            "node_names[2]", "rules[0].require[0]", "rules[0].require[1]", "rules[0].spread['row']",
        }  # fmt: skip
        assert found["load[1, 1]"].value == -2.0
        assert found["node_names[2]"].value == "x"

    def test_it_is_one_value_error_that_names_path_and_value(self):
        with pytest.raises(ValueError, match=r"2 problems[^?]*min_active\[1\]: must be .*got -1"):
            build(min_active=[0, -1, -2, 0])

    @pytest.mark.parametrize("name", ["load", "leader_load", "non_voter_load"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0])
    def test_loads_are_finite_and_not_negative(self, name, value):
        loads = np.ones((4, 2))
        loads[2, 1] = value
        assert set(faults_of(**{name: loads})) == {f"{name}[2, 1]"}

    @pytest.mark.parametrize("name", ["capacity", "watermark"])
    def test_capacities_may_be_infinite_or_zero_but_not_negative(self, name):
        build(**{name: [[np.inf, 0.0]] * 3})
        for value in (np.nan, -1.0, -np.inf):
            assert set(faults_of(**{name: [[1.0, value]] + [[1.0, 1.0]] * 2})) == {f"{name}[0, 1]"}

    @pytest.mark.parametrize("name", ["load", "capacity"])
    @pytest.mark.parametrize("value", [1e300, 1e308])
    def test_amounts_that_sum_beyond_what_a_float_holds_are_refused(self, name, value):
        amounts = np.ones((4 if name == "load" else 3, 2))
        amounts[1:, 0] = value
        found = faults_of(**{name: amounts})
        assert set(found) == {name} and "sum" in found[name].message
        build(**{name: np.full_like(amounts, 1e298)})

    @pytest.mark.parametrize(
        "given", [np.array("n1"), [1, [2]], ["n0", ["n1"]], [["n0", "n1"], ["n2"]]]
    )
    def test_flat_rows_are_flat(self, given):
        assert "placement" in faults_of(placement=given, first=[0, 1, 2, 3, 4])

    def test_what_is_masked_is_no_number(self):
        hidden = np.zeros((4, 2), bool)
        hidden[2, 1] = True
        found = faults_of(load=np.ma.array(np.ones((4, 2)), mask=hidden))
        assert set(found) == {"load[2, 1]"} and "masked" in found["load[2, 1]"].message
        build(load=np.ma.array(np.ones((4, 2))))

    @pytest.mark.parametrize("name", ["weight", "lead_weight"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
    def test_weights(self, name, value):
        assert set(faults_of(**{name: [1.0, value, 0.0]})) == {f"{name}[1]"}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("alive", [True] * 4), ("since", [[1.0] * 3]), ("max_replicas", [1, 2]),
            ("stands_for", [0]), ("replicas", [2, 2]), ("voters", [1] * 5), ("group", [0] * 3),
            ("rule", [-1] * 5), ("attached", [0]), ("move_cost", [1.0] * 3),
            ("leader_load", [[1.0, 2.0]]), ("watermark", [[1.0]] * 3), ("placement", [[0, 1]] * 3),
            ("placement", [0, 1, 2]), ("placement", np.array(3)),
            ("placement", [np.array(0)] * 4), ("leader", [0]), ("role", [0] * 3),
            ("flags", [0] * 9),
            ("forbidden", [[1, 2, 3]]), ("tier_distance", [1.0]), ("group_rule", [0, 0]),
        ],
    )  # fmt: skip
    def test_shapes(self, name, value):
        assert "shape" in faults_of(**{name: value})[name].message

    def test_a_list_for_a_table_is_one_column_and_a_number_has_no_rows(self):
        with pytest.raises(InvalidInput) as caught:
            Cluster.from_arrays(capacity=[1.0, 1.0, 1.0], load=[1.0, 1.0], replicas=1)
        assert [str(one) for one in caught.value.faults] == [
            "capacity: needs shape (3, 1): a row for each node, with a column for each dimension "
            "(got (3,))",
            "load: needs shape (2, 1): a row for each partition, with a column for each dimension "
            "(got (2,))",
        ]  # fmt: skip
        with pytest.raises(
            InvalidInput, match=r"capacity: needs shape \(any, 2\): .* \(got \(\)\)"
        ):
            build().add_nodes(2)

    @pytest.mark.parametrize(
        ("name", "value", "path"),
        [
            ("load", [["a", "b"]] * 4, "load"),
            ("load", np.ones((4, 2), complex), "load"),
            ("placement", [[0.5, 1]] * 4, "placement[0, 0]"),
            ("placement", [[{}, 1]] * 4, "placement[0][0]"),
            ("replicas", [2, 2, 2**40, 2], "replicas[2]"),
            ("alive", [1, 2, 0], "alive[1]"),
            ("flags", [[70000, 0]] + [[0, 0]] * 3, "flags[0]"),
            ("role", [[0, 0]] + [[9, 0]] + [[0, 0]] * 2, "role[1][0]"),
            ("placement", [[0], [1, 7], [], [2]], "placement[1][1]"),
        ],
    )
    def test_dtypes(self, name, value, path):
        assert path in faults_of(**{name: value})

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"placement": [[0, 3]] + [[0, 1]] * 3}, "placement[0][1]"),
            ({"placement": [[0, -2]] + [[0, 1]] * 3}, "placement[0][1]"),
            ({"leader": [0, 2, 0, 0]}, "leader[1]"),
            ({"attached": [3, -1, -1, -1]}, "attached[0]"),
            ({"stands_for": [-1, 3, -1]}, "stands_for[1]"),
            ({"group": [0, -1, 0, 0]}, "group[1]"),
            ({"group": [0, 2, 0, 0], "group_names": ["x", "y"]}, "group[1]"),
            ({"rule": [0, 1, -1, -1], "rules": [Rule()]}, "rule[1]"),
            ({"group_rule": [1], "rules": [Rule()]}, "group_rule[0]"),
            ({"forbidden": [[4, 0]]}, "forbidden[:, 0][0]"),
            ({"forbidden": [[0, 3]]}, "forbidden[:, 1][0]"),
            ({"depends": [(0, 1, "zone")]}, "depends[0]"),
            ({"depends": [(0, 0, "row")]}, "depends[0]"),
            ({"transient": ["net"]}, "transient"),
            ({"bytes": "net"}, "bytes"),
            ({"crossing": ["row"]}, "crossing"),
            ({"tier_capacity": {"row": [[1.0, 1.0]]}}, "tier_capacity['row']"),
            ({"voters": [3, 2, 2, 2]}, "voters[0]"),
            ({"replicas": -1}, "replicas[0]"),
            ({"placement": [0, 1], "first": [0, 2, 1, 2, 2]}, "first"),
        ],
    )
    def test_references(self, changes, path):
        assert path in faults_of(**changes)

    @pytest.mark.parametrize("name", ["node_names", "partition_names", "group_names", "dimensions"])
    def test_names_are_distinct_texts_and_as_many_as_needed(self, name):
        count = {"node_names": 3, "partition_names": 4, "group_names": 2, "dimensions": 2}[name]
        names = [f"x{i}" for i in range(count)]
        assert f"{name}[{count - 1}]" in faults_of(**{name: [*names[:-1], names[0]]})
        assert f"{name}[0]" in faults_of(**{name: [7, *names[1:]]})
        if name != "group_names":
            assert name in faults_of(**{name: names[1:]})

    def test_labels_are_texts_or_integers_one_per_node(self):
        assert "domains['zone']" in faults_of(domains={"zone": ["a", "b"]})
        assert "domains['zone']" in faults_of(domains={"zone": [0.5, 1.0, 2.0]})
        assert "attributes['os']" in faults_of(attributes={"os": [["a"], ["b"], ["c"]]})
        assert "domains['node']" in faults_of(domains={"node": ["a", "b", "c"]})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("dimensions", "ab"), ("dimensions", 2), ("node_names", "abc"),
            ("partition_names", "abcd"), ("group_names", "g"), ("transient", "cpu"),
            ("crossing", "rack"), ("crossing", 1), ("depends", "zone"), ("depends", 3),
            ("tags", [True] * 3), ("tags", "ssd"), ("domains", ["a", "b"]), ("domains", "zone"),
            ("attributes", [1, 2, 3]), ("tier_capacity", [[1.0, 1.0]] * 2),
        ],
    )  # fmt: skip
    def test_lists_and_mappings(self, name, value):
        assert set(faults_of(**{name: value})) == {name}

    @pytest.mark.parametrize("entry", [(0, 0), ("gx", "g0", "zone"), (0.0, 0, "zone"), 0, "g00"])
    def test_what_depends(self, entry):
        assert set(faults_of(depends=[entry])) == {"depends[0]"}

    @pytest.mark.parametrize("name", ["tags", "domains", "attributes"])
    def test_keys_are_texts(self, name):
        assert set(faults_of(**{name: {**PLAIN[name], 7: [1, 1, 1]}})) == {f"{name}[7]"}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("capacity", [[1.0], [1.0, 2.0], [1.0, 2.0]]), ("load", [[1.0, 2.0]] * 3 + [[1.0]]),
            ("alive", [[True], [True, False], True]),
            ("role", [[0], [0, 0], [0, 0], [0, 0]]), ("flags", [[0], [0, 0], [0, 0], [0, 0]]),
            ("domains['zone']", [["a"], ["b", "c"], "d"]), ("tags['ssd']", [[1], [1, 0], [1]]),
            ("tier_distance", [[0.0], [1.0, 0.0]]),
        ],
    )  # fmt: skip
    def test_rows_of_unequal_length(self, name, value):
        argument, _, key = name.partition("['")
        changes = {argument: {**PLAIN[argument], key[:-2]: value} if key else value}
        assert set(faults_of(**changes)) == {name}

    @pytest.mark.parametrize(
        ("name", "value"), [("replicas", 1e10), ("replicas", 2.0**31), ("replicas", -1e300)]
    )
    def test_whole_floats_beyond_the_integers(self, name, value):
        assert faults_of(**{name: value})[name].value == value
        assert faults_of(**{name: [2, 2, value, 2]})[f"{name}[2]"].value == value

    def test_a_whole_float_beyond_int64(self):
        found = faults_of(placement=[0.0, 1.0], first=[0, 1, 1, 2, 2.0**63])
        assert set(found) == {"first[4]"}

    @pytest.mark.parametrize(
        ("changes", "path", "value"),
        [
            ({"flags": [[0, 1 | 2**15]] + [[0, 0]] * 3}, "flags[0][1]", 2**15 + 1),
            ({"since": [np.nan, np.inf, 0.0]}, "since[1]", np.inf),
            ({"since": [np.nan, 1.0, -1.0]}, "since[2]", -1.0),
            ({"max_replicas": [-1, -2, 0]}, "max_replicas[1]", -2),
            ({"attributes": {"zone": ["a", "a", "b"]}}, "attributes['zone']", "zone"),
            ({"attributes": {"node": ["a", "a", "b"]}}, "attributes['node']", "node"),
            ({"group": [0, 0, 10**8, 0]}, "group[2]", 10**8),
            ({"group": [0, 0, 1000, 0]}, "group[2]", 1000),
            ({"group": [0, 0, -1, 0], "group_rule": [0, -1], "rules": [Rule()]}, "group[2]", -1),
        ],
    )
    def test_values(self, changes, path, value):
        found = faults_of(**changes)
        assert set(found) == {path}
        assert found[path].value == value

    def test_many_more_groups_than_partitions_have_names(self):
        cluster = build(group=[0, 0, 2000, 0], group_names=[f"g{i}" for i in range(2001)])
        assert len(cluster.partitions.group_names) == 2001
        assert len(build(group=[0, 999, 3, 0]).partitions.group_names) == 1000

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("capacity", [10.0] * 3), ("capacity", 10.0), ("capacity", [["x", "y"]] * 3),
            ("load", [1.0] * 4), ("load", 1.0), ("load", None), ("placement", [[0, 1, 2]] * 3),
            ("rule", [0] * 3), ("replicas", [2] * 3), ("group", [0] * 5), ("first", [0, 2]),
            ("alive", [True]), ("group_rule", [0] * 4),
        ],
    )  # fmt: skip
    def test_what_follows_from_a_fault_is_none(self, name, value):
        full = {
            "watermark": [[5.0, 5.0]] * 3, "alive": [True] * 3, "leader_load": [[1.0, 1.0]] * 4,
            "placement": [0, 2, 1, 2, 0, 1, 2, 1], "first": [0, 2, 4, 6, 8], "leader": [1] * 4,
            "role": [0] * 8, "flags": [1] * 8, "voters": 2, "attached": [2, -1, -1, -1],
            "tier_capacity": {"zone": [[9.0, 9.0]] * 2}, "transient": ["disk"], "bytes": "disk",
            "group": [0, 1, 2, 2], "group_rule": [-1, -1, 1], "forbidden": [[3, 2]],
            "depends": [(1, 2, "zone")], "rule": [0, -1, 2, 0],
            "rules": [
                Rule(place={"zone=a": 1, "+ssd": 2}), Rule(min_domains={"zone": 2}),
                Rule(require=["os=linux"]),
            ],
        }  # fmt: skip
        build(**full)
        if name == "placement":
            del full["first"], full["role"], full["flags"]
        assert set(faults_of(**full | {name: value})) == {name}

    @pytest.mark.parametrize(
        ("name", "value", "path"),
        [
            ("domains", {"zone": ["a"], "rack": [1, 2, 3]}, "domains['zone']"),
            ("domains", 5, "domains"),
            ("tags", {"ssd": [True]}, "tags['ssd']"),
            ("attributes", {"os": [[1], [2], [3]]}, "attributes['os']"),
            ("dimensions", ["cpu"], "dimensions"),
        ],
    )
    def test_names_are_not_judged_by_what_could_not_be_read(self, name, value, path):
        rule = Rule(require=["zone=a", "+ssd", "os=linux"], spread={"rack": 1}, lead=["node=n1"])
        found = faults_of(
            rules=[rule], bytes="disk", transient=["disk"], depends=[(0, 0, "rack")],
            crossing=["rack"], tier_capacity={"zone": [[1.0, 1.0]] * 2}, **{name: value},
        )  # fmt: skip
        assert set(found) == {path}

    def test_goals_and_limits_are_checked_too(self):
        with pytest.raises(InvalidInput, match=r"level\['cpu'\]: must be a number, 0 to 1"):
            Goals(level={"cpu": -0.1, "disk": None})
        with pytest.raises(InvalidInput, match="2 problems"):
            Goals(level=float("nan"), leaders=-1)
        with pytest.raises(InvalidInput, match="2 problems"):
            Limits(moves=-1, bytes=float("nan"))

    def test_a_thousand_faults_make_a_readable_message(self):
        with pytest.raises(InvalidInput) as caught:
            Cluster.from_arrays(capacity=[[1.0]], load=np.full((1000, 1), -1.0), replicas=1)
        assert len(str(caught.value).splitlines()) <= 25
        assert "990 more" in str(caught.value)

    def test_faults_alike_are_counted_and_hide_no_other(self):
        faults = [Fault(f"target: partitions[{i}]", i, "is no partition") for i in range(1500)]
        faults.append(Fault("throttle", 3, "is unknown"))
        said = str(InvalidInput(faults)).splitlines()
        assert said[0] == "1,501 problems with the input:"
        assert said[-2:] == [
            "  ... and 1,481 more: is no partition", "  throttle: is unknown (got 3)",
        ]  # fmt: skip
        assert len(said) == 22
        assert InvalidInput(faults).faults == tuple(faults)

    def test_faults_all_unlike_are_counted_too(self):
        said = str(InvalidInput([Fault("x", i, f"is not {i}") for i in range(50)])).splitlines()
        assert len(said) == 22
        assert said[-1] == "  ... and 30 more"

    def test_a_fault_says_where_what_and_why(self):
        fault = Fault("a.json:31", "x", "must be a number")
        assert str(fault) == "a.json:31: must be a number (got 'x')"
