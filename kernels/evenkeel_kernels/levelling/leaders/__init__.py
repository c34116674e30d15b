"""Who leads, while replicas are levelled."""
