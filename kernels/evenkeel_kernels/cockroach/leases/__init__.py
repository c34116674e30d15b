"""CockroachDB's decisions about leases, and the queue that carries them out."""
