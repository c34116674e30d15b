"""OpenStack Swift: rings."""
