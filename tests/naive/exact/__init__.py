"""Tests: exact."""
