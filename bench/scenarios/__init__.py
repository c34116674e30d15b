"""Scenarios: clusters, events and expected outcomes to try methods on."""
