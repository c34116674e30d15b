"""Helix's methods through ``solve``: the golden cases, and what must hold on any cluster."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from tests.conformance import documents
from tests.conformance.schemas.helix_crush import _partitions
from tests.support import places

FOLDER = places.DATA / "golden" / "helix"
BY_NAME = ("c01", "c02", "c03", "c04", "c06", "c07", "c08", "c11")
"""Cases whose nodes stand in the order of their names, as a controller hands them over."""

METHODS = {"crush": "helix_crush", "multiround": "helix_multiround", "crushed": "helix_crushed"}
MENDED = ek.options.Crushed(repaired=True)
NO_LEVELLING = ek.Goals(level=None)
ONLINE = {"ONLINE": "R"}


def golden(name):
    """A golden document as a cluster, and the options that its states need."""
    document = documents.load(FOLDER / f"crush_{name}.json.gz")
    given = document["input"]
    nodes = {node["name"]: node for node in given["nodes"]}
    names = given["allNodes"]
    live = np.isin(names, given["liveNodes"])
    zone = given.get("faultZoneType")
    paths = [dict(p.split("=") for p in nodes[n].get("domain", "").split(",") if p) for n in names]
    parts = [_partitions(resource) for resource in given["resources"]]
    sizes = [len(part) for part in parts]
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((len(names), 1), 1e6),
        load=np.ones((sum(sizes), 1)),
        node_names=names,
        domains={zone: [path[zone] for path in paths]} if zone else None,
        spread={zone: 1} if zone else None,
        alive=live,
        weight=[nodes[n].get("weight", 1000) / 1000 for n in names],
        partition_names=[f"{i} {p}" for i, part in enumerate(parts) for p in part],
        group=np.repeat(np.arange(len(parts)), sizes),
        group_names=[resource["name"] for resource in given["resources"]],
        replicas=np.repeat([sum(n for _, n in r["states"]) for r in given["resources"]], sizes),
    )
    return cluster, document, parts


def lists(cluster, result, group):
    rows = np.flatnonzero(cluster.partitions.group == group)
    first, node = result.placement.first, result.placement.node
    return [[n for n in node[first[p] : first[p + 1]].tolist() if n >= 0] for p in rows]


@pytest.mark.parametrize("strategy", METHODS)
@pytest.mark.parametrize("name", BY_NAME)
def test_golden_cases_agree_through_solve(name, strategy):
    cluster, document, parts = golden(name)
    number = {node["name"]: i for i, node in enumerate(document["input"]["nodes"])}
    to_input = [number[n] for n in cluster.nodes.names]
    for group, resource in enumerate(document["input"]["resources"]):
        alone = only_group(cluster, group, parts[group])
        states = dict(resource["states"])
        kind = {"crush": ek.options.Crush, "multiround": ek.options.MultiRound}
        options = kind.get(strategy, ek.options.Crushed)(states=states)
        wanted = document["output"][strategy][resource["name"]]
        live = int(alone.nodes.alive.sum())
        if sum(states.values()) > live:
            continue  # Helix asks for no more replicas than there are nodes
        if isinstance(wanted, str):
            try:
                result = ek.solve(alone, METHODS[strategy], options=options, goals=NO_LEVELLING)
            except ek.InvalidInput:
                continue
            assert "stays as it is" in result.message
            continue
        result = ek.solve(alone, METHODS[strategy], options=options, goals=NO_LEVELLING)
        found = [[to_input[n] for n in row] for row in lists(alone, result, 0)]
        assert found == wanted


def only_group(cluster, group, names):
    """The cluster with one of its groups, under the partitions' own names."""
    rows = np.flatnonzero(cluster.partitions.group == group)
    nodes, topology = cluster.nodes, cluster.topology
    zone = topology.tiers[0] if topology.tiers else None
    return ek.Cluster.from_arrays(
        capacity=nodes.capacity,
        load=np.ones((len(rows), 1)),
        node_names=tuple(nodes.names),
        domains={zone: [topology.label_names[0][c] for c in topology.label[0]]} if zone else None,
        spread={zone: 1} if zone else None,
        alive=nodes.alive,
        weight=nodes.weight,
        partition_names=names,
        group_names=[cluster.partitions.group_names[group]],
        replicas=cluster.partitions.replicas[rows],
    )


