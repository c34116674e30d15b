"""Growth: which nodes a forecast takes, and how far loads may grow until a cluster is full."""
