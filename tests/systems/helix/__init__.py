"""Tests: helix."""
