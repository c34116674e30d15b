"""What holds for several commands: changes to a cluster, what one repeats, completion."""
