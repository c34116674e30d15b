"""Tests: control."""
