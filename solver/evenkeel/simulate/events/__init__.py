"""What happens to a cluster from outside."""
