"""What the system swift reads and writes."""
