"""What the system elasticsearch reads and writes."""
