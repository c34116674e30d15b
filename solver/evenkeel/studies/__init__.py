"""Many solves of one cluster: sweeps, frontiers, and changes as a person writes them."""
