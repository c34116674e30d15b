"""What the system rabbitmq reads and writes."""
