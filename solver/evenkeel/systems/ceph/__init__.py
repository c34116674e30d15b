"""Ceph: its maps, CRUSH and the upmap balancer."""

from evenkeel.methods.registry import Method

METHODS = (
    Method(
        "ceph_crush",
        "evenkeel.systems.ceph.crush.method:ceph_crush",
        "Ceph's CRUSH on a Ceph map, bit for bit",
        "evenkeel.systems.ceph.options:CephCrush",
        starts=False,
        begins=1e-7,
        refresh="evenkeel.systems.ceph.crush.method:refresh_payload",
        fixed_membership=True,
        warmup="devices",
    ),
    Method(
        "ceph_upmap",
        "evenkeel.systems.ceph.crush.method:ceph_upmap",
        "pg-upmap-items that balance the devices of a Ceph map with few moves",
        "evenkeel.systems.ceph.options:Upmap",
        starts=False,
        begins=1e-7,
        refresh="evenkeel.systems.ceph.crush.method:refresh_payload",
        fixed_membership=True,
        warmup="devices",
    ),
)
