"""What is given of a cluster, read once and checked together."""
