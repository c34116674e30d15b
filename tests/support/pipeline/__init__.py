"""Tests: pipeline."""
