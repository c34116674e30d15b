"""Tests: processes of their own, started quickly."""
