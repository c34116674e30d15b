"""CockroachDB: clusters and problems for tests."""
