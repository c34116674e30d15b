"""Exact answers for small clusters by CP-SAT, with a proof."""
