"""What the system roadef reads and writes."""
