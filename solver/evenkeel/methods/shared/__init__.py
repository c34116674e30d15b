"""Shared by methods: compile a cluster, count replicas, decide when to stop."""
