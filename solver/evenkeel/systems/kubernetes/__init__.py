"""Kubernetes: pods, nodes and their constraints."""
