"""Choose leaders while replicas are balanced."""
