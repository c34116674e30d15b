"""Refinement of small clusters."""
