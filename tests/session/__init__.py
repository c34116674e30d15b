"""Tests: sessions."""
