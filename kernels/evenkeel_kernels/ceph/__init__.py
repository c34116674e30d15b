"""Kernels of Ceph's CRUSH and its upmap balancer."""
