"""Plans as JSON files, one step per line, with names and with the cluster."""