def cluster_of(
    zones=(3, 3, 3, 3), groups=4, partitions=30, replicas=3, node_name="node-{}", **arrays
):
    """Nodes round robin in zones, in whole groups."""
    zone = np.repeat(np.arange(len(zones)), zones)
    count = groups * partitions
    given = {
        "capacity": np.full((len(zone), 1), 1e6),
        "load": np.ones((count, 1)),
        "node_names": [node_name.format(i) for i in range(len(zone))],
        "domains": {"zone": zone},
        "spread": {"zone": 1},
        "replicas": replicas,
        "group": np.repeat(np.arange(groups), partitions),
        "group_names": [f"db{g}" for g in range(groups)],
        "partition_names": [f"db{g}_{p}" for g in range(groups) for p in range(partitions)],
    }
    return ek.Cluster.from_arrays(**{**given, **arrays})


def without(cluster, down):
    up = ~np.isin(np.arange(len(cluster.nodes)), down)
    return replace(cluster, nodes=replace(cluster.nodes, alive=up, accepts=up, keeps=up))


def solved(cluster, method="helix_crushed", options=None, **more):
    return ek.solve(cluster, method, options=options, goals=NO_LEVELLING, **more)


def table(result):
    return result.placement.nodes


ALL = [
    ("helix_crush", None),
    ("helix_multiround", None),
    ("helix_multiround", ek.options.MultiRound(repaired=True)),
    ("helix_crushed", None),
    ("helix_crushed", MENDED),
    ("helix_crushed", ek.options.Crushed(base="multiround")),
    ("helix_crushed", ek.options.Crushed(base="multiround", repaired=True)),
]
METHOD = pytest.mark.parametrize(("method", "options"), ALL, ids=str)


@METHOD
def test_no_rule_is_broken_and_every_partition_has_a_leader_first(method, options):
    result = solved(cluster_of(), method, options)
    assert result.success
    assert result.audit.hard == 0
    assert (result.placement.leader == 0).all()


@METHOD
def test_the_order_of_nodes_does_not_matter(method, options):
    cluster = cluster_of()
    order = np.random.default_rng(5).permutation(len(cluster.nodes))
    shuffled = cluster_of(
        node_names=[cluster.nodes.names[n] for n in order],
        domains={"zone": cluster.topology.label[0][order]},
    )
    there = table(solved(shuffled, method, options))
    assert np.array_equal(order[there], table(solved(cluster, method, options)))


@METHOD
def test_a_weight_of_zero_takes_nothing_if_a_zone_has_others(method, options):
    weight = np.ones(12)
    weight[[0, 4, 8]] = 0.0
    placed = table(solved(cluster_of(weight=weight), method, options))
    assert not np.isin(placed, [0, 4, 8]).any()


@METHOD
def test_disabled_and_enabled_again_recovers_exactly(method, options):
    cluster = cluster_of()
    before = solved(cluster, method, options)
    down = without(cluster.with_placement(before.placement), [1, 5])
    during = solved(down, method, options)
    assert not np.isin(table(during), [1, 5]).any()
    after = solved(cluster.with_placement(during.placement), method, options)
    assert np.array_equal(table(after), table(before))


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 14), min_size=1, max_size=5), st.integers(0, 99))
def test_mended_moves_nothing_but_what_was_on_dead_nodes(down, naming):
    cluster = cluster_of((3, 3, 3, 3, 3), node_name=f"{naming}-{{}}")
    before = table(solved(cluster, options=MENDED))
    after = table(solved(without(cluster, list(down)), options=MENDED))
    held = np.isin(before, list(down))
    zone = cluster.topology.domain[0]
    whole_zones = len(set(zone.tolist()) - set(zone[list(down)].tolist()))
    gained = [len(set(new) - set(old)) for old, new in zip(before, after, strict=True)]
    assert np.array_equal(gained, held.sum(axis=1)) or whole_zones < 3
    kept = ~held[:, 0]
    assert np.array_equal(before[kept, 0], after[kept, 0])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 3), st.integers(0, 999))
def test_a_node_holds_at_most_two_more_than_its_share_of_a_group(
    groups, partitions, replicas, naming
):
    cluster = cluster_of((3, 3, 3, 3), groups, partitions, replicas, f"n{naming}-{{}}")
    result = solved(cluster)
    fell = {f"db{g}" for g in range(groups) if f"'db{g}'" in result.message}
    for g in range(groups):
        rows = np.flatnonzero(cluster.partitions.group == g)
        count = np.bincount(table(result)[rows].ravel(), minlength=12)
        assert count.max() <= partitions * replicas // 12 + 2 or f"db{g}" in fell


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 999))
def test_mended_levels_over_all_groups(groups, partitions, naming):
    cluster = cluster_of((3, 3, 3, 3), groups, partitions, 3, f"n{naming}-{{}}")
    placed = table(solved(cluster, options=MENDED))
    count = np.bincount(placed.ravel(), minlength=12)
    assert count.max() - count.min() <= 1
    assert solved(cluster, options=MENDED).audit.hard == 0


