"""Kafka: read listings of its tools, and write reassignments."""
