"""Tests: leaders, while replicas are levelled."""
