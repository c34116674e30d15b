"""Sessions: solve a cluster again at the cost of its change."""
