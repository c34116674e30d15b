"""Tests: longhorn."""
