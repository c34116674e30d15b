"""Replay of golden files: what other systems answered, against what Evenkeel computes."""
