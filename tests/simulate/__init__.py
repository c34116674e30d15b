"""Tests: simulate."""
