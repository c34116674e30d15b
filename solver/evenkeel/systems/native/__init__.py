"""Evenkeel's own formats, which keep everything that a cluster says."""
