"""Qdrant: shards of collections as its peers list them, and requests that move them."""
