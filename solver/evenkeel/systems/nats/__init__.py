"""NATS JetStream: streams and their peers."""
