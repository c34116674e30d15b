"""Tests: measure."""
