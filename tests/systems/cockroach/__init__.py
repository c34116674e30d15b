"""Tests: cockroach."""
