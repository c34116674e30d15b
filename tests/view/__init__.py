"""Tests: view."""
