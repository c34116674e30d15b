"""Zone configurations, and their translation to and from rules."""
