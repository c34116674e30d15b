"""How long a cost is minimised where nobody says."""

import evenkeel as ek


def minimised(partitions: int) -> ek.Result:
    placement = [[p % 2] for p in range(partitions)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 4, load=[[1.0]] * partitions, placement=placement
    )
    return ek.solve(cluster, goals=ek.Cost(watermark=1.0, moves=0.1))


def test_a_small_cluster_takes_little_work_and_a_larger_one_more():
    small, larger = minimised(4), minimised(400)
    assert small.work <= 110_000
    assert small.work < larger.work <= 150_000
