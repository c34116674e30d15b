"""WAGED, Apache Helix's weight-aware rebalancer, in all its scopes and to the last bit."""
