"""Start fresh processes quickly for tests."""
