"""Tests: levelling."""
