"""CockroachDB: its allocator, its leases and its store rebalancer."""
