"""The algorithms that a pipeline may be given, and what it asks of them."""
