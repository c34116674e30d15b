"""Clusters, events and demands to try methods on."""
