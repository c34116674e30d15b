"""What the system nats reads and writes."""