def test_groups_of_a_cluster_are_placed_as_if_alone():
    cluster = cluster_of()
    alone = cluster_of(groups=1)
    assert np.array_equal(table(solved(cluster))[:30], table(solved(alone)))


def test_a_fall_back_is_told_by_group():
    result = solved(cluster_of((6, 6), replicas=3))
    assert "group 'db0' fell back to the base strategy: 3 replicas need more than 2" in str(result)
    assert result.status == "partial"
    assert (table(result)[:, 2] == -1).all()


def test_a_group_that_is_refused_stays_as_it_is():
    cluster = cluster_of((6, 6), replicas=3, placement=np.tile([0, 6, 7], (120, 1)))
    result = solved(cluster, "helix_multiround")
    assert "stays as it is" in result.message
    assert np.array_equal(table(result), cluster.placement.nodes)


def test_multiround_needs_zones_unless_mended():
    flat = cluster_of(domains=None, spread=None)
    with pytest.raises(ek.InvalidInput, match=r"group\['db0'\].*fault zones"):
        solved(flat, "helix_multiround")
    assert solved(flat, "helix_multiround", ek.options.MultiRound(repaired=True)).success


def test_the_zone_is_the_widest_level_that_the_rule_spreads_over():
    rack = np.arange(12) // 2
    arrays = {"domains": {"zone": np.arange(12) // 6, "rack": rack}, "spread": {"rack": 1}}
    placed = table(solved(cluster_of(**arrays), "helix_crush"))
    assert all(len(set(rack[row])) == 3 for row in placed)
    narrow = ek.options.Crush(zone="node")
    assert any(
        len(set(rack[r])) < 3 for r in table(solved(cluster_of(**arrays), "helix_crush", narrow))
    )
    with pytest.raises(ek.InvalidInput, match=r"options.zone: unknown tier"):
        solved(cluster_of(**arrays), "helix_crush", ek.options.Crush(zone="hall"))


def test_tags_make_a_topology_of_their_own():
    ssd = np.arange(12) % 3 != 0
    rules = [ek.Rule(require=["+ssd"], spread={"zone": 1}), ek.Rule(spread={"zone": 1})]
    rule = np.repeat([0, 1], 60)
    cluster = cluster_of(tags={"ssd": ssd}, spread=None, rules=rules, rule=rule)
    for options in (None, MENDED):
        result = solved(cluster, options=options)
        assert ssd[table(result)[:60]].all()
        assert not ssd[table(result)[60:]].all()
        assert result.audit.hard == 0


def test_nodes_in_their_delay_window_keep_their_places():
    cluster = cluster_of(min_active=2)
    before = solved(cluster)
    live = np.arange(12) != 4
    nodes = replace(cluster.nodes, alive=live, accepts=live)
    waiting = replace(cluster, nodes=nodes, placement=before.placement)
    after = solved(waiting)
    assert np.array_equal(table(after), table(before))
    led = np.take_along_axis(table(after), after.placement.leader[:, None].astype(int), 1)
    assert not (led == 4).any()
    assert (after.placement.leader > 0).any()
    urgent = waiting.replace(min_active=3)
    assert not (table(solved(urgent)) == 4).any()


def test_evacuating_nodes_are_not_in_the_tree():
    keeps = np.arange(12) != 4
    evacuating = solved(cluster_of(keeps=keeps, accepts=keeps))
    names = [f"node-{i}" for i in range(12) if i != 4]
    gone = solved(cluster_of((3, 2, 3, 3), node_names=names))
    assert np.array_equal(np.flatnonzero(keeps)[table(gone)], table(evacuating))


def test_a_disabled_partition_does_not_lead_and_is_told():
    cluster = cluster_of()
    top = int(table(solved(cluster))[7, 0])
    result = solved(cluster_of(forbidden=[[7, top]]))
    assert table(result)[7, 0] == top
    assert result.placement.leader[7] == 1
    assert result.warnings == (
        "1 replicas stay offline on nodes where their partition is disabled",
    )


def test_any_live_instance_places_on_every_node():
    cluster = cluster_of(domains=None, spread=None, replicas=12)
    options = ek.options.Crush(replicas="ANY_LIVEINSTANCE", states=ONLINE)
    placed = table(solved(without(cluster, [3]), "helix_crush", options))
    assert [sorted(row[row >= 0].tolist()) for row in placed[:2]] == [
        [n for n in range(12) if n != 3]
    ] * 2
    with pytest.raises(ek.InvalidInput, match="fewer slots than the 12 replicas"):
        solved(cluster_of(domains=None, spread=None), "helix_crush", options)


def test_auto_keeps_what_is_and_levels_the_rest():
    cluster = cluster_of(domains=None, spread=None, groups=1, partitions=24, replicas=2)
    before = solved(cluster, "helix_auto")
    assert set(np.bincount(table(before).ravel())) == {4}
    again = solved(cluster.with_placement(before.placement), "helix_auto")
    assert again.comparison.moves == 0
    down = solved(without(cluster.with_placement(before.placement), [2]), "helix_auto")
    assert down.comparison.moves == 4
    assert np.bincount(table(down).ravel(), minlength=12)[2] == 0


def test_multiround_balances_states():
    kind = ek.options.MultiRound
    alike = solved(cluster_of(), "helix_multiround", kind(states=ONLINE))
    told_apart = solved(cluster_of(), "helix_multiround")
    assert not np.array_equal(table(alike), table(told_apart))


@pytest.mark.parametrize("method", [*METHODS.values(), "helix_auto"])
def test_bad_options_and_limits_are_refused(method):
    with pytest.raises(ek.InvalidInput, match=f"options: {method} takes"):
        solved(cluster_of(), method, ek.options.Upmap())
    with pytest.raises(ek.InvalidInput, match="limits"):
        solved(cluster_of(), method, limits=ek.Limits(moves=3))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ek.options.Crush(states={}), r"options\.states"),
        (lambda: ek.options.Crush(states={"A": "x"}), r"options\.states\['A'\]"),
        (lambda: ek.options.Crush(replicas=3), r"options\.replicas"),
        (lambda: ek.options.Crushed(base="straw"), r"options\.base"),
        (lambda: ek.options.Auto(most=0), r"options\.most"),
        (lambda: ek.options.Upmap(deviation=0.4, spare=-1), "2 problems"),
    ],
)
def test_options_name_what_is_wrong(make, named):
    with pytest.raises(ek.InvalidInput, match=named):
        make()


