"""Capacity planning: nodes for a forecast, headroom for growth, and free units."""
