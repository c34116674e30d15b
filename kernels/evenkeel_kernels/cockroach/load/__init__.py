"""CockroachDB's store rebalancer."""
