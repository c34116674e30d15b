"""What the system tables reads and writes."""
