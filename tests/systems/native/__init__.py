"""What the system native reads and writes."""
