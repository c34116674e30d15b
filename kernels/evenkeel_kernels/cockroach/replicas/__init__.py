"""CockroachDB's decisions about replicas, and the queue that carries them out."""
