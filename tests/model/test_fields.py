"""Fields of the public classes: what is no number, negative, a text or a truth value is refused."""

import numpy as np
import pytest

import evenkeel as ek
from tests.support.plain_cluster import build

NAN, INF = float("nan"), float("inf")

NUMBER = [NAN, "text", True, None, [1.0], object(), -1]  # none of which is an amount
COUNT = [*NUMBER[:3], *NUMBER[4:], 1.5, INF]
"""None of which is a whole number, where there may be none."""

TRUTH = [NAN, "yes", 1, [True], object()]

TEXT = [NAN, 3, True, ["zone"], object()]

LISTED = [NAN, "text", True, 3, object(), {"a": 1}, [1]]
"""None of which is a list of what belongs there."""

STATES = [NAN, "text", True, 3, ["MASTER"], {}, {"MASTER": -1}, {"MASTER": True}, {1: 1}]

FIELDS = [
    (ek.Cost, {}, ("moves", "group_moves", "distance"), [*NUMBER, INF]),
    (ek.Cost, {}, ("watermark",), [*NUMBER, INF, {"cpu": -1}, {"cpu": "5"}, {"cpu": True}]),
    (ek.Cost, {}, ("proportion", "tables"), LISTED),
    (ek.Proportion, {"of": "a", "to": "b", "ratio": 1.0, "weight": 1.0}, ("of", "to"), TEXT),
    (ek.Proportion, {"of": "a", "to": "b", "ratio": 1.0, "weight": 1.0}, ("ratio", "weight"),
     [*NUMBER, INF]),
    (ek.NodeTable, {"dimension": "a", "at": [1.0], "slope": [0.0]}, ("dimension",), TEXT),
    (ek.NodeTable, {"dimension": "a", "at": [1.0], "slope": [0.0]}, ("at", "slope"),
     ["text", None, object(), ["x"], [[1.0], [2.0, 3.0]]]),
    (ek.NodeTable, {"dimension": "a", "at": [1.0], "slope": [0.0]}, ("below",),
     [NAN, "text", True, None, [1.0], object(), INF]),
    (ek.GroupTable, {"tier": "a", "cost": [0.0, 1.0]}, ("tier",), TEXT),
    (ek.GroupTable, {"tier": "a", "cost": [0.0, 1.0]}, ("cost",),
     [NAN, "text", None, object(), ["x", "y"], [0.0, NAN]]),
    (ek.GroupTable, {"tier": "a", "cost": [0.0, 1.0]}, ("groups",), LISTED),
    (ek.Goals, {}, ("soft_yield",), TRUTH),
    (ek.Protocol, {"name": "own"}, ("joint", "whole", "quorum", "roles"), TRUTH),
    (ek.Protocol, {"name": "own"}, ("names_all", "shrinks"), TRUTH),
    (ek.Protocol, {}, ("name",), TEXT),
    (ek.Throttle, {}, ("recovery_first",), TRUTH),
    (ek.options.Exact, {}, ("largest", "workers"), [*COUNT, 0]),
    (ek.options.Exact, {}, ("effort",), [*NUMBER, 0.0]),
    (ek.options.Upmap, {}, ("deviation", "spare"), NUMBER),
    (ek.options.Upmap, {}, ("primaries",), TRUTH),
    (ek.options.CephCrush, {}, ("upmaps",), TRUTH),
    (ek.options.Cockroach, {},
     ("load_threshold", "range_threshold", "lease_threshold", "aggressiveness"), NUMBER),
    (ek.options.Cockroach, {}, ("max_passes",), [*COUNT, 0]),
    (ek.options.Longhorn, {}, ("evenness", "most_copied"), [one for one in NUMBER if one]),
    (ek.options.Longhorn, {}, ("load",), [3, "text", {"v": -1}, {"v": "5"}, {"v": True}]),
    (ek.options.Auto, {}, ("states",), STATES),
    (ek.options.Auto, {}, ("most",), [*COUNT, 0]),
    (ek.options.Crush, {}, ("zone",), TEXT),
    (ek.options.MultiRound, {}, ("repaired",), TRUTH),
    (ek.options.Crushed, {}, ("repaired",), TRUTH),
    (ek.options.Waged, {}, ("force_converge", "merge"), TRUTH),
    (ek.options.Waged, {}, ("evenness", "less_movement"), [*COUNT, 1001]),
    (ek.options.Waged, {}, ("max_per_group",), COUNT),
    (ek.options.Waged, {}, ("changes", "changed_groups", "scoring_keys"), LISTED),
    (ek.options.Waged, {}, ("group_states",), [3, "text", {"a": 3}, {"a": {}}, {1: {"M": 1}}]),
]  # fmt: skip

CASES = [
    pytest.param(kind, rest, field, bad, id=f"{kind.__name__}.{field}")
    for kind, rest, fields, bad in FIELDS
    for field in fields
]


@pytest.mark.parametrize(("kind", "rest", "field", "bad"), CASES)
def test_what_does_not_belong_into_a_field_is_named_with_it(kind, rest, field, bad):
    for value in bad:
        with pytest.raises(ek.InvalidInput) as caught:
            kind(**{**rest, field: value})
        assert all(field in one.path for one in caught.value.faults), value


def test_all_that_is_wrong_with_a_cost_is_told_together():
    with pytest.raises(ek.InvalidInput) as caught:
        ek.Cost(watermark={"cpu": -1, "disk": NAN}, moves="x", distance=True, tables=[3])
    assert [one.path for one in caught.value.faults] == [
        "goals.watermark['cpu']", "goals.watermark['disk']", "goals.moves", "goals.distance",
        "goals.tables[0]",
    ]  # fmt: skip


def test_numbers_of_every_kind_are_prices():
    cost = ek.Cost(watermark=np.float32(2.0), moves=np.int64(3), distance=0)
    assert cost.watermark_weight("cpu") == 2.0
    assert ek.Cost(watermark={"cpu": 1}).watermark_weight("disk") == 0.0


def test_a_watermark_names_dimensions_that_the_cluster_has():
    with pytest.raises(ek.InvalidInput) as caught:
        ek.solve(build(), goals=ek.Cost(watermark={"gpu": 1.0}))
    assert [(one.path, one.value) for one in caught.value.faults] == [("goals.watermark", "gpu")]
