"""Tests: studies."""
