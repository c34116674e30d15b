"""Tests: losses of nodes."""
