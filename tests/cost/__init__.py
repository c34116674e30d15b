"""Tests: cost."""
