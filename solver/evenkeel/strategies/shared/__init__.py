"""What several strategies need: compiling a cluster, replica counts, when to stop."""
