"""A plan under way: what is observed, in its slots, and copies in flight."""
