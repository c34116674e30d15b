"""Re-place the replicas of lost nodes in a cluster without violations."""
