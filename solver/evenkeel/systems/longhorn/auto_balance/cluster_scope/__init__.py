"""One plan for all volumes of a Longhorn system."""
