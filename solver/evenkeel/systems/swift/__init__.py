"""OpenStack Swift: read and write rings."""
