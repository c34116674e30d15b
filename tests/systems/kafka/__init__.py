"""What the system kafka reads and writes."""
