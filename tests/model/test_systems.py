"""Each system that is to be served fits into the model, and the native formats keep all of it."""

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Proportion
from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import Limit, Rule
from evenkeel.systems import registry
from tests.support.clusters import assert_same


def kept(cluster, tmp_path):
    """Return the cluster, after every native format has proved to keep it."""
    for suffix in (".npz", ".json", ".rows.json"):
        registry.write(cluster, tmp_path / f"c{suffix}")
        assert_same(registry.read(tmp_path / f"c{suffix}"), cluster)
    return cluster


def test_helix_waged(tmp_path):
    """Capacity keys, fault zones, tags, limits per node and resource, delays, swap-in."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[100.0, 2000.0]] * 5,
            load=[[10.0, 50.0], [5.0, 20.0], [1.0, 1.0]],
            dimensions=("CPU", "DISK"),
            domains={"zone": ["z1", "z2", "z3", "z1", "z2"]},
            node_names=[f"h{i}_12913" for i in range(5)],
            alive=[True, True, False, True, True],
            accepts=[True, True, False, True, False],
            keeps=[True, True, True, True, False],
            since=[np.nan, np.nan, 1.7e9, np.nan, np.nan],
            stands_for=[-1, -1, -1, 0, -1],
            max_replicas=[3, -1, -1, -1, -1],
            tags={"ssd": [True, True, True, False, False]},
            group=[0, 0, 1],
            group_names=["MyDB", "Other"],
            replicas=[3, 3, 4],
            min_active=2,
            forbidden=[[1, 2]],
            placement=[[0, 1, 2, -1], [0, 1, -1, -1], [0, 1, 2, 3]],
            rules=[Rule(require=["+ssd"], spread={"zone": 1}), Rule(spread={"node": 5})],
            rule=[0, 0, -1],
            group_rule=[1, -1],
        ),
        tmp_path,
    )
    in_delay_window, evacuating = 2, 4
    assert cluster.nodes.may_hold[in_delay_window] and not cluster.nodes.alive[in_delay_window]
    assert cluster.nodes.alive[evacuating] and not cluster.nodes.may_hold[evacuating]
    assert cluster.rules[1].limits(per_node=False) == [Limit("node", "spread", 5, True)]


def test_helix_crush(tmp_path):
    """Instance weights, tags, any live instance, an offline node, names that are hashed."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=np.full((4, 0), 1.0),
            load=np.zeros((2, 0)),
            domains={"zone": ["a", "a", "b", "c"]},
            weight=[1.0, 0.5, 2.0, 0.0],
            alive=[True, True, True, False],
            tags={"t": [True, True, True, False]},
            partition_names=["R_0", "R_\N{SNOWMAN}1"],
            replicas=[3, 3],
            spread={"zone": 1},
        ),
        tmp_path,
    )
    first, units = cluster.partitions.names.utf16
    assert first.tolist() == [0, 3, 7]
    assert units[5] == ord("\N{SNOWMAN}")


def test_cockroach(tmp_path):
    """Uneven localities, attributes, several stores per node, non-voters, lease preferences."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[np.inf, 1e12]] * 6,
            load=[[1.0, 5e8], [0.0, 1e6]],
            leader_load=[[900.0, 5e8], [30.0, 1e6]],
            non_voter_load=[[0.1, 5e8], [0.0, 1e6]],
            dimensions=("qps", "bytes"),
            bytes="bytes",
            domains={
                "region": ["us", "us", "us", "eu", "eu", "ap"],
                "az": ["a", "a", "b", "a", "", ""],
                "machine": [1, 1, 2, 3, 4, 5],
            },
            tags={"ssd": [True, False, True, True, True, False]},
            leads=[True, True, True, False, True, True],
            accepts=[True, True, True, True, False, True],
            alive=[True, True, True, True, False, True],
            keeps=True,
            placement=[0, 2, 3, 4, 5, 1, 2],
            first=[0, 5, 7],
            role=[Role.VOTER] * 3 + [Role.NON_VOTER, Role.LEARNER] + [Role.VOTER] * 2,
            flags=[Flag.CAUGHT_UP] * 4 + [Flag.INCOMING] + [0, Flag.CAUGHT_UP],
            leader=[1, 0],
            replicas=[5, 3],
            voters=[3, 3],
            rules=[
                Rule(
                    place={"region=us": 2, "region=eu": 1},
                    voters_require=["+ssd", "region!=ap"],
                    voters_place={"region=us,+ssd": 1},
                    lead=["region=us,+ssd", "region=eu"],
                    spread={"machine": 1},
                )
            ],
        ),
        tmp_path,
    )
    assert cluster.placement.leader_node.tolist() == [2, 1]
    assert cluster.topology.domain[1, 4] == -1
    unknown = 4
    assert cluster.nodes.may_hold[unknown] and not cluster.nodes.may_receive[unknown]


def test_longhorn(tmp_path):
    """Disks on hosts, several replicas on a disk, soft anti-affinity, eviction, attachment."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[200.0, 100.0]] * 4 + [[0.0, 0.0]],
            load=[[20.0, 7.0], [5.0, 5.0]],
            dimensions=("nominal", "actual"),
            bytes="actual",
            domains={"zone": ["z1", "z1", "z1", "z2", "z2"], "host": [1, 1, 2, 3, 4]},
            tags={"nvme": [True, False, True, True, False], "fast": [True] * 5},
            accepts=[True, False, True, True, False],
            placement=[0, 0, 0, 1, 2, 3, 2, 2, 3],
            first=[0, 6, 9],
            flags=[Flag.HEALTHY] * 5 + [Flag.ERROR, Flag.EVICTING, Flag.HEALTHY, 0],
            leader=[-1, -1],
            attached=[0, 4],
            replicas=[3, 3],
            rules=[
                Rule(
                    require=["+nvme"],
                    spread={"zone": (1, "soft"), "host": (1, "soft"), "node": None},
                )
            ],
        ),
        tmp_path,
    )
    assert cluster.placement.first.tolist() == [0, 6, 9]
    assert all(limit.tier != "node" for limit in cluster.rules[0].limits())
    host = cluster.topology.domain[1]
    assert (host[cluster.placement.node[:4]] == host[0]).all()


