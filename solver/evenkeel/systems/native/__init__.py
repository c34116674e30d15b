"""Evenkeel's own formats, which hold all of a cluster."""
