"""Bounds on request, by linear and integer programming."""
