"""Tests: face."""
