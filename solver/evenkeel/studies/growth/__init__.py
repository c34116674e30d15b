"""Capacity planning: nodes for a forecast, headroom for growth, and room for more partitions."""