def test_ceph(tmp_path):
    """Erasure-coded shards in their slots, holes, a primary in any slot, device classes."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[4e12]] * 5,
            load=[[1e9], [1e9]],
            domains={"rack": [0, 0, 1, 1, 2], "host": ["h1", "h2", "h3", "h4", "h5"]},
            weight=[3.48, 3.48, 1.0, 0.0, 3.48],
            lead_weight=[1.0, 0.0, 0.5, 1.0, 1.0],
            tags={"hdd": [True] * 4 + [False]},
            placement=[[-1, 3, 0], [4, -1, 2]],
            leader=[1, 2],
            min_active=2,
            partition_names=["1.0", "1.1a"],
            rules=[Rule(require=["+hdd"], max_domains={"rack": 2}, spread={"host": 1, "rack": 2})],
            native={"tunables": {"choose_total_tries": 50}},
            native_format="ceph_crush",
        ),
        tmp_path,
    )
    assert cluster.placement.nodes.tolist() == [[-1, 3, 0], [4, -1, 2]]
    assert cluster.placement.leader_node.tolist() == [3, 2]
    assert not cluster.nodes.may_lead[1]


def test_jbod_of_several_disks_with_a_shared_limit(tmp_path):
    """The disks of one host share its network."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[100.0, np.inf]] * 3,
            load=[[1.0, 1.0]],
            dimensions=("disk", "net"),
            domains={"host": ["a", "a", "b"]},
            tier_capacity={"host": [[np.inf, 10.0], [np.inf, 20.0]]},
            replicas=2,
            spread={"host": 1},
        ),
        tmp_path,
    )
    assert cluster.topology.tier_capacity["host"][:, 1].tolist() == [10.0, 20.0]


def test_machine_reassignment(tmp_path):
    """The subject's example: watermarks, transient use, spread and needs of services, costs."""
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[30.0, 400.0], [10.0, 240.0], [15.0, 100.0], [10.0, 100.0]],
            watermark=[[16.0, 80.0], [8.0, 160.0], [12.0, 80.0], [8.0, 80.0]],
            load=[[12.0, 10.0], [10.0, 20.0], [6.0, 200.0]],
            dimensions=("ram", "cpu"),
            transient=["ram"],
            domains={"neighbourhood": [0, 0, 0, 0], "location": [0, 0, 1, 1]},
            tier_distance=[2.0, 1.0, 0.0],
            placement=[[0], [3], [0]],
            group=[0, 0, 1],
            move_cost=[1000.0, 100.0, 1.0],
            depends=[(1, 0, "neighbourhood")],
            rules=[Rule(spread={"node": 1}, min_domains={"location": 2})],
            rule=-1,
            group_rule=[0, -1],
        ),
        tmp_path,
    )
    assert cluster.transient.tolist() == [True, False]
    assert cluster.depends.tolist() == [[1, 0, 0]]
    assert cluster.rules[0].limits(per_node=False) == [
        Limit("node", "spread", 1, True), Limit("location", "min_domains", 2, True),
    ]  # fmt: skip
    cost = Cost(
        watermark={"ram": 100.0, "cpu": 10.0},
        proportion=[Proportion("ram", "cpu", ratio=20.0, weight=10.0)],
        moves=1.0, group_moves=10.0, distance=100.0,
    )  # fmt: skip
    assert cost.watermark_weight("ram") == 100.0
    assert Cost(watermark={"ram": 1.0}).watermark_weight("cpu") == 0.0


def test_kubernetes_spread(tmp_path):
    """Greatest skew, hard or soft, with a least number of domains."""
    rule = Rule(
        skew={"zone": 1, "node": (2, "soft")}, min_domains={"zone": 2}, spread={"node": None}
    )
    cluster = kept(
        Cluster.from_arrays(
            capacity=[[1.0]] * 3, load=[[0.5]], domains={"zone": ["a", "a", "b"]}, replicas=2,
            rules=[rule],
        ),
        tmp_path,
    )  # fmt: skip
    assert Limit("node", "skew", 2, False) in cluster.rules[0].limits()
