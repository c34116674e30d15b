"""Paces: what throttles hold to, and how long plans take under them."""
