"""Engines, the rebalancing algorithms of a pipeline, and their interface."""
