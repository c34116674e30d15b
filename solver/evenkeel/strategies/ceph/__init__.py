"""Ceph: CRUSH maps, placement groups, and the upmap and read balancers."""
