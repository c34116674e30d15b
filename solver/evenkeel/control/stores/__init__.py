"""What a pipeline keeps between two runs, in memory or on disk."""
