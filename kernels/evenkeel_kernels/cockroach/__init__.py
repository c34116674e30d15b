"""Kernels of CockroachDB's allocator, leases and store rebalancer."""
