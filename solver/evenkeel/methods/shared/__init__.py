"""What several methods need: compiling a cluster, replica counts, when to stop."""