def test_a_cluster_without_partitions_or_nodes_is_no_problem():
    empty = cluster_of(groups=0, partitions=0, group_names=[], partition_names=[])
    nowhere = without(cluster_of(), range(12))
    for method, options in ALL:
        assert solved(empty, method, options).success
        assert solved(nowhere, method, options).status == "infeasible"


def test_leaderless_clusters_stay_leaderless():
    placement = np.tile([0, 3, 6], (120, 1))
    result = solved(cluster_of(placement=placement, leader=np.full(120, -1)))
    assert (result.placement.leader == -1).all()


@pytest.mark.parametrize("method", ["helix_crush", "helix_multiround", "helix_crushed"])
def test_groups_that_there_is_no_time_for_stay(method):
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((6, 1), 100.0), load=np.ones((40, 1)), replicas=3, spread={"zone": 1},
        domains={"zone": [*"aabbcc"]}, group=np.repeat([0, 1], 20),
    )  # fmt: skip
    asked = []

    def stop_at_the_second(progress):
        asked.append(progress.phase)
        if asked.count(method) > 1:
            raise StopIteration

    found = ek.solve(cluster, method, callback=stop_at_the_second)
    assert found.stop_reason == "interrupted"
    placed = (found.placement.nodes >= 0).all(axis=1)
    assert placed.tolist() == [True] * 20 + [False] * 20


def test_auto_leaves_what_no_node_has_room_for():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 5, replicas=1)
    found = ek.solve(cluster, "helix_auto", options=ek.options.Auto(most=2))
    assert sorted(found.placement.node.tolist()) == [-1, 0, 0, 1, 1]
    assert [one.partition for one in found.unplaced] == ["p4"]


@pytest.mark.parametrize("method", [*METHODS.values(), "helix_auto", "helix_waged"])
def test_an_instance_swapped_in_beside_another_changes_no_answer(method):
    """Helix mirrors the other one there, and counts it once that is gone."""

    def answer(**state):
        count = len(next(iter(state.values()))) if state else 12
        zones = [*"aaabbbcccddd"] + ["b"] * (count - 12)
        cluster = ek.Cluster.from_arrays(
            capacity=np.full((count, 1), 100.0), load=np.ones((24, 1)), replicas=3,
            spread={"zone": 1}, domains={"zone": zones}, **state,
        )  # fmt: skip
        return ek.solve(cluster, method).placement.node.tolist()

    beside = {"stands_for": [-1] * 12 + [4], "accepts": [True] * 12 + [False]}
    assert answer(**beside) == answer()
    instead = {"alive": [n != 4 for n in range(13)], "gone": [n == 4 for n in range(13)]}
    assert 12 in answer(stands_for=beside["stands_for"], **instead)
