"""Kafka: its listings and reassignments."""
