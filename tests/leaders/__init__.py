"""Tests: leaders."""
