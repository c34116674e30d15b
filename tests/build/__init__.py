"""Tests: build."""
