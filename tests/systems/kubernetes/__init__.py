"""What the system kubernetes reads and writes."""
