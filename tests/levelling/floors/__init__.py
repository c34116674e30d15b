"""Tests: nodes fill up to their floors."""
