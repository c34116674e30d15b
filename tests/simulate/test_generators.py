"""Scenarios: whole clusters made from a seed."""

import hashlib

import numpy as np
import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.simulate.generators import Disorder, expansion
from tests.support.instances import generate


def digest(cluster):
    """Digest the draws, by arrays of whole numbers, in which no rounding of a processor shows."""
    whole = hashlib.sha256()
    for array in (
        cluster.nodes.capacity, cluster.nodes.alive, cluster.topology.domain,
        cluster.partitions.group, cluster.placement.node,
    ):  # fmt: skip
        whole.update(f"{array.shape}".encode() + array.astype(np.int32).tobytes())
    return whole.hexdigest()[:16]


@pytest.mark.small
def test_an_expansion_is_as_it_says():
    cluster = expansion(partitions=2000, nodes=60, zones=6, replicas=3, dimensions=4, seed=3)
    nodes, placement = cluster.nodes, cluster.placement
    held = np.bincount(placement.node[placement.node >= 0], minlength=60)
    assert cluster.dimensions == ("cpu", "disk", "net", "d3")
    assert cluster.topology.tiers == ("zone", "rack")
    assert (held[-6:] == 0).all()
    assert (held[:-6] > 0).all()
    assert int((~nodes.alive).sum()) == 2
    assert set(np.unique(nodes.capacity / nodes.capacity.min(axis=0))) == {1.0, 2.0}
    zone = np.append(cluster.topology.domain[0], -1)[placement.nodes]
    placed = placement.nodes >= 0
    assert int((~placed).sum()) == 2
    assert placed[:, 0].all()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = placed[:, one] & placed[:, other]
        assert (zone[both, one] != zone[both, other]).all()
    load = cluster.partitions.load
    extra = (load.leader - load.voter) / load.voter
    assert np.allclose(extra, [1.0, 0.0, 0.5, 0.25])
    total = (load.voter * 2 + load.leader).sum(axis=0)
    room = nodes.capacity[nodes.alive].sum(axis=0)
    assert np.allclose(total / room, 0.70, rtol=0.02)


def test_the_same_seed_is_the_same_cluster():
    shape = {"partitions": 300, "nodes": 20, "zones": 5}
    assert digest(expansion(**shape, seed=7)) == digest(expansion(**shape, seed=7))
    assert digest(expansion(**shape, seed=7)) != digest(expansion(**shape, seed=8))


def test_draws_stay_in_their_order():
    """A changed order of draws would silently replace the instances that figures were taken on."""
    assert digest(expansion(partitions=500, nodes=20, zones=5, seed=7)) == "856fa268d6dc7c89"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"partitions": 500, "nodes": 20, "zones": 5, "seed": 7}, {"P": 500, "N": 20, "Z": 5}),
        (
            {"partitions": 700, "nodes": 31, "zones": 4, "replicas": 2, "dimensions": 5, "seed": 7},
            {"P": 700, "N": 31, "Z": 4, "R": 2, "D": 5},
        ),
    ],
)
def test_it_is_the_family_that_other_solvers_were_measured_on(ours, theirs):
    cluster, instance = expansion(**ours), generate(**theirs, seed=7)
    load = cluster.partitions.load
    assert np.array_equal(cluster.nodes.capacity, instance["capacity"])
    assert np.array_equal(cluster.nodes.alive, ~instance["dead"])
    assert np.array_equal(load.voter, instance["load"])
    assert np.array_equal(load.leader, instance["load"] + instance["leader_extra_load"])
    assert np.array_equal(cluster.placement.nodes, instance["placement_before"])
    assert np.array_equal(cluster.partitions.group, instance["resource"])
    for row, level in enumerate(("zone", "rack")):
        _, numbered = np.unique(instance[level], return_inverse=True)
        assert np.array_equal(cluster.topology.domain[row], numbered)


@pytest.mark.parametrize(
    ("shape", "paths"),
    [
        ({"partitions": 0, "dimensions": 0}, ["partitions", "dimensions"]),
        ({"replicas": 4, "zones": 3, "nodes": 30}, ["replicas"]),
        ({"nodes": 8, "zones": 10}, ["nodes"]),
        ({"disorder": Disorder(dead=1.0)}, ["nodes"]),
        ({"disorder": Disorder(new=1.0), "replicas": 11}, ["replicas", "nodes"]),
        (
            {"disorder": Disorder(dead=2.0, new=float("nan"), unassigned=-0.1)},
            ["disorder.new", "disorder.dead", "disorder.unassigned"],
        ),
        (
            {"utilisation": 0.0, "disorder": Disorder(skew=-1.0), "seed": -1},
            ["disorder.skew", "seed", "utilisation"],
        ),
        ({"disorder": Disorder(skew=float("inf"))}, ["disorder.skew"]),
    ],
)
def test_an_impossible_cluster_is_refused_with_every_reason(shape, paths):
    with pytest.raises(InvalidInput) as error:
        expansion(**shape)
    assert [fault.path for fault in error.value.faults] == paths


@pytest.mark.small
def test_the_smallest_clusters_are_possible():
    cluster = expansion(partitions=1, nodes=2, zones=1, replicas=1, dimensions=1)
    assert len(cluster.nodes) == 2
    assert cluster.placement.nodes.tolist() == [[0]]
