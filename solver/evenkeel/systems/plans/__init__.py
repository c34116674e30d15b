"""Plans as files: JSON with a step per line, everything by name, and the cluster within."""
