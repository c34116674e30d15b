"""A tolerance means what it says: whole replicas are rounded down, never below what can be had."""

import pytest

import evenkeel as ek


def carried(result, dimension=0):
    """Return what each node carries, by its name."""
    loads = result.levelness.loads[:, dimension].tolist()
    return dict(zip(result.cluster.nodes.names, loads, strict=True))


def solved(case, *names, **asked):
    """Solve the files of a case."""
    cluster = ek.read([case.path(name) for name in names])
    result = ek.solve(cluster, **asked)
    assert result.success
    return result


def test_three_equal_replicas_stand_on_three_nodes():
    loads = [[[1.0]] * 3, [[1.0], [1.001], [1.0]], [[0.1]] * 3, [[1e-25]] * 3]
    for load in loads:
        cluster = ek.Cluster.from_arrays(
            capacity=[[10.0 * load[0][0]]] * 3, load=load, placement=[[0], [0], [1]]
        )
        result = ek.solve(cluster, goals=ek.Goals(level=0.01))
        assert result.status == "optimal"
        assert result.comparison.moves == 1


@pytest.mark.parametrize(
    ("tolerance", "most"), [(0.0, 6), (0.05, 6), (0.12, 6), (0.13, 6), (0.2, 6), (0.32, 7)]
)
def test_tolerance_and_wholeness_are_not_added_up(tolerance, most):
    """16 on three nodes: the mean is 5.33."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[20.0]] * 3, load=[[1.0]] * 16, placement=[[0]] * 8 + [[1]] * 8
    )
    result = ek.solve(cluster, goals=ek.Goals(level=tolerance, leaders=tolerance))
    assert result.bounds.target.tolist() == [[most]] * 3
    assert result.bounds.leader_target.tolist() == [most] * 3
    assert result.levelness.loads.max() == most == result.levelness.leaders.max()
    (said, leaders) = result.targets
    assert said.startswith(f"d0 at most {most / 20.0:.2%} of capacity")  # what is tested
    assert leaders.startswith(f"leaders at most {most} on a node")


def test_unlike_nodes_round_down_no_further_than_all_find_a_place():
    cluster = ek.Cluster.from_arrays(capacity=[[3.0], [3.0], [6.0]], load=[[1.0]] * 6, replicas=1)
    result = ek.solve(cluster, goals=ek.Goals(level=0.0))
    assert result.status == "optimal"
    assert result.bounds.target.sum() >= 6.0  # shares of 1.5, 1.5 and 3 would round down to 5
    assert result.levelness.most[0] == pytest.approx(result.bounds.level[0])


def test_loads_of_several_units_are_whole_too():
    """Sizes 1 and 2, 16 in all on three nodes: 6 is the least that some node carries."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[20.0]] * 3, load=[[2.0]] * 6 + [[1.0]] * 4, placement=[[0]] * 10
    )
    result = ek.solve(cluster, goals=ek.Goals(level=0.01))
    assert result.status == "optimal"
    assert result.levelness.loads.max() == 6.0 == result.bounds.target.max()


def test_one_replica_on_two_nodes(public):
    case = public("cockroach/one-replica-two-nodes")
    result = solved(case, "nodes.csv", "ranges.csv", "zones.csv")
    assert result.comparison.moves == 4
    assert sorted(carried(result, -1).values()) == [4.0, 4.0]
    again = ek.solve(result.cluster.with_placement(result.placement))
    assert again.comparison.moves == again.comparison.leader_changes == 0


def test_a_new_search_node_gets_its_share(public):
    case = public("elasticsearch/search-nodes")
    names = [one.name for one in case.source.glob("*.json")]
    result = solved(case, *names)
    assert {name: n for name, n in carried(result).items() if name.startswith("s")} == {
        "s1": 4.0, "s2": 4.0, "s3": 4.0
    }  # fmt: skip


def test_no_two_of_six_pods_share_one_of_nine_nodes(public):
    result = solved(public("kubernetes/six-pods-nine-nodes"), "nodes.json", "pods.json")
    assert result.levelness.most[0] == pytest.approx(0.45)
    assert result.targets[0].startswith("cpu at most 45.00% of capacity")


def test_what_is_dropped_leaves_servers_level(public):
    result = solved(public("helix/replication-reduced"), "nodes.csv", "replicas.csv")
    assert result.comparison.moves == 0
    assert set(carried(result).values()) == {4.0}


def test_a_third_broker_by_count(public):
    case = public("kafka/third-broker-by-count")
    answer = case.run(
        "solve", "described.txt", "--add-nodes", "more.csv", "--leaders", "0.05", "-o", "p.json"
    )
    assert answer.code == 0
    assert "replicas at most 37.50% of capacity" in answer.text  # 6 of 16
    assert "leaders at most 3 on a node" in answer.text
    after = [37.5, 25.0]
    assert all(f"{share}%" in answer.text for share in after)


def test_the_rack_with_more_brokers_is_level_by_itself(public):
    result = solved(public("kafka/racks-of-unlike-size"), "described.txt", "racks.txt")
    rack, loads = result.cluster.topology.domain[0], result.levelness.loads[:, 0]
    large = rack == max(set(rack.tolist()), key=rack.tolist().count)
    assert loads[large].sum() == 48.0
    assert loads[large].max() <= 12.0 * 1.05
    assert loads[~large].max() <= 24.0 * 1.05
    assert "where rules force less" in result.targets[0]
